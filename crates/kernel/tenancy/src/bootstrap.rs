//! What a new installation begins with: kcp's types and roles, and the export that makes workspaces nest.
//!
//! The roles of [`inherited`] apply in every workspace without being copied there. The objects of [`root`] lie in `root`.

use serde_json::{Value, json};

use crate::crds::{self, Reach};
use crate::names::{LOGICAL_CLUSTER, POLICY_PREFIX, TENANCY, annotation, finalizer, group};
use crate::schema::from_crd;
use crate::template::sha1;

/// The export of Workspace and WorkspaceType, in `root`.
pub const TENANCY_EXPORT: &str = TENANCY;

fn cluster_role(name: &str, rules: &Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules,
    })
}

fn bind_groups(name: &str, role: &str, groups: &[&str]) -> Value {
    let subjects: Vec<Value> = groups
        .iter()
        .map(|it| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": it}))
        .collect();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": subjects,
    })
}

/// ClusterRoles and ClusterRoleBindings that hold in every workspace.
pub fn inherited() -> Vec<Value> {
    let workspaces =
        json!({"apiGroups": [TENANCY], "resources": ["workspaces"], "verbs": ["get", "list", "watch"]});
    vec![
        cluster_role(
            group::WORKSPACE_ACCESS,
            &json!([{"nonResourceURLs": ["/"], "verbs": ["access"]}]),
        ),
        cluster_role(
            "system:kcp:tenancy:reader",
            &json!([
                workspaces,
                {"apiGroups": [TENANCY], "resources": ["workspacetypes"], "verbs": ["get", "list", "watch"]},
                {"apiGroups": ["core.kcp.io"], "resources": ["logicalclusters"], "verbs": ["get", "list", "watch"]},
            ]),
        ),
        cluster_role(
            group::LOGICAL_CLUSTER_ADMIN,
            &json!([
                {"apiGroups": ["core.kcp.io"], "resources": ["logicalclusters", "logicalclusters/status"], "verbs": ["*"]},
                {"apiGroups": [TENANCY], "resources": ["workspaces"], "verbs": ["delete", "update", "get"]},
            ]),
        ),
        cluster_role(
            group::WORKSPACE_BOOTSTRAPPER,
            &json!([
                {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
                {"nonResourceURLs": ["*"], "verbs": ["*"]},
            ]),
        ),
        cluster_role(
            "system:kcp:metrics-reader",
            &json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]),
        ),
        bind_groups("system:kcp:admin:cluster-admin", "cluster-admin", &[group::ADMIN]),
        bind_groups(
            group::LOGICAL_CLUSTER_ADMIN,
            group::LOGICAL_CLUSTER_ADMIN,
            &[group::LOGICAL_CLUSTER_ADMIN],
        ),
        bind_groups(
            group::WORKSPACE_BOOTSTRAPPER,
            group::WORKSPACE_BOOTSTRAPPER,
            &[
                group::WORKSPACE_BOOTSTRAPPER,
                &format!("{POLICY_PREFIX}{}", group::WORKSPACE_BOOTSTRAPPER),
            ],
        ),
    ]
}

/// The LogicalCluster of `root`.
pub fn root_cluster() -> Value {
    json!({
        "apiVersion": "core.kcp.io/v1alpha1",
        "kind": "LogicalCluster",
        "metadata": {
            "name": LOGICAL_CLUSTER,
            "annotations": {annotation::TYPE: "root:root", annotation::PATH: "root"},
            "finalizers": [finalizer::LOGICAL_CLUSTER_CONTENT],
        },
        "spec": {},
        "status": {"phase": "Ready"},
    })
}

/// The APIResourceSchemas and the APIExport of the kinds that make workspaces nest. A schema's name says what is in it,
/// so a newer Fairway offers a newer one and bindings follow.
pub fn tenancy_export() -> (Vec<Value>, Value) {
    let mut schemas = Vec::new();
    let mut resources = Vec::new();
    for definition in crds::ALL.iter().filter(|it| it.reach == Reach::Exported) {
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
        "metadata": {"name": TENANCY_EXPORT},
        "spec": {"resources": resources, "maximalPermissionPolicy": {"local": {}}},
    });
    (schemas, export)
}

