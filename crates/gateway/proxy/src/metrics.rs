//! What is counted, and how Prometheus reads it. Labels come from the table and from policies, never from clients, and there
//! are at most so many of each.

mod text;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fairway_gateway_routes::table::{RuleKey, Table};

pub(crate) use text::exposition;

/// Upper bounds of the histogram's buckets, in microseconds.
pub(crate) const BUCKETS: [u64; 12] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000,
];

/// Policies that are told apart.
const MOST_POLICIES: usize = 1_000;

/// Requests, errors and durations of one rule.
#[derive(Debug, Default)]
pub(crate) struct RuleMetrics {
    /// By the first digit of the status; zero is for those that had none, because the client left.
    pub(crate) by_class: [AtomicU64; 6],
    /// The last is for all that took longer.
    pub(crate) buckets: [AtomicU64; 13],
    pub(crate) micros: AtomicU64,
    /// What the rule's policies said, by [`VERDICTS`].
    pub(crate) judged: [AtomicU64; 3],
    /// How long they took.
    pub(crate) judging_nanos: AtomicU64,
}

/// A policy that is missing or fails refuses, too, and is told apart.
pub(crate) const VERDICTS: [&str; 3] = ["allowed", "denied", "failed"];

/// One of [`VERDICTS`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Judged {
    Allowed,
    Denied,
    Failed,
}

impl RuleMetrics {
    pub(crate) fn judged(&self, verdict: Judged, took: Duration) {
        self.judged[verdict as usize].fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.judging_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    pub(crate) fn count(&self, status: u16, took: Duration) {
        let class = usize::from(status / 100).min(5);
        self.by_class[class].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS.partition_point(|bound| *bound < micros);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }
}

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident),+ $(,)?) => {
        /// What is counted for the whole proxy.
        #[derive(Debug, Default)]
        pub(crate) struct Totals {
            $($(#[doc = $doc])+ pub(crate) $name: AtomicU64,)+
        }

        impl Totals {
            /// Name, help and value of each.
            pub(crate) fn all(&self) -> Vec<(&'static str, &'static str, u64)> {
                vec![$((stringify!($name), concat!($($doc),+).trim_ascii(), self.$name.load(Ordering::Relaxed)),)+]
            }
        }
    };
}

counters! {
    /// Connections of clients that were accepted.
    connections_accepted,
    /// Connections of clients that have ended.
    connections_closed,
    /// Connections that were turned away because there were too many.
    connections_refused,
    /// Connections that were turned away because their client had too many.
    connections_refused_by_client,
    /// Handshakes that failed or had a name that nobody serves.
    tls_failures,
    /// Requests that were refused because they were malformed, too large or too slow.
    bad_requests,
    /// Requests that no listener or route was meant for.
    unrouted_requests,
    /// Requests refused because a guard was missing or failed.
    guard_failures,
    /// Tunnels and streams that were ended because what had let them through counted no longer.
    permits_lost,
    /// Attempts at a backend that failed to connect.
    upstream_connect_failures,
    /// Answers of backends that never came or were malformed.
    upstream_failures,
    /// Further attempts after a failed one.
    upstream_retries,
    /// Requests turned away because an endpoint carries all it may.
    upstream_overflows,
    /// Endpoints left out because of failures in a row.
    upstream_ejections,
    /// Mirrored requests.
    mirrored_requests,
    /// Mirrored requests that were given up.
    mirror_failures,
    /// Lines of the access log that were dropped because its writer fell behind.
    access_log_dropped,
    /// Tables that were applied.
    reloads,
}

#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) totals: Totals,
    rules: Mutex<HashMap<RuleKey, Arc<RuleMetrics>>>,
    /// For rules beyond those that are told apart.
    others: Arc<RuleMetrics>,
    denials: Mutex<BTreeMap<String, u64>>,
    most_rules: usize,
}

impl Metrics {
    pub(crate) fn new(most_rules: usize) -> Self {
        Self {
            totals: Totals::default(),
            rules: Mutex::default(),
            others: Arc::default(),
            denials: Mutex::default(),
            most_rules,
        }
    }

    pub(crate) fn rule(&self, key: &RuleKey) -> Arc<RuleMetrics> {
        let Ok(mut rules) = self.rules.lock() else {
            return Arc::clone(&self.others);
        };
        if let Some(known) = rules.get(key) {
            return Arc::clone(known);
        }
        if rules.len() >= self.most_rules {
            return Arc::clone(&self.others);
        }
        Arc::clone(rules.entry(key.clone()).or_default())
    }

    /// Whether a rule that was counted among others can be told apart by now.
    pub(crate) fn has_room_for(&self, counted: &Arc<RuleMetrics>) -> bool {
        let has_room = || self.rules.lock().is_ok_and(|rules| rules.len() < self.most_rules);
        Arc::ptr_eq(counted, &self.others) && has_room()
    }

    /// Rules that a new table does not have make room for others.
    pub(crate) fn forget_others(&self, _: &Table) {
        if let Ok(mut rules) = self.rules.lock() {
            // Whoever still counts holds it: the plan in force and the one before, while requests use it.
            if rules.len() >= self.most_rules {
                rules.retain(|_, metrics| Arc::strong_count(metrics) > 1);
            }
        }
    }

    pub(crate) fn denied(&self, policy: &str) {
        let Ok(mut denials) = self.denials.lock() else {
            return;
        };
        if let Some(count) = denials.get_mut(policy) {
            *count += 1;
        } else {
            let name = if denials.len() < MOST_POLICIES {
                policy
            } else {
                "other"
            };
            *denials.entry(name.to_owned()).or_default() += 1;
        }
    }
}

pub(crate) fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
