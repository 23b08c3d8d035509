//! Carries out what was decided: writes objects to a destination and deletes them there. Makes no choices.

use std::sync::Arc;
use std::time::Duration;

use fairway_controller::WorkspaceId;
use fairway_controller::commit::difference;
use fairway_controller::error::{is_already_exists, is_conflict, is_not_found, sentence, status};
use fairway_controller::kinds::{Kind, Kinds};
use fairway_gitops_sync::annotation::HOOK_FINALIZER;
use fairway_gitops_sync::diff;
use fairway_gitops_sync::key::{self, ResourceKey};
use fairway_gitops_sync::operation::{ApplyMode, Propagation};
use http::Request;
use kube::{Client, Error};
use serde_json::{Value, json};

use crate::cluster::Cluster;

/// The name under which fields are owned.
pub(crate) const FIELD_MANAGER: &str = "argocd-controller";
/// How often something that somebody else changes meanwhile is tried.
const TRIES: usize = 4;
/// How long an object that is to be made anew may take to go.
const GOING: Duration = Duration::from_secs(60);

/// The API of a destination, as the identity that syncs there.
#[derive(Clone)]
pub(crate) struct Hands {
    cluster: Arc<Cluster>,
    workspace: WorkspaceId,
    client: Client,
    /// Whom to act as; nobody else if empty.
    identity: String,
}

/// What was written.
pub(crate) struct Applied {
    /// A sentence for the result.
    pub(crate) message: String,
    /// The object as it is now.
    pub(crate) object: Value,
}

/// Why the API would not.
pub(crate) struct Refusal {
    pub(crate) message: String,
    /// The status of the answer; 0 if there was none.
    pub(crate) code: u16,
    /// Whether the object itself is wrong, and not what is around it.
    pub(crate) is_its_own_fault: bool,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let code = status(&error).map_or(0, |status| status.code);
        Self {
            message: sentence(&error),
            code,
            is_its_own_fault: code == 400 || code == 422,
        }
    }
}

impl Hands {
    pub(crate) fn new(cluster: &Arc<Cluster>, workspace: &WorkspaceId, identity: &str) -> Self {
        Self {
            cluster: Arc::clone(cluster),
            workspace: workspace.clone(),
            client: cluster.writers.of(workspace),
            identity: identity.to_owned(),
        }
    }

    async fn send(
        &self,
        method: &str,
        address: &str,
        content: &str,
        body: Option<&Value>,
    ) -> Result<Value, Error> {
        let body = body
            .map(|value| value.to_string().into_bytes())
            .unwrap_or_default();
        let mut request = Request::builder()
            .method(method)
            .uri(address)
            .header("content-type", content);
        if !self.identity.is_empty() {
            request = request.header("impersonate-user", &self.identity);
        }
        self.client
            .request(request.body(body).map_err(Error::HttpError)?)
            .await
    }

