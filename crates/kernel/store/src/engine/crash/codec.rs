//! A batch as bytes: counted lists of fixed-width numbers and counted byte strings, big-endian.

use std::sync::Arc;

use bytes::Bytes;

use crate::api::{Event, EventKind, KeyValue, LeaseId, Revision};
use crate::engine::{Batch, Commit, LeaseChange, RecordId};

pub(super) fn encode(batch: &Batch) -> Vec<u8> {
    let mut out = Vec::new();
    let number = |out: &mut Vec<u8>, n: u64| out.extend_from_slice(&n.to_be_bytes());
    let string = |out: &mut Vec<u8>, bytes: &[u8]| {
        number(out, bytes.len() as u64);
        out.extend_from_slice(bytes);
    };
    number(&mut out, batch.compacted.unwrap_or_default().0);
    number(&mut out, batch.commits.len() as u64);
    for commit in &batch.commits {
        number(&mut out, commit.revision.0);
        number(&mut out, commit.events.len() as u64);
        for Event { kv, .. } in &commit.events {
            number(&mut out, kv.create_revision.0);
            number(&mut out, kv.version);
            number(&mut out, u64::from(kv.lease.is_some()));
            number(&mut out, kv.lease.map_or(0, |lease| lease.0).cast_unsigned());
            string(&mut out, &kv.key);
            string(&mut out, &kv.value);
        }
    }
    number(&mut out, batch.leases.len() as u64);
    for change in &batch.leases {
        let (granted, lease, ttl) = match change {
            LeaseChange::Granted { lease, ttl_seconds } => (1, lease, *ttl_seconds),
            LeaseChange::Ended(lease) => (0, lease, 0),
        };
        number(&mut out, granted);
        number(&mut out, lease.0.cast_unsigned());
        number(&mut out, ttl);
    }
    number(&mut out, batch.erased.len() as u64);
    for id in &batch.erased {
        number(&mut out, id.to_i64().cast_unsigned());
    }
    out
}

/// `None` if the bytes are not a batch.
pub(super) fn decode(bytes: &[u8]) -> Option<Batch> {
    let mut input = Input(bytes);
    let compacted = Some(Revision(input.number()?)).filter(|revision| revision.0 > 0);
    let mut batch = Batch {
        compacted,
        ..Batch::default()
    };
    for _ in 0..input.number()? {
        let revision = Revision(input.number()?);
        let mut events = Vec::new();
        for _ in 0..input.number()? {
            events.push(input.event(revision)?);
        }
        batch.commits.push(Arc::new(Commit { revision, events }));
    }
    for _ in 0..input.number()? {
        let granted = input.number()? == 1;
        let lease = LeaseId(input.number()?.cast_signed());
        let ttl_seconds = input.number()?;
        batch.leases.push(if granted {
            LeaseChange::Granted { lease, ttl_seconds }
        } else {
            LeaseChange::Ended(lease)
        });
    }
    for _ in 0..input.number()? {
        batch
            .erased
            .push(RecordId::from_i64(input.number()?.cast_signed()));
    }
    input.0.is_empty().then_some(batch)
}

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_be_bytes(*number))
    }

    fn string(&mut self) -> Option<Bytes> {
        let length = usize::try_from(self.number()?).ok()?;
        let (string, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(Bytes::copy_from_slice(string))
    }

    fn event(&mut self, mod_revision: Revision) -> Option<Event> {
        let create_revision = Revision(self.number()?);
        let version = self.number()?;
        let leased = self.number()? == 1;
        let lease = Some(LeaseId(self.number()?.cast_signed())).filter(|_| leased);
        let (key, value) = (self.string()?, self.string()?);
        let kind = if version == 0 {
            EventKind::Delete
        } else {
            EventKind::Put
        };
        let kv = KeyValue {
            key,
            value,
            create_revision,
            mod_revision,
            version,
            lease,
        };
        Some(Event { kind, kv, prev: None })
    }
}
