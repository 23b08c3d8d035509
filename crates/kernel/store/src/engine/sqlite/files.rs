//! The directory of a store: private, and of one process at a time.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::api::StoreError;

const LOCK: &str = "lock";
const PROBE: &str = "probe";

fn io(attempted: &'static str, path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Io {
        attempted,
        cause: format!("{}: {error}", path.display()),
    }
}

pub(super) fn create_directory(directory: &Path) -> Result<(), StoreError> {
    if directory.is_dir() {
        return Ok(());
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| io("create its directory", directory, &error))
}

/// Whether there is a database: a file without content is none yet.
pub(super) fn has_content(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.len() > 0)
}

/// SQLite gives its side files the mode of the database, so it is created here with the right one.
pub(super) fn create(path: &Path) -> Result<(), StoreError> {
    OpenOptions::new()
        .create_new(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .map(|_| ())
        .map_err(|error| io("create the database", path, &error))
}

/// Takes a database away from everybody but its owner.
pub(super) fn protect(path: &Path) -> Result<(), StoreError> {
    let metadata = fs::metadata(path).map_err(|error| io("look at the database", path, &error))?;
    if metadata.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
        .map_err(|error| io("protect the database", path, &error))
}

/// Removes a file, if it is there.
pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(io("remove what an interrupted start left", path, &error))
        }
        _ => Ok(()),
    }
}

/// Makes a file durable, and gives it its name.
pub(super) fn put_in_place(fresh: &Path, path: &Path) -> Result<(), StoreError> {
    File::open(fresh)
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(fresh, path))
        .map_err(|error| io("put the new database in place", path, &error))
}

pub(super) fn sync_directory(directory: &Path) -> Result<(), StoreError> {
    File::open(directory)
        .and_then(|opened| opened.sync_all())
        .map_err(|error| io("make its directory durable", directory, &error))
}

pub(super) fn lock(directory: &Path) -> Result<File, StoreError> {
    let path = directory.join(LOCK);
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&path)
        .map_err(|error| io("create its lock file", &path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Unusable(format!(
            "{} is in use by another process, which holds {}",
            directory.display(),
            path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(io("lock its directory", &path, &error)),
    }
}

/// Appends zeros to a file that exists, makes them durable, and returns its new size. They are really written: a hole, or
/// space that is only reserved, would cost when it is filled what this saves.
pub(super) fn extend(path: &Path, bytes: u64) -> std::io::Result<u64> {
    let mut file = OpenOptions::new().append(true).open(path)?;
    let zeros = [0; 64 * 1024];
    for _ in 0..bytes / zeros.len() as u64 {
        file.write_all(&zeros)?;
    }
    file.sync_data()?;
    Ok(file.metadata()?.len())
}

/// Whether a failed write failed for lack of space. SQLite reports only a full device as such, not an exhausted quota or
/// a limit on the size of files, and not where the file behind its shared memory cannot grow; so this tries for itself
/// to write a little more than the largest of the given files holds.
pub(super) fn is_full(directory: &Path, files: &[&str]) -> bool {
    let size = |name: &&str| fs::metadata(directory.join(name)).map_or(0, |metadata| metadata.len());
    let largest = files.iter().map(size).max().unwrap_or(0);
    let path = directory.join(PROBE);
    let probe = || {
        let mut file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)?;
        file.seek(SeekFrom::Start(largest))?;
        file.write_all(&[0xa5; 64 * 1024])?;
        file.sync_data()
    };
    let probed = probe().map_err(|error| error.kind());
    let _ = fs::remove_file(&path);
    matches!(
        probed,
        Err(ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
    )
}
