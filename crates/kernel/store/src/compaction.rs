//! When to compact: a pure schedule, in the manner of kube-apiserver, which forgets history older than five minutes.

use std::collections::VecDeque;
use std::time::Duration;

use crate::api::Revision;

/// How long history is kept unless told otherwise.
pub const DEFAULT_RETENTION: Duration = Duration::from_secs(5 * 60);

/// The most points in time that are remembered, so that history is cut in steps of a twentieth of the retention.
const STEPS: u32 = 20;

/// Remembers at what time the store was at what revision, and says what is old enough to be forgotten.
#[derive(Clone, Debug)]
pub struct CompactionSchedule {
    retention: Duration,
    points: VecDeque<(Duration, Revision)>,
    compacted: Revision,
}

impl Default for CompactionSchedule {
    fn default() -> Self {
        Self::new(DEFAULT_RETENTION)
    }
}

impl CompactionSchedule {
    /// Keeps history for at least this long.
    #[must_use]
    pub fn new(retention: Duration) -> Self {
        Self {
            retention,
            points: VecDeque::new(),
            compacted: Revision(0),
        }
    }

    /// How often `observe` wants to be called.
    #[must_use]
    pub fn interval(&self) -> Duration {
        (self.retention / STEPS).max(Duration::from_millis(100))
    }

    /// Notes the store's revision at a time (of any clock that does not go back), and returns the revision to compact
    /// at, if there is one: what the store was at `retention` ago.
    pub fn observe(&mut self, now: Duration, revision: Revision) -> Option<Revision> {
        if self
            .points
            .back()
            .is_none_or(|(at, _)| *at + self.interval() <= now)
        {
            self.points.push_back((now, revision));
        }
        let mut due = None;
        while let Some((at, revision)) = self.points.front().copied()
            && at + self.retention <= now
        {
            due = Some(revision);
            self.points.pop_front();
        }
        due = due.filter(|revision| *revision > self.compacted);
        self.compacted = due.unwrap_or(self.compacted);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn history_is_kept_for_the_retention_and_not_much_longer() {
        let mut schedule = CompactionSchedule::default();
        let mut compacted = Revision(0);
        for second in 0..3600 {
            // Ten writes a second.
            let due = schedule.observe(SECOND * second, Revision(u64::from(second) * 10));
            if let Some(revision) = due {
                assert!(revision > compacted);
                compacted = revision;
            }
            let kept = u64::from(second) - compacted.0 / 10;
            assert!(
                second < 300 || (300..=316).contains(&kept),
                "{kept} seconds at {second}"
            );
            assert!(second >= 300 || compacted == Revision(0));
        }
        assert!(schedule.points.len() <= 21);
    }

    #[test]
    fn a_quiet_store_is_left_alone() {
        let mut schedule = CompactionSchedule::new(SECOND * 10);
        let due: Vec<_> = (0..100)
            .filter_map(|n| schedule.observe(SECOND * n, Revision(5)))
            .collect();
        assert_eq!(due, [Revision(5)]);
    }

    #[test]
    fn a_long_pause_cuts_once() {
        let mut schedule = CompactionSchedule::new(SECOND * 10);
        assert_eq!(schedule.observe(SECOND, Revision(1)), None);
        assert_eq!(schedule.observe(SECOND * 2, Revision(2)), None);
        assert_eq!(schedule.observe(SECOND * 500, Revision(9)), Some(Revision(2)));
        assert_eq!(schedule.observe(SECOND * 505, Revision(9)), None);
    }
}
