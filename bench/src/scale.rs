//! How cost grows with size: the same figures at 1,000, 10,000 and 100,000 objects, then with 1,000 CRDs and 1,000
//! watchers on top, then a start on all of it. A server whose costs are flat stays a laptop's server.

mod plot;
mod report;
mod watchers;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;

use crate::client::{Call, Client};
use crate::figures::milliseconds;
use crate::load;
use crate::server::Server;
use crate::workloads::{MEBIBYTE, collection, config_map, crds, make_namespace, name};
use crate::{fairway, peer};

/// Objects at which everything is measured.
const STAGES: [usize; 3] = [1_000, 10_000, 100_000];
const CLIENTS: usize = 16;
const NAMESPACE: &str = "scale";

#[derive(Args)]
pub(crate) struct Options {
    /// The Fairway binary to measure.
    #[arg(long, default_value = "target/release/fairway")]
    fairway: PathBuf,
    /// Where etcd and kube-apiserver are (scripts/peers.sh builds them).
    #[arg(long, default_value = ".tools/bin")]
    bin: PathBuf,
    /// Divides every count: 100 for a quick look, which is never written as a result.
    #[arg(long, default_value_t = 1)]
    divide: usize,
    /// Where data directories are made.
    #[arg(long, default_value = "target/bench")]
    data: PathBuf,
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
}

/// CPU milliseconds per operation, and memory, at one number of objects.
pub(crate) struct Point {
    pub(crate) objects: usize,
    pub(crate) create: f64,
    pub(crate) get: f64,
    pub(crate) apply: f64,
    pub(crate) page: f64,
    pub(crate) megabytes: f64,
}

/// One server's figures.
pub(crate) struct Growth {
    pub(crate) points: Vec<Point>,
    /// Until all CRDs were established, in seconds.
    pub(crate) crds_seconds: f64,
    pub(crate) megabytes_with_crds: f64,
    pub(crate) megabytes_with_watchers: f64,
    /// CPU milliseconds for one event to one watcher.
    pub(crate) event: f64,
    /// Ready after a start on all of it.
    pub(crate) ready_ms: f64,
    /// Resident after that start, when it has been idle for a moment.
    pub(crate) megabytes_after_start: f64,
}

pub(crate) async fn run(options: &Options) -> Result<()> {
    std::fs::create_dir_all(&options.data)
        .with_context(|| format!("cannot make {}", options.data.display()))?;
    let ours = tempfile::tempdir_in(&options.data)?;
    eprintln!("Fairway");
    let start = async || fairway::start(&options.fairway, ours.path()).await;
    let fairway = measure(start, options.divide)
        .await
        .context("measuring Fairway")?;
    drop(ours);
    let theirs = tempfile::tempdir_in(&options.data)?;
    eprintln!("etcd + kube-apiserver");
    let start = async || peer::start(&options.bin, theirs.path(), false).await;
    let peer = measure(start, options.divide)
        .await
        .context("measuring etcd and kube-apiserver")?;
    let text = report::compare(&fairway, &peer);
    println!("{text}");
    if options.divide == 1 {
        write(&options.results, &text, &plot::draw(&fairway, &peer))?;
    }
    Ok(())
}

fn write(results: &Path, text: &str, plot: &str) -> Result<()> {
    let stem = format!(
        "scale-{}-{}",
        jiff::Timestamp::now().strftime("%Y-%m-%d"),
        crate::report::commit()
    );
    let image = results.join(format!("{stem}.svg"));
    std::fs::write(&image, plot).with_context(|| format!("cannot write {}", image.display()))?;
    let page = results.join(format!("{stem}.md"));
    let text = format!("{text}\n![cost and memory over the number of objects]({stem}.svg)\n");
    std::fs::write(&page, text).with_context(|| format!("cannot write {}", page.display()))?;
    eprintln!("written to {} and {}", page.display(), image.display());
    Ok(())
}

async fn measure(start: impl AsyncFn() -> Result<Server>, divide: usize) -> Result<Growth> {
    let server = start().await?;
    make_namespace(&server, NAMESPACE).await?;
    let mut points = Vec::new();
    let mut filled = 0;
    for stage in STAGES.map(|stage| stage / divide) {
        eprintln!("  {stage} objects");
        points.push(at_stage(&server, filled, stage).await?);
        filled = stage;
    }
    let count = 1_000 / divide;
    eprintln!("  {count} CRDs");
    let started = Instant::now();
    crds::create(&Client::connect(&server.endpoint).await?, count).await?;
    let crds_seconds = started.elapsed().as_secs_f64();
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let megabytes_with_crds = megabytes(&server)?;
    eprintln!("  {count} watchers");
    let (event, megabytes_with_watchers) = watchers::measure(&server, count, divide).await?;
    server.stop().await?;
    eprintln!("  start on all of it");
    let server = start().await?;
    let ready_ms = server.ready_after.map_or(f64::NAN, milliseconds);
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let megabytes_after_start = megabytes(&server)?;
    server.stop().await?;
    Ok(Growth {
        points,
        crds_seconds,
        megabytes_with_crds,
        megabytes_with_watchers,
        event,
        ready_ms,
        megabytes_after_start,
    })
}

/// Fills up to `stage` objects; the last of them, and what follows, are measured.
async fn at_stage(server: &Server, filled: usize, stage: usize) -> Result<Point> {
    let measured = (stage - filled).min(5_000) / 2;
    let fill = stage - filled - measured;
    let create_from = |first: usize| {
        move |number: usize| Call::create(collection(NAMESPACE), config_map(first + number, "first"))
    };
    load::run(server, CLIENTS, fill, create_from(filled)).await?;
    let create = load::run(server, CLIENTS, measured, create_from(filled + fill)).await?;
    let operations = stage.min(5_000);
    // A stride that shares no factor with the count visits objects all over the range.
    let get = load::run(server, CLIENTS, operations, move |number| {
        Call::get(format!(
            "{}/{}",
            collection(NAMESPACE),
            name(number * 7919 % stage)
        ))
    })
    .await?;
    let apply = load::run(server, CLIENTS, operations / 2, move |number| {
        let number = number * 7919 % stage;
        let path = format!(
            "{}/{}?fieldManager=bench&force=true",
            collection(NAMESPACE),
            name(number)
        );
        Call::apply(path, config_map(number, "second"))
    })
    .await?;
    let page = load::run(server, 1, 100, |_| {
        Call::get(format!("{}?limit=500", collection(NAMESPACE)))
    })
    .await?;
    Ok(Point {
        objects: stage,
        create: create.cpu_ms,
        get: get.cpu_ms,
        apply: apply.cpu_ms,
        page: page.cpu_ms,
        megabytes: megabytes(server)?,
    })
}

fn megabytes(server: &Server) -> Result<f64> {
    Ok(server.resident()? as f64 / MEBIBYTE)
}
