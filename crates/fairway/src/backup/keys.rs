//! The files that a backup holds only under a passphrase: everything in `keys` and `pki`.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail};
use fairway_kernel_backup::{Chance, KeyFiles, is_key_file};
use ring::rand::{SecureRandom, SystemRandom};

/// Keys and certificates are small; whatever is larger was put there by mistake.
const MAX_FILE: u64 = 1024 * 1024;
/// All of them together, so that they fit into one chunk.
const MAX_TOTAL: usize = 4 * 1024 * 1024;
const MIN_PASSPHRASE: usize = 8;

/// Reads them from a data directory.
pub(crate) fn read(data: &Path) -> anyhow::Result<KeyFiles> {
    let mut files = BTreeMap::new();
    let mut total = 0;
    for folder in ["keys", "pki"] {
        let directory = data.join(folder);
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            other => other.with_context(|| format!("{} could not be read", directory.display()))?,
        };
        for entry in entries {
            let entry = entry.with_context(|| format!("{} could not be read", directory.display()))?;
            let path = entry.path();
            let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
            let metadata = entry
                .metadata()
                .with_context(|| format!("{} could not be read", path.display()))?;
            // Others are half-written files, which have their final names soon.
            if !metadata.is_file() || !is_key_file(&name) || name.ends_with(".tmp") || name.ends_with(".new")
            {
                continue;
            }
            if metadata.len() > MAX_FILE {
                bail!(
                    "{} is too large to be a key or certificate; move it elsewhere",
                    path.display()
                );
            }
            let content = fs::read(&path).with_context(|| format!("{} could not be read", path.display()))?;
            total += content.len();
            if total > MAX_TOTAL {
                bail!(
                    "the files in {} are too large to be keys; move what does not belong there",
                    data.display()
                );
            }
            files.insert(name, content);
        }
    }
    if !files.contains_key("keys/encryption.keys") {
        bail!("there are no encryption keys in {}", data.join("keys").display());
    }
    Ok(KeyFiles(files))
}

/// The passphrase in a file, without the end of its line.
pub(crate) fn passphrase(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut content = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().take(MAX_FILE).read_to_end(&mut content)
    } else {
        fs::File::open(path).and_then(|file| file.take(MAX_FILE).read_to_end(&mut content))
    };
    read.with_context(|| format!("the passphrase could not be read from {}", path.display()))?;
    while content.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
        content.pop();
    }
    if content.len() < MIN_PASSPHRASE {
        bail!(
            "the passphrase in {} is too short: it takes at least {MIN_PASSPHRASE} characters",
            path.display()
        );
    }
    Ok(content)
}

/// Randomness for wrapping.
pub(crate) fn chance() -> anyhow::Result<Chance> {
    let random = SystemRandom::new();
    let mut chance = Chance {
        salt: [0; 16],
        nonce: [0; 12],
    };
    random
        .fill(&mut chance.salt)
        .and_then(|()| random.fill(&mut chance.nonce))
        .ok()
        .context("the system has no randomness to give")?;
    Ok(chance)
}
