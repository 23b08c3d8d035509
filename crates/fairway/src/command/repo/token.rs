//! A token for one repository: of a service account that may read and push it, and nothing else.

use anyhow::Context;
use fairway_api::fairway::REPOSITORY;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::json;

const NAMESPACE: &str = "default";
const MANAGER: &str = "fairway-repo";

/// Makes what is missing of it, and a token. All of it goes with the repository, so that no token opens the next one of that name.
pub(super) async fn issue(client: &Client, repository: &DynamicObject, days: u32) -> anyhow::Result<String> {
    let repository_name = repository.metadata.name.as_deref().unwrap_or_default();
    let name = format!("fairway-git-{repository_name}");
    let owners = json!([{
        "apiVersion": REPOSITORY.api_version(), "kind": REPOSITORY.kind,
        "name": repository_name, "uid": repository.metadata.uid,
    }]);
    let metadata = json!({"name": name, "ownerReferences": owners});
    let attempt = || format!("the service account {NAMESPACE}/{name} could not be prepared");
    let apply = PatchParams::apply(MANAGER).force();
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let made = accounts.patch(&name, &apply, &Patch::Apply(account)).await;
    made.with_context(attempt)?;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata,
        "rules": [{"apiGroups": ["fairway.dev"], "resources": ["repositories"], "resourceNames": [repository_name],
                   "verbs": ["get", "update"]}],
    });
    let roles: Api<ClusterRole> = Api::all(client.clone());
    roles
        .patch(&name, &apply, &Patch::Apply(role))
        .await
        .with_context(attempt)?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
    });
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    bindings
        .patch(&name, &apply, &Patch::Apply(binding))
        .await
        .with_context(attempt)?;
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            expiration_seconds: Some(i64::from(days.max(1)) * 86_400),
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let issued = accounts
        .create_token_request(&name, &PostParams::default(), &request)
        .await;
    let issued = issued.with_context(|| format!("no token could be had for {NAMESPACE}/{name}"))?;
    issued
        .status
        .and_then(|status| status.token)
        .context("the server gave no token")
}
