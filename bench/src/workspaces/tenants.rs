//! Makes workspaces as their users would, and waits until each is ready and nothing is left to do.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::json;

use super::MEBIBYTE;
use crate::client::{Call, Client};
use crate::figures::{milliseconds, percentile};
use crate::load;
use crate::server::Server;

const WORKSPACES: &str = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces";
const RBAC: &str = "/clusters/root/apis/rbac.authorization.k8s.io/v1";
/// Whoever makes workspaces. A stranger, since those of the system's masters are cheaper by the binding of their rights.
const TENANT: &str = "tenant";
const CLIENTS: usize = 16;
/// How long all of them may take.
const PATIENCE: Duration = Duration::from_secs(1_800);
/// A server that does so little in a second is idle.
const IDLE: Duration = Duration::from_millis(15);
const IDLE_LIMIT: Duration = Duration::from_secs(180);

/// What making workspaces cost.
pub(super) struct Creation {
    /// CPU of each, until everything had settled.
    pub(super) cpu_ms: f64,
    /// CPU of each of the last tenth: it must not grow with their number.
    pub(super) last_cpu_ms: f64,
    /// From the request until the watch said `Ready`, with 16 clients at it.
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) seconds: f64,
    /// Just made, with everything that the server remembers of the last minutes.
    pub(super) kilobytes_each: f64,
    /// After a rest.
    pub(super) kilobytes_rested: f64,
    pub(super) megabytes: f64,
    before: u64,
    count: usize,
    /// Watches that the server has open, before and after.
    pub(super) watches: (Option<f64>, Option<f64>),
}

impl Creation {
    /// Looks at the memory again.
    pub(super) fn rested(&mut self, server: &Server) -> Result<()> {
        let grown = server.resident()?.saturating_sub(self.before) as f64;
        self.kilobytes_rested = grown / 1e3 / self.count as f64;
        Ok(())
    }
}

pub(super) fn name(number: usize) -> String {
    format!("tenant-{number:05}")
}

/// Makes workspaces `first` to `first + count`.
pub(super) async fn create(server: &Server, first: usize, count: usize) -> Result<Creation> {
    let client = Client::connect(&server.endpoint).await?;
    admit(&client).await?;
    // Whatever is made once for all, such as compiled schemas, is not what each one costs.
    client.send(workspace("first-of-all")).await?.success()?;
    wait_until_ready(&client, "first-of-all").await?;
    settle(server).await?;
    let watches_before = watches(server).await?;
    let memory = server.resident()?;
    let started = Instant::now();
    let mut latencies = Vec::with_capacity(count);
    let mut used = Vec::new();
    // The last tenth is made when the others have settled: what it costs must not grow with their number.
    let tenth = (count / 10).max(1);
    for part in [first..first + count - tenth, first + count - tenth..first + count] {
        let cpu = server.cpu()?;
        latencies.extend(create_part(server, &client, part).await?);
        used.push(milliseconds(settle(server).await? - cpu));
    }
    let seconds = started.elapsed().as_secs_f64();
    latencies.sort_unstable();
    let grown = server.resident()?.saturating_sub(memory) as f64;
    Ok(Creation {
        cpu_ms: used.iter().sum::<f64>() / count as f64,
        last_cpu_ms: used.last().copied().unwrap_or(f64::NAN) / tenth as f64,
        p50_ms: milliseconds(percentile(&latencies, 0.50)),
        p99_ms: milliseconds(percentile(&latencies, 0.99)),
        seconds,
        kilobytes_each: grown / 1e3 / count as f64,
        kilobytes_rested: f64::NAN,
        before: memory,
        count,
        megabytes: server.resident()? as f64 / MEBIBYTE,
        watches: (watches_before, watches(server).await?),
    })
}

/// Makes some, and waits until each is ready: how long that took from its first event on.
async fn create_part(server: &Server, client: &Client, part: Range<usize>) -> Result<Vec<Duration>> {
    let list = client
        .send(Call::get(format!("{WORKSPACES}?limit=1")))
        .await?
        .success()?;
    let list: serde_json::Value = serde_json::from_slice(&list)?;
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let stream = client
        .stream(format!("{WORKSPACES}?watch=1&resourceVersion={revision}"))
        .await?;
    let seeing = tokio::spawn(see_ready(stream, Instant::now(), part.len()));
    let writers = Client::connect_many(&server.endpoint, CLIENTS).await?;
    let first = part.start;
    load::send_all(writers, part.len(), move |number| {
        workspace(&name(first + number))
    })
    .await?;
    let seen = tokio::time::timeout(PATIENCE, seeing)
        .await
        .context("not every workspace became ready")???;
    Ok(seen.into_values().collect())
}

