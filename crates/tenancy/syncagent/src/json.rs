//! Requests with objects as they come: the decisions read JSON.

use fairway_controller::error::{is_already_exists, is_not_found, status};
use fairway_controller::{Attempt as _, Failure};
use http::Request;
use kube::{Client, Error};
use serde_json::{Value, json};

/// In whose name fields are applied, on both sides.
pub(crate) const MANAGER: &str = "fairway-syncagent";

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// The API of one side: the service cluster, the provider's workspace, or a consumer's.
#[derive(Clone)]
pub(crate) struct Json(Client);

/// What a read found.
pub(crate) enum Read {
    /// The object.
    Found(Value),
    /// There is no such object, but there could be.
    Absent,
    /// The kind is not served, the place does not exist, or it is not for us to know.
    Unknown(Error),
}

impl Json {
    pub(crate) fn new(client: Client) -> Self {
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
        let request = request.header("content-type", content).body(body);
        self.0.request(request.map_err(Error::HttpError)?).await
    }

    /// An object, if it exists.
    pub(crate) async fn get(&self, path: &str) -> Result<Option<Value>, Failure> {
        found(self.send("GET", path, JSON, None).await).attempting(format!("read {path}"))
    }

    /// An object; what is absent is told from what cannot be known.
    pub(crate) async fn read(&self, path: &str, name: &str) -> Result<Read, Failure> {
        match self.send("GET", path, JSON, None).await {
            Ok(object) => Ok(Read::Found(object)),
            Err(error) => match status(&error) {
                // A server says of which object it speaks; a path that leads nowhere has none.
                Some(it) if it.code == 404 && it.details.as_ref().is_some_and(|d| d.name == name) => {
                    Ok(Read::Absent)
                }
                Some(it) if it.code == 404 || it.code == 403 => Ok(Read::Unknown(error)),
                _ => Err(error).attempting(format!("read {path}")),
            },
        }
    }

    /// The objects of a collection that a label selector picks.
    pub(crate) async fn list(&self, path: &str, selector: &str) -> Result<Vec<Value>, Failure> {
        let query: String = form_urlencoded::Serializer::new(String::new())
            .append_pair("labelSelector", selector)
            .finish();
        let address = format!("{path}?{query}");
        let mut list = self
            .send("GET", &address, JSON, None)
            .await
            .attempting(format!("list {path}"))?;
        match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// Creates an object; false if there is one of that name.
    pub(crate) async fn create(&self, path: &str, object: &Value) -> Result<bool, Failure> {
        match self.send("POST", path, JSON, Some(object)).await {
            Ok(_) => Ok(true),
            Err(error) if is_already_exists(&error) => Ok(false),
            Err(error) => Err(error).attempting(format!("create in {path}")),
        }
    }

    /// Changes an object by a merge patch; nothing if it is gone.
    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> Result<Option<Value>, Failure> {
        found(self.send("PATCH", path, MERGE_PATCH, Some(patch)).await).attempting(format!("change {path}"))
    }

    /// Applies an object. Without force, fields that somebody else has set otherwise are a conflict.
    pub(crate) async fn apply(&self, path: &str, object: &Value, force: bool) -> Result<Value, Failure> {
        let address = format!("{path}?fieldManager={MANAGER}&force={force}");
        self.send("PATCH", &address, APPLY_PATCH, Some(object))
            .await
            .attempting(format!("apply {path}"))
    }

    /// Replaces the status of the object that was read; nothing if it is gone.
    pub(crate) async fn replace_status(
        &self,
        path: &str,
        read: &Value,
        status: &Value,
    ) -> Result<Option<Value>, Failure> {
        let steps = json!([
            {"op": "add", "path": "/metadata/resourceVersion", "value": version(read)},
            {"op": "add", "path": "/status", "value": status},
        ]);
        let path = format!("{path}/status");
        found(self.send("PATCH", &path, JSON_PATCH, Some(&steps)).await).attempting(format!("change {path}"))
    }

    /// Deletes the object that was read; it may be gone, or another one, already.
    pub(crate) async fn delete(&self, path: &str, read: &Value) -> Result<(), Failure> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "preconditions": {"uid": read.pointer("/metadata/uid")},
        });
        match self.send("DELETE", path, JSON, Some(&options)).await {
            Err(error) if !is_not_found(&error) => Err(error).attempting(format!("delete {path}")),
            _ => Ok(()),
        }
    }
}

fn found(answer: Result<Value, Error>) -> Result<Option<Value>, Error> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The version of an object that was read. A patch that carries it fails if the object has changed since.
pub(crate) fn version(object: &Value) -> Value {
    object
        .pointer("/metadata/resourceVersion")
        .cloned()
        .unwrap_or(Value::Null)
}
