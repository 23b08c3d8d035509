//! What this machine can do at best: how often it makes a write durable, how fast it moves memory, how fast it reads
//! JSON. No server can be faster, so the distance to these is the distance that is left.

use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::figures::{Figures, milliseconds, percentile};

const SYNCS: usize = 500;

pub(crate) fn measure(data: &Path) -> Result<Figures> {
    let mut figures = Figures::default();
    sync(data, &mut figures).context("measuring fdatasync")?;
    figures.set("memcpy", "gigabytes/s", memory_rate());
    figures.set("JSON parse", "megabytes/s", parse_rate()?);
    Ok(figures)
}

/// Appends of 4 KiB, each made durable, in the directory that the servers will use: what one commit costs.
fn sync(data: &Path, figures: &mut Figures) -> Result<()> {
    let mut file = tempfile::tempfile_in(data)?;
    let block = [7_u8; 4096];
    let mut latencies = Vec::with_capacity(SYNCS);
    let started = Instant::now();
    for _ in 0..SYNCS {
        file.write_all(&block)?;
        let begin = Instant::now();
        file.sync_data()?;
        latencies.push(begin.elapsed());
    }
    figures.set(
        "fdatasync",
        "rate",
        SYNCS as f64 / started.elapsed().as_secs_f64(),
    );
    latencies.sort_unstable();
    figures.set("fdatasync", "p50", milliseconds(percentile(&latencies, 0.50)));
    figures.set("fdatasync", "p99", milliseconds(percentile(&latencies, 0.99)));
    Ok(())
}

/// The best of several tries of one core: a ceiling is not an average.
fn best_rate(bytes: usize, mut work: impl FnMut()) -> f64 {
    let best = (0..8)
        .map(|_| {
            let begin = Instant::now();
            work();
            begin.elapsed()
        })
        .min()
        .unwrap_or(Duration::MAX);
    bytes as f64 / best.as_secs_f64()
}

fn memory_rate() -> f64 {
    // Larger than the caches, as the answer to a large list is.
    let from = vec![1_u8; 64 << 20];
    let mut to = vec![0_u8; from.len()];
    best_rate(from.len(), || {
        to.copy_from_slice(black_box(&from));
        black_box(&to);
    }) / 1e9
}

/// Reads a list like the one that is measured into a tree of values.
fn parse_rate() -> Result<f64> {
    let item = |number: usize| {
        json!({"metadata": {"name": format!("object-{number:06}"), "namespace": "many",
                            "uid": "6d7ae9a0-0000-4000-8000-000000000000", "resourceVersion": number.to_string(),
                            "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "bench"}},
               "data": {"number": number.to_string(), "value": "first"}})
    };
    let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "items": (0..10_000).map(item).collect::<Vec<_>>()});
    let text = list.to_string();
    let mut parsed: Result<Value, _> = Ok(Value::Null);
    let rate = best_rate(text.len(), || {
        parsed = serde_json::from_slice(black_box(text.as_bytes()));
    });
    parsed.context("the list is JSON")?;
    Ok(rate / 1e6)
}
