//! What is watched, and whom a change wakes.
//!
//! Little is kept of each object: whom to wake when it changes. Decisions are made on what the API says when they are made.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairway_controller::cache::Cache;
use fairway_controller::dynamic::Change;
use fairway_controller::kinds::Kind;
use fairway_controller::{Json, ObjectKey, Queue, Reach, WorkspaceId};
use kube::runtime::watcher::Event;
use serde_json::Value;

use crate::decide::source::{self, Source};
use crate::uses;
use crate::view::{self, DataVolume, Named, Volume};

/// Group and kind of what is watched.
const WATCHED: [(&str, &str); 8] = [
    ("cdi.kubevirt.io", "DataVolume"),
    ("cdi.kubevirt.io", "DataSource"),
    ("cdi.kubevirt.io", "DataImportCron"),
    ("", "PersistentVolumeClaim"),
    ("", "PersistentVolume"),
    ("storage.k8s.io", "StorageClass"),
    ("kubevirt.io", "VirtualMachineInstance"),
    ("snapshot.storage.k8s.io", "VolumeSnapshot"),
];

/// What is looked after for the whole installation.
const FOR_ALL: [&str; 2] = ["DataSource", "DataImportCron"];

/// Whether a kind is watched; what others than the control plane have no part in is not.
/// A workspace whose own definition has taken a kind over has controllers of its own for it.
pub(crate) fn is_watched(kind: &Kind, is_control_plane: bool) -> bool {
    let name = (kind.resource.group.as_str(), kind.resource.kind.as_str());
    let is_needed = is_control_plane || !FOR_ALL.contains(&name.1);
    kind.is_common() && is_needed && WATCHED.contains(&name)
}

/// What a DataVolume that is not finished waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Waiting {
    claim: Option<Named>,
    data_source: Option<Named>,
    snapshot: Option<Named>,
}

/// What a claim is at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Pending {
    is_bound: bool,
    /// The claim of which it is to be a copy.
    from: Option<String>,
}

/// Who is woken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queues {
    /// Claims, with the DataVolumes of their names.
    pub(crate) claims: Queue<ObjectKey>,
    pub(crate) data_sources: Queue<ObjectKey>,
    pub(crate) import_crons: Queue<ObjectKey>,
    pub(crate) snapshots: Queue<ObjectKey>,
}

/// What was seen.
pub(crate) struct World {
    queues: Queues,
    reach: Reach,
    data_volumes: Cache<Waiting>,
    claims: Cache<Pending>,
    volumes: Cache<Option<Named>>,
    instances: Cache<BTreeSet<String>>,
    data_sources: Cache<Option<Named>>,
    import_crons: Cache<()>,
    /// The claims that snapshots are taken of, until they are.
    snapshots: Cache<Option<String>>,
}

impl World {
    pub(crate) fn new(reach: &Reach, queues: Queues) -> Self {
        Self {
            queues,
            reach: reach.clone(),
            data_volumes: Cache::new(reach),
            claims: Cache::new(reach),
            volumes: Cache::new(reach),
            instances: Cache::new(reach),
            data_sources: Cache::new(reach),
            import_crons: Cache::new(reach),
            snapshots: Cache::new(reach),
        }
    }

    /// The volumes that say that they are a claim's.
    pub(crate) fn volumes_of(&self, claim: &ObjectKey) -> Vec<String> {
        let all = self.volumes.of_workspace(&claim.workspace);
        let own = all
            .into_iter()
            .filter(|(_, held)| held.as_ref().as_ref().is_some_and(|held| is_named(held, claim)));
        own.map(|(key, _)| key.name).collect()
    }

