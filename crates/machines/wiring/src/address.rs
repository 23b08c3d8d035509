//! One address per machine, for as long as the machine exists.
//!
//! Reservations say whose an address is (`reservation`); the instance is told by an annotation.

mod decide;

use std::collections::{BTreeMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use fairway_api::kubevirt::{VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE};
use fairway_controller::cache::Cache;
use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::requests::version;
use fairway_controller::{
    Clients, Controller, Failure, Json, Manager, Metadata, ObjectKey, Outcome, Queue, Reach, Reconcile,
    Requests, WorkspaceId,
};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::watcher::Config;
use serde_json::{Value, json};

use self::decide::{Observed, Range, Step, decide};
use crate::kinds::{IP_ADDRESS, api_version, collection, path};
use crate::reservation::{self, INSTANCE, Reservation, SEEN};
use crate::settings::Settings;
use crate::view::{Instance, Seen};
use crate::watches::{follow_in, workspace_of};
use crate::{ADDRESS_ANNOTATION, USER};

const NAME: &str = "machine-addresses";
const WORKERS: usize = 4;
/// More steps than this mean that others are quicker again and again.
const STEPS: usize = 64;
/// How soon to look again while lists are still being read.
const UNTIL_SYNCED: Duration = Duration::from_millis(50);

/// The controller.
struct Addresses {
    clients: Clients,
    /// Where reservations are.
    home: WorkspaceId,
    range: Range,
    instances: Arc<Cache<Instance>>,
    machines: Arc<Cache<()>>,
    reservations: Arc<Cache<Option<Reservation>>>,
    recorder: Recorder,
}

/// Starts the controller. Whoever follows instances tells it of their changes through the queue.
pub(crate) fn start(
    manager: &mut Manager,
    settings: &Settings,
    instances: &Arc<Cache<Instance>>,
) -> Queue<ObjectKey> {
    let clients = manager.clients(USER);
    let home = reservation::home(clients.reach());
    let queue: Queue<ObjectKey> = Queue::default();
    let machines = Arc::new(Cache::new(clients.reach()));
    let reservations: Arc<Cache<Option<Reservation>>> = Arc::new(Cache::new(&Reach::One(home.clone())));
    let sink = queue.clone();
    manager.spawn(follow_in(
        clients.every(),
        VIRTUAL_MACHINE,
        Config::default(),
        manager.shutdown(),
        Arc::clone(&machines),
        |_: &ObjectKey, _: Metadata| (),
        move |change| {
            // A machine's address is given with its first instance, and goes with the machine.
            if change.now.is_none() {
                sink.add(change.key.clone());
            }
        },
    ));
    let sink = queue.clone();
    manager.spawn(follow_in(
        clients.of(&home),
        IP_ADDRESS,
        reservation::ours(),
        manager.shutdown(),
        Arc::clone(&reservations),
        |_: &ObjectKey, object: Json| Reservation::read(&object.value),
        move |change| {
            for reservation in [change.before, change.now].into_iter().flatten().flatten() {
                sink.add(reservation.machine.clone());
            }
        },
    ));
    let reconciler = Addresses {
        recorder: Recorder::new(clients.clone(), NAME),
        clients,
        home,
        range: Range {
            network: settings.machines,
            gateway: settings.gateway,
        },
        instances: Arc::clone(instances),
        machines,
        reservations,
    };
    let controller = Controller::new(NAME, queue.clone(), reconciler).workers(WORKERS);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
    queue
}

/// A machine as it was read.
struct Scene {
    key: ObjectKey,
    instance: Option<(Instance, Value)>,
    has_machine: bool,
    /// Own addresses, with the versions that were judged.
    own: BTreeMap<Ipv4Addr, (Reservation, Value)>,
    /// Addresses that turned out to be somebody else's, which the cache does not know yet.
    lost: HashSet<Ipv4Addr>,
}

impl Addresses {
    /// Whether somebody has an address, as far as is known.
    fn owner_of(&self, address: Ipv4Addr) -> Option<Reservation> {
        let key = ObjectKey::new(&self.home, "", &address.to_string());
        self.reservations.get(&key)?.as_ref().clone()
    }

    fn known_of(&self, machine: &ObjectKey) -> BTreeMap<Ipv4Addr, String> {
        let mut known = BTreeMap::new();
        self.reservations.keys_where(|key, reservation| {
            if let Some(reservation) = reservation.as_ref().filter(|it| it.machine == *machine)
                && let Ok(address) = key.name.parse()
            {
                known.insert(address, reservation.instance.clone());
            }
            false
        });
        known
    }

    fn next(
        &self,
        key: &ObjectKey,
        instance: Option<&Instance>,
        has_machine: bool,
        own: &BTreeMap<Ipv4Addr, String>,
        lost: &HashSet<Ipv4Addr>,
    ) -> Step {
        let is_taken = |address: Ipv4Addr| {
            lost.contains(&address) || self.owner_of(address).is_some_and(|held| held.machine != *key)
        };
        let observed = Observed {
            identity: &format!("{}/{}/{}", key.workspace, key.namespace, key.name),
            instance,
            has_machine,
            own,
            is_taken: &is_taken,
        };
        decide(self.range, &observed)
    }

    fn home(&self) -> Requests {
        Requests::new(self.clients.of(&self.home))
    }

    fn reservation_path(&self, address: Ipv4Addr) -> String {
        path(&IP_ADDRESS, &ObjectKey::new(&self.home, "", &address.to_string()))
    }

    /// Reads everything anew. Reservations come first: what is done to one afterwards names the version that was read, so
    /// whatever happened since is noticed.
    async fn observe(&self, key: &ObjectKey, known: &BTreeMap<Ipv4Addr, String>) -> Result<Scene, Failure> {
        let mut own = BTreeMap::new();
        for address in known.keys() {
            if let Some(held) = self.read_own(key, *address).await? {
                own.insert(*address, held);
            }
        }
        let instance = self.find(&VIRTUAL_MACHINE_INSTANCE, key).await?;
        let has_machine = match instance {
            Some(_) => true,
            None => self.find(&VIRTUAL_MACHINE, key).await?.is_some(),
        };
        Ok(Scene {
            key: key.clone(),
            instance: instance.map(|object| (Instance::read(key, &object), object)),
            has_machine,
            own,
            lost: HashSet::new(),
        })
    }

    /// An address as it is now, if it is this machine's.
    async fn read_own(
        &self,
        key: &ObjectKey,
        address: Ipv4Addr,
    ) -> Result<Option<(Reservation, Value)>, Failure> {
        let object = self.home().get(&self.reservation_path(address)).await?;
        Ok(object.and_then(|object| {
            let held = Reservation::read(&object).filter(|held| held.machine == *key)?;
            Some((held, object))
        }))
    }

    /// An object by its key. It is looked for over all workspaces, since its own may be gone.
    async fn find(&self, kind: &fairway_api::Kind, key: &ObjectKey) -> Result<Option<Value>, Failure> {
        let all = Requests::new(self.clients.every());
        let query = format!(
            "{}?fieldSelector=metadata.namespace%3D{}%2Cmetadata.name%3D{}",
            collection(kind, ""),
            key.namespace,
            key.name
        );
        let found = all.list(&query).await?;
        let reach = self.clients.reach();
        Ok(found
            .into_iter()
            .find(|object| workspace_of(reach, object) == key.workspace))
    }

    /// Carries a step out. `false`: everything has to be read anew.
    async fn act(&self, scene: &mut Scene, step: Step) -> Result<bool, Failure> {
        let uid = scene.instance.as_ref().map(|(instance, _)| instance.uid.clone());
        match step {
            Step::Done | Step::Full => {}
            Step::Reserve(address) => {
                let wanted = Reservation {
                    machine: scene.key.clone(),
                    instance: uid.unwrap_or_default(),
                    seen: None,
                };
                let all = collection(&IP_ADDRESS, "");
                let created = self.home().create(&all, &wanted.object(address)).await?;
                // Whether just made or there already: what counts is what is stored.
                match self.read_own(&scene.key, address).await? {
                    Some(held) => {
                        scene.own.insert(address, held);
                    }
                    None if created => return Ok(false),
                    None => {
                        scene.lost.insert(address);
                    }
                }
            }
            Step::Claim(address) => {
                let Some((_, object)) = scene.own.get(&address) else {
                    return Ok(false);
                };
                let patch = json!({"metadata": {
                    "resourceVersion": version(object), "annotations": {INSTANCE: uid},
                }});
                let claimed = self.home().merge(&self.reservation_path(address), &patch).await?;
                match claimed.and_then(|object| Some((Reservation::read(&object)?, object))) {
                    Some(held) => {
                        scene.own.insert(address, held);
                    }
                    None => return Ok(false),
                }
            }
            Step::Tell(address) => {
                let Some((instance, object)) = &mut scene.instance else {
                    return Ok(false);
                };
                let patch = json!({"metadata": {
                    "resourceVersion": version(object),
                    "annotations": {ADDRESS_ANNOTATION: address.to_string()},
                }});
                let requests = Requests::new(self.clients.of(&scene.key.workspace));
                let told = requests
                    .merge(&path(&VIRTUAL_MACHINE_INSTANCE, &scene.key), &patch)
                    .await?;
                match told {
                    Some(told) => {
                        *instance = Instance::read(&scene.key, &told);
                        *object = told;
                    }
                    None => return Ok(false),
                }
            }
            Step::Release(address) => {
                let Some((_, object)) = scene.own.remove(&address) else {
                    return Ok(false);
                };
                self.home()
                    .delete_version(&self.reservation_path(address), &object)
                    .await?;
            }
        }
        Ok(true)
    }

    /// Writes on the machine's addresses what other nodes must know of it. Watches tell of what was written, so it is looked at again.
    async fn publish(
        &self,
        key: &ObjectKey,
        instance: Option<&Instance>,
        own: impl Iterator<Item = &Ipv4Addr>,
    ) -> Result<(), Failure> {
        for address in own {
            let told = instance.filter(|it| it.card.is_none() || it.address == Some(*address));
            let wanted = told.and_then(Seen::of);
            if self.owner_of(*address).is_none_or(|held| held.seen == wanted) {
                continue;
            }
            // The watch may be late; what is written names the version that was read.
            let Some((held, object)) = self.read_own(key, *address).await? else {
                continue;
            };
            if held.seen == wanted {
                continue;
            }
            let text = wanted.as_ref().and_then(|seen| serde_json::to_string(seen).ok());
            let patch = json!({"metadata": {
                "resourceVersion": version(&object), "annotations": {SEEN: text},
            }});
            self.home()
                .merge(&self.reservation_path(*address), &patch)
                .await?;
        }
        Ok(())
    }

    async fn tell_full(&self, key: &ObjectKey, uid: &str) {
        let about = about(key, uid);
        let happening = Happening {
            severity: Severity::Warning,
            reason: "NoAddressAvailable",
            message: format!(
                "All addresses of {} are taken, so the machine has no network: delete machines that are not needed, or \
                 configure a larger network.",
                self.range.network
            ),
        };
        self.recorder.record(&key.workspace, &about, happening).await;
    }
}

/// An instance, for events about it.
pub(crate) fn about(key: &ObjectKey, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some(api_version(&VIRTUAL_MACHINE_INSTANCE)),
        kind: Some(VIRTUAL_MACHINE_INSTANCE.kind.to_owned()),
        namespace: Some(key.namespace.clone()),
        name: Some(key.name.clone()),
        uid: Some(uid.to_owned()).filter(|uid| !uid.is_empty()),
        ..ObjectReference::default()
    }
}