fn workspace(name: &str) -> Call {
    let body = json!({
        "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace",
        "metadata": {"name": name},
        "spec": {"type": {"name": "universal", "path": "root"}},
    });
    Call::create(WORKSPACES, body.to_string()).impersonating(TENANT)
}

/// Lets the tenant make workspaces of the root.
async fn admit(client: &Client) -> Result<()> {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": TENANT},
        "rules": [
            {"apiGroups": ["tenancy.kcp.io"], "resources": ["workspaces"], "verbs": ["create", "get", "list", "watch"]},
            {"apiGroups": ["tenancy.kcp.io"], "resources": ["workspacetypes"], "verbs": ["use"]},
        ],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": TENANT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": TENANT},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": TENANT}],
    });
    for (resource, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let call = Call::create(format!("{RBAC}/{resource}"), object.to_string());
        client.send(call).await?.success()?;
    }
    Ok(())
}

async fn wait_until_ready(client: &Client, name: &str) -> Result<()> {
    let started = Instant::now();
    loop {
        let body = client
            .send(Call::get(format!("{WORKSPACES}/{name}")))
            .await?
            .success()?;
        let object: serde_json::Value = serde_json::from_slice(&body)?;
        if object["status"]["phase"] == "Ready" {
            return Ok(());
        }
        if started.elapsed() > Duration::from_secs(60) {
            bail!("workspace {name} did not become ready: {}", object["status"]);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[derive(Deserialize)]
struct Event {
    object: Object,
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Deserialize, Default)]
struct Status {
    #[serde(default)]
    phase: String,
}

/// From the first event of each workspace until the one that says that it is ready.
async fn see_ready(mut stream: Incoming, begin: Instant, count: usize) -> Result<HashMap<String, Duration>> {
    let mut born: HashMap<String, Duration> = HashMap::new();
    let mut ready = HashMap::with_capacity(count);
    let mut buffer = BytesMut::new();
    while ready.len() < count {
        let Some(frame) = stream.frame().await else {
            bail!(
                "the watch ended when {} of {count} workspaces were ready",
                ready.len()
            )
        };
        let Ok(data) = frame?.into_data() else { continue };
        let now = begin.elapsed();
        buffer.extend_from_slice(&data);
        while let Some(end) = buffer.iter().position(|&byte| byte == b'\n') {
            let line = buffer.split_to(end + 1);
            let Event { object } = serde_json::from_slice(&line).context("an event that is not JSON")?;
            let name = object.metadata.name;
            if !name.starts_with("tenant-") {
                continue;
            }
            let since = *born.entry(name.clone()).or_insert(now);
            if object.status.phase == "Ready" {
                ready.entry(name).or_insert(now - since);
            }
        }
    }
    Ok(ready)
}

/// Waits until the server has nothing left to do; its CPU time up to then, without that of the waiting.
pub(super) async fn settle(server: &Server) -> Result<Duration> {
    let started = Instant::now();
    let mut before = server.cpu()?;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = server.cpu()?;
        if now - before < IDLE {
            return Ok(before);
        }
        if started.elapsed() > IDLE_LIMIT {
            bail!(
                "the server was not idle after {IDLE_LIMIT:?}: {:?} of CPU in the last second",
                now - before
            );
        }
        before = now;
    }
}

/// How many watches the server has open; `None` if it does not say.
pub(super) async fn watches(server: &Server) -> Result<Option<f64>> {
    let client = Client::connect(&server.endpoint).await?;
    let body = client.send(Call::get("/metrics")).await?.success()?;
    let text = String::from_utf8_lossy(&body);
    let figures = text
        .lines()
        .filter(|line| line.starts_with("apiserver_longrunning_requests{"))
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    Ok(figures.fold(None, |sum, figure| Some(sum.unwrap_or(0.0) + figure)))
}
