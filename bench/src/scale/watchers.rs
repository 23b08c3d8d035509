//! Many watches on one collection, each of which must see every change: what a fleet of controllers and agents costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::megabytes;
use crate::client::{Call, Client};
use crate::load;
use crate::server::Server;
use crate::workloads::{collection, config_map, make_namespace};

/// Watches share connections as a client's informers do.
const PER_CONNECTION: usize = 20;
const CHANGES: usize = 500;
const PATIENCE: Duration = Duration::from_secs(300);
const NAMESPACE: &str = "watched";

/// CPU milliseconds per event and watcher, and the memory with all watchers connected.
pub(super) async fn measure(server: &Server, count: usize, divide: usize) -> Result<(f64, f64)> {
    make_namespace(server, NAMESPACE).await?;
    let changes = (CHANGES / divide).max(5);
    let seen = Arc::new(AtomicU64::new(0));
    let mut streams = Vec::new();
    for first in (0..count).step_by(PER_CONNECTION) {
        let client = Client::connect(&server.endpoint).await?;
        for _ in first..(first + PER_CONNECTION).min(count) {
            let stream = client
                .stream(format!(
                    "{}?watch=1&labelSelector=app%3Dbench",
                    collection(NAMESPACE)
                ))
                .await?;
            streams.push(tokio::spawn(count_events(stream, Arc::clone(&seen))));
        }
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let memory = megabytes(server)?;
    let before = seen.load(Ordering::Relaxed);
    let cpu = server.cpu()?;
    let writers = Client::connect_many(&server.endpoint, 4).await?;
    let call = |number: usize| Call::create(collection(NAMESPACE), config_map(number, "watched"));
    load::send_all(writers, changes, call).await?;
    let expected = (changes * count) as u64;
    let started = Instant::now();
    while seen.load(Ordering::Relaxed) - before < expected {
        ensure!(
            started.elapsed() < PATIENCE,
            "{} of {expected} events arrived",
            seen.load(Ordering::Relaxed) - before
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let spent = server.cpu()? - cpu;
    streams.iter().for_each(tokio::task::JoinHandle::abort);
    Ok((spent.as_secs_f64() * 1e3 / expected as f64, memory))
}

/// Events are lines; nothing more is read of them, because the load generator shares the machine.
async fn count_events(mut stream: Incoming, seen: Arc<AtomicU64>) -> Result<()> {
    while let Some(frame) = stream.frame().await {
        if let Ok(data) = frame?.into_data() {
            let lines = data.iter().filter(|byte| **byte == b'\n').count();
            seen.fetch_add(lines as u64, Ordering::Relaxed);
        }
    }
    Ok(())
}
