//! Requests in one workspace, with objects as they come: the decisions read JSON.

use fairway_controller::error::{is_already_exists, is_not_found};
use fairway_controller::{Attempt as _, Failure};
use http::Request;
use kube::{Client, Error};
use serde_json::{Map, Value, json};

pub(super) const WORKSPACES: &str = "/apis/tenancy.kcp.io/v1alpha1/workspaces";
pub(super) const TYPES: &str = "/apis/tenancy.kcp.io/v1alpha1/workspacetypes";
pub(super) const CLUSTERS: &str = "/apis/core.kcp.io/v1alpha1/logicalclusters";
pub(super) const CLUSTER: &str = "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster";
pub(super) const BINDINGS: &str = "/apis/apis.kcp.io/v1alpha2/apibindings";
pub(super) const EXPORTS: &str = "/apis/apis.kcp.io/v1alpha2/apiexports";
pub(super) const SLICES: &str = "/apis/apis.kcp.io/v1alpha1/apiexportendpointslices";
pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The API of a workspace.
pub(super) struct Requests(Client);

impl Requests {
    pub(super) fn new(client: Client) -> Self {
        Self(client)
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        content: &str,
        body: Option<&Value>,
    ) -> Result<Value, Error> {
        let body = body.map(|it| it.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder().method(method).uri(path);
        let request = request
            .header("content-type", content)
            .body(body)
            .map_err(Error::HttpError)?;
        self.0.request(request).await
    }

    /// An object, if it exists.
    pub(super) async fn get(&self, path: &str) -> Result<Option<Value>, Failure> {
        found(self.send("GET", path, JSON, None).await).attempting(format!("read {path}"))
    }

    /// Every object of a collection.
    pub(super) async fn list(&self, path: &str) -> Result<Vec<Value>, Failure> {
        let mut list = self
            .send("GET", path, JSON, None)
            .await
            .attempting(format!("list {path}"))?;
        match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// Creates an object; false if there is one of that name.
    pub(super) async fn create(&self, path: &str, object: &Value) -> Result<bool, Failure> {
        match self.send("POST", path, JSON, Some(object)).await {
            Ok(_) => Ok(true),
            Err(error) if is_already_exists(&error) => Ok(false),
            Err(error) => Err(error).attempting(format!("create in {path}")),
        }
    }

    /// Changes an object by a merge patch; nothing if it is gone.
    pub(super) async fn merge(&self, path: &str, patch: &Value) -> Result<Option<Value>, Failure> {
        found(self.send("PATCH", path, MERGE_PATCH, Some(patch)).await).attempting(format!("change {path}"))
    }

    /// Changes an object by the steps of a JSON patch; nothing if it is gone.
    async fn steps(&self, path: &str, steps: &Value) -> Result<Option<Value>, Failure> {
        found(self.send("PATCH", path, JSON_PATCH, Some(steps)).await).attempting(format!("change {path}"))
    }

    /// Replaces the status of the object that was read; nothing if it is gone.
    pub(super) async fn replace_status(
        &self,
        path: &str,
        read: &Value,
        status: &Value,
    ) -> Result<Option<Value>, Failure> {
        let steps = json!([
            {"op": "add", "path": "/metadata/resourceVersion", "value": version(read)},
            {"op": "add", "path": "/status", "value": status},
        ]);
        self.steps(&format!("{path}/status"), &steps).await
    }

    /// Deletes an object that may be gone already.
    pub(super) async fn delete(&self, path: &str) -> Result<(), Failure> {
        found(self.send("DELETE", path, JSON, Some(&json!({}))).await)
            .attempting(format!("delete {path}"))
            .map(drop)
    }
}

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

fn found(answer: Result<Value, Error>) -> Result<Option<Value>, Error> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The version of an object that was read. A patch that carries it fails if the object has changed since.
pub(super) fn version(object: &Value) -> Value {
    object
        .pointer("/metadata/resourceVersion")
        .cloned()
        .unwrap_or(Value::Null)
}

/// The merge patch from one map of texts to the other.
pub(super) fn difference(
    old: &std::collections::BTreeMap<String, String>,
    new: &std::collections::BTreeMap<String, String>,
) -> Value {
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new.iter().filter(|(key, value)| old.get(*key) != Some(value)) {
        patch.insert(key.clone(), json!(value));
    }
    Value::Object(patch)
}
