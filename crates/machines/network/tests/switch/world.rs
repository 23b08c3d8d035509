//! Guests of several workspaces on one switch.

use std::net::Ipv4Addr;
use std::sync::Arc;

use fairway_dns::Server;
use fairway_machines_network::frames::outside::{Allowed, Outside};
use fairway_machines_network::frames::packet::TCP;
use fairway_machines_network::frames::policy::compile::{Endpoint, Namespace, Source, compile};
use fairway_machines_network::frames::service::{Backend, ServicePort};
use fairway_machines_network::frames::topology::{Gateway, Guest as Card, Plan, PortId};
use fairway_machines_network::frames::track::Bounds;
use fairway_machines_network::frames::{Cidr, Mac};
use fairway_machines_network::{Counters, Network, Settings};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::guest::Guest;

pub(crate) const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);
pub(crate) const VIP: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 10);

pub(crate) fn ip(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 88, 0, number)
}

/// Workspace, address, port, backends.
type Service = (String, Ipv4Addr, u16, Vec<(Ipv4Addr, u16)>);

pub(crate) struct World {
    pub(crate) runtime: Runtime,
    pub(crate) names: Arc<Server>,
    pub(crate) network: Option<Arc<Network>>,
    pub(crate) guests: Vec<Guest>,
    /// The numbers of the guests and their workspaces.
    members: Vec<(u8, String)>,
    services: Vec<Service>,
    /// Policies of the workspace `shop`, in which every guest has the label `vm` with its number.
    pub(crate) policies: Vec<Value>,
    outside: Outside,
    /// Where guests' devices are, if they have some.
    pub(crate) space: Option<fairway_machines_network::Space>,
    _directory: TempDir,
}

fn gateway() -> Gateway {
    Gateway {
        mac: Mac([2, 0, 0, 0, 0, 1]),
        address: GATEWAY,
        network: "10.88.0.0/16".parse().unwrap(),
        services: "10.96.0.0/12".parse().unwrap(),
        mtu: 1500,
        resolvers: vec![],
        domain: "cluster.local".into(),
        lease_seconds: 3600,
    }
}

impl World {
    pub(crate) fn new(members: &[(u8, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let guests = members
            .iter()
            .map(|&(number, _)| {
                let mut guest = Guest::new(directory.path(), number);
                guest.take_address(ip(number), GATEWAY);
                guest
            })
            .collect();
        let mut world = Self {
            runtime: Runtime::new().unwrap(),
            names: Arc::new(Server::new(None)),
            network: None,
            guests,
            members: members
                .iter()
                .map(|&(number, name)| (number, name.to_owned()))
                .collect(),
            services: Vec::new(),
            policies: Vec::new(),
            outside: Outside::default(),
            space: None,
            _directory: directory,
        };
        world.start();
        world
    }

    /// Starts a switch that knows nothing of any before it.
    pub(crate) fn start(&mut self) {
        let empty = Plan {
            gateway: gateway(),
            guests: vec![],
            cards: vec![],
            peers: vec![],
            services: vec![],
            policies: Default::default(),
            outside: Outside::default(),
        };
        let settings = Settings {
            plan: empty,
            bounds: Bounds::default(),
            space: self.space.clone(),
        };
        self.network = Some(Arc::new(
            Network::start(settings, Arc::clone(&self.names)).unwrap(),
        ));
        self.apply();
    }

    pub(crate) fn add_service(
        &mut self,
        workspace: &str,
        address: Ipv4Addr,
        port: u16,
        backends: &[(Ipv4Addr, u16)],
    ) {
        self.services
            .push((workspace.into(), address, port, backends.to_vec()));
    }

    pub(crate) fn allow(&mut self, address: Ipv4Addr, port: u16) {
        self.outside.allowed.push(Allowed {
            network: Cidr::host(address),
            port: Some(port),
        });
    }

    pub(crate) fn apply(&mut self) {
        self.apply_with(|_, _| {});
    }

    /// Applies the plan after a change of it, for which the network is at hand.
    pub(crate) fn apply_with(&mut self, change: impl FnOnce(&Network, &mut Plan)) {
        let network = self.network.clone().unwrap();
        let mut endpoints = Vec::new();
        let mut cards = Vec::new();
        for ((number, workspace), guest) in self.members.iter().zip(&self.guests) {
            let tenant = network.tenant(workspace);
            let port: PortId = network.attach(guest.path.clone());
            endpoints.push(Endpoint {
                tenant,
                namespace: "default".into(),
                labels: json!({ "vm": number.to_string() }),
                address: ip(*number),
                ports: vec![],
            });
            cards.push(Card {
                tenant,
                mac: Mac(guest.mac),
                address: ip(*number),
                ports: vec![port],
                hostname: format!("vm-{number}"),
                search: vec!["default.svc.cluster.local".into()],
                resolvers: vec![],
                options: vec![],
                accepts: None,
            });
        }
        let shop = network.tenant("shop");
        let sources: Vec<Source> = self
            .policies
            .iter()
            .map(|spec| Source {
                tenant: shop,
                namespace: "default".into(),
                name: "policy".into(),
                spec: spec.clone(),
            })
            .collect();
        let namespaces = [Namespace {
            tenant: shop,
            name: "default".into(),
            labels: json!({}),
        }];
        let services = self
            .services
            .iter()
            .map(|(workspace, address, port, backends)| ServicePort {
                tenant: network.tenant(workspace),
                address: *address,
                protocol: TCP,
                port: *port,
                backends: backends
                    .iter()
                    .map(|&(address, port)| Backend { address, port })
                    .collect(),
                by_client: false,
            });
        let mut plan = Plan {
            gateway: gateway(),
            guests: cards,
            cards: vec![],
            peers: vec![],
            services: services.collect(),
            policies: compile(&sources, &endpoints, &namespaces).0,
            outside: self.outside.clone(),
        };
        change(&network, &mut plan);
        self.runtime.block_on(network.apply(plan)).unwrap();
    }

    pub(crate) fn counters(&self) -> Counters {
        let network = self.network.as_ref().unwrap();
        self.runtime.block_on(network.counters()).unwrap()
    }
}
