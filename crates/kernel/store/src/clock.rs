//! Time as leases see it, so that tests can turn the clock by hand.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Called when a clock that is set by hand has been set.
pub type OnSet = Box<dyn Fn() + Send + Sync>;

/// A clock that never goes back.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Time since some fixed moment.
    fn now(&self) -> Duration;

    /// Asks to be told when time jumps. A clock that runs by itself never calls back.
    fn on_set(&self, _callback: OnSet) {}
}

/// The machine's monotonic clock.
#[derive(Debug)]
pub struct MonotonicClock {
    origin: Instant,
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self {
            origin: Instant::now(),
        }
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }
}

/// A clock that stands still until it is advanced.
#[derive(Default)]
pub struct ManualClock {
    now: Mutex<Duration>,
    callbacks: Mutex<Vec<OnSet>>,
}

impl ManualClock {
    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) += by;
        for callback in &*self.callbacks.lock().unwrap_or_else(PoisonError::into_inner) {
            callback();
        }
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualClock")
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on_set(&self, callback: OnSet) {
        self.callbacks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(callback);
    }
}
