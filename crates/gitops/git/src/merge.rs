//! Merging without a checkout: what two commits become together, or where they disagree.

use crate::{GitError, NewCommit, ObjectId, Repository, Signature};

/// The most commits that are put on top of another branch one by one.
const MAX_REBASED: usize = 1000;

/// What a merge comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// The hash of the common root directory.
    Tree(ObjectId),
    /// The paths at which the two disagree.
    Conflicts(Vec<String>),
}

impl Repository {
    /// Merges one commit's changes into another's files.
    pub async fn merge_trees(&self, ours: &ObjectId, theirs: &ObjectId) -> Result<Merged, GitError> {
        let command = self
            .command("merge-tree")
            .args(["--write-tree", "-z", "--name-only", "--no-messages"])
            .args([ours.as_str(), theirs.as_str()]);
        let (success, printed, complaint) = command.finish().await?;
        let text = String::from_utf8_lossy(&printed);
        let mut words = text.split('\0').filter(|word| !word.is_empty());
        let tree = words.next().and_then(|word| ObjectId::parse(word.trim()).ok());
        match (success, tree) {
            (true, Some(tree)) => Ok(Merged::Tree(tree)),
            (false, Some(_)) => {
                let mut paths: Vec<String> = words.map(str::to_owned).collect();
                paths.dedup();
                Ok(Merged::Conflicts(paths))
            }
            _ => Err(GitError::Failed {
                what: "merge-tree".to_owned(),
                said: command.complaint(&complaint),
            }),
        }
    }

    /// Puts the commits that lead to `theirs` and not to `onto` on top of `onto`, one by one; the last of them.
    pub async fn rebase(
        &self,
        theirs: &ObjectId,
        onto: &ObjectId,
        committer: &Signature,
    ) -> Result<Result<ObjectId, Vec<String>>, GitError> {
        let mut commits = self.log(theirs, Some(onto), None, 0, MAX_REBASED + 1).await?;
        if commits.len() > MAX_REBASED {
            return Err(GitError::Failed {
                what: "rebase".to_owned(),
                said: format!("more than {MAX_REBASED} commits; merge them instead"),
            });
        }
        commits.reverse();
        let mut top = onto.clone();
        for commit in commits.iter().filter(|commit| commit.parents.len() == 1) {
            let base = &commit.parents[0];
            let tree = self.commit_info(&top).await?.tree;
            // git takes the newest common ancestor for the base; this makes the commit's own parent that.
            let stand_in = commit.again_on(vec![base.clone()], committer.clone());
            let stand_in = self.commit_tree(&tree, &stand_in).await?;
            match self.merge_trees(&stand_in, &commit.id).await? {
                Merged::Conflicts(paths) => return Ok(Err(paths)),
                // What is there already becomes no empty commit.
                Merged::Tree(merged) if merged == tree => {}
                Merged::Tree(merged) => {
                    let again: NewCommit = commit.again_on(vec![top.clone()], committer.clone());
                    top = self.commit_tree(&merged, &again).await?;
                }
            }
        }
        Ok(Ok(top))
    }
}
