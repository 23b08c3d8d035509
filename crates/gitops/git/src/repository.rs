//! A bare repository on disk: what it has, and where its references point.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fairway_gitops_tree::{Limits, Tree};

use crate::batch::Answer;
use crate::commit_info::CommitInfo;
use crate::id::{is_full_hash, is_short_hash};
use crate::reading::CommitFiles;
use crate::refs::ref_problem;
use crate::{Command, Git, GitError, ObjectId, RefName};

/// The largest commit or tag object; they are mostly messages.
const MAX_COMMIT_BYTES: u64 = 1 << 20;
/// From how many loose objects on they are packed.
const LOOSE_OBJECTS: u32 = 2000;

/// A bare repository. Copies mean the same one.
#[derive(Debug, Clone)]
pub struct Repository {
    git: Git,
    path: Arc<Path>,
    /// Where objects are that have come and are not accepted yet.
    incoming: Option<Arc<Path>>,
}

/// A reference and what it points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Its full name.
    pub name: RefName,
    /// The object: of an annotated tag, the tag's.
    pub id: ObjectId,
    /// The commit, if it leads to one.
    pub commit: Option<ObjectId>,
}

impl Repository {
    /// Makes a bare repository. One that is there already stays as it is.
    pub async fn init(git: &Git, path: impl Into<PathBuf>, default_branch: &str) -> Result<Self, GitError> {
        let path = path.into();
        let branch = RefName::branch(default_branch)?;
        let is_new = !path.join("HEAD").exists();
        git.command(None, "init")
            .args(["--quiet", "--bare", "--template="])
            .arg(format!("--initial-branch={default_branch}"))
            .arg("--")
            .arg(&path)
            .output()
            .await?;
        let repository = Self::open(git, path)?;
        if is_new {
            repository.set_head(&branch).await?;
        }
        Ok(repository)
    }

    /// A repository that is there.
    pub fn open(git: &Git, path: impl Into<PathBuf>) -> Result<Self, GitError> {
        let path = path.into();
        match path.join("HEAD").exists() && path.join("objects").is_dir() {
            true => Ok(Self {
                git: git.clone(),
                path: path.into(),
                incoming: None,
            }),
            false => Err(GitError::NoRepository { path }),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How children are run in it.
    pub fn git(&self) -> &Git {
        &self.git
    }

    /// A child to come, in this repository.
    pub fn command(&self, subcommand: &'static str) -> Command {
        let command = self.git.command(Some(&self.path), subcommand);
        match &self.incoming {
            None => command,
            Some(incoming) => command
                .env("GIT_OBJECT_DIRECTORY", &**incoming)
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.path.join("objects")),
        }
    }

    /// The same repository with the objects in a directory besides, where new ones go, too. Nobody else sees them until
    /// [`Repository::accept`].
    pub fn with_incoming(&self, directory: &Path) -> Self {
        Self {
            incoming: Some(directory.into()),
            ..self.clone()
        }
    }

    /// Which of those who read objects this is.
    pub(crate) fn objects_path(&self) -> &Path {
        self.incoming.as_deref().unwrap_or(&self.path)
    }

    /// Lets go of everything that is open, before the directory is moved or removed.
    pub fn close(&self) {
        self.git.pool().forget(self.objects_path());
    }

    pub(crate) fn contents(&self, revision: &str, limit: u64) -> Result<Answer, GitError> {
        self.git.pool().contents(self, revision, limit)
    }

    pub(crate) fn info(&self, revision: &str) -> Result<Answer, GitError> {
        self.git.pool().info(self, revision)
    }

    /// Runs what waits for a child on a thread that may wait.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, GitError> + Send + 'static,
    ) -> Result<T, GitError> {
        let this = self.clone();
        match tokio::task::spawn_blocking(move || work(&this)).await {
            Ok(outcome) => outcome,
            Err(broken) => Err(GitError::Io {
                attempt: "reading a repository".to_owned(),
                source: std::io::Error::other(broken),
            }),
        }
    }

    /// The commit that a revision means: `HEAD` (or nothing), a full reference, a branch, a tag, a full or short hash, in
    /// this order, as Argo CD looks for them. Annotated tags lead to their commit.
    pub async fn resolve(&self, revision: &str) -> Result<ObjectId, GitError> {
        let revision = revision.to_owned();
        self.blocking(move |this| this.resolve_blocking(&revision)).await
    }

