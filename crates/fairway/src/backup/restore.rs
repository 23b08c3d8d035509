//! From a backup to a data directory: checked first, written aside, and moved into place when it is whole.
//!
//! The directory must be empty. A marker lies in it from before the first byte is written until after the last one is
//! durable and in its place; `fairway up` refuses a directory with the marker, so whatever a crash leaves is not taken for
//! an installation. The next restore clears it away.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use bytes::Bytes;
use fairway_kernel_backup::{KeyFiles, Part, is_key_file};
use fairway_kernel_store::value::KeyRing;
use fairway_kernel_store::{Import, KeyValue, Revision};

use super::repositories::{DIRECTORY, Restoring};
use super::{is_sealed, open};
use crate::data_dir::DataDir;

/// How far revisions are raised: more than any store writes between two backups, and 8,000 times less than there are.
pub(crate) const REVISION_STEP: u64 = 1_000_000_000;

/// Tells where a store came from. Outside `/`, where objects are.
const MARK: &[u8] = b"!restored";

const STAGE: &str = "restoring";
/// What a restore moves into place; the store comes last.
const PARTS: [&str; 4] = ["keys", "pki", DIRECTORY, "store"];
/// The user's settings may wait for the state.
const MAY_BE_THERE: &str = "config.yaml";

/// Bytes that are written in one transaction.
const BATCH_BYTES: usize = 1024 * 1024;

/// What happens to encrypted objects.
pub(crate) enum SealedObjects {
    /// They are restored together with these keys, with which each must open.
    Open(KeyFiles),
    /// They are left out.
    Drop,
}

/// What was done.
pub(crate) struct Restored {
    /// Keys that were written.
    pub entries: u64,
    /// Encrypted ones that were left out.
    pub dropped: u64,
    /// The store's revision from now on.
    pub revision: u64,
    /// Git repositories.
    pub repositories: u64,
}

/// A directory that a restore has claimed.
pub(crate) struct Target {
    data: DataDir,
    marker: PathBuf,
    // Held for its lock.
    _lock: File,
}

impl Target {
    /// Claims a directory, if there is nothing in it, or only what an interrupted restore left.
    pub(crate) fn claim(data: &DataDir) -> anyhow::Result<Self> {
        let path = data.path();
        let marker = data.unfinished_restore();
        if !marker.exists() {
            refuse_filled(path)?;
        }
        make_directory(path)?;
        let lock = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&marker)
            .with_context(|| format!("{} could not be written", marker.display()))?;
        if lock.try_lock().is_err() {
            bail!("another restore into {} is under way", path.display());
        }
        for part in PARTS.iter().chain([&STAGE]) {
            match fs::remove_dir_all(path.join(part)) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).with_context(|| {
                        format!(
                            "what an interrupted restore left in {} could not be removed",
                            path.display()
                        )
                    });
                }
                _ => {}
            }
        }
        lock.sync_all()
            .and_then(|()| sync(path))
            .with_context(|| format!("{} could not be written", path.display()))?;
        Ok(Self {
            data: data.clone(),
            marker,
            _lock: lock,
        })
    }

    /// Fills the directory. Only when this has returned can it be used.
    pub(crate) fn fill(self, backup: &Path, sealed: &SealedObjects) -> anyhow::Result<Restored> {
        let stage = self.data.path().join(STAGE);
        make_directory(&stage)?;
        let ring = match sealed {
            SealedObjects::Open(files) => Some(write_keys(&stage, files)?),
            SealedObjects::Drop => None,
        };
        let restored = write_store(&stage, backup, ring.as_ref())?;
        let finish = || -> std::io::Result<()> {
            for part in PARTS {
                let from = stage.join(part);
                if from.exists() {
                    sync(&from)?;
                    fs::rename(&from, self.data.path().join(part))?;
                }
            }
            fs::remove_dir(&stage)?;
            sync(self.data.path())?;
            fs::remove_file(&self.marker)?;
            sync(self.data.path())
        };
        finish().with_context(|| {
            format!(
                "the restored state could not be moved into {}",
                self.data.path().display()
            )
        })?;
        Ok(restored)
    }
}

