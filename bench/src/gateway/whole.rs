//! Fairway itself: what its gateways take of its memory when nothing happens, and how long a change takes from the API to the
//! first request that is served by it: with one route, and beside thousands of others that redirect, that lead to a Service, and that a
//! policy of their Gateway guards besides. The route that is asked for redirects, so no backend is needed.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::{FLOOR_IDLE, Floor, peers};
use crate::client::{Call, Client};
use crate::fairway;
use crate::renderers::measured::median;
use crate::server::{self, Server};

const GATEWAYS: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/default/gateways";
const ROUTES: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const POLICIES: &str = "/apis/kuadrant.io/v1/namespaces/default/authpolicies";
/// Changes that are measured.
const CHANGES: usize = 20;
/// How long a server rests before its memory is looked at: it gives back what work has mapped after a quiet quarter of a minute,
/// which the work itself may have disturbed once.
const REST: Duration = Duration::from_secs(35);
/// How often it is looked at, and how long between two looks.
const LOOKS: usize = 5;
const PAUSE: Duration = Duration::from_secs(3);
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const LIMIT: Duration = Duration::from_secs(30);

/// People write one route after the other. What comes sooner waits, by design, for twice as long as the last build took.
const APART: Duration = Duration::from_secs(1);
/// Other routes beside which changes are measured again.
const CROWD: usize = 9_999;

pub(super) struct Whole {
    before: Memory,
    after: Memory,
    changes: Vec<Duration>,
    /// Beside the crowd.
    crowded: Vec<Duration>,
    /// The crowd leads to a Service.
    backed: Vec<Duration>,
    /// And a policy of the Gateway guards all of it.
    guarded: Vec<Duration>,
}

/// What a server that rests has, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Memory {
    resident: u64,
    /// Of that, what is not pages of files.
    anonymous: u64,
}

impl Whole {
    pub(super) fn floors(&self) -> [Floor; 5] {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let more = mib(self.after.resident) - mib(self.before.resident);
        let own = mib(self.after.anonymous) - mib(self.before.anonymous);
        [
            Floor::change(
                "in Fairway, from the write of an HTTPRoute to the first request",
                &self.changes,
            ),
            Floor::change("in Fairway, the same with 9,999 other HTTPRoutes", &self.crowded),
            Floor::change("in Fairway, the same where those lead to a Service", &self.backed),
            Floor::change(
                "in Fairway, the same where an AuthPolicy of the Gateway guards all of them",
                &self.guarded,
            ),
            Floor {
                what: format!(
                    "in Fairway, idle, more with a Gateway and a route than the {:.1} MiB without",
                    mib(self.before.resident)
                ),
                measured: format!("{more:.1} MiB, {own:.1} of it not pages of files"),
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
    let client = Client::connect(&server.endpoint).await?;
    // Otherwise a Gateway would count for what any first write takes.
    let scratch = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bench"}});
    create(&client, CONFIG_MAPS, &scratch).await?;
    let call = Call::delete(format!("{CONFIG_MAPS}/bench"));
    client.send(call).await?.success()?;
    let before = rested(&server).await?;
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
    let changes = changes(&client, &mut stream, "changed").await?;
    for other in 0..CROWD {
        let mut other_route = route(&format!("/crowd/{other}"));
        other_route["metadata"]["name"] = format!("crowd-{other}").into();
        create(&client, ROUTES, &other_route).await?;
    }
    until_served(&mut stream, &format!("/crowd/{}", CROWD - 1)).await?;
    tokio::time::sleep(REST).await;
    let crowded = self::changes(&client, &mut stream, "crowded").await?;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "bench"}, "spec": {"ports": [{"port": 80}]},
    });
    create(&client, SERVICES, &service).await?;
    for other in 0..CROWD {
        let patch = json!({"spec": {"rules": [{
            "matches": [{"path": {"type": "PathPrefix", "value": format!("/crowd/{other}")}}],
            "backendRefs": [{"name": "bench", "port": 80}],
        }]}});
        let call = Call::merge(format!("{ROUTES}/crowd-{other}"), patch.to_string());
        client.send(call).await?.success()?;
    }
    tokio::time::sleep(REST).await;
    let backed = self::changes(&client, &mut stream, "backed").await?;
    let policy = json!({
        "apiVersion": "kuadrant.io/v1", "kind": "AuthPolicy", "metadata": {"name": "bench"},
        "spec": {
            "targetRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "bench"},
            "rules": {"authentication": {"everybody": {"anonymous": {}}}},
        },
    });
    create(&client, POLICIES, &policy).await?;
    tokio::time::sleep(REST).await;
    let guarded = self::changes(&client, &mut stream, "guarded").await?;
    server.stop().await?;
    Ok(Whole {
        before,
        after,
        changes,
        crowded,
        backed,
        guarded,
    })
}

/// How long each of some changes of one route takes, from its write to the first request.
async fn changes(client: &Client, stream: &mut TcpStream, under: &str) -> Result<Vec<Duration>> {
    let mut taken = Vec::new();
    for change in 0..CHANGES {
        let path = format!("/{under}/{change}");
        let begun = Instant::now();
        let patch = json!({"spec": route(&path)["spec"]}).to_string();
        let call = Call::merge(format!("{ROUTES}/bench"), patch);
        client.send(call).await?.success()?;
        until_served(stream, &path).await?;
        taken.push(begun.elapsed());
        tokio::time::sleep(APART).await;
    }
    Ok(taken)
}

/// What it has once it has rested, in the middle of some looks.
async fn rested(server: &Server) -> Result<Memory> {
    tokio::time::sleep(REST).await;
    let (mut resident, mut anonymous) = (Vec::new(), Vec::new());
    for _ in 0..LOOKS {
        tokio::time::sleep(PAUSE).await;
        resident.push(server.resident()?);
        anonymous.push(server.anonymous()?);
    }
    let middle = |values| median(values).context("nothing was looked at");
    Ok(Memory {
        resident: middle(resident)?,
        anonymous: middle(anonymous)?,
    })
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
