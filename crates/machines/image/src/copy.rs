//! Copies of large files with holes: shared blocks where the file system can, otherwise only what is there.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::SeekFrom;

use crate::{ImageError, failed, unpack};

const BUFFER: usize = 1 << 20;
/// So often the free room is looked at.
const LOOK_EVERY: u64 = 64 << 20;

/// Copies a file, brought to disk.
pub(crate) fn file(from: &Path, to: &Path) -> Result<(), ImageError> {
    let source = File::open(from).map_err(failed("reading", from))?;
    let target = File::create(to).map_err(failed("making", to))?;
    if rustix::fs::ioctl_ficlone(&target, &source).is_err() {
        by_pieces(&source, from, &target, to)?;
    }
    target.sync_all().map_err(failed("writing", to))
}

fn by_pieces(source: &File, from: &Path, target: &File, to: &Path) -> Result<(), ImageError> {
    let length = source.metadata().map_err(failed("reading", from))?.len();
    target.set_len(length).map_err(failed("writing", to))?;
    let mut buffer = vec![0; BUFFER];
    let mut written = 0;
    let mut next_look = 0;
    let mut at = 0;
    while let Some((start, end)) = piece(source, at, length).map_err(failed("reading", from))? {
        at = start;
        while at < end {
            let count = usize::try_from((end - at).min(BUFFER as u64)).unwrap_or(BUFFER);
            let piece = &mut buffer[..count];
            source.read_exact_at(piece, at).map_err(failed("reading", from))?;
            target.write_all_at(piece, at).map_err(failed("writing", to))?;
            at += count as u64;
            written += count as u64;
            if written >= next_look {
                unpack::room(to, &from.display().to_string())?;
                next_look = written + LOOK_EVERY;
            }
        }
    }
    Ok(())
}

/// The next part of a file that is no hole.
fn piece(file: &File, at: u64, length: u64) -> io::Result<Option<(u64, u64)>> {
    if at >= length {
        return Ok(None);
    }
    let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(start) => start,
        Err(rustix::io::Errno::NXIO) => return Ok(None),
        // A file system that knows no holes.
        Err(_) => return Ok(Some((at, length))),
    };
    let end = rustix::fs::seek(file, SeekFrom::Hole(start))?;
    Ok(Some((start, end.min(length))))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn holes_stay_holes() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        let source = File::create(&from).unwrap();
        source.set_len(64 << 20).unwrap();
        source.write_all_at(b"begin", 0).unwrap();
        source.write_all_at(&[7; 3 << 20], 10 << 20).unwrap();
        source.write_all_at(b"end", (64 << 20) - 3).unwrap();
        file(&from, &to).unwrap();
        assert_eq!(std::fs::read(&from).unwrap(), std::fs::read(&to).unwrap());
        let used = std::fs::metadata(&to).unwrap().blocks() * 512;
        assert!(used < 8 << 20, "{used} bytes are used");
        // A file that is nothing but a hole, and an empty one.
        for length in [1 << 20, 0] {
            File::create(&from).unwrap().set_len(length).unwrap();
            file(&from, &to).unwrap();
            assert_eq!(std::fs::metadata(&to).unwrap().len(), length);
        }
    }
}
