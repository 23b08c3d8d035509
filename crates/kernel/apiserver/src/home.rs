//! A user's own workspace: `GET …/workspaces/~` in the root workspace returns it, and makes it first if need be.
//!
//! It has no parent. Its id follows from the user's name, and its path is `user:<name>` where the name can be part of a path.
//! Who may have one is for the roles of the root workspace to say: `get` and `create` on `workspaces` of the name `~`.

use std::sync::Arc;
use std::time::Duration;

use fairway_kernel_authz::{PRIVILEGED_GROUP, UserInfo};
use fairway_kernel_tenancy::names::{CORE, LOGICAL_CLUSTER, TENANCY, annotation, finalizer};
use fairway_kernel_tenancy::types::{Resolved, TypeReference, resolve};
use fairway_kernel_tenancy::{ClusterId, WorkspacePath};
use http::Method;
use serde_json::{Value, json};

use crate::admission::tenancy::workspace_type;
use crate::authorize;
use crate::bootstrap;
use crate::client::InProcess;
use crate::http::respond;
use crate::kernel::Kernel;
use crate::key::ROOT_CLUSTER;
use crate::rest::call::{Answer, Call};
use crate::status::ApiError;

/// The name that stands for the user's own.
const HOME: &str = "~";
/// How long a request waits for a new one to be ready, before the client is asked to come again.
const PATIENCE: Duration = Duration::from_secs(5);
const INTERVAL: Duration = Duration::from_millis(20);

/// Whether a request asks for the user's own workspace.
pub(crate) fn is_asked_for(call: &Call<'_>, verb: &str) -> bool {
    call.cluster == ROOT_CLUSTER
        && verb == "get"
        && call.path.name == HOME
        && call.def.is(TENANCY, "workspaces")
}

/// Answers with it.
pub(crate) async fn answer(call: &Call<'_>) -> Answer {
    let (kernel, user) = (call.kernel, call.user);
    let refuse = |why: &str| Err(ApiError::forbidden(call.about(HOME), why));
    if user.name.is_empty() || user.name.starts_with("system:") {
        return refuse("only users have a home workspace");
    }
    let id = ClusterId::home_of(&user.name);
    if (kernel.storage.cache)
        .built_in_value(CORE, "logicalclusters", id.as_str(), "", LOGICAL_CLUSTER)
        .is_none()
    {
        authorize::require(call, "create")?;
        make(kernel, user, &id).await?;
    }
    let begun = tokio::time::Instant::now();
    loop {
        let cluster = (kernel.storage.cache)
            .built_in_value(CORE, "logicalclusters", id.as_str(), "", LOGICAL_CLUSTER)
            .unwrap_or(Value::Null);
        // Ids are hashes: somebody else's may be the same.
        if !cluster.is_null() && cluster["spec"]["createdBy"]["username"] != *user.name {
            return refuse("the home workspace of that id is somebody else's");
        }
        if cluster["status"]["phase"] == "Ready" {
            let workspace = workspace(&id, &cluster);
            return Ok(respond::value(200, call.accept.format, &workspace));
        }
        if begun.elapsed() > PATIENCE {
            return Err(ApiError::too_many_requests("Creating the home workspace", 1));
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

fn workspace(id: &ClusterId, cluster: &Value) -> Value {
    let mut status = cluster["status"].clone();
    if let Some(status) = status.as_object_mut() {
        status.shift_remove("URL");
    }
    json!({
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "Workspace",
        "metadata": {
            "name": LOGICAL_CLUSTER,
            "creationTimestamp": cluster["metadata"]["creationTimestamp"],
        },
        "spec": {
            "cluster": id.as_str(),
            "URL": cluster["status"]["URL"],
            "type": {"name": "home", "path": "root"},
        },
        "status": status,
    })
}

/// Makes the LogicalCluster; the controllers do the rest.
async fn make(kernel: &Arc<Kernel>, user: &UserInfo, id: &ClusterId) -> Result<(), ApiError> {
    let reference = TypeReference {
        name: "home".to_owned(),
        path: "root".to_owned(),
    };
    let lookup = |path: &WorkspacePath, name: &str| workspace_type(kernel, path, name);
    let kind = resolve(&WorkspacePath::root(), &reference, &lookup)
        .and_then(|kind| Resolved::of(&kind, &lookup))
        .map_err(|error| ApiError::internal(format!("home workspaces have no usable type: {error}")))?;
    let own = format!("user:{}", user.name);
    let path = WorkspacePath::parse(&own).map_or_else(|_| id.to_string(), |_| own);
    let owner = json!({"username": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra});
    let mut spec = json!({"createdBy": owner, "initializers": kind.initializers()});
    if !kind.terminators().is_empty() {
        spec["terminators"] = json!(kind.terminators());
    }
    let object = json!({
        "apiVersion": "core.kcp.io/v1alpha1",
        "kind": "LogicalCluster",
        "metadata": {
            "name": LOGICAL_CLUSTER,
            "annotations": {annotation::TYPE: "root:home", annotation::PATH: path, annotation::OWNER: owner.to_string()},
            "finalizers": [finalizer::LOGICAL_CLUSTER_CONTENT],
        },
        "spec": spec,
    });
    let system = UserInfo::new("system:fairway:home-workspaces", [PRIVILEGED_GROUP]);
    let client = InProcess::new(Arc::clone(kernel), system);
    let path = format!("/clusters/{id}/apis/{CORE}/v1alpha1/logicalclusters");
    bootstrap::send(&client, Method::POST, path, &object)
        .await
        .map_err(|error| ApiError::internal(format!("the home workspace could not be made: {error}")))
}
