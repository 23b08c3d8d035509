//! Measures the machines of this node now and then, so that whoever opens the page of one sees how it got there.
//!
//! It lives as long as the machine runs here: one that moves begins anew at its target, and so does a restarted Fairway.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use fairway_controller::Shutdown;
use futures::StreamExt as _;
use serde_json::Value;
use tokio::time::MissedTickBehavior;

use super::counting;
use super::ring::{EVERY, Ring};
use crate::registry::{Reached, Registry};

/// How many are measured at once.
const AT_ONCE: usize = 16;
/// How long one may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// The last hour of a machine, for those who measure and those who ask.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<Ring>);

impl History {
    /// What was measured.
    pub(crate) fn tell(&self) -> Value {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).tell()
    }

    async fn measure(&self, reached: &Reached) {
        let Ok(Some(counters)) = tokio::time::timeout(PATIENCE, counting::count(reached)).await else {
            return;
        };
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .note(counters);
    }
}

/// Measures all machines until the end.
pub(crate) async fn follow(registry: &Registry, mut shutdown: Shutdown) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.wait() => return,
            _ = ticks.tick() => {}
        }
        let all = futures::stream::iter(registry.entries());
        let measuring = all.for_each_concurrent(AT_ONCE, async |(_, reached)| {
            reached.history.measure(&reached).await;
        });
        tokio::select! {
            () = shutdown.wait() => return,
            () = measuring => {}
        }
    }
}

/// Since 1970.
pub(super) fn wall() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}
