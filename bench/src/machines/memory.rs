//! What a running machine takes beside its QEMU: in Fairway, and in whatever stands beside QEMU.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::boot::others;
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

pub(super) async fn measure(bench: &Bench) -> Result<Each> {
    tokio::time::sleep(REST).await;
    let idle = bench.server.resident()?;
    let first = with(bench, 0, FIRST).await?;
    let all = with(bench, FIRST, ALL).await?;
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

/// Starts machines until there are so many, and returns what Fairway takes after a rest.
async fn with(bench: &Bench, from: usize, count: usize) -> Result<u64> {
    for number in from..count {
        let machine = objects::machine(&format!("idle-{number}"), "Always", "32Mi");
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
    bench.server.resident()
}
