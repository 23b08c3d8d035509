//! How many requests are worked on at once.
//!
//! Two bounds, as upstream: one for requests that change something, one for those that read. Watches and other long
//! requests do not count. Who comes when all places are taken is told to come back, instead of being queued without end.
//!
//! Within them each workspace has a few places of its own, and its requests queue for those: whoever floods his own
//! workspace waits behind himself, and his neighbour's request finds at most the others' few places before it. Reads are
//! answered from memory, so more of them at once than keep the cores busy would only stand in the neighbour's way;
//! writes wait for the disk together, and more of them at once share its work. A long answer keeps its place until it has
//! been handed over, because encrypting and sending it is most of its work; where nobody has handed anything over for a
//! while, clients are slow and not the server, and who waits goes ahead. The root workspace and requests over all workspaces,
//! with which the platform works, have only the common bounds.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body::Body as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::http::body::{ResponseBody, keeping};
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
/// Who waits goes ahead if no place becomes free for so long.
const PATIENCE: Duration = Duration::from_millis(250);
/// An answer that is longer keeps its place while it is sent.
const LONG_ANSWER: u64 = 16 * 1024;

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
    /// Requests that have given a place back.
    finished: AtomicUsize,
}

/// A place, kept until it is dropped.
pub struct Place {
    _common: OwnedSemaphorePermit,
    own: Option<Own>,
}

/// A place of a workspace's own.
struct Own {
    /// `None`: it went ahead without one.
    _permit: Option<OwnedSemaphorePermit>,
    present: Present,
}

impl Drop for Own {
    fn drop(&mut self) {
        self.present.turn.finished.fetch_add(1, Ordering::AcqRel);
    }
}

impl Place {
    /// An answer that keeps the place if it is long. The common one is given back: slow clients must not take it from
    /// everybody.
    pub fn keep_for(self, answer: ResponseBody) -> ResponseBody {
        let is_long = answer.size_hint().exact().is_none_or(|size| size > LONG_ANSWER);
        match self.own {
            Some(own) if is_long => keeping(answer, own),
            _ => answer,
        }
    }
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
        Ok(Place { _common: common, own })
    }

    async fn queue(&self, cluster: &str, mutating: bool) -> Result<Own, ApiError> {
        let present = self.arrive(cluster).ok_or_else(refusal)?;
        let turn = Arc::clone(&present.turn);
        let places = if mutating { &turn.mutating } else { &turn.reading };
        let mut place = std::pin::pin!(Arc::clone(places).acquire_owned());
        let permit = loop {
            let finished = turn.finished.load(Ordering::Acquire);
            match tokio::time::timeout(PATIENCE, &mut place).await {
                Ok(permit) => break Some(permit.map_err(ApiError::internal)?),
                Err(_) if !mutating && turn.finished.load(Ordering::Acquire) == finished => break None,
                Err(_) => {}
            }
        };
        Ok(Own {
            _permit: permit,
            present,
        })
    }

    /// Counts a request in; `None` if too many are there already.
    fn arrive(&self, cluster: &str) -> Option<Present> {
        let mut workspaces = self.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = workspaces.entry(cluster.into()).or_insert_with(|| {
            Arc::new(Turn {
                reading: Arc::new(Semaphore::new(self.reads_of_a_workspace)),
                mutating: Arc::new(Semaphore::new(WRITES_OF_A_WORKSPACE)),
                present: AtomicUsize::new(0),
                finished: AtomicUsize::new(0),
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
    use http_body_util::BodyExt as _;

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
    async fn a_long_answer_keeps_its_place_unless_its_client_is_slow() {
        let inflight = Inflight::default();
        let answer = |bytes: usize| crate::http::body::full(vec![b'x'; bytes]);
        let short = inflight.enter("a", false).await.unwrap().keep_for(answer(10));
        let mut long = Vec::new();
        for _ in 0..inflight.reads_of_a_workspace {
            long.push(
                inflight
                    .enter("a", false)
                    .await
                    .unwrap()
                    .keep_for(answer(100_000)),
            );
        }
        let mut next = Box::pin(inflight.enter("a", false));
        assert!((&mut next).now_or_never().is_none(), "its places are taken");
        let sent = long.pop().unwrap().collect().await.unwrap().to_bytes();
        assert_eq!(sent.len(), 100_000, "and what is sent is the answer");
        long.push(next.await.unwrap().keep_for(answer(100_000)));
        // Nobody reads: after a while the next goes ahead.
        let before = tokio::time::Instant::now();
        let ahead = inflight.enter("a", false).await.unwrap();
        assert!(before.elapsed() >= PATIENCE);
        drop((short, long, ahead));
        assert!(inflight.workspaces.lock().unwrap().is_empty());
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
