//! Counters of rate limits: fixed windows that begin with the first request, as Limitador's in memory are.
//!
//! A request is counted by all of its counters or by none: it is first looked whether it fits into every one. Counters of one
//! request may lie in several shards, which are locked in order, so that counting is exact however many come at once. The
//! number of counters is bounded. When it is reached, those whose time has passed go first, then of some the least used one: who
//! sends made-up names to push others out pushes out his own.

use std::borrow::Cow;
use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use fairway_gateway_policy::limit::Rate;
use hashbrown::HashTable;
use smallvec::SmallVec;

use crate::{is_recent, lock};

const SHARDS: usize = 64;
/// Of how many counters the least used one goes.
const SAMPLE: usize = 16;

/// Most requests belong to so many counters or fewer, and allocate nothing for their list.
pub(crate) type Few<T> = SmallVec<[T; 4]>;

/// Counters by the hash of their key, which is known before it is looked up: a key is hashed once for a request, and one that
/// is the same for every request once for all.
type Shard = HashTable<Counter>;

/// All counters.
pub struct Limiter {
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
    max: usize,
    /// When a counter last had to go before its time: seconds since 1970.
    dropped: AtomicU64,
}

#[derive(Debug)]
struct Counter {
    key: Box<str>,
    hash: u64,
    count: u64,
    /// Nanoseconds since 1970.
    expires: u128,
}

/// A counter that a request belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hit<'a> {
    /// Scope, window and the values that are counted apart.
    pub(crate) key: Cow<'a, str>,
    /// Of the key, by [`Limiter::hash`].
    pub(crate) hash: u64,
    pub(crate) rate: Rate,
}

impl Hit<'_> {
    fn is_of(&self, counter: &Counter) -> bool {
        *counter.key == *self.key
    }
}

/// What a counter says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) rate: Rate,
    pub(crate) remaining: u64,
    /// Seconds until it starts over.
    pub(crate) reset: u64,
    /// The request does not fit.
    pub(crate) is_over: bool,
}

/// A counter, as people are shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterView {
    /// Scope, window in seconds, and values.
    pub key: String,
    pub count: u64,
    /// Seconds until it starts over.
    pub reset: u64,
}

impl Limiter {
    pub fn new(max: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            max: (max / SHARDS).max(1),
            dropped: AtomicU64::new(0),
        }
    }

    pub(crate) fn hash(&self, key: &str) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Whether a request fits; if it does and it `counts`, it is counted: once by each counter, however many hits share it.
    pub(crate) fn check(&self, hits: &[Hit<'_>], now: u128, counts: bool) -> Few<Reading> {
        let places: Few<usize> = hits.iter().map(|hit| place(hit.hash)).collect();
        let mut order = places.clone();
        order.sort_unstable();
        order.dedup();
        let may_share = order.len() < hits.len();
        let mut locked: Few<(usize, MutexGuard<'_, Shard>)> = order
            .into_iter()
            .map(|place| (place, lock(&self.shards[place])))
            .collect();
        let mut readings = Few::with_capacity(hits.len());
        for (hit, place) in hits.iter().zip(&places) {
            let shard = locked.iter().find(|(at, _)| at == place).map(|(_, shard)| shard);
            let running = shard
                .and_then(|shard| shard.find(hit.hash, |counter| hit.is_of(counter)))
                .filter(|counter| counter.expires > now);
            let count = running.map_or(0, |counter| counter.count);
            let left = running.map_or(hit.rate.window.as_nanos(), |counter| counter.expires - now);
            readings.push(Reading {
                rate: hit.rate,
                remaining: hit.rate.limit.saturating_sub(count),
                reset: u64::try_from(left / 1_000_000_000).unwrap_or(u64::MAX),
                is_over: count >= hit.rate.limit,
            });
        }
        if !counts || readings.iter().any(|reading| reading.is_over) {
            return readings;
        }
        let mut counted = HashSet::new();
        for ((hit, place), reading) in hits.iter().zip(&places).zip(&mut readings) {
            reading.remaining = reading.remaining.saturating_sub(1);
            if may_share && !counted.insert(&*hit.key) {
                continue;
            }
            if let Some((_, shard)) = locked.iter_mut().find(|(at, _)| at == place) {
                self.count(shard, hit, now);
            }
        }
        readings
    }

    fn count(&self, shard: &mut Shard, hit: &Hit<'_>, now: u128) {
        let expires = now.saturating_add(hit.rate.window.as_nanos());
        if let Some(counter) = shard.find_mut(hit.hash, |counter| hit.is_of(counter)) {
            if counter.expires > now {
                counter.count += 1;
            } else {
                (counter.count, counter.expires) = (1, expires);
            }
            return;
        }
        if shard.len() >= self.max {
            shard.retain(|counter| counter.expires > now);
        }
        if shard.len() >= self.max {
            // From anywhere: always from the beginning would mean that those who came last go first.
            let from = self.hasher.hash_one(now) as usize % shard.len();
            let sample = shard.iter().skip(from).chain(shard.iter()).take(SAMPLE);
            let least = sample.min_by_key(|counter| counter.count);
            let least = least.map(|counter| (counter.hash, counter.key.clone()));
            if let Some((hash, key)) = least
                && let Ok(found) = shard.find_entry(hash, |counter| counter.key == key)
            {
                found.remove();
            }
            let seconds = u64::try_from(now / 1_000_000_000).unwrap_or(u64::MAX);
            self.dropped.store(seconds, Ordering::Relaxed);
        }
        let counter = Counter {
            key: hit.key.as_ref().into(),
            hash: hit.hash,
            count: 1,
            expires,
        };
        shard.insert_unique(hit.hash, counter, |counter| counter.hash);
    }

    /// Whether a counter had to go before its time lately. `now` is seconds since 1970.
    pub(crate) fn has_dropped(&self, now: u64) -> bool {
        is_recent(self.dropped.load(Ordering::Relaxed), now)
    }

    pub(crate) fn sweep(&self, now: u128) {
        for shard in &self.shards {
            lock(shard).retain(|counter| counter.expires > now);
        }
    }

    pub(crate) fn view(&self, now: u128) -> Vec<CounterView> {
        let mut views: Vec<CounterView> = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            let running = shard.iter().filter(|counter| counter.expires > now);
            views.extend(running.map(|counter| CounterView {
                key: counter.key.to_string(),
                count: counter.count,
                reset: u64::try_from((counter.expires - now) / 1_000_000_000).unwrap_or(u64::MAX),
            }));
        }
        views.sort_by(|a, b| a.key.cmp(&b.key));
        views
    }
}

/// In which shard: by other bits than those by which a shard finds a counter.
fn place(hash: u64) -> usize {
    (hash >> 32) as usize % SHARDS
}

#[cfg(test)]
mod tests;
