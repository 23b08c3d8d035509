//! Nodes that are not heard of: what is said of them, and what becomes of their machines.
//!
//! A machine must never run twice at the same time. So it is let go from a node only when nothing of it can run there any
//! more: because whoever looks after it there has promised to end it when the node's lease is not renewed, and the time
//! for that has passed, or because an operator says so by the taint `node.kubernetes.io/out-of-service`.
//!
//! How long a node was silent is measured by this process's own clock, from the moment at which it saw the lease change:
//! clocks of nodes do not matter, and whoever has just started waits the whole time.

mod decide;
mod keeper;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use tokio::time::Instant;

pub(crate) use decide::OUT_OF_SERVICE;
pub(crate) use keeper::Keeper;

/// How long nodes may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// From then on a node counts as lost.
    pub grace: Duration,
    /// What is added to the time after which machines of a lost node have ended.
    pub margin: Duration,
}

impl Default for Patience {
    /// Nodes renew their leases every ten seconds.
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(40),
            margin: Duration::from_secs(15),
        }
    }
}

/// When nodes were last heard of.
#[derive(Default)]
pub(crate) struct Heard(Mutex<HashMap<String, Sign>>);

/// The last sign of a node.
#[derive(Clone, Debug)]
struct Sign {
    /// What the lease said.
    renewed: String,
    /// When it was first seen to say so.
    at: Instant,
    /// After so many seconds without another its machines have ended; nothing if the node cannot promise that.
    fence: Option<u64>,
    /// It counts as lost.
    lost: bool,
    /// An operator says that nothing runs there any more.
    told: bool,
}

impl Sign {
    fn new(renewed: &str) -> Self {
        Self {
            renewed: renewed.to_owned(),
            at: Instant::now(),
            fence: None,
            lost: false,
            told: false,
        }
    }
}

impl Heard {
    fn signs(&self) -> MutexGuard<'_, HashMap<String, Sign>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a lease; whether that is news of a node that counts as lost.
    pub(crate) fn lease(&self, lease: &Lease) -> bool {
        let Some(name) = lease.metadata.name.as_deref() else {
            return false;
        };
        let renewed = lease.spec.as_ref().and_then(|it| it.renew_time.as_ref());
        let renewed = renewed.map(|it| it.0.to_string()).unwrap_or_default();
        self.note(name, &renewed)
    }

    fn note(&self, name: &str, renewed: &str) -> bool {
        let mut signs = self.signs();
        let sign = signs.entry(name.to_owned()).or_insert_with(|| Sign::new(renewed));
        if sign.renewed == renewed {
            return false;
        }
        renewed.clone_into(&mut sign.renewed);
        sign.at = Instant::now();
        sign.lost
    }

    /// How long a node has been silent. One that was never heard of is silent from now on.
    fn silence(&self, name: &str) -> Duration {
        let mut signs = self.signs();
        let sign = signs.entry(name.to_owned()).or_insert_with(|| Sign::new(""));
        sign.at.elapsed()
    }

    /// Whether a node counts as lost.
    pub(crate) fn is_lost(&self, name: &str, patience: Patience) -> bool {
        self.silence(name) >= patience.grace
    }

    /// Whether nothing of a node's machines can run any more.
    pub(crate) fn has_ended(&self, name: &str, patience: Patience) -> bool {
        let silence = self.silence(name);
        let (promised, told) = {
            let signs = self.signs();
            let sign = signs.get(name);
            (sign.and_then(|it| it.fence), sign.is_some_and(|it| it.told))
        };
        let promised = promised.map(|it| Duration::from_secs(it).max(patience.grace) + patience.margin);
        silence >= patience.grace && (told || promised.is_some_and(|it| silence >= it))
    }

    /// Remembers what a node promised, whether it counts as lost, and whether an operator has given it up.
    fn remember(&self, name: &str, fence: Option<u64>, lost: bool, told: bool) {
        if let Some(sign) = self.signs().get_mut(name) {
            sign.fence = fence;
            sign.lost = lost;
            sign.told = told;
        }
    }

    /// Whether an operator had given a node up.
    fn told(&self, name: &str) -> bool {
        self.signs().get(name).is_some_and(|it| it.told)
    }

    /// What a node promised when there was one.
    fn promised(&self, name: &str) -> Option<u64> {
        self.signs().get(name).and_then(|it| it.fence)
    }

    fn forget(&self, name: &str) {
        self.signs().remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn silence_counts_from_the_last_change_that_was_seen() {
        let heard = Heard::default();
        assert!(!heard.note("n1", "t0"));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert!(!heard.note("n1", "t0"), "the same again is no sign");
        assert_eq!(heard.silence("n1"), Duration::from_secs(30));
        heard.remember("n1", Some(40), true, false);
        assert!(heard.note("n1", "t1"), "a node that was lost is back");
        assert_eq!(heard.silence("n1"), Duration::ZERO);
        assert_eq!(heard.promised("n1"), Some(40));
        assert_eq!(heard.silence("n2"), Duration::ZERO);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(heard.silence("n2"), Duration::from_secs(5));
        let patience = Patience::default();
        tokio::time::advance(Duration::from_secs(49)).await;
        assert!(heard.is_lost("n1", patience) && !heard.has_ended("n1", patience));
        heard.remember("n1", None, true, true);
        assert!(heard.has_ended("n1", patience), "an operator says so");
        heard.remember("n1", Some(40), true, false);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(heard.has_ended("n1", patience));
        heard.remember("n1", None, true, false);
        assert!(!heard.has_ended("n1", patience), "nobody promised anything");
        heard.forget("n1");
        assert_eq!(heard.promised("n1"), None);
    }
}
