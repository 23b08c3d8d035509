//! What publishes services, wired to the API of this process and to its network: the controllers of gateways, and the proxy
//! that serves what they decide.
//!
//! The proxy starts with the first Gateway or Route. Before that there is neither a thread nor a socket of it.

mod access_log;
mod doors;
mod names;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairway_controller::{ClientFactory, Metrics, Shutdown};
use fairway_fabric::{Connection, Destination, DialError, Fabric, PlainTcp, Talk};
use fairway_gateway_engine::{
    Acknowledged, DataPlane, Explained, Guards, Issuer, NotBound, Options, Probe, Protection, Realms,
    Settings, Stage,
};
use fairway_gateway_proxy as proxy;
use fairway_gateway_proxy::{Proxy, StageKind};
use fairway_gateway_routes::table::{Certificate, ListenerKey, RuleKey, Table};
use fairway_kernel_apiserver::Kernel;
use fairway_outbound::Outbound;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{error, warn};

pub(super) use doors::Doors;

use super::machines::Reachable;
use super::rotation::Live;
use crate::config::gateway::GatewayConfig;

/// How long requests under way may take when the process ends.
const DRAIN: Duration = Duration::from_secs(5);

/// Starts them; the task ends when `shutdown` has been given and requests under way are finished.
pub(super) fn start(
    kernel: &Arc<Kernel>,
    config: &GatewayConfig,
    (clients, metrics): (ClientFactory, Arc<Metrics>),
    (live, reserved, realms): (&Live, Vec<String>, Arc<dyn Realms>),
    mut reachable: Reachable,
    shutdown: Shutdown,
) -> JoinHandle<()> {
    let of_machines = reachable.names.take();
    let plane = Arc::new(Plane {
        fabric: Arc::new(Backends::new(reachable)),
        access_log: config.access_log.clone(),
        start_traces: config.start_traces,
        proxy: Mutex::default(),
    });
    let shown = Arc::clone(&plane);
    kernel
        .more_metrics
        .add(move || shown.running().map(|proxy| proxy.metrics()).unwrap_or_default());
    let options = Options {
        clients,
        plane: Arc::clone(&plane) as Arc<dyn DataPlane>,
        outbound: Arc::new(Outbound::new(config.allowed_hosts.clone()).set_by("--gateway-allowed-hosts")),
        realms,
        issuer: Arc::new(live.clone()),
        names: watch::channel(Arc::default()).0,
        settings: Settings {
            reserved,
            ..config.settings.clone()
        },
    };
    let names = names::serve(
        config.dns,
        config.settings.domain.clone(),
        of_machines,
        options.names.subscribe(),
        shutdown.clone(),
    );
    let (running, service) = fairway_gateway_engine::start(options, metrics, shutdown);
    if let Err(problem) = kernel.serve_api(&service) {
        error!(%problem, "questions about gateways are not answered");
    }
    tokio::spawn(async move {
        tokio::join!(running, names);
        plane.end().await;
    })
}

/// The proxy, once there is something to serve.
struct Plane {
    fabric: Arc<dyn Fabric>,
    access_log: Option<PathBuf>,
    start_traces: bool,
    proxy: Mutex<Option<Arc<Proxy>>>,
}

impl Plane {
    fn running(&self) -> Option<Arc<Proxy>> {
        self.proxy.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn started(&self) -> Result<Arc<Proxy>, proxy::StartError> {
        let mut running = self.proxy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(proxy) = &*running {
            return Ok(Arc::clone(proxy));
        }
        let options = proxy::Options {
            access_log: self.access_log.as_deref().map(access_log::to),
            start_traces: self.start_traces,
            ..proxy::Options::default()
        };
        let started = Proxy::start(options, Arc::clone(&self.fabric))?;
        Ok(Arc::clone(running.insert(Arc::new(started))))
    }

    async fn end(&self) {
        let running = self.proxy.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Nobody else holds it when the controllers have ended, but for a look at its figures.
        if let Some(proxy) = running.and_then(Arc::into_inner) {
            proxy.shutdown(DRAIN).await;
        }
    }

    async fn apply(&self, table: Arc<Table>, guards: Guards) -> Acknowledged {
        if table.doors.is_empty() && self.running().is_none() {
            return Acknowledged::default();
        }
        let proxy = match self.started() {
            Ok(proxy) => proxy,
            Err(problem) => {
                error!(%problem, "Gateways cannot be served");
                let closed = table
                    .doors
                    .keys()
                    .map(|door| (*door, not_bound(problem.to_string())));
                return Acknowledged {
                    closed: closed.collect(),
                };
            }
        };
        // Away from those who wait for something: with thousands of rules it takes a while.
        match tokio::task::spawn_blocking(move || serve(&proxy, table, guards)).await {
            Ok(acknowledged) => acknowledged,
            // As if it had been done here.
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The process ends.
            Err(_) => Acknowledged::default(),
        }
    }
}

fn serve(proxy: &Proxy, table: Arc<Table>, guards: Guards) -> Acknowledged {
    let mut asked = proxy::Guards::default();
    for (rule, protection) in guards {
        match protection {
            Protection::Guarded(guard) => asked.insert(rule, guard),
            Protection::Missing(why) => asked.insert_missing(rule, why),
        }
    }
    let applied = proxy.serve(table, &asked);
    for problem in &applied.problems {
        warn!(%problem, "a part of what Gateways ask for cannot be served");
    }
    let closed: BTreeMap<SocketAddr, NotBound> = (applied.doors.into_iter())
        .filter_map(|(door, outcome)| {
            let why = outcome.err()?;
            let needs_privilege = needs_privilege(door);
            Some((door, NotBound { needs_privilege, why }))
        })
        .collect();
    Acknowledged { closed }
}

impl DataPlane for Plane {
    fn serve(&self, table: Arc<Table>, guards: Guards) -> BoxFuture<'_, Acknowledged> {
        self.apply(table, guards).boxed()
    }

