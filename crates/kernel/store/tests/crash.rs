//! Power fails in the middle of any write or sync, what was not synced is lost or torn, and nothing acknowledged is
//! missing when the store opens again.
//!
//! `FAIRWAY_STORE_CRASHES` sets the number of power failures.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "script/pairs.rs"]
mod script;

use std::env;
use std::sync::Arc;

use fairway_kernel_store::engine::crash::SimulatedDisk;
use fairway_kernel_store::{CrashTestStore, Options, Revision, Store, StoreError, Txn};

use script::{Expected, transaction};

const WRITERS: usize = 4;
const FAILURES_PER_DISK: u64 = 10;

/// Runs the writers until power fails; what each was told.
async fn write_until_power_fails(store: &Arc<CrashTestStore>, steps: &[u64]) -> Vec<(usize, Revision)> {
    let mut writers = Vec::new();
    for (writer, first) in steps.iter().copied().enumerate() {
        let store = Arc::clone(store);
        writers.push(tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            for step in first..first + 5000 {
                match store.txn(transaction(writer, step)).await {
                    Ok(response) => acknowledged.push((writer, response.revision)),
                    Err(StoreError::Io { .. } | StoreError::Closed(_)) => return acknowledged,
                    Err(error) => panic!("{error}"),
                }
                if step % 9 == 0 {
                    let revision = acknowledged.last().unwrap().1;
                    // It may be the one that meets the failure.
                    let _ = store.compact(Revision(revision.0.saturating_sub(5))).await;
                }
            }
            panic!("power never failed");
        }));
    }
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    acknowledged
}

/// Several power failures on one disk; what was wrong, if anything.
async fn run(disk: &SimulatedDisk, seed: u64) -> Result<(usize, u32), String> {
    let mut expected = vec![Expected::default(); WRITERS];
    let (mut last, mut total, mut under_way) = (Revision(0), 0, 0);
    for failure in 0..FAILURES_PER_DISK {
        let store =
            Arc::new(CrashTestStore::open(disk, &Options::default()).map_err(|error| error.to_string())?);
        disk.fail_after((seed * 31 + failure * 17) % 60);
        let steps: Vec<u64> = expected.iter().map(|writer| writer.next).collect();
        let acknowledged = write_until_power_fails(&store, &steps).await;
        drop(store);
        disk.restart();

        total += acknowledged.len();
        let before = last;
        for (writer, revision) in acknowledged {
            if revision <= before {
                return Err(format!("revision {revision:?} was used again"));
            }
            last = last.max(revision);
            expected[writer].apply(writer);
        }
        let store = CrashTestStore::open(disk, &Options::default()).map_err(|error| error.to_string())?;
        let now = store.revision().await.unwrap();
        if now < last {
            return Err(format!("revision went back from {last:?} to {now:?}"));
        }
        last = now;
        for (writer, expected) in expected.iter_mut().enumerate() {
            under_way += u32::from(expected.settle(&store, writer).await?);
        }
        store.close().await.unwrap();
    }
    Ok((total, under_way))
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_when_power_fails() {
    let failures: u64 = env::var("FAIRWAY_STORE_CRASHES").map_or(1000, |count| count.parse().unwrap());
    let (mut total, mut under_way) = (0, 0);
    for seed in 0..failures.div_ceil(FAILURES_PER_DISK) {
        let disk = SimulatedDisk::new(seed);
        let (acknowledged, landed) = run(&disk, seed)
            .await
            .unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        total += acknowledged;
        under_way += landed;
    }
    println!("{failures} failures of power, {total} acknowledged, {under_way} found that were under way");
    assert!(total as u64 > failures);
    assert!(
        under_way > 0,
        "some writes arrive although nobody was told; if none ever does, the disk is too kind"
    );
}

#[tokio::test]
async fn a_disk_that_lies_about_syncing_is_noticed() {
    // If this passed, the test above would prove nothing.
    let mut noticed = 0;
    for seed in 0..20 {
        let disk = SimulatedDisk::new(seed);
        disk.lie_about_syncing();
        noticed += u32::from(run(&disk, seed).await.is_err());
    }
    assert!(noticed >= 18, "only {noticed} of 20");
}

#[tokio::test]
async fn a_full_disk_refuses_and_recovers() {
    let disk = SimulatedDisk::new(7);
    let store = CrashTestStore::open(&disk, &Options::default()).unwrap();
    disk.set_capacity(20_000);
    let mut expected = Expected::default();
    let refused = loop {
        match store.txn(transaction(0, expected.next)).await {
            Ok(_) => expected.apply(0),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, StoreError::DiskFull(_)), "{refused:?}");
    assert_eq!(expected.settle(&store, 0).await, Ok(false));
    let (empty, used) = (Txn::default(), disk.durable_bytes());
    assert!(
        store.txn(empty).await.is_ok(),
        "what does not write does not fail"
    );
    disk.set_capacity(used + 1_000_000);
    assert!(store.txn(transaction(0, expected.next)).await.is_ok());
    expected.apply(0);
    drop(store);
    disk.restart();
    let store = CrashTestStore::open(&disk, &Options::default()).unwrap();
    assert_eq!(expected.settle(&store, 0).await, Ok(false));
}
