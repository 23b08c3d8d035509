//! Files whose content QEMU encrypts, for whoever keeps more than a disk: of no use to whoever copies them without the key of this host.
//!
//! The key is a file of its own, for its owner alone, made when it is first needed. QEMU encrypts with a key that it makes for each file and wraps
//! with that one (LUKS), so that the host's key never touches content.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use ring::rand::{SecureRandom as _, SystemRandom};

use crate::{ImageError, failed};

/// Bytes of a key, and signs of its text.
const KEY: usize = 32;
const TEXT: usize = KEY * 2;

/// The key in a file, as text; made if there is none.
pub fn key(path: &Path) -> Result<String, ImageError> {
    match read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => make_key(path)?,
        other => return other.map_err(failed("reading", path)),
    }
    read(path).map_err(failed("reading", path))
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(TEXT as u64).read_to_string(&mut text)?;
    match text.len() == TEXT && text.bytes().all(|it| it.is_ascii_hexdigit()) {
        true => Ok(text),
        false => Err(std::io::Error::new(ErrorKind::InvalidData, "it is not a key")),
    }
}

/// Whoever is first makes it: a draft appears under its name in one step, and only if nothing is there.
fn make_key(path: &Path) -> Result<(), ImageError> {
    let mut bytes = [0; KEY];
    let chance = SystemRandom::new().fill(&mut bytes);
    chance.map_err(|_| failed("making", path)(std::io::Error::other("the system has no chance to give")))?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
    let named = written.and_then(|()| match std::fs::hard_link(&draft, path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    });
    let _ = std::fs::remove_file(&draft);
    named.map_err(failed("making", path))
}

/// Makes an empty file, for its owner alone. What was there is gone.
pub fn make(path: &Path) -> Result<(), ImageError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed("removing", path)(error)),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(path).map(drop).map_err(failed("making", path))
}

/// Copies a file that nobody writes to, for its owner alone; blocks are shared where the file system can.
pub fn copy(from: &Path, to: &Path) -> Result<(), ImageError> {
    crate::copy::file(from, to)?;
    std::fs::set_permissions(to, Permissions::from_mode(0o600)).map_err(failed("closing", to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.key");
        let first = key(&path).unwrap();
        assert_eq!(first.len(), TEXT);
        assert_eq!(key(&path).unwrap(), first);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        // A damaged one is not made anew: what it opens would be lost without a word.
        std::fs::write(&path, "short").unwrap();
        assert!(key(&path).is_err());
    }

    #[test]
    fn files_are_for_their_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        std::fs::write(&one, "old").unwrap();
        make(&one).unwrap();
        assert_eq!(std::fs::read(&one).unwrap(), b"");
        std::fs::write(&one, "new").unwrap();
        copy(&one, &two).unwrap();
        assert_eq!(std::fs::read(&two).unwrap(), b"new");
        for path in [one, two] {
            let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{}", path.display());
        }
    }
}
