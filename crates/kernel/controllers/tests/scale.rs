//! What the controllers cost for each idle workspace, and what it costs to speak to one.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement that tells its figures"
)]
#![cfg(target_os = "linux")]

#[path = "cluster/harness.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod harness;

use std::time::{Duration, Instant};

use fairway_controller::{ClientFactory, WorkspaceId};
use harness::{Cluster, View, create, there};
use serde_json::json;

const WORKSPACES: u32 = 500;
/// Of the 20 KB that an idle workspace may take in all, most is for the server, which holds its objects.
const MOST_BYTES: u64 = 6_000;

/// What the ConfigMap with the certificates says of itself.
const ROOT_CA_DESCRIPTION: &str = "The certificates by which the Kubernetes API can be trusted at its \
     addresses inside the cluster, such as kubernetes.default.svc. They are meant for nothing else.";

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    1024 * line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
}

async fn started(cluster: &mut Cluster, place: &View, name: &str) -> u64 {
    let before = resident_bytes();
    cluster.start_controllers();
    place.namespace(name).await;
    there(&place.config_maps(name), "kube-root-ca.crt").await;
    there(
        &place.api("v1", "ServiceAccount", "serviceaccounts", name),
        "default",
    )
    .await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    resident_bytes().saturating_sub(before)
}

/// One test, so that nothing else runs in this process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_workspace_takes_little() {
    let mut cluster = Cluster::start().await;
    cluster.stop_controllers().await;
    let first = cluster.workspace("2c8f0a9b1c3dffff").await;
    let alone = started(&mut cluster, &first, "n").await;
    cluster.stop_controllers().await;
    let before = resident_bytes();
    for number in 0..WORKSPACES {
        let place = cluster.workspace(&format!("2c8f0a9b1c3d{number:04}")).await;
        place.namespace("default").await;
        let account = place.api("v1", "ServiceAccount", "serviceaccounts", "default");
        create(&account, json!({"metadata": {"name": "default"}})).await;
        let description = json!({"kubernetes.io/description": ROOT_CA_DESCRIPTION});
        let certificates = json!({
            "metadata": {"name": "kube-root-ca.crt", "annotations": description}, "data": {"ca.crt": harness::ROOT_CA},
        });
        create(&place.config_maps("default"), certificates).await;
    }
    let server = resident_bytes().saturating_sub(before) / u64::from(WORKSPACES);
    let together = started(&mut cluster, &first, "m").await;
    let controllers = together.saturating_sub(alone) / u64::from(WORKSPACES);

    // A client is made for each piece of work in a workspace.
    let clients = ClientFactory::across_workspaces(|_| {
        tower::service_fn(|_: http::Request<kube::client::Body>| async {
            Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::empty()))
        })
    })
    .clients("u");
    let workspace = WorkspaceId::parse("2c8f0a9b1c3d0000").unwrap();
    let begun = Instant::now();
    for _ in 0..10_000 {
        drop(clients.of(&workspace));
        tokio::task::yield_now().await;
    }
    let client = begun.elapsed() / 10_000;
    println!(
        "an idle workspace: {server} bytes in the server, at most {controllers} in its controllers; a client: {client:?}"
    );
    cluster.stop().await;
    assert!(controllers <= MOST_BYTES, "{controllers} bytes");
}
