//! An image of which most is zero.

use bytes::Bytes;

/// Pieces of an image by offset; everything else is zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sparse {
    len: u64,
    pieces: Vec<(u64, Bytes)>,
}

impl Sparse {
    /// Zeros.
    pub fn new(len: u64) -> Self {
        Self {
            len,
            pieces: Vec::new(),
        }
    }

    /// How long it is, zeros included.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has no byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts bytes at an offset. What lies beyond the end makes it longer.
    pub fn put(&mut self, offset: u64, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        if !bytes.is_empty() {
            self.len = self.len.max(offset + bytes.len() as u64);
            self.pieces.push((offset, bytes));
        }
    }

    /// Puts another image at an offset.
    pub fn embed(&mut self, offset: u64, other: Self) {
        self.len = self.len.max(offset + other.len);
        self.pieces
            .extend(other.pieces.into_iter().map(|(at, bytes)| (offset + at, bytes)));
    }

    /// What is not zero, in the order in which it was put; a later piece covers an earlier one.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, &Bytes)> {
        self.pieces.iter().map(|(offset, bytes)| (*offset, bytes))
    }
}
