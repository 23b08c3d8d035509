//! Workspaces with a kind of their own: a CRD is its own kind in each workspace, even if all of them have the same name.

use anyhow::Result;
use serde_json::json;

use super::{place, tenants};
use crate::client::Call;
use crate::figures::milliseconds;
use crate::load;
use crate::server::Server;

const CLIENTS: usize = 8;
/// One workspace in so many gets one.
const SHARE: usize = 20;

pub(super) struct OwnKinds {
    pub(super) count: usize,
    pub(super) cpu_ms: f64,
    pub(super) kilobytes_each: f64,
    /// Watches that the server has open for each, in the end.
    pub(super) watches_each: Option<f64>,
}

pub(super) async fn measure(server: &Server, workspaces: usize) -> Result<OwnKinds> {
    let count = (workspaces / SHARE).max(1);
    tenants::settle(server).await?;
    let before = tenants::watches(server).await?;
    let (memory, cpu) = (server.resident()?, server.cpu()?);
    load::run(server, CLIENTS, count, |number| {
        let path = "apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        Call::create(format!("{}/{path}", place(number * SHARE)), definition())
    })
    .await?;
    let used = tenants::settle(server).await? - cpu;
    let after = tenants::watches(server).await?;
    Ok(OwnKinds {
        count,
        cpu_ms: milliseconds(used) / count as f64,
        kilobytes_each: server.resident()?.saturating_sub(memory) as f64 / 1e3 / count as f64,
        watches_each: before
            .zip(after)
            .map(|(before, after)| (after - before) / count as f64),
    })
}

fn definition() -> String {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.own.example.com"},
        "spec": {
            "group": "own.example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {
                    "size": {"type": "integer", "minimum": 0},
                    "colour": {"type": "string", "maxLength": 64},
                }}},
            }}}],
        },
    })
    .to_string()
}
