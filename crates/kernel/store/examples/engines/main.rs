//! Compares engines under the real store: `cargo run --release --features engine-comparison --example engines`.
//!
//! Each engine runs in a process of its own, so that memory and CPU time are its own. Writes are creations of 1 KiB
//! under a comparison, as the API server makes them; every commit is synced. The columns of CPU time and of disk speed
//! are the ones to trust on a machine that others use too.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "a program for developers"
)]

mod fjall_engine;
mod record;
mod redb_engine;

use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairway_kernel_store::engine::Engine;
use fairway_kernel_store::engine::memory::MemoryEngine;
use fairway_kernel_store::engine::sqlite::SqliteEngine;
use fairway_kernel_store::{
    Compare, CompareTarget, KeyRange, LogStore, Op, Options, Range, Revision, Store, StoreError, Txn,
};

const ENGINES: [&str; 4] = ["sqlite", "fjall", "redb", "memory"];
const VALUE_BYTES: usize = 1024;
const SCANNED: u64 = 10_000;
const LOADED: u64 = 100_000;

fn open(engine: &str, directory: &Path) -> Result<LogStore, StoreError> {
    let engine: Box<dyn Engine> = match engine {
        "sqlite" => Box::new(SqliteEngine::open(directory)?),
        "fjall" => Box::new(fjall_engine::FjallEngine::open(directory)?),
        "redb" => Box::new(redb_engine::RedbEngine::open(directory)?),
        "memory" => Box::new(MemoryEngine::default()),
        other => panic!("no engine {other}"),
    };
    LogStore::start(engine, &Options::default())
}

/// User and system time of this process.
fn cpu() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_ascii_whitespace()
        .collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

fn resident_mb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_ascii_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        / 1024
}

fn disk_mb(directory: &Path) -> u64 {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    files
        .map(|entry| {
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() {
                disk_mb(&entry.path())
            } else {
                metadata.len() / 1024 / 1024
            }
        })
        .sum()
}

fn create(number: u64) -> Txn {
    let key = Bytes::from(format!(
        "/core/configmaps/builtin/root/default/object-{number:08}"
    ));
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let value: Bytes = (0..VALUE_BYTES)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect();
    Txn {
        compare: vec![Compare {
            key: key.clone(),
            target: CompareTarget::ModRevision(Revision(0)),
        }],
        success: vec![Op::Put {
            key,
            value,
            lease: None,
        }],
        failure: Vec::new(),
    }
}

/// Latencies of creations by some writers, in order, and the CPU time of one.
async fn write(
    store: &Arc<LogStore>,
    next: &Arc<AtomicU64>,
    writers: usize,
    until: Until,
) -> (Vec<Duration>, f64, f64) {
    let (began, cpu_before) = (Instant::now(), cpu());
    let mut tasks = Vec::new();
    for _ in 0..writers {
        let (store, next) = (Arc::clone(store), Arc::clone(next));
        tasks.push(tokio::spawn(async move {
            let mut latencies = Vec::new();
            while match until {
                Until::Elapsed(limit) => began.elapsed() < limit,
                Until::Count(limit) => next.load(Ordering::Relaxed) < limit,
            } {
                let txn = create(next.fetch_add(1, Ordering::Relaxed));
                let start = Instant::now();
                assert!(store.txn(txn).await.unwrap().succeeded);
                latencies.push(start.elapsed());
            }
            latencies
        }));
    }
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.unwrap());
    }
    latencies.sort();
    let count = latencies.len() as f64;
    let cpu_each = (cpu() - cpu_before).as_secs_f64() * 1e6 / count;
    (latencies, count / began.elapsed().as_secs_f64(), cpu_each)
}

#[derive(Clone, Copy)]
enum Until {
    Elapsed(Duration),
    Count(u64),
}

async fn measure(engine: &str, directory: &Path, seconds: u64) {
    let store = Arc::new(open(engine, directory).unwrap());
    let next = Arc::new(AtomicU64::new(0));
    for writers in [1, 16, 64] {
        let (latencies, rate, cpu_each) = write(
            &store,
            &next,
            writers,
            Until::Elapsed(Duration::from_secs(seconds)),
        )
        .await;
        let at = |part: f64| latencies[(latencies.len() as f64 * part) as usize].as_secs_f64() * 1e3;
        println!(
            "{engine:7} {writers:3} writers: {rate:7.0} puts/s, p50 {:6.2} ms, p99 {:6.2} ms, CPU {cpu_each:5.1} us/put, \
             RSS {} MB",
            at(0.5),
            at(0.99),
            resident_mb()
        );
    }
    let range = Range {
        keys: KeyRange::prefix(b"/core/"),
        revision: None,
        limit: SCANNED as usize,
        keys_only: false,
        count_only: false,
    };
    let mut scans = Vec::new();
    for _ in 0..3 {
        let start = Instant::now();
        assert_eq!(
            store.range(range.clone()).await.unwrap().kvs.len(),
            SCANNED as usize
        );
        scans.push(format!("{:.0}", start.elapsed().as_secs_f64() * 1e3));
    }
    println!("{engine:7} reads {SCANNED} values: {} ms", scans.join(", "));
    let already = next.load(Ordering::Relaxed);
    write(&store, &next, 64, Until::Count(LOADED)).await;
    let records = next.load(Ordering::Relaxed);
    println!(
        "{engine:7} {records} records ({already} timed): {} MB on disk, RSS {} MB",
        disk_mb(directory),
        resident_mb()
    );
    Arc::into_inner(store).unwrap().close().await.unwrap();
}

/// Opens what `measure` left, in a fresh process.
fn reopen(engine: &str, directory: &Path) {
    let (start, cpu_before) = (Instant::now(), cpu());
    let store = open(engine, directory).unwrap();
    let elapsed = start.elapsed().as_secs_f64() * 1e3;
    let cpu = (cpu() - cpu_before).as_millis();
    println!(
        "{engine:7} opens in {elapsed:.0} ms ({cpu} ms CPU), RSS {} MB; {store:?}",
        resident_mb()
    );
}

/// What the disk gives at best: 4 KiB written over and over, each synced.
fn disk_speed(directory: &Path) {
    let file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .open(directory.join("speed"))
        .unwrap();
    let page = [7; 4096];
    let mut times: Vec<Duration> = (0..500)
        .map(|n| {
            let start = Instant::now();
            file.write_all_at(&page, n % 64 * 4096).unwrap();
            file.sync_data().unwrap();
            start.elapsed()
        })
        .collect();
    times.sort();
    println!(
        "fdatasync of 4 KiB: p50 {:.2} ms, p99 {:.2} ms",
        ms(times[250]),
        ms(times[495])
    );
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [mode, engine, directory, seconds] = &arguments[..] {
        let directory = Path::new(directory);
        if mode == "reopen" {
            return reopen(engine, directory);
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        return runtime.block_on(measure(engine, directory, seconds.parse().unwrap()));
    }
    let seconds = arguments.first().map_or("5", String::as_str);
    let parent = tempfile::tempdir_in(env::current_dir().unwrap()).unwrap();
    for engine in ENGINES {
        disk_speed(parent.path());
        let directory = parent.path().join(engine);
        for mode in ["measure", "reopen"] {
            let run = |mode: &str| {
                Command::new(env::current_exe().unwrap())
                    .args([mode, engine, directory.to_str().unwrap(), seconds])
                    .status()
                    .unwrap()
            };
            if mode == "measure" || engine != "memory" {
                assert!(run(mode).success());
            }
        }
        std::io::stdout().flush().unwrap();
    }
}
