//! What whoever starts a proxy may choose. Every bound has a default that holds for a laptop and a small server alike.

use std::fmt;
use std::io::Write;
use std::sync::Mutex;
use std::time::Duration;

use fairway_gateway_routes::table::HealthCheck;

/// How a proxy behaves, whatever it serves.
#[derive(Debug)]
pub struct Options {
    /// Threads that serve, each with its own runtime and its own idle connections to backends. None: one for each processor,
    /// at most eight.
    pub workers: Option<usize>,
    pub limits: Limits,
    pub timeouts: Timeouts,
    pub balance: Balance,
    pub outliers: Outliers,
    /// For every backend that speaks HTTP and says nothing else of itself. Off unless given.
    pub health: Option<HealthCheck>,
    /// None: nothing is logged.
    pub access_log: Option<AccessLog>,
    pub trust: Trust,
    /// `traceparent` is written for requests that come without one; those that have one keep it either way.
    pub start_traces: bool,
    /// `Forwarded` (RFC 7239) beside the `X-Forwarded-` headers.
    pub forwarded: bool,
    /// What session cookies are made with; gateways that share clients must share it. None: a new one for each start, so
    /// sessions may move to another endpoint when the process starts again.
    pub affinity_key: Option<[u8; 32]>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            workers: None,
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            balance: Balance::LeastRequests,
            outliers: Outliers::default(),
            health: None,
            access_log: None,
            trust: Trust::Nobody,
            start_traces: false,
            forwarded: false,
            affinity_key: None,
        }
    }
}

/// Everything that a client or a backend could make too large.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Of clients, over all doors; who comes then is turned away.
    pub connections: usize,
    /// Of one client, an address or of IPv6 a network of 64 bits; who comes then is turned away. None: a quarter of all, and
    /// whoever comes from the loopback may have all.
    pub connections_per_client: Option<usize>,
    /// Bytes of a request's line and headers; more is answered with 431, or 414 if the line alone is longer.
    pub request_head: usize,
    /// Number of headers; more is answered with 431.
    pub headers: usize,
    /// Bytes of a backend's status line and headers; more is answered with 502.
    pub response_head: usize,
    /// Requests of one HTTP/2 connection at a time.
    pub streams: u32,
    /// Bytes of a body that are kept for another attempt. A longer one is sent once.
    pub replay: usize,
    /// Bytes of a ClientHello.
    pub client_hello: usize,
    /// Requests of one route that the metrics tell apart; further routes are counted together.
    pub measured_rules: usize,
    pub breaker: Breaker,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            connections_per_client: None,
            request_head: 64 * 1024,
            headers: 128,
            response_head: 64 * 1024,
            streams: 256,
            replay: 64 * 1024,
            client_hello: 16 * 1024,
            measured_rules: 2_000,
            breaker: Breaker::default(),
        }
    }
}

/// What one endpoint is asked to carry at most.
#[derive(Debug, Clone)]
pub struct Breaker {
    pub connections: usize,
    /// Requests that wait for a connection when there are that many.
    pub pending: usize,
    pub requests: usize,
    /// Idle connections that each worker keeps.
    pub idle: usize,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            connections: 1024,
            pending: 1024,
            requests: 4096,
            idle: 128,
        }
    }
}

/// How long is waited for what.
#[derive(Debug, Clone)]
pub struct Timeouts {
    /// A ClientHello and the handshake after it.
    pub handshake: Duration,
    /// From the first byte of a request to the end of its headers.
    pub request_head: Duration,
    /// Between requests.
    pub keep_alive: Duration,
    /// Without a byte of a body, in either direction, or of an upgraded connection.
    pub body_idle: Duration,
    pub connect: Duration,
    /// From the request to the headers of the answer, for rules that say nothing.
    pub response_head: Duration,
    /// How long an idle connection to a backend is kept.
    pub upstream_idle: Duration,
    /// How long connections of a closed door may go on.
    pub drain: Duration,
    /// Without a byte in either direction on TCP and passed-through TLS connections.
    pub tunnel_idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            request_head: Duration::from_secs(30),
            keep_alive: Duration::from_secs(75),
            body_idle: Duration::from_secs(60),
            connect: Duration::from_secs(5),
            response_head: Duration::from_secs(300),
            upstream_idle: Duration::from_secs(50),
            drain: Duration::from_secs(30),
            tunnel_idle: Duration::from_secs(3600),
        }
    }
}

/// Which endpoint a request goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balance {
    RoundRobin,
    /// Of two that chance picks, the one with fewer requests.
    LeastRequests,
}

/// When an endpoint is left out for a while because of what became of requests.
#[derive(Debug, Clone)]
pub struct Outliers {
    /// In a row: connections that failed, or answers of 500, 502, 503 and 504. Zero switches ejection off.
    pub failures: u32,
    /// The first time; each further time it is doubled.
    pub base: Duration,
    pub longest: Duration,
}

impl Default for Outliers {
    fn default() -> Self {
        Self {
            failures: 5,
            base: Duration::from_secs(5),
            longest: Duration::from_secs(300),
        }
    }
}

/// Whose `X-Forwarded-` headers, `Forwarded` and `x-request-id` are believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// They are thrown away and written anew.
    Nobody,
    /// Something in front of the proxy writes them for every request: they are kept and continued.
    Everybody,
}

/// Where access log lines go. They are written by a thread of their own; if it falls behind, lines are dropped and counted.
pub struct AccessLog {
    pub(crate) target: Mutex<Box<dyn Write + Send>>,
    pub(crate) waiting: usize,
}

impl AccessLog {
    pub fn new(target: impl Write + Send + 'static) -> Self {
        Self {
            target: Mutex::new(Box::new(target)),
            waiting: 4096,
        }
    }

    /// Lines that may wait to be written.
    pub fn waiting(mut self, lines: usize) -> Self {
        self.waiting = lines;
        self
    }
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessLog").finish_non_exhaustive()
    }
}
