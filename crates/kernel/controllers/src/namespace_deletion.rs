//! Namespace deletion: the content goes first, then the namespace.
//!
//! The order: pods, and only when they are gone everything else, as upstream has it, so that nothing that a pod relies on
//! disappears under it. Content that others hold back with finalizers is waited for, and the namespace's conditions say
//! for what.

mod decide;
mod remove;

use std::time::Duration;

use fairway_controller::backoff::Backoff;
use fairway_controller::error::is_not_found;
use fairway_controller::{
    Attempt as _, Clients, Controller, Failure, Manager, Metadata, ObjectKey, Outcome, Queue, Reach,
    Reconcile, conditions, kinds, watch,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ApiResource, PostParams};
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource};
use serde_json::Value;
use tracing::debug;

use self::decide::{Step, decide};

#[cfg(test)]
pub(crate) use self::decide::Remains;
pub(crate) use self::decide::Survey;
pub(crate) use self::remove::all as remove_all;
use crate::{Setup, now, users};

const NAME: &str = "namespace-deletion";
/// The finalizer in `spec.finalizers` that is this controller's.
const KUBERNETES: &str = "kubernetes";
/// Namespaces that are emptied at once.
const WORKERS: usize = 8;
/// Held content is looked at again soon, since most finalizers go quickly, and at least every few seconds.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(20),
    most: Duration::from_secs(4),
};

struct NamespaceDeletion {
    clients: Clients,
}

pub(crate) fn register(manager: &mut Manager, _: &Setup) {
    let clients = manager.clients(users::NAMESPACE_CONTROLLER);
    let queue = Queue::default();
    let api: Api<Metadata> = Api::all_with(clients.every(), &ApiResource::erase::<Namespace>(&()));
    let (sink, reach) = (queue.clone(), manager.reach().clone());
    manager.spawn(watch::follow(
        api,
        watcher::Config::default(),
        manager.shutdown(),
        move |event| {
            notice(&sink, &reach, event);
        },
    ));
    let controller = Controller::new(NAME, queue, NamespaceDeletion { clients })
        .workers(WORKERS)
        .backoff(BACKOFF);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

/// Only namespaces that are being deleted are of interest.
fn notice(queue: &Queue<ObjectKey>, reach: &Reach, event: Event<Metadata>) {
    if let Event::Apply(namespace) | Event::InitApply(namespace) = event
        && namespace.meta().deletion_timestamp.is_some()
    {
        queue.add(ObjectKey::of(reach, namespace.meta()));
    }
}

impl Reconcile<ObjectKey> for NamespaceDeletion {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let client = self.clients.of(&key.workspace);
        let api: Api<Namespace> = Api::all(client.clone());
        let Some(namespace) = api.get_opt(&key.name).await.attempting("read the namespace")? else {
            return Ok(Outcome::Done);
        };
        if !is_ours(&namespace) {
            return Ok(Outcome::Done);
        }
        let survey = empty(&client, &key.name).await;
        let verdict = decide(&survey);
        let namespace = tell(&api, namespace, &verdict.conditions).await?;
        match verdict.step {
            Step::Wait(why) => {
                debug!(namespace = key.name, why, "a namespace waits for its content");
                Ok(Outcome::Poll)
            }
            Step::Retry(problems) => Err(Failure::Several(problems)),
            Step::Finalize => finalize(&api, namespace).await,
        }
    }
}

fn is_ours(namespace: &Namespace) -> bool {
    namespace.metadata.deletion_timestamp.is_some() && finalizers(namespace).any(|f| f == KUBERNETES)
}

fn finalizers(namespace: &Namespace) -> impl Iterator<Item = &String> {
    namespace
        .spec
        .iter()
        .flat_map(|spec| spec.finalizers.iter().flatten())
}

/// Deletes what is there and reports what remains.
async fn empty(client: &Client, namespace: &str) -> Survey {
    let kinds = match kinds::discover(client).await {
        Ok(kinds) => kinds,
        Err(failure) => return Survey::blind(failure.sentence()),
    };
    let mut survey = Survey::default();
    survey.undiscovered.extend(kinds.failed().map(str::to_owned));
    let content: Vec<_> = kinds
        .iter()
        .filter(|k| k.namespaced && k.can(&["delete", "list"]))
        .cloned()
        .collect();
    let (pods, rest): (Vec<_>, Vec<_>) = content
        .into_iter()
        .partition(|k| k.resource.group.is_empty() && k.resource.plural == "pods");
    remove::all(client, namespace, pods, &mut survey).await;
    if survey.is_empty() {
        remove::all(client, namespace, rest, &mut survey).await;
    }
    survey
}

/// Writes conditions that changed. An emptied namespace is about to go: its good news need not be written.
async fn tell(
    api: &Api<Namespace>,
    namespace: Namespace,
    news: &[conditions::Condition],
) -> Result<Namespace, Failure> {
    let told = namespace
        .status
        .as_ref()
        .is_some_and(|s| s.conditions.as_ref().is_some_and(|c| !c.is_empty()));
    let good = news.iter().all(|c| c.status == conditions::Truth::False);
    if good && !told {
        return Ok(namespace);
    }
    let mut value = serde_json::to_value(&namespace).unwrap_or(Value::Null);
    let terminating = value.pointer("/status/phase").is_some_and(|p| p == "Terminating");
    if !conditions::set(&mut value, news, &now()) && terminating {
        return Ok(namespace);
    }
    value["status"]["phase"] = "Terminating".into();
    let Ok(changed) = serde_json::from_value::<Namespace>(value) else {
        return Ok(namespace);
    };
    let name = changed.metadata.name.clone().unwrap_or_default();
    match api.replace_status(&name, &PostParams::default(), &changed).await {
        Err(error) if is_not_found(&error) => Ok(namespace),
        written => written.attempting("write the namespace's conditions"),
    }
}

/// Takes the finalizer away; with it the namespace goes, unless others hold it as well.
async fn finalize(api: &Api<Namespace>, mut namespace: Namespace) -> Result<Outcome, Failure> {
    let name = namespace.metadata.name.clone().unwrap_or_default();
    let others: Vec<String> = finalizers(&namespace)
        .filter(|f| *f != KUBERNETES)
        .cloned()
        .collect();
    namespace.spec.get_or_insert_default().finalizers = Some(others);
    namespace.status = None;
    let params = PostParams::default();
    match api
        .replace_subresource("finalize", &name, &params, &namespace)
        .await
    {
        Err(error) if is_not_found(&error) => Ok(Outcome::Done),
        answer => answer
            .attempting("finalize the namespace")
            .map(|_: Namespace| Outcome::Done),
    }
}

#[cfg(test)]
mod tests;