    /// Takes a change in.
    pub(crate) fn take(&self, change: Change<Json>) {
        let Change::Event(kind, event) = change else {
            return;
        };
        match kind.resource.kind.as_str() {
            "DataVolume" => self.data_volume(*event),
            "DataSource" => self.data_source(*event),
            "DataImportCron" => {
                for key in self.import_crons.take(*event, drop) {
                    self.queues.import_crons.add(key);
                }
            }
            "PersistentVolumeClaim" => self.claim(*event),
            "PersistentVolume" => self.volume(*event),
            "VirtualMachineInstance" => self.instance(*event),
            "StorageClass" => self.class(&event),
            "VolumeSnapshot" => self.snapshot(*event),
            _ => {}
        }
    }

    fn data_volume(&self, event: Event<Json>) {
        for key in self.data_volumes.take(event, |object| waiting(&object.value)) {
            self.queues.claims.add(key.clone());
            self.wake_cron_of(&key);
            self.wake_sources_of(&key);
        }
    }

    /// DataSources that stand for a claim, for the DataVolume of its name, or for a snapshot.
    fn wake_sources_of(&self, key: &ObjectKey) {
        for (source, held) in self.data_sources.of_workspace(&key.workspace) {
            if held.as_ref().as_ref().is_some_and(|held| is_named(held, key)) {
                self.queues.data_sources.add(source);
            }
        }
    }

    /// DataVolumes of a cron are made in its namespace.
    fn wake_cron_of(&self, key: &ObjectKey) {
        for (cron, _) in self.import_crons.of_namespace(&key.workspace, &key.namespace) {
            self.queues.import_crons.add(cron);
        }
    }

    fn data_source(&self, event: Event<Json>) {
        let stands_for = |object: Json| {
            let source: view::DataSource = view::glance(&object.value);
            let namespace = source.metadata.namespace.clone();
            let own = source.spec.source;
            own.pvc.or(own.snapshot).map(|it| it.within(&namespace))
        };
        for key in self.data_sources.take(event, stands_for) {
            self.wake_waiting(&key, |waiting| {
                waiting
                    .data_source
                    .as_ref()
                    .is_some_and(|named| is_named(named, &key))
            });
            self.wake_cron_of(&key);
            self.queues.data_sources.add(key);
        }
    }

    fn claim(&self, event: Event<Json>) {
        let pending = |object: Json| {
            let source = &object.value["spec"]["dataSource"];
            let from = source["name"]
                .as_str()
                .filter(|_| source["kind"] == "PersistentVolumeClaim");
            Pending {
                is_bound: object.value["status"]["phase"] == "Bound",
                from: from.map(str::to_owned),
            }
        };
        for key in self.claims.take(event, pending) {
            self.wake_clones_of(&key);
            self.wake_snapshots_of(&key);
            self.wake_cron_of(&key);
            self.wake_sources_of(&key);
            self.queues.claims.add(key);
        }
    }

    fn volume(&self, event: Event<Json>) {
        let key = of_event(&self.reach, &event);
        let before = key.as_ref().and_then(|key| self.volumes.get(key));
        let held = |object: Json| {
            let volume: Volume = view::glance(&object.value);
            let claim = volume.spec.claim_ref?;
            Some(Named {
                namespace: claim.namespace,
                name: claim.name,
            })
        };
        for key in self.volumes.take(event, held) {
            let now = self.volumes.get(&key);
            for claim in [&before, &now].into_iter().flatten() {
                if let Some(claim) = claim.as_ref() {
                    self.queues
                        .claims
                        .add(ObjectKey::new(&key.workspace, &claim.namespace, &claim.name));
                }
            }
        }
    }

    fn instance(&self, event: Event<Json>) {
        let key = of_event(&self.reach, &event);
        let before = key.as_ref().and_then(|key| self.instances.get(key));
        for key in self.instances.take(event, |object| uses::claims(&object.value)) {
            let now = self.instances.get(&key);
            let names: BTreeSet<&String> = [&before, &now]
                .into_iter()
                .flatten()
                .flat_map(|it| it.iter())
                .collect();
            for name in names {
                let claim = ObjectKey::new(&key.workspace, &key.namespace, name);
                self.wake_clones_of(&claim);
                self.wake_snapshots_of(&claim);
                self.queues.claims.add(claim);
            }
        }
    }

