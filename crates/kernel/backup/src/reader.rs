//! Reading a backup: every chunk is checked before anything in it is believed.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};

use bytes::Bytes;

use crate::entry::{Entry, kind_of};
use crate::error::BackupError;
use crate::file::is_file_path;
use crate::keys::SealedKeys;
use crate::manifest::{Header, Totals};
use crate::{Chain, DIGEST_BYTES, FORMAT, MAGIC, MAX_PAYLOAD, WITHOUT_FILES, tag};

/// What comes next in a backup.
#[derive(Debug)]
pub enum Part {
    /// A key.
    Entry(Entry),
    /// A file begins; what it consists of follows.
    File(String),
    /// The next bytes of the file.
    Content(Bytes),
    /// The keys of the installation, still wrapped.
    Keys(SealedKeys),
    /// The end; everything before it was whole.
    End(Totals),
}

/// A backup that is being read. Memory: one chunk.
pub struct Reader<R> {
    input: R,
    at: u64,
    chunk_at: u64,
    chain: Chain,
    header: Header,
    entries: Bytes,
    last: Option<Bytes>,
    read: u64,
    kinds: BTreeMap<String, u64>,
    format: u32,
    last_file: Option<String>,
    in_file: bool,
    files: u64,
    file_bytes: u64,
    keys_seen: bool,
    ended: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the beginning.
    pub fn new(input: R) -> Result<Self, BackupError> {
        let mut reader = Self {
            input,
            at: 0,
            chunk_at: 0,
            chain: Chain::start(FORMAT),
            header: Header {
                revision: 0,
                created: String::new(),
                fairway: String::new(),
            },
            entries: Bytes::new(),
            last: None,
            read: 0,
            kinds: BTreeMap::new(),
            format: FORMAT,
            last_file: None,
            in_file: false,
            files: 0,
            file_bytes: 0,
            keys_seen: false,
            ended: false,
        };
        let mut start = [0; 12];
        match reader.exactly(&mut start) {
            Err(BackupError::Truncated { at })
                if !MAGIC.starts_with(&start[..MAGIC.len().min(at as usize)]) || at == 0 =>
            {
                return Err(BackupError::NotABackup);
            }
            other => other?,
        }
        let (magic, format) = start.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(BackupError::NotABackup);
        }
        let format = format
            .iter()
            .fold(0u32, |number, byte| number << 8 | u32::from(*byte));
        match format {
            FORMAT | WITHOUT_FILES => {}
            newer if newer > FORMAT => return Err(BackupError::NewerFormat(newer)),
            _ => return Err(reader.damaged("it has no format number")),
        }
        reader.format = format;
        reader.chain = Chain::start(format);
        let (tag, payload) = reader.chunk()?;
        if tag != tag::HEADER {
            return Err(reader.damaged("it does not begin with a header"));
        }
        reader.header = serde_json::from_slice(&payload)
            .map_err(|_| reader.damaged("its header cannot be understood"))?;
        Ok(reader)
    }

    /// What the backup says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes that have been read.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// The next part; nothing follows [`Part::End`].
    pub fn next_part(&mut self) -> Result<Option<Part>, BackupError> {
        loop {
            if self.ended {
                return Ok(None);
            }
            if !self.entries.is_empty() {
                return self.entry().map(|entry| Some(Part::Entry(entry)));
            }
            let before = self.chain;
            let (tag, payload) = self.chunk()?;
            let was_in_file = std::mem::replace(&mut self.in_file, false);
            match tag {
                tag::ENTRIES if self.last_file.is_some() => return Err(self.damaged("entries follow files")),
                tag::FILE | tag::CONTENT if self.keys_seen || self.format == WITHOUT_FILES => {
                    return Err(self.damaged("a file is where none can be"));
                }
                tag::FILE => return self.file(&payload).map(|path| Some(Part::File(path))),
                tag::CONTENT if !was_in_file => return Err(self.damaged("content has no file")),
                tag::CONTENT => {
                    self.in_file = true;
                    self.file_bytes += payload.len() as u64;
                    return Ok(Some(Part::Content(payload)));
                }
                tag::ENTRIES if self.keys_seen => return Err(self.damaged("entries follow the keys")),
                tag::ENTRIES if payload.is_empty() => return Err(self.damaged("a chunk is empty")),
                tag::ENTRIES => self.entries = payload,
                tag::KEYS if self.keys_seen => return Err(self.damaged("it has keys twice")),
                tag::KEYS => {
                    self.keys_seen = true;
                    let keys = SealedKeys::read(&payload, before.0)
                        .ok_or_else(|| self.damaged("its keys cannot be understood"))?;
                    return Ok(Some(Part::Keys(keys)));
                }
                tag::END => return self.end(&payload).map(|totals| Some(Part::End(totals))),
                tag::FAILED => {
                    return Err(BackupError::Failed(
                        String::from_utf8_lossy(&payload).into_owned(),
                    ));
                }
                _ => return Err(self.damaged("a chunk is of an unknown kind")),
            }
        }
    }

    fn entry(&mut self) -> Result<Entry, BackupError> {
        let entry = Entry::decode(&mut self.entries).ok_or_else(|| self.damaged("an entry is not whole"))?;
        if self.last.as_ref().is_some_and(|last| *last >= entry.key) {
            return Err(self.damaged("its keys are not in order"));
        }
        let made = entry.create_revision;
        if entry.key.is_empty()
            || entry.version == 0
            || made == 0
            || made > entry.mod_revision
            || entry.mod_revision > self.header.revision
        {
            return Err(self.damaged("an entry's revisions do not fit"));
        }
        self.last = Some(entry.key.clone());
        self.read += 1;
        if let Some(kind) = kind_of(&entry.key) {
            *self.kinds.entry(kind).or_default() += 1;
        }
        Ok(entry)
    }

    fn file(&mut self, payload: &[u8]) -> Result<String, BackupError> {
        let path = std::str::from_utf8(payload)
            .ok()
            .filter(|path| is_file_path(path));
        let path = path.ok_or_else(|| self.damaged("the path of a file cannot be one"))?;
        if self.last_file.as_deref().is_some_and(|last| last >= path) {
            return Err(self.damaged("its files are not in order"));
        }
        self.last_file = Some(path.to_owned());
        self.in_file = true;
        self.files += 1;
        Ok(path.to_owned())
    }

    fn end(&mut self, payload: &[u8]) -> Result<Totals, BackupError> {
        let totals: Totals =
            serde_json::from_slice(payload).map_err(|_| self.damaged("its end cannot be understood"))?;
        let files = (totals.files, totals.file_bytes);
        if totals.entries != self.read || totals.kinds != self.kinds || files != (self.files, self.file_bytes)
        {
            return Err(self.damaged("it does not hold what its end says"));
        }
        let mut more = [0; 1];
        match self.input.read(&mut more) {
            Ok(0) => {}
            Ok(_) => return Err(self.damaged("something follows its end")),
            Err(source) => return Err(failed(source)),
        }
        self.ended = true;
        Ok(totals)
    }

    fn chunk(&mut self) -> Result<(u8, Bytes), BackupError> {
        self.chunk_at = self.at;
        let mut head = [0; 5];
        self.exactly(&mut head)?;
        let [tag, length @ ..] = head;
        let length = u32::from_be_bytes(length) as usize;
        if length > MAX_PAYLOAD {
            return Err(self.damaged("a chunk is longer than chunks are"));
        }
        // Grows with what is really there: a false length must not cost memory.
        let mut payload = Vec::new();
        let got = (&mut self.input)
            .take(length as u64)
            .read_to_end(&mut payload)
            .map_err(failed)?;
        self.at += got as u64;
        if got < length {
            return Err(BackupError::Truncated { at: self.at });
        }
        let mut digest = [0; DIGEST_BYTES];
        self.exactly(&mut digest)?;
        let chain = self.chain.next(tag, &payload);
        if chain.0 != digest {
            return Err(self.damaged("a checksum does not fit"));
        }
        self.chain = chain;
        Ok((tag, Bytes::from(payload)))
    }

    fn exactly(&mut self, buffer: &mut [u8]) -> Result<(), BackupError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.input.read(&mut buffer[filled..]) {
                Ok(0) => return Err(BackupError::Truncated { at: self.at }),
                Ok(count) => {
                    filled += count;
                    self.at += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(failed(source)),
            }
        }
        Ok(())
    }

    fn damaged(&self, what: &'static str) -> BackupError {
        BackupError::Damaged {
            at: self.chunk_at,
            what,
        }
    }
}

fn failed(source: std::io::Error) -> BackupError {
    BackupError::Io {
        attempted: "read",
        source,
    }
}
