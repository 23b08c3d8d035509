//! A record as one byte string, for engines that know only keys and values.

use bytes::Bytes;
use fairway_kernel_store::engine::{Record, RecordHeader, RecordId};
use fairway_kernel_store::{KeyValue, LeaseId, Revision, StoreError};

pub(crate) fn pack(kv: &KeyValue) -> Vec<u8> {
    let mut out = Vec::with_capacity(28 + kv.key.len() + kv.value.len());
    out.extend_from_slice(&kv.create_revision.0.to_be_bytes());
    out.extend_from_slice(&kv.version.to_be_bytes());
    out.extend_from_slice(&kv.lease.map_or(0, |lease| lease.0).to_be_bytes());
    out.extend_from_slice(&(kv.key.len() as u32).to_be_bytes());
    out.extend_from_slice(&kv.key);
    out.extend_from_slice(&kv.value);
    out
}

/// The header, and where the value begins.
pub(crate) fn header(id: u64, packed: &[u8]) -> Option<(RecordHeader<'_>, usize)> {
    let number = |at: usize| packed.get(at..at + 8)?.try_into().ok().map(u64::from_be_bytes);
    let length = u32::from_be_bytes(packed.get(24..28)?.try_into().ok()?) as usize;
    let header = RecordHeader {
        id: RecordId::from_i64(id.cast_signed()),
        key: packed.get(28..28 + length)?,
        create_revision: Revision(number(0)?),
        version: number(8)?,
        lease: Some(LeaseId(number(16)?.cast_signed())).filter(|lease| lease.0 != 0),
    };
    Some((header, 28 + length))
}

pub(crate) fn value(id: u64, packed: &[u8]) -> Option<Bytes> {
    header(id, packed).map(|(_, start)| Bytes::copy_from_slice(&packed[start..]))
}

pub(crate) fn record(id: u64, packed: &[u8]) -> Option<Record> {
    let (header, start) = header(id, packed)?;
    let kv = KeyValue {
        key: Bytes::copy_from_slice(header.key),
        value: Bytes::copy_from_slice(&packed[start..]),
        create_revision: header.create_revision,
        mod_revision: header.id.revision(),
        version: header.version,
        lease: header.lease,
    };
    Some(Record { id: header.id, kv })
}

pub(crate) fn failed(error: impl std::fmt::Display) -> StoreError {
    StoreError::Io {
        attempted: "use the engine",
        cause: error.to_string(),
    }
}
