//! What the header of a qcow2 file says, and whether QEMU may be given the file; and files in which nothing was written yet
//! ([`empty()`]).
//!
//! A qcow2 file may name other files: a backing file, or a file with the data. An image from a stranger that names
//! `/etc/shadow` would show it to the guest. So the header is read here, before any tool opens the file, and what
//! refers to anything outside is refused.

mod empty;

use std::fmt;

pub use empty::{Backing, EmptyError, empty};

/// How many bytes of a file [`Header::read`] needs at most: the header and its extensions have to end there.
pub const MAX_HEADER: usize = 64 << 10;
/// The magic number.
pub const MAGIC: [u8; 4] = *b"QFI\xfb";

const DIRTY: u64 = 1 << 0;
const CORRUPT: u64 = 1 << 1;
const DATA_FILE: u64 = 1 << 2;
const OTHER_COMPRESSION: u64 = 1 << 3;
const EXTENDED_L2: u64 = 1 << 4;
const KNOWN: u64 = DIRTY | CORRUPT | DATA_FILE | OTHER_COMPRESSION | EXTENDED_L2;

const END_OF_EXTENSIONS: u32 = 0;
const DATA_FILE_NAME: u32 = 0x4441_5441;
const BACKING_FORMAT: u32 = 0xe279_2aca;
const MAX_EXTENSIONS: usize = 64;

/// What a header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// 2 or 3.
    pub version: u32,
    /// Bytes of the disk that the guest sees.
    pub virtual_size: u64,
    /// Bytes of a cluster.
    pub cluster_size: u64,
    /// Name of the backing file, as far as it is text.
    pub backing_file: Option<String>,
    /// The format of the backing file, if it is said.
    pub backing_format: Option<String>,
    /// Whether the data lies in another file.
    pub has_data_file: bool,
    /// Whether it is encrypted.
    pub is_encrypted: bool,
    /// Whether whoever wrote it last did not finish.
    pub is_dirty: bool,
    /// Whether a tool has marked it as broken.
    pub is_corrupt: bool,
    /// Snapshots within the file.
    pub snapshots: u32,
    /// Features that one has to know, and that are not known here.
    pub unknown_features: u64,
    /// Where the first table begins, and how many bytes it has.
    pub l1: (u64, u64),
    /// Where the table of reference counts begins, and how many bytes it has.
    pub refcounts: (u64, u64),
}

/// Why a file is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It does not begin like a qcow2 file.
    NotQcow2,
    /// The header ends before it should, or says what cannot be.
    Malformed(&'static str),
    /// Another file is behind it.
    BackingFile(String),
    /// The data lies in another file.
    DataFile,
    /// It is encrypted.
    Encrypted,
    /// It is marked as broken.
    Corrupt,
    /// Features that one has to know, and that are not known here.
    UnknownFeatures(u64),
    /// The disk is larger than it may be.
    TooLarge {
        /// How large it is.
        size: u64,
        /// How large it may be.
        limit: u64,
    },
    /// The file ends before what its header refers to.
    Truncated,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotQcow2 => f.write_str("it is not a qcow2 file"),
            Self::Malformed(what) => write!(f, "it is not a usable qcow2 file: {what}"),
            Self::BackingFile(name) => write!(
                f,
                "it needs another file, {name:?}; flatten it first: qemu-img convert -O qcow2 IN OUT"
            ),
            Self::DataFile => f.write_str(
                "its data lies in another file; put it into one file first: qemu-img convert -O qcow2 IN OUT",
            ),
            Self::Encrypted => f.write_str("it is encrypted; decrypt it first with qemu-img convert"),
            Self::Corrupt => f.write_str(
                "it is marked as corrupt; repair it first with qemu-img check -r all, or fetch it again",
            ),
            Self::UnknownFeatures(bits) => {
                write!(f, "it needs features that are not known here ({bits:#x})")
            }
            Self::TooLarge { size, limit } => write!(
                f,
                "its disk has {size} bytes, which is more than the limit of {limit} bytes"
            ),
            Self::Truncated => f.write_str("it ends too early: it was not transferred as a whole"),
        }
    }
}

impl std::error::Error for Refusal {}

