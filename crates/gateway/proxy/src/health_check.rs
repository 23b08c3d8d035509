//! Asking endpoints whether they are well, whether or not clients come.

use std::sync::Arc;

use bytes::BytesMut;
use fairway_fabric::{Destination, Origin};
use fairway_gateway_routes::table::{self, BackendProtocol};
use futures::StreamExt;
use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::h1::response;
use crate::options::HealthCheck;
use crate::proxy::Shared;
use crate::upstream::Endpoint;
use crate::upstream::cluster::Cluster;

/// Endpoints that are asked at the same time.
const AT_ONCE: usize = 32;

pub(crate) async fn run(shared: Arc<Shared>) {
    let Some(check) = shared.options.health.clone() else {
        return;
    };
    loop {
        tokio::time::sleep(check.interval).await;
        let plan = shared.plan.load_full();
        let mut all = Vec::new();
        for cluster in plan.clusters.values().filter(|cluster| is_asked(cluster)) {
            for endpoint in &cluster.endpoints {
                let key = &cluster.key;
                all.push((format!("{}.{}", key.service, key.namespace), Arc::clone(endpoint)));
            }
        }
        futures::stream::iter(all)
            .for_each_concurrent(AT_ONCE, |(host, endpoint)| {
                let (shared, check) = (&shared, &check);
                async move {
                    let well =
                        tokio::time::timeout(check.timeout, ask(shared, check, &host, &endpoint)).await;
                    let well = matches!(well, Ok(Some(true)));
                    if endpoint.health.checked(well, check.healthy, check.unhealthy) {
                        tracing::info!(%endpoint, well, "an endpoint's health has changed");
                    }
                }
            })
            .await;
    }
}

/// Plain HTTP/1.1 can be asked; the rest is judged by what becomes of requests.
fn is_asked(cluster: &Cluster) -> bool {
    cluster.tls.is_none() && cluster.spec.protocol != BackendProtocol::Http2
}

/// None: there was no answer.
async fn ask(shared: &Shared, check: &HealthCheck, host: &str, endpoint: &Endpoint) -> Option<bool> {
    let table::Endpoint::Address(address) = &endpoint.at else {
        return Some(true);
    };
    let mut to = Destination::new(endpoint.cluster.workspace.clone(), address.ip(), address.port());
    to.origin = Origin::Node;
    let mut io = shared.fabric.dial(to).await.ok()?;
    let request = format!(
        "GET {} HTTP/1.1\r\nhost: {host}\r\nuser-agent: fairway-health\r\nconnection: close\r\n\r\n",
        check.path
    );
    io.write_all(request.as_bytes()).await.ok()?;
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
