//! Generated files and their hashes: `xtask/generated.lock` lists every generated file, one `sha256  path` a line, as
//! its generator wrote it. A machine without the generator's inputs can thereby still tell that a file was edited by
//! hand. `cargo xtask tidy --lock` records the hashes anew, as the last step of `make codegen`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

pub(super) const LOCK: &str = "xtask/generated.lock";

/// Hashes by path, relative to the repository's root.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lock {
    pub(super) hashes: BTreeMap<String, String>,
}

impl Lock {
    /// The lock of a repository; empty when there is none yet.
    pub(super) fn load(root: &Path) -> Result<Self> {
        let path = root.join(LOCK);
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {LOCK}"))?;
        Self::parse(&text)
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut hashes = BTreeMap::new();
        for line in text.lines() {
            let (hash, path) = line
                .split_once("  ")
                .with_context(|| format!("{LOCK}: not `sha256  path`: {line}"))?;
            hashes.insert(path.to_owned(), hash.to_owned());
        }
        Ok(Self { hashes })
    }
}

/// Records the hashes of the files in the lock and of those that are to enter it; returns how many there are.
pub(super) fn record(root: &Path, new: &[String]) -> Result<usize> {
    let mut paths: Vec<String> = Lock::load(root)?
        .hashes
        .into_keys()
        .chain(new.iter().cloned())
        .collect();
    paths.sort();
    paths.dedup();
    let mut text = String::new();
    for path in &paths {
        let content = std::fs::read(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        text += &format!("{}  {path}\n", hash(&content));
    }
    std::fs::write(root.join(LOCK), text).with_context(|| format!("cannot write {LOCK}"))?;
    Ok(paths.len())
}

pub(super) fn hash(content: &[u8]) -> String {
    Sha256::digest(content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
