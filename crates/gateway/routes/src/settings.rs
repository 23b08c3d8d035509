//! What a build must know of the machine it is for, and what became of earlier wishes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use crate::build::Holders;
use crate::observed::Name;
use crate::table::Certificate;

/// `fairway.dev/gateway-controller`.
pub const CONTROLLER: &str = "fairway.dev/gateway-controller";

#[derive(Debug, Clone)]
pub struct Settings {
    /// A GatewayClass with one of these as its `controllerName` is served, under the name that it says.
    pub controllers: BTreeSet<String>,
    /// Classes that the platform has in every workspace, and the controller's name of each; a workspace's own GatewayClass of
    /// the same name goes first.
    pub classes: BTreeMap<String, String>,
    /// Where Gateways without `spec.addresses` and OpenShift's Routes listen.
    pub addresses: Addresses,
    /// The workspace of whoever runs the platform. Its Gateways may name any address of the host in `spec.addresses`, and the
    /// outcome of binding tells; those of other workspaces only the one that they have anyway.
    pub operator: String,
    /// By the address and port that were asked for: what became of it. What is not here has not been tried.
    pub bindings: BTreeMap<SocketAddr, Binding>,
    /// What the last build ended with.
    pub holders: Arc<Holders>,
    pub router: Router,
}

/// How Gateways come to their addresses.
#[derive(Debug, Clone)]
pub enum Addresses {
    /// All share one.
    Shared(IpAddr),
    /// Each has its own, which the caller has given it. A Gateway that is not here waits for one.
    Each(BTreeMap<GatewayName, IpAddr>),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GatewayName {
    pub workspace: String,
    pub name: Name,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// Listens, on this port: another one than was asked for where that needs a privilege.
    Port(u16),
    /// The reason in the system's words.
    Failed(String),
}

/// Who serves OpenShift's Routes.
#[derive(Debug, Clone)]
pub struct Router {
    /// In `status.ingress`.
    pub name: String,
    pub address: IpAddr,
    pub http: u16,
    pub https: u16,
    /// Of hosts that are made up: `apps.fairway.localhost`.
    pub domain: String,
    /// For Routes that bring none. Without one they are not admitted, and told so.
    pub certificate: Option<Arc<Certificate>>,
    /// Whether `wildcardPolicy: Subdomain` is admitted, as the setting of OpenShift's router says.
    pub wildcards: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Self {
            controllers: [CONTROLLER.to_owned()].into(),
            classes: BTreeMap::new(),
            addresses: Addresses::Shared(address),
            operator: "root".to_owned(),
            bindings: BTreeMap::new(),
            holders: Arc::default(),
            router: Router {
                name: "default".to_owned(),
                address,
                http: 80,
                https: 443,
                domain: "apps.fairway.localhost".to_owned(),
                certificate: None,
                wildcards: false,
            },
        }
    }
}

impl Settings {
    /// The port that is listened on where `asked` was asked for.
    pub fn bound(&self, asked: SocketAddr) -> SocketAddr {
        match self.bindings.get(&asked) {
            Some(Binding::Port(port)) => SocketAddr::new(asked.ip(), *port),
            _ => asked,
        }
    }

    pub fn failure(&self, asked: SocketAddr) -> Option<&str> {
        match self.bindings.get(&asked) {
            Some(Binding::Failed(why)) => Some(why),
            _ => None,
        }
    }
}
