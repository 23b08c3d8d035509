//! One publication's objects: each in a consumer's workspace has its copy on the service cluster.
//!
//! Keys are those of the originals. What happens to an original, to its copy, to a related object or to a namespace leads
//! to the key of the original, and one reconcile brings everything about it in step. The watches carry metadata only;
//! whoever works on an object reads it.

mod failures;
mod index;
mod primary;
mod related;
mod removal;

use std::sync::Arc;

use fairway_controller::cache::Cache;
use fairway_controller::events::Recorder;
use fairway_controller::requests::Requests;
use fairway_controller::{
    ClientFactory, Controller, Failure, Manager, Metadata, Metrics, ObjectKey, Outcome, Queue, Reach,
    Reconcile, Shutdown, WorkspaceId, watch,
};
use fairway_kernel_tenancy::naming::AGENT_LABEL;
use fairway_kernel_tenancy::published::{GroupVersionResource, Origin, Served};
use kube::api::{Api, DynamicObject, PartialObjectMeta};
use kube::core::ApiResource;
use kube::runtime::watcher;
use serde_json::Value;
use tokio::sync::Mutex;

use self::failures::{Failures, Trouble};
use self::index::{Copies, Kinds, Paths, Place, Side, Watched};
use crate::Agent;
use crate::catalog::{Catalog, Publication};
use crate::consumers::Consumers;

/// How many places are kept apart while a copy is being made; two that share a lock only wait for each other.
const LOCKS: usize = 64;

/// What works on the objects of a publication.
struct Mirror {
    agent: String,
    publication: Arc<Publication>,
    service: Requests,
    consumers: Consumers,
    recorder: Recorder,
    /// What was seen of the originals, for each address of the virtual workspace.
    originals: Vec<Arc<Cache<()>>>,
    copies: Copies,
    watched: Watched,
    failures: Failures,
    paths: Paths,
    kinds: Kinds,
    /// Held while a place is looked at and taken: two originals may want the same.
    places: Vec<Mutex<()>>,
}

/// Mirrors until the end.
pub(crate) async fn run(
    agent: Agent,
    catalog: Catalog,
    publication: Arc<Publication>,
    consumers: Consumers,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
) {
    let service = agent.service.clone();
    let mut manager = Manager::new(ClientFactory::plain(move |_| service.clone()), metrics, shutdown);
    let queue: Queue<ObjectKey> = Queue::default();
    let originals = follow_originals(&mut manager, &publication, &consumers, &queue);
    let copies = Copies::default();
    follow_copies(&mut manager, &agent, &publication, &copies, &queue);
    let watched = Watched::default();
    follow_related(&mut manager, &agent, &publication, &consumers, &watched, &queue);
    follow_namespaces(&mut manager, &publication, &consumers, &originals, &queue);
    let failures = Failures::new(publication.name(), &catalog);
    follow_bindings(&mut manager, &consumers, &failures, &queue);
    manager.spawn(failures.clone().tell(manager.shutdown()));
    let mirror = Mirror {
        agent: agent.name,
        service: Requests::new(agent.service),
        recorder: Recorder::new(consumers.clients(), "syncagent"),
        publication,
        consumers,
        originals,
        copies,
        watched,
        failures,
        paths: Paths::default(),
        kinds: Kinds::default(),
        places: (0..LOCKS).map(|_| Mutex::default()).collect(),
    };
    let controller = Controller::new("syncagent-sync", queue, mirror).workers(agent.workers);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
    manager.run().await;
}

fn follow_originals(
    manager: &mut Manager,
    publication: &Publication,
    consumers: &Consumers,
    queue: &Queue<ObjectKey>,
) -> Vec<Arc<Cache<()>>> {
    let mut originals = Vec::new();
    for (at, client) in consumers.every() {
        let api: Api<Metadata> = Api::all_with(client, &resource(&publication.remote));
        let cache = Arc::new(Cache::new(&Reach::Every));
        originals.push(Arc::clone(&cache));
        let (changed, consumers) = (queue.clone(), consumers.clone());
        let follow = watch::follow_into(
            api,
            watcher::Config::default(),
            manager.shutdown(),
            cache,
            |_| (),
            move |key| {
                consumers.saw(&key.workspace, at);
                changed.add(key);
            },
        );
        manager.spawn(follow);
    }
    originals
}

fn follow_copies(
    manager: &mut Manager,
    agent: &Agent,
    publication: &Publication,
    copies: &Copies,
    queue: &Queue<ObjectKey>,
) {
    let api: Api<PartialObjectMeta<DynamicObject>> =
        Api::all_with(agent.service.clone(), &resource(&publication.local));
    let config = watcher::Config::default().labels(&format!("{AGENT_LABEL}={}", agent.name));
    let (copies, changed) = (copies.clone(), queue.clone());
    manager.spawn(watch::follow(api, config, manager.shutdown(), move |event| {
        for original in copies.take(event) {
            changed.add(original);
        }
    }));
}

