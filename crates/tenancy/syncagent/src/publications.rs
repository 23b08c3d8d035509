//! PublishedResources: each becomes an APIResourceSchema in the provider's workspace, and says how it fares.
//!
//! A schema is never changed and never deleted: another state of the definition has another name, and objects of consumers
//! may depend on an old one.

use std::sync::Arc;
use std::time::Duration;

use fairway_controller::cache::Cache;
use fairway_controller::error::status;
use fairway_controller::requests::{Requests, version};
use fairway_controller::{
    Controller, Failure, Manager, Outcome, Queue, Reach, Reconcile, WorkspaceId, watch,
};
use fairway_kernel_tenancy::conditions::Conditions;
use fairway_kernel_tenancy::mutation::Mutator;
use fairway_kernel_tenancy::published::{PublishedResource, Served, definition_of};
use kube::api::{Api, DynamicObject};
use kube::core::ApiResource;
use kube::runtime::watcher;
use serde_json::{Value, json};

use crate::catalog::{Catalog, Publication, SCHEMA, VALID, Word};
use crate::{Agent, now};

pub(crate) const PUBLISHED: &str = "/apis/syncagent.kcp.io/v1alpha1/publishedresources";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SCHEMAS: &str = "/apis/apis.kcp.io/v1alpha1/apiresourceschemas";

/// Nobody tells when a kind without a definition comes or changes, nor when a right is granted.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// Group and kind of a definition that is there.
#[derive(Debug, PartialEq, Eq)]
struct Defined {
    group: String,
    kind: String,
}

struct Publishing {
    service: Requests,
    provider: Requests,
    agent: String,
    catalog: Catalog,
    definitions: Arc<Cache<Defined>>,
    published: Arc<Cache<(String, String)>>,
}

