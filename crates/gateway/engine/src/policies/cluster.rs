//! What guards ask of the API: Secrets, and whose a token is.

use fairway_controller::{Clients, Requests, WorkspaceId};
use fairway_gateway_gatekeeper::{Cluster, Review};
use fairway_gateway_policy::auth::SecretRef;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};

/// The API, in the name of policies.
pub(super) struct Api(Clients);

impl Api {
    pub(super) fn new(clients: Clients) -> Self {
        Self(clients)
    }

    /// Requests in a workspace. What a policy says leads to its own workspace alone.
    fn of(&self, workspace: &str) -> Result<Requests, String> {
        let workspace = WorkspaceId::parse(workspace).map_err(|error| error.to_string())?;
        Ok(Requests::new(self.0.of(&workspace)))
    }
}

impl Cluster for Api {
    fn secret(&self, secret: SecretRef) -> BoxFuture<'static, Result<Value, String>> {
        let requests = self.of(&secret.workspace);
        async move {
            if !is_name(&secret.namespace) || !is_name(&secret.name) {
                return Err(format!("{:?} is not the name of a Secret", secret.name));
            }
            let path = format!("/api/v1/namespaces/{}/secrets/{}", secret.namespace, secret.name);
            let found = requests?.get(&path).await.map_err(|error| error.to_string())?;
            let found =
                found.ok_or_else(|| format!("Secret {}/{} not found", secret.namespace, secret.name))?;
            Ok(found["data"].clone())
        }
        .boxed()
    }

    fn review(&self, review: Review) -> BoxFuture<'static, Result<Value, String>> {
        let requests = self.of(&review.workspace);
        async move {
            let plural = format!("{}s", review.kind.to_lowercase());
            let path = format!("/apis/{}/{plural}", review.api_version);
            let object = json!({"apiVersion": review.api_version, "kind": review.kind, "spec": review.spec});
            let answer = requests?.post(&path, &object).await;
            Ok(answer.map_err(|error| error.to_string())?["status"].clone())
        }
        .boxed()
    }
}

/// Whether a text that somebody wrote may stand in a path.
fn is_name(name: &str) -> bool {
    let sound = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    (1..=253).contains(&name.len()) && name.bytes().all(sound) && !name.contains("..")
}
