//! Requests with objects as they come, for controllers whose decisions read JSON.

use http::Request;
use kube::{Client, Error};
use serde_json::{Value, json};

use crate::error::{Attempt as _, Failure, is_already_exists, is_not_found, status};

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// The API of one place: a workspace, or a cluster.
#[derive(Clone)]
pub struct Requests(Client);

/// What a read found.
pub enum Read {
    /// The object.
    Found(Value),
    /// There is no such object, but there could be.
    Absent,
    /// The kind is not served, the place does not exist, or it is not for us to know.
    Unknown(Error),
}

impl Requests {
    /// Requests that this client sends.
    pub fn new(client: Client) -> Self {
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
    pub async fn get(&self, path: &str) -> Result<Option<Value>, Failure> {
        found(self.send("GET", path, JSON, None).await).attempting(format!("read {path}"))
    }

    /// An object; what is absent is told from what cannot be known.
    pub async fn read(&self, path: &str, name: &str) -> Result<Read, Failure> {
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

    /// Every object of a collection.
    pub async fn list(&self, path: &str) -> Result<Vec<Value>, Failure> {
        self.items(path, path).await
    }

    /// The objects of a collection that a label selector picks.
    pub async fn list_selected(&self, path: &str, selector: &str) -> Result<Vec<Value>, Failure> {
        let query: String = form_urlencoded::Serializer::new(String::new())
            .append_pair("labelSelector", selector)
            .finish();
        self.items(path, &format!("{path}?{query}")).await
    }

    async fn items(&self, path: &str, address: &str) -> Result<Vec<Value>, Failure> {
        let list = self.send("GET", address, JSON, None).await;
        let mut list = list.attempting(format!("list {path}"))?;
        match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// Creates an object; false if there is one of that name.
    pub async fn create(&self, path: &str, object: &Value) -> Result<bool, Failure> {
        match self.send("POST", path, JSON, Some(object)).await {
            Ok(_) => Ok(true),
            Err(error) if is_already_exists(&error) => Ok(false),
            Err(error) => Err(error).attempting(format!("create in {path}")),
        }
    }

    /// Sends an object to where it is answered and not kept, such as a review or a request for a token; the answer.
    pub async fn post(&self, path: &str, object: &Value) -> Result<Value, Failure> {
        self.send("POST", path, JSON, Some(object))
            .await
            .attempting(format!("post to {path}"))
    }

    /// Changes an object by a merge patch; nothing if it is gone.
    pub async fn merge(&self, path: &str, patch: &Value) -> Result<Option<Value>, Failure> {
        found(self.send("PATCH", path, MERGE_PATCH, Some(patch)).await).attempting(format!("change {path}"))
    }

    /// Applies an object in a manager's name. Without force, fields that somebody else has set otherwise are a conflict.
    pub async fn apply(
        &self,
        path: &str,
        object: &Value,
        manager: &str,
        force: bool,
    ) -> Result<Value, Failure> {
        let address = format!("{path}?fieldManager={manager}&force={force}");
        self.send("PATCH", &address, APPLY_PATCH, Some(object))
            .await
            .attempting(format!("apply {path}"))
    }

    /// Replaces the status of the object that was read; nothing if it is gone.
    pub async fn replace_status(
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

    /// Deletes an object that may be gone already.
    pub async fn delete(&self, path: &str) -> Result<(), Failure> {
        self.delete_with(path, &json!({})).await
    }

    /// Deletes the object that was read; it may be gone, or another one, already.
    pub async fn delete_read(&self, path: &str, read: &Value) -> Result<(), Failure> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "preconditions": {"uid": read.pointer("/metadata/uid")},
        });
        self.delete_with(path, &options).await
    }

    /// Deletes the object that was read, unless it has changed since, which is a conflict. It may be gone already.
    pub async fn delete_version(&self, path: &str, read: &Value) -> Result<(), Failure> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "preconditions": {"uid": read.pointer("/metadata/uid"), "resourceVersion": version(read)},
        });
        self.delete_with(path, &options).await
    }

    async fn delete_with(&self, path: &str, options: &Value) -> Result<(), Failure> {
        found(self.send("DELETE", path, JSON, Some(options)).await)
            .attempting(format!("delete {path}"))
            .map(drop)
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
pub fn version(object: &Value) -> Value {
    object
        .pointer("/metadata/resourceVersion")
        .cloned()
        .unwrap_or(Value::Null)
}
