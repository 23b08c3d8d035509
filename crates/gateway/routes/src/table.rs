//! What a data plane serves, whole: replaced at once, never changed.
//!
//! ```text
//! Table ─ doors by socket address ─ Http: listeners by host name ─ routes by host name ─ matches in order ─ Rule
//!                                 ├ Tls: by server name ─ terminate (then as Http) | pass through ─ Forward
//!                                 └ Tcp: Forward
//! ```
//!
//! The table is plain data: it can be compared, printed and explained. A data plane makes its own faster form of it. All of it is
//! `Eq`, so that what two tables share (`Arc`) is compared without a look into it.

mod filter;
mod matches;
mod names;
mod traffic;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub use filter::{Cors, Filter, HeaderChanges, Mirror, PathChange, Redirect};
pub use matches::{HeaderMatch, Match, PathMatch, QueryMatch, ValueMatch};
pub use names::{HostPattern, Names};
pub use traffic::{Breaker, Ejection, HealthCheck, Traffic};

/// Everything that is served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    pub doors: BTreeMap<SocketAddr, Door>,
    /// Backends by name, so that rules that share one share its connections and its health.
    pub clusters: BTreeMap<ClusterKey, Arc<Cluster>>,
    /// Certificates by name; the private keys come with them and are never printed.
    pub certificates: BTreeMap<CertificateKey, Arc<Certificate>>,
}

/// An address and port that is listened on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Door {
    Http(Names<Arc<Listener>>),
    Tls(Names<Arc<TlsListener>>),
    Tcp(Arc<Forward>),
}

/// Which listener of which Gateway; routes of OpenShift hang on the listener of the router, which has no Gateway.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerKey {
    /// The workspace's logical-cluster id.
    pub workspace: String,
    pub namespace: String,
    pub gateway: String,
    pub listener: String,
}

/// One listener that speaks HTTP, with what hangs on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    pub key: ListenerKey,
    /// By host name of the routes; of a request's candidates the most specific is asked first, and the next if no match of
    /// it fits.
    pub routes: Names<Arc<Vec<Entry>>>,
}

/// A match and what follows from it. Entries of one host name are in order of precedence: the first that fits wins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub matches: Match,
    pub rule: Arc<Rule>,
}

/// One listener behind TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsListener {
    Terminate {
        /// Those that fit the server name best come first.
        certificates: Vec<CertificateKey>,
        /// Client certificates are asked for and must come from one of these (PEM).
        client_authorities: Option<Arc<str>>,
        http: Arc<Listener>,
    },
    Passthrough(Arc<Forward>),
}

/// Bytes that go on as they are, whatever protocol or TLS the cluster has. Without backends a connection is refused: the name
/// belongs to a listener that has no route for it, and nobody else may take it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    pub key: RuleKey,
    pub backends: Vec<Backend>,
}

/// The name of a rule: by it policies, metrics and logs say what they mean.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleKey {
    pub listener: ListenerKey,
    /// `HTTPRoute`, `TLSRoute`, `TCPRoute` or `Route`.
    pub kind: &'static str,
    pub namespace: String,
    pub name: String,
    /// Counted from zero; `section` is the rule's own name, if it has one.
    pub rule: usize,
    pub section: Option<String>,
}

/// What happens to the requests of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub key: RuleKey,
    pub filters: Vec<Filter>,
    pub action: Action,
    pub timeouts: Timeouts,
    pub retry: Option<Retry>,
    pub affinity: Option<Affinity>,
}

impl Rule {
    /// Everything that its requests may lead to, also those that are mirrored.
    pub fn clusters(&self) -> impl Iterator<Item = &ClusterKey> {
        let backends = match &self.action {
            Action::Forward(backends) => backends.as_slice(),
            Action::Answered => &[],
        };
        let mirrored = self.filters.iter().filter_map(|filter| match filter {
            Filter::Mirror(mirror) => Some(&mirror.to),
            _ => None,
        });
        let all = backends.iter().chain(mirrored);
        all.filter_map(|backend| match &backend.target {
            Target::Cluster(key) => Some(key),
            Target::Broken(_) => None,
        })
    }
}

/// Where requests go after the filters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// To backends, by weight. Empty, or all of weight zero, is answered with 500.
    Forward(Vec<Backend>),
    /// A filter answers: a redirection.
    Answered,
}

/// One backend of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    pub weight: u32,
    pub target: Target,
    /// Filters of this backend alone.
    pub filters: Vec<Filter>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Cluster(ClusterKey),
    /// A reference that does not resolve: its share of requests is answered with 500. The text says why.
    Broken(String),
}

/// A port of a Service in a workspace, spoken to in one way.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterKey {
    pub workspace: String,
    pub namespace: String,
    pub service: String,
    pub port: u16,
    /// Empty, or why this one is spoken to in a way of its own: `grpc`, `stream`, or the Route that encrypts again.
    pub via: String,
}

/// What is behind a [`ClusterKey`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    pub key: ClusterKey,
    pub protocol: BackendProtocol,
    pub tls: Option<BackendTls>,
    pub traffic: Traffic,
    /// Ready ones, sorted. None at all is answered with 503.
    pub endpoints: Vec<Endpoint>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Endpoint {
    /// Through the fabric, in the cluster's workspace.
    Address(SocketAddr),
    /// One of our own listeners: the request goes there without a connection between, so a Route that leads to a Gateway on the
    /// same port cannot run in circles. A cluster may have several, then the one whose host name fits best is meant, as at a
    /// door.
    Listener(ListenerKey),
}

/// What a Service's `appProtocol` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BackendProtocol {
    Http1,
    /// `kubernetes.io/h2c`.
    Http2,
    /// `kubernetes.io/ws`, `kubernetes.io/wss`: HTTP/1.1 that may be upgraded.
    WebSocket,
}

/// How a backend proves who it is (BackendTLSPolicy, re-encrypting Routes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendTls {
    /// Sent as server name and expected in the certificate unless `names` says otherwise.
    pub hostname: String,
    pub names: Vec<String>,
    /// PEM; none means the authorities of the system.
    pub authorities: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CertificateKey {
    pub workspace: String,
    pub namespace: String,
    pub secret: String,
}

/// A certificate chain with its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    pub chain: Arc<str>,
    pub key: Arc<str>,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").finish_non_exhaustive()
    }
}

/// None means none: zero in a manifest switches a timeout off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timeouts {
    pub request: Option<Duration>,
    pub backend_request: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    pub attempts: u32,
    /// Status codes beside failures to connect.
    pub codes: Vec<u16>,
    pub backoff: Duration,
}

/// Session persistence (`sessionPersistence`), and HAProxy's cookie of OpenShift's Routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Affinity {
    pub name: String,
    pub by_header: bool,
    /// Seconds; none is a session cookie.
    pub lifetime: Option<Duration>,
}
