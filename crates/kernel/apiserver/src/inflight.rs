//! How many requests are worked on at once.
//!
//! Two bounds, as upstream: one for requests that change something, one for those that read. Watches and other long
//! requests do not count. Who comes when all places are taken is told to come back, instead of being queued without end.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::status::ApiError;

const READING: usize = 400;
const MUTATING: usize = 200;

/// Places for requests.
pub struct Inflight {
    reading: Arc<Semaphore>,
    mutating: Arc<Semaphore>,
}

impl Default for Inflight {
    fn default() -> Self {
        Self {
            reading: Arc::new(Semaphore::new(READING)),
            mutating: Arc::new(Semaphore::new(MUTATING)),
        }
    }
}

impl Inflight {
    /// A place for a request, kept until the permit is dropped.
    pub fn enter(&self, mutating: bool) -> Result<OwnedSemaphorePermit, ApiError> {
        let places = if mutating { &self.mutating } else { &self.reading };
        Arc::clone(places)
            .try_acquire_owned()
            .map_err(|_| ApiError::too_many_requests("Too many requests, please try again later.", 1))
    }
}
