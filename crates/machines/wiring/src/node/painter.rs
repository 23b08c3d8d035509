//! The painter: draws the picture whenever something has changed, and hands it out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::{Clients, ObjectKey, Requests, Shutdown, WorkspaceId};
use fairway_fabric::Fabric;
use fairway_machines_frames::Tenant;
use fairway_machines_frames::topology::{Plan, PortId};
use fairway_machines_frames::track::Bounds;
use fairway_machines_network::{Elsewhere, Network, Space};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::json;
use tokio::time::Instant;

use super::Shared;
use super::listeners::Listeners;
use crate::kinds::{NETWORK_POLICY, SERVICE, api_version, path};
use crate::picture::{Door, Drawing, Names, Numbers, Remark};
use crate::pools::Pool;
use crate::settings::{NodeOptions, Settings};
use crate::view::HOST_PORTS;
use crate::wiring::Wiring;

/// A burst of changes is one picture.
const SETTLE: Duration = Duration::from_millis(3);
/// How soon to try again what the host refused, such as a port that somebody else has.
const RETRY: Duration = Duration::from_secs(10);

pub(super) struct Painter {
    shared: Arc<Shared>,
    node: String,
    settings: Settings,
    space: Option<Space>,
    recorder: Recorder,
    clients: Clients,
    /// What was handed out last.
    zones: BTreeMap<WorkspaceId, Names>,
    sockets: BTreeMap<PathBuf, PortId>,
    listeners: Listeners,
    told: BTreeSet<Remark>,
}

/// Numbers of a switch.
struct OfNetwork<'n> {
    network: &'n Network,
}

impl Numbers for OfNetwork<'_> {
    fn tenant(&self, workspace: &WorkspaceId) -> Tenant {
        self.network.tenant(workspace.as_str())
    }

    fn port(&self, socket: &Path) -> PortId {
        self.network.attach(socket.to_owned())
    }
}

impl Painter {
    pub(super) fn new(
        shared: Arc<Shared>,
        options: NodeOptions,
        recorder: Recorder,
        clients: Clients,
    ) -> Self {
        Self {
            shared,
            node: options.node,
            settings: options.settings,
            space: options.space,
            recorder,
            clients,
            zones: BTreeMap::new(),
            sockets: BTreeMap::new(),
            listeners: Listeners::default(),
            told: BTreeSet::new(),
        }
    }

