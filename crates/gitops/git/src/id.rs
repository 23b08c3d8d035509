//! The names of objects: hashes in lower-case hexadecimal.

use std::fmt;

use crate::GitError;

const SHA1_DIGITS: usize = 40;
const SHA256_DIGITS: usize = 64;
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The full name of an object.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(String);

impl ObjectId {
    /// Reads a full hash, SHA-1 or SHA-256.
    pub fn parse(text: &str) -> Result<Self, GitError> {
        match is_full_hash(text) {
            true => Ok(Self(text.to_ascii_lowercase())),
            false => Err(GitError::invalid(
                "the hash",
                text,
                "it is not 40 or 64 hexadecimal digits",
            )),
        }
    }

    /// From the bytes in a tree.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        // By hand: a directory may have thousands, and the formatter takes its time.
        let digit = |value: u8| char::from(DIGITS[usize::from(value & 0xf)]);
        Self(
            bytes
                .iter()
                .flat_map(|byte| [digit(byte >> 4), digit(*byte)])
                .collect(),
        )
    }

    /// What Git writes where there is nothing: before a branch was created, after it was deleted.
    pub fn zero() -> Self {
        Self("0".repeat(SHA1_DIGITS))
    }

    /// Whether it stands for nothing.
    pub fn is_zero(&self) -> bool {
        self.0.bytes().all(|byte| byte == b'0')
    }

    /// The hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How many bytes a hash has in a tree of the same repository.
    pub(crate) fn byte_len(&self) -> usize {
        self.0.len() / 2
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

pub(crate) fn is_full_hash(text: &str) -> bool {
    matches!(text.len(), SHA1_DIGITS | SHA256_DIGITS) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a text may be the beginning of a hash; Git asks for four digits.
pub(crate) fn is_short_hash(text: &str) -> bool {
    (4..SHA256_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
