//! What serves: a data plane takes a table whole, and says when it does and where it could not listen.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use fairway_gateway_guard::Guard;
use fairway_gateway_routes::table::{ListenerKey, RuleKey, Table};
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Uri};

/// Moves bytes as a table says.
pub trait DataPlane: Send + Sync + 'static {
    /// Serves this from now on. The answer comes when no new request is served by an earlier table.
    fn serve(&self, table: Arc<Table>, guards: Guards) -> BoxFuture<'_, Acknowledged>;

    /// The whole way of a request, by its URL. Nothing is forwarded, and nothing counted.
    fn explain(&self, request: Probe) -> BoxFuture<'_, Explained>;

    /// What is served.
    fn table(&self) -> Arc<Table>;

    /// What would become of a request at a listener: the rule that it belongs to, and whether its policies refuse it. Nothing
    /// is forwarded, and nothing counted. Nothing: it belongs to no rule.
    fn probe<'p>(
        &'p self,
        listener: &'p ListenerKey,
        request: Probe,
    ) -> BoxFuture<'p, Option<(RuleKey, bool)>>;
}

/// The way of a request.
#[derive(Debug, Clone, Default)]
pub struct Explained {
    pub stages: Vec<Stage>,
    /// The rule that it belongs to, if there is one.
    pub rule: Option<RuleKey>,
    /// What the client would be answered, where that is known without asking a backend.
    pub status: Option<u16>,
}

/// One thing on the way.
#[derive(Debug, Clone)]
pub struct Stage {
    /// `Request`, `Door`, `Listener`, `Route`, `Policy`, `Filter`, `Backend`.
    pub kind: &'static str,
    pub what: String,
    pub seen: String,
    /// `false`: the request ends here. Nothing where nothing is decided.
    pub passes: Option<bool>,
}

/// A request that is not sent.
#[derive(Debug, Clone)]
pub struct Probe {
    pub method: Method,
    /// With scheme and host.
    pub uri: Uri,
    pub headers: HeaderMap,
    /// Who sends it; nothing: the node itself.
    pub client: Option<IpAddr>,
}

/// What became of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// Doors of the table that could not be opened; all others are.
    pub closed: BTreeMap<SocketAddr, NotBound>,
}

/// Why an address and port is not listened on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotBound {
    /// Ports of this sort are not for this process; another one may do.
    pub needs_privilege: bool,
    /// In the system's words.
    pub why: String,
}

/// How rules are protected; a rule that is not named is open to everybody.
pub type Guards = BTreeMap<RuleKey, Protection>;

/// How a rule is protected.
#[derive(Clone)]
pub enum Protection {
    Guarded(Arc<dyn Guard>),
    /// There is a policy and it cannot be enforced: every request is refused. The text says why.
    Missing(Arc<str>),
}

impl fmt::Debug for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Guarded(_) => f.write_str("Guarded"),
            Self::Missing(why) => write!(f, "Missing({why:?})"),
        }
    }
}
