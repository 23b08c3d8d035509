//! The golden path: what a form costs until its repository, Application and catalog entry are there, and what the platform around
//! it costs. Each figure stands beside the floor that is promised for it.
//!
//! Runs are measured on a Fairway without machines, so that no guest boots; from a form to an SSH login guests do, beside the same by
//! hand. The platform's rest is measured with everything that a start brings by default.

mod boots;
mod entities;
mod idle;
mod realms;
mod report;
mod runs;
mod sign_in;
mod web;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::client::Client;
use crate::server::{self, Server};
use crate::{fairway, process};
use sign_in::User;

#[derive(Args)]
pub(crate) struct Options {
    /// The Fairway binary to measure.
    #[arg(long, default_value = "target/release/fairway")]
    fairway: PathBuf,
    /// Runs of the template, sign-ins and lists; fewer than 20 are a quick look, which is never written as a result.
    #[arg(long, default_value_t = RUNS)]
    runs: usize,
    /// Realms beside which one is measured.
    #[arg(long, default_value_t = REALMS)]
    realms: usize,
    /// Entities of the catalog that is listed.
    #[arg(long, default_value_t = ENTITIES)]
    entities: usize,
    /// Seconds for which the idle platform is watched.
    #[arg(long, default_value_t = REST)]
    rest: u64,
    /// Boots from a form to an SSH login, and by hand; 0 for none.
    #[arg(long, default_value_t = BOOTS)]
    boots: usize,
    /// Where data directories are made. The file system under it decides what an fsync costs.
    #[arg(long, default_value = "target/bench")]
    data: PathBuf,
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
}

const RUNS: usize = 20;
const REALMS: usize = 5_000;
const ENTITIES: usize = 10_000;
const REST: u64 = 30;
const BOOTS: usize = 5;
/// A server that does so little in a second has nothing left to do.
const IDLE: Duration = Duration::from_millis(15);
/// How long that may take.
const PATIENCE: Duration = Duration::from_secs(300);

impl Options {
    /// Whether nothing was cut short.
    fn is_whole(&self) -> bool {
        self.runs >= RUNS
            && self.realms >= REALMS
            && self.entities >= ENTITIES
            && self.rest >= REST
            && self.boots >= BOOTS
    }
}

/// Everything that was measured.
struct Measured {
    runs: Vec<runs::Run>,
    /// CPU of each run with what was done for it until nothing was left to do.
    settled: Duration,
    entities: entities::Lists,
    realms: realms::Compared,
    sign_ins: Vec<sign_in::Pair>,
    rates: sign_in::Rates,
    idle: idle::Idle,
    /// The same after the runs, with what they have made.
    filled: idle::Idle,
    boots: Option<boots::Boots>,
}

/// A running Fairway, and what is needed to use it.
struct Platform {
    server: Server,
    client: Client,
    data: PathBuf,
    binary: PathBuf,
    administrator: User,
}

impl Platform {
    async fn start(options: &Options, directory: &Path, flags: &[&str]) -> Result<Self> {
        let binary = server::absolute(&options.fairway)?;
        let directory = server::absolute(directory)?;
        let server = fairway::start_with(&binary, &directory, server::free_port()?, flags).await?;
        let client = Client::connect(&server.endpoint).await?;
        Ok(Self {
            server,
            client,
            data: directory.join("data"),
            binary,
            administrator: sign_in::administrator(&directory.join("fairway.log")).await?,
        })
    }

    /// CPU of the server and of the programs that it starts, such as git.
    fn cpu(&self) -> Result<Duration> {
        self.server
            .pids()
            .iter()
            .map(|pid| process::family_cpu(*pid))
            .sum()
    }

    fn resident(&self) -> Result<u64> {
        self.server
            .pids()
            .iter()
            .map(|pid| process::family_resident(*pid))
            .sum()
    }

    /// Waits until nothing is left to do; the CPU time up to then, without that of the waiting.
    async fn settle(&self) -> Result<Duration> {
        let begun = Instant::now();
        let mut before = self.cpu()?;
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = self.cpu()?;
            if now.saturating_sub(before) < IDLE {
                return Ok(before);
            }
            if begun.elapsed() > PATIENCE {
                bail!("the server was not idle after {PATIENCE:?}");
            }
            before = now;
        }
    }

    /// Runs the command with the administrator's kubeconfig; what it printed.
    async fn command(&self, words: &[&str]) -> Result<String> {
        let output = tokio::process::Command::new(&self.binary)
            .args(words)
            .env("KUBECONFIG", self.data.join("kubeconfig"))
            .output()
            .await
            .with_context(|| format!("cannot run {}", self.binary.display()))?;
        if !output.status.success() {
            bail!(
                "fairway {} failed: {}",
                words.join(" "),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

pub(crate) async fn run(options: &Options) -> Result<()> {
    std::fs::create_dir_all(&options.data)
        .with_context(|| format!("cannot make {}", options.data.display()))?;
    let directory = tempfile::Builder::new().prefix("g").tempdir_in(&options.data)?;
    let place = |name: &str| -> Result<PathBuf> {
        let path = directory.path().join(name);
        std::fs::create_dir_all(&path)?;
        Ok(path)
    };
    let rest = Duration::from_secs(options.rest);
    eprintln!("the whole platform, idle");
    let platform = Platform::start(options, &place("whole")?, &[]).await?;
    let idle = idle::measure(&platform, rest).await?;
    platform.server.stop().await?;
    eprintln!("  {idle}");

    let platform = Platform::start(options, &place("runs")?, &["--no-machines"]).await?;
    eprintln!("{} sign-ins", options.runs);
    let sign_ins = sign_in::measure(&platform, options.runs).await?;
    let rates = sign_in::rates(&platform, options.runs).await?;
    eprintln!("  {rates:?}");
    eprintln!("{} runs of the template", options.runs);
    let (runs, settled) = runs::measure(&platform, options.runs).await?;
    let filled = idle::measure(&platform, rest).await?;
    eprintln!("  with what they have made: {filled}");
    platform.server.stop().await?;

    eprintln!("{} entities", options.entities);
    let platform = Platform::start(options, &place("entities")?, &["--no-machines"]).await?;
    let scratch = place("push")?;
    let entities = entities::measure(&platform, &scratch, options.entities, options.runs).await?;
    platform.server.stop().await?;

    eprintln!("one realm, and {}", options.realms);
    let one = Platform::start(options, &place("one")?, &["--no-machines"]).await?;
    let many = Platform::start(options, &place("many")?, &["--no-machines"]).await?;
    let realms = realms::measure(&one, &many, options.realms).await?;
    one.server.stop().await?;
    many.server.stop().await?;

    let boots = match options.boots {
        0 => None,
        count => {
            eprintln!("{count} boots from a form to a login");
            Some(boots::measure(options, &place("boots")?, count, rest).await?)
        }
    };

    let measured = Measured {
        runs,
        settled,
        entities,
        realms,
        sign_ins,
        rates,
        idle,
        filled,
        boots,
    };
    let text = report::write(&measured, options);
    println!("{text}");
    if options.is_whole() {
        let path = crate::report::write_named(&options.results, "golden-path-", &text)?;
        eprintln!("written to {}", path.display());
    }
    Ok(())
}
