//! One endpoint: who carries how much, and how it has done lately.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fairway_fabric::Origin;
use fairway_gateway_routes::table::{self, ClusterKey};
use hyper::client::conn::http2::SendRequest;
use tokio::sync::Semaphore;

use super::health::Health;
use super::pool::Idle;
use crate::activity::Activity;
use crate::body::Body;
use crate::options::{Breaker, Outliers};

/// A connection that speaks HTTP/2 and carries many requests.
pub(crate) struct Line {
    /// Who it was opened for.
    pub(crate) origin: Origin,
    pub(crate) sender: SendRequest<Body>,
    pub(crate) activity: Arc<Activity>,
}

pub(crate) struct Endpoint {
    pub(crate) cluster: ClusterKey,
    pub(crate) at: table::Endpoint,
    /// What a session's cookie says to come back here.
    pub(crate) mark: String,
    pub(crate) health: Health,
    pub(crate) requests: AtomicUsize,
    /// Connections that may still be opened.
    pub(crate) room: Arc<Semaphore>,
    /// Requests that wait for one.
    pub(crate) waiting: AtomicUsize,
    pub(crate) breaker: Breaker,
    pub(crate) outliers: Outliers,
    /// By worker, because a connection belongs to the runtime that opened it.
    pub(crate) idle: Box<[Mutex<VecDeque<Idle>>]>,
    pub(crate) http2: Box<[Mutex<Vec<Line>>]>,
}

impl Endpoint {
    pub(crate) fn new(
        cluster: ClusterKey,
        at: table::Endpoint,
        mark: String,
        (breaker, outliers): (Breaker, Outliers),
        workers: usize,
    ) -> Self {
        Self {
            cluster,
            at,
            mark,
            health: Health::default(),
            requests: AtomicUsize::new(0),
            room: Arc::new(Semaphore::new(breaker.connections)),
            waiting: AtomicUsize::new(0),
            breaker,
            outliers,
            idle: (0..workers).map(|_| Mutex::default()).collect(),
            http2: (0..workers).map(|_| Mutex::default()).collect(),
        }
    }

    /// Counts a request in, unless there are too many.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<InFlight> {
        let before = self.requests.fetch_add(1, Ordering::Relaxed);
        let in_flight = InFlight(Arc::clone(self));
        (before < self.breaker.requests).then_some(in_flight)
    }

    pub(crate) fn load(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.at {
            table::Endpoint::Address(address) => write!(f, "{address}"),
            table::Endpoint::Listener(key) => {
                write!(
                    f,
                    "listener {} of {}/{}",
                    key.listener, key.namespace, key.gateway
                )
            }
        }
    }
}

/// A request that an endpoint is busy with.
pub(crate) struct InFlight(pub(crate) Arc<Endpoint>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}
