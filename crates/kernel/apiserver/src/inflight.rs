//! How many requests are worked on at once.
//!
//! Two bounds, as upstream: one for requests that change something, one for those that read. Watches and other long
//! requests do not count. Who comes when all places are taken is told to come back, instead of being queued without end.
//!
//! Within them each workspace has a few places of its own, and its requests queue for those: whoever floods his own
//! workspace waits behind himself, and his neighbour's request finds at most the others' few places before it. Reads are
//! answered from memory, so more of them at once than keep the cores busy would only stand in the neighbour's way;
//! writes wait for the disk together, and more of them at once share its work. The root workspace and requests over all
//! workspaces, with which the platform works, have only the common bounds.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::key::ROOT_CLUSTER;
use crate::status::ApiError;
use crate::workspaces::EVERY_CLUSTER;

const READING: usize = 400;
const MUTATING: usize = 200;
/// Requests of one workspace that are worked on at once and change something.
const WRITES_OF_A_WORKSPACE: usize = 16;
/// Requests of one workspace that are worked on at once and read: for each core, and at least.
const READS_FOR_EACH_CORE: usize = 1;
const READS_AT_LEAST: usize = 4;
/// Requests of one workspace that wait.
const WAITING: usize = 256;

/// Places for requests.
pub struct Inflight {
    reading: Arc<Semaphore>,
    mutating: Arc<Semaphore>,
    workspaces: Arc<Mutex<HashMap<Box<str>, Arc<Turn>>>>,
    reads_of_a_workspace: usize,
}

/// The places of one workspace. There is one as long as somebody is in it.
struct Turn {
    reading: Arc<Semaphore>,
    mutating: Arc<Semaphore>,
    /// Requests that work or wait.
    present: AtomicUsize,
}

/// A place, kept until it is dropped.
pub struct Place {
    _common: OwnedSemaphorePermit,
    _own: Option<(OwnedSemaphorePermit, Present)>,
}

/// A request in a workspace, at work or waiting.
struct Present {
    workspaces: Arc<Mutex<HashMap<Box<str>, Arc<Turn>>>>,
    cluster: Box<str>,
    turn: Arc<Turn>,
}

impl Drop for Present {
    fn drop(&mut self) {
        let mut workspaces = self.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        if self.turn.present.fetch_sub(1, Ordering::AcqRel) == 1 {
            workspaces.remove(&self.cluster);
        }
    }
}

impl Default for Inflight {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            reading: Arc::new(Semaphore::new(READING)),
            mutating: Arc::new(Semaphore::new(MUTATING)),
            workspaces: Arc::default(),
            reads_of_a_workspace: (cores * READS_FOR_EACH_CORE).clamp(READS_AT_LEAST, READING / 4),
        }
    }
}

impl Inflight {
    /// A place for a request in a workspace.
    pub async fn enter(&self, cluster: &str, mutating: bool) -> Result<Place, ApiError> {
        let own = if cluster == ROOT_CLUSTER || cluster == EVERY_CLUSTER {
            None
        } else {
            Some(self.queue(cluster, mutating).await?)
        };
        let places = if mutating { &self.mutating } else { &self.reading };
        let common = Arc::clone(places).try_acquire_owned().map_err(|_| refusal())?;
        Ok(Place {
            _common: common,
            _own: own,
        })
    }

    async fn queue(
        &self,
        cluster: &str,
        mutating: bool,
    ) -> Result<(OwnedSemaphorePermit, Present), ApiError> {
        let present = self.arrive(cluster).ok_or_else(refusal)?;
        let turn = &present.turn;
        let places = if mutating { &turn.mutating } else { &turn.reading };
        let place = Arc::clone(places)
            .acquire_owned()
            .await
            .map_err(ApiError::internal)?;
        Ok((place, present))
    }

    /// Counts a request in; `None` if too many are there already.
    fn arrive(&self, cluster: &str) -> Option<Present> {
        let mut workspaces = self.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = workspaces.entry(cluster.into()).or_insert_with(|| {
            Arc::new(Turn {
                reading: Arc::new(Semaphore::new(self.reads_of_a_workspace)),
                mutating: Arc::new(Semaphore::new(WRITES_OF_A_WORKSPACE)),
                present: AtomicUsize::new(0),
            })
        });
        if turn.present.load(Ordering::Acquire) >= WRITES_OF_A_WORKSPACE + WAITING {
            return None;
        }
        turn.present.fetch_add(1, Ordering::AcqRel);
        Some(Present {
            workspaces: Arc::clone(&self.workspaces),
            cluster: cluster.into(),
            turn: Arc::clone(turn),
        })
    }
}

fn refusal() -> ApiError {
    ApiError::too_many_requests("Too many requests, please try again later.", 1)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_workspace_waits_behind_itself_alone() {
        let inflight = Inflight::default();
        let mut places = Vec::new();
        for _ in 0..WRITES_OF_A_WORKSPACE {
            places.push(inflight.enter("a", true).await.unwrap());
        }
        assert!(
            inflight.enter("a", false).now_or_never().is_some(),
            "reads do not wait for writes"
        );
        let mut next = Box::pin(inflight.enter("a", true));
        assert!((&mut next).now_or_never().is_none(), "its places are taken");
        assert!(
            inflight.enter("b", true).now_or_never().is_some(),
            "the neighbour's are not"
        );
        assert!(inflight.enter(ROOT_CLUSTER, true).now_or_never().is_some());
        let everywhere = (0..READING).map(|_| inflight.enter(EVERY_CLUSTER, false).now_or_never());
        assert!(
            everywhere
                .collect::<Vec<_>>()
                .iter()
                .all(|it| matches!(it, Some(Ok(_)))),
            "who works in all waits for none"
        );
        places.pop();
        assert!(next.await.is_ok());
    }

    #[tokio::test]
    async fn a_queue_has_an_end_and_leaves_nothing_behind() {
        let inflight = Inflight::default();
        let mut requests: Vec<_> = (0..WRITES_OF_A_WORKSPACE + WAITING)
            .map(|_| Box::pin(inflight.enter("a", false)))
            .collect();
        let mut places = Vec::new();
        for request in &mut requests {
            places.extend(request.now_or_never());
        }
        assert_eq!(places.len(), inflight.reads_of_a_workspace);
        let refused = inflight.enter("a", false).now_or_never().unwrap();
        assert_eq!(refused.err().map(|e| e.code), Some(429));
        drop((requests, places));
        assert!(inflight.workspaces.lock().unwrap().is_empty());
    }
}
