//! Objects of a realm's workspace, as the provider reads and writes them.

use fairway_api::Kind;
use fairway_controller::requests::version;
use fairway_controller::{Clients, Failure, Requests, WorkspaceId};
use serde_json::{Value, json};

/// The way to them, with the rights of one user.
#[derive(Clone, Debug)]
pub(crate) struct Objects(Clients);

fn collection(kind: Kind) -> String {
    format!("/apis/{}/{}", kind.api_version(), kind.plural)
}

fn path(kind: Kind, name: &str) -> String {
    format!("{}/{name}", collection(kind))
}

impl Objects {
    pub(crate) fn new(clients: Clients) -> Self {
        Self(clients)
    }

    pub(crate) fn requests(&self, cluster: &str) -> Result<Requests, Failure> {
        let workspace = WorkspaceId::parse(cluster)
            .map_err(|error| Failure::NotYet(format!("{cluster} is no workspace: {error}")))?;
        Ok(Requests::new(self.0.of(&workspace)))
    }

    pub(crate) async fn get(&self, cluster: &str, kind: Kind, name: &str) -> Result<Option<Value>, Failure> {
        self.requests(cluster)?.get(&path(kind, name)).await
    }

    pub(crate) async fn list(&self, cluster: &str, kind: Kind) -> Result<Vec<Value>, Failure> {
        self.requests(cluster)?.list(&collection(kind)).await
    }

    /// False if there is one of that name.
    pub(crate) async fn create(
        &self,
        cluster: &str,
        kind: Kind,
        name: &str,
        spec: &Value,
    ) -> Result<bool, Failure> {
        let object = json!({
            "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": name}, "spec": spec,
        });
        self.requests(cluster)?.create(&collection(kind), &object).await
    }

    /// Changes the object that was read; false if somebody else has changed or removed it since.
    pub(crate) async fn change(
        &self,
        cluster: &str,
        kind: Kind,
        read: &Value,
        spec: &Value,
    ) -> Result<bool, Failure> {
        let name = read
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let patch = json!({"metadata": {"resourceVersion": version(read)}, "spec": spec});
        self.patch(cluster, kind, name, &patch).await
    }

    /// Changes an object by a merge patch that says which version it is of; false if somebody else has changed or removed it since.
    pub(crate) async fn patch(
        &self,
        cluster: &str,
        kind: Kind,
        name: &str,
        patch: &Value,
    ) -> Result<bool, Failure> {
        match self.requests(cluster)?.merge(&path(kind, name), patch).await {
            Ok(found) => Ok(found.is_some()),
            Err(failure) if failure.is_conflict() => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Notes something in the status, whatever it was.
    pub(crate) async fn note(
        &self,
        cluster: &str,
        kind: Kind,
        name: &str,
        status: &Value,
    ) -> Result<(), Failure> {
        let patch = json!({"status": status});
        let path = format!("{}/status", path(kind, name));
        self.requests(cluster)?.merge(&path, &patch).await.map(drop)
    }

    pub(crate) async fn delete(&self, cluster: &str, kind: Kind, name: &str) -> Result<(), Failure> {
        self.requests(cluster)?.delete(&path(kind, name)).await
    }
}
