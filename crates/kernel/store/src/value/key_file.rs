//! The file that holds the key-encryption keys: the only part of sealing that touches the machine.
//!
//! ```text
//! fairway-keys 1
//! key 5f0c93aa 64 hexadecimal digits
//! current 5f0c93aa
//! ```
//!
//! Ids are random, so that a value sealed under a lost key file is known by its id and not taken for a forgery.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ring::rand::{SecureRandom, SystemRandom};

use super::{KEY_BYTES, KeyRing, ValueError};

const HEADER: &str = "fairway-keys 1";

/// No sensible key file is larger; do not read whatever else was put there.
const MAX_BYTES: u64 = 64 * 1024;

/// Why a key file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// Reading or writing failed.
    #[error("could not {attempted} the key file {}", path.display())]
    Io {
        /// What was attempted.
        attempted: &'static str,
        /// Which file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// Others could read the keys.
    #[error("the key file {} can be read by others (mode {mode:04o}); run: chmod 600 {}", path.display(), path.display())]
    Exposed {
        /// Which file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It is not what it should be.
    #[error("the key file {} is not usable: {reason}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it. Never its content.
        reason: &'static str,
    },
    /// The keys could not be taken into use.
    #[error("the keys of {} could not be used", path.display())]
    Unusable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: ValueError,
    },
}

impl KeyRing {
    /// The ring of a key file; if there is no such file, it is made, with one new key.
    pub fn load_or_create(path: &Path) -> Result<Self, KeyFileError> {
        let random = Arc::new(SystemRandom::new());
        let text = match read(path) {
            Ok(text) => text,
            Err(KeyFileError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                create(path, random.as_ref())?
            }
            Err(error) => return Err(error),
        };
        let (keys, current) = parse(&text).map_err(|reason| KeyFileError::Malformed {
            path: path.to_owned(),
            reason,
        })?;
        KeyRing::new(keys, current, random).map_err(|source| KeyFileError::Unusable {
            path: path.to_owned(),
            source,
        })
    }
}

fn io_error(attempted: &'static str, path: &Path, source: io::Error) -> KeyFileError {
    KeyFileError::Io {
        attempted,
        path: path.to_owned(),
        source,
    }
}

fn read(path: &Path) -> Result<String, KeyFileError> {
    let failed = |source| io_error("read", path, source);
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyFileError::Exposed {
            path: path.to_owned(),
            mode,
        });
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

/// Writes a new file beside its place and moves it there when it is durable: there is never half a key.
fn create(path: &Path, random: &dyn SecureRandom) -> Result<String, KeyFileError> {
    let no_randomness = |_| KeyFileError::Unusable {
        path: path.to_owned(),
        source: ValueError::NoRandomness,
    };
    let (mut id, mut key) = ([0; 4], [0; KEY_BYTES]);
    random.fill(&mut id).map_err(no_randomness)?;
    random.fill(&mut key).map_err(no_randomness)?;
    // 0 is the id of "no key".
    id[3] |= 1;
    let id = hexadecimal(&id);
    let text = format!("{HEADER}\nkey {id} {}\ncurrent {id}\n", hexadecimal(&key));

    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let failed = |source| io_error("create", path, source);
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)
        .map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    fs::rename(&beside, path).map_err(failed)?;
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    File::open(directory)
        .and_then(|opened| opened.sync_all())
        .map_err(failed)?;
    Ok(text)
}

type Keys = (Vec<(u32, [u8; KEY_BYTES])>, u32);

fn parse(text: &str) -> Result<Keys, &'static str> {
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    match lines.next() {
        Some(HEADER) => {}
        Some(other) if other.starts_with("fairway-keys ") => {
            return Err("its format is newer than this version of Fairway reads");
        }
        _ => return Err("its first line is not `fairway-keys 1`"),
    }
    let (mut keys, mut current) = (Vec::new(), None);
    for line in lines {
        let mut words = line.split_ascii_whitespace();
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("key"), Some(id), Some(key), None) => {
                let key = bytes::<KEY_BYTES>(key).ok_or("a key is not 64 hexadecimal digits")?;
                let id = key_id(id)?;
                if keys.iter().any(|(other, _)| *other == id) {
                    return Err("a key id occurs twice");
                }
                keys.push((id, key));
            }
            (Some("current"), Some(id), None, None) if current.is_none() => current = Some(key_id(id)?),
            (Some("current"), Some(_), None, None) => return Err("there are two `current` lines"),
            _ => return Err("it has a line that is neither `key ID KEY` nor `current ID`"),
        }
    }
    let current = current.ok_or("it has no `current` line")?;
    if !keys.iter().any(|(id, _)| *id == current) {
        return Err("the current key is not among its keys");
    }
    Ok((keys, current))
}

fn key_id(word: &str) -> Result<u32, &'static str> {
    match bytes::<4>(word).map(u32::from_be_bytes) {
        Some(0) | None => Err("a key id is not 8 hexadecimal digits, or is zero"),
        Some(id) => Ok(id),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| DIGITS[usize::from(digit)] as char)
        .collect()
}

fn bytes<const N: usize>(word: &str) -> Option<[u8; N]> {
    let digits: Vec<u8> = word
        .chars()
        .map(|c| c.to_digit(16).map(|digit| digit as u8))
        .collect::<Option<_>>()?;
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    Some(bytes)
}
