//! Answers of others that a rule asks to be remembered (`cache`), each for its own time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::lock;

/// The longest key that is remembered by; longer ones are not remembered.
const MAX_KEY: usize = 1024;

/// Remembered answers of all rules.
pub struct Answers {
    entries: Mutex<HashMap<(u64, String), Entry>>,
    max: usize,
}

struct Entry {
    value: Arc<Value>,
    /// Nanoseconds since 1970.
    expires: u128,
}

impl Answers {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            entries: Mutex::default(),
            max: max.max(1),
        }
    }

    /// `rule` is a number that no other rule has.
    pub(crate) fn find(&self, rule: u64, key: &str, now: u128) -> Option<Arc<Value>> {
        let entries = lock(&self.entries);
        let entry = entries.get(&(rule, key.to_owned()))?;
        (now < entry.expires).then(|| entry.value.clone())
    }

    pub(crate) fn keep(&self, rule: u64, key: String, value: Arc<Value>, now: u128, expires: u128) {
        if key.len() > MAX_KEY {
            return;
        }
        let mut entries = lock(&self.entries);
        if entries.len() >= self.max {
            entries.retain(|_, entry| entry.expires > now);
        }
        if entries.len() >= self.max {
            // Not always the first, or what comes last would go first.
            let turn = usize::try_from(now % entries.len() as u128).unwrap_or(0);
            let one = entries.keys().nth(turn).cloned();
            one.map(|one| entries.remove(&one));
        }
        entries.insert((rule, key), Entry { value, expires });
    }

    pub(crate) fn sweep(&self, now: u128) {
        lock(&self.entries).retain(|_, entry| entry.expires > now);
    }
}
