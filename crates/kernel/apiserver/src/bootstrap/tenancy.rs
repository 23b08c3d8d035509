//! The beginning of the tree of workspaces: the root, the workspace of the system, what that exports, and the types of
//! workspaces.

use fairway_kernel_tenancy::bootstrap::{parentless_cluster, system_exports, types};
use fairway_kernel_tenancy::names::{APIS, CORE, LOGICAL_CLUSTER, TENANCY};
use http::Method;
use serde_json::{Value, json};

use super::{BootstrapError, name, send};
use crate::client::InProcess;
use crate::kernel::Kernel;
use crate::key::{ROOT_CLUSTER, SYSTEM_CLUSTER};

/// Creates what is missing, and brings up to date what the system itself offers.
pub(super) async fn run(kernel: &Kernel, client: &InProcess) -> Result<(), BootstrapError> {
    let cache = &kernel.storage.cache;
    for cluster in [ROOT_CLUSTER, SYSTEM_CLUSTER] {
        logical_cluster(kernel, client, cluster).await?;
    }
    for offer in system_exports() {
        let at = |version: &str, resource: &str| {
            format!("/clusters/{SYSTEM_CLUSTER}/apis/{APIS}/{version}/{resource}")
        };
        for schema in &offer.schemas {
            let found = cache.built_in(APIS, "apiresourceschemas", SYSTEM_CLUSTER, "", name(schema));
            if found.is_none() {
                send(client, Method::POST, at("v1alpha1", "apiresourceschemas"), schema).await?;
            }
        }
        let exports = at("v1alpha2", "apiexports");
        let export = &offer.export;
        match cache.built_in_value(APIS, "apiexports", SYSTEM_CLUSTER, "", name(export)) {
            None => send(client, Method::POST, exports, export).await?,
            Some(live) if live["spec"]["resources"] != export["spec"]["resources"] => {
                let patch = json!({"spec": {"resources": export["spec"]["resources"]}});
                send(
                    client,
                    Method::PATCH,
                    format!("{exports}/{}", name(export)),
                    &patch,
                )
                .await?;
            }
            Some(_) => {}
        }
    }
    for wanted in types() {
        let path = "/apis/tenancy.kcp.io/v1alpha1/workspacetypes".to_owned();
        match cache.built_in_value(TENANCY, "workspacetypes", ROOT_CLUSTER, "", name(&wanted)) {
            None => send(client, Method::POST, path, &wanted).await?,
            Some(live) => {
                if let Some(patch) = completed(&live, &wanted) {
                    send(client, Method::PATCH, format!("{path}/{}", name(&wanted)), &patch).await?;
                }
            }
        }
    }
    Ok(())
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
