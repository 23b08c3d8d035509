//! What Rock Ridge adds to the records of the plain tree: kinds, rights and true names.

use super::SECTOR;
use super::encode::{MOMENT, both32};

/// A record must not be longer.
const MAX_RECORD: usize = 255;
/// Bytes of an entry that says where it goes on.
const CONTINUED: usize = 28;
/// Bytes of a name in one entry.
const NAME_PIECE: usize = 250;

const DIRECTORY: u32 = 0o040_555;
/// Readable by root alone: there are keys and passwords in seeds.
const FILE: u32 = 0o100_400;

/// What is kept outside of records, and where in it the next piece goes.
#[derive(Debug, Default)]
pub(super) struct Continuation {
    pub(super) bytes: Vec<u8>,
    /// The first sector, once it is known.
    pub(super) sector: u32,
}

/// A piece that is kept outside of its record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    offset: usize,
    length: usize,
}

impl Continuation {
    fn keep(&mut self, bytes: &[u8]) -> Piece {
        // A piece must not lie across a border of sectors.
        let left = SECTOR - self.bytes.len() % SECTOR;
        if bytes.len() > left {
            self.bytes.resize(self.bytes.len() + left, 0);
        }
        let offset = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        Piece {
            offset,
            length: bytes.len(),
        }
    }

    /// The entry that leads to a piece.
    fn lead(&self, piece: Piece) -> Vec<u8> {
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let mut entry = vec![b'C', b'E', 28, 1];
        entry.extend(both32(self.sector + number(piece.offset / SECTOR)));
        entry.extend(both32(number(piece.offset % SECTOR)));
        entry.extend(both32(number(piece.length)));
        entry
    }
}

/// What Rock Ridge says in a record: here, and elsewhere.
#[derive(Debug, Default)]
pub(super) struct Entries {
    here: Vec<u8>,
    elsewhere: Option<Piece>,
}

impl Entries {
    /// For a record of a name, with so many bytes before them.
    pub(super) fn of_name(name: &str, directory: bool, before: usize, kept: &mut Continuation) -> Self {
        let mut here = attributes(directory);
        let names = names(name);
        if before + here.len() + names.len() <= MAX_RECORD {
            here.extend(names);
            return Self {
                here,
                elsewhere: None,
            };
        }
        Self {
            here,
            elsewhere: Some(kept.keep(&names)),
        }
    }

    /// For a directory's record of itself or of the one that it is in.
    pub(super) fn of_directory() -> Self {
        Self {
            here: attributes(true),
            elsewhere: None,
        }
    }

    /// For the root's record of itself, which says that Rock Ridge is in use.
    pub(super) fn of_root(kept: &mut Continuation) -> Self {
        let mut here = vec![b'S', b'P', 7, 1, 0xbe, 0xef, 0];
        here.extend(attributes(true));
        let (name, about) = (b"RRIP_1991A", b"Rock Ridge: names, kinds and rights of files");
        let mut entry = vec![b'E', b'R', 0, 1, 10, 0, 0, 1];
        entry[2] = u8::try_from(8 + name.len() + about.len()).unwrap_or(u8::MAX);
        entry[5] = u8::try_from(about.len()).unwrap_or(u8::MAX);
        entry.extend(name);
        entry.extend(about);
        Self {
            here,
            elsewhere: Some(kept.keep(&entry)),
        }
    }

    /// Bytes in the record.
    pub(super) fn length(&self) -> usize {
        self.here.len() + self.elsewhere.map_or(0, |_| CONTINUED)
    }

    pub(super) fn write(&self, kept: &Continuation) -> Vec<u8> {
        let mut bytes = self.here.clone();
        if let Some(piece) = self.elsewhere {
            bytes.extend(kept.lead(piece));
        }
        bytes
    }
}

fn attributes(directory: bool) -> Vec<u8> {
    let (mode, links) = if directory { (DIRECTORY, 2) } else { (FILE, 1) };
    let mut entry = vec![b'P', b'X', 36, 1];
    for value in [mode, links, 0, 0] {
        entry.extend(both32(value));
    }
    // When it was changed.
    entry.extend([b'T', b'F', 12, 1, 2]);
    entry.extend(MOMENT);
    entry
}

fn names(name: &str) -> Vec<u8> {
    let mut entries = Vec::new();
    let mut pieces = name.as_bytes().chunks(NAME_PIECE).peekable();
    while let Some(piece) = pieces.next() {
        let goes_on = u8::from(pieces.peek().is_some());
        entries.extend([b'N', b'M', 0, 1, goes_on]);
        let length = entries.len() - 3;
        entries[length] = u8::try_from(5 + piece.len()).unwrap_or(u8::MAX);
        entries.extend(piece);
    }
    entries
}
