//! Commits that are made here: several changes to files, put on a branch if it is still where the caller saw it.

use std::sync::Arc;

use fairway_gitops_tree::path;

use crate::{CommitInfo, GitError, ObjectId, RefName, Repository, Signature};

/// What becomes of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A file with this content; one that was there keeps nothing of it.
    File {
        /// The content.
        content: Arc<[u8]>,
        /// Whether it can be run.
        is_executable: bool,
    },
    /// A symbolic link with this target.
    Link(String),
    /// Nothing: a file or a whole directory goes.
    Gone,
}

/// A change at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Where.
    pub path: String,
    /// What.
    pub change: Change,
}

impl FileChange {
    /// A plain file.
    pub fn file(path: impl Into<String>, content: impl Into<Arc<[u8]>>) -> Self {
        let (content, is_executable) = (content.into(), false);
        Self {
            path: path.into(),
            change: Change::File {
                content,
                is_executable,
            },
        }
    }

    /// Nothing there from now on.
    pub fn gone(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            change: Change::Gone,
        }
    }
}

/// A commit to be made.
#[derive(Debug, Clone)]
pub struct NewCommit {
    /// The commits that it follows. Its files are those of the first, changed.
    pub parents: Vec<ObjectId>,
    /// In this order; a later change to a path wins.
    pub changes: Vec<FileChange>,
    /// Who wrote the change.
    pub author: Signature,
    /// Who makes the commit.
    pub committer: Signature,
    /// The message.
    pub message: String,
}

impl Repository {
    /// Makes a commit on top of a branch that is at `expected`, none if it does not exist yet, and moves the branch. If the
    /// branch has moved, it is left alone: [`GitError::Moved`].
    pub async fn commit_on(
        &self,
        branch: &RefName,
        expected: Option<&ObjectId>,
        commit: NewCommit,
    ) -> Result<ObjectId, GitError> {
        let id = self.create_commit(commit).await?;
        self.update_reference(branch, Some(&id), expected).await?;
        Ok(id)
    }

    /// Makes a commit that no reference leads to yet.
    pub async fn create_commit(&self, commit: NewCommit) -> Result<ObjectId, GitError> {
        let stream = import_stream(&commit)?;
        let printed = self
            .command("fast-import")
            .args(["--quiet", "--done", "--date-format=raw"])
            .input(stream)
            .output()
            .await?;
        let text = String::from_utf8_lossy(&printed);
        ObjectId::parse(text.trim()).map_err(|_| GitError::Nonsense {
            what: "fast-import".to_owned(),
            said: text.into_owned(),
        })
    }

    /// Makes an annotated tag of a commit that no reference leads to yet; who tags, when and why as of a commit.
    pub async fn create_tag(
        &self,
        name: &str,
        commit: &ObjectId,
        made: &NewCommit,
    ) -> Result<ObjectId, GitError> {
        RefName::tag(name)?;
        let (tagger, message) = (made.committer.line(), &made.message);
        let object = format!("object {commit}\ntype commit\ntag {name}\ntagger {tagger}\n\n{message}");
        let printed = self
            .command("hash-object")
            .args(["-t", "tag", "-w", "--stdin"])
            .input(object)
            .output()
            .await?;
        ObjectId::parse(String::from_utf8_lossy(&printed).trim())
    }

    /// The same files as another commit, on top of other parents.
    pub async fn commit_tree(&self, tree: &ObjectId, commit: &NewCommit) -> Result<ObjectId, GitError> {
        let mut object = format!("tree {tree}\n");
        for parent in &commit.parents {
            object.push_str(&format!("parent {parent}\n"));
        }
        let (author, committer) = (commit.author.line(), commit.committer.line());
        object.push_str(&format!("author {author}\ncommitter {committer}\n\n"));
        object.push_str(&commit.message);
        let printed = self
            .command("hash-object")
            .args(["-t", "commit", "-w", "--stdin"])
            .input(object)
            .output()
            .await?;
        ObjectId::parse(String::from_utf8_lossy(&printed).trim())
    }
}

/// What `git fast-import` reads. The commit goes to a reference that is taken back before the end, so that nothing but
/// objects is left.
fn import_stream(commit: &NewCommit) -> Result<Vec<u8>, GitError> {
    const STAGING: &str = "refs/fairway/staging";
    let mut out = Vec::new();
    let mut line = |text: &str| {
        out.extend_from_slice(text.as_bytes());
        out.push(b'\n');
    };
    line(&format!("reset {STAGING}"));
    if let Some(first) = commit.parents.first() {
        line(&format!("from {first}"));
        line("");
    }
    line(&format!("commit {STAGING}"));
    line("mark :1");
    line(&format!("author {}", commit.author.line()));
    line(&format!("committer {}", commit.committer.line()));
    line(&format!("data {}", commit.message.len()));
    line(&commit.message);
    if let Some(first) = commit.parents.first() {
        line(&format!("from {first}"));
    }
    for merged in commit.parents.iter().skip(1) {
        line(&format!("merge {merged}"));
    }
    for FileChange { path, change } in &commit.changes {
        let path = quoted(path)?;
        let (mode, content) = match change {
            Change::Gone => {
                out.extend_from_slice(format!("D {path}\n").as_bytes());
                continue;
            }
            Change::File {
                content,
                is_executable,
            } => (if *is_executable { "100755" } else { "100644" }, &**content),
            Change::Link(target) => ("120000", target.as_bytes()),
        };
        out.extend_from_slice(format!("M {mode} inline {path}\ndata {}\n", content.len()).as_bytes());
        out.extend_from_slice(content);
        out.push(b'\n');
    }
    let end = format!(
        "\nget-mark :1\nreset {STAGING}\nfrom {}\n\ndone\n",
        ObjectId::zero()
    );
    out.extend_from_slice(end.as_bytes());
    Ok(out)
}

/// A path as `git fast-import` reads it, if a checkout could hold it.
fn quoted(text: &str) -> Result<String, GitError> {
    let refuse = |why: &str| GitError::invalid("the path", text, why);
    let clean = path::normalise(text).map_err(|error| refuse(&error.problem.to_string()))?;
    if clean.is_empty() || clean != text {
        return Err(refuse("it must be relative, without empty parts, . and .."));
    }
    if text.contains(char::is_control) {
        return Err(refuse("it contains a control character"));
    }
    let is_gits_own = |part: &str| {
        let part = part.to_ascii_lowercase();
        part == ".git" || part == "git~1"
    };
    if text.split('/').any(is_gits_own) {
        return Err(refuse("a part of it is .git, which no checkout may hold"));
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    Ok(format!("\"{escaped}\""))
}

impl CommitInfo {
    /// A commit like this one, with other parents: what a rebase makes of it.
    pub fn again_on(&self, parents: Vec<ObjectId>, committer: Signature) -> NewCommit {
        NewCommit {
            parents,
            changes: Vec::new(),
            author: self.author.clone(),
            committer,
            message: self.message.clone(),
        }
    }
}
