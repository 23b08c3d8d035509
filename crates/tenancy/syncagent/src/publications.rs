//! PublishedResources: each becomes an APIResourceSchema in the provider's workspace, and says how it fares.
//!
//! A schema is never changed and never deleted: another state of the definition has another name, and objects of consumers
//! may depend on an old one.

use std::sync::Arc;

use fairway_controller::cache::Cache;
use fairway_controller::error::status;
use fairway_controller::{
    Controller, Failure, Manager, Outcome, Queue, Reach, Reconcile, WorkspaceId, watch,
};
use fairway_kernel_tenancy::conditions::Conditions;
use fairway_kernel_tenancy::mutation::Mutator;
use fairway_kernel_tenancy::published::{PublishedResource, Served};
use kube::api::{Api, DynamicObject};
use kube::core::ApiResource;
use kube::runtime::watcher;
use serde_json::{Value, json};

use crate::catalog::{Catalog, Publication, SCHEMA, VALID, Word};
use crate::json::{Json, version};
use crate::{Agent, now};

pub(crate) const PUBLISHED: &str = "/apis/syncagent.kcp.io/v1alpha1/publishedresources";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SCHEMAS: &str = "/apis/apis.kcp.io/v1alpha1/apiresourceschemas";

/// Group and kind of a definition that is there.
#[derive(Debug, PartialEq, Eq)]
struct Defined {
    group: String,
    kind: String,
}

struct Publishing {
    service: Json,
    provider: Json,
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
        service: Json::new(agent.service.clone()),
        provider: Json::new(agent.provider.clone()),
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
        let schema = match &outcome {
            Ok(publication) => Some(publication.schema.clone()),
            Err((about, word)) => {
                self.catalog.say(name, about, word.clone());
                self.catalog.remove(name);
                None
            }
        };
        if let Ok(publication) = outcome {
            self.catalog.say(name, VALID, Word::Holds);
            self.catalog.say(name, SCHEMA, Word::Holds);
            self.catalog.put(publication);
        }
        self.tell(&path, &object, schema).await
    }
}

impl Publishing {
    /// Makes the schema. Whatever stands in the way is a word about the publication: it is tried again when something
    /// that it depends on changes.
    async fn publish(
        &self,
        object: &Value,
        published: PublishedResource,
    ) -> Result<Publication, (&'static str, Word)> {
        if let Some(objection) = published.objection() {
            return Err((VALID, Word::error(objection.reason, objection.message)));
        }
        let invalid = |error: String| (VALID, Word::error("InvalidMutation", error));
        let mutator = Mutator::compile(&published.mutation).map_err(invalid)?;
        let related = published.related.iter().map(|it| Mutator::compile(&it.mutation));
        let related_mutators = related.collect::<Result<Vec<_>, _>>().map_err(invalid)?;
        self.catalog.say(&published.meta.name, VALID, Word::Holds);
        let failed =
            |reason: &'static str| move |failure: Failure| (SCHEMA, Word::error(reason, failure.sentence()));
        let definition = self.definition(&published).await?;
        let projected = |error: String| (SCHEMA, Word::error("InvalidProjection", error));
        let schema = published.schema(&definition, &self.agent).map_err(projected)?;
        let local = Served::of(&definition).map_err(projected)?;
        let outer = published.project(&definition).map_err(projected)?;
        let remote = Served::of(&outer).map_err(projected)?;
        let name = schema
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let existing = self.provider.get(&format!("{SCHEMAS}/{name}")).await;
        if existing.map_err(failed("SchemaUnknown"))?.is_none() {
            self.provider
                .create(SCHEMAS, &schema)
                .await
                .map_err(failed("SchemaRefused"))?;
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
        })
    }

    async fn definition(&self, published: &PublishedResource) -> Result<Value, (&'static str, Word)> {
        let (group, kind) = published.source();
        let known = self.definitions.all();
        let found = known.iter().find(|(_, it)| it.group == group && it.kind == kind);
        let missing = || {
            let message = format!(
                "the service cluster has no CustomResourceDefinition of kind {kind:?} in group {group:?}: create it, or \
                 correct spec.resource"
            );
            (SCHEMA, Word::error("CRDNotFound", message))
        };
        let (key, _) = found.ok_or_else(missing)?;
        let read = self.service.get(&format!("{DEFINITIONS}/{}", key.name)).await;
        let read = read.map_err(|failure| (SCHEMA, Word::error("CRDUnknown", failure.sentence())))?;
        read.ok_or_else(missing)
    }

    /// Writes what is known into the status.
    async fn tell(&self, path: &str, object: &Value, schema: Option<String>) -> Result<Outcome, Failure> {
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
                return Ok(Outcome::Done);
            }
            written?;
        }
        Ok(Outcome::Done)
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
