//! Tokens whose signature has been checked: a program sends the same one with every request. Everything that may change is checked
//! each time; that a text carries a signature does not.

use std::collections::HashMap;
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use serde_json::Value;

/// Tokens of a generation; two are kept.
const KEEP: usize = 1_024;

type Digest = [u8; 32];

/// Claims by the digest of their token.
#[derive(Debug, Default)]
pub struct Proven {
    young: HashMap<Digest, Arc<Value>>,
    old: HashMap<Digest, Arc<Value>>,
}

/// What a token is remembered by: it and the key that it was verified with, so that a key that is gone is forgotten.
pub fn mark(token: &str, key: &str) -> Digest {
    let mut out = [0; 32];
    let text = [key.as_bytes(), b" ", token.as_bytes()].concat();
    out.copy_from_slice(digest(&SHA256, &text).as_ref());
    out
}

impl Proven {
    /// The claims of a token that was checked before.
    pub fn get(&mut self, mark: &Digest) -> Option<Arc<Value>> {
        if let Some(found) = self.young.get(mark) {
            return Some(Arc::clone(found));
        }
        let found = self.old.remove(mark)?;
        self.add(*mark, Arc::clone(&found));
        Some(found)
    }

    /// Remembers one.
    pub fn add(&mut self, mark: Digest, claims: Arc<Value>) {
        if self.young.len() >= KEEP {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(mark, claims);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let mut proven = Proven::default();
        let used = mark("used", "k");
        proven.add(used, Arc::new(Value::Null));
        for n in 0..4 * KEEP {
            proven.add(mark(&n.to_string(), "k"), Arc::new(Value::Null));
            assert!(proven.get(&used).is_some());
        }
        assert!(proven.young.len() + proven.old.len() <= 2 * KEEP);
        assert_eq!(proven.get(&mark("used", "other")), None);
    }
}