fn refuse_filled(path: &Path) -> anyhow::Result<()> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        other => other.with_context(|| format!("{} could not be read", path.display()))?,
    };
    for entry in entries {
        let name = entry
            .with_context(|| format!("{} could not be read", path.display()))?
            .file_name();
        if name != MAY_BE_THERE {
            let shown = path.display();
            bail!(
                "{shown} is not empty ({} is there), and a restore never overwrites anything; name an empty directory, or \
                 move this one away first: mv {shown} {shown}.old",
                name.to_string_lossy()
            );
        }
    }
    Ok(())
}

fn make_directory(path: &Path) -> anyhow::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .with_context(|| format!("the directory {} could not be made", path.display()))
}

fn sync(path: &Path) -> std::io::Result<()> {
    File::open(path)?.sync_all()
}

/// Writes the key files, and opens the ring that must fit the encrypted objects.
fn write_keys(stage: &Path, files: &KeyFiles) -> anyhow::Result<KeyRing> {
    for (name, content) in &files.0 {
        let (Some((folder, _)), true) = (name.split_once('/'), is_key_file(name)) else {
            bail!("{name:?} is not the name of a key");
        };
        make_directory(&stage.join(folder))?;
        let path = stage.join(name);
        let write = || -> std::io::Result<()> {
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            file.write_all(content)?;
            file.sync_all()
        };
        write().with_context(|| format!("{} could not be written", path.display()))?;
    }
    let path = stage.join("keys/encryption.keys");
    if !path.exists() {
        bail!("there are no encryption keys among the keys");
    }
    KeyRing::load_or_create(&path).context("the encryption keys cannot be used")
}

fn write_store(stage: &Path, backup: &Path, ring: Option<&KeyRing>) -> anyhow::Result<Restored> {
    let directory = &stage.join("store");
    let mut repositories: Option<Restoring> = None;
    let failed = || format!("{} could not be written", directory.display());
    let mut reader = open(backup)?;
    let header = reader.header().clone();
    let mut import = Import::create(directory).with_context(failed)?;
    let mut restored = Restored {
        entries: 0,
        dropped: 0,
        revision: header.revision.saturating_add(REVISION_STEP),
        repositories: 0,
    };
    let (mut batch, mut bytes) = (Vec::new(), 0);
    loop {
        match reader
            .next_part()
            .with_context(|| format!("{} cannot be used", backup.display()))?
        {
            // The mark of an earlier restore makes way for ours.
            Some(Part::Entry(entry)) if entry.key == MARK => {}
            Some(Part::Entry(entry)) => {
                if is_sealed(&entry.key, &entry.value) {
                    let Some(ring) = ring else {
                        restored.dropped += 1;
                        continue;
                    };
                    ring.open(&entry.key, &entry.value).with_context(|| {
                        format!(
                            "{} does not open with the keys; they are those of another installation",
                            String::from_utf8_lossy(&entry.key)
                        )
                    })?;
                }
                restored.entries += 1;
                bytes += entry.key.len() + entry.value.len();
                batch.push(KeyValue {
                    // The chunk that it is a slice of may go.
                    key: Bytes::copy_from_slice(&entry.key),
                    value: entry.value,
                    create_revision: Revision(entry.create_revision),
                    mod_revision: Revision(entry.mod_revision),
                    version: entry.version,
                    lease: None,
                });
                if bytes >= BATCH_BYTES {
                    import.put(&batch).with_context(failed)?;
                    (batch, bytes) = (Vec::new(), 0);
                }
            }
            Some(Part::File(path)) => {
                let restoring = match &mut repositories {
                    Some(restoring) => restoring,
                    None => repositories.insert(Restoring::new(stage)?),
                };
                restoring.file(&path)?;
            }
            Some(Part::Content(bytes)) => {
                if let Some(restoring) = &mut repositories {
                    restoring.content(&bytes)?;
                }
            }
            Some(Part::Keys(_)) => {}
            Some(Part::End(_)) => break,
            None => bail!("{} has no end", backup.display()),
        }
    }
    if let Some(restoring) = repositories {
        restored.repositories = restoring.finish()?;
    }
    import.put(&batch).with_context(failed)?;
    let mark = serde_json::json!({"revision": header.revision, "created": header.created});
    import
        .finish(Revision(restored.revision), MARK, mark.to_string().as_bytes())
        .with_context(failed)?;
    Ok(restored)
}
