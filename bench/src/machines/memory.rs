//! What a running machine takes beside its QEMU: in Fairway, and in whatever stands beside QEMU; here, and on a node that has joined, where
//! a supervisor stands over each QEMU.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::boot::others;
use super::migration::{SECOND, Second};
use super::{Bench, objects};
use crate::process;

/// Machines with which and between which is measured: the first one starts things that all share.
const FIRST: usize = 1;
const ALL: usize = 9;
/// How long everything may take to run, and how long it then rests.
const PATIENCE: Duration = Duration::from_secs(120);
const REST: Duration = Duration::from_secs(20);

pub(super) struct Each {
    /// Bytes of Fairway without machines.
    pub(super) idle: u64,
    /// And with the first one.
    pub(super) first: u64,
    /// Bytes that each further machine adds to Fairway.
    pub(super) fairway: f64,
    /// Bytes of processes beside its QEMU.
    pub(super) beside: f64,
    /// Bytes of its QEMU, for comparison.
    pub(super) qemu: f64,
}

/// The same on a node that has joined.
pub(super) struct Joined {
    /// Bytes that each further machine adds to the node's process.
    pub(super) node: f64,
    /// Bytes that the supervisor of each has for itself: what it shares with other processes of the same program is there anyway.
    pub(super) supervisor: f64,
}

pub(super) async fn joined(bench: &Bench, binary: &Path) -> Result<Joined> {
    let second = Second::start(bench, binary).await?;
    let outcome = on(bench, &second).await;
    // While there is somebody to end them there.
    let cleared = bench.clear().await;
    drop(second);
    bench.delete(&format!("{}/{SECOND}", objects::NODES)).await?;
    let joined = outcome?;
    cleared?;
    Ok(joined)
}

async fn on(bench: &Bench, second: &Second) -> Result<Joined> {
    start(bench, 0, FIRST, Some(SECOND)).await?;
    let first = second.resident()?;
    start(bench, FIRST, ALL, Some(SECOND)).await?;
    let all = second.resident()?;
    let mut supervisors = 0;
    for (qemu, _) in bench.running() {
        let above = process::parent(qemu).context("a QEMU has ended")?;
        let line = std::fs::read(format!("/proc/{above}/cmdline"))?;
        if !line.split(|byte| *byte == 0).any(|word| word == b"supervise") {
            bail!(
                "{} stands over a QEMU of a node that has joined, and is no supervisor",
                String::from_utf8_lossy(&line)
            );
        }
        supervisors += process::private_bytes(above)?;
    }
    Ok(Joined {
        node: all.saturating_sub(first) as f64 / (ALL - FIRST) as f64,
        supervisor: supervisors as f64 / ALL as f64,
    })
}

pub(super) async fn measure(bench: &Bench) -> Result<Each> {
    tokio::time::sleep(REST).await;
    let idle = bench.server.resident()?;
    start(bench, 0, FIRST, None).await?;
    let first = bench.server.resident()?;
    start(bench, FIRST, ALL, None).await?;
    let all = bench.server.resident()?;
    let running = bench.running();
    let bytes = |pids: Vec<u32>| -> u64 {
        pids.into_iter()
            .filter_map(|pid| process::resident_bytes(pid).ok())
            .sum()
    };
    let beside: u64 = running
        .iter()
        .map(|(pid, directory)| bytes(others(directory, *pid)))
        .sum();
    let qemu = bytes(running.iter().map(|(pid, _)| *pid).collect());
    bench.clear().await?;
    Ok(Each {
        idle,
        first,
        fairway: all.saturating_sub(first) as f64 / (ALL - FIRST) as f64,
        beside: beside as f64 / ALL as f64,
        qemu: qemu as f64 / ALL as f64,
    })
}

/// Starts machines until there are so many, on a node if one is named, and lets everything rest.
async fn start(bench: &Bench, from: usize, count: usize, node: Option<&str>) -> Result<()> {
    for number in from..count {
        let mut machine = objects::machine(&format!("idle-{number}"), "Always", "32Mi");
        if let Some(node) = node {
            machine["spec"]["template"]["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
        }
        bench.create(objects::MACHINES, &machine).await?;
    }
    let began = Instant::now();
    while bench.running().len() < count {
        if began.elapsed() > PATIENCE {
            bail!(
                "{} of {count} machines run after {PATIENCE:?}",
                bench.running().len()
            );
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(REST).await;
    Ok(())
}
