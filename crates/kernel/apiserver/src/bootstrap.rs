//! What must exist before the first user comes: namespaces and default roles.
//!
//! It runs at every start. Missing objects are created; roles and bindings get the rules and subjects that they lack, and
//! keep what an administrator has added, unless their `autoupdate` annotation says false.

mod tenancy;

use std::sync::Arc;

use fairway_kernel_authz::bootstrap::{self, BootstrapObject, Reconciliation, reconcile};
use fairway_kernel_authz::{Kind, RBAC_GROUP, UserInfo};
use futures::future::{FutureExt, try_join, try_join_all};
use futures::stream::{self, TryStreamExt};
use http::{Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::client::InProcess;
use crate::http::body::full;
use crate::kernel::Kernel;
use crate::key::ROOT_CLUSTER;

/// Namespaces that are always there.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Default objects that are written at once: many, to share the store's commits, but not all: each needs memory for a moment.
const AT_ONCE: usize = 32;

/// Why a default object could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{method} {path} answered {code}: {message}")]
pub struct BootstrapError {
    method: Method,
    path: String,
    code: u16,
    message: String,
}

/// Creates and completes the default objects, then declares the kernel ready.
pub async fn run(kernel: &Arc<Kernel>) -> Result<(), BootstrapError> {
    // The server's own identity, as upstream's loopback client: nothing else in the process has it.
    let client = InProcess::new(
        Arc::clone(kernel),
        UserInfo::new("system:apiserver", ["system:masters"]),
    );
    let namespaces =
        NAMESPACES.map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    let missing = namespaces
        .iter()
        .filter(|n| !exists(kernel, "", "namespaces", "", name(n)));
    try_join_all(missing.map(|n| send(&client, Method::POST, "/api/v1/namespaces".to_owned(), n))).await?;
    try_join(roles(kernel, &client), tenancy::run(kernel, &client)).await?;
    kernel.ready.store(true, std::sync::atomic::Ordering::Release);
    Ok(())
}

/// Brings up the default roles and their bindings.
async fn roles(kernel: &Arc<Kernel>, client: &InProcess) -> Result<(), BootstrapError> {
    stream::iter(bootstrap::objects().iter().map(Ok))
        .try_for_each_concurrent(AT_ONCE, |default| bring_up(kernel, client, default))
        .await?;
    aggregate(kernel, client).await
}

/// Makes a default role or binding grant what this version expects.
async fn bring_up(
    kernel: &Kernel,
    client: &InProcess,
    default: &BootstrapObject,
) -> Result<(), BootstrapError> {
    let path = collection(default.kind, default.namespace);
    let named = format!("{path}/{}", default.name);
    let resource = default.kind.resource();
    let live = current(kernel, RBAC_GROUP, resource, default.namespace, default.name);
    match reconcile(live.as_ref(), &default.object) {
        Reconciliation::Nothing => Ok(()),
        Reconciliation::Create => send(client, Method::POST, path, &default.object).await,
        Reconciliation::Update(object) => send(client, Method::PUT, named, &object).await,
        Reconciliation::Recreate => {
            send(client, Method::DELETE, named, &json!({})).await?;
            send(client, Method::POST, path, &default.object).await
        }
    }
}

/// Fills the roles that are made of others (admin, edit, view), so that they are right from the first request on.
async fn aggregate(kernel: &Arc<Kernel>, client: &InProcess) -> Result<(), BootstrapError> {
    loop {
        let pending = kernel
            .authorizer
            .with(ROOT_CLUSTER, fairway_kernel_authz::Policy::pending_aggregations);
        if pending.is_empty() {
            return Ok(());
        }
        try_join_all(pending.into_iter().map(async |role| {
            let Some(mut live) = current(kernel, RBAC_GROUP, "clusterroles", "", &role.name) else {
                return Ok(());
            };
            live["rules"] = json!(role.rules);
            let path = format!("{}/{}", collection(Kind::ClusterRole, ""), role.name);
            send(client, Method::PUT, path, &live).await
        }))
        .await?;
    }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or("")
}

fn collection(kind: Kind, namespace: &str) -> String {
    if namespace.is_empty() {
        format!("/apis/{RBAC_GROUP}/v1/{}", kind.resource())
    } else {
        format!("/apis/{RBAC_GROUP}/v1/namespaces/{namespace}/{}", kind.resource())
    }
}

fn current(kernel: &Kernel, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Value> {
    (kernel.storage.cache).built_in_value(group, resource, ROOT_CLUSTER, namespace, name)
}

fn exists(kernel: &Kernel, group: &str, resource: &str, namespace: &str, name: &str) -> bool {
    current(kernel, group, resource, namespace, name).is_some()
}

/// Sends a request of the system's own; 409 is as good as done.
pub(crate) async fn send(
    client: &InProcess,
    method: Method,
    path: String,
    object: &Value,
) -> Result<(), BootstrapError> {
    let media = if method == Method::PATCH {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let request = Request::builder()
        .method(method.clone())
        .uri(path.as_str())
        .header("content-type", media)
        .header("user-agent", "fairway-bootstrap")
        .body(full(object.to_string()));
    let Ok(request) = request else { return Ok(()) };
    // A task of its own: a start waits for many of these, and every core should work on them.
    let response = match tokio::spawn(client.clone().oneshot(request).boxed()).await {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(broken_off) => {
            return Err(BootstrapError {
                method,
                path,
                code: 500,
                message: broken_off.to_string(),
            });
        }
    };
    let code = response.status().as_u16();
    // Another replica may have been quicker.
    if code < 400 || code == 409 || (code == 404 && method == Method::DELETE) {
        return Ok(());
    }
    let body = response
        .into_body()
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    Err(BootstrapError {
        method,
        path,
        code,
        message: String::from_utf8_lossy(&body).into_owned(),
    })
}
