//! What is kept beside commits, as JSON files in the repository's own directory. A file is written whole, and on disk, before
//! its change is acknowledged.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use fairway_gitops_git::Repository;
use http::StatusCode;
use serde_json::Value;

use super::call::Problem;
use crate::place::write_whole;

/// The largest file of records.
const MAX_RECORDS: u64 = 4 << 20;

fn path(repository: &Repository, name: &str) -> PathBuf {
    repository.path().join("fairway").join(format!("{name}.json"))
}

fn failed(error: &std::io::Error) -> Problem {
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        format!("the repository's records cannot be used: {error}"),
    )
}

/// The list in a file; empty if there is none.
pub(crate) async fn read(repository: &Repository, name: String) -> Result<Vec<Value>, Problem> {
    let path = path(repository, &name);
    let read = tokio::task::spawn_blocking(move || read_list(&path)).await;
    read.unwrap_or_else(|broken| Err(std::io::Error::other(broken)))
        .map_err(|error| failed(&error))
}

/// Changes the list in a file; what `change` returns.
pub(crate) async fn change<T: Send + 'static>(
    repository: &Repository,
    name: String,
    change: impl FnOnce(&mut Vec<Value>) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let path = path(repository, &name);
    let done = tokio::task::spawn_blocking(move || {
        let directory = path.parent().unwrap_or(&path);
        // One change at a time, whoever makes it: the lock goes with the file.
        let lock = || {
            fs::create_dir_all(directory)?;
            let file = fs::File::create(directory.join("lock"))?;
            file.lock().map(|()| file)
        };
        let _one = lock().map_err(|error| failed(&error))?;
        let mut list = read_list(&path).map_err(|error| failed(&error))?;
        let outcome = change(&mut list)?;
        let text = Value::Array(list).to_string();
        if text.len() as u64 > MAX_RECORDS {
            return Err(Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "there are too many records of this kind",
            ));
        }
        write_whole(&path, text.as_bytes()).map_err(|error| failed(&error))?;
        Ok(outcome)
    });
    done.await
        .unwrap_or_else(|broken| Err(failed(&std::io::Error::other(broken))))
}

/// Removes a file of records; nothing happens if there is none.
pub(crate) async fn remove(repository: &Repository, name: String) -> Result<(), Problem> {
    let path = path(repository, &name);
    let removed = tokio::task::spawn_blocking(move || fs::remove_file(path)).await;
    match removed.unwrap_or_else(|broken| Err(std::io::Error::other(broken))) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(&error)),
        _ => Ok(()),
    }
}

fn read_list(path: &PathBuf) -> std::io::Result<Vec<Value>> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(std::io::Error::other),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
