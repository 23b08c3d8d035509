//! The leases of a store and the keys that hang on them: pure, with time passed in.
//!
//! As in etcd, only the existence and the time to live of a lease are durable, not how much of it is left: when a store
//! is opened, every lease starts again with its full time. So a renewal costs no write.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;

use crate::api::{Event, EventKind, LeaseId, StoreError};
use crate::evaluate::LeaseCheck;

/// etcd's limit, some 285 years.
const MAX_TTL_SECONDS: u64 = 9_000_000_000;

/// How long an expiry waits that could not be written.
const RETRY_EXPIRY: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Lease {
    ttl: Duration,
    deadline: Duration,
    keys: BTreeSet<Bytes>,
}

#[derive(Debug, Default)]
pub(crate) struct Leases {
    leases: BTreeMap<LeaseId, Lease>,
    deadlines: BTreeSet<(Duration, LeaseId)>,
    last: i64,
}

impl Leases {
    /// Takes up what an engine kept.
    pub(crate) fn load(leases: Vec<(LeaseId, u64)>, last: i64, now: Duration) -> Self {
        let mut this = Self {
            last,
            ..Self::default()
        };
        for (lease, ttl) in leases {
            this.insert(lease, ttl, now);
        }
        this
    }

    /// The number that the next lease gets.
    pub(crate) fn next(&self) -> LeaseId {
        LeaseId(self.last + 1)
    }

    /// A time to live within the limits; 0 counts as the shortest there is.
    pub(crate) fn check_ttl(seconds: u64) -> Result<u64, StoreError> {
        if seconds > MAX_TTL_SECONDS {
            let size = usize::try_from(seconds).unwrap_or(usize::MAX);
            return Err(StoreError::TooLarge {
                what: "the lease's TTL",
                size,
                limit: MAX_TTL_SECONDS as usize,
            });
        }
        Ok(seconds.max(1))
    }

    pub(crate) fn insert(&mut self, lease: LeaseId, ttl_seconds: u64, now: Duration) {
        let ttl = Duration::from_secs(ttl_seconds);
        let deadline = now + ttl;
        self.last = self.last.max(lease.0);
        self.deadlines.insert((deadline, lease));
        self.leases.insert(
            lease,
            Lease {
                ttl,
                deadline,
                keys: BTreeSet::new(),
            },
        );
    }

    pub(crate) fn renew(&mut self, id: LeaseId, now: Duration) -> Result<(), StoreError> {
        let lease = self.leases.get_mut(&id).ok_or(StoreError::LeaseNotFound(id))?;
        self.deadlines.remove(&(lease.deadline, id));
        lease.deadline = now + lease.ttl;
        self.deadlines.insert((lease.deadline, id));
        Ok(())
    }

    /// Tries an expiry again a little later.
    pub(crate) fn postpone(&mut self, id: LeaseId, now: Duration) {
        if let Some(lease) = self.leases.get_mut(&id) {
            self.deadlines.remove(&(lease.deadline, id));
            lease.deadline = now + RETRY_EXPIRY;
            self.deadlines.insert((lease.deadline, id));
        }
    }

    pub(crate) fn keys(&self, id: LeaseId) -> Result<Vec<Bytes>, StoreError> {
        let lease = self.leases.get(&id).ok_or(StoreError::LeaseNotFound(id))?;
        Ok(lease.keys.iter().cloned().collect())
    }

    pub(crate) fn remove(&mut self, id: LeaseId) {
        if let Some(lease) = self.leases.remove(&id) {
            self.deadlines.remove(&(lease.deadline, id));
        }
    }

    /// When the next lease ends.
    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// A lease whose time is up.
    pub(crate) fn expired(&self, now: Duration) -> Option<LeaseId> {
        self.deadlines
            .first()
            .filter(|(deadline, _)| *deadline <= now)
            .map(|(_, lease)| *lease)
    }

    pub(crate) fn attach(&mut self, lease: LeaseId, key: &Bytes) {
        if let Some(lease) = self.leases.get_mut(&lease) {
            lease.keys.insert(key.clone());
        }
    }

    /// Moves keys between leases as a change says.
    pub(crate) fn follow(&mut self, event: &Event) {
        let before = event.prev.as_ref().and_then(|prev| prev.lease);
        let after = event.kv.lease.filter(|_| event.kind == EventKind::Put);
        if before == after {
            return;
        }
        if let Some(lease) = before.and_then(|lease| self.leases.get_mut(&lease)) {
            lease.keys.remove(&event.kv.key);
        }
        if let Some(lease) = after {
            self.attach(lease, &event.kv.key);
        }
    }
}

impl LeaseCheck for Leases {
    fn exists(&self, lease: LeaseId) -> bool {
        self.leases.contains_key(&lease)
    }
}
