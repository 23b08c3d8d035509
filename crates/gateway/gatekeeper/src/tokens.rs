//! Tokens that were verified, so that the next request with the same one costs a look-up.
//!
//! A token is remembered by its SHA-256, until it expires or the issuer's keys change, and there are never more than a fixed
//! number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use ring::digest::{SHA256, digest};
use serde_json::Value;

use crate::lock;

const SHARDS: usize = 16;

/// Verified tokens of one issuer.
pub(crate) struct Tokens {
    shards: [Mutex<HashMap<[u8; 32], Verified>>; SHARDS],
    max: usize,
}

#[derive(Clone)]
struct Verified {
    claims: Arc<Value>,
    /// Seconds since 1970.
    expires: i64,
    not_before: i64,
    /// Of the keys that verified it.
    generation: u64,
}

impl Tokens {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            max: (max / SHARDS).max(1),
        }
    }

    /// The claims of a token that was verified by the same keys and is still good.
    pub(crate) fn find(&self, token: &str, now: i64, generation: u64) -> Option<Arc<Value>> {
        let hash = hash(token);
        let shard = lock(self.shard(&hash));
        let verified = shard.get(&hash)?;
        let is_good =
            verified.generation == generation && now < verified.expires && now >= verified.not_before;
        is_good.then(|| verified.claims.clone())
    }

    pub(crate) fn keep(&self, token: &str, claims: Arc<Value>, expires: i64, now: i64, generation: u64) {
        let hash = hash(token);
        let mut shard = lock(self.shard(&hash));
        if shard.len() >= self.max {
            shard.retain(|_, verified| verified.expires > now && verified.generation == generation);
        }
        if shard.len() >= self.max {
            // Which one goes does not matter: it is verified again when it comes again.
            let one = shard.keys().next().copied();
            one.map(|one| shard.remove(&one));
        }
        shard.insert(
            hash,
            Verified {
                claims,
                expires,
                // A clock that goes back must not make a token good before its time.
                not_before: now.saturating_sub(60),
                generation,
            },
        );
    }

    pub(crate) fn sweep(&self, now: i64) {
        for shard in &self.shards {
            lock(shard).retain(|_, verified| verified.expires > now);
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    fn shard(&self, hash: &[u8; 32]) -> &Mutex<HashMap<[u8; 32], Verified>> {
        &self.shards[usize::from(hash[0]) % SHARDS]
    }
}

fn hash(token: &str) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    hash
}
