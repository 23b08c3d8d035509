//! The beginning of the tree of workspaces: the root, the workspace of the system, and the types that both offer.

use http::Method;
use serde_json::{Value, json};

use super::{BootstrapError, exists, send};
use crate::client::InProcess;
use crate::kernel::Kernel;
use crate::key::{ROOT_CLUSTER, SYSTEM_CLUSTER};
use crate::workspaces::{CORE_GROUP, LOGICAL_CLUSTER, TENANCY_GROUP};

/// Creates what is missing.
pub(super) async fn run(kernel: &Kernel, client: &InProcess) -> Result<(), BootstrapError> {
    for (cluster, path) in [(ROOT_CLUSTER, "root"), (SYSTEM_CLUSTER, "system:fairway")] {
        logical_cluster(kernel, client, cluster, path).await?;
    }
    for (name, spec) in types() {
        if !exists(kernel, TENANCY_GROUP, "workspacetypes", "", name) {
            let object = json!({
                "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType",
                "metadata": {"name": name}, "spec": spec,
            });
            let path = "/apis/tenancy.kcp.io/v1alpha1/workspacetypes".to_owned();
            send(client, Method::POST, path, &object).await?;
        }
    }
    Ok(())
}

async fn logical_cluster(
    kernel: &Kernel,
    client: &InProcess,
    cluster: &str,
    path: &str,
) -> Result<(), BootstrapError> {
    if kernel.workspaces.get(cluster).is_some() {
        return Ok(());
    }
    let object = json!({
        "apiVersion": format!("{CORE_GROUP}/v1alpha1"), "kind": "LogicalCluster",
        "metadata": {
            "name": LOGICAL_CLUSTER,
            "annotations": {"internal.tenancy.kcp.io/type": "root:root", "kcp.io/path": path},
        },
    });
    let collection = format!("/clusters/{cluster}/apis/{CORE_GROUP}/v1alpha1/logicalclusters");
    send(client, Method::POST, collection.clone(), &object).await?;
    let ready = json!({"status": {"phase": "Ready"}});
    let status = format!("{collection}/{LOGICAL_CLUSTER}/status");
    send(client, Method::PATCH, status, &ready).await
}

/// The types that kcp has, with its rules for which goes below which.
fn types() -> [(&'static str, Value); 4] {
    let of_root = |name: &str| json!({"name": name, "path": "root"});
    [
        (
            "universal",
            json!({"initializer": true, "defaultChildWorkspaceType": of_root("universal")}),
        ),
        (
            "root",
            json!({
                "extend": {"with": [of_root("universal")]},
                "limitAllowedParents": {"none": true},
                "defaultChildWorkspaceType": of_root("organization"),
            }),
        ),
        (
            "organization",
            json!({
                "extend": {"with": [of_root("universal")]},
                "limitAllowedParents": {"types": [of_root("root")]},
                "limitAllowedChildren": {"types": [of_root("universal")]},
                "defaultChildWorkspaceType": of_root("universal"),
            }),
        ),
        (
            "team",
            json!({
                "extend": {"with": [of_root("universal")]},
                "limitAllowedParents": {"types": [of_root("organization"), of_root("team")]},
                "defaultChildWorkspaceType": of_root("universal"),
            }),
        ),
    ]
}
