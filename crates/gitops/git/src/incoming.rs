//! Objects that somebody sends: kept apart until they are accepted, and listed for whoever decides.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::{GitError, ObjectId, Repository};

/// An object that has come, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncomingObject {
    /// Its hash.
    pub id: ObjectId,
    /// `blob`, `tree`, `commit` or `tag`.
    pub kind: String,
    /// Its size when it is unpacked.
    pub size: u64,
}

impl Repository {
    /// A place for objects that have not been accepted. It goes with all that is in it when it is dropped.
    pub fn incoming_directory(&self) -> Result<TempDir, GitError> {
        let objects = self.path().join("objects");
        let made = tempfile::Builder::new().prefix("incoming-").tempdir_in(objects);
        let directory = made.map_err(GitError::io("making a place for incoming objects"))?;
        fs::create_dir(directory.path().join("pack"))
            .map_err(GitError::io("making a place for incoming objects"))?;
        Ok(directory)
    }

    /// Every object in a place for incoming ones.
    pub async fn incoming_objects(&self, directory: &Path) -> Result<Vec<IncomingObject>, GitError> {
        let printed = self
            .git()
            .command(Some(self.path()), "cat-file")
            .env("GIT_OBJECT_DIRECTORY", directory)
            .args([
                "--batch-all-objects",
                "--unordered",
                "--batch-check=%(objectname) %(objecttype) %(objectsize)",
            ])
            .output()
            .await?;
        let text = String::from_utf8_lossy(&printed);
        let mut found = Vec::new();
        for line in text.lines() {
            let mut words = line.split(' ');
            let (Some(id), Some(kind), Some(size)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            found.push(IncomingObject {
                id: ObjectId::parse(id)?,
                kind: kind.to_owned(),
                size: size.parse().unwrap_or(u64::MAX),
            });
        }
        Ok(found)
    }

    /// Whether everything that these commits and tags lead to is there, in the repository or among what has come.
    pub async fn is_complete(&self, tips: &[ObjectId]) -> Result<(), GitError> {
        let mut questions = String::new();
        for tip in tips {
            questions.push_str(tip.as_str());
            questions.push('\n');
        }
        self.command("rev-list")
            .args(["--objects", "--stdin", "--not", "--all", "--quiet"])
            .input(questions)
            .output()
            .await
            .map(drop)
    }

    /// Takes what has come into the repository, safe on disk. References to it may be made afterwards.
    pub async fn accept(&self, incoming: TempDir) -> Result<(), GitError> {
        let objects = self.path().join("objects");
        let moved = tokio::task::spawn_blocking(move || {
            let outcome = accept(incoming.path(), &objects);
            drop(incoming);
            outcome
        });
        let moved = moved
            .await
            .unwrap_or_else(|broken| Err(std::io::Error::other(broken)));
        moved.map_err(GitError::io("accepting objects"))
    }
}

fn accept(incoming: &Path, objects: &Path) -> std::io::Result<()> {
    let pack = objects.join("pack");
    fs::create_dir_all(&pack)?;
    let mut names: Vec<_> = fs::read_dir(incoming.join("pack"))?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<Result<_, _>>()?;
    // A pack is found by its index, which therefore comes last.
    names.sort_by_key(|name| Path::new(name).extension().is_some_and(|kind| kind == "idx"));
    for name in names {
        let target = pack.join(&name);
        // The same pack was sent before; its name is its content.
        if !target.exists() {
            fs::rename(incoming.join("pack").join(&name), target)?;
        }
    }
    fs::File::open(&pack)?.sync_all()
}
