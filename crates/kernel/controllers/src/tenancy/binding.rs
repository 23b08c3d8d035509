//! APIBindings: each brings what its export offers, follows it, and takes the objects along when it goes.

mod claims;
mod removal;

use fairway_controller::requests::{Requests, version};
use fairway_controller::{
    Clients, Controller, Failure, Manager, ObjectKey, Outcome, Queue, Reconcile, WorkspaceId,
};
use fairway_kernel_schema::crd::Names;
use fairway_kernel_tenancy::ClusterId;
use fairway_kernel_tenancy::binding::{ApiBinding, Observed, Served, decide};
use fairway_kernel_tenancy::locks::Locks;
use fairway_kernel_tenancy::names::annotation;
use serde_json::{Value, json};

use super::apis::Apis;
use super::paths::{BINDINGS, CLUSTER, DEFINITIONS};
use super::tree::Tree;
use super::turns::Turns;
use super::{Queues, UNTIL_SYNCED};
use crate::{now, users};

const NAME: &str = "api-binding";
const WORKERS: usize = 8;

#[derive(Clone)]
pub(super) struct Bindings {
    clients: Clients,
    tree: Tree,
    apis: Apis,
    turns: Turns,
}

impl Bindings {
    pub(super) fn new(manager: &Manager, tree: &Tree, apis: &Apis, queues: &Queues) -> Self {
        Self {
            clients: manager.clients(users::API_BINDING_CONTROLLER),
            tree: tree.clone(),
            apis: apis.clone(),
            turns: Turns::new(&queues.bindings),
        }
    }

    pub(super) fn register(self, manager: &mut Manager, queue: Queue<ObjectKey>) {
        let controller = Controller::new(NAME, queue, self)
            .workers(WORKERS)
            .backoff(removal::BACKOFF);
        manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
    }

    /// Takes a binding as far as it can go now, unless somebody is at it.
    pub(super) async fn bind(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let Some(_turn) = self.turns.take(key) else {
            return Ok(Outcome::Done);
        };
        let here = Requests::new(self.clients.of(&key.workspace));
        let path = format!("{BINDINGS}/{}", key.name);
        let Some(object) = here.get(&path).await? else {
            return Ok(Outcome::Done);
        };
        let binding = ApiBinding::read(&object);
        if binding.meta.is_deleting() {
            return self.remove(&here, key, &object, &binding).await;
        }
        let around = self.look_around(&here, key).await?;
        let now = now();
        let plan = {
            let cluster = ClusterId::parse(key.workspace.as_str());
            let here = cluster.map_err(|error| Failure::NotYet(error.to_string()))?;
            let at = binding
                .reference()
                .and_then(|(path, name)| Some((self.tree.resolve_from(&key.workspace, path)?, name)));
            let export = at
                .as_ref()
                .and_then(|(at, name)| self.apis.exports.get(&ObjectKey::new(at, "", name)));
            let schema = |name: &str| {
                let (at, _) = at.as_ref()?;
                self.apis.schemas.get(&ObjectKey::new(at, "", name))
            };
            let served: Vec<Served<'_>> = around.served.iter().map(Brought::as_served).collect();
            decide(&Observed {
                binding: &binding,
                here: &here,
                export: export.as_deref(),
                schema: &schema,
                // What cannot be served is not let in as a schema.
                unusable: &|_| None,
                served: &served,
                locks: &around.locks,
                now: &now,
            })
        };
        let locks = plan.locks.as_ref().unwrap_or(&around.locks);
        if around.write_locks(&here, locks).await? && around.defined != defined_in(&here).await? {
            // A definition that came at the same moment did not find the locks: it was there first.
            return Ok(Outcome::Again(UNTIL_SYNCED));
        }
        if let Some(status) = plan.status {
            claims::write(&self.clients.of(&key.workspace), &here, &path, &object, &status).await?;
        }
        Ok(Outcome::Done)
    }

