//! A plain proxy in front of one backend, to be measured: `plain LISTEN BACKEND [WORKERS [ROUTES]]`.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use fairway_fabric::PlainTcp;
use fairway_gateway_proxy::{Guards, Options, Proxy};
use fairway_gateway_routes::table::{
    Action, Backend, BackendProtocol, Cluster, ClusterKey, Door, Endpoint, Entry, Filter, HostPattern,
    Listener, ListenerKey, Match, Names, PathMatch, Redirect, Rule, RuleKey, Table, Target, Timeouts,
    Traffic,
};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let argument = |at: usize| arguments.get(at).map(String::as_str);
    let door = argument(1).unwrap_or("127.0.0.1:8080").parse()?;
    let backend = argument(2).unwrap_or("127.0.0.1:8000").parse()?;
    let workers = argument(3).map(str::parse).transpose()?;
    let routes = argument(4).map(str::parse).transpose()?.unwrap_or(1);
    let options = Options {
        workers,
        ..Options::default()
    };
    let proxy = Proxy::start(options, Arc::new(PlainTcp::default()))?;
    let applied = proxy.serve(Arc::new(table(door, backend, routes, &[])), &Guards::default());
    if !applied.is_whole() {
        return Err(format!("{applied:?}").into());
    }
    // Each line is a path that is redirected from then on: a change of the table to be measured.
    let mut added = Vec::new();
    for line in std::io::stdin().lines() {
        added.push(line?);
        proxy.serve(Arc::new(table(door, backend, routes, &added)), &Guards::default());
        writeln!(std::io::stdout(), "{}", proxy.generation())?;
    }
    loop {
        std::thread::park();
    }
}

/// `/` leads to the backend, and so do `/route/1`, `/route/2`, ...
fn table(door: SocketAddr, backend: SocketAddr, routes: usize, added: &[String]) -> Table {
    let cluster = ClusterKey {
        workspace: "root".into(),
        namespace: "bench".into(),
        service: "backend".into(),
        port: backend.port(),
        via: String::new(),
    };
    let listener = ListenerKey {
        workspace: "root".into(),
        namespace: "bench".into(),
        gateway: "plain".into(),
        listener: "http".into(),
    };
    let entry = |at: usize, path: String| Entry {
        matches: Match {
            path: PathMatch::Prefix(path),
            method: None,
            headers: Vec::new(),
            query: Vec::new(),
        },
        rule: Arc::new(Rule {
            key: RuleKey {
                listener: listener.clone(),
                kind: "HTTPRoute",
                namespace: "bench".into(),
                name: format!("route-{at}"),
                rule: 0,
                section: None,
            },
            filters: Vec::new(),
            action: Action::Forward(vec![Backend {
                weight: 1,
                target: Target::Cluster(cluster.clone()),
                filters: Vec::new(),
            }]),
            timeouts: Timeouts::default(),
            retry: None,
            affinity: None,
        }),
    };
    let mut entries: Vec<Entry> = (1..routes).map(|at| entry(at, format!("/route/{at}"))).collect();
    for path in added {
        let mut redirected = entry(0, path.clone());
        let rule = Rule {
            filters: vec![Filter::Redirect(Redirect {
                scheme: None,
                hostname: None,
                path: None,
                port: None,
                status: 302,
            })],
            action: Action::Answered,
            ..(*redirected.rule).clone()
        };
        redirected.rule = Arc::new(rule);
        entries.push(redirected);
    }
    entries.push(entry(0, "/".into()));
    let mut by_host = Names::default();
    by_host.insert(HostPattern::Any, Arc::new(entries));
    let mut listeners = Names::default();
    listeners.insert(
        HostPattern::Any,
        Arc::new(Listener {
            key: listener.clone(),
            routes: by_host,
        }),
    );
    let backend = Cluster {
        key: cluster.clone(),
        protocol: BackendProtocol::Http1,
        tls: None,
        traffic: Traffic::default(),
        endpoints: vec![Endpoint::Address(backend)],
    };
    Table {
        doors: [(door, Door::Http(listeners))].into(),
        clusters: [(cluster, Arc::new(backend))].into(),
        ..Table::default()
    }
}
