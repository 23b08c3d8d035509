//! How one domain reaches a guest or a Service: `dial(workspace, address, port)`.
//!
//! Addresses of guests and Services need not exist on the host: on a plain node they live in a userspace switch, on a real
//! cluster in its network. Whoever wants to reach one (a gateway, a probe, a port-forward) holds a [`Fabric`] and does not
//! know which. [`PlainTcp`] is the fabric of places where the addresses do exist; `fairway-machines-network` is the one of
//! a node with the switch. [`forward`] is the other way round: a port of the host that leads to a guest.
//!
//! The crate must not know machines, Services or gateways.

pub mod forward;
mod plain;

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

pub use plain::PlainTcp;

/// In whose name a connection is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The node's own: probes, consoles, port-forwards. NetworkPolicies let the node in, as in Kubernetes.
    Node,
    /// A client outside, whom NetworkPolicies judge by its address.
    Client(IpAddr),
}

/// Where to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    /// The workspace's logical-cluster id: an address of another one is not found.
    pub workspace: String,
    pub address: IpAddr,
    pub port: u16,
    pub origin: Origin,
}

impl Destination {
    pub fn new(workspace: impl Into<String>, address: impl Into<IpAddr>, port: u16) -> Self {
        Self {
            workspace: workspace.into(),
            address: address.into(),
            port,
            origin: Origin::Node,
        }
    }

    pub fn on_behalf_of(mut self, client: IpAddr) -> Self {
        self.origin = Origin::Client(client);
        self
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} port {} in workspace {}",
            self.address, self.port, self.workspace
        )
    }
}

/// A connection: bytes in both directions, and an end of each.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Why a destination was not reached.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// Trying again does not help before something changes.
    #[error("cannot reach {to}: {why}")]
    Unreachable { to: Destination, why: String },
    /// The machine is there and nothing listens: its service may be starting.
    #[error("{to} refused the connection: nothing listens there, or a firewall in the machine says no")]
    Refused { to: Destination },
    #[error("{to} did not answer within {} s: the machine may be starting, stopped or overloaded", .after.as_secs())]
    Timeout { to: Destination, after: Duration },
    #[error("cannot connect to {to}")]
    Io {
        to: Destination,
        #[source]
        source: std::io::Error,
    },
    /// The process that would carry the connection is ending.
    #[error("the network is shutting down, so {to} cannot be reached")]
    Closed { to: Destination },
}

/// Datagrams to a destination and back, each as it is. They may get lost; the talk ends when nobody has said anything for a
/// while.
#[derive(Debug)]
pub struct Talk {
    pub send: mpsc::Sender<Vec<u8>>,
    pub receive: mpsc::Receiver<Vec<u8>>,
}

/// A way to reach guests and Services.
pub trait Fabric: Send + Sync + 'static {
    fn dial(&self, to: Destination) -> BoxFuture<'_, Result<Box<dyn Connection>, DialError>>;

    /// Begins to exchange datagrams.
    fn talk(&self, to: Destination) -> BoxFuture<'_, Result<Talk, DialError>> {
        Box::pin(async move {
            Err(DialError::Unreachable {
                to,
                why: "datagrams are not carried here".into(),
            })
        })
    }
}
