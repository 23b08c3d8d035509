//! How many pods of a PodDisruptionBudget may be disrupted: counted, and written into its status.
//!
//! No pod runs here by itself, but whoever brings a kubelet or writes the status of pods gets a budget that counts them.

mod decide;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::cache::Cache;
use fairway_controller::error::is_not_found;
use fairway_controller::served::Served;
use fairway_controller::{
    Attempt as _, Clients, Controller, Failure, Manager, ObjectKey, Outcome, Queue, Reconcile, WorkspaceId,
    watch as follow,
};
use fairway_kernel_kinds::read::{flag, list, part, text};
use fairway_kernel_kinds::selector;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, PartialObjectMeta, PostParams};
use kube::core::ApiResource;
use kube::runtime::watcher;
use serde_json::Value;

use self::decide::{Observed, decide};
use crate::{Setup, users};

const NAME: &str = "disruption";
const WORKERS: usize = 2;

struct Disruption {
    /// Writes the status, and asks for scales.
    clients: Clients,
    /// Reads pods.
    informer: Clients,
    served: Served,
}

/// A namespace of a workspace, as this controller sees it.
struct Place<'k> {
    client: Client,
    informer: Client,
    served: &'k Served,
    workspace: &'k WorkspaceId,
    namespace: &'k str,
}

pub(crate) fn register(manager: &mut Manager, setup: &Setup) {
    let clients = manager.clients(users::DISRUPTION_CONTROLLER);
    let informer = manager.clients(users::INFORMER);
    let (queue, budgets) = (Queue::default(), Arc::new(Cache::new(manager.reach())));
    let sink = queue.clone();
    manager.spawn(follow::follow_into(
        Api::<PartialObjectMeta<PodDisruptionBudget>>::all(clients.every()),
        watcher::Config::default(),
        manager.shutdown(),
        Arc::clone(&budgets),
        |_| (),
        move |key| sink.add(key),
    ));
    let (sink, reach) = (queue.clone(), manager.reach().clone());
    manager.spawn(follow::follow(
        Api::<PartialObjectMeta<Pod>>::all(informer.every()),
        watcher::Config::default(),
        manager.shutdown(),
        move |event| {
            let (watcher::Event::Apply(pod) | watcher::Event::Delete(pod)) = event else {
                return;
            };
            // Which budgets select it, and selected it before, is found out when they are counted.
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            let near = budgets.of_namespace(&reach.workspace_of(&pod.metadata), namespace);
            near.into_iter().for_each(|(key, _)| sink.add(key));
        },
    ));
    let reconciler = Disruption {
        clients,
        informer,
        served: setup.served.clone(),
    };
    let controller = Controller::new(NAME, queue, reconciler).workers(WORKERS);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

impl Place<'_> {
    async fn pods(&self, wanted: &Value) -> Result<Vec<Value>, Failure> {
        let resource = ApiResource::erase::<Pod>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(self.informer.clone(), self.namespace, &resource);
        let pods = api
            .list(&ListParams::default())
            .await
            .attempting("list the pods")?;
        let pods = pods.items.into_iter().map(whole);
        Ok(pods
            .filter(|pod| selector::matches(wanted, part(part(pod, "metadata"), "labels")))
            .collect())
    }

    /// How many pods the controllers of these pods want in all; `Err` says what stood in the way of counting.
    async fn expected_scale(&self, pods: &[Value]) -> Result<Result<i64, String>, Failure> {
        let mut scales: BTreeMap<String, i64> = BTreeMap::new();
        for pod in pods {
            let Some(owner) = controller_of(pod) else { continue };
            let uid = text(owner, "uid").to_owned();
            if scales.contains_key(&uid) {
                continue;
            }
            match self.scale(owner).await? {
                Some((uid_of_top, scale)) => {
                    scales.insert(uid, 0);
                    scales.insert(uid_of_top, scale);
                }
                None => {
                    let name = text(part(pod, "metadata"), "name");
                    return Ok(Err(format!("found no controllers for pod {name:?}")));
                }
            }
        }
        Ok(Ok(scales.values().sum()))
    }

    /// The controller at the top of an owner, and its scale. A ReplicaSet answers for its Deployment.
    async fn scale(&self, owner: &Value) -> Result<Option<(String, i64)>, Failure> {
        let (version, kind) = (text(owner, "apiVersion"), text(owner, "kind"));
        let Some(kind) = self.served.kind(self.workspace, version, kind).await? else {
            return Ok(None);
        };
        let api: Api<DynamicObject> = kind.api(self.client.clone(), self.namespace);
        if kind.resource.kind == "ReplicaSet" {
            let set = api
                .get_opt(text(owner, "name"))
                .await
                .attempting("read a ReplicaSet")?;
            let Some(set) = set.map(whole) else {
                return Ok(None);
            };
            if let Some(deployment) = controller_of(&set).filter(|owner| text(owner, "kind") == "Deployment")
            {
                return Box::pin(self.scale(deployment)).await;
            }
        }
        match api.get_subresource("scale", text(owner, "name")).await {
            Err(error) if is_not_found(&error) => Ok(None),
            answer => {
                let scale = whole(answer.attempting("read the scale of a controller")?);
                let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
                Ok(Some((text(owner, "uid").to_owned(), replicas)))
            }
        }
    }
}

fn controller_of(object: &Value) -> Option<&Value> {
    let owners = list(part(object, "metadata"), "ownerReferences");
    owners.iter().find(|owner| flag(owner, "controller"))
}

/// An object with its metadata in place.
fn whole(object: DynamicObject) -> Value {
    let mut value = object.data;
    value["metadata"] = serde_json::to_value(object.metadata).unwrap_or_default();
    value
}

impl Reconcile<ObjectKey> for Disruption {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let resource = ApiResource::erase::<PodDisruptionBudget>(&());
        let place = Place {
            client: self.clients.of(&key.workspace),
            informer: self.informer.of(&key.workspace),
            served: &self.served,
            workspace: &key.workspace,
            namespace: &key.namespace,
        };
        let api: Api<DynamicObject> = Api::namespaced_with(place.client.clone(), &key.namespace, &resource);
        let Some(mut budget) = api.get_opt(&key.name).await.attempting("read the budget")? else {
            return Ok(Outcome::Done);
        };
        let seen = whole(budget.clone());
        let spec = part(&seen, "spec");
        let pods = match spec.get("selector") {
            // None selects nothing; an empty one selects everything.
            None | Some(Value::Null) => Vec::new(),
            Some(wanted) => place.pods(wanted).await?,
        };
        let counted_by_scale = decide::needs_scale(spec);
        let scale = if counted_by_scale {
            place.expected_scale(&pods).await?
        } else {
            Ok(0)
        };
        let now = Timestamp::now().as_second();
        let decided = decide(&seen, &Observed { pods: &pods, scale }, now);
        let outcome = decided.again_in.map_or(Outcome::Done, |seconds| {
            Outcome::Again(Duration::from_secs(seconds))
        });
        let Some(status) = decided.status else {
            return Ok(outcome);
        };
        budget.data["status"] = status;
        match api
            .replace_status(&key.name, &PostParams::default(), &budget)
            .await
        {
            Err(error) if is_not_found(&error) => Ok(Outcome::Done),
            answer => {
                answer.attempting("write the budget's status")?;
                Ok(outcome)
            }
        }
    }
}
