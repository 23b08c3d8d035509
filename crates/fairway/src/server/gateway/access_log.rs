//! Where lines about requests go: a file that somebody may move away at any time, or the standard output.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fairway_gateway_proxy::AccessLog;

/// How often is looked whether the file is still in its place.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The log at a path; `-` is the standard output.
pub(super) fn to(path: &Path) -> AccessLog {
    match path.as_os_str() == "-" {
        true => AccessLog::new(io::stdout()),
        false => AccessLog::new(Rotated::new(path)),
    }
}

/// A file that is opened anew when it was moved or deleted, as log rotation does. What cannot be opened now may be later.
struct Rotated {
    path: PathBuf,
    file: Option<File>,
    looked: Instant,
}

impl Rotated {
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: None,
            looked: Instant::now(),
        }
    }

    fn file(&mut self) -> io::Result<&mut File> {
        if self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            if !self.is_in_place() {
                self.file = None;
            }
        }
        match &mut self.file {
            Some(file) => Ok(file),
            empty => {
                // Who asked for what is nobody else's business.
                let mut options = OpenOptions::new();
                let opened = options.append(true).create(true).mode(0o600).open(&self.path)?;
                Ok(empty.insert(opened))
            }
        }
    }

    fn is_in_place(&self) -> bool {
        let (Some(file), Ok(there)) = (&self.file, std::fs::metadata(&self.path)) else {
            return false;
        };
        let same = |own: std::fs::Metadata| (own.dev(), own.ino()) == (there.dev(), there.ino());
        file.metadata().is_ok_and(same)
    }
}

impl Write for Rotated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_that_was_moved_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let mut log = Rotated::new(&path);
        log.write_all(b"one\n").unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::rename(&path, folder.path().join("access.log.1")).unwrap();
        log.looked = Instant::now().checked_sub(LOOK_EVERY).unwrap();
        log.write_all(b"two\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two\n");
    }
}
