//! Endpoints that somebody writes by hand for a Service without a selector are mirrored to EndpointSlices, because that
//! is what readers look at nowadays.
//!
//! Left alone are Endpoints that say so (`endpointslice.kubernetes.io/skip-mirror`), that are used as a lock by leader
//! election, and those of Services with a selector.

mod decide;

use fairway_controller::error::{is_namespace_terminating, is_not_found};
use fairway_controller::{
    Attempt as _, Clients, Controller, Failure, Manager, ObjectKey, Outcome, Queue, Reconcile, watch,
};
use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PartialObjectMeta, PostParams};
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Event};
use serde_json::Value;

use self::decide::{MANAGED_BY, MANAGER, SERVICE_NAME, decide};
use crate::{Setup, users};

const NAME: &str = "endpointslice-mirroring";
const WORKERS: usize = 4;

struct Mirroring {
    clients: Clients,
}

/// The objects of a workspace.
struct Place<'k> {
    client: Client,
    key: &'k ObjectKey,
}

pub(crate) fn register(manager: &mut Manager, _: &Setup) {
    let clients = manager.clients(users::MIRRORING_CONTROLLER);
    let client = clients.every();
    let queue = Queue::default();
    let own = watcher::Config::default().labels(&format!("{MANAGED_BY}={MANAGER}"));
    let by_name = |object: &kube::api::ObjectMeta| object.name.clone();
    let by_label = |slice: &kube::api::ObjectMeta| slice.labels.as_ref()?.get(SERVICE_NAME).cloned();
    follow::<Endpoints>(manager, &client, &queue, watcher::Config::default(), by_name);
    follow::<Service>(manager, &client, &queue, watcher::Config::default(), by_name);
    follow::<EndpointSlice>(manager, &client, &queue, own, by_label);
    let controller = Controller::new(NAME, queue, Mirroring { clients }).workers(WORKERS);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

/// Looks at a Service again when something of that name, or a slice for it, changes.
fn follow<K>(
    manager: &mut Manager,
    client: &Client,
    queue: &Queue<ObjectKey>,
    config: watcher::Config,
    service_of: impl Fn(&kube::api::ObjectMeta) -> Option<String> + Send + 'static,
) where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + Send
        + Sync
        + 'static,
    PartialObjectMeta<K>: std::fmt::Debug,
{
    let api: Api<PartialObjectMeta<K>> = Api::all(client.clone());
    let (sink, reach) = (queue.clone(), manager.reach().clone());
    manager.spawn(watch::follow(api, config, manager.shutdown(), move |event| {
        let (Event::Apply(object) | Event::Delete(object) | Event::InitApply(object)) = event else {
            return;
        };
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        if let Some(service) = service_of(&object.metadata) {
            sink.add(ObjectKey::new(
                &reach.workspace_of(&object.metadata),
                namespace,
                &service,
            ));
        }
    }));
}

impl Place<'_> {
    fn api<K: kube::Resource<DynamicType = ()>>(&self) -> Api<DynamicObject> {
        let resource = ApiResource::erase::<K>(&());
        Api::namespaced_with(self.client.clone(), &self.key.namespace, &resource)
    }

    async fn read<K: kube::Resource<DynamicType = ()>>(&self) -> Result<Option<Value>, Failure> {
        let found = self.api::<K>().get_opt(&self.key.name).await;
        Ok(found.attempting("read what is mirrored")?.map(whole))
    }
}

/// An object with its metadata in place.
fn whole(object: DynamicObject) -> Value {
    let mut value = object.data;
    value["metadata"] = serde_json::to_value(object.metadata).unwrap_or_default();
    value
}

impl Reconcile<ObjectKey> for Mirroring {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let place = Place {
            client: self.clients.of(&key.workspace),
            key,
        };
        let endpoints = place.read::<Endpoints>().await?;
        let service = place.read::<Service>().await?;
        let slices = place.api::<EndpointSlice>();
        let own =
            ListParams::default().labels(&format!("{SERVICE_NAME}={},{MANAGED_BY}={MANAGER}", key.name));
        let existing = slices.list(&own).await.attempting("list the mirrored slices")?;
        let existing: Vec<Value> = existing.items.into_iter().map(whole).collect();
        let plan = decide(endpoints.as_ref(), service.as_ref(), &existing);
        for slice in &plan.create {
            match create(&slices, slice).await {
                Err(error) if is_namespace_terminating(&error) || is_not_found(&error) => {
                    return Ok(Outcome::Done);
                }
                answer => answer.attempting("create a mirrored slice")?,
            }
        }
        for (name, slice) in &plan.update {
            let slice = serde_json::from_value(slice.clone())
                .map_err(kube::Error::SerdeError)
                .attempting("write a slice")?;
            match slices.replace(name, &PostParams::default(), &slice).await {
                Err(error) if is_not_found(&error) => {}
                answer => drop(answer.attempting("update a mirrored slice")?),
            }
        }
        for name in &plan.delete {
            match slices.delete(name, &DeleteParams::default()).await {
                Err(error) if is_not_found(&error) => {}
                answer => drop(answer.attempting("delete a mirrored slice")?),
            }
        }
        Ok(Outcome::Done)
    }
}

async fn create(slices: &Api<DynamicObject>, slice: &Value) -> Result<(), kube::Error> {
    let slice = serde_json::from_value(slice.clone()).map_err(kube::Error::SerdeError)?;
    slices.create(&PostParams::default(), &slice).await.map(drop)
}
