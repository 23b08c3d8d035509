//! Deliveries that are due, as files in the repository's own directory. A file is whole and on disk when what it tells of is
//! acknowledged, and goes when it has arrived or was given up.

use std::fs;
use std::io::{Error, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fairway_gitops_git::Repository;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};
use tracing::warn;

use super::Kind;
use super::message::hex;
use crate::place::write_whole;

/// The most deliveries of a repository that wait; beyond, the oldest go.
const MAX_WAITING: usize = 200;
/// The largest file.
const MAX_FILE: u64 = 8 << 20;

/// A delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    /// The name of its file: when it was made, and something random. Files in order of their names are in order of time.
    pub(crate) id: String,
    /// The id that the receiver sees.
    pub(crate) uuid: String,
    /// The number of the hook.
    pub(crate) hook: u64,
    pub(crate) kind: Kind,
    pub(crate) payload: String,
    /// How often it was tried.
    pub(crate) attempts: u32,
}

impl Task {
    /// A new one.
    pub(crate) fn new(hook: u64, kind: Kind, payload: String) -> Result<Self, Error> {
        let mut random = [0; 16];
        SystemRandom::new()
            .fill(&mut random)
            .map_err(|_| Error::other("the system has no randomness to give"))?;
        // Version 4, variant 1.
        random[6] = random[6] & 0x0f | 0x40;
        random[8] = random[8] & 0x3f | 0x80;
        let digits = hex(&random);
        let uuid = [
            &digits[..8],
            &digits[8..12],
            &digits[12..16],
            &digits[16..20],
            &digits[20..],
        ]
        .join("-");
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos());
        Ok(Self {
            id: format!("{now:020}-{}", &digits[..8]),
            uuid,
            hook,
            kind,
            payload,
            attempts: 0,
        })
    }

    fn write(&self) -> String {
        json!({
            "uuid": self.uuid, "hook": self.hook, "kind": self.kind.name(), "attempts": self.attempts, "payload": self.payload,
        })
        .to_string()
    }

    fn read(id: &str, content: &[u8]) -> Option<Self> {
        let record: Value = serde_json::from_slice(content).ok()?;
        Some(Self {
            id: id.to_owned(),
            uuid: record["uuid"].as_str()?.to_owned(),
            hook: record["hook"].as_u64()?,
            kind: Kind::parse(record["kind"].as_str()?)?,
            payload: record["payload"].as_str()?.to_owned(),
            attempts: u32::try_from(record["attempts"].as_u64()?).ok()?,
        })
    }
}

fn directory(repository: &Path) -> PathBuf {
    repository.join("fairway").join("outbox")
}

fn file(repository: &Path, id: &str) -> PathBuf {
    directory(repository).join(format!("{id}.json"))
}

/// The ids of those that wait, oldest first.
pub(crate) fn waiting(repository: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory(repository))
        .into_iter()
        .flatten()
        .flatten();
    let mut ids: Vec<String> = entries
        .filter_map(|entry| {
            entry
                .file_name()
                .to_str()?
                .strip_suffix(".json")
                .map(str::to_owned)
        })
        .collect();
    ids.sort();
    ids
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|broken| Err(Error::other(broken)))
}

/// Puts one on disk, new or changed.
pub(crate) async fn put(repository: &Repository, task: Task) -> Result<(), Error> {
    let path = repository.path().to_owned();
    blocking(move || put_blocking(&path, &task)).await
}

pub(crate) fn put_blocking(repository: &Path, task: &Task) -> Result<(), Error> {
    fs::create_dir_all(directory(repository))?;
    let waiting = waiting(repository);
    // Not when one that waits is only changed.
    if !waiting.contains(&task.id) {
        for old in waiting
            .iter()
            .take((waiting.len() + 1).saturating_sub(MAX_WAITING))
        {
            warn!(repository = %repository.display(), delivery = old, "too many webhooks wait; the oldest is given up");
            remove_blocking(repository, old)?;
        }
    }
    write_whole(&file(repository, &task.id), task.write().as_bytes())
}

/// One that waits; nothing if it is gone, or is no delivery.
pub(crate) async fn get(repository: PathBuf, id: String) -> Result<Option<Task>, Error> {
    blocking(move || {
        let opened = match fs::File::open(file(&repository, &id)) {
            Ok(opened) => opened,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut content = Vec::new();
        opened.take(MAX_FILE).read_to_end(&mut content)?;
        Ok(Task::read(&id, &content))
    })
    .await
}

/// Takes one away.
pub(crate) async fn remove(repository: PathBuf, id: String) -> Result<(), Error> {
    blocking(move || remove_blocking(&repository, &id)).await
}

fn remove_blocking(repository: &Path, id: &str) -> Result<(), Error> {
    match fs::remove_file(file(repository, id)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn deliveries_wait_on_disk_in_order_and_are_bounded() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path().to_owned();
        let mut first = Task::new(1, Kind::Push, "{}".to_owned()).unwrap();
        put_blocking(&at, &first).unwrap();
        first.attempts = 3;
        put_blocking(&at, &first).unwrap();
        assert_eq!(
            get(at.clone(), first.id.clone()).await.unwrap(),
            Some(first.clone())
        );
        for _ in 0..MAX_WAITING {
            put_blocking(&at, &Task::new(2, Kind::Create, String::new()).unwrap()).unwrap();
        }
        let all = waiting(&at);
        assert_eq!(
            (all.len(), all.is_sorted(), all.contains(&first.id)),
            (MAX_WAITING, true, false)
        );
        let mut oldest = get(at.clone(), all[0].clone()).await.unwrap().unwrap();
        oldest.attempts = 1;
        put_blocking(&at, &oldest).unwrap();
        let newest = get(at.clone(), all[MAX_WAITING - 1].clone())
            .await
            .unwrap()
            .unwrap();
        put_blocking(&at, &newest).unwrap();
        assert_eq!(waiting(&at), all, "a change is not one more");
        remove(at.clone(), all[0].clone()).await.unwrap();
        remove(at.clone(), all[0].clone()).await.unwrap();
        assert_eq!(get(at.clone(), all[0].clone()).await.unwrap(), None);
        fs::write(file(&at, "broken"), "{").unwrap();
        assert_eq!(get(at, "broken".to_owned()).await.unwrap(), None);
        assert_ne!(first.uuid, Task::new(1, Kind::Push, String::new()).unwrap().uuid);
        assert_eq!((first.uuid.len(), &first.uuid[14..15]), (36, "4"));
    }
}
