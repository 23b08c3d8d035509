//! Objects of the same name in two of many workspaces: one controller takes care of both, with the one watch that it has.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::{place, tenants};
use crate::client::{Call, Client};
use crate::figures::milliseconds;
use crate::server::Server;

const NAME: &str = "twin";
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Twins {
    /// From both namespaces until each had what the controllers put into every namespace.
    pub(super) reconciled_ms: f64,
    /// From both objects until one watch over all workspaces had shown both.
    pub(super) seen_ms: f64,
    /// Watches that the server has open, before and after.
    pub(super) watches: (Option<f64>, Option<f64>),
}

pub(super) async fn measure(server: &Server, count: usize) -> Result<Twins> {
    let client = Client::connect(&server.endpoint).await?;
    let places = [place(0), place(count - 1)];
    let before = tenants::watches(server).await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAME}}).to_string();
    let started = Instant::now();
    for at in &places {
        let call = Call::create(format!("{at}/api/v1/namespaces"), namespace.clone());
        client.send(call).await?.success()?;
    }
    let mut uids = Vec::new();
    for at in &places {
        let inside = format!("{at}/api/v1/namespaces/{NAME}");
        uids.push(until_there(&client, &format!("{inside}/serviceaccounts/default")).await?);
        uids.push(until_there(&client, &format!("{inside}/configmaps/kube-root-ca.crt")).await?);
    }
    let reconciled_ms = milliseconds(started.elapsed());
    uids.sort_unstable();
    uids.dedup();
    ensure!(uids.len() == 4, "two workspaces share an object");
    let after = tenants::watches(server).await?;
    let list = client
        .send(Call::get("/clusters/*/api/v1/secrets?limit=1"))
        .await?
        .success()?;
    let list: Value = serde_json::from_slice(&list)?;
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let stream = client
        .stream(format!(
            "/clusters/*/api/v1/secrets?watch=1&resourceVersion={revision}"
        ))
        .await?;
    let started = Instant::now();
    for at in &places {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": NAME}}).to_string();
        let call = Call::create(format!("{at}/api/v1/namespaces/{NAME}/secrets"), secret);
        client.send(call).await?.success()?;
    }
    tokio::time::timeout(PATIENCE, see_both(stream))
        .await
        .context("one watch did not see both objects")??;
    Ok(Twins {
        reconciled_ms,
        seen_ms: milliseconds(started.elapsed()),
        watches: (before, after),
    })
}

/// Waits for an object; its UID.
async fn until_there(client: &Client, path: &str) -> Result<String> {
    let started = Instant::now();
    loop {
        let reply = client.send(Call::get(path)).await?;
        if reply.status.is_success() {
            let object: Value = serde_json::from_slice(&reply.body)?;
            return Ok(object["metadata"]["uid"].as_str().unwrap_or_default().to_owned());
        }
        ensure!(started.elapsed() < PATIENCE, "{path} did not come");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn see_both(mut stream: Incoming) -> Result<()> {
    let mut from = Vec::new();
    let mut buffer = BytesMut::new();
    while from.len() < 2 {
        let frame = stream.frame().await.context("the watch ended")??;
        let Ok(data) = frame.into_data() else { continue };
        buffer.extend_from_slice(&data);
        while let Some(end) = buffer.iter().position(|&byte| byte == b'\n') {
            let event: Value = serde_json::from_slice(&buffer.split_to(end + 1))?;
            let metadata = &event["object"]["metadata"];
            let cluster = metadata["annotations"]["kcp.io/cluster"]
                .as_str()
                .unwrap_or_default();
            if metadata["name"] == NAME && !from.contains(&cluster.to_owned()) {
                from.push(cluster.to_owned());
            }
        }
    }
    Ok(())
}
