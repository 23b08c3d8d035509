//! What the controllers cost: nothing while nothing happens, and little for each write.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement that tells its figures"
)]
#![cfg(target_os = "linux")]

#[path = "cluster/harness.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod harness;

use std::time::Duration;

use harness::{Cluster, create, there};
use serde_json::json;

/// User and system time of this process so far. The kernel counts in hundredths of a second.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// One test, so that nothing else runs in this process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_controllers_use_no_time() {
    const WRITES: u32 = 1000;
    let mut bare = Cluster::start().await;
    bare.stop_controllers().await;
    let config_maps = bare.config_maps("default");
    let before = cpu();
    for number in 0..WRITES {
        create(
            &config_maps,
            json!({"metadata": {"name": format!("c{number}")}, "data": {"k": "v"}}),
        )
        .await;
    }
    let bare_cost = (cpu() - before) / WRITES;
    bare.stop().await;

    let memory = resident_kib();
    let cluster = Cluster::start().await;
    there(&cluster.config_maps("kube-system"), "kube-root-ca.crt").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let memory = resident_kib().saturating_sub(memory);
    let before = cpu();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let idle = cpu() - before;

    let config_maps = cluster.config_maps("default");
    let before = cpu();
    for number in 0..WRITES {
        create(
            &config_maps,
            json!({"metadata": {"name": format!("c{number}")}, "data": {"k": "v"}}),
        )
        .await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let cost = (cpu() - before) / WRITES;
    println!(
        "idle: {idle:?} in 3 s, {memory} KiB with a kernel; a create: {bare_cost:?} without, {cost:?} with them"
    );
    cluster.stop().await;
    assert!(idle <= Duration::from_millis(60), "{idle:?} of 3 s");
}