pub(crate) fn register(manager: &mut Manager, agent: &Agent, catalog: &Catalog, queue: &Queue<String>) {
    let one = Reach::One(WorkspaceId::root());
    let published = Arc::new(Cache::new(&one));
    let definitions = Arc::new(Cache::new(&one));
    let api: Api<DynamicObject> = Api::all_with(agent.service.clone(), &published_resource());
    let config = watcher::Config::default().labels(&agent.selector);
    let changed = queue.clone();
    manager.spawn(watch::follow_into(
        api,
        config,
        manager.shutdown(),
        Arc::clone(&published),
        |object| {
            let text = |pointer: &str| {
                let found = object.data.pointer(pointer).and_then(Value::as_str);
                found.unwrap_or_default().to_owned()
            };
            (text("/spec/resource/apiGroup"), text("/spec/resource/kind"))
        },
        move |key| changed.add(key.name),
    ));
    let api: Api<DynamicObject> = Api::all_with(agent.service.clone(), &definition());
    let (changed, known) = (queue.clone(), Arc::clone(&published));
    let seen = Arc::clone(&definitions);
    manager.spawn(watch::follow_into(
        api,
        watcher::Config::default(),
        manager.shutdown(),
        Arc::clone(&definitions),
        |object| {
            let text = |pointer: &str| {
                let found = object.data.pointer(pointer).and_then(Value::as_str);
                found.unwrap_or_default().to_owned()
            };
            Defined {
                group: text("/spec/group"),
                kind: text("/spec/names/kind"),
            }
        },
        move |key| {
            let defined = seen.get(&key);
            for (name, source) in known.all() {
                let concerned = match &defined {
                    Some(it) => {
                        (it.group.as_str(), it.kind.as_str()) == (source.0.as_str(), source.1.as_str())
                    }
                    // It is gone, and only its name is known.
                    None => key.name.ends_with(&format!(".{}", source.0)),
                };
                if concerned {
                    changed.add(name.name.clone());
                }
            }
        },
    ));
    let reconciler = Publishing {
        service: Requests::new(agent.service.clone()),
        provider: Requests::new(agent.provider.clone()),
        agent: agent.name.clone(),
        catalog: catalog.clone(),
        definitions,
        published,
    };
    let controller = Controller::new("syncagent-publications", queue.clone(), reconciler);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

impl Reconcile<String> for Publishing {
    async fn reconcile(&self, name: &String) -> Result<Outcome, Failure> {
        if !self.published.is_synced() || !self.definitions.is_synced() {
            return Ok(Outcome::Again(crate::UNTIL_SYNCED));
        }
        let path = format!("{PUBLISHED}/{name}");
        let chosen = self.published.all().iter().any(|(key, _)| key.name == *name);
        let object = if chosen {
            self.service.get(&path).await?
        } else {
            None
        };
        let Some(object) = object.filter(|it| it.pointer("/metadata/deletionTimestamp").is_none()) else {
            self.catalog.remove(name);
            self.catalog.forget(name);
            return Ok(Outcome::Done);
        };
        let published = PublishedResource::read(&object);
        let outcome = self.publish(&object, published).await;
        let (schema, next) = match outcome {
            Ok(publication) => {
                let schema = publication.schema.clone();
                let next = if publication.followed {
                    Outcome::Done
                } else {
                    Outcome::Again(LOOK_AGAIN)
                };
                self.catalog.say(name, VALID, Word::Holds);
                self.catalog.say(name, SCHEMA, Word::Holds);
                self.catalog.put(publication);
                (Some(schema), next)
            }
            Err(Obstacle::Unknown(word)) => {
                // What was published goes on: a server that does not answer has not said that anything is gone.
                self.catalog.say(name, SCHEMA, word);
                (None, Outcome::Poll)
            }
            Err(Obstacle::Wrong(about, word)) => {
                self.catalog.say(name, about, word);
                self.catalog.remove(name);
                (None, Outcome::Again(LOOK_AGAIN))
            }
        };
        self.tell(&path, &object, schema).await?;
        Ok(next)
    }
}

/// What stands in the way of a publication.
enum Obstacle {
    /// It cannot be known, or done, right now.
    Unknown(Word),
    /// It is known to be wrong, and where.
    Wrong(&'static str, Word),
}

impl Obstacle {
    fn unknown(reason: &'static str) -> impl Fn(Failure) -> Self {
        move |failure| Self::Unknown(Word::error(reason, failure.sentence()))
    }

    fn schema(reason: &'static str) -> impl Fn(String) -> Self {
        move |error| Self::Wrong(SCHEMA, Word::error(reason, error))
    }
}

impl Publishing {
    /// Makes the schema.
    async fn publish(&self, object: &Value, published: PublishedResource) -> Result<Publication, Obstacle> {
        if let Some(objection) = published.objection() {
            let word = Word::error(objection.reason, objection.message);
            return Err(Obstacle::Wrong(VALID, word));
        }
        let invalid = |error: String| Obstacle::Wrong(VALID, Word::error("InvalidMutation", error));
        let mutator = Mutator::compile(&published.mutation).map_err(invalid)?;
        let related = published.related.iter().map(|it| Mutator::compile(&it.mutation));
        let related_mutators = related.collect::<Result<Vec<_>, _>>().map_err(invalid)?;
        self.catalog.say(&published.meta.name, VALID, Word::Holds);
        let (definition, followed) = self.definition(&published).await?;
        let projected = Obstacle::schema("InvalidProjection");
        let schema = published.schema(&definition, &self.agent).map_err(&projected)?;
        let local = Served::of(&definition).map_err(&projected)?;
        let outer = published.project(&definition).map_err(&projected)?;
        let remote = Served::of(&outer).map_err(&projected)?;
        let name = schema
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let existing = self.provider.get(&format!("{SCHEMAS}/{name}")).await;
        if existing.map_err(Obstacle::unknown("SchemaUnknown"))?.is_none() {
            self.provider
                .create(SCHEMAS, &schema)
                .await
                .map_err(Obstacle::unknown("SchemaRefused"))?;
        }
        let fingerprint = format!("{name} {local:?} {}", PublishedResource::fingerprint(object));
        Ok(Publication {
            published,
            schema: name,
            local,
            remote,
            mutator,
            related_mutators,
            fingerprint,
            followed,
        })
    }

    /// The definition of what is published, and whether it is one that the agent is told about when it changes.
    async fn definition(&self, published: &PublishedResource) -> Result<(Value, bool), Obstacle> {
        let (group, kind) = published.source();
        let known = self.definitions.all();
        let unknown = Obstacle::unknown("CRDUnknown");
        if let Some((key, _)) = known.iter().find(|(_, it)| it.group == group && it.kind == kind) {
            let read = self.service.get(&format!("{DEFINITIONS}/{}", key.name)).await;
            if let Some(definition) = read.map_err(&unknown)? {
                return Ok((definition, true));
            }
        }
        let missing = || {
            let message = format!(
                "the service cluster has no kind {kind:?} in group {group:?}: create its CustomResourceDefinition, or \
                 correct spec.resource"
            );
            Obstacle::Wrong(SCHEMA, Word::error("CRDNotFound", message))
        };
        let version = self
            .version(published)
            .await
            .map_err(&unknown)?
            .ok_or_else(missing)?;
        let below = if group.is_empty() {
            format!("api/{version}")
        } else {
            format!("apis/{group}/{version}")
        };
        let resources = self.service.get(&format!("/{below}")).await.map_err(&unknown)?;
        let resources = resources.ok_or_else(missing)?;
        let list = resources.get("resources").and_then(Value::as_array);
        if !list.into_iter().flatten().any(|it| it["kind"] == kind) {
            return Err(missing());
        }
        let document = self.service.get(&format!("/openapi/v3/{below}")).await;
        let document = document.map_err(&unknown)?.unwrap_or_default();
        let made = definition_of(group, &version, kind, &resources, &document);
        made.map(|it| (it, false))
            .map_err(Obstacle::schema("InvalidProjection"))
    }

    /// The version of a kind without a definition: the one that is asked for, or that the server prefers.
    async fn version(&self, published: &PublishedResource) -> Result<Option<String>, Failure> {
        if let [first, ..] = published.source_versions().as_slice() {
            return Ok(Some((*first).to_owned()));
        }
        let group = published.source().0;
        if group.is_empty() {
            return Ok(Some("v1".to_owned()));
        }
        let group = self
            .service
            .get(&format!("/apis/{group}"))
            .await?
            .unwrap_or_default();
        let preferred = group.pointer("/preferredVersion/version").and_then(Value::as_str);
        Ok(preferred.map(str::to_owned))
    }

    /// Writes what is known into the status.
    async fn tell(&self, path: &str, object: &Value, schema: Option<String>) -> Result<(), Failure> {
        let name = object
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let mut conditions = Conditions::read(object);
        let before = conditions.clone();
        self.catalog.write(name, &mut conditions, &now());
        let known = object
            .pointer("/status/resourceSchemaName")
            .and_then(Value::as_str);
        let mut status = json!({});
        if conditions != before {
            status["conditions"] = conditions.to_value();
        }
        if let Some(schema) = schema.filter(|it| known != Some(it)) {
            status["resourceSchemaName"] = json!(schema);
        }
        if status != json!({}) {
            let patch = json!({"metadata": {"resourceVersion": version(object)}, "status": status});
            let written = self.service.merge(&format!("{path}/status"), &patch).await;
            if let Err(Failure::Api { source, .. }) = &written
                && status_is_unknown(source)
            {
                // A definition without a status: what there is to say is in the log.
                tracing::warn!(name, "the status of a PublishedResource cannot be written");
                return Ok(());
            }
            written?;
        }
        Ok(())
    }
}

fn status_is_unknown(error: &kube::Error) -> bool {
    status(error).is_some_and(|it| it.code == 405)
}

fn published_resource() -> ApiResource {
    ApiResource {
        group: "syncagent.kcp.io".to_owned(),
        version: "v1alpha1".to_owned(),
        api_version: "syncagent.kcp.io/v1alpha1".to_owned(),
        kind: "PublishedResource".to_owned(),
        plural: "publishedresources".to_owned(),
    }
}

fn definition() -> ApiResource {
    ApiResource {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
    }
}
