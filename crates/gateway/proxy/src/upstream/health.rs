//! Whether an endpoint is asked: what became of requests (ejection for a while), and what checks found.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::options::Outliers;

#[derive(Default)]
pub(crate) struct Health {
    /// In a row.
    failures: AtomicU32,
    /// How often it was ejected without a success between.
    ejections: AtomicU32,
    /// Milliseconds of the proxy's clock; before that nobody asks.
    until: AtomicU64,
    /// Checks say it is down.
    down: AtomicBool,
    checks: AtomicU32,
    /// Milliseconds of the proxy's clock; when a check is due.
    check_at: AtomicU64,
}

impl Health {
    pub(crate) fn is_up(&self, now: u64) -> bool {
        self.until.load(Ordering::Relaxed) <= now && !self.down.load(Ordering::Relaxed)
    }

    pub(crate) fn succeeded(&self) {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
            self.ejections.store(0, Ordering::Relaxed);
        }
    }

    /// True if this failure is the one that ejects.
    pub(crate) fn failed(&self, now: u64, policy: &Outliers) -> bool {
        if policy.failures == 0 {
            return false;
        }
        let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
        if failures < policy.failures || self.until.load(Ordering::Relaxed) > now {
            return false;
        }
        let before = self.ejections.fetch_add(1, Ordering::Relaxed);
        let millis = u64::try_from(ejection(policy, before).as_millis()).unwrap_or(u64::MAX);
        self.until.store(now.saturating_add(millis), Ordering::Relaxed);
        // After its time it has one chance before it is ejected again, for longer.
        self.failures.store(policy.failures - 1, Ordering::Relaxed);
        true
    }

    /// Whether a check is due; if so, the next one is after `interval`.
    pub(crate) fn is_due(&self, now: u64, interval: Duration) -> bool {
        if self.check_at.load(Ordering::Relaxed) > now {
            return false;
        }
        let interval = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        self.check_at
            .store(now.saturating_add(interval), Ordering::Relaxed);
        true
    }

    /// What a check found. True if that changes whether it is asked.
    pub(crate) fn checked(&self, well: bool, healthy: u32, unhealthy: u32) -> bool {
        let down = self.down.load(Ordering::Relaxed);
        if well != down {
            // As before: the count of the other kind begins anew.
            self.checks.store(0, Ordering::Relaxed);
            return false;
        }
        let seen = self.checks.fetch_add(1, Ordering::Relaxed) + 1;
        if seen < if well { healthy } else { unhealthy } {
            return false;
        }
        self.checks.store(0, Ordering::Relaxed);
        self.down.store(!well, Ordering::Relaxed);
        true
    }
}

/// Each time twice as long.
fn ejection(policy: &Outliers, before: u32) -> Duration {
    policy
        .base
        .saturating_mul(1_u32.checked_shl(before).unwrap_or(u32::MAX))
        .min(policy.longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ejected_for_longer_each_time() {
        let policy = Outliers {
            failures: 3,
            base: Duration::from_secs(5),
            longest: Duration::from_secs(12),
        };
        let health = Health::default();
        assert!(
            !health.failed(0, &policy) && !health.failed(0, &policy),
            "two are forgiven"
        );
        health.succeeded();
        assert!(
            !health.failed(0, &policy) && !health.failed(0, &policy),
            "and forgotten after a success"
        );
        assert!(health.failed(0, &policy), "three in a row are not");
        assert!(!health.is_up(4_999) && health.is_up(5_000), "five seconds");
        assert!(
            !health.failed(100, &policy),
            "those on their way when it was ejected count no further"
        );
        assert!(health.failed(5_000, &policy), "one more failure ejects at once");
        assert!(!health.is_up(14_999) && health.is_up(15_000), "for twice as long");
        assert!(health.failed(15_000, &policy));
        assert!(
            health.is_up(15_000 + 12_000),
            "and never for longer than the longest"
        );
        health.succeeded();
        assert!(!health.failed(40_000, &policy), "a success starts over");
    }

    #[test]
    fn checks_need_several_in_a_row() {
        let health = Health::default();
        for (well, changes, up, reason) in [
            (false, false, true, "one failure"),
            (true, false, true, "a success between"),
            (false, false, true, "one again"),
            (false, true, false, "two in a row"),
            (true, false, false, "one success"),
            (true, true, true, "two in a row"),
        ] {
            assert_eq!(
                (health.checked(well, 2, 2), health.is_up(0)),
                (changes, up),
                "{reason}"
            );
        }
    }

    #[test]
    fn ejection_can_be_off() {
        let policy = Outliers {
            failures: 0,
            ..Outliers::default()
        };
        let health = Health::default();
        assert!((0..100).all(|_| !health.failed(0, &policy)) && health.is_up(0));
    }
}
