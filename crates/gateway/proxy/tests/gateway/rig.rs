//! A proxy with a table that tests write in a few lines.

use std::net::SocketAddr;
use std::sync::Arc;

use fairway_fabric::PlainTcp;
use fairway_gateway_proxy::{Applied, Guards, Options, Proxy};
use fairway_gateway_routes::table::{
    Action, Backend, BackendProtocol, Cluster, ClusterKey, Door, Endpoint, Entry, Filter, HostPattern,
    Listener, ListenerKey, Match, Names, PathMatch, Rule, RuleKey, Table, Target, Timeouts, Traffic,
};

/// Any free port of the loopback.
pub(crate) const ANYWHERE: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

pub(crate) fn listener_key() -> ListenerKey {
    ListenerKey {
        workspace: "root".into(),
        namespace: "team".into(),
        gateway: "gate".into(),
        listener: "http".into(),
    }
}

pub(crate) fn rule_key(name: &str) -> RuleKey {
    RuleKey {
        listener: listener_key(),
        kind: "HTTPRoute",
        namespace: "team".into(),
        name: name.into(),
        rule: 0,
        section: None,
    }
}

pub(crate) fn cluster_key(service: &str) -> ClusterKey {
    ClusterKey {
        workspace: "root".into(),
        namespace: "team".into(),
        service: service.into(),
        port: 80,
        via: String::new(),
    }
}

pub(crate) fn cluster(service: &str, endpoints: &[SocketAddr]) -> Cluster {
    Cluster {
        key: cluster_key(service),
        protocol: BackendProtocol::Http1,
        tls: None,
        traffic: Traffic::default(),
        endpoints: endpoints.iter().copied().map(Endpoint::Address).collect(),
    }
}

pub(crate) fn to(service: &str) -> Backend {
    Backend {
        weight: 1,
        target: Target::Cluster(cluster_key(service)),
        filters: Vec::new(),
    }
}

/// A rule that forwards to the Service of its name.
pub(crate) fn rule(name: &str) -> Rule {
    Rule {
        key: rule_key(name),
        filters: Vec::new(),
        action: Action::Forward(vec![to(name)]),
        timeouts: Timeouts::default(),
        retry: None,
        affinity: None,
    }
}

pub(crate) fn filtered(name: &str, filters: Vec<Filter>) -> Rule {
    Rule {
        filters,
        ..rule(name)
    }
}

pub(crate) fn prefix(path: &str) -> Match {
    Match {
        path: PathMatch::Prefix(path.into()),
        method: None,
        headers: Vec::new(),
        query: Vec::new(),
    }
}

/// One listener for all names, with rules by prefix in the order given.
pub(crate) fn listener(rules: Vec<(&str, Rule)>) -> Listener {
    let entries = rules
        .into_iter()
        .map(|(path, rule)| Entry {
            matches: prefix(path),
            rule: Arc::new(rule),
        })
        .collect();
    let mut routes = Names::default();
    routes.insert(HostPattern::Any, Arc::new(entries));
    Listener {
        key: listener_key(),
        routes,
    }
}

pub(crate) fn http_table(rules: Vec<(&str, Rule)>, clusters: Vec<Cluster>) -> Table {
    let mut names = Names::default();
    names.insert(HostPattern::Any, Arc::new(listener(rules)));
    table(Door::Http(names), clusters)
}

pub(crate) fn table(door: Door, clusters: Vec<Cluster>) -> Table {
    Table {
        doors: [(ANYWHERE, door)].into(),
        clusters: clusters
            .into_iter()
            .map(|cluster| (cluster.key.clone(), Arc::new(cluster)))
            .collect(),
        ..Table::default()
    }
}

pub(crate) struct Rig {
    pub(crate) proxy: Proxy,
    pub(crate) door: SocketAddr,
}

impl Rig {
    pub(crate) fn new(table: Table) -> Self {
        Self::with(table, &Guards::default(), options())
    }

    pub(crate) fn with(table: Table, guards: &Guards, options: Options) -> Self {
        let proxy = Proxy::start(options, Arc::new(PlainTcp::default())).unwrap();
        let applied = proxy.serve(Arc::new(table), guards);
        assert!(applied.is_whole(), "{applied:?}");
        let door = *applied.doors[&ANYWHERE].as_ref().unwrap();
        Self { proxy, door }
    }

    /// The same door, another table.
    pub(crate) fn serve(&self, table: Table) -> Applied {
        self.proxy.serve(Arc::new(table), &Guards::default())
    }

    /// The value of a metric's line that begins so.
    pub(crate) fn metric(&self, line: &str) -> u64 {
        let text = self.proxy.metrics();
        let found = text.lines().find(|found| found.starts_with(line));
        found
            .and_then(|found| found.rsplit(' ').next()?.parse().ok())
            .unwrap_or(0)
    }
}

pub(crate) fn options() -> Options {
    Options {
        workers: Some(2),
        ..Options::default()
    }
}
