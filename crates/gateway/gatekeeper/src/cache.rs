//! Answers of others that a rule asks to be remembered (`cache`), each for its own time.
//!
//! How large an answer is, is up to others, and how many there are is up to clients; so both the number and the bytes are bounded.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::lock;

/// The longest key that is remembered by; longer ones are not remembered.
const MAX_KEY: usize = 1024;
/// The largest answer that is remembered; larger ones are asked for each time.
const MAX_ENTRY: usize = 64 * 1024;
/// All answers together.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// What a key and a value take beside their text.
const PER_ENTRY: usize = 128;
/// What a value takes within another, beside its text.
const PER_VALUE: usize = 72;

/// Remembered answers of all rules.
pub struct Answers {
    kept: Mutex<Kept>,
    max: usize,
    max_bytes: usize,
}

#[derive(Default)]
struct Kept {
    entries: HashMap<(u64, String), Entry>,
    /// Of all entries.
    bytes: usize,
}

struct Entry {
    value: Arc<Value>,
    bytes: usize,
    /// Nanoseconds since 1970.
    expires: u128,
}

impl Answers {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            kept: Mutex::default(),
            max: max.max(1),
            max_bytes: MAX_BYTES,
        }
    }

    /// `rule` is a number that no other rule has.
    pub(crate) fn find(&self, rule: u64, key: &str, now: u128) -> Option<Arc<Value>> {
        let kept = lock(&self.kept);
        let entry = kept.entries.get(&(rule, key.to_owned()))?;
        (now < entry.expires).then(|| entry.value.clone())
    }

    pub(crate) fn keep(&self, rule: u64, key: String, value: Arc<Value>, now: u128, expires: u128) {
        let bytes = PER_ENTRY + key.len() + size(&value);
        if key.len() > MAX_KEY || bytes > MAX_ENTRY {
            return;
        }
        let mut kept = lock(&self.kept);
        let key = (rule, key);
        if let Some(old) = kept.entries.remove(&key) {
            kept.bytes -= old.bytes;
        }
        let is_full = |kept: &Kept| kept.entries.len() >= self.max || kept.bytes + bytes > self.max_bytes;
        if is_full(&kept) {
            kept.forget(|_, entry| entry.expires <= now);
        }
        if is_full(&kept) {
            // Some more than needed, so that not every answer walks through all of them.
            let most = (
                self.max - self.max.div_ceil(8),
                self.max_bytes - self.max_bytes.div_ceil(8),
            );
            kept.shrink(most, now);
        }
        kept.bytes += bytes;
        let entry = Entry {
            value,
            bytes,
            expires,
        };
        kept.entries.insert(key, entry);
    }

    pub(crate) fn sweep(&self, now: u128) {
        lock(&self.kept).forget(|_, entry| entry.expires <= now);
    }
}

impl Kept {
    fn forget(&mut self, mut goes: impl FnMut(&(u64, String), &Entry) -> bool) {
        let bytes = &mut self.bytes;
        self.entries.retain(|key, entry| {
            let goes = goes(key, entry);
            if goes {
                *bytes -= entry.bytes;
            }
            !goes
        });
    }

    /// Down to so many entries and bytes.
    fn shrink(&mut self, most: (usize, usize), now: u128) {
        // Not always from the first, or what comes last would go first.
        let turn = now.checked_rem(self.entries.len() as u128).unwrap_or(0);
        for first in [usize::try_from(turn).unwrap_or(0), 0] {
            let (mut entries, mut bytes) = (self.entries.len(), self.bytes);
            let mut at = 0;
            self.forget(|_, entry| {
                at += 1;
                let goes = at > first && (entries > most.0 || bytes > most.1);
                if goes {
                    entries -= 1;
                    bytes -= entry.bytes;
                }
                goes
            });
        }
    }
}

