//! What the `KubeVirt` and `HyperConverged` objects say that machines of a workspace are to be like: its own, else those of the root.

use fairway_api::Kind;
use fairway_api::kubevirt::{HYPER_CONVERGED, KUBE_VIRT};
use fairway_controller::{Clients, Failure, Requests, WorkspaceId, error};
use fairway_machines_plan::settings::Settings;
use serde_json::Value;

/// The settings of a workspace. They are read when a machine starts, which is seldom enough.
pub(crate) async fn of(clients: &Clients, workspace: &WorkspaceId) -> Result<Settings, Failure> {
    let kubevirt = object(clients, &KUBE_VIRT, workspace).await?;
    let operator = object(clients, &HYPER_CONVERGED, workspace).await?;
    let settings = kubevirt.as_ref().map(Settings::from_kubevirt).unwrap_or_default();
    Ok(match operator {
        Some(operator) => settings.with_hyperconverged(&operator),
        None => settings,
    })
}

/// Whether files of the host may be disks. Only whoever looks after the whole installation can say so: in a workspace of its own a tenant
/// writes its settings itself.
pub(crate) async fn allow_host_disks(clients: &Clients) -> Result<bool, Failure> {
    Ok(of(clients, &WorkspaceId::root()).await?.gate("HostDisk"))
}

/// The object of a kind that counts in a workspace: the first by name.
async fn object(clients: &Clients, kind: &Kind, workspace: &WorkspaceId) -> Result<Option<Value>, Failure> {
    let root = WorkspaceId::root();
    let places = match workspace.is_root() {
        true => vec![workspace],
        false => vec![workspace, &root],
    };
    for place in places {
        let path = format!("/apis/{}/{}", kind.api_version(), kind.plural);
        let mut all = match Requests::new(clients.of(place)).list(&path).await {
            Ok(all) => all,
            // A cluster need not know the operator's kind.
            Err(Failure::Api { source, .. }) if error::is_not_found(&source) => continue,
            Err(failure) => return Err(failure),
        };
        let name = |it: &Value| {
            (
                it["metadata"]["namespace"].to_string(),
                it["metadata"]["name"].to_string(),
            )
        };
        all.sort_by_key(name);
        if let Some(first) = all.into_iter().next() {
            return Ok(Some(first));
        }
    }
    Ok(None)
}