    /// What else a workspace has, and who holds what.
    async fn look_around(&self, here: &Requests, key: &ObjectKey) -> Result<Around, Failure> {
        let cluster = here.get(CLUSTER).await?;
        let bindings = here.list(BINDINGS).await?;
        let definitions = here.list(DEFINITIONS).await?;
        let text = |object: &Value, pointer: &str| {
            let text = object.pointer(pointer).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let names: Vec<String> = bindings.iter().map(|it| text(it, "/metadata/name")).collect();
        let defined = resources_of(&definitions);
        let mut served = Vec::new();
        for (definition, (group, _)) in definitions.iter().zip(&defined) {
            served.push(Brought {
                binding: None,
                group: group.clone(),
                names: Names::parse(&definition["spec"]["names"]),
            });
        }
        for other in bindings.iter().map(ApiBinding::read) {
            let Some((cluster, export)) = other.export() else {
                continue;
            };
            if other.meta.name == key.name {
                continue;
            }
            let Ok(at) = WorkspaceId::parse(cluster.as_str()) else {
                continue;
            };
            let path = other.reference().map_or("", |(path, _)| path);
            let path = if path.is_empty() { cluster.as_str() } else { path };
            for bound in &other.bound {
                if let Some(schema) = self
                    .apis
                    .schemas
                    .get(&ObjectKey::new(&at, "", &bound.schema.name))
                {
                    served.push(Brought {
                        binding: Some((other.meta.name.clone(), format!("{path}:{export}"))),
                        group: bound.group.clone(),
                        names: schema.names.clone(),
                    });
                }
            }
        }
        let annotation = cluster.as_ref().and_then(|it| {
            let all = it.pointer("/metadata/annotations")?;
            Some(all.get(annotation::RESOURCE_BINDINGS)?.as_str()?.to_owned())
        });
        let mut locks = Locks::parse(annotation.as_deref());
        locks.tidy(
            names.iter().map(String::as_str),
            defined
                .iter()
                .map(|(group, plural)| (group.as_str(), plural.as_str())),
            &now(),
        );
        Ok(Around {
            cluster,
            annotation,
            locks,
            served,
            names,
            defined,
        })
    }
}

impl Reconcile<ObjectKey> for Bindings {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        if !self.tree.is_synced() || !self.apis.is_synced() {
            return Ok(Outcome::Again(UNTIL_SYNCED));
        }
        if self.apis.is_settled(key) {
            return Ok(Outcome::Done);
        }
        self.bind(key).await
    }
}

/// A kind that something else brings.
struct Brought {
    binding: Option<(String, String)>,
    group: String,
    names: Names,
}

impl Brought {
    fn as_served(&self) -> Served<'_> {
        Served {
            binding: self
                .binding
                .as_ref()
                .map(|(name, export)| (name.as_str(), export.as_str())),
            group: &self.group,
            names: &self.names,
        }
    }
}

struct Around {
    cluster: Option<Value>,
    /// The locks as they were read.
    annotation: Option<String>,
    /// The locks without those that nobody holds any more.
    locks: Locks,
    served: Vec<Brought>,
    names: Vec<String>,
    defined: Vec<(String, String)>,
}

impl Around {
    /// The locks that stay when a binding goes.
    fn locks_without(&self, binding: &str) -> Locks {
        let mut locks = self.locks.clone();
        locks.tidy(
            self.names
                .iter()
                .map(String::as_str)
                .filter(|name| *name != binding),
            self.defined
                .iter()
                .map(|(group, plural)| (group.as_str(), plural.as_str())),
            &now(),
        );
        locks
    }

    /// Writes who holds what, unless somebody else has written it since it was read; whether there was anything to write.
    async fn write_locks(&self, here: &Requests, locks: &Locks) -> Result<bool, Failure> {
        let Some(cluster) = &self.cluster else {
            return Ok(false);
        };
        if *locks == Locks::parse(self.annotation.as_deref()) {
            return Ok(false);
        }
        let patch = json!({"metadata": {
            "resourceVersion": version(cluster),
            "annotations": {annotation::RESOURCE_BINDINGS: locks.to_annotation()},
        }});
        here.merge(CLUSTER, &patch).await?;
        Ok(true)
    }
}

/// Group and plural name of each definition of a workspace.
async fn defined_in(here: &Requests) -> Result<Vec<(String, String)>, Failure> {
    Ok(resources_of(&here.list(DEFINITIONS).await?))
}

fn resources_of(definitions: &[Value]) -> Vec<(String, String)> {
    let text = |object: &Value, pointer: &str| {
        let text = object.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    definitions
        .iter()
        .map(|it| (text(it, "/spec/group"), text(it, "/spec/names/plural")))
        .collect()
}