    /// An object, if it is there.
    pub(crate) async fn get(
        &self,
        kind: &Kind,
        api_version: &str,
        key: &ResourceKey,
    ) -> Result<Option<Value>, Error> {
        let path = object_path(kind, api_version, &key.namespace, &key.name);
        match self.send("GET", &path, JSON, None).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What would become of an object.
    pub(crate) async fn dry_run(
        &self,
        kind: &Kind,
        object: &Value,
        mode: ApplyMode,
    ) -> Result<Value, Refusal> {
        Ok(self.apply(kind, object, mode, true).await?.object)
    }

    /// What would become of an object that is deleted; nothing if the API does not say.
    pub(crate) async fn dry_run_delete(&self, kind: &Kind, key: &ResourceKey) -> Option<Value> {
        let path = object_path(kind, &kind.resource.api_version, &key.namespace, &key.name);
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]});
        self.send("DELETE", &path, JSON, Some(&options)).await.ok()
    }

    /// Writes an object.
    pub(crate) async fn apply(
        &self,
        kind: &Kind,
        object: &Value,
        mode: ApplyMode,
        dry_run: bool,
    ) -> Result<Applied, Refusal> {
        let (written, verb) = match mode {
            ApplyMode::Apply {
                server_side: true,
                validate,
                force,
            } => {
                self.apply_server_side(kind, object, validate, force, dry_run)
                    .await?
            }
            ApplyMode::Apply {
                server_side: false,
                validate,
                force,
            } => {
                self.apply_client_side(kind, object, validate, force, dry_run)
                    .await?
            }
            ApplyMode::Create { validate } => {
                (self.create(kind, object, validate, dry_run).await?, "created")
            }
            ApplyMode::Replace { force: true } if !dry_run => {
                (self.recreate(kind, object).await?, "replaced")
            }
            ApplyMode::Replace { .. } | ApplyMode::Update => {
                (self.put(kind, object, dry_run).await?, "replaced")
            }
        };
        if !dry_run {
            self.cluster.written(&self.workspace, &written);
        }
        let suffix = if dry_run { " (dry run)" } else { "" };
        Ok(Applied {
            message: format!("{} {verb}{suffix}", shown(object)),
            object: written,
        })
    }

    async fn apply_server_side(
        &self,
        kind: &Kind,
        object: &Value,
        validate: bool,
        force: bool,
        dry_run: bool,
    ) -> Result<(Value, &'static str), Refusal> {
        let path = path(kind, object);
        let query = format!("{}&force=true", query(validate, dry_run));
        let sent = self
            .send("PATCH", &format!("{path}?{query}"), APPLY, Some(object))
            .await;
        match sent {
            Ok(written) => Ok((written, "serverside-applied")),
            Err(error) if force && !dry_run && cannot_change(&error) => {
                Ok((self.recreate(kind, object).await?, "replaced"))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn apply_client_side(
        &self,
        kind: &Kind,
        object: &Value,
        validate: bool,
        force: bool,
        dry_run: bool,
    ) -> Result<(Value, &'static str), Refusal> {
        let (api_version, key) = (api_version(object), ResourceKey::of(object));
        let mut live = self.get(kind, api_version, &key).await?;
        for _ in 0..TRIES {
            let Some(there) = live else {
                match self
                    .create(kind, &diff::applied(object, None), validate, dry_run)
                    .await
                {
                    Ok(written) => return Ok((written, "created")),
                    Err(error) if is_already_exists(&error) => {
                        live = self.get(kind, api_version, &key).await?;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                }
            };
            let wanted = diff::applied(object, Some(&there));
            let Some(mut patch) = difference(&there, &wanted) else {
                return Ok((there, "unchanged"));
            };
            patch["metadata"]["resourceVersion"] = there["metadata"]["resourceVersion"].clone();
            let address = format!("{}?{}", path(kind, object), query(validate, dry_run));
            match self.send("PATCH", &address, MERGE, Some(&patch)).await {
                Ok(written) => return Ok((written, "configured")),
                Err(error) if is_conflict(&error) || is_not_found(&error) => {
                    live = self.get(kind, api_version, &key).await?;
                }
                Err(error) if force && !dry_run && cannot_change(&error) => {
                    return Ok((self.recreate(kind, object).await?, "replaced"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Refusal {
            code: 0,
            message: format!("{} is changed by somebody else all the time", shown(object)),
            is_its_own_fault: false,
        })
    }

    async fn create(
        &self,
        kind: &Kind,
        object: &Value,
        validate: bool,
        dry_run: bool,
    ) -> Result<Value, Error> {
        let collection = collection_path(kind, api_version(object), key::namespace(object));
        let address = format!("{collection}?{}", query(validate, dry_run));
        self.send("POST", &address, JSON, Some(object)).await
    }

    async fn put(&self, kind: &Kind, object: &Value, dry_run: bool) -> Result<Value, Refusal> {
        let key = ResourceKey::of(object);
        let mut object = object.clone();
        if let Some(live) = self.get(kind, api_version(&object), &key).await? {
            object["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
        }
        let address = format!("{}?{}", path(kind, &object), query(true, dry_run));
        Ok(self.send("PUT", &address, JSON, Some(&object)).await?)
    }

    /// Deletes an object, waits until it is gone, and makes it again.
    async fn recreate(&self, kind: &Kind, object: &Value) -> Result<Value, Refusal> {
        let key = ResourceKey::of(object);
        self.delete(kind, &key, Propagation::Background, None).await?;
        let begun = tokio::time::Instant::now();
        while self.get(kind, api_version(object), &key).await?.is_some() {
            if begun.elapsed() > GOING {
                return Err(Refusal {
                    code: 0,
                    message: format!("{} does not go, so it cannot be made again", shown(object)),
                    is_its_own_fault: false,
                });
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(self
            .create(kind, &diff::applied(object, None), true, false)
            .await?)
    }

    /// Deletes an object that may be gone already; only the one that was seen, if a UID is given. What is left of it, if it
    /// does not go at once.
    pub(crate) async fn delete(
        &self,
        kind: &Kind,
        key: &ResourceKey,
        propagation: Propagation,
        uid: Option<&str>,
    ) -> Result<Option<Value>, Refusal> {
        let path = object_path(kind, &kind.resource.api_version, &key.namespace, &key.name);
        let mut options =
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation.as_str()});
        if let Some(uid) = uid {
            options["preconditions"] = json!({"uid": uid});
        }
        match self.send("DELETE", &path, JSON, Some(&options)).await {
            // Whoever has finalizers is answered as he is now; of others only that they are gone.
            Ok(answer) if !answer["metadata"]["deletionTimestamp"].is_null() && has_finalizers(&answer) => {
                self.cluster.written(&self.workspace, &answer);
                Ok(Some(answer))
            }
            Ok(_) => {
                self.cluster.removed(&self.workspace, key);
                Ok(None)
            }
            Err(error) if is_not_found(&error) || (uid.is_some() && is_conflict(&error)) => {
                self.cluster.removed(&self.workspace, key);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Lets go of a hook that is done; what is left of it.
    pub(crate) async fn release(&self, kind: &Kind, key: &ResourceKey) -> Result<Option<Value>, Refusal> {
        let api_version = kind.resource.api_version.as_str();
        loop {
            let Some(live) = self.get(kind, api_version, key).await? else {
                return Ok(None);
            };
            let held = live["metadata"]["finalizers"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let rest: Vec<Value> = held
                .iter()
                .filter(|name| *name != HOOK_FINALIZER)
                .cloned()
                .collect();
            if rest.len() == held.len() {
                return Ok(Some(live));
            }
            let version = &live["metadata"]["resourceVersion"];
            let patch = json!({"metadata": {"resourceVersion": version, "finalizers": rest}});
            let path = object_path(kind, api_version, &key.namespace, &key.name);
            let address = format!("{path}?fieldManager={FIELD_MANAGER}");
            match self.send("PATCH", &address, MERGE, Some(&patch)).await {
                Ok(written) => {
                    let gone =
                        !written["metadata"]["deletionTimestamp"].is_null() && !has_finalizers(&written);
                    if gone {
                        self.cluster.removed(&self.workspace, key);
                        return Ok(None);
                    }
                    self.cluster.written(&self.workspace, &written);
                    return Ok(Some(written));
                }
                Err(error) if is_not_found(&error) => return Ok(None),
                // Somebody was quicker, so that there is something new to look at.
                Err(error) if is_conflict(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"]
        .as_array()
        .is_some_and(|list| !list.is_empty())
}

/// Whether a change was refused because it is one that cannot be made.
fn cannot_change(error: &Error) -> bool {
    status(error).is_some_and(|status| status.code == 422) || is_conflict(error)
}

fn query(validate: bool, dry_run: bool) -> String {
    let validation = if validate { "Strict" } else { "Ignore" };
    let dry = if dry_run { "&dryRun=All" } else { "" };
    format!("fieldManager={FIELD_MANAGER}&fieldValidation={validation}{dry}")
}

fn api_version(object: &Value) -> &str {
    object["apiVersion"].as_str().unwrap_or_default()
}

/// An object in kubectl's words.
fn shown(object: &Value) -> String {
    let kind = key::kind(object).to_lowercase();
    match key::group(object) {
        "" => format!("{kind}/{}", key::name(object)),
        group => format!("{kind}.{group}/{}", key::name(object)),
    }
}

/// The path of a collection.
pub(crate) fn collection_path(kind: &Kind, api_version: &str, namespace: &str) -> String {
    let root = match api_version.contains('/') {
        true => format!("/apis/{api_version}"),
        false => format!("/api/{api_version}"),
    };
    match kind.namespaced && !namespace.is_empty() {
        true => format!("{root}/namespaces/{namespace}/{}", kind.resource.plural),
        false => format!("{root}/{}", kind.resource.plural),
    }
}

fn object_path(kind: &Kind, api_version: &str, namespace: &str, name: &str) -> String {
    // A name is the author's, and must not become another path.
    let name: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
    format!("{}/{name}", collection_path(kind, api_version, namespace))
}

fn path(kind: &Kind, object: &Value) -> String {
    object_path(
        kind,
        api_version(object),
        key::namespace(object),
        key::name(object),
    )
}

/// The kind of a key, in whatever version is preferred.
pub(crate) fn kind_of<'a>(kinds: &'a Kinds, key: &ResourceKey) -> Option<&'a Arc<Kind>> {
    kinds
        .iter()
        .find(|kind| kind.resource.group == key.group && kind.resource.kind == key.kind)
}
