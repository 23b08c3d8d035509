//! The loop of a controller: take a key, reconcile it, decide when to look again.
//!
//! At most `workers` keys are reconciled at once and never the same key twice at once. A failure is tried again after a
//! growing delay; a conflict is tried again in silence. At the end no key is begun any more, and what is under way is
//! waited for.

use std::fmt::Display;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{Instrument as _, debug, debug_span, error, warn};

use crate::backoff::{self, Backoff};
use crate::error::Failure;
use crate::metrics::{ControllerMetrics, Metrics, Result as Tally};
use crate::queue::{Queue, WorkKey};
use crate::shutdown::Shutdown;

/// Failures in a row from which on the log takes notice.
const LOUD_FROM: u32 = 4;

/// What a reconcile asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left to do until something changes.
    Done,
    /// Look again after this time.
    Again(Duration),
    /// Look again soon, and each time later: something outside has to happen first.
    Poll,
}

/// Brings one object to where it should be.
pub trait Reconcile<K>: Send + Sync + 'static {
    /// Looks at the present state of what `key` names, and makes a step.
    fn reconcile(&self, key: &K) -> impl Future<Output = Result<Outcome, Failure>> + Send;
}

/// A queue and what works on it.
#[derive(Debug)]
pub struct Controller<K, R> {
    name: &'static str,
    queue: Queue<K>,
    reconciler: Arc<R>,
    workers: usize,
    backoff: Backoff,
}

impl<K: WorkKey + Display, R: Reconcile<K>> Controller<K, R> {
    /// A controller with one worker. `name` is its label in figures and logs.
    pub fn new(name: &'static str, queue: Queue<K>, reconciler: R) -> Self {
        Self {
            name,
            queue,
            reconciler: Arc::new(reconciler),
            workers: 1,
            backoff: Backoff::default(),
        }
    }

    /// How many keys may be reconciled at once.
    #[must_use]
    pub fn workers(self, workers: usize) -> Self {
        Self {
            workers: workers.max(1),
            ..self
        }
    }

    /// How long to wait after failures.
    #[must_use]
    pub fn backoff(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// Works until the end.
    pub async fn run(self, metrics: Arc<Metrics>, mut shutdown: Shutdown) {
        let figures = metrics.controller(self.name);
        let mut running: JoinSet<()> = JoinSet::new();
        while !shutdown.is_shut_down() {
            figures.set_load(self.queue.depth(), running.len());
            if running.len() >= self.workers {
                tokio::select! {
                    _ = running.join_next() => {}
                    () = shutdown.wait() => {}
                }
                continue;
            }
            tokio::select! {
                biased;
                () = shutdown.wait() => {}
                Some(_) = running.join_next() => {}
                key = self.queue.next() => {
                    let work = work(
                        self.name, key, self.queue.clone(), Arc::clone(&self.reconciler), Arc::clone(&figures), self.backoff,
                    );
                    running.spawn(work);
                }
            }
        }
        while running.join_next().await.is_some() {}
        figures.set_load(self.queue.depth(), 0);
    }
}

async fn work<K: WorkKey + Display, R: Reconcile<K>>(
    name: &'static str,
    key: K,
    queue: Queue<K>,
    reconciler: Arc<R>,
    figures: Arc<ControllerMetrics>,
    backoff: Backoff,
) {
    let begun = Instant::now();
    let span = debug_span!("reconcile", controller = name, key = %key);
    // One bad object must not end the controller for all others.
    let result = AssertUnwindSafe(reconciler.reconcile(&key).instrument(span))
        .catch_unwind()
        .await;
    let tally = match result {
        Ok(Ok(Outcome::Done)) => {
            queue.forget(&key);
            Tally::Success
        }
        Ok(Ok(Outcome::Again(delay))) => {
            queue.forget(&key);
            queue.add_after(key.clone(), delay);
            Tally::Requeue
        }
        Ok(Ok(Outcome::Poll)) => {
            let failures = queue.fail(&key);
            queue.add_after(key.clone(), backoff.delay(failures, backoff::chance()));
            Tally::Requeue
        }
        Ok(Err(failure)) => {
            let failures = queue.fail(&key);
            queue.add_after(key.clone(), backoff.delay(failures, backoff::chance()));
            if failure.is_conflict() {
                Tally::Conflict
            } else {
                let reason = failure.sentence();
                if failures >= LOUD_FROM {
                    warn!(controller = name, %key, failures, reason, "reconcile keeps failing");
                } else {
                    debug!(controller = name, %key, failures, reason, "reconcile failed");
                }
                Tally::Error
            }
        }
        Err(_) => {
            error!(controller = name, %key, "reconcile panicked");
            let failures = queue.fail(&key);
            queue.add_after(
                key.clone(),
                backoff.delay(failures.saturating_add(8), backoff::chance()),
            );
            Tally::Error
        }
    };
    figures.observe(tally, begun.elapsed());
    queue.done(&key);
}

#[cfg(test)]
mod tests;
