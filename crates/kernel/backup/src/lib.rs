//! The file that a backup is: one store revision, as a stream of chunks that proves itself.
//!
//! ```text
//! "FWBACKUP" format:u32            numbers are big-endian
//! chunk*                           tag:u8 length:u32 payload digest:[u8; 32]
//!   1 header    JSON: revision, time, versions                        first, once
//!   2 entries   entry*: lengths, revisions, key, value                any number, keys strictly rising
//!   3 keys      parameters:u32+JSON, ciphertext                       at most once, after the entries
//!   4 end       JSON: what must have been read                        last, once
//!   5 failed    text: why the writer gave up                          instead of the rest
//!   6 file      the path of a file beside the store                   any number, after the entries, paths strictly rising
//!   7 content   the next bytes of the file                            any number after its file
//! ```
//!
//! Each digest is SHA-256 over the digest before it (for the first: of the eight bytes and the format number), the chunk's
//! tag, its length as eight bytes, and its payload. So every chunk is checked when it is read, none can be left out or moved, and the last
//! digest is the checksum of the whole. A file without an `end` is cut off.
//!
//! Digests find accidents. Whoever wants to change a backup can compute new ones, so the keys are bound to the digest
//! before them: they open only beside the content that they were sealed with.
//!
//! This crate reads and writes whatever implements `Read` and `Write`; it opens nothing, and takes salt and nonce as
//! arguments.

mod entry;
mod error;
mod file;
mod keys;
mod manifest;
mod reader;
mod writer;

#[cfg(test)]
mod tests;

pub use entry::{Entry, kind_of};
pub use error::BackupError;
pub use file::is_file_path;
pub use keys::{Chance, KeyFiles, SealedKeys, is_key_file};
pub use manifest::{Header, Totals};
pub use reader::{Part, Reader};
pub use writer::Writer;

/// The format that this code writes, and the newest that it reads. The first had no files.
pub const FORMAT: u32 = 2;
const WITHOUT_FILES: u32 = 1;

/// How a backup begins.
pub const MAGIC: &[u8; 8] = b"FWBACKUP";

/// Bytes of a digest.
pub const DIGEST_BYTES: usize = 32;

/// Entries are collected into a chunk until they have this many bytes.
const CHUNK_BYTES: usize = 1024 * 1024;

/// The largest payload: a chunk that is nearly full and one more entry of the largest size.
const MAX_PAYLOAD: usize = 8 * 1024 * 1024;

/// What a chunk holds.
mod tag {
    pub(super) const HEADER: u8 = 1;
    pub(super) const ENTRIES: u8 = 2;
    pub(super) const KEYS: u8 = 3;
    pub(super) const END: u8 = 4;
    pub(super) const FAILED: u8 = 5;
    pub(super) const FILE: u8 = 6;
    pub(super) const CONTENT: u8 = 7;
}

/// The digest of everything up to a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chain([u8; DIGEST_BYTES]);

impl Chain {
    fn start(format: u32) -> Self {
        Self::of(&[MAGIC, &format.to_be_bytes()])
    }

    fn next(self, tag: u8, payload: &[u8]) -> Self {
        Self::of(&[&self.0, &[tag], &(payload.len() as u64).to_be_bytes(), payload])
    }

    fn of(parts: &[&[u8]]) -> Self {
        let mut hash = ring::digest::Context::new(&ring::digest::SHA256);
        for part in parts {
            hash.update(part);
        }
        let mut digest = [0; DIGEST_BYTES];
        digest.copy_from_slice(hash.finish().as_ref());
        Self(digest)
    }
}