    /// Paints until the end.
    pub(super) async fn run(mut self, mut shutdown: Shutdown) {
        let mut retry = Some(Instant::now());
        loop {
            let later = async {
                match retry {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = shutdown.wait() => break,
                () = self.shared.wake.notified() => {}
                () = later => {}
            }
            tokio::select! {
                () = shutdown.wait() => break,
                () = tokio::time::sleep(SETTLE) => {}
            }
            retry = match self.paint().await {
                true => None,
                false => Some(Instant::now() + RETRY),
            };
        }
        // Guests keep running, and the next switch connects to them.
        self.shared.network.store(None);
    }

    /// Draws and hands out. `false`: the host refused something, which may be otherwise later.
    async fn paint(&mut self) -> bool {
        if !self.shared.caches.is_synced() {
            return true;
        }
        let Some(network) = self.network() else {
            return false;
        };
        let links = self.shared.peers.as_ref().map(|peers| peers.links());
        let world = (self.shared.caches).world(self.shared.desk.plugged(), links.unwrap_or_default());
        let numbers = OfNetwork { network: &network };
        let picture = self.drawing(&numbers, &self.shared.pools.all()).draw(&world);
        // Cards are connected before a plan names them, and disconnected after none does.
        let wanted: BTreeMap<PathBuf, PortId> = (world.plugged.values())
            .flat_map(|plugged| &plugged.cards)
            .map(|card| (card.socket.clone(), network.attach(card.socket.clone())))
            .collect();
        // Names first: whoever gets an address may ask at once.
        self.set_zones(picture.names);
        if let Err(contradiction) = network.apply(picture.plan).await {
            tracing::error!(error = %contradiction, "the switch keeps its older picture of the network");
        }
        for (socket, port) in std::mem::replace(&mut self.sockets, wanted) {
            if !self.sockets.contains_key(&socket) {
                network.detach(port);
            }
        }
        let fabric: Arc<dyn Fabric> = Arc::new(Wiring::of(Arc::clone(&self.shared)));
        let opened = self.listeners.set(&picture.doors, &fabric).await;
        let all_open = opened.remarks.is_empty();
        self.tell_ports(&picture.doors, &picture.remarks, &opened.remarks);
        let remarks: BTreeSet<Remark> = picture.remarks.into_iter().chain(opened.remarks).collect();
        self.shared.desk.set_problems(&remarks);
        self.tell(remarks);
        all_open
    }

    fn drawing<'a>(&'a self, numbers: &'a dyn Numbers, pools: &'a [Pool]) -> Drawing<'a> {
        Drawing {
            settings: &self.settings,
            node: &self.node,
            numbers,
            pools,
        }
    }

    /// The switch, started if there is none.
    fn network(&self) -> Option<Arc<Network>> {
        if let Some(network) = self.shared.network.load_full() {
            return Some(network);
        }
        let settings = fairway_machines_network::Settings {
            plan: Plan {
                gateway: crate::picture::gateway(&self.settings),
                guests: Vec::new(),
                cards: Vec::new(),
                peers: Vec::new(),
                services: Vec::new(),
                policies: Default::default(),
                outside: self.settings.outside.clone(),
            },
            bounds: Bounds::default(),
            space: self.space.clone(),
        };
        match Network::start(settings, Arc::clone(&self.shared.names)) {
            Ok(network) => {
                let network = Arc::new(network);
                if let Some(peers) = &self.shared.peers {
                    network.set_elsewhere(Arc::clone(peers) as Arc<dyn Elsewhere>);
                }
                self.shared.network.store(Some(Arc::clone(&network)));
                Some(network)
            }
            Err(error) => {
                tracing::error!(%error, "machines have no network, because the switch cannot start; trying again");
                None
            }
        }
    }

    fn set_zones(&mut self, names: BTreeMap<WorkspaceId, Names>) {
        for (workspace, names) in &names {
            if self.zones.get(workspace) != Some(names) {
                (self.shared.names).set_zone(workspace.as_str(), names.zone(&self.settings));
            }
        }
        for workspace in std::mem::replace(&mut self.zones, names).keys() {
            if !self.zones.contains_key(workspace) {
                self.shared.names.remove_zone(workspace.as_str());
            }
        }
    }

    /// Writes events about what is new.
    fn tell(&mut self, remarks: BTreeSet<Remark>) {
        let new: Vec<Remark> = remarks.difference(&self.told).cloned().collect();
        self.told = remarks;
        if new.is_empty() {
            return;
        }
        let (recorder, shared) = (self.recorder.clone(), Arc::clone(&self.shared));
        // Nobody waits for events.
        tokio::spawn(async move {
            for remark in new {
                let happening = Happening {
                    severity: Severity::Warning,
                    reason: remark.reason,
                    message: remark.message.clone(),
                };
                let about = about(&shared, &remark);
                recorder.record(&remark.key.workspace, &about, happening).await;
            }
        });
    }

    /// Writes the condition of Services whose ports could not be opened, or can now.
    fn tell_ports(&self, doors: &[Door], drawn: &[Remark], opened: &[Remark]) {
        let mut wanted: BTreeMap<&ObjectKey, Vec<&Remark>> =
            doors.iter().map(|door| (&door.service, Vec::new())).collect();
        for remark in drawn
            .iter()
            .chain(opened)
            .filter(|remark| remark.kind == SERVICE.kind)
        {
            wanted.entry(&remark.key).or_default().push(remark);
        }
        for (key, remarks) in wanted {
            let said = self
                .shared
                .caches
                .services
                .get(key)
                .and_then(|it| it.ports_are_open.get(&self.node).copied());
            let is_open = remarks.is_empty();
            // Who never had a problem needs no condition.
            if said == Some(is_open) || (said.is_none() && is_open) {
                continue;
            }
            let messages: Vec<&str> = remarks.iter().map(|remark| remark.message.as_str()).collect();
            let condition = json!({
                "type": format!("{HOST_PORTS}{}", self.node), "status": if is_open { "True" } else { "False" },
                "reason": remarks.first().map_or("PortsOpen", |remark| remark.reason),
                "message": messages.join(" "),
                "lastTransitionTime": Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            });
            let object = json!({
                "apiVersion": "v1", "kind": SERVICE.kind,
                "metadata": {"name": key.name, "namespace": key.namespace},
                "status": {"conditions": [condition]},
            });
            let requests = Requests::new(self.clients.of(&key.workspace));
            let path = format!("{}/status", path(&SERVICE, key));
            let manager = manager(&self.node);
            tokio::spawn(async move {
                if let Err(failure) = requests.apply(&path, &object, &manager, true).await {
                    tracing::warn!(
                        reason = failure.sentence(),
                        "the condition of a Service was not written"
                    );
                }
            });
        }
    }
}

/// As who a node applies: one that applied under another's name would take away what that said. Names of managers are shorter than those of
/// nodes may be.
fn manager(node: &str) -> String {
    let short: String = node.chars().take(100).collect();
    format!("fairway-machines-wiring-{short}")
}

/// The object of a remark, for an event about it.
fn about(shared: &Shared, remark: &Remark) -> ObjectReference {
    let key = &remark.key;
    let caches = &shared.caches;
    let (api_version, uid) = match remark.kind {
        kind if kind == SERVICE.kind => (
            api_version(&SERVICE),
            caches.services.get(key).map(|service| service.uid.clone()),
        ),
        kind if kind == NETWORK_POLICY.kind => (api_version(&NETWORK_POLICY), None),
        _ => {
            let instance = caches.instances.get(key);
            return crate::address::about(key, instance.as_ref().map_or("", |it| it.uid.as_str()));
        }
    };
    ObjectReference {
        api_version: Some(api_version),
        kind: Some(remark.kind.to_owned()),
        namespace: Some(key.namespace.clone()),
        name: Some(key.name.clone()),
        uid,
        ..ObjectReference::default()
    }
}