    /// The same, for a caller that may wait.
    pub fn resolve_blocking(&self, revision: &str) -> Result<ObjectId, GitError> {
        let unknown = || GitError::UnknownRevision {
            revision: revision.to_owned(),
        };
        let mut candidates = Vec::new();
        if revision.is_empty() || revision == "HEAD" {
            candidates.push("HEAD".to_owned());
        } else if is_full_hash(revision) {
            candidates.push(revision.to_owned());
        } else if ref_problem(revision).is_none() && !revision.starts_with('-') {
            if revision.starts_with("refs/") {
                candidates.push(revision.to_owned());
            } else {
                candidates.push(format!("refs/heads/{revision}"));
                candidates.push(format!("refs/tags/{revision}"));
                candidates.push(format!("refs/{revision}"));
                if is_short_hash(revision) {
                    candidates.push(revision.to_owned());
                }
            }
        }
        for candidate in candidates {
            let peeled = format!("{candidate}^{{commit}}");
            match self.git.pool().info(self, &peeled)? {
                Answer::Found(object) => return Ok(object.id),
                Answer::Ambiguous => {
                    return Err(GitError::Ambiguous {
                        revision: revision.to_owned(),
                    });
                }
                Answer::Missing | Answer::TooLarge { .. } => {}
            }
        }
        Err(unknown())
    }

    /// A commit's files, read when they are asked for. Reading waits for a child: not on a thread of the runtime.
    pub async fn tree(&self, commit: &ObjectId, limits: Limits) -> Result<Tree, GitError> {
        let commit = commit.clone();
        self.blocking(move |this| this.tree_blocking(&commit, limits))
            .await
    }

    /// The same, for a caller that may wait.
    pub fn tree_blocking(&self, commit: &ObjectId, limits: Limits) -> Result<Tree, GitError> {
        let root = self.commit_info_blocking(commit)?.tree;
        Ok(Tree::lazy(Box::new(CommitFiles::new(self.clone(), root)), limits))
    }

    /// Who made a commit, when, why, and on top of what.
    pub async fn commit_info(&self, commit: &ObjectId) -> Result<CommitInfo, GitError> {
        let commit = commit.clone();
        self.blocking(move |this| this.commit_info_blocking(&commit))
            .await
    }

    /// The same, for a caller that may wait.
    pub fn commit_info_blocking(&self, commit: &ObjectId) -> Result<CommitInfo, GitError> {
        let missing = || GitError::NoObject {
            id: commit.clone(),
            wanted: "commit",
        };
        match self.contents(commit.as_str(), MAX_COMMIT_BYTES)? {
            Answer::Found(object) if object.kind == "commit" => {
                CommitInfo::parse(commit.clone(), &object.content).ok_or_else(missing)
            }
            _ => Err(missing()),
        }
    }

    /// An object's content, if it is of this kind (`blob`, `tree`, `commit`, `tag`) and no larger than this.
    pub async fn object(&self, id: &ObjectId, kind: &'static str, limit: u64) -> Result<Vec<u8>, GitError> {
        let id = id.clone();
        self.blocking(move |this| match this.contents(id.as_str(), limit)? {
            Answer::Found(object) if object.kind == kind => Ok(object.content),
            Answer::TooLarge { .. } => Err(GitError::TooLarge {
                what: "cat-file".to_owned(),
                limit,
            }),
            _ => Err(GitError::NoObject { id, wanted: kind }),
        })
        .await
    }

    /// The tags that lead to a commit, sorted.
    pub async fn tags_of(&self, commit: &ObjectId) -> Result<Vec<String>, GitError> {
        let printed = self
            .command("for-each-ref")
            .args([
                "--points-at",
                commit.as_str(),
                "--format=%(refname:lstrip=2)",
                "refs/tags",
            ])
            .output()
            .await?;
        Ok(lines(&printed).map(str::to_owned).collect())
    }

    /// All references below a prefix such as `refs/heads/` (all of them for an empty one), sorted by name.
    pub async fn references(&self, prefix: &str) -> Result<Vec<Reference>, GitError> {
        let mut command = self
            .command("for-each-ref")
            .arg("--format=%(refname) %(objectname) %(objecttype) %(*objectname) %(*objecttype)");
        if !prefix.is_empty() {
            let clean = prefix.trim_end_matches('/');
            RefName::parse(clean).map(drop).or_else(|error| match clean {
                "refs" => Ok(()),
                _ => Err(error),
            })?;
            command = command.arg(format!("{clean}/"));
        }
        let printed = command.output().await?;
        let mut found = Vec::new();
        for line in lines(&printed) {
            let mut words = line.split(' ');
            let (Some(name), Some(id), kind) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let (peeled, peeled_kind) = (words.next(), words.next());
            // What was made by other hands than Git's is left out.
            let Ok(name) = RefName::parse(name) else { continue };
            let id = ObjectId::parse(id)?;
            let commit = match (kind, peeled, peeled_kind) {
                (Some("commit"), _, _) => Some(id.clone()),
                (Some("tag"), Some(peeled), Some("commit")) => Some(ObjectId::parse(peeled)?),
                _ => None,
            };
            found.push(Reference { name, id, commit });
        }
        Ok(found)
    }

