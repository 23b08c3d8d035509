//! CRDs: one that is deleted goes after its objects, and names that become free are given to those who wait for them.
//!
//! The server itself settles names and conditions when a CRD is written, so that it is established at once; what is left
//! here is what takes time. One pass writes either the status or the finalizers, never both.

mod decide;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::backoff::Backoff;
use fairway_controller::cache::Cache;
use fairway_controller::error::{is_not_found, sentence, status};
use fairway_controller::{
    Attempt as _, Clients, Controller, Failure, Manager, Metadata, ObjectKey, Outcome, Queue, Reconcile,
    commit, finalizers, watch,
};
use fairway_kernel_schema::crd::CLEANUP_FINALIZER;
use fairway_kernel_schema::crd::conditions::{Removal, terminating};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::ApiResource;
use kube::runtime::watcher;
use kube::{Client, Error};
use serde_json::Value;

use self::decide::{Step, decide, settle, summary};
use crate::{Setup, now, users};

const NAME: &str = "definitions";
const WORKERS: usize = 4;
/// Objects with finalizers are waited for.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(20),
    most: Duration::from_secs(4),
};

struct Definitions {
    clients: Clients,
    /// Of each CRD only what the decision on names needs.
    crds: Arc<Cache<Value>>,
}

/// A CRD that is worked on.
struct Definition<'k> {
    client: Client,
    crds: &'k Cache<Value>,
    key: &'k ObjectKey,
}

pub(crate) fn register(manager: &mut Manager, _: &Setup) {
    let clients = manager.clients(users::DEFINITION_CONTROLLER);
    let (queue, crds) = (Queue::default(), Arc::new(Cache::<Value>::new(manager.reach())));
    let (sink, seen) = (queue.clone(), Arc::clone(&crds));
    manager.spawn(watch::follow_into(
        definitions(clients.every()),
        watcher::Config::default(),
        manager.shutdown(),
        Arc::clone(&crds),
        |crd: &DynamicObject| summary(&crd.metadata, &crd.data),
        move |key| {
            // One that has gone may leave names to others of its group and workspace.
            if seen.get(&key).is_none() {
                let group = key.name.split_once('.').map_or("", |(_, group)| group);
                for (other, crd) in seen.of_workspace(&key.workspace) {
                    if crd.pointer("/spec/group").is_some_and(|g| g == group) {
                        sink.add(other);
                    }
                }
            }
            sink.add(key);
        },
    ));
    let controller = Controller::new(NAME, queue, Definitions { clients, crds })
        .workers(WORKERS)
        .backoff(BACKOFF);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

fn definitions(client: Client) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
    };
    Api::all_with(client, &resource)
}

impl Reconcile<ObjectKey> for Definitions {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let Some(seen) = self.crds.get(key) else {
            return Ok(Outcome::Done);
        };
        let step = decide(&seen);
        if step == Step::Nothing {
            return Ok(Outcome::Done);
        }
        let crd = Definition {
            client: self.clients.of(&key.workspace),
            crds: &self.crds,
            key,
        };
        match step {
            Step::Nothing => Ok(Outcome::Done),
            Step::SettleNames => crd.settle_names().await,
            Step::Announce => crd.announce(&Removal::InProgress).await,
            Step::Release(removal) => crd.release(&removal).await,
            Step::Empty { resource, namespaced } => crd.empty(&resource, namespaced).await,
        }
    }
}

