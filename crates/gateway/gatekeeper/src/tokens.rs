//! Tokens that were verified, so that the next request with the same one costs a look-up.
//!
//! A token is remembered by its SHA-256, until it expires or the issuer's keys change, and there are never more than a fixed
//! number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use fairway_gateway_guard::Credential;
use ring::digest::{SHA256, digest};
use serde_json::Value;

use crate::lock;
use crate::outside::Realms;

const SHARDS: usize = 16;

/// A token that was verified.
pub(crate) struct Token {
    pub(crate) claims: Arc<Value>,
    /// Seconds since 1970.
    expires: i64,
    realms: Arc<dyn Realms>,
}

impl Token {
    pub(crate) fn new(claims: Value, expires: i64, realms: &Arc<dyn Realms>) -> Self {
        Self {
            claims: Arc::new(claims),
            expires,
            realms: Arc::clone(realms),
        }
    }

    /// Why nobody stands behind it any more, if so.
    pub(crate) fn ended(&self, now: i64) -> Option<&'static str> {
        self.realms.lapsed(&self.claims, now)
    }
}

impl Credential for Token {
    fn lapsed(&self, now: u128) -> Option<&'static str> {
        let now = i64::try_from(now / 1_000_000_000).unwrap_or(i64::MAX);
        match now >= self.expires {
            true => Some("the token has expired"),
            false => self.ended(now),
        }
    }
}

/// Verified tokens of one issuer.
pub(crate) struct Tokens {
    shards: [Mutex<Shard>; SHARDS],
    max: usize,
}

/// Two ages: what is used moves to the young, and when there are enough of those, they become the old and the old go. So what is
/// in use stays, whatever comes once.
#[derive(Default)]
struct Shard {
    young: HashMap<[u8; 32], Verified>,
    old: HashMap<[u8; 32], Verified>,
}

#[derive(Clone)]
struct Verified {
    token: Arc<Token>,
    not_before: i64,
    /// Of the keys that verified it.
    generation: u64,
}

impl Tokens {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            max: (max / SHARDS / 2).max(1),
        }
    }

    /// A token that was verified by the same keys and is still good.
    pub(crate) fn find(&self, token: &str, now: i64, generation: u64) -> Option<Arc<Token>> {
        let hash = hash(token);
        let mut shard = lock(self.shard(&hash));
        if !shard.young.contains_key(&hash) {
            let verified = shard.old.remove(&hash)?;
            self.insert(&mut shard, hash, verified);
        }
        let verified = shard.young.get(&hash)?;
        let is_good =
            verified.generation == generation && now < verified.token.expires && now >= verified.not_before;
        is_good.then(|| Arc::clone(&verified.token))
    }

    pub(crate) fn keep(&self, token: &str, verified: Arc<Token>, now: i64, generation: u64) {
        let hash = hash(token);
        let verified = Verified {
            token: verified,
            // A clock that goes back must not make a token good before its time.
            not_before: now.saturating_sub(60),
            generation,
        };
        self.insert(&mut lock(self.shard(&hash)), hash, verified);
    }

    fn insert(&self, shard: &mut Shard, hash: [u8; 32], verified: Verified) {
        if shard.young.len() >= self.max {
            shard.old = std::mem::take(&mut shard.young);
        }
        shard.young.insert(hash, verified);
    }

    pub(crate) fn sweep(&self, now: i64) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            shard.young.retain(|_, verified| verified.token.expires > now);
            shard.old.retain(|_, verified| verified.token.expires > now);
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let shards = self.shards.iter().map(lock);
        shards.map(|shard| shard.young.len() + shard.old.len()).sum()
    }

    fn shard(&self, hash: &[u8; 32]) -> &Mutex<Shard> {
        &self.shards[usize::from(hash[0]) % SHARDS]
    }
}

fn hash(token: &str) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::outside::NoRealms;

    #[test]
    fn what_is_in_use_stays_whatever_comes_once() {
        let tokens = Tokens::new(320);
        let realms: Arc<dyn Realms> = Arc::new(NoRealms);
        let (used, known) = (["a", "b", "c"], Arc::new(Token::new(json!({}), 100, &realms)));
        let keep = |token: &str| tokens.keep(token, known.clone(), 0, 1);
        used.iter().for_each(|token| keep(token));
        for stranger in 0..5_000 {
            keep(&format!("stranger-{stranger}"));
            assert!(
                used.iter().all(|token| tokens.find(token, 0, 1).is_some()),
                "{stranger}"
            );
        }
        assert!(tokens.len() <= 320, "{}", tokens.len());
        // Those that came last are known, too.
        let last = (4_950..5_000).filter(|n| tokens.find(&format!("stranger-{n}"), 0, 1).is_some());
        assert_eq!(last.count(), 50);
    }
}
