//! Writing a backup: header, entries in order, keys, end.

use std::io::Write;

use crate::entry::{Entry, kind_of};
use crate::error::BackupError;
use crate::file::is_file_path;
use crate::keys::{Chance, KeyFiles};
use crate::manifest::{Header, Totals};
use crate::{CHUNK_BYTES, Chain, FORMAT, MAGIC, MAX_PAYLOAD, tag};

/// A backup that is being written. Memory: one chunk.
pub struct Writer<W> {
    out: W,
    chain: Chain,
    entries: Vec<u8>,
    last: Option<bytes::Bytes>,
    last_file: Option<String>,
    totals: Totals,
}

impl<W: Write> Writer<W> {
    /// Begins one.
    pub fn new(out: W, header: &Header) -> Result<Self, BackupError> {
        let mut writer = Self {
            out,
            chain: Chain::start(FORMAT),
            entries: Vec::new(),
            last: None,
            last_file: None,
            totals: Totals::default(),
        };
        writer.put(MAGIC)?;
        writer.put(&FORMAT.to_be_bytes())?;
        let header = serde_json::to_vec(header).unwrap_or_default();
        writer.chunk(tag::HEADER, &header)?;
        Ok(writer)
    }

    /// Where it is written to.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// The next key. `sealed`: its value is encrypted.
    pub fn entry(&mut self, entry: &Entry, sealed: bool) -> Result<(), BackupError> {
        if self.last_file.is_some() || self.last.as_ref().is_some_and(|last| *last >= entry.key) {
            return Err(BackupError::OutOfOrder);
        }
        entry.encode(&mut self.entries).map_err(BackupError::TooLarge)?;
        self.last = Some(entry.key.clone());
        self.totals.entries += 1;
        self.totals.sealed += u64::from(sealed);
        if let Some(kind) = kind_of(&entry.key) {
            *self.totals.kinds.entry(kind).or_default() += 1;
        }
        if self.entries.len() >= CHUNK_BYTES {
            self.flush_entries()?;
        }
        Ok(())
    }

    /// Counts keys that were left out because of their leases.
    pub fn left_out(&mut self, leased: u64) {
        self.totals.leased += leased;
    }

    /// Begins a file, after all entries. Files come in the order of their paths.
    pub fn file(&mut self, path: &str) -> Result<(), BackupError> {
        let follows = self.last_file.as_deref().is_none_or(|last| last < path);
        if !follows || !is_file_path(path) {
            return Err(BackupError::Path(path.to_owned()));
        }
        self.flush_entries()?;
        self.chunk(tag::FILE, path.as_bytes())?;
        self.last_file = Some(path.to_owned());
        self.totals.files += 1;
        Ok(())
    }

    /// The next bytes of the file that was begun last.
    pub fn content(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        if self.last_file.is_none() {
            return Err(BackupError::OutOfOrder);
        }
        for piece in bytes.chunks(CHUNK_BYTES) {
            self.chunk(tag::CONTENT, piece)?;
        }
        self.totals.file_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Adds keys, wrapped by a passphrase, and ends the backup.
    pub fn finish_with_keys(
        mut self,
        files: &KeyFiles,
        passphrase: &[u8],
        chance: Chance,
    ) -> Result<(W, Totals), BackupError> {
        self.flush_entries()?;
        let sealed = files.seal(passphrase, chance, &self.chain.0)?;
        self.chunk(tag::KEYS, &sealed)?;
        self.finish()
    }

    /// Ends the backup.
    pub fn finish(mut self) -> Result<(W, Totals), BackupError> {
        self.flush_entries()?;
        let totals = serde_json::to_vec(&self.totals).unwrap_or_default();
        self.chunk(tag::END, &totals)?;
        self.out.flush().map_err(failed)?;
        Ok((self.out, self.totals))
    }

    /// Tells whoever reads that there will be no end, and why.
    pub fn give_up(mut self, reason: &str) -> Result<W, BackupError> {
        self.entries.clear();
        self.chunk(tag::FAILED, reason.as_bytes())?;
        self.out.flush().map_err(failed)?;
        Ok(self.out)
    }

    fn flush_entries(&mut self) -> Result<(), BackupError> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let mut entries = std::mem::take(&mut self.entries);
        self.chunk(tag::ENTRIES, &entries)?;
        entries.clear();
        self.entries = entries;
        Ok(())
    }

    fn chunk(&mut self, tag: u8, payload: &[u8]) -> Result<(), BackupError> {
        let length = u32::try_from(payload.len())
            .ok()
            .filter(|_| payload.len() <= MAX_PAYLOAD)
            .ok_or(BackupError::TooLarge(payload.len()))?;
        self.chain = self.chain.next(tag, payload);
        self.put(&[tag])?;
        self.put(&length.to_be_bytes())?;
        self.put(payload)?;
        let digest = self.chain.0;
        self.put(&digest)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        self.out.write_all(bytes).map_err(failed)
    }
}

fn failed(source: std::io::Error) -> BackupError {
    BackupError::Io {
        attempted: "write",
        source,
    }
}
