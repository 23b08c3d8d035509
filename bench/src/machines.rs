//! Machines: what Fairway adds to QEMU.
//!
//! The same guest is booted by Fairway and by hand, in turns: the image `tiny`, and by hand the very arguments that Fairway
//! gave its QEMU, but for the network, which is QEMU's own, and the disk, which is a new layer over the same image. A boot ends
//! with a login over SSH. The figures that count are how much longer a boot takes, how much more CPU time, and how much memory a
//! running machine takes beside its QEMU.
//!
//! What takes minutes more is asked for by a flag: a whole Debian in the same way, migrations beside those by hand, and iperf3 in a guest.

pub(crate) mod boot;
pub(crate) mod by_hand;
pub(crate) mod guest;
pub(crate) mod login;
mod many;
mod memory;
mod migration;
mod objects;
mod qmp;
pub(crate) mod report;
mod throughput;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::client::{Call, Client};
use crate::server::{self, Server};
use boot::Boot;
use guest::Guest;
use login::Key;

#[derive(Args)]
pub(crate) struct Options {
    /// The Fairway binary to measure.
    #[arg(long, default_value = "target/release/fairway")]
    fairway: PathBuf,
    /// Boots of each side; fewer than ten are a quick look, which is never written as a result.
    #[arg(long, default_value_t = FULL)]
    rounds: usize,
    /// Machines that are made, listed and deleted.
    #[arg(long, default_value_t = 100)]
    count: usize,
    /// How many of them run.
    #[arg(long, default_value_t = 4)]
    running: usize,
    /// How many of them are started and stand still; the others are stopped.
    #[arg(long, default_value_t = 8)]
    paused: usize,
    /// Boots of a whole Debian, each side; its image is built first. Some minutes each where the processor is emulated.
    #[arg(long, default_value_t = 0)]
    debian: usize,
    /// Migrations between two nodes of this host, and between two QEMUs by hand.
    #[arg(long, default_value_t = 0)]
    migrations: usize,
    /// Seconds of each run of iperf3 in a guest: through the switch, QEMU's own network and devices of the kernel.
    #[arg(long, default_value_t = 0)]
    iperf: u32,
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
    tiny: Boots,
    debian: Option<Boots>,
    memory: memory::Each,
    joined: memory::Joined,
    many: many::Many,
    moves: Option<migration::Moves>,
    throughput: Vec<throughput::Way>,
}

/// Boots of one guest.
struct Boots {
    guest: Guest,
    fairway: Vec<Boot>,
    by_hand: Vec<Boot>,
}

/// A running Fairway with an image, and what is needed to use it.
struct Bench {
    server: Server,
    client: Client,
    /// Its data directory.
    data: PathBuf,
    /// That of a second node, if there comes to be one.
    second: Option<PathBuf>,
    /// Ours.
    scratch: PathBuf,
    key: Key,
}

impl Bench {
    /// Starts it with these flags and images.
    async fn start(options: &Options, directory: &Path, flags: &[&str], images: &[&str]) -> Result<Self> {
        let scratch = server::absolute(directory)?;
        let data = scratch.join("data");
        let binary = server::absolute(&options.fairway)?;
        build_images(&binary, &data, images).await?;
        let server = crate::fairway::start_with(&binary, &scratch, server::free_port()?, flags).await?;
        let client = Client::connect(&server.endpoint).await?;
        let key = Key::new(&scratch).await?;
        let bench = Self {
            server,
            client,
            data,
            second: Some(scratch.join(migration::SECOND)),
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

    /// Where machines are made by hand beside ours.
    fn place(&self) -> by_hand::Place<'_> {
        by_hand::Place {
            scratch: &self.scratch,
            data: &self.data,
            key: &self.key,
        }
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

/// Builds images of our own into a data directory.
pub(crate) async fn build_images(binary: &Path, data: &Path, images: &[&str]) -> Result<()> {
    for image in images {
        let built = tokio::process::Command::new(binary)
            .args(["image", "build", image, "--data"])
            .arg(data)
            .stdout(Stdio::null())
            .status()
            .await
            .with_context(|| format!("cannot run {}", binary.display()))?;
        if !built.success() {
            bail!("the image {image} cannot be built");
        }
    }
    Ok(())
}

pub(crate) async fn run(options: &Options) -> Result<()> {
    std::fs::create_dir_all(&options.data)
        .with_context(|| format!("cannot make {}", options.data.display()))?;
    let directory = tempfile::Builder::new().prefix("m").tempdir_in(&options.data)?;
    let mut images = vec![guest::TINY.image];
    if options.debian > 0 {
        images.push(guest::DEBIAN.image);
    }
    let bench = Bench::start(options, directory.path(), &[], &images).await?;
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
    let joined = memory::joined(bench, &server::absolute(&options.fairway)?).await?;
    let kinds = many::Kinds {
        count: options.count,
        running: options.running,
        paused: options.paused,
    };
    if kinds.running + kinds.paused > kinds.count {
        bail!("--running and --paused are parts of --count");
    }
    eprintln!("{kinds:?}");
    let many = many::measure(bench, kinds).await?;
    let tiny = boots(bench, guest::TINY, options.rounds).await?;
    let debian = match options.debian {
        0 => None,
        rounds => Some(boots(bench, guest::DEBIAN, rounds).await?),
    };
    let throughput = match options.iperf {
        0 => Vec::new(),
        seconds => throughput::measure(options, bench, seconds).await?,
    };
    let moves = match options.migrations {
        0 => None,
        rounds => {
            let binary = server::absolute(&options.fairway)?;
            let port = bench.ports(guest::TINY.image).await?.ssh;
            Some(migration::measure(bench, &binary, port, rounds).await?)
        }
    };
    Ok(Measured {
        tiny,
        debian,
        memory,
        joined,
        many,
        moves,
        throughput,
    })
}

/// Boots a guest by Fairway and by hand, in turns.
async fn boots(bench: &Bench, guest: Guest, rounds: usize) -> Result<Boots> {
    eprintln!("a first boot of {}, which is not counted", guest.image);
    let port = bench.ports(guest.image).await?.ssh;
    let (first, template) = boot::run(bench, guest, port).await?;
    eprintln!("  {first}");
    let mut boots = Boots {
        guest,
        fairway: Vec::new(),
        by_hand: Vec::new(),
    };
    for round in 0..rounds {
        let ours = boot::run(bench, guest, port).await?.0;
        let hand = by_hand::run(bench.place(), &template).await?;
        eprintln!("round {} of {rounds}: Fairway {ours}; by hand {hand}", round + 1);
        boots.fairway.push(ours);
        boots.by_hand.push(hand);
    }
    Ok(boots)
}
