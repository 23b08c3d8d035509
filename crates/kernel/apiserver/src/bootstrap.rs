//! What must exist before the first user comes: namespaces and default roles.
//!
//! It runs at every start. Missing objects are created; roles that carry the `autoupdate` annotation get the rules and
//! subjects that they lack, and keep what an administrator has added.

use std::sync::Arc;

use fairway_kernel_authz::{Kind, PolicyRule, RBAC_GROUP, UserInfo, bootstrap, covers};
use futures::future::try_join_all;
use http::{Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::client::InProcess;
use crate::http::body::full;
use crate::kernel::Kernel;
use crate::key::{BUILTIN_IDENTITY, KindPrefix, ObjectSuffix, ROOT_CLUSTER};

/// Namespaces that are always there.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];
const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

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
    let mut writes = Vec::new();
    let objects = bootstrap::objects();
    for default in &objects {
        let path = collection(default.kind, default.namespace);
        match current(
            kernel,
            RBAC_GROUP,
            default.kind.resource(),
            default.namespace,
            default.name,
        ) {
            None => writes.push((Method::POST, path, default.object.clone())),
            Some(live) => {
                if let Some(completed) = complete(default.kind, &live, &default.object) {
                    writes.push((Method::PUT, format!("{path}/{}", default.name), completed));
                }
            }
        }
    }
    try_join_all(
        writes
            .iter()
            .map(|(method, path, object)| send(&client, method.clone(), path.clone(), object)),
    )
    .await?;
    aggregate(kernel, &client).await?;
    kernel.ready.store(true, std::sync::atomic::Ordering::Release);
    Ok(())
}

/// Fills the roles that are made of others (admin, edit, view), so that they are right from the first request on.
async fn aggregate(kernel: &Arc<Kernel>, client: &InProcess) -> Result<(), BootstrapError> {
    loop {
        let pending = kernel
            .authorizer
            .with(fairway_kernel_authz::Policy::pending_aggregations);
        if pending.is_empty() {
            return Ok(());
        }
        for role in pending {
            let Some(mut live) = current(kernel, RBAC_GROUP, "clusterroles", "", &role.name) else {
                continue;
            };
            live["rules"] = json!(role.rules);
            let path = format!("{}/{}", collection(Kind::ClusterRole, ""), role.name);
            send(client, Method::PUT, path, &live).await?;
        }
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
    let prefix = KindPrefix::new(group, resource, BUILTIN_IDENTITY);
    let suffix = ObjectSuffix::new(ROOT_CLUSTER, namespace, name);
    kernel
        .storage
        .cache
        .kind(prefix.as_str())
        .get(suffix.as_str())?
        .value()
        .ok()
}

fn exists(kernel: &Kernel, group: &str, resource: &str, namespace: &str, name: &str) -> bool {
    current(kernel, group, resource, namespace, name).is_some()
}

/// The live object with what it lacks of the default; `None` if it lacks nothing, or is not to be touched.
fn complete(kind: Kind, live: &Value, default: &Value) -> Option<Value> {
    if live["metadata"]["annotations"][AUTOUPDATE] != "true" {
        return None;
    }
    let mut completed = live.clone();
    match kind {
        Kind::Role | Kind::ClusterRole => {
            if !default["aggregationRule"].is_null() {
                return None;
            }
            let have = PolicyRule::list_from(live.get("rules"));
            let want = PolicyRule::list_from(default.get("rules"));
            let missing = want
                .iter()
                .any(|rule| !covers(&have, std::slice::from_ref(rule)).is_empty());
            if !missing {
                return None;
            }
            completed["rules"] = default["rules"].clone();
            for extra in live["rules"].as_array().into_iter().flatten() {
                let added = PolicyRule::list_from(Some(&json!([extra])));
                if !covers(&want, &added).is_empty() {
                    completed["rules"].as_array_mut()?.push(extra.clone());
                }
            }
        }
        Kind::RoleBinding | Kind::ClusterRoleBinding => {
            let mut subjects = live["subjects"].as_array().cloned().unwrap_or_default();
            let before = subjects.len();
            for subject in default["subjects"].as_array().into_iter().flatten() {
                if !subjects.contains(subject) {
                    subjects.push(subject.clone());
                }
            }
            if subjects.len() == before {
                return None;
            }
            completed["subjects"] = subjects.into();
        }
    }
    Some(completed)
}

async fn send(
    client: &InProcess,
    method: Method,
    path: String,
    object: &Value,
) -> Result<(), BootstrapError> {
    let request = Request::builder()
        .method(method.clone())
        .uri(path.as_str())
        .header("content-type", "application/json")
        .header("user-agent", "fairway-bootstrap")
        .body(full(object.to_string()));
    let Ok(request) = request else { return Ok(()) };
    let response = match client.clone().oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let code = response.status().as_u16();
    // Another replica may have been quicker.
    if code < 400 || code == 409 {
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
