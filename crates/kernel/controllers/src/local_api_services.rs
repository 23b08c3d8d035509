//! Every group and version that this server serves in the root workspace has an APIService there that says so:
//! `kubectl get apiservices` lists them as `Local` and available. They come and go with CRDs.

mod decide;

use std::collections::BTreeSet;
use std::time::Duration;

use fairway_controller::apply::Applier;
use fairway_controller::error::is_not_found;
use fairway_controller::kinds::Kinds;
use fairway_controller::served::Served;
use fairway_controller::{
    Attempt as _, Controller, Failure, Manager, ObjectKey, Outcome, Queue, Reconcile, WorkspaceId,
    watch as following,
};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PartialObjectMeta};
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Event};

use crate::{Setup, now, users};
use decide::{Step, decide};

const NAME: &str = "local-apiservices";
/// Until the first discovery is complete.
const NOT_DISCOVERED: Duration = Duration::from_millis(20);
const APPLIER: Applier = Applier::new("fairway-local-apiservices");

struct LocalApiServices {
    client: Client,
    served: Served,
}

pub(crate) fn register(manager: &mut Manager, setup: &Setup) {
    let client = manager.clients(users::API_SERVICE_REGISTRAR).root();
    let queue = Queue::default();
    // All of them are one piece of work: what is served is known only as a whole.
    let key = ObjectKey::new(&WorkspaceId::root(), "", NAME);
    let api: Api<PartialObjectMeta<APIService>> = Api::all(client.clone());
    let (sink, all) = (queue.clone(), key.clone());
    let config = watcher::Config::default();
    manager.spawn(following::follow(api, config, manager.shutdown(), move |event| {
        if matches!(event, Event::Apply(_) | Event::Delete(_)) {
            sink.add(all.clone());
        }
    }));
    let (sink, served, mut shutdown) = (queue.clone(), setup.served.clone(), manager.shutdown());
    manager.spawn(async move {
        let follow = async {
            let mut changes = served.changes();
            let mut before = None;
            while changes.changed().await.is_ok() {
                // Most new kinds are of other workspaces, or come in a version that is there already.
                let now = served.of(&WorkspaceId::root()).await;
                let now = now.ok().map(|kinds| versions_of(&kinds));
                if now.is_none() || now != before {
                    sink.add(key.clone());
                    before = now;
                }
            }
        };
        tokio::select! {
            () = follow => {}
            () = shutdown.wait() => {}
        }
    });
    let registrar = LocalApiServices {
        client,
        served: setup.served.clone(),
    };
    let controller = Controller::new(NAME, queue, registrar);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

/// The group-versions that are served, and those of which that is not known.
fn versions_of(kinds: &Kinds) -> (BTreeSet<String>, BTreeSet<String>) {
    let served = kinds.group_versions().into_iter().map(str::to_owned).collect();
    let unknown = kinds.failed().map(str::to_owned).collect();
    (served, unknown)
}

impl Reconcile<ObjectKey> for LocalApiServices {
    async fn reconcile(&self, _: &ObjectKey) -> Result<Outcome, Failure> {
        let api: Api<DynamicObject> =
            Api::all_with(self.client.clone(), &ApiResource::erase::<APIService>(&()));
        let found = api
            .list(&ListParams::default())
            .await
            .attempting("list the APIServices")?;
        let found: Vec<serde_json::Value> = found
            .items
            .iter()
            .filter_map(|item| serde_json::to_value(item).ok())
            .collect();
        let steps = {
            let kinds = self.served.of(&WorkspaceId::root()).await?;
            if kinds.is_empty() {
                return Ok(Outcome::Again(NOT_DISCOVERED));
            }
            let served: BTreeSet<&str> = kinds.group_versions();
            let unknown: BTreeSet<&str> = kinds.failed().collect();
            decide(&served, &unknown, &found, &now())
        };
        for step in steps {
            match step {
                Step::Apply { name, object } => {
                    APPLIER
                        .apply(&api, &name, &object)
                        .await
                        .attempting(format!("apply the APIService {name}"))?;
                }
                Step::ApplyStatus { name, object } => {
                    match APPLIER.apply_status(&api, &name, &object).await {
                        // Somebody deleted it a moment ago: the watch will tell.
                        Err(error) if is_not_found(&error) => {}
                        other => {
                            other.attempting(format!("apply the status of the APIService {name}"))?;
                        }
                    }
                }
                Step::Delete { name } => match api.delete(&name, &DeleteParams::default()).await {
                    Err(error) if is_not_found(&error) => {}
                    other => {
                        other.attempting(format!("delete the APIService {name}"))?;
                    }
                },
            }
        }
        Ok(Outcome::Done)
    }
}
