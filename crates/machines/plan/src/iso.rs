//! Small ISO 9660 images: what a guest reads its configuration from.
//!
//! An image has each file once and two trees that lead to it: the plain one, whose records say names, rights and kinds in
//! Rock Ridge's way for Unix guests, and Joliet's for Windows. Nothing in an image depends on the time or the order of
//! its files, so that the same files make the same bytes on every node.
//!
//! ```text
//! sector 16  primary descriptor          19 ...  path tables (4)
//!        17  Joliet's descriptor                 directories, plain
//!        18  end of descriptors                  directories, Joliet
//!                                                what did not fit into records
//!                                                files, and an empty tail
//! ```

use thiserror::Error;

mod directory;
mod encode;
mod names;
mod rock_ridge;
mod tree;
mod volume;

use directory::Directories;
use tree::Tree;

/// Bytes of a sector.
const SECTOR: usize = 2048;
/// Sectors before the path tables.
const DESCRIPTORS: u32 = 19;
/// Empty sectors at the end, as many as other programs leave there: who looks for a file system on a disk reads past the end of a
/// smaller one, and busybox then takes it for damaged.
const TAIL: u32 = 150;
/// All files together must not be larger: seeds are read into memory.
const MAX_CONTENT: usize = 64 << 20;
/// There must not be more files.
const MAX_FILES: usize = 4096;
/// Directories in directories.
const MAX_DEPTH: usize = 8;
/// Bytes of a name.
const MAX_NAME: usize = 255;
/// Characters of a label.
const MAX_LABEL: usize = 32;

/// A file of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path, with slashes between names.
    pub path: String,
    /// What is in it.
    pub content: Vec<u8>,
}

impl File {
    /// A file.
    pub fn new(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            content: content.into(),
        }
    }
}

/// Why there is no image.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum IsoError {
    /// The label is none.
    #[error("the label {label:?} of a disk of files must be 1 to {MAX_LABEL} printable ASCII characters")]
    Label {
        /// The label.
        label: String,
    },
    /// A path is none.
    #[error("{path:?} cannot be a file on a disk of files: {reason}")]
    Path {
        /// The path.
        path: String,
        /// Why.
        reason: &'static str,
    },
    /// A path is there twice, or is a file and a directory.
    #[error("{path:?} is on a disk of files twice")]
    Twice {
        /// The path.
        path: String,
    },
    /// Too many files.
    #[error("a disk of files has room for {MAX_FILES} files, not {count}")]
    TooMany {
        /// How many there are.
        count: usize,
    },
    /// Too large files.
    #[error("a disk of files has room for {MAX_CONTENT} bytes, not {size}; use a disk image instead")]
    TooLarge {
        /// How large they are.
        size: usize,
    },
}

/// Makes an image.
pub fn write(label: &str, files: &[File]) -> Result<Vec<u8>, IsoError> {
    let printable = |it: u8| it.is_ascii_graphic() || it == b' ';
    if label.is_empty() || label.len() > MAX_LABEL || !label.bytes().all(printable) {
        return Err(IsoError::Label {
            label: label.to_owned(),
        });
    }
    let tree = Tree::of(files)?;
    let mut plain = Directories::plain(&tree);
    let mut joliet = Directories::joliet(&tree);

    // Everything has a length by now; give everything a place.
    let mut next = DESCRIPTORS;
    plain.tables_at(&mut next);
    joliet.tables_at(&mut next);
    plain.records_at(&mut next);
    joliet.records_at(&mut next);
    plain.continuation_at(&mut next);
    let mut extents = Vec::with_capacity(tree.files.len());
    for file in &tree.files {
        extents.push(next);
        next += sectors(file.content.len());
    }
    next += TAIL;

    let mut image = vec![0; DESCRIPTORS as usize * SECTOR];
    volume::descriptors(&mut image, label, next, &plain, &joliet);
    plain.write_tables(&mut image);
    joliet.write_tables(&mut image);
    plain.write_records(&tree, &extents, &mut image);
    joliet.write_records(&tree, &extents, &mut image);
    plain.write_continuation(&mut image);
    for file in &tree.files {
        image.extend_from_slice(&file.content);
        pad(&mut image);
    }
    image.resize(next as usize * SECTOR, 0);
    Ok(image)
}

/// Sectors that so many bytes take.
fn sectors(bytes: usize) -> u32 {
    // MAX_CONTENT is far below what this could not hold.
    u32::try_from(bytes.div_ceil(SECTOR)).unwrap_or(u32::MAX)
}

/// Fills the last sector.
fn pad(image: &mut Vec<u8>) {
    image.resize(image.len().next_multiple_of(SECTOR), 0);
}

#[cfg(test)]
mod tests;
