//! Asking endpoints whether they are well, whether or not clients come.
//!
//! How often is for the Service to say, so one workspace's many or slow endpoints must not keep others from being asked: each
//! has so many checks at a time, and what finds no room has its turn at the next tick.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use fairway_fabric::Connection;
use fairway_gateway_routes::table::{self, HealthCheck};
use http::Method;
use http::header::USER_AGENT;
use hyper::client::conn::http2::SendRequest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::body::Body;
use crate::h1::response;
use crate::proxy::Shared;
use crate::upstream::Endpoint;
use crate::upstream::cluster::Cluster;
use crate::upstream::dial::{self, Apart, Dialler};

/// The worker that asks.
pub(crate) const WORKER: usize = 0;
/// Who asks, as backends see it.
const AGENT: &str = "fairway-health";
/// Endpoints of one workspace that are asked at the same time.
const AT_ONCE: usize = 16;
/// How often is looked what is due, at most.
const TICK: Duration = Duration::from_millis(100);
/// How often is looked whether anybody wants checks.
const NOBODY: Duration = Duration::from_secs(1);

pub(crate) async fn run(shared: Arc<Shared>) {
    let mut asking = JoinSet::new();
    let mut room: HashMap<String, Arc<Semaphore>> = HashMap::new();
    let mut pause = NOBODY;
    loop {
        tokio::time::sleep(pause).await;
        while asking.try_join_next().is_some() {}
        let plan = shared.plan.load_full();
        let mut wanted = plan
            .clusters
            .values()
            .filter_map(|cluster| Some((cluster, check_of(&shared, cluster)?)))
            .peekable();
        pause = if wanted.peek().is_some() { TICK } else { NOBODY };
        for (cluster, check) in wanted {
            let workspace = &cluster.key.workspace;
            let room = room
                .entry(workspace.clone())
                .or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE)));
            for endpoint in &cluster.endpoints {
                let Ok(place) = Arc::clone(room).try_acquire_owned() else {
                    break;
                };
                if !endpoint.health.is_due(shared.now(), check.interval) {
                    continue;
                }
                let host = format!("{}.{}", cluster.key.service, cluster.key.namespace);
                let (shared, check) = (Arc::clone(&shared), check.clone());
                let (cluster, endpoint) = (Arc::clone(cluster), Arc::clone(endpoint));
                asking.spawn(async move {
                    let _place = place;
                    examine(&shared, &check, &host, &cluster, &endpoint).await;
                });
            }
        }
        room.retain(|_, room| room.available_permits() < AT_ONCE);
    }
}

async fn examine(
    shared: &Shared,
    check: &HealthCheck,
    host: &str,
    cluster: &Cluster,
    endpoint: &Arc<Endpoint>,
) {
    let answer = tokio::time::timeout(check.timeout, ask(shared, check, host, cluster, endpoint)).await;
    let well = matches!(answer, Ok(Some(true)));
    if endpoint.health.checked(well, check.healthy, check.unhealthy) {
        tracing::info!(%endpoint, well, "an endpoint's health has changed");
    }
}

/// How a backend is to be asked, if it is.
fn check_of<'a>(shared: &'a Shared, cluster: &'a Cluster) -> Option<&'a HealthCheck> {
    let own = cluster.spec.traffic.health.as_ref();
    own.or(shared.options.health.as_ref())
}

/// As requests would be sent: over TLS and HTTP/2 where the backend wants that. None: there was no answer.
async fn ask(
    shared: &Shared,
    check: &HealthCheck,
    host: &str,
    cluster: &Cluster,
    endpoint: &Arc<Endpoint>,
) -> Option<bool> {
    let table::Endpoint::Address(_) = &endpoint.at else {
        return Some(true);
    };
    let dialler = Dialler {
        fabric: &shared.fabric,
        worker: WORKER,
        connect: shared.options.timeouts.connect,
    };
    match dial::apart(dialler, cluster, endpoint).await.ok()? {
        Apart::Http1(io) => ask_http1(shared, check, host, io).await,
        Apart::Http2(sender, connection) => {
            let asked = ask_http2(check, host, cluster.tls.is_some(), sender);
            // The connection ends with the question.
            tokio::select! {
                answer = asked => answer,
                _ = connection => None,
            }
        }
    }
}

async fn ask_http1(
    shared: &Shared,
    check: &HealthCheck,
    host: &str,
    mut io: Box<dyn Connection>,
) -> Option<bool> {
    let request = format!(
        "GET {} HTTP/1.1\r\nhost: {host}\r\nuser-agent: {AGENT}\r\nconnection: close\r\n\r\n",
        check.path
    );
    io.write_all(request.as_bytes()).await.ok()?;
    io.flush().await.ok()?;
    let mut buffer = BytesMut::with_capacity(1024);
    loop {
        if io.read_buf(&mut buffer).await.ok()? == 0 {
            return None;
        }
        if let Some(head) =
            response::read(&mut buffer, shared.options.limits.response_head, &Method::GET).ok()?
        {
            return Some(head.status.is_success());
        }
    }
}

async fn ask_http2(
    check: &HealthCheck,
    host: &str,
    secure: bool,
    mut sender: SendRequest<Body>,
) -> Option<bool> {
    let uri = http::Uri::builder()
        .scheme(if secure { "https" } else { "http" })
        .authority(host)
        .path_and_query(check.path.as_str())
        .build()
        .ok()?;
    let request = http::Request::get(uri)
        .version(http::Version::HTTP_2)
        .header(USER_AGENT, AGENT)
        .body(Body::Empty)
        .ok()?;
    let answer = sender.send_request(request).await.ok()?;
    Some(answer.status().is_success())
}
