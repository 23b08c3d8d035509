//! The script of the crash tests: writers that write pairs of keys, and what must be left of them.

use std::collections::BTreeMap;

use bytes::Bytes;
use fairway_kernel_store::{KeyRange, Op, Range, Revision, Store, Txn};

const SLOTS: u64 = 12;

/// Every seventh step deletes what the one before it wrote, so that every step is a write.
fn slot(step: u64) -> u64 {
    (step - u64::from(deletes(step))) % SLOTS
}

fn deletes(step: u64) -> bool {
    step % 7 == 6
}

/// The two keys that a step writes together.
fn keys(writer: usize, step: u64) -> [String; 2] {
    let slot = slot(step);
    [
        format!("left/{writer}/{slot:02}"),
        format!("right/{writer}/{slot:02}"),
    ]
}

/// What a step writes; `None`: it deletes.
fn content(writer: usize, step: u64) -> Option<Bytes> {
    if deletes(step) {
        return None;
    }
    // From a few bytes to several pages, so that a commit spans many writes.
    let length = (step.wrapping_mul(2_654_435_761) >> 7) % if step.is_multiple_of(5) { 40_000 } else { 600 };
    let seed = format!("{writer}.{step}.");
    Some(seed.bytes().cycle().take(seed.len() + length as usize).collect())
}

/// A step as a transaction.
pub(crate) fn transaction(writer: usize, step: u64) -> Txn {
    let success = keys(writer, step)
        .into_iter()
        .map(|key| match content(writer, step) {
            Some(value) => Op::Put {
                key: key.into(),
                value,
                lease: None,
            },
            None => Op::Delete(KeyRange::single(key.as_bytes())),
        })
        .collect();
    Txn {
        success,
        ..Txn::default()
    }
}

/// What must be there: per writer the next step and the content of its slots.
#[derive(Clone, Default)]
pub(crate) struct Expected {
    pub(crate) next: u64,
    slots: BTreeMap<u64, Bytes>,
}

impl Expected {
    /// The next step was acknowledged.
    pub(crate) fn apply(&mut self, writer: usize) {
        match content(writer, self.next) {
            Some(value) => self.slots.insert(slot(self.next), value),
            None => self.slots.remove(&slot(self.next)),
        };
        self.next += 1;
    }

    /// Compares with what a store holds after a crash. Of the step that was under way either all or nothing may be
    /// there; true if it is, and then it is expected from now on.
    pub(crate) async fn settle(&mut self, store: &dyn Store, writer: usize) -> Result<bool, String> {
        let left = stored(store, "left", writer).await;
        let right = stored(store, "right", writer).await;
        if left != right {
            return Err(format!("writer {writer} has half a step: {left:?} and {right:?}"));
        }
        let found: BTreeMap<u64, Bytes> = left.into_iter().map(|(slot, (value, _))| (slot, value)).collect();
        if found == self.slots {
            return Ok(false);
        }
        self.apply(writer);
        if found == self.slots {
            return Ok(true);
        }
        Err(format!(
            "writer {writer} has lost an acknowledged step before {}",
            self.next
        ))
    }
}

async fn stored(store: &dyn Store, side: &str, writer: usize) -> BTreeMap<u64, (Bytes, Revision)> {
    let prefix = format!("{side}/{writer}/");
    let keys = KeyRange::prefix(prefix.as_bytes());
    let range = Range {
        keys,
        revision: None,
        limit: 0,
        keys_only: false,
        count_only: false,
    };
    let response = store.range(range).await.unwrap();
    let slot = |key: &[u8]| {
        std::str::from_utf8(&key[prefix.len()..])
            .unwrap()
            .parse()
            .unwrap()
    };
    response
        .kvs
        .into_iter()
        .map(|kv| (slot(&kv.key), (kv.value, kv.mod_revision)))
        .collect()
}