impl Definition<'_> {
    async fn read(&self) -> Result<Option<DynamicObject>, Failure> {
        definitions(self.client.clone())
            .get_opt(&self.key.name)
            .await
            .attempting("read the CRD")
    }

    /// Edits a copy and writes what changed.
    async fn edit(&self, edit: impl FnOnce(&mut Value)) -> Result<Outcome, Failure> {
        let Some(crd) = self.read().await? else {
            return Ok(Outcome::Done);
        };
        let before = serde_json::to_value(&crd).unwrap_or(Value::Null);
        let mut after = before.clone();
        edit(&mut after);
        let commit = commit::decide(&before, &after).map_err(|both| Failure::NotYet(both.to_string()))?;
        match commit::write(&definitions(self.client.clone()), &self.key.name, commit, NAME).await {
            Err(error) if is_not_found(&error) => Ok(Outcome::Done),
            written => written
                .attempting("write the CRD's status")
                .map(|()| Outcome::Done),
        }
    }

    async fn settle_names(&self) -> Result<Outcome, Failure> {
        let others: Vec<Arc<Value>> = self
            .crds
            .of_workspace(&self.key.workspace)
            .into_iter()
            .filter(|(key, _)| key != self.key)
            .map(|(_, v)| v)
            .collect();
        let others: Vec<&Value> = others.iter().map(AsRef::as_ref).collect();
        self.edit(|crd| settle(crd, &others, &now())).await
    }

    async fn announce(&self, removal: &Removal) -> Result<Outcome, Failure> {
        self.edit(|crd| {
            terminating(removal).set(crd, &now());
        })
        .await
    }

    /// Lets the CRD go. If others hold it as well, it first says that its objects are gone.
    async fn release(&self, removal: &Removal) -> Result<Outcome, Failure> {
        let Some(crd) = self.read().await? else {
            return Ok(Outcome::Done);
        };
        let Some(patch) = finalizers::removing(&crd.metadata, CLEANUP_FINALIZER) else {
            return Ok(Outcome::Done);
        };
        let held = crd.metadata.finalizers.as_ref().is_some_and(|all| all.len() > 1);
        let value = serde_json::to_value(&crd).unwrap_or(Value::Null);
        let told = fairway_kernel_schema::crd::conditions::Condition::find(&value, "Terminating");
        if held && told.as_ref() != Some(&terminating(removal)) {
            self.announce(removal).await?;
            return Ok(Outcome::Again(Duration::ZERO));
        }
        let api = definitions(self.client.clone());
        match api
            .patch(&self.key.name, &PatchParams::default(), &Patch::Merge(patch))
            .await
        {
            Err(error) if is_not_found(&error) => Ok(Outcome::Done),
            answer => answer.attempting("release the CRD").map(|_| Outcome::Done),
        }
    }

    /// Deletes the objects, and releases the CRD when none is left.
    async fn empty(&self, resource: &ApiResource, namespaced: bool) -> Result<Outcome, Failure> {
        match self.delete_all(resource, namespaced).await {
            Ok(true) => self.release(&Removal::Completed).await,
            Ok(false) => Ok(Outcome::Poll),
            Err(error) => {
                let why = format!("could not list or delete all instances: {}", sentence(&error));
                self.announce(&Removal::Failed(why)).await?;
                Err(error).attempting("delete the objects of the CRD")
            }
        }
    }

    /// Whether nothing is left.
    async fn delete_all(&self, resource: &ApiResource, namespaced: bool) -> Result<bool, Error> {
        let all: Api<Metadata> = Api::all_with(self.client.clone(), resource);
        let list = |api: Api<Metadata>| async move {
            match api.list(&ListParams::default()).await {
                // Not served any more: what cannot be reached cannot be deleted either.
                Err(error) if status(&error).is_some_and(|s| s.code == 404) => Ok(Vec::new()),
                answer => Ok::<_, Error>(answer?.items),
            }
        };
        let there = list(all.clone()).await?;
        if there.is_empty() {
            return Ok(true);
        }
        let fresh = there
            .iter()
            .filter(|object| object.metadata.deletion_timestamp.is_none());
        let places: BTreeSet<String> = fresh
            .map(|o| o.metadata.namespace.clone().unwrap_or_default())
            .collect();
        for namespace in places {
            let api = if namespaced {
                Api::<Metadata>::namespaced_with(self.client.clone(), &namespace, resource)
            } else {
                all.clone()
            };
            api.delete_collection(&DeleteParams::default(), &ListParams::default())
                .await?;
        }
        Ok(list(all).await?.is_empty())
    }
}
