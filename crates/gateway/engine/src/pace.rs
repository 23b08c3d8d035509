//! How soon a change is served: at once if nothing was built lately, and else after a rest that grows with what building takes,
//! so that however many changes come, they take a third of one core: more only where a build takes longer than a second, as nobody
//! waits for ever.

use std::time::Duration;

use tokio::time::Instant;

/// A burst of changes is one table.
const SETTLE: Duration = Duration::from_millis(2);
/// Between two builds, for each time that the first one took.
const REST: u32 = 2;
/// Nobody waits longer for a change to be looked at.
const LONGEST: Duration = Duration::from_secs(2);

/// When the last build was over, and how long whoever comes next has to wait.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    rested: Option<Instant>,
}

impl Pace {
    /// A build has ended.
    pub(crate) fn built(&mut self, took: Duration, now: Instant) {
        self.rested = Some(now + (took * REST).min(LONGEST));
    }

    /// When to build what has changed now.
    pub(crate) fn due(&self, now: Instant) -> Instant {
        let settled = now + SETTLE;
        self.rested.map_or(settled, |rested| rested.max(settled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_waits_only_where_much_was_built_just_now() {
        let millis = Duration::from_millis;
        for (took, since, waits, reason) in [
            (None, 0, 2, "nothing was built yet"),
            (Some(1), 0, 2, "it is small"),
            (Some(10), 0, 20, "some hundred routes, right after"),
            (Some(10), 15, 5, "a part of the rest is over"),
            (Some(300), 0, 600, "many thousand routes, right after"),
            (Some(300), 10_000, 2, "many thousand, and nothing for a while"),
            (Some(5_000), 0, 2_000, "nobody waits for ever"),
        ] {
            let begun = Instant::now();
            let mut pace = Pace::default();
            if let Some(took) = took {
                pace.built(millis(took), begun);
            }
            let now = begun + millis(since);
            assert_eq!(pace.due(now) - now, millis(waits), "{reason}");
        }
    }

    #[test]
    fn a_storm_takes_a_share_of_a_core() {
        for took in [5, 50, 300, 900] {
            let took = Duration::from_millis(took);
            let begun = Instant::now();
            let (mut pace, mut now, mut built) = (Pace::default(), begun, Duration::ZERO);
            // A change is there whenever one is looked for.
            while now - begun < Duration::from_secs(60) {
                now = pace.due(now) + took;
                pace.built(took, now);
                built += took;
            }
            let share = built.as_secs_f64() / (now - begun).as_secs_f64();
            assert!(share < 0.35, "{took:?}: {share}");
        }
    }
}