/// What a value takes in memory, roughly. JSON that was parsed is not nested deeply.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(|value| PER_VALUE + size(value)).sum(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| PER_VALUE + key.len() + size(value))
            .sum(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is kept is what is counted.
    fn check(answers: &Answers) -> (usize, usize) {
        let kept = lock(&answers.kept);
        let bytes: usize = kept.entries.values().map(|entry| entry.bytes).sum();
        assert_eq!(kept.bytes, bytes);
        (kept.entries.len(), bytes)
    }

    #[test]
    fn answers_are_remembered_for_their_time() {
        let answers = Answers::new(10);
        answers.keep(1, "a".to_owned(), Arc::new(json!("old")), 0, 50);
        answers.keep(1, "a".to_owned(), Arc::new(json!("new")), 0, 100);
        answers.keep(2, "b".to_owned(), Arc::new(json!("other")), 0, 200);
        for (rule, key, now, expected, reason) in [
            (1, "a", 99, Some(json!("new")), "the last answer"),
            (1, "a", 100, None, "its time has passed"),
            (2, "a", 0, None, "another rule"),
            (2, "b", 100, Some(json!("other")), "another time"),
        ] {
            let found = answers.find(rule, key, now).map(|value| (*value).clone());
            assert_eq!(found, expected, "{reason}");
        }
        answers.sweep(150);
        assert_eq!(check(&answers).0, 1, "only the other is left");
        answers.sweep(200);
        assert_eq!(check(&answers), (0, 0));
    }

    #[test]
    fn large_answers_are_not_remembered() {
        let answers = Answers::new(10);
        for (value, remembered, reason) in [
            (json!("x".repeat(MAX_ENTRY - 1024)), true, "it fits"),
            (json!("x".repeat(MAX_ENTRY)), false, "a long text"),
            (
                json!(["x".repeat(MAX_ENTRY / 2), "x".repeat(MAX_ENTRY / 2)]),
                false,
                "two",
            ),
            (json!({ ("x".repeat(MAX_ENTRY)): 1 }), false, "a long name"),
            (
                json!(vec![0; MAX_ENTRY / 16]),
                false,
                "many small values take more than their text",
            ),
        ] {
            answers.keep(1, reason.to_owned(), Arc::new(value), 0, 1);
            assert_eq!(answers.find(1, reason, 0).is_some(), remembered, "{reason}");
        }
        answers.keep(1, "k".repeat(MAX_KEY + 1), Arc::new(json!(1)), 0, 1);
        assert_eq!(check(&answers).0, 1, "nor those with long keys");
    }

    #[test]
    fn neither_number_nor_bytes_grow_without_bound() {
        let large = Arc::new(json!("x".repeat(60 * 1024)));
        let small = Arc::new(json!(1));
        for (max, value, reason) in [
            (4096, &large, "bytes"),
            (100, &small, "number"),
            (1, &small, "just one"),
        ] {
            let answers = Answers::new(max);
            for at in 0..1000_u128 {
                answers.keep(1, at.to_string(), Arc::clone(value), at, 10_000);
                let (entries, bytes) = check(&answers);
                assert!(
                    entries <= max && bytes <= MAX_BYTES,
                    "{reason}: {entries}, {bytes}"
                );
                assert!(
                    answers.find(1, &at.to_string(), at).is_some(),
                    "{reason}: the last one is there"
                );
            }
            let (entries, bytes) = check(&answers);
            assert!(
                entries * 4 >= max * 3 || bytes * 4 >= MAX_BYTES * 3,
                "{reason}: no more is forgotten than has to be: {entries}, {bytes}"
            );
        }
    }

    #[test]
    fn what_has_expired_goes_first() {
        let answers = Answers::new(8);
        for at in 0..4 {
            answers.keep(1, format!("old {at}"), Arc::new(json!(1)), 0, 10);
            answers.keep(1, format!("new {at}"), Arc::new(json!(1)), 0, 100);
        }
        answers.keep(1, "last".to_owned(), Arc::new(json!(1)), 10, 100);
        assert!((0..4).all(|at| answers.find(1, &format!("new {at}"), 10).is_some()));
        assert_eq!(check(&answers).0, 5);
    }
}