fn workspace_type(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "WorkspaceType",
        "metadata": {"name": name},
        "spec": spec,
    })
}

/// The types that a new installation has. `exports` are further exports, as (path, name), that every workspace begins with
/// and keeps.
pub fn types(exports: &[(&str, &str)]) -> Vec<Value> {
    let root = |name: &str| json!({"name": name, "path": "root"});
    let universal = json!({"with": [root("universal")]});
    let mut bindings = vec![json!({"path": "root", "export": TENANCY_EXPORT})];
    bindings.extend(
        exports
            .iter()
            .map(|(path, export)| json!({"path": path, "export": export})),
    );
    vec![
        workspace_type(
            "universal",
            &json!({"defaultAPIBindings": bindings, "defaultAPIBindingLifecycle": "Maintain",
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

/// Roles in `root`: everybody may enter it, see what workspaces there are, use the types and bind the kinds that nest, and
/// those kinds' status is the system's.
pub fn root_roles() -> Vec<Value> {
    const EVERYBODY: &str = "system:authenticated";
    let consumers = format!("{POLICY_PREFIX}{EVERYBODY}");
    let administrators = format!("{POLICY_PREFIX}{}", group::ADMIN);
    vec![
        cluster_role(
            "system:kcp:apiexport:tenancy:bind",
            &json!([{"apiGroups": ["apis.kcp.io"], "resources": ["apiexports"], "resourceNames": [TENANCY_EXPORT], "verbs": ["bind"]}]),
        ),
        bind_groups(
            "system:kcp:authenticated:apiexport:tenancy:bind",
            "system:kcp:apiexport:tenancy:bind",
            &[EVERYBODY],
        ),
        cluster_role(
            "system:kcp:universal-workspacetype-use",
            &json!([{"apiGroups": [TENANCY], "resources": ["workspacetypes"], "resourceNames": ["universal", "organization", "team"], "verbs": ["use"]}]),
        ),
        bind_groups(
            "system:kcp:authenticated:universal-workspacetype-use",
            "system:kcp:universal-workspacetype-use",
            &[EVERYBODY],
        ),
        cluster_role(
            "system:kcp:home-clusterworkspace-create",
            &json!([{"apiGroups": [TENANCY], "resources": ["workspaces"], "resourceNames": ["~"], "verbs": ["get", "create"]}]),
        ),
        bind_groups(
            "system:kcp:tenancy:authenticated:access",
            group::WORKSPACE_ACCESS,
            &[EVERYBODY],
        ),
        bind_groups(
            "system:kcp:authenticated:tenancy:reader",
            "system:kcp:tenancy:reader",
            &[EVERYBODY],
        ),
        cluster_role(
            "system:kcp:apiexport:tenancy:maximal-permission-policy",
            &json!([
                {"apiGroups": [TENANCY], "resources": ["workspaces", "workspaceauthenticationconfigurations", "workspacetypes"], "verbs": ["*"]},
                {"apiGroups": [TENANCY], "resources": ["workspaces/status", "workspacetypes/status"], "verbs": ["list", "watch", "get"]},
            ]),
        ),
        bind_groups(
            "system:kcp:authenticated:apiexport:tenancy:maximal-permission-policy",
            "system:kcp:apiexport:tenancy:maximal-permission-policy",
            &[&consumers],
        ),
        cluster_role(
            "system:kcp:apiexport:kcp-admin:maximal-permission-policy",
            &json!([{"apiGroups": [TENANCY], "resources": ["*"], "verbs": ["*"]}]),
        ),
        bind_groups(
            "system:kcp:authenticated:apiexport:kcp-admin:maximal-permission-policy",
            "system:kcp:apiexport:kcp-admin:maximal-permission-policy",
            &[&administrators],
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