    /// The branch that `HEAD` means, whether it exists or not.
    pub fn head(&self) -> Result<Option<RefName>, GitError> {
        let path = self.path.join("HEAD");
        let text =
            std::fs::read_to_string(&path).map_err(GitError::io(format!("reading {}", path.display())))?;
        Ok(text
            .trim()
            .strip_prefix("ref: ")
            .and_then(|name| RefName::parse(name).ok()))
    }

    /// Makes a branch the default one.
    pub async fn set_head(&self, branch: &RefName) -> Result<(), GitError> {
        self.command("symbolic-ref")
            .args(["HEAD", branch.as_str()])
            .output()
            .await
            .map(drop)
    }

    /// The paths that differ between two commits, sorted; a moved file has two. Without an old commit, all of the new one's.
    pub async fn changed_paths(
        &self,
        old: Option<&ObjectId>,
        new: &ObjectId,
    ) -> Result<Vec<String>, GitError> {
        let command = match old {
            Some(old) => self.command("diff-tree").args([
                "-r",
                "-z",
                "--name-only",
                "--no-renames",
                old.as_str(),
                new.as_str(),
            ]),
            None => self
                .command("ls-tree")
                .args(["-r", "-z", "--name-only", "--full-tree", new.as_str()]),
        };
        let printed = command.output().await?;
        Ok(printed
            .split(|byte| *byte == 0)
            .filter(|path| !path.is_empty())
            .map(|path| String::from_utf8_lossy(path).into_owned())
            .collect())
    }

    /// Moves, creates (`old` is none) or deletes (`new` is none) a reference, if it is where the caller believes it to be.
    pub async fn update_reference(
        &self,
        name: &RefName,
        new: Option<&ObjectId>,
        old: Option<&ObjectId>,
    ) -> Result<(), GitError> {
        let updated = self.update_references(&[(name, new, old)]).await;
        let Err(error) = updated else { return Ok(()) };
        let found = self.reference(name).await?;
        match found.as_ref() == old {
            true => Err(error),
            false => Err(GitError::Moved {
                reference: name.to_string(),
                expected: old.cloned(),
                found,
            }),
        }
    }

    /// The same for several: name, new and old place of each. All of them move or none.
    pub async fn update_references(
        &self,
        updates: &[(&RefName, Option<&ObjectId>, Option<&ObjectId>)],
    ) -> Result<(), GitError> {
        let mut lines = String::new();
        for (name, new, old) in updates {
            lines.push_str(&match (new, old) {
                (Some(new), Some(old)) => format!("update {name}\0{new}\0{old}\0"),
                (Some(new), None) => format!("create {name}\0{new}\0"),
                (None, Some(old)) => format!("delete {name}\0{old}\0"),
                (None, None) => continue,
            });
        }
        let command = self.command("update-ref").args(["-z", "--stdin"]).input(lines);
        command.output().await.map(drop)
    }

    /// Where a reference points, if it exists: of an annotated tag, to the tag's object.
    pub async fn reference(&self, name: &RefName) -> Result<Option<ObjectId>, GitError> {
        let name = name.to_string();
        self.blocking(move |this| {
            Ok(match this.git.pool().info(this, &name)? {
                Answer::Found(object) => Some(object.id),
                _ => None,
            })
        })
        .await
    }

    /// Whether one commit is among the other's ancestors, or the same.
    pub async fn is_ancestor(&self, ancestor: &ObjectId, descendant: &ObjectId) -> Result<bool, GitError> {
        let command =
            self.command("merge-base")
                .args(["--is-ancestor", ancestor.as_str(), descendant.as_str()]);
        let (success, _, complaint) = command.finish().await?;
        match success || complaint.is_empty() {
            true => Ok(success),
            false => Err(GitError::Failed {
                what: "merge-base".to_owned(),
                said: command.complaint(&complaint),
            }),
        }
    }

    /// Packs what has become many small files. Cheap if there is nothing to do.
    pub async fn maintain(&self, timeout: Duration) -> Result<(), GitError> {
        self.command("gc")
            .set(format!("gc.auto={LOOSE_OBJECTS}"))
            .set("gc.autoDetach=false")
            .args(["--auto", "--quiet"])
            .timeout(timeout)
            .output()
            .await
            .map(drop)
    }
}

fn lines(printed: &[u8]) -> impl Iterator<Item = &str> {
    printed
        .split(|byte| *byte == b'\n')
        .filter_map(|line| std::str::from_utf8(line).ok())
        .filter(|line| !line.is_empty())
}
