//! The proxy as its owner holds it.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use fairway_fabric::Fabric;
use fairway_gateway_routes::table::{ListenerKey, Table};

use crate::access_log::Log;
use crate::affinity::Marks;
use crate::applied::Applied;
use crate::clients::Clients;
use crate::door::Doors;
use crate::explain::{self, Explanation, Probe, ProbeRequest};
use crate::guards::Guards;
use crate::metrics::{self, Metrics};
use crate::options::Options;
use crate::plan::{Plan, Sources, compile};

/// What all workers see.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) fabric: Arc<dyn Fabric>,
    pub(crate) plan: ArcSwap<Plan>,
    pub(crate) metrics: Metrics,
    pub(crate) log: Log,
    /// Of clients, open now.
    pub(crate) connections: AtomicUsize,
    /// Whose they are.
    pub(crate) clients: Clients,
    started: Instant,
    marks: Marks,
    workers: usize,
}

impl Shared {
    /// Milliseconds since the start: the clock of everything that is left out for a while.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A running data plane. Dropping it closes its doors and ends its workers at once; [`Proxy::shutdown`] lets requests finish.
pub struct Proxy {
    shared: Arc<Shared>,
    doors: Mutex<Doors>,
}

/// Why a proxy could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot start a thread of the gateway")]
    Thread(#[source] std::io::Error),
    #[error("the system gave no randomness for the keys of sessions")]
    Randomness,
}

impl Proxy {
    /// Starts the workers. Nothing is served before the first [`Proxy::serve`].
    pub fn start(mut options: Options, fabric: Arc<dyn Fabric>) -> Result<Self, StartError> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = options.workers.unwrap_or(processors.min(8)).max(1);
        let log = Log::start(options.access_log.take()).map_err(StartError::Thread)?;
        let key = match options.affinity_key {
            Some(key) => key,
            None => {
                let mut key = [0; 32];
                let random = ring::rand::SystemRandom::new();
                ring::rand::SecureRandom::fill(&random, &mut key).map_err(|_| StartError::Randomness)?;
                key
            }
        };
        let shared = Arc::new(Shared {
            fabric,
            plan: ArcSwap::from_pointee(Plan::default()),
            metrics: Metrics::new(options.limits.measured_rules),
            log,
            connections: AtomicUsize::new(0),
            clients: Clients::new(&options.limits),
            started: Instant::now(),
            marks: Marks::new(&key),
            workers,
            options,
        });
        let doors = Doors::start(&shared, workers).map_err(StartError::Thread)?;
        Ok(Self {
            shared,
            doors: Mutex::new(doors),
        })
    }

    /// Serves `table` from now on, whole: when this returns, every request that begins sees it. Doors that it has no longer
    /// stop accepting and let what is under way finish. What cannot be served is told and does not hold up the rest.
    pub fn serve(&self, table: Arc<Table>, guards: &Guards) -> Applied {
        // One at a time, in the order of the calls.
        let mut doors = match self.doors.lock() {
            Ok(doors) => doors,
            Err(poisoned) => poisoned.into_inner(),
        };
        let sources = Sources {
            guards,
            metrics: &self.shared.metrics,
            marks: &self.shared.marks,
            breaker: &self.shared.options.limits.breaker,
            outliers: &self.shared.options.outliers,
            workers: self.shared.workers,
        };
        let (plan, problems) = compile(table, &self.shared.plan.load(), &sources);
        let generation = plan.generation;
        let wanted: Vec<SocketAddr> = plan.doors.keys().copied().collect();
        // New doors find their plan, and old ones never see a door that is not open.
        self.shared.plan.store(Arc::new(plan));
        let doors = doors.open(&wanted);
        metrics::add(&self.shared.metrics.totals.reloads);
        Applied {
            generation,
            doors,
            problems,
        }
    }

    /// What a request would meet at a listener: its route and its policies' verdict. Nothing is forwarded and nothing counted.
    pub async fn probe(&self, listener: &ListenerKey, request: &ProbeRequest) -> Probe {
        explain::probe(&self.shared, listener, request).await
    }

    /// The whole way of a request, step by step, by its URL: door, listener, route, filters, policies, backend. Nothing is
    /// forwarded and nothing counted.
    pub async fn explain(&self, request: &ProbeRequest) -> Explanation {
        explain::explain(&self.shared, request).await
    }

    /// Everything that is counted, as Prometheus reads it.
    pub fn metrics(&self) -> String {
        let plan = self.shared.plan.load();
        metrics::exposition(&self.shared.metrics, &plan.clusters, self.shared.now())
    }

    /// The table that is served.
    pub fn table(&self) -> Arc<Table> {
        Arc::clone(&self.shared.plan.load().table)
    }

    /// Counts tables, as in [`Applied`].
    pub fn generation(&self) -> u64 {
        self.shared.plan.load().generation
    }

    /// Connections of clients that are open.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Closes all doors, lets requests finish for as long as `within`, and ends the workers.
    pub async fn shutdown(self, within: Duration) {
        if let Ok(mut doors) = self.doors.lock() {
            doors.open(&[]);
        }
        let until = Instant::now() + within;
        while self.connections() > 0 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy")
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}

/// Who asks, when nobody says.
pub(crate) const NOBODY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
