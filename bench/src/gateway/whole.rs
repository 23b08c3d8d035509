//! Fairway itself: what its gateways take of its memory when nothing happens, and how long a change takes from the API to the
//! first request that is served by it. Routes redirect, so no backend is needed.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::{FLOOR_IDLE, Floor, peers};
use crate::client::{Call, Client};
use crate::fairway;
use crate::server::{self, Server};

const GATEWAYS: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/default/gateways";
const ROUTES: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes";
/// Changes that are measured.
const CHANGES: usize = 20;
/// How long a server rests before its memory is looked at, and how often it is.
const REST: Duration = Duration::from_secs(3);
const LOOKS: usize = 5;
const LIMIT: Duration = Duration::from_secs(30);

pub(super) struct Whole {
    before: u64,
    after: u64,
    changes: Vec<Duration>,
}

impl Whole {
    pub(super) fn floors(&self) -> [Floor; 2] {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let more = mib(self.after) - mib(self.before);
        [
            Floor::change(
                "in Fairway, from the write of an HTTPRoute to the first request",
                &self.changes,
            ),
            Floor {
                what: format!(
                    "in Fairway, idle, more with a Gateway and a route than the {:.1} MiB without",
                    mib(self.before)
                ),
                measured: format!("{more:.1} MiB"),
                most: format!("{FLOOR_IDLE} MiB"),
                held: more < FLOOR_IDLE,
            },
        ]
    }
}

pub(super) async fn measure(binary: &Path, directory: &Path) -> Result<Whole> {
    eprintln!("Fairway itself");
    let directory = directory.join("fairway");
    std::fs::create_dir_all(&directory).context("cannot make a directory for Fairway")?;
    let server = fairway::start(binary, &directory).await?;
    let before = rested(&server).await?;
    let client = Client::connect(&server.endpoint).await?;
    let port = server::free_port()?;
    let gateway = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "bench"},
        "spec": {"gatewayClassName": "fairway", "listeners": [{"name": "http", "port": port, "protocol": "HTTP"}]},
    });
    create(&client, GATEWAYS, &gateway).await?;
    create(&client, ROUTES, &route("/first")).await?;
    let door = SocketAddr::from(([127, 0, 0, 1], port));
    super::until_open(door).await?;
    let mut stream = TcpStream::connect(door).await?;
    until_served(&mut stream, "/first").await?;
    let after = rested(&server).await?;
    let mut changes = Vec::new();
    for change in 0..CHANGES {
        let path = format!("/changed/{change}");
        let begun = Instant::now();
        let patch = json!({"spec": route(&path)["spec"]}).to_string();
        let call = Call::merge(format!("{ROUTES}/bench"), patch);
        client.send(call).await?.success()?;
        until_served(&mut stream, &path).await?;
        changes.push(begun.elapsed());
    }
    server.stop().await?;
    Ok(Whole {
        before,
        after,
        changes,
    })
}

/// The least that it has after a while: what a start has left behind is given back now and then.
async fn rested(server: &Server) -> Result<u64> {
    let mut least = u64::MAX;
    for _ in 0..LOOKS {
        tokio::time::sleep(REST).await;
        least = least.min(server.resident()?);
    }
    Ok(least)
}

async fn create(client: &Client, path: &str, object: &Value) -> Result<()> {
    let reply = client.send(Call::create(path, object.to_string())).await?;
    reply.success().map(drop)
}

fn route(path: &str) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "bench"},
        "spec": {"parentRefs": [{"name": "bench"}], "rules": [{
            "matches": [{"path": {"type": "PathPrefix", "value": path}}],
            "filters": [{"type": "RequestRedirect", "requestRedirect": {"statusCode": 302, "hostname": "elsewhere.example"}}],
        }]},
    })
}

async fn until_served(stream: &mut TcpStream, path: &str) -> Result<()> {
    let begun = Instant::now();
    while !peers::is_redirected(stream, path).await? {
        if begun.elapsed() > LIMIT {
            bail!("{path} is not served {LIMIT:?} after its route was written");
        }
    }
    Ok(())
}
