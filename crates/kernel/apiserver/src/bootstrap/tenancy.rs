//! The beginning of the tree of workspaces: the root, the workspace of the system, what that exports, and the types of
//! workspaces.

use fairway_kernel_tenancy::bootstrap::{SystemExport, parentless_cluster, system_exports, types};
use fairway_kernel_tenancy::names::{APIS, CORE, LOGICAL_CLUSTER, TENANCY};
use futures::future::{try_join, try_join_all};
use http::Method;
use serde_json::{Value, json};

use super::{BootstrapError, name, send};
use crate::client::InProcess;
use crate::kernel::Kernel;
use crate::key::{ROOT_CLUSTER, SYSTEM_CLUSTER};

/// Creates what is missing, and brings up to date what the system itself offers.
pub(super) async fn run(kernel: &Kernel, client: &InProcess) -> Result<(), BootstrapError> {
    let clusters = [ROOT_CLUSTER, SYSTEM_CLUSTER].map(|cluster| logical_cluster(kernel, client, cluster));
    try_join_all(clusters).await?;
    let offers = system_exports();
    let (offers, types) = (
        try_join_all(offers.iter().map(|one| offer(kernel, client, one))),
        try_join_all(
            types()
                .into_iter()
                .map(|wanted| workspace_type(kernel, client, wanted)),
        ),
    );
    try_join(offers, types).await?;
    Ok(())
}

/// Schemas first: an export that names a schema which is not there would say so.
async fn offer(kernel: &Kernel, client: &InProcess, offer: &SystemExport) -> Result<(), BootstrapError> {
    let cache = &kernel.storage.cache;
    let at = |version: &str, resource: &str| {
        format!("/clusters/{SYSTEM_CLUSTER}/apis/{APIS}/{version}/{resource}")
    };
    let missing = offer.schemas.iter().filter(|schema| {
        (cache.built_in(APIS, "apiresourceschemas", SYSTEM_CLUSTER, "", name(schema))).is_none()
    });
    let schemas = at("v1alpha1", "apiresourceschemas");
    try_join_all(missing.map(|schema| send(client, Method::POST, schemas.clone(), schema))).await?;
    let exports = at("v1alpha2", "apiexports");
    let export = &offer.export;
    match cache.built_in_value(APIS, "apiexports", SYSTEM_CLUSTER, "", name(export)) {
        None => send(client, Method::POST, exports, export).await,
        Some(live) if live["spec"]["resources"] != export["spec"]["resources"] => {
            let patch = json!({"spec": {"resources": export["spec"]["resources"]}});
            let path = format!("{exports}/{}", name(export));
            send(client, Method::PATCH, path, &patch).await
        }
        Some(_) => Ok(()),
    }
}

async fn workspace_type(kernel: &Kernel, client: &InProcess, wanted: Value) -> Result<(), BootstrapError> {
    let path = "/apis/tenancy.kcp.io/v1alpha1/workspacetypes".to_owned();
    let cache = &kernel.storage.cache;
    match cache.built_in_value(TENANCY, "workspacetypes", ROOT_CLUSTER, "", name(&wanted)) {
        None => send(client, Method::POST, path, &wanted).await,
        Some(live) => match completed(&live, &wanted) {
            Some(patch) => send(client, Method::PATCH, format!("{path}/{}", name(&wanted)), &patch).await,
            None => Ok(()),
        },
    }
}

/// The APIs that a type lacks; what an administrator has added stays.
fn completed(live: &Value, wanted: &Value) -> Option<Value> {
    let list = |object: &Value| {
        object["spec"]["defaultAPIBindings"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let mut all = list(live);
    let before = all.len();
    for binding in list(wanted) {
        if !all.contains(&binding) {
            all.push(binding);
        }
    }
    (all.len() > before).then(|| json!({"spec": {"defaultAPIBindings": all}}))
}

async fn logical_cluster(kernel: &Kernel, client: &InProcess, cluster: &str) -> Result<(), BootstrapError> {
    if kernel.workspaces.get(cluster).is_some() {
        return Ok(());
    }
    let collection = format!("/clusters/{cluster}/apis/{CORE}/v1alpha1/logicalclusters");
    send(
        client,
        Method::POST,
        collection.clone(),
        &parentless_cluster(cluster),
    )
    .await?;
    let ready = json!({"status": {"phase": "Ready"}});
    let status = format!("{collection}/{LOGICAL_CLUSTER}/status");
    send(client, Method::PATCH, status, &ready).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::completed;

    #[test]
    fn a_type_gets_what_it_lacks_and_keeps_what_it_has() {
        let own = json!({"path": "root", "export": "mine"});
        let ours = json!({"path": "system:fairway", "export": "x"});
        let wanted = json!({"spec": {"defaultAPIBindings": [ours]}});
        let of = |bindings: serde_json::Value| json!({"spec": {"defaultAPIBindings": bindings}});
        assert_eq!(completed(&of(json!([own, ours])), &wanted), None);
        assert_eq!(
            completed(&of(json!([own])), &wanted),
            Some(of(json!([own, ours])))
        );
        assert_eq!(completed(&json!({}), &wanted), Some(wanted.clone()));
        assert_eq!(completed(&json!({}), &json!({})), None);
    }
}
