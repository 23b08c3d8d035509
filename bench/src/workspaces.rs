//! What a workspace costs when there are ten thousand: CPU from its creation until it is ready, memory while it is idle,
//! a start with all of them, an operation in one of many beside one of one, and what a flood in one does to another.
//!
//! Two servers run side by side, one with many workspaces and one with a single one, and take turns at operations. Both
//! are Fairway as a user would start it, with a data directory and durable writes.

mod fairness;
mod operations;
mod own_kinds;
mod report;
mod tenants;
mod twins;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;

use crate::fairway;
use crate::figures::milliseconds;
use crate::server::{self, Server};

#[derive(Args)]
pub(crate) struct Options {
    /// The Fairway binary to measure.
    #[arg(long, default_value = "target/release/fairway")]
    fairway: PathBuf,
    /// How many workspaces; fewer than 10,000 are a quick look, which is never written as a result.
    #[arg(long, default_value_t = FULL)]
    count: usize,
    /// Where data directories are made. The file system under it decides what an fsync costs.
    #[arg(long, default_value = "target/bench")]
    data: PathBuf,
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
    /// Seconds of rest after they were made: a server remembers what happened in the last minutes, and what it remembers is not
    /// what an idle workspace needs. 0 for a quick look.
    #[arg(long, default_value_t = 420)]
    rest: u64,
    /// Leaves the data with all workspaces where it is, for a closer look.
    #[arg(long)]
    keep: bool,
}

const FULL: usize = 10_000;
const MEBIBYTE: f64 = (1 << 20) as f64;

/// Everything that was measured.
struct Measured {
    count: usize,
    creation: tenants::Creation,
    start: Start,
    twins: twins::Twins,
    operations: Vec<operations::Compared>,
    fairness: Vec<fairness::Slowed>,
    own_kinds: own_kinds::OwnKinds,
}

/// A start on all of the data.
struct Start {
    ready_ms: f64,
    cpu_ready_ms: f64,
    /// Until nothing was left to do.
    cpu_idle_ms: f64,
    /// Memory of each workspace after it, against a start with one.
    kilobytes_each: f64,
    watches: Option<f64>,
}

pub(crate) async fn run(options: &Options) -> Result<()> {
    std::fs::create_dir_all(&options.data)
        .with_context(|| format!("cannot make {}", options.data.display()))?;
    let (few, many) = (
        tempfile::tempdir_in(&options.data)?,
        tempfile::tempdir_in(&options.data)?,
    );
    eprintln!("one workspace");
    let port = server::free_port()?;
    let server = fairway::start_at(&options.fairway, few.path(), port).await?;
    tenants::create(&server, 0, 1).await?;
    server.stop().await?;
    let single = fairway::start_at(&options.fairway, few.path(), port).await?;
    tenants::settle(&single).await?;
    let base = single.resident()?;

    eprintln!("{} workspaces", options.count);
    let port = server::free_port()?;
    let server = fairway::start_at(&options.fairway, many.path(), port).await?;
    let mut creation = tenants::create(&server, 0, options.count).await?;
    eprintln!(
        "  {:.2} CPU ms and {:.1} KB each; then {} s of rest",
        creation.cpu_ms, creation.kilobytes_each, options.rest
    );
    tokio::time::sleep(Duration::from_secs(options.rest)).await;
    creation.rested(&server)?;
    eprintln!("  {:.1} KB each", creation.kilobytes_rested);
    server.stop().await?;
    eprintln!("  a start with all of them");
    let server = fairway::start_at(&options.fairway, many.path(), port).await?;
    let start = after_start(&server, base, options.count).await?;
    eprintln!(
        "  {:.0} CPU ms until ready, {:.0} until idle, {:.1} KB each",
        start.cpu_ready_ms, start.cpu_idle_ms, start.kilobytes_each
    );
    eprintln!("  the same names in two of them");
    let twins = twins::measure(&server, options.count).await?;
    eprintln!("  operations in one of {} and in one of 1", options.count);
    let operations = operations::compare(&single, &server, options.count).await?;
    eprintln!("  a flood");
    let fairness = fairness::measure(&server, options.count).await?;
    eprintln!("  kinds of their own");
    let own_kinds = own_kinds::measure(&server, options.count).await?;
    let measured = Measured {
        count: options.count,
        creation,
        start,
        twins,
        operations,
        fairness,
        own_kinds,
    };
    if options.keep {
        eprintln!("kept in {}", many.keep().display());
    }
    let text = report::write(&measured);
    println!("{text}");
    if options.count >= FULL {
        let path = crate::report::write_named(&options.results, "workspaces-", &text)?;
        eprintln!("written to {}", path.display());
    }
    Ok(())
}

async fn after_start(server: &Server, base: u64, count: usize) -> Result<Start> {
    let cpu_ready_ms = milliseconds(server.cpu()?);
    let cpu_idle_ms = milliseconds(tenants::settle(server).await?);
    let grown = server.resident()?.saturating_sub(base) as f64;
    Ok(Start {
        ready_ms: server.ready_after.map_or(f64::NAN, milliseconds),
        cpu_ready_ms,
        cpu_idle_ms,
        kilobytes_each: grown / 1e3 / count as f64,
        watches: tenants::watches(server).await?,
    })
}

/// The path of a workspace in URLs.
fn place(number: usize) -> String {
    format!("/clusters/root:{}", tenants::name(number))
}
