//! What a new installation begins with: kcp's types, and the exports of the system.
//!
//! kcp's kinds for nesting are everywhere, so they are not exported; the roles are among the default ones.

use serde_json::{Value, json};

use crate::crds;
use crate::names::{LOGICAL_CLUSTER, SYNCAGENT, annotation, finalizer};
use crate::schema::from_crd;
use crate::template::sha1;

/// The workspace that the system's exports lie in.
pub const SYSTEM_WORKSPACE: &str = "system:fairway";

/// The LogicalCluster of a workspace that has no parent. The system's own has no type, so that it gets nothing but what is
/// put there.
pub fn parentless_cluster(path: &str) -> Value {
    let mut annotations = json!({annotation::PATH: path});
    if path == "root" {
        annotations[annotation::TYPE] = json!("root:root");
    }
    json!({
        "apiVersion": "core.kcp.io/v1alpha1",
        "kind": "LogicalCluster",
        "metadata": {
            "name": LOGICAL_CLUSTER,
            "annotations": annotations,
            "finalizers": [finalizer::LOGICAL_CLUSTER_CONTENT],
        },
        "spec": {},
    })
}

/// An export of the system's workspace, with the schemas that it offers.
pub struct SystemExport {
    /// The APIResourceSchemas.
    pub schemas: Vec<Value>,
    /// The APIExport.
    pub export: Value,
}

/// Fairway's own kinds that every workspace begins with. A schema's name says what is in it, so a newer Fairway offers a
/// newer one and bindings follow.
pub fn system_exports() -> Vec<SystemExport> {
    vec![system_export(SYNCAGENT)]
}

fn system_export(group: &str) -> SystemExport {
    let (mut schemas, mut resources) = (Vec::new(), Vec::new());
    for definition in crds::ALL.iter().filter(|it| it.group == group) {
        let crd = definition.crd();
        let prefix = format!("v{}", &sha1(&crd["spec"].to_string())[..8]);
        let schema = from_crd(&crd, &prefix);
        resources.push(json!({
            "group": definition.group,
            "name": definition.resource,
            "schema": schema["metadata"]["name"],
            "storage": {"crd": {}},
        }));
        schemas.push(schema);
    }
    let export = json!({
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIExport",
        "metadata": {"name": group},
        "spec": {"resources": resources},
    });
    SystemExport { schemas, export }
}

fn workspace_type(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "WorkspaceType",
        "metadata": {"name": name},
        "spec": spec,
    })
}

/// The types that a new installation has. Workspaces of type `universal` begin with the system's exports, and keep them.
pub fn types() -> Vec<Value> {
    let root = |name: &str| json!({"name": name, "path": "root"});
    let universal = json!({"with": [root("universal")]});
    let bindings: Vec<Value> = system_exports()
        .iter()
        .map(|it| json!({"path": SYSTEM_WORKSPACE, "export": it.export["metadata"]["name"]}))
        .collect();
    vec![
        workspace_type(
            "universal",
            &json!({"initializer": true, "defaultAPIBindings": bindings, "defaultAPIBindingLifecycle": "Maintain",
                   "defaultChildWorkspaceType": root("universal")}),
        ),
        workspace_type(
            "root",
            &json!({
                "extend": universal,
                "defaultChildWorkspaceType": root("organization"),
                "limitAllowedParents": {"none": true},
            }),
        ),
        workspace_type(
            "organization",
            &json!({
                "extend": universal,
                "defaultChildWorkspaceType": root("universal"),
                "limitAllowedChildren": {"types": [root("universal")]},
                "limitAllowedParents": {"types": [root("root")]},
            }),
        ),
        workspace_type(
            "team",
            &json!({
                "extend": universal,
                "defaultChildWorkspaceType": root("universal"),
                "limitAllowedParents": {"types": [root("organization"), root("team")]},
            }),
        ),
        workspace_type(
            "home",
            &json!({
                "extend": universal,
                "defaultChildWorkspaceType": root("universal"),
                "limitAllowedParents": {"none": true},
            }),
        ),
    ]
}

/// The ClusterRoleBinding that makes the creator of a workspace its administrator.
pub fn creator_binding(username: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "workspace-admin"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": username}],
    })
}

#[cfg(test)]
mod tests;