    fn snapshot(&self, event: Event<Json>) {
        let of_claim = |object: Json| {
            let source = &object.value["spec"]["source"]["persistentVolumeClaimName"];
            let is_taken = object.value["status"]["readyToUse"] == true;
            source.as_str().filter(|_| !is_taken).map(str::to_owned)
        };
        for key in self.snapshots.take(event, of_claim) {
            self.wake_waiting(&key, |waiting| {
                waiting
                    .snapshot
                    .as_ref()
                    .is_some_and(|named| is_named(named, &key))
                    || waiting.data_source.is_some()
            });
            self.wake_sources_of(&key);
            // Claims may be made from snapshots without a DataVolume.
            for (claim, pending) in self.claims.of_namespace(&key.workspace, &key.namespace) {
                if !pending.is_bound {
                    self.queues.claims.add(claim);
                }
            }
            self.queues.snapshots.add(key);
        }
    }

    /// Snapshots that wait for a claim, or for its machine.
    fn wake_snapshots_of(&self, claim: &ObjectKey) {
        for (key, source) in self.snapshots.of_namespace(&claim.workspace, &claim.namespace) {
            if source.as_ref().as_ref() == Some(&claim.name) {
                self.queues.snapshots.add(key);
            }
        }
    }

    /// Claims that wait may have waited for a class.
    fn class(&self, event: &Event<Json>) {
        let Event::Apply(object) = event else { return };
        let workspace = self.reach.workspace_of(&object.metadata);
        for (key, pending) in self.claims.of_workspace(&workspace) {
            if !pending.is_bound {
                self.queues.claims.add(key);
            }
        }
        self.wake_all_waiting(&workspace);
    }

    fn wake_all_waiting(&self, workspace: &WorkspaceId) {
        for (key, waiting) in self.data_volumes.of_workspace(workspace) {
            if *waiting != Waiting::default() {
                self.queues.claims.add(key);
            }
        }
    }

    /// Those that are to be copies of a claim.
    fn wake_clones_of(&self, claim: &ObjectKey) {
        for (key, pending) in self.claims.of_namespace(&claim.workspace, &claim.namespace) {
            if !pending.is_bound && pending.from.as_ref() == Some(&claim.name) {
                self.queues.claims.add(key);
            }
        }
        self.wake_waiting(claim, |waiting| {
            waiting.claim.as_ref().is_some_and(|named| is_named(named, claim))
                || waiting.data_source.is_some()
        });
    }

    fn wake_waiting(&self, about: &ObjectKey, is_it: impl Fn(&Waiting) -> bool) {
        for (key, waiting) in self.data_volumes.of_workspace(&about.workspace) {
            if is_it(&waiting) {
                self.queues.claims.add(key);
            }
        }
    }
}

fn is_named(named: &Named, key: &ObjectKey) -> bool {
    named.namespace == key.namespace && named.name == key.name
}

/// The object of an event about one.
fn of_event(reach: &Reach, event: &Event<Json>) -> Option<ObjectKey> {
    match event {
        Event::Apply(object) | Event::Delete(object) => Some(ObjectKey::of(reach, &object.metadata)),
        _ => None,
    }
}

fn waiting(object: &Value) -> Waiting {
    let volume: DataVolume = view::glance(object);
    if matches!(volume.status.phase.as_str(), "Succeeded" | "Failed") {
        return Waiting::default();
    }
    let mut waiting = Waiting::default();
    match source::of(&volume) {
        Ok(Source::Claim(named)) => waiting.claim = Some(named),
        Ok(Source::Reference(named)) => waiting.data_source = Some(named),
        Ok(Source::Snapshot(named)) => waiting.snapshot = Some(named),
        _ => {}
    }
    waiting
}

/// What was seen, shared.
pub(crate) type SharedWorld = Arc<World>;
