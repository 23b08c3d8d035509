//! Brings entities to what locations say.
//!
//! ```text
//! get location → read its files → see what is known → plan → write entities → write status
//! ```
//!
//! A location in a hosted repository is read again when somebody pushes, one elsewhere every few minutes; either when somebody asks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::conditions::{self, Condition, Truth};
use fairway_controller::requests::version;
use fairway_controller::{
    Attempt as _, Clients, Controller, Failure, Json, Manager, ObjectKey, Outcome, Reconcile, Requests, watch,
};
use fairway_portal_entity::ingest::{self, Known, Plan, Step};
use fairway_portal_entity::place::LocationRef;
use fairway_portal_entity::{EntityRef, object};
use kube::Client;
use kube::runtime::watcher::{self, Event};
use serde_json::{Value, json};
use tracing::info;

use crate::read::{self, Reading};
use crate::{Catalog, kinds};

const NAME: &str = "catalog-locations";
const WORKERS: usize = 4;
/// How often a location elsewhere is read, as upstream does.
const ELSEWHERE: Duration = Duration::from_secs(150);

struct Locations {
    catalog: Arc<Catalog>,
    clients: Clients,
}

/// Starts the controller.
pub(crate) fn start(manager: &mut Manager, clients: &Clients, catalog: &Arc<Catalog>) {
    let queue = catalog.locations.clone();
    let (sink, reach) = (queue.clone(), clients.reach().clone());
    manager.spawn(watch::follow(
        kinds::locations(clients.every()),
        watcher::Config::default(),
        manager.shutdown(),
        move |event: Event<Json>| match event {
            Event::Apply(object) if is_settled(&object.value) => {}
            Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) => {
                sink.add(ObjectKey::of(&reach, &object.metadata));
            }
            Event::Init | Event::InitDone => {}
        },
    ));
    let locations = Locations {
        catalog: Arc::clone(catalog),
        clients: clients.clone(),
    };
    let controller = Controller::new(NAME, queue, locations).workers(WORKERS);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

/// Whether an event tells of nothing but our own status.
fn is_settled(object: &Value) -> bool {
    let generation = object.pointer("/metadata/generation");
    let observed = object.pointer("/status/observedGeneration");
    generation.is_some() && generation == observed && wish(object) == object.pointer("/status/refreshed")
}

/// The last wish to be read again.
fn wish(object: &Value) -> Option<&Value> {
    object.pointer("/metadata/annotations")?.get(kinds::REFRESH)
}

/// Whether what its files no longer say goes at once. Upstream's setting is for the whole catalog; here each location has it.
fn deletes_orphans(location: &Value) -> bool {
    location["metadata"]["annotations"][kinds::ORPHANS] == "delete"
}

/// The address in a location's object.
pub(crate) fn location_of(object: &Value) -> LocationRef {
    let text = |field: &str| object["spec"][field].as_str().unwrap_or_default().to_owned();
    LocationRef {
        kind: match text("type") {
            kind if kind.is_empty() => "url".to_owned(),
            kind => kind,
        },
        target: text("target"),
    }
}

impl Reconcile<ObjectKey> for Locations {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let client = self.clients.of(&key.workspace);
        let requests = Requests::new(client.clone());
        let Some(location) = requests.get(&kinds::location(&key.name)).await? else {
            self.catalog.known.reads_no_more(key);
            return Ok(Outcome::Done);
        };
        if location.pointer("/metadata/deletionTimestamp").is_some() {
            self.catalog.known.reads_no_more(key);
            return Ok(Outcome::Done);
        }
        let options = &self.catalog.options;
        let origin = location_of(&location);
        let mut reading = read::read(&*options.files, &options.outbound, &key.workspace, &origin).await;
        let (files, repositories) = (
            std::mem::take(&mut reading.files),
            std::mem::take(&mut reading.repositories),
        );
        let count = files.len();
        self.catalog.known.reads(key, files, repositories);
        let plan = self.write(&client, &requests, &location, &mut reading).await?;
        let changed = plan.steps.len();
        if changed > 0 {
            info!(%key, changed, entities = plan.entities, "a location of the catalog was read");
        }
        self.tell(&requests, &location, &reading, &plan, count).await?;
        if self.catalog.known.awaits(key, plan.awaited) {
            self.catalog.locations.add(key.clone());
        }
        Ok(match (reading.is_transient, reading.is_remote) {
            (true, _) => Outcome::Poll,
            (false, true) => Outcome::Again(ELSEWHERE),
            (false, false) => Outcome::Done,
        })
    }
}

