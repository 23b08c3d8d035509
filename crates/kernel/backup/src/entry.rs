//! One key with its value, as bytes.

use bytes::Bytes;

/// Largest key or value: a store's own limit is lower, and a length beyond this one is damage.
const MAX_FIELD: usize = 4 * 1024 * 1024;

/// Lengths of key and value, three revisions.
const FIXED: usize = 4 + 4 + 8 + 8 + 8;

/// A key of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Bytes,
    /// The value, sealed where it was sealed.
    pub value: Bytes,
    /// Revision of its creation.
    pub create_revision: u64,
    /// Revision of its last change.
    pub mod_revision: u64,
    /// Writes since its creation.
    pub version: u64,
}

impl Entry {
    /// Appends it, or says how large it is.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<(), usize> {
        let length = |field: &Bytes| {
            u32::try_from(field.len())
                .ok()
                .filter(|_| field.len() <= MAX_FIELD)
                .ok_or(field.len())
        };
        out.extend_from_slice(&length(&self.key)?.to_be_bytes());
        out.extend_from_slice(&length(&self.value)?.to_be_bytes());
        for number in [self.create_revision, self.mod_revision, self.version] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out.extend_from_slice(&self.key);
        out.extend_from_slice(&self.value);
        Ok(())
    }

    /// Takes one off the front; `None` if the bytes are no entry.
    pub(crate) fn decode(bytes: &mut Bytes) -> Option<Self> {
        if bytes.len() < FIXED {
            return None;
        }
        let fixed = bytes.split_to(FIXED);
        let word = |at: usize| fixed[at..at + 4].try_into().ok().map(u32::from_be_bytes);
        let long = |at: usize| fixed[at..at + 8].try_into().ok().map(u64::from_be_bytes);
        let (key, value) = (word(0)? as usize, word(4)? as usize);
        if key > MAX_FIELD || value > MAX_FIELD || key + value > bytes.len() {
            return None;
        }
        Some(Self {
            create_revision: long(8)?,
            mod_revision: long(16)?,
            version: long(24)?,
            key: bytes.split_to(key),
            value: bytes.split_to(value),
        })
    }
}

/// The kind that a key belongs to: `deployments.apps` of `/apps/deployments/builtin/root/default/web`. Keys outside `/`
/// are the store's own (reservations).
#[must_use]
pub fn kind_of(key: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(key).ok()?;
    let mut parts = text.strip_prefix('/')?.split('/');
    let (group, resource) = (parts.next()?, parts.next()?);
    Some(match group {
        "core" => resource.to_owned(),
        group => format!("{resource}.{group}"),
    })
}
