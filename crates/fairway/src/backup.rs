//! Backups: a picture of the store at one revision and of the Git repositories, in one file, and a new data directory from it.
//!
//! The server gives the picture out through its control socket while it goes on writing; without a server the store is
//! opened for the purpose. Either way the same stream arrives here, is checked, gets the keys added, and becomes a file.

pub(crate) mod create;
pub(crate) mod keys;
pub(crate) mod repositories;
pub(crate) mod restore;
pub(crate) mod snapshot;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, bail};
use fairway_kernel_backup::{Header, Part, Reader, SealedKeys, Totals};
use fairway_kernel_store::KeyRing;

use crate::data_dir::DataDir;

/// What a whole backup holds.
pub(crate) struct Checked {
    /// What it says of itself.
    pub header: Header,
    /// What it holds.
    pub totals: Totals,
    /// Keys, still wrapped.
    pub keys: Option<SealedKeys>,
    /// Git repositories.
    pub repositories: u64,
    /// Its size.
    pub bytes: u64,
}

/// Opens a backup.
pub(crate) fn open(path: &Path) -> anyhow::Result<Reader<BufReader<File>>> {
    let file = File::open(path).with_context(|| format!("{} could not be opened", path.display()))?;
    Reader::new(BufReader::with_capacity(256 * 1024, file))
        .with_context(|| format!("{} cannot be used", path.display()))
}

/// Reads a backup from beginning to end.
pub(crate) fn check(path: &Path) -> anyhow::Result<Checked> {
    let mut reader = open(path)?;
    let (mut keys, mut repositories) = (None, 0);
    loop {
        let part = reader
            .next_part()
            .with_context(|| format!("{} cannot be used", path.display()))?;
        match part {
            Some(Part::File(path)) => repositories += u64::from(path.ends_with(".git/HEAD")),
            Some(Part::Entry(_) | Part::Content(_)) => {}
            Some(Part::Keys(sealed)) => keys = Some(sealed),
            Some(Part::End(totals)) => {
                return Ok(Checked {
                    header: reader.header().clone(),
                    totals,
                    keys,
                    repositories,
                    bytes: reader.position(),
                });
            }
            None => bail!("{} has no end", path.display()),
        }
    }
}

/// A data directory in which a restore was interrupted must not be taken for an installation.
pub(crate) fn refuse_unfinished(data: &DataDir) -> anyhow::Result<()> {
    if data.unfinished_restore().exists() {
        bail!(
            "a restore into {} was interrupted, and what is there is not whole; run the same `fairway backup restore` again, \
             or remove the directory",
            data.path().display()
        );
    }
    Ok(())
}

/// Whether an object's value is encrypted. Keys outside `/` are reservations, which have no such tag.
fn is_sealed(key: &[u8], value: &[u8]) -> bool {
    key.starts_with(b"/") && matches!(KeyRing::key_of(value), Ok(Some(_)))
}
