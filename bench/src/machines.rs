//! Machines: what Fairway adds to QEMU.
//!
//! The same guest is booted by Fairway and by hand, in turns: the image `tiny`, and by hand the very arguments that Fairway
//! gave its QEMU, but for the network, which is QEMU's own, and the disk, which is a new layer over the same image. A boot ends
//! with a login over SSH. The figures that count are how much longer a boot takes, how much more CPU time, and how much memory a
//! running machine takes beside its QEMU.

mod boot;
mod by_hand;
mod login;
mod many;
mod memory;
mod objects;
mod report;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::client::{Call, Client};
use crate::server::{self, Server};
use boot::Boot;
use login::Key;

#[derive(Args)]
pub(crate) struct Options {
    /// The Fairway binary to measure.
    #[arg(long, default_value = "target/release/fairway")]
    fairway: PathBuf,
    /// Boots of each side; fewer than ten are a quick look, which is never written as a result.
    #[arg(long, default_value_t = FULL)]
    rounds: usize,
    /// Machines that are made, listed and deleted without running.
    #[arg(long, default_value_t = 100)]
    count: usize,
    /// Where data directories are made.
    #[arg(long, default_value = "target/bench")]
    data: PathBuf,
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
}

const FULL: usize = 10;
/// Where everything is made.
const NAMESPACE: &str = "bench";

/// Everything that was measured.
struct Measured {
    rounds: usize,
    fairway: Vec<Boot>,
    by_hand: Vec<Boot>,
    memory: memory::Each,
    many: many::Many,
}

/// A running Fairway with an image, and what is needed to use it.
struct Bench {
    server: Server,
    client: Client,
    /// Its data directory.
    data: PathBuf,
    /// Ours.
    scratch: PathBuf,
    key: Key,
}

impl Bench {
    async fn start(options: &Options, directory: &Path) -> Result<Self> {
        let scratch = server::absolute(directory)?;
        let data = scratch.join("data");
        let binary = server::absolute(&options.fairway)?;
        let built = tokio::process::Command::new(&binary)
            .args(["image", "build", "tiny", "--data"])
            .arg(&data)
            .stdout(Stdio::null())
            .status()
            .await
            .with_context(|| format!("cannot run {}", binary.display()))?;
        if !built.success() {
            bail!("the image tiny cannot be built");
        }
        let server = crate::fairway::start(&binary, &scratch).await?;
        let client = Client::connect(&server.endpoint).await?;
        let key = Key::new(&scratch).await?;
        let bench = Self {
            server,
            client,
            data,
            scratch,
            key,
        };
        bench.create("/api/v1/namespaces", &objects::namespace()).await?;
        Ok(bench)
    }

    async fn create(&self, path: &str, object: &serde_json::Value) -> Result<()> {
        let reply = self.client.send(Call::create(path, object.to_string())).await?;
        reply.success().with_context(|| format!("creating at {path}"))?;
        Ok(())
    }

    /// An object, or nothing if there is none.
    async fn get(&self, path: &str) -> Result<Option<serde_json::Value>> {
        let reply = self.client.send(Call::get(path)).await?;
        if reply.status == http::StatusCode::NOT_FOUND {
            return Ok(None);
        }
        Ok(Some(serde_json::from_slice(&reply.success()?)?))
    }
}

pub(crate) async fn run(options: &Options) -> Result<()> {
    std::fs::create_dir_all(&options.data)
        .with_context(|| format!("cannot make {}", options.data.display()))?;
    let directory = tempfile::Builder::new().prefix("m").tempdir_in(&options.data)?;
    let bench = Bench::start(options, directory.path()).await?;
    let outcome = measure(options, &bench).await;
    // Machines outlive their Fairway: none may be left.
    let cleared = bench.clear().await;
    bench.server.stop().await?;
    let measured = outcome?;
    cleared?;
    let text = report::write(&measured);
    println!("{text}");
    if options.rounds >= FULL {
        let path = crate::report::write_named(&options.results, "machines-", &text)?;
        eprintln!("written to {}", path.display());
    }
    Ok(())
}

async fn measure(options: &Options, bench: &Bench) -> Result<Measured> {
    eprintln!("memory");
    let memory = memory::measure(bench).await?;
    eprintln!("{} machines that do not run", options.count);
    let many = many::measure(bench, options.count).await?;
    eprintln!("a first boot, which is not counted");
    let port = boot::prepare(bench).await?;
    let (first, template) = boot::run(bench, port).await?;
    eprintln!("  {first}");
    let (mut fairway, mut by_hand) = (Vec::new(), Vec::new());
    for round in 0..options.rounds {
        let ours = boot::run(bench, port).await?.0;
        let hand = by_hand::run(bench, &template).await?;
        eprintln!(
            "round {} of {}: Fairway {ours}; by hand {hand}",
            round + 1,
            options.rounds
        );
        fairway.push(ours);
        by_hand.push(hand);
    }
    Ok(Measured {
        rounds: options.rounds,
        fairway,
        by_hand,
        memory,
        many,
    })
}
