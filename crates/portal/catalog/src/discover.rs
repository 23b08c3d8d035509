//! Looks into every hosted repository for a `catalog-info.yaml` on its default branch: one that is there is a location, one that is
//! not is none.
//!
//! ```text
//! file there   → a CatalogLocation that the Repository owns
//! file gone    → that location goes, and its entities with it; if somebody has registered it, he is told that it is not there
//! Repository gone → its location goes with it, by garbage collection
//! ```

use std::sync::Arc;

use fairway_controller::{
    Clients, Controller, Failure, Json, Manager, ObjectKey, Outcome, Reconcile, Requests, watch,
};
use fairway_portal_entity::object;
use fairway_portal_entity::place::LocationRef;
use kube::runtime::watcher::{self, Event};
use serde_json::{Value, json};
use tracing::info;

use crate::files::FilesError;
use crate::{Catalog, kinds};

const NAME: &str = "catalog-repositories";
const WORKERS: usize = 4;
/// The label that names a location's Repository, by its UID.
const REPOSITORY_LABEL: &str = "fairway.dev/catalog-repository";

struct Repositories {
    catalog: Arc<Catalog>,
    clients: Clients,
}

/// Starts the controller.
pub(crate) fn start(manager: &mut Manager, clients: &Clients, catalog: &Arc<Catalog>) {
    let queue = catalog.known.repositories();
    let (sink, reach) = (queue.clone(), clients.reach().clone());
    manager.spawn(watch::follow(
        kinds::repositories(clients.every()),
        watcher::Config::default(),
        manager.shutdown(),
        move |event: Event<Json>| match event {
            Event::Apply(object) | Event::InitApply(object) => {
                sink.add(ObjectKey::of(&reach, &object.metadata));
            }
            Event::Delete(_) | Event::Init | Event::InitDone => {}
        },
    ));
    let repositories = Repositories {
        catalog: Arc::clone(catalog),
        clients: clients.clone(),
    };
    let controller = Controller::new(NAME, queue, repositories).workers(WORKERS);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

impl Reconcile<ObjectKey> for Repositories {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let requests = Requests::new(self.clients.of(&key.workspace));
        let path = format!("/apis/fairway.dev/v1alpha1/repositories/{}", key.name);
        let Some(repository) = requests.get(&path).await? else {
            return Ok(Outcome::Done);
        };
        if repository.pointer("/metadata/deletionTimestamp").is_some() {
            return Ok(Outcome::Done);
        }
        let files = &self.catalog.options.files;
        let is_ignored = repository
            .pointer("/metadata/annotations")
            .and_then(|all| all.get(kinds::DISCOVERY))
            .is_some_and(|value| value == "ignore");
        let found = match is_ignored {
            true => None,
            false => match files.catalog_file(&key.workspace, &key.name).await {
                Ok(found) => found.map(|hosted| LocationRef {
                    kind: "url".to_owned(),
                    target: hosted.url(files.host()),
                }),
                Err(FilesError::NotFound(_)) => None,
                // The disk has its troubles: nothing is known, so nothing goes.
                Err(FilesError::Failed(why)) => return Err(Failure::NotYet(why)),
            },
        };
        self.settle(&requests, &repository, found).await?;
        Ok(Outcome::Done)
    }
}

impl Repositories {
    async fn settle(
        &self,
        requests: &Requests,
        repository: &Value,
        found: Option<LocationRef>,
    ) -> Result<(), Failure> {
        let text = |pointer: &str| {
            repository
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (name, uid) = (text("/metadata/name"), text("/metadata/uid"));
        let wanted = found.as_ref().map(object::location_name);
        let selector = format!("{REPOSITORY_LABEL}={uid}");
        for old in requests.list_selected(kinds::LOCATIONS, &selector).await? {
            let old_name = old["metadata"]["name"].as_str().unwrap_or_default();
            if Some(old_name) == wanted.as_deref() {
                continue;
            }
            let is_registered = old["metadata"]["annotations"][kinds::REGISTERED] == "true";
            if is_registered {
                continue;
            }
            info!(
                repository = name,
                location = old_name,
                "a repository has no catalog file any more"
            );
            requests.delete_read(&kinds::location(old_name), &old).await?;
        }
        let Some((location, object_name)) = found.zip(wanted) else {
            return Ok(());
        };
        let owners = json!([{
            "apiVersion": "fairway.dev/v1alpha1", "kind": "Repository", "name": name, "uid": uid,
        }]);
        let labels = json!({REPOSITORY_LABEL: uid});
        let object = json!({
            "apiVersion": "fairway.dev/v1alpha1", "kind": "CatalogLocation",
            "metadata": {"name": object_name, "labels": labels, "ownerReferences": owners},
            "spec": {"type": location.kind, "target": location.target, "repository": name},
        });
        if requests.create(kinds::LOCATIONS, &object).await? {
            info!(
                repository = name,
                location = object_name,
                "a catalog file was found"
            );
            return Ok(());
        }
        let path = kinds::location(&object_name);
        let Some(known) = requests.get(&path).await? else {
            return Err(Failure::NotYet(format!("{object_name} went meanwhile")));
        };
        if known["metadata"]["labels"][REPOSITORY_LABEL] != uid || known["spec"]["repository"] != name {
            // Somebody registered it first, or the repository was deleted and made again.
            let registered = known["spec"]["repository"].is_null();
            let mut patch = json!({
                "metadata": {"labels": labels, "ownerReferences": owners}, "spec": {"repository": name},
            });
            if registered {
                patch["metadata"]["annotations"] = json!({kinds::REGISTERED: "true"});
            }
            requests.merge(&path, &patch).await?;
        }
        Ok(())
    }
}
