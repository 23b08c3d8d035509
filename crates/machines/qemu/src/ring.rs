//! The last bytes of a stream, in a file that does not grow.
//!
//! ```text
//! magic (8) | total bytes ever written (8, little-endian) | content, written in a circle
//! ```
//!
//! The count is written after the content. If the host dies in between, the last piece is lost and nothing else.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

const MAGIC: [u8; 8] = *b"FWRING1\n";
const HEADER: u64 = 16;

/// A ring in a file.
#[derive(Debug)]
pub(crate) struct Ring {
    file: File,
    capacity: u64,
    total: u64,
}

impl Ring {
    /// Opens a ring, with what it held before if it has the same capacity.
    pub(crate) fn open(path: &Path, capacity: u64) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        let mut header = [0; HEADER as usize];
        let is_ring = file.metadata()?.len() <= HEADER + capacity
            && file.read_exact_at(&mut header, 0).is_ok()
            && header.starts_with(&MAGIC);
        let mut total = 0;
        if let (true, Ok(count)) = (is_ring, header[8..].try_into()) {
            total = u64::from_le_bytes(count);
        }
        // What is counted must be there.
        if file.metadata()?.len() < HEADER + total.min(capacity) {
            total = 0;
        }
        let ring = Self {
            file,
            capacity,
            total,
        };
        if total == 0 {
            ring.file.set_len(0)?;
            ring.write_header()?;
        }
        Ok(ring)
    }

    fn write_header(&self) -> io::Result<()> {
        let mut header = [0; HEADER as usize];
        header[..8].copy_from_slice(&MAGIC);
        header[8..].copy_from_slice(&self.total.to_le_bytes());
        self.file.write_all_at(&header, 0)
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let capacity = usize::try_from(self.capacity).unwrap_or(usize::MAX);
        let skipped = bytes.len().saturating_sub(capacity);
        let mut at = self.total + skipped as u64;
        let mut rest = &bytes[skipped..];
        while !rest.is_empty() {
            let position = at % self.capacity;
            let room = usize::try_from(self.capacity - position).unwrap_or(usize::MAX);
            let (piece, after) = rest.split_at(rest.len().min(room));
            self.file.write_all_at(piece, HEADER + position)?;
            at += piece.len() as u64;
            rest = after;
        }
        self.total += bytes.len() as u64;
        self.write_header()
    }

    /// Everything that is left, the oldest first.
    pub(crate) fn read(&self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.total.min(self.capacity)).unwrap_or(usize::MAX);
        let mut out = vec![0; length];
        let start = if self.total > self.capacity {
            self.total % self.capacity
        } else {
            0
        };
        let first = length.min(usize::try_from(self.capacity - start).unwrap_or(usize::MAX));
        self.file.read_exact_at(&mut out[..first], HEADER + start)?;
        self.file.read_exact_at(&mut out[first..], HEADER)?;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_bytes_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ring");
        let mut ring = Ring::open(&path, 8).unwrap();
        assert_eq!(ring.read().unwrap(), b"");
        ring.write(b"abcde").unwrap();
        assert_eq!(ring.read().unwrap(), b"abcde");
        ring.write(b"fghij").unwrap();
        assert_eq!(ring.read().unwrap(), b"cdefghij");
        drop(ring);
        let mut ring = Ring::open(&path, 8).unwrap();
        assert_eq!(ring.read().unwrap(), b"cdefghij");
        ring.write(b"0123456789").unwrap();
        assert_eq!(ring.read().unwrap(), b"23456789");
        assert!(std::fs::metadata(&path).unwrap().len() <= 24);
        std::fs::write(&path, b"something else").unwrap();
        assert_eq!(Ring::open(&path, 8).unwrap().read().unwrap(), b"");
    }

    proptest! {
        #[test]
        fn whatever_is_written_the_end_of_it_is_read(pieces in proptest::collection::vec(".{0,20}", 0..12)) {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("ring");
            let mut all = Vec::new();
            for piece in &pieces {
                Ring::open(&path, 16).unwrap().write(piece.as_bytes()).unwrap();
                all.extend_from_slice(piece.as_bytes());
            }
            let kept = Ring::open(&path, 16).unwrap().read().unwrap();
            prop_assert_eq!(&kept, &all[all.len().saturating_sub(16)..]);
        }
    }
}
