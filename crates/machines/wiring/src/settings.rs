//! What the two sides are told at the start.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use fairway_controller::ClientFactory;
use fairway_controller::served::Served;
use fairway_machines_frames::address::Cidr;
use fairway_machines_frames::outside::Outside;
use fairway_machines_network::Space;

/// What the cluster's side ([`crate::run`]) is started with.
pub struct Options {
    /// Makes the clients of users, and knows whether there are workspaces.
    pub clients: ClientFactory,
    /// What is served, if somebody follows it: where IPAddressPools are found.
    pub served: Option<Served>,
    /// The networks.
    pub settings: Settings,
}

/// What a node's side ([`crate::Wiring::start`]) is started with.
pub struct NodeOptions {
    /// Makes the clients of users, and knows whether there are workspaces.
    pub clients: ClientFactory,
    /// What is served, if somebody follows it: where IPAddressPools are found.
    pub served: Option<Served>,
    /// The name of the Node.
    pub node: String,
    /// The network namespace with cards that are devices of the kernel, if there may be any.
    pub space: Option<Space>,
    /// How other nodes reach this one; nothing, if there shall be no others.
    pub tunnel: Option<Tunnel>,
    /// The networks.
    pub settings: Settings,
}

/// Where nodes listen for each other, unless another port is configured.
pub const TUNNEL_PORT: u16 = 10262;

/// How nodes reach each other. What goes between them is encrypted. Where there is one Node alone, nobody listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tunnel {
    /// The address of this node at which others reach it. The unspecified one means all, of which others are told the one that this
    /// host's packets come from.
    pub address: IpAddr,
    /// Its port; if none is configured, [`TUNNEL_PORT`], or any other while that is taken.
    pub port: Option<u16>,
}

impl Tunnel {
    /// Where it listens if nobody else does.
    pub fn usual(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port.unwrap_or(TUNNEL_PORT))
    }
}

/// The networks of an installation. Every node, and the cluster's side, must be told the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Machines' addresses are in it.
    pub machines: Cidr,
    /// The switch's own end of it, at which names are asked, too.
    pub gateway: Ipv4Addr,
    /// Services' addresses are in it: the range of the API server.
    pub services: Cidr,
    /// What names of the installation end with.
    pub domain: String,
    /// Who is asked for other names; nobody, if there are none.
    pub resolvers: Vec<SocketAddr>,
    /// What machines may reach beyond the installation.
    pub outside: Outside,
    /// The addresses of this host on which node ports are opened.
    pub addresses: Vec<IpAddr>,
    /// The addresses that Services of type LoadBalancer get while there is no IPAddressPool: first and last of each range.
    pub balancers: Vec<(Ipv4Addr, Ipv4Addr)>,
    /// Addresses and ports on which this program listens itself.
    pub listeners: Vec<SocketAddr>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            machines: Cidr::of(Ipv4Addr::new(10, 88, 0, 0), 16),
            gateway: Ipv4Addr::new(10, 88, 0, 1),
            services: Cidr::of(Ipv4Addr::new(10, 96, 0, 0), 12),
            domain: "cluster.local".to_owned(),
            resolvers: Vec::new(),
            outside: Outside::default(),
            addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
            // A host's loopback has more addresses than one, so that two Services may have the same port.
            balancers: vec![(Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 254))],
            listeners: Vec::new(),
        }
    }
}
