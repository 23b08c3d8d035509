//! A ResourceQuota's status tells what is enforced and what is used.
//!
//! The server charges quotas when objects are made; this controller takes over new limits (`spec.hard` becomes
//! `status.hard`), counts what was there before, and counts again when something went. Only kinds that some quota counts
//! are watched, in their metadata; the objects themselves are listed when a quota is counted.
//!
//! A count is written against the revision of the quota that was read before counting. What is charged meanwhile changes
//! that revision, so the count is refused and made again: it can miss no object that was charged.

mod quotas;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairway_controller::dynamic::{self, Change};
use fairway_controller::error::is_not_found;
use fairway_controller::kinds::{Kind, Kinds};
use fairway_controller::served::Served;
use fairway_controller::{
    Attempt as _, Clients, Controller, Failure, Manager, Metadata, ObjectKey, Outcome, Queue, Reach,
    Reconcile, Shutdown, watch,
};
use fairway_kernel_quota::recount::Recount;
use fairway_kernel_quota::{Evaluator, Quota};
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Event};
use serde_json::{Value, json};
use tokio::sync::watch as channel;

use self::quotas::{Held, Quotas};
use crate::{Setup, now, users};

const NAME: &str = "resource-quota";
/// As many as upstream has.
const WORKERS: usize = 5;
/// Upstream's `--resource-quota-sync-period`: for what no watch tells, such as a pod whose grace is over.
const RECOUNT_EVERY: Duration = Duration::from_secs(300);
/// A write that was under way when a quota began to count is not charged; by now it is stored and counted.
const SECOND_LOOK: Duration = Duration::from_secs(2);
/// What makes a burst of deletions one count.
const SETTLE: Duration = Duration::from_millis(10);
/// Changes of objects seldom lower what is used, so they may wait longer.
const SETTLE_CHANGES: Duration = Duration::from_millis(200);
/// Until the first discovery is complete.
const NOT_DISCOVERED: Duration = Duration::from_millis(20);
/// Objects listed at once.
const PAGE: u32 = 500;

/// What watches and workers share.
struct Shared {
    reach: Reach,
    quotas: Mutex<Quotas>,
    queue: Queue<ObjectKey>,
}

impl Shared {
    fn quotas(&self) -> MutexGuard<'_, Quotas> {
        self.quotas.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what happened to a quota; the names of what is limited, if they may have changed.
    fn take_quota(&self, event: Event<DynamicObject>) -> Option<quotas::Names> {
        let (due, names) = {
            let mut quotas = self.quotas();
            let consequences = quotas.take(event);
            let names = consequences.names_changed.then(|| quotas.names());
            (consequences.due, names)
        };
        due.into_iter().for_each(|key| self.queue.add(key));
        names
    }

    /// Takes in what happened to an object that some quota may count.
    fn take_object(&self, change: Change) {
        let Change::Event(kind, event) = change else {
            return;
        };
        let Some(evaluator) = Evaluator::of(&kind.resource.group, &kind.resource.plural) else {
            return;
        };
        let (object, delay) = match *event {
            Event::Delete(object) => (Some(object), SETTLE),
            // A change of an object of which only numbers matter changes nothing.
            Event::Apply(object) if !evaluator.counts_only() => (Some(object), SETTLE_CHANGES),
            // What went while nobody watched is not told, so everything is counted.
            Event::InitDone => (None, SETTLE),
            _ => return,
        };
        let place = object.map(|object| ObjectKey::of(&self.reach, &object.metadata));
        let place = place.as_ref().map(|key| (&key.workspace, key.namespace.as_str()));
        let concerned = self.quotas().concerned(&evaluator, place);
        for key in concerned {
            self.queue.add_after(key, delay);
        }
    }
}

/// Whether objects of the kind can be counted.
fn is_countable(kind: &Kind) -> bool {
    kind.namespaced && kind.can(&["list", "watch"])
}