impl Reconcile<ObjectKey> for Addresses {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let is_synced =
            self.instances.is_synced() && self.machines.is_synced() && self.reservations.is_synced();
        if !is_synced {
            return Ok(Outcome::Again(UNTIL_SYNCED));
        }
        // Mostly what the watches say is enough to see that nothing is to be done.
        let known = self.known_of(key);
        let instance = self.instances.get(key);
        let has_machine = self.machines.get(key).is_some();
        let nobody = HashSet::new();
        if self.next(key, instance.as_deref(), has_machine, &known, &nobody) == Step::Done {
            self.publish(key, instance.as_deref(), known.keys()).await?;
            return Ok(Outcome::Done);
        }
        let mut scene = self.observe(key, &known).await?;
        for _ in 0..STEPS {
            let own = (scene.own.iter())
                .map(|(address, (held, _))| (*address, held.instance.clone()))
                .collect();
            let instance = scene.instance.as_ref().map(|(instance, _)| instance);
            let step = self.next(key, instance, scene.has_machine, &own, &scene.lost);
            match step {
                Step::Done => return Ok(Outcome::Done),
                Step::Full => {
                    let uid = instance.map(|instance| instance.uid.clone()).unwrap_or_default();
                    self.tell_full(key, &uid).await;
                    return Ok(Outcome::Poll);
                }
                step => {
                    if !self.act(&mut scene, step).await? {
                        return Ok(Outcome::Again(Duration::ZERO));
                    }
                }
            }
        }
        Ok(Outcome::Poll)
    }
}
