//! What a connection over HTTP/2 is busy with, on either side: how many streams it has, when the last thing happened, and
//! whether all of them wait for a client that takes nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

pub(crate) struct Activity {
    begun: Instant,
    streams: AtomicUsize,
    /// Streams that have handed over a piece and were not asked for the next one.
    waiting: AtomicUsize,
    /// Milliseconds since it began, when something happened last.
    last: AtomicU64,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            streams: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            last: AtomicU64::new(0),
        }
    }

    /// Counts a stream in.
    pub(crate) fn open(activity: &Arc<Self>) -> Open {
        activity.streams.fetch_add(1, Ordering::Relaxed);
        activity.touch();
        Open {
            activity: Arc::clone(activity),
            waits: false,
        }
    }

    pub(crate) fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    fn touch(&self) {
        let millis = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(millis, Ordering::Relaxed);
    }

    fn last(&self) -> Instant {
        self.begun + Duration::from_millis(self.last.load(Ordering::Relaxed))
    }

    /// When it will have been without streams for so long, if nothing happens; what has passed means that it has been.
    pub(crate) fn idle_at(&self, idle: Duration) -> Instant {
        match self.streams() {
            0 => self.last() + idle,
            _ => Instant::now() + idle,
        }
    }

    /// When nothing will have been taken of any stream for so long. A stream that waits for its backend keeps the others: a
    /// connection cannot be ended in part from outside.
    pub(crate) fn stalled_at(&self, longest: Duration) -> Instant {
        let streams = self.streams();
        if streams > 0 && self.waiting.load(Ordering::Relaxed) >= streams {
            self.last() + longest
        } else {
            Instant::now() + longest
        }
    }
}

/// A stream that is open.
pub(crate) struct Open {
    activity: Arc<Activity>,
    waits: bool,
}

impl Open {
    /// A piece was handed over; the next one is asked for when the other side has room.
    pub(crate) fn handed_over(&mut self) {
        self.set(true);
    }

    /// There is room for a piece.
    pub(crate) fn asked(&mut self) {
        self.set(false);
    }

    fn set(&mut self, waits: bool) {
        if self.waits == waits {
            return;
        }
        self.waits = waits;
        self.activity.touch();
        if waits {
            self.activity.waiting.fetch_add(1, Ordering::Relaxed);
        } else {
            self.activity.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.set(false);
        self.activity.touch();
        self.activity.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_idle_and_what_is_stalled() {
        let activity = Arc::new(Activity::new());
        let short = Duration::ZERO;
        let passed = |at: Instant| at <= Instant::now();
        let later = Duration::from_secs(60);
        assert!(
            passed(activity.idle_at(short)) && !passed(activity.idle_at(later)),
            "nothing began"
        );
        assert!(
            !passed(activity.stalled_at(later)),
            "without streams nobody waits"
        );
        let mut one = Activity::open(&activity);
        assert_eq!(activity.streams(), 1);
        one.handed_over();
        assert!(passed(activity.stalled_at(short)), "the only one waits");
        let two = Activity::open(&activity);
        assert!(
            !passed(activity.stalled_at(later)),
            "another one may be waiting for its backend"
        );
        drop(two);
        one.asked();
        one.asked();
        assert!(!passed(activity.stalled_at(later)), "it was asked for more");
        one.handed_over();
        drop(one);
        assert_eq!(activity.waiting.load(Ordering::Relaxed), 0);
        assert!(passed(activity.idle_at(short)), "idle again");
    }
}