    fn explain(&self, request: Probe) -> BoxFuture<'_, Explained> {
        async move {
            let Some(proxy) = self.running() else {
                return Explained::default();
            };
            let explained = proxy.explain(&asked(request)).await;
            let stages = explained.stages.into_iter().map(|stage| Stage {
                kind: match stage.kind {
                    StageKind::Request => "Request",
                    StageKind::Door => "Door",
                    StageKind::Listener => "Listener",
                    StageKind::Route => "Route",
                    StageKind::Policy => "Policy",
                    StageKind::Filter => "Filter",
                    StageKind::Backend => "Backend",
                },
                what: stage.what,
                seen: stage.seen,
                passes: stage.passes,
            });
            Explained {
                stages: stages.collect(),
                rule: explained.rule,
                status: explained.status,
            }
        }
        .boxed()
    }

    fn table(&self) -> Arc<Table> {
        self.running().map(|proxy| proxy.table()).unwrap_or_default()
    }

    fn probe<'p>(
        &'p self,
        listener: &'p ListenerKey,
        request: Probe,
    ) -> BoxFuture<'p, Option<(RuleKey, bool)>> {
        async move {
            match self.running()?.probe(listener, &asked(request)).await {
                proxy::Probe::Denied { rule, .. } => Some((rule, true)),
                proxy::Probe::Allowed { rule, .. } => Some((rule, false)),
                proxy::Probe::NoListener | proxy::Probe::Malformed(_) | proxy::Probe::NoRoute => None,
            }
        }
        .boxed()
    }
}

fn asked(request: Probe) -> proxy::ProbeRequest {
    proxy::ProbeRequest {
        method: request.method,
        uri: request.uri,
        headers: request.headers,
        client: request.client,
    }
}

impl Issuer for Live {
    fn issue(&self, names: &[String], seconds: i64) -> Result<Certificate, String> {
        let pair = self
            .serving(names, seconds)
            .map_err(|error| format!("{error:#}"))?;
        Ok(Certificate {
            chain: pair.certificate.into(),
            key: pair.key.into(),
        })
    }
}

fn not_bound(why: String) -> NotBound {
    NotBound {
        needs_privilege: false,
        why,
    }
}

/// Whether this process may not have a port, whoever else has it.
fn needs_privilege(door: SocketAddr) -> bool {
    TcpListener::bind(door).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// The way to backends: machines and Services through the switch, everything else by the host's own network.
struct Backends {
    reachable: Reachable,
    plain: PlainTcp,
}

impl Backends {
    fn new(reachable: Reachable) -> Self {
        Self {
            reachable,
            plain: PlainTcp::default(),
        }
    }

    /// Which way leads to a destination; the API lets nobody write endpoints of these sorts, and nothing here depends on that.
    fn way(&self, to: &Destination) -> Result<&dyn Fabric, DialError> {
        let is_own = match to.address {
            IpAddr::V4(address) => self.reachable.networks.iter().any(|net| net.contains(address)),
            IpAddr::V6(_) => false,
        };
        let unreachable = |why: &str| DialError::Unreachable {
            to: to.clone(),
            why: why.to_owned(),
        };
        if is_own {
            let fabric = self.reachable.fabric.as_deref();
            return fabric.ok_or_else(|| unreachable("no machines run in this process (--no-machines)"));
        }
        let is_special = match to.address {
            IpAddr::V4(ip) => {
                ip.is_loopback() || ip.is_link_local() || ip.is_multicast() || ip.is_unspecified()
            }
            IpAddr::V6(ip) => {
                ip.is_loopback() || ip.is_unicast_link_local() || ip.is_multicast() || ip.is_unspecified()
            }
        };
        match is_special {
            true => Err(unreachable("such an address is never a backend's")),
            false => Ok(&self.plain),
        }
    }
}

impl Fabric for Backends {
    fn dial(&self, to: Destination) -> BoxFuture<'_, Result<Box<dyn Connection>, DialError>> {
        match self.way(&to) {
            Ok(way) => way.dial(to),
            Err(problem) => futures::future::ready(Err(problem)).boxed(),
        }
    }

    fn talk(&self, to: Destination) -> BoxFuture<'_, Result<Talk, DialError>> {
        match self.way(&to) {
            Ok(way) => way.talk(to),
            Err(problem) => futures::future::ready(Err(problem)).boxed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use fairway_machines_wiring::frames::address::Cidr;

    use super::*;

    #[test]
    fn backends_are_reached_by_their_own_way() {
        let backends = Backends::new(Reachable {
            networks: vec![Cidr::of([10, 88, 0, 0].into(), 16)],
            fabric: None,
            names: None,
        });
        for (address, is_reached, reason) in [
            ("192.0.2.7", true, "the host's network"),
            ("10.88.3.4", false, "no machines run here"),
            (
                "127.0.0.1",
                false,
                "what listens on the host's loopback is not for tenants",
            ),
            ("169.254.169.254", false, "nor are keys of the cloud"),
            ("::1", false, "the same in IPv6"),
        ] {
            let to = Destination::new("root", address.parse::<IpAddr>().unwrap(), 80);
            assert_eq!(backends.way(&to).is_ok(), is_reached, "{reason}");
        }
    }
}
