//! Fifty CRDs: how long until all are established, until each has answered a LIST, and what memory they keep.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::{StatusCode, header};
use serde_json::{Value, json};

use super::MEBIBYTE;
use crate::client::{Call, Client};
use crate::figures::{Figures, milliseconds};
use crate::server::Server;

const COUNT: usize = 50;
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const LIMIT: Duration = Duration::from_secs(120);

pub(super) async fn measure(server: &Server, figures: &mut Figures) -> Result<()> {
    let client = Client::connect(&server.endpoint).await?;
    let memory = server.resident()?;
    let (cpu, started) = (server.cpu()?, Instant::now());
    create(&client, COUNT).await?;
    figures.set("50 CRDs, established", "wall", milliseconds(started.elapsed()));
    for number in 0..COUNT {
        list(&client, number, started).await?;
    }
    figures.set("50 CRDs, each listed", "wall", milliseconds(started.elapsed()));
    // Discovery and OpenAPI documents follow a moment later; they are part of what a CRD costs.
    tokio::time::sleep(Duration::from_secs(2)).await;
    figures.set("50 CRDs", "cpu", milliseconds(server.cpu()? - cpu) / COUNT as f64);
    let grown = server.resident()?.saturating_sub(memory) as f64 / MEBIBYTE;
    figures.set("50 CRDs", "kilobytes each", grown * 1024.0 / COUNT as f64);
    Ok(())
}

/// Creates so many definitions and waits until all are established.
pub(crate) async fn create(client: &Client, count: usize) -> Result<()> {
    for number in 0..count {
        client
            .send(Call::create(CRDS, definition(number)))
            .await?
            .success()?;
    }
    let created = Instant::now();
    for number in 0..count {
        wait_until_established(client, number, created).await?;
    }
    Ok(())
}

async fn wait_until_established(client: &Client, number: usize, started: Instant) -> Result<()> {
    let path = format!("{CRDS}/kinds{number}.bench.fairway.dev");
    loop {
        let body = client.send(Call::get(&path)).await?.success()?;
        let definition: Value = serde_json::from_slice(&body)?;
        let conditions = definition["status"]["conditions"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        if conditions
            .iter()
            .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
        {
            return Ok(());
        }
        ensure!(started.elapsed() < LIMIT, "CRD {number} was never established");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Lists the new kind once, obeying what the server says about trying again, as its clients do.
async fn list(client: &Client, number: usize, started: Instant) -> Result<()> {
    let path = format!("/apis/bench.fairway.dev/v1/namespaces/default/kinds{number}");
    loop {
        let reply = client.send(Call::get(&path)).await?;
        let pause = match reply.status {
            StatusCode::TOO_MANY_REQUESTS => {
                let seconds = reply
                    .headers
                    .get(header::RETRY_AFTER)
                    .and_then(|value| value.to_str().ok());
                Duration::from_secs(seconds.and_then(|text| text.parse().ok()).unwrap_or(1))
            }
            // Established, but not served yet.
            StatusCode::NOT_FOUND => Duration::from_millis(5),
            _ => {
                reply.success().context("listing a new kind")?;
                return Ok(());
            }
        };
        ensure!(started.elapsed() < LIMIT, "CRD {number} was never served");
        tokio::time::sleep(pause).await;
    }
}

/// A definition of ordinary size: nested objects, lists, enums, defaults, printer columns, a status.
fn definition(number: usize) -> String {
    let text = json!({"type": "string", "maxLength": 253});
    let condition = json!({
        "type": "object",
        "required": ["type", "status"],
        "properties": {
            "type": text, "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "reason": text, "message": {"type": "string"},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        },
    });
    let port = json!({
        "type": "object",
        "required": ["port"],
        "properties": {
            "name": text, "port": {"type": "integer", "minimum": 1, "maximum": 65535},
            "protocol": {"type": "string", "enum": ["TCP", "UDP"], "default": "TCP"},
            "targetPort": {"x-kubernetes-int-or-string": true},
        },
    });
    let spec = json!({
        "type": "object",
        "required": ["image"],
        "properties": {
            "image": text, "replicas": {"type": "integer", "format": "int32", "default": 1, "minimum": 0},
            "paused": {"type": "boolean"}, "schedule": text, "priority": {"type": "number"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "ports": {"type": "array", "items": port,
                      "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"]},
            "arguments": {"type": "array", "items": {"type": "string"}},
            "resources": {"type": "object", "properties": {
                "cpu": {"x-kubernetes-int-or-string": true}, "memory": {"x-kubernetes-int-or-string": true},
                "limits": {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": true}},
            }},
            "template": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("kinds{number}.bench.fairway.dev")},
        "spec": {
            "group": "bench.fairway.dev",
            "scope": "Namespaced",
            "names": {"kind": format!("Kind{number}"), "plural": format!("kinds{number}"),
                      "singular": format!("kind{number}")},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "Image", "type": "string", "jsonPath": ".spec.image"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": spec,
                    "status": {"type": "object", "properties": {
                        "conditions": {"type": "array", "items": condition,
                                       "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
                        "replicas": {"type": "integer", "format": "int32"},
                    }},
                }}},
            }],
        },
    })
    .to_string()
}
