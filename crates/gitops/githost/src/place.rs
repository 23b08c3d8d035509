//! Where repositories are on disk: `DIR/<workspace id>/<name>.git`, by ids, so that a workspace may move.
//!
//! A repository is made beside its place and moved there when it is whole. One whose object is gone is moved aside, and kept
//! for a while, in `DIR/.removed`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fairway_gitops_git::{Git, GitError, RefName, Repository};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::catalog::Wanted;

/// How long a removed repository is kept.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// Says whose repository it is.
const MARK: &str = "fairway.json";

/// Why a repository cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// A file.
    #[error("{attempt} failed: {source}")]
    Io {
        /// What was attempted.
        attempt: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// Git.
    #[error("{}", .0.full())]
    Git(#[from] GitError),
}

fn io(attempt: impl Into<String>) -> impl FnOnce(std::io::Error) -> PlaceError {
    let attempt = attempt.into();
    |source| PlaceError::Io { attempt, source }
}

/// The directory of all repositories.
#[derive(Debug)]
pub struct Place {
    root: PathBuf,
    git: Git,
    /// One is made or removed at a time.
    change: Mutex<()>,
}

/// A repository on disk, by what names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The id of the workspace.
    pub workspace: String,
    /// Its name.
    pub name: String,
    /// The UID of the object that it was made for.
    pub uid: String,
}

impl Place {
    /// Uses a directory.
    pub fn new(root: PathBuf, git: Git) -> Self {
        Self {
            root,
            git,
            change: Mutex::default(),
        }
    }

    /// How git is run.
    pub fn git(&self) -> &Git {
        &self.git
    }

    /// Where a repository is. Both names have been judged: they have neither slashes nor dots at their beginning.
    pub fn path(&self, workspace: &str, name: &str) -> PathBuf {
        self.root
            .join(workspace.replace(':', "_"))
            .join(format!("{name}.git"))
    }

    /// The repository that an object describes, made if it is not there.
    pub async fn ensure(&self, wanted: &Wanted) -> Result<Repository, PlaceError> {
        let path = self.path(&wanted.workspace, &wanted.name);
        if uid_at(&path).as_deref() == Some(&*wanted.uid) {
            return Ok(Repository::open(&self.git, path)?);
        }
        let _one = self.change.lock().await;
        match uid_at(&path) {
            Some(uid) if uid == wanted.uid => return Ok(Repository::open(&self.git, path)?),
            // Its object was deleted and made again.
            Some(_) => self.set_aside(&path)?,
            None if path.exists() => self.set_aside(&path)?,
            None => {}
        }
        let directory = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(directory).map_err(io(format!("making {}", directory.display())))?;
        let beside = tempfile::Builder::new()
            .prefix(".new-")
            .tempdir_in(&self.root)
            .map_err(io("making a place for a repository"))?;
        let new = beside.path().join("new.git");
        let made = Repository::init(&self.git, &new, &wanted.default_branch).await?;
        made.close();
        let mark = json!({"workspace": wanted.workspace, "name": wanted.name, "uid": wanted.uid});
        write_whole(&new.join(MARK), mark.to_string().as_bytes()).map_err(io("marking a repository"))?;
        fs::rename(&new, &path).map_err(io(format!("making {}", path.display())))?;
        sync(directory).map_err(io(format!("making {}", path.display())))?;
        Ok(Repository::open(&self.git, path)?)
    }

    /// Moves a repository aside whose object is gone. `uid`: only if it was made for this object.
    pub async fn remove(&self, workspace: &str, name: &str, uid: Option<&str>) -> Result<bool, PlaceError> {
        let path = self.path(workspace, name);
        let _one = self.change.lock().await;
        let Some(found) = uid_at(&path) else {
            return Ok(false);
        };
        if uid.is_some_and(|uid| uid != found) {
            return Ok(false);
        }
        self.set_aside(&path)?;
        Ok(true)
    }

    fn set_aside(&self, path: &Path) -> Result<(), PlaceError> {
        if let Ok(repository) = Repository::open(&self.git, path) {
            repository.close();
        }
        let removed = self.root.join(".removed");
        fs::create_dir_all(&removed).map_err(io(format!("making {}", removed.display())))?;
        let name = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let workspace = name(path.parent().and_then(Path::file_name));
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos());
        let target = removed.join(format!("{now}-{workspace}-{}", name(path.file_name())));
        fs::rename(path, &target).map_err(io(format!("moving {} aside", path.display())))
    }

    /// Every repository on disk.
    pub fn list(&self) -> Vec<Found> {
        let mut found = Vec::new();
        let directories = fs::read_dir(&self.root).into_iter().flatten().flatten();
        for directory in directories.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.')) {
            for entry in fs::read_dir(directory.path()).into_iter().flatten().flatten() {
                let Some(mark) = read_mark(&entry.path()) else {
                    continue;
                };
                let text = |field: &str| mark[field].as_str().unwrap_or("").to_owned();
                found.push(Found {
                    workspace: text("workspace"),
                    name: text("name"),
                    uid: text("uid"),
                });
            }
        }
        found
    }

    /// Deletes what was moved aside long ago, and what a crash has left half made.
    pub fn sweep(&self) {
        let now = SystemTime::now();
        let entries = fs::read_dir(self.root.join(".removed"))
            .into_iter()
            .flatten()
            .flatten();
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            let nanos = name.split('-').next().and_then(|text| text.parse::<u64>().ok());
            let at = nanos.map(|nanos| SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos));
            let age = at.and_then(|at| now.duration_since(at).ok());
            if age.is_some_and(|age| age > KEPT) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let is_half = entry.file_name().to_string_lossy().starts_with(".new-");
            let age = entry.metadata().and_then(|data| data.modified()).ok();
            let age = age.and_then(|at| now.duration_since(at).ok());
            if is_half && age.is_some_and(|age| age > Duration::from_secs(3600)) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Brings the default branch to what the object says.
    pub async fn settle(&self, repository: &Repository, wanted: &Wanted) -> Result<(), PlaceError> {
        let branch = RefName::branch(&wanted.default_branch)?;
        if repository.head()?.as_ref() != Some(&branch) {
            repository.set_head(&branch).await?;
        }
        Ok(())
    }
}

fn read_mark(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(path.join(MARK)).ok()?).ok()
}

fn uid_at(path: &Path) -> Option<String> {
    read_mark(path)?["uid"].as_str().map(str::to_owned)
}

/// Writes a file so that after a crash it is there whole or not at all.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync(directory)
}

fn sync(directory: &Path) -> std::io::Result<()> {
    fs::File::open(directory)?.sync_all()
}
