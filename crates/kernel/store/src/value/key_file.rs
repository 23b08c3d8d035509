//! The file that holds the key-encryption keys: the only part of sealing that touches the machine.
//!
//! ```text
//! fairway-keys 1
//! key 5f0c93aa 64 hexadecimal digits 1763251200
//! current 5f0c93aa
//! ```
//!
//! The number is when the key was made, in Unix seconds. A rotation adds a key and makes it the current one; the file is
//! always replaced as a whole, and is durable before anybody seals with the new key. Ids are random, so that a value sealed under a lost key file is known by its id and not taken for a forgery.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

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
        let content = load(path, Some(random.as_ref()))?;
        KeyRing::new(content.secrets(), content.current, random).map_err(|source| unusable(path, source))
    }

    /// Takes over what the file says now.
    pub fn reload(&self, path: &Path) -> Result<(), KeyFileError> {
        let content = load(path, None)?;
        self.replace(content.secrets(), content.current)
            .map_err(|source| unusable(path, source))
    }
}

/// A key, as far as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEntry {
    /// Its id.
    pub id: u32,
    /// When it was made, in Unix seconds, if that is known.
    pub created: Option<u64>,
    /// Whether it is the one that seals.
    pub current: bool,
}

/// The keys of a file.
pub fn list(path: &Path) -> Result<Vec<KeyEntry>, KeyFileError> {
    let content = load(path, None)?;
    let entry = |key: &Key| KeyEntry {
        id: key.id,
        created: key.created,
        current: key.id == content.current,
    };
    Ok(content.keys.iter().map(entry).collect())
}

/// Adds a new key and makes it the one that seals. Returns its id; it is durable.
pub fn rotate(path: &Path) -> Result<u32, KeyFileError> {
    let _alone = lock(path)?;
    let mut content = load(path, None)?;
    let key = loop {
        let key = Key::generate(&SystemRandom::new()).map_err(|source| unusable(path, source))?;
        if content.keys.iter().all(|other| other.id != key.id) {
            break key;
        }
    };
    content.current = key.id;
    content.keys.push(key);
    replace(path, &content.text())?;
    Ok(content.current)
}

/// Drops keys. Values under them cannot be opened any more, so the caller has made sure that there are none. The key that
/// seals stays in any case.
pub fn remove(path: &Path, ids: &[u32]) -> Result<(), KeyFileError> {
    let _alone = lock(path)?;
    let mut content = load(path, None)?;
    let current = content.current;
    content
        .keys
        .retain(|key| key.id == current || !ids.contains(&key.id));
    replace(path, &content.text())
}

/// Held while the file is changed: two rotations at once must not lose a key.
fn lock(path: &Path) -> Result<File, KeyFileError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".lock");
    let file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        .mode(0o600)
        .open(PathBuf::from(beside))
        .map_err(|source| io_error("lock", path, source))?;
    file.lock().map_err(|source| io_error("lock", path, source))?;
    Ok(file)
}

fn unusable(path: &Path, source: ValueError) -> KeyFileError {
    KeyFileError::Unusable {
        path: path.to_owned(),
        source,
    }
}

/// Reads a file; with a random source, makes it if it is not there.
fn load(path: &Path, random: Option<&dyn SecureRandom>) -> Result<Content, KeyFileError> {
    let text = match (read(path), random) {
        (Err(KeyFileError::Io { source, .. }), Some(random)) if source.kind() == io::ErrorKind::NotFound => {
            let key = Key::generate(random).map_err(|source| unusable(path, source))?;
            let content = Content {
                current: key.id,
                keys: vec![key],
            };
            let text = content.text();
            replace(path, &text)?;
            text
        }
        (read, _) => read?,
    };
    parse(&text).map_err(|reason| KeyFileError::Malformed {
        path: path.to_owned(),
        reason,
    })
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
fn replace(path: &Path, text: &str) -> Result<(), KeyFileError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let failed = |source| io_error("write", path, source);
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
        .map_err(failed)
}

struct Key {
    id: u32,
    secret: [u8; KEY_BYTES],
    created: Option<u64>,
}

impl Key {
    fn generate(random: &dyn SecureRandom) -> Result<Self, ValueError> {
        let (mut id, mut secret) = ([0; 4], [0; KEY_BYTES]);
        random.fill(&mut id).map_err(|_| ValueError::NoRandomness)?;
        random.fill(&mut secret).map_err(|_| ValueError::NoRandomness)?;
        // 0 is the id of "no key".
        id[3] |= 1;
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Ok(Self {
            id: u32::from_be_bytes(id),
            secret,
            created: since_1970.ok().map(|time| time.as_secs()),
        })
    }
}

struct Content {
    keys: Vec<Key>,
    current: u32,
}

impl Content {
    fn secrets(&self) -> impl Iterator<Item = (u32, [u8; KEY_BYTES])> {
        self.keys.iter().map(|key| (key.id, key.secret))
    }

    fn text(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for key in &self.keys {
            text.push_str(&format!("key {:08x} {}", key.id, hexadecimal(&key.secret)));
            if let Some(created) = key.created {
                text.push_str(&format!(" {created}"));
            }
            text.push('\n');
        }
        text.push_str(&format!("current {:08x}\n", self.current));
        text
    }
}

fn parse(text: &str) -> Result<Content, &'static str> {
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
    let (mut keys, mut current) = (Vec::<Key>::new(), None);
    for line in lines {
        let mut words = line.split_ascii_whitespace();
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("key"), Some(id), Some(key), created) if words.next().is_none() => {
                let secret = bytes::<KEY_BYTES>(key).ok_or("a key is not 64 hexadecimal digits")?;
                let id = key_id(id)?;
                if keys.iter().any(|other| other.id == id) {
                    return Err("a key id occurs twice");
                }
                let created = created.map(str::parse).transpose();
                keys.push(Key {
                    id,
                    secret,
                    created: created.map_err(|_| "a key's time is not a number of seconds")?,
                });
            }
            (Some("current"), Some(id), None, None) if current.is_none() => current = Some(key_id(id)?),
            (Some("current"), Some(_), None, None) => return Err("there are two `current` lines"),
            _ => return Err("it has a line that is neither `key ID KEY TIME` nor `current ID`"),
        }
    }
    let current = current.ok_or("it has no `current` line")?;
    if !keys.iter().any(|key| key.id == current) {
        return Err("the current key is not among its keys");
    }
    Ok(Content { keys, current })
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