impl Header {
    /// Reads the beginning of a file.
    pub fn read(file: &[u8]) -> Result<Self, Refusal> {
        let file = &file[..file.len().min(MAX_HEADER)];
        if !file.starts_with(&MAGIC) {
            return Err(Refusal::NotQcow2);
        }
        let version = u32_at(file, 4)?;
        if !(2..=3).contains(&version) {
            return Err(Refusal::Malformed("its version is neither 2 nor 3"));
        }
        let cluster_bits = u32_at(file, 20)?;
        if !(9..=21).contains(&cluster_bits) {
            return Err(Refusal::Malformed("clusters have between 512 bytes and 2 MiB"));
        }
        let cluster_size = 1_u64 << cluster_bits;
        let backing = (u64_at(file, 8)?, u32_at(file, 16)?);
        let (features, header_length) = match version {
            2 => (0, 72),
            _ => (u64_at(file, 72)?, u32_at(file, 100)? as usize),
        };
        if version == 3 && (header_length < 104 || !header_length.is_multiple_of(8)) {
            return Err(Refusal::Malformed("the length of its header is wrong"));
        }
        let extensions = extensions(file, header_length, backing.0)?;
        let l1_entries = u64::from(u32_at(file, 36)?);
        Ok(Self {
            version,
            virtual_size: u64_at(file, 24)?,
            cluster_size,
            backing_file: backing_file(file, backing)?,
            backing_format: extensions.backing_format,
            // The name of a file for the data counts even without its feature bit.
            has_data_file: features & DATA_FILE != 0 || extensions.names_data_file,
            is_encrypted: u32_at(file, 32)? != 0,
            is_dirty: features & DIRTY != 0,
            is_corrupt: features & CORRUPT != 0,
            snapshots: u32_at(file, 60)?,
            unknown_features: features & !KNOWN,
            l1: (u64_at(file, 40)?, l1_entries * 8),
            refcounts: (u64_at(file, 48)?, u64::from(u32_at(file, 56)?) * cluster_size),
        })
    }

    /// Judges a file of this header and length, as an image from a stranger.
    pub fn judge(&self, file_length: u64, max_virtual_size: u64) -> Result<(), Refusal> {
        if let Some(name) = &self.backing_file {
            return Err(Refusal::BackingFile(name.clone()));
        }
        if self.has_data_file {
            return Err(Refusal::DataFile);
        }
        if self.is_encrypted {
            return Err(Refusal::Encrypted);
        }
        if self.is_corrupt {
            return Err(Refusal::Corrupt);
        }
        if self.unknown_features != 0 {
            return Err(Refusal::UnknownFeatures(self.unknown_features));
        }
        if self.virtual_size > max_virtual_size {
            return Err(Refusal::TooLarge {
                size: self.virtual_size,
                limit: max_virtual_size,
            });
        }
        for (start, length) in [self.l1, self.refcounts] {
            if !start.is_multiple_of(self.cluster_size) {
                return Err(Refusal::Malformed("a table does not begin where a cluster does"));
            }
            if start.checked_add(length).is_none_or(|end| end > file_length) {
                return Err(Refusal::Truncated);
            }
        }
        let clusters = self.virtual_size.div_ceil(self.cluster_size);
        if clusters.div_ceil(self.cluster_size / 8) > self.l1.1 / 8 {
            return Err(Refusal::Malformed("its first table is too short for its disk"));
        }
        Ok(())
    }
}

fn backing_file(file: &[u8], (offset, length): (u64, u32)) -> Result<Option<String>, Refusal> {
    if offset == 0 {
        return Ok(None);
    }
    if length > 1023 {
        return Err(Refusal::Malformed("the name of its backing file is too long"));
    }
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    // Wherever the name lies: that there is one is enough.
    let name = start
        .checked_add(length as usize)
        .and_then(|end| file.get(start..end))
        .unwrap_or_default();
    Ok(Some(String::from_utf8_lossy(name).into_owned()))
}

/// What extensions of a header say.
#[derive(Default)]
struct Extensions {
    backing_format: Option<String>,
    names_data_file: bool,
}

fn extensions(file: &[u8], header_length: usize, backing: u64) -> Result<Extensions, Refusal> {
    let end = match usize::try_from(backing) {
        Ok(0) | Err(_) => file.len(),
        Ok(start) => start.min(file.len()),
    };
    let mut at = header_length;
    let mut said = Extensions::default();
    for _ in 0..MAX_EXTENSIONS {
        if at + 8 > end {
            return Ok(said);
        }
        let (kind, length) = (u32_at(file, at)?, u32_at(file, at + 4)? as usize);
        match kind {
            END_OF_EXTENSIONS => return Ok(said),
            DATA_FILE_NAME => said.names_data_file = true,
            BACKING_FORMAT => {
                let text = (at + 8).checked_add(length).and_then(|end| file.get(at + 8..end));
                said.backing_format = text.map(|it| String::from_utf8_lossy(it).into_owned());
            }
            _ => {}
        }
        at = length
            .checked_next_multiple_of(8)
            .and_then(|length| length.checked_add(at + 8))
            .filter(|next| *next <= MAX_HEADER)
            .ok_or(Refusal::Malformed("an extension of its header is too long"))?;
    }
    Err(Refusal::Malformed("its header has too many extensions"))
}

const CUT: Refusal = Refusal::Malformed("its header is cut off");

fn u32_at(file: &[u8], at: usize) -> Result<u32, Refusal> {
    let bytes = at.checked_add(4).and_then(|end| file.get(at..end)).ok_or(CUT)?;
    bytes.try_into().map(u32::from_be_bytes).map_err(|_| CUT)
}

fn u64_at(file: &[u8], at: usize) -> Result<u64, Refusal> {
    let bytes = at.checked_add(8).and_then(|end| file.get(at..end)).ok_or(CUT)?;
    bytes.try_into().map(u64::from_be_bytes).map_err(|_| CUT)
}

#[cfg(test)]
mod tests;