pub(crate) fn register(manager: &mut Manager, setup: &Setup) {
    let clients = manager.clients(users::RESOURCE_QUOTA_CONTROLLER);
    let queue = Queue::default();
    let shared = Arc::new(Shared {
        reach: manager.reach().clone(),
        quotas: Mutex::new(Quotas::new(manager.reach())),
        queue: queue.clone(),
    });
    let (tell_names, names) = channel::channel(quotas::Names::default());
    let sink = Arc::clone(&shared);
    manager.spawn(watch::follow(
        resource_quotas(clients.every(), ""),
        watcher::Config::default(),
        manager.shutdown(),
        move |event| {
            if let Some(names) = sink.take_quota(event) {
                tell_names.send_if_modified(|known| {
                    let changed = *known != names;
                    *known = names;
                    changed
                });
            }
        },
    ));
    let (tell_counted, counted) = channel::channel(Arc::new(Kinds::default()));
    manager.spawn(select(
        setup.served.changes(),
        names,
        tell_counted,
        manager.shutdown(),
    ));
    let sink = Arc::clone(&shared);
    manager.spawn(dynamic::follow_all(
        clients.every(),
        counted,
        is_countable,
        manager.shutdown(),
        move |change| sink.take_object(change),
    ));
    let counter = Counter {
        clients,
        shared,
        served: setup.served.clone(),
    };
    let controller = Controller::new(NAME, queue, counter).workers(WORKERS);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

fn resource_quotas(client: Client, namespace: &str) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: "ResourceQuota".to_owned(),
        plural: "resourcequotas".to_owned(),
    };
    if namespace.is_empty() {
        Api::all_with(client, &resource)
    } else {
        Api::namespaced_with(client, namespace, &resource)
    }
}

/// Keeps the list of kinds that some quota counts: those that are served and of which something is limited.
async fn select(
    mut served: channel::Receiver<Arc<Kinds>>,
    mut names: channel::Receiver<quotas::Names>,
    counted: channel::Sender<Arc<Kinds>>,
    mut shutdown: Shutdown,
) {
    loop {
        let chosen = {
            let (served, names) = (served.borrow_and_update(), names.borrow_and_update());
            choose(&served, &names)
        };
        counted.send_if_modified(|current| {
            let changed = **current != chosen;
            if changed {
                *current = Arc::new(chosen);
            }
            changed
        });
        let changed = tokio::select! {
            () = shutdown.wait() => return,
            changed = served.changed() => changed,
            changed = names.changed() => changed,
        };
        if changed.is_err() {
            return shutdown.wait().await;
        }
    }
}

/// The kinds of which one of these names tells something.
fn choose(served: &Kinds, names: &quotas::Names) -> Kinds {
    let mut chosen = Kinds::default();
    for kind in served.iter().filter(|kind| is_countable(kind)) {
        let evaluator = Evaluator::of(&kind.resource.group, &kind.resource.plural);
        if evaluator.is_some_and(|evaluator| names.iter().any(|name| evaluator.measures(name))) {
            chosen.add(Kind::clone(kind));
        }
    }
    chosen
}

struct Counter {
    clients: Clients,
    shared: Arc<Shared>,
    served: Served,
}

