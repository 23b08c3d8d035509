//! What became of a table: which doors are open, and what of it cannot be served.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use fairway_gateway_routes::table::{CertificateKey, ClusterKey, ListenerKey};

/// Told when a new table is in force.
#[derive(Debug, Clone, Default)]
pub struct Applied {
    /// Counts tables: every request that begins now is served by this one or a later one.
    pub generation: u64,
    /// By the address in the table: where it is bound (which differs only for port 0), or why it cannot be.
    pub doors: BTreeMap<SocketAddr, Result<SocketAddr, String>>,
    pub problems: Vec<Problem>,
}

impl Applied {
    /// Every door is open, and everything behind them can be served.
    pub fn is_whole(&self) -> bool {
        self.problems.is_empty() && self.doors.values().all(Result::is_ok)
    }
}

/// Something in a table that cannot be served. The rest of the table is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// Handshakes that would need it are refused.
    Certificate { key: CertificateKey, why: String },
    /// The listener's client authorities cannot be read: its handshakes are refused.
    ClientAuthorities { listener: ListenerKey, why: String },
    /// Its requests are answered with 500.
    BackendTls { cluster: ClusterKey, why: String },
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Certificate { key, why } => {
                write!(f, "certificate {}/{}: {why}", key.namespace, key.secret)
            }
            Self::ClientAuthorities { listener, why } => write!(
                f,
                "client authorities of listener {} of {}/{}: {why}",
                listener.listener, listener.namespace, listener.gateway
            ),
            Self::BackendTls { cluster, why } => {
                write!(
                    f,
                    "TLS to {}/{}:{}: {why}",
                    cluster.namespace, cluster.service, cluster.port
                )
            }
        }
    }
}
