//! What the controllers are told at the start.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use fairway_controller::ClientFactory;
use fairway_outbound::Outbound;

use tokio::sync::watch;

use crate::{DataPlane, Issuer, Names, Realms};

/// What [`crate::start`] is started with.
pub struct Options {
    /// Makes the clients of users, and knows whether there are workspaces.
    pub clients: ClientFactory,
    /// Who serves.
    pub plane: Arc<dyn DataPlane>,
    /// How policies reach key servers and the like, whose addresses tenants name.
    pub outbound: Arc<Outbound>,
    /// Whose tokens policies may name without calling anybody, and who of them still counts.
    pub realms: Arc<dyn Realms>,
    /// Who signs certificates.
    pub issuer: Arc<dyn Issuer>,
    /// Who tells which names lead where.
    pub names: watch::Sender<Arc<Names>>,
    pub settings: Settings,
}

/// How this installation publishes services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where Gateways listen that ask for no address, and OpenShift's Routes.
    pub address: IpAddr,
    /// Gateways get addresses of their own out of this network instead: address and bits.
    pub pool: Option<(Ipv4Addr, u8)>,
    /// The ports of OpenShift's Routes.
    pub http: u16,
    pub https: u16,
    /// What host names that Fairway makes up end with.
    pub domain: String,
    /// Host names of the API server, `*.example.com` among them: tenants get no certificates for them.
    pub reserved: Vec<String>,
    /// Requests that a rate limit cannot be counted for are refused instead of let pass.
    pub refuse_uncounted: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            pool: None,
            http: 80,
            https: 443,
            domain: "apps.fairway.localhost".to_owned(),
            reserved: Vec::new(),
            refuse_uncounted: false,
        }
    }
}