impl Reconcile<ObjectKey> for Counter {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let Some(held) = self.shared.quotas().get(key) else {
            return Ok(Outcome::Done);
        };
        let every = self.served.every();
        if every.is_empty() {
            return Ok(Outcome::Again(NOT_DISCOVERED));
        }
        let kinds = if needs_only_common(&held.quota, &every) {
            every
        } else {
            self.served.of(&key.workspace).await?
        };
        let client = self.clients.of(&key.workspace);
        let recount = recount(&client, &held.quota, &key.namespace, &kinds).await?;
        let api = resource_quotas(client, &key.namespace);
        let Some(status) = decide(&held.quota, &recount) else {
            // What is held may be older than what was counted. A charge that is on its way here would otherwise stand until
            // the next count of all.
            let this = ListParams::default().fields(&format!("metadata.name={}", key.name));
            let now = api.list(&this).await.attempting("read the quota")?;
            let version = |object: &DynamicObject| object.metadata.resource_version.clone();
            let is_current = now.items.iter().all(|now| version(now) == version(&held.object));
            return Ok(Outcome::Again(if is_current { RECOUNT_EVERY } else { SETTLE }));
        };
        let settled = held.quota.hard == held.quota.wanted;
        let object = with_status(&held, status);
        match api
            .replace_status(&key.name, &PostParams::default(), &object)
            .await
        {
            Err(error) if is_not_found(&error) => Ok(Outcome::Done),
            answer => {
                answer.attempting("write what the quota holds")?;
                Ok(Outcome::Again(if settled { RECOUNT_EVERY } else { SECOND_LOOK }))
            }
        }
    }
}

/// Whether all that the quota limits is of kinds that every workspace has: it mostly is.
fn needs_only_common(quota: &Quota, every: &Kinds) -> bool {
    let needed = |kind: &Kind| Recount::needs(quota, &kind.resource.group, &kind.resource.plural).is_some();
    !every.iter().any(|kind| !kind.is_common() && needed(kind))
}

/// Counts everything that the quota limits.
async fn recount<'q>(
    client: &Client,
    quota: &'q Quota,
    namespace: &str,
    kinds: &Kinds,
) -> Result<Recount<'q>, Failure> {
    let mut recount = Recount::new(quota);
    for kind in kinds.iter().filter(|kind| is_countable(kind)) {
        let Some(evaluator) = Recount::needs(quota, &kind.resource.group, &kind.resource.plural) else {
            continue;
        };
        if evaluator.counts_only() {
            let number = pages::<Metadata>(client, kind, namespace, |_| ()).await?;
            if let Some(number) = number {
                recount.looked_at(&evaluator);
                recount.add_number(&evaluator, number);
            }
            continue;
        }
        let moment = now();
        let mut found = recount.clone();
        found.looked_at(&evaluator);
        let add = |object: &DynamicObject| {
            let object = serde_json::to_value(object).unwrap_or(Value::Null);
            found.add(&evaluator, &object, &moment);
        };
        if pages::<DynamicObject>(client, kind, namespace, add)
            .await?
            .is_some()
        {
            recount = found;
        }
    }
    Ok(recount)
}

/// Lists the objects of a kind, page by page, and says how many there are; `None`: it is served no more.
async fn pages<K>(
    client: &Client,
    kind: &Kind,
    namespace: &str,
    mut take: impl FnMut(&K) + Send,
) -> Result<Option<usize>, Failure>
where
    K: kube::Resource<DynamicType = ApiResource, Scope = kube::core::DynamicResourceScope>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug
        + Send,
{
    let api: Api<K> = kind.api(client.clone(), namespace);
    let mut params = ListParams::default().limit(PAGE);
    let mut number = 0;
    loop {
        let page = match api.list(&params).await {
            Err(error) if is_not_found(&error) => return Ok(None),
            answer => answer.attempting(format!("count the {} of the namespace", kind.resource.plural))?,
        };
        number += page.items.len();
        page.items.iter().for_each(&mut take);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(Some(number)),
        }
    }
}

/// The status to write, if it is not what the quota says already.
fn decide(quota: &Quota, recount: &Recount<'_>) -> Option<Value> {
    let used = recount.used();
    if quota.hard == quota.wanted && quota.used == used {
        return None;
    }
    Some(json!({"hard": quota.wanted.to_value(), "used": used.to_value()}))
}

/// The quota as it was read, with another status.
fn with_status(held: &Held, status: Value) -> DynamicObject {
    let mut object = held.object.clone();
    object.metadata.managed_fields = None;
    if let Some(fields) = object.data.as_object_mut() {
        fields.insert("status".to_owned(), status);
    }
    object
}

#[cfg(test)]
mod tests;