/// Follows related objects where their originals are. What a change of one is about, the last reconcile has noted.
fn follow_related(
    manager: &mut Manager,
    agent: &Agent,
    publication: &Publication,
    consumers: &Consumers,
    watched: &Watched,
    queue: &Queue<ObjectKey>,
) {
    for (at, related) in publication.published.related.iter().enumerate() {
        let kind = named(&related.at_origin());
        let notice = |reach: Reach| {
            let (watched, changed) = (watched.clone(), queue.clone());
            move |event: watcher::Event<Metadata>| {
                let (watcher::Event::Apply(it) | watcher::Event::InitApply(it) | watcher::Event::Delete(it)) =
                    event
                else {
                    return;
                };
                let key = ObjectKey::of(&reach, &it.metadata);
                let side = match &reach {
                    Reach::Every => Side::Consumer(key.workspace.clone()),
                    Reach::One(_) => Side::Service,
                };
                let place = Place::new(at, side, &key.namespace, &key.name);
                for primary in watched.concerned(&place) {
                    changed.add(primary);
                }
            }
        };
        let config = watcher::Config::default();
        match related.origin {
            Origin::Service => {
                let api: Api<Metadata> = Api::all_with(agent.service.clone(), &kind);
                let take = notice(Reach::One(WorkspaceId::root()));
                manager.spawn(watch::follow(api, config, manager.shutdown(), take));
            }
            Origin::Kcp => {
                for (_, client) in consumers.every() {
                    let api: Api<Metadata> = Api::all_with(client, &kind);
                    let take = notice(Reach::Every);
                    manager.spawn(watch::follow(api, config.clone(), manager.shutdown(), take));
                }
            }
        }
    }
}

/// Where namespaces are filtered, a change of one concerns every object in it.
fn follow_namespaces(
    manager: &mut Manager,
    publication: &Publication,
    consumers: &Consumers,
    originals: &[Arc<Cache<()>>],
    queue: &Queue<ObjectKey>,
) {
    if !publication.published.filters_namespaces() {
        return;
    }
    let namespaces = GroupVersionResource {
        group: String::new(),
        version: "v1".to_owned(),
        resource: "namespaces".to_owned(),
    };
    for (at, client) in consumers.every() {
        let api: Api<Metadata> = Api::all_with(client, &named(&namespaces));
        let (originals, changed) = (Arc::clone(&originals[at]), queue.clone());
        let config = watcher::Config::default();
        manager.spawn(watch::follow(api, config, manager.shutdown(), move |event| {
            let (watcher::Event::Apply(it) | watcher::Event::InitApply(it)) = event else {
                return;
            };
            let key = ObjectKey::of(&Reach::Every, &it.metadata);
            for (original, _) in originals.of_namespace(&key.workspace, &key.name) {
                changed.add(original);
            }
        }));
    }
}

/// A consumer who changes his binding may have agreed to what was missing.
fn follow_bindings(
    manager: &mut Manager,
    consumers: &Consumers,
    failures: &Failures,
    queue: &Queue<ObjectKey>,
) {
    let bindings = GroupVersionResource {
        group: "apis.kcp.io".to_owned(),
        version: "v1alpha2".to_owned(),
        resource: "apibindings".to_owned(),
    };
    for (_, client) in consumers.every() {
        let api: Api<Metadata> = Api::all_with(client, &named(&bindings));
        let (failures, changed) = (failures.clone(), queue.clone());
        let config = watcher::Config::default();
        manager.spawn(watch::follow(api, config, manager.shutdown(), move |event| {
            if let watcher::Event::Apply(binding) = event {
                for key in failures.of(&Reach::Every.workspace_of(&binding.metadata)) {
                    changed.add(key);
                }
            }
        }));
    }
}

impl Reconcile<ObjectKey> for Mirror {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        if !self.copies.is_synced() || !self.originals.iter().all(|it| it.is_synced()) {
            return Ok(Outcome::Again(crate::UNTIL_SYNCED));
        }
        match self.sync(key).await {
            Ok(outcome) => {
                self.failures.clear(key);
                Ok(outcome)
            }
            Err(trouble) => {
                if !trouble.failure.is_conflict() {
                    self.failures.note(key, trouble.failure.sentence());
                    self.complain(key, &trouble).await;
                }
                Err(trouble.failure)
            }
        }
    }
}

impl Mirror {
    fn remote(&self, workspace: &WorkspaceId) -> Requests {
        Requests::new(self.consumers.of(workspace))
    }

    /// The kind of related objects on one side.
    async fn kind(
        &self,
        side: &Requests,
        origin: Origin,
        named: &GroupVersionResource,
    ) -> Result<Served, Trouble> {
        if let Some(known) = self.kinds.get(origin, named) {
            return Ok(known);
        }
        let resources = side.get(&named.discovery()).await?.unwrap_or(Value::Null);
        let found = Served::discovered(named, &resources).ok_or_else(|| {
            Trouble::provider(format!(
                "{}.{} in version {} is not served {}",
                named.resource,
                named.group,
                named.version,
                match origin {
                    Origin::Kcp => "in the consumer's workspace",
                    Origin::Service => "on the service cluster",
                }
            ))
        })?;
        self.kinds.put(origin, named, &found);
        Ok(found)
    }
}

fn resource(served: &Served) -> ApiResource {
    ApiResource {
        group: served.group.clone(),
        version: served.version.clone(),
        api_version: served.api_version(),
        kind: served.kind.clone(),
        plural: served.plural.clone(),
    }
}

/// A kind by its plural name; a watch needs no more.
fn named(named: &GroupVersionResource) -> ApiResource {
    ApiResource {
        group: named.group.clone(),
        version: named.version.clone(),
        api_version: named.api_version(),
        kind: String::new(),
        plural: named.resource.clone(),
    }
}