impl Locations {
    /// Decides, and writes entities.
    async fn write(
        &self,
        client: &Client,
        requests: &Requests,
        location: &Value,
        reading: &mut Reading,
    ) -> Result<Plan, Failure> {
        let text = |pointer: &str| {
            location
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (name, uid) = (text("/metadata/name"), text("/metadata/uid"));
        let selector = format!("{}={uid}", kinds::LOCATION_LABEL);
        let mut objects: HashMap<String, Value> = HashMap::new();
        for found in requests.list_selected(kinds::ENTITIES, &selector).await? {
            if let Some(name) = found.pointer("/metadata/name").and_then(Value::as_str) {
                objects.insert(name.to_owned(), found);
            }
        }
        for wanted in &reading.wanted {
            let Some(reference) = EntityRef::of(&wanted.entity) else {
                continue;
            };
            let name = object::entity_name(&reference);
            if !objects.contains_key(&name)
                && let Some(found) = requests.get(&kinds::entity(&name)).await?
            {
                objects.insert(name, found);
            }
        }
        let known: HashMap<String, Known> = objects
            .iter()
            .map(|(name, object)| {
                (
                    name.clone(),
                    Known {
                        spec: object["spec"].clone(),
                    },
                )
            })
            .collect();
        let plan = ingest::plan(name, std::mem::take(&mut reading.wanted), &reading.spared, &known);
        if deletes_orphans(location) {
            // They have become orphans before anybody asked for this.
            let is_left = |name: &String, object: &Value| {
                object["spec"]["orphan"] == true
                    && object["spec"]["location"] == location["metadata"]["name"]
                    && !plan.steps.contains_key(name)
            };
            for (name, object) in objects.iter().filter(|(name, object)| is_left(name, object)) {
                requests.delete_read(&kinds::entity(name), object).await?;
            }
        }
        let metadata = json!({
            "labels": {kinds::LOCATION_LABEL: uid},
            "ownerReferences": [{
                "apiVersion": "fairway.dev/v1alpha1", "kind": "CatalogLocation", "name": name, "uid": uid,
            }],
        });
        for (name, step) in &plan.steps {
            match step {
                Step::Create(spec) => {
                    let mut object = json!({
                        "apiVersion": "fairway.dev/v1alpha1", "kind": "CatalogEntity", "metadata": metadata, "spec": spec,
                    });
                    object["metadata"]["name"] = name.as_str().into();
                    if !requests.create(kinds::ENTITIES, &object).await? {
                        return Err(Failure::NotYet(format!(
                            "{name} was made by somebody else meanwhile"
                        )));
                    }
                }
                Step::Change(spec) => {
                    let steps = json!([
                        {"op": "add", "path": "/metadata/resourceVersion", "value": version(&objects[name])},
                        {"op": "add", "path": "/metadata/labels", "value": metadata["labels"]},
                        {"op": "add", "path": "/metadata/ownerReferences", "value": metadata["ownerReferences"]},
                        {"op": "add", "path": "/spec", "value": spec},
                    ]);
                    patch(client, name, &steps).await?;
                }
                Step::Orphan if deletes_orphans(location) => {
                    requests.delete_read(&kinds::entity(name), &objects[name]).await?;
                }
                Step::Orphan => {
                    let steps = json!([
                        {"op": "add", "path": "/metadata/resourceVersion", "value": version(&objects[name])},
                        {"op": "add", "path": "/spec/orphan", "value": true},
                    ]);
                    patch(client, name, &steps).await?;
                }
            }
        }
        Ok(plan)
    }

    /// Writes the status, if it would say something new.
    async fn tell(
        &self,
        requests: &Requests,
        location: &Value,
        reading: &Reading,
        plan: &Plan,
        files: usize,
    ) -> Result<(), Failure> {
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let new = status(location, reading, plan, files, &now);
        if location.get("status") != Some(&new) {
            let name = location["metadata"]["name"].as_str().unwrap_or_default();
            requests
                .replace_status(&kinds::location(name), location, &new)
                .await?;
        }
        Ok(())
    }
}

/// Sends a JSON patch to an entity's object. One that is gone meanwhile is looked at again when its event comes.
async fn patch(client: &Client, name: &str, steps: &Value) -> Result<(), Failure> {
    let request = http::Request::builder()
        .method("PATCH")
        .uri(kinds::entity(name))
        .header("content-type", "application/json-patch+json")
        .body(steps.to_string().into_bytes())
        .map_err(kube::Error::HttpError)
        .attempting("write a patch")?;
    match client.request::<Value>(request).await {
        Ok(_) => Ok(()),
        Err(error) if fairway_controller::error::is_not_found(&error) => Ok(()),
        Err(error) => Err(error).attempting(format!("change the entity {name}")),
    }
}

/// What the status says.
fn status(location: &Value, reading: &Reading, plan: &Plan, files: usize, now: &str) -> Value {
    let mut errors = reading.errors.clone();
    errors.extend(plan.refused.iter().take(20).cloned());
    errors.truncate(20);
    let condition = match errors.first() {
        None => Condition::new(
            "Ready",
            Truth::True,
            "Read",
            format!("{} entities are in the catalog", plan.entities),
        ),
        Some(first) if reading.spared.all => {
            Condition::new("Ready", Truth::False, "Unreadable", first.clone())
        }
        Some(first) => Condition::new("Ready", Truth::False, "Refused", first.clone()),
    };
    let generation = location.pointer("/metadata/generation").and_then(Value::as_i64);
    let mut object = json!({"status": location.get("status").cloned().unwrap_or_else(|| json!({}))});
    conditions::set(&mut object, &[condition.observed(generation)], now);
    let mut status = object["status"].take();
    status["entities"] = plan.entities.into();
    status["files"] = files.into();
    status["errors"] = errors.into();
    status["observedGeneration"] = generation.into();
    if let Some(commit) = &reading.commit {
        status["commit"] = commit.as_str().into();
    }
    if let Some(wish) = wish(location) {
        status["refreshed"] = wish.clone();
    }
    if !plan.steps.is_empty() || status["lastRefreshed"].is_null() {
        status["lastRefreshed"] = now.into();
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_that_says_nothing_new_stays() {
        let location = json!({"metadata": {"name": "a", "generation": 2}, "spec": {"target": "https://x"}});
        let reading = Reading {
            commit: Some("c1".to_owned()),
            ..Reading::default()
        };
        let plan = Plan {
            entities: 3,
            ..Plan::default()
        };
        let first = status(&location, &reading, &plan, 2, "t1");
        assert_eq!(
            (&first["entities"], &first["files"], &first["commit"]),
            (&json!(3), &json!(2), &json!("c1"))
        );
        assert_eq!(first["conditions"][0]["status"], "True");
        let mut told = location;
        told["status"] = first.clone();
        assert!(is_settled(&told));
        assert_eq!(status(&told, &reading, &plan, 2, "t2"), first);
        // Somebody wants it to be read again.
        told["metadata"]["annotations"] = json!({kinds::REFRESH: "now"});
        assert!(!is_settled(&told));
        told["status"] = status(&told, &reading, &plan, 2, "t2");
        assert!(is_settled(&told));
        let failed = Reading {
            errors: vec!["it is not there".to_owned()],
            spared: ingest::Spared {
                all: true,
                ..ingest::Spared::default()
            },
            ..Reading::default()
        };
        let failed = status(&told, &failed, &plan, 0, "t3");
        assert_eq!(
            (
                &failed["conditions"][0]["reason"],
                &failed["conditions"][0]["message"]
            ),
            (&json!("Unreadable"), &json!("it is not there"))
        );
        assert_eq!(failed["conditions"][0]["lastTransitionTime"], "t3");
    }
}
