//! `fairway-bench`: puts the same load on Fairway and on a real kube-apiserver with a real etcd, in one run, and prints
//! ratios.
//!
//! Machines are noisy, so the figure that counts is the CPU time of the server's processes per operation; rates and
//! latencies stand beside it. Every round starts every server with an empty data directory, and the servers take turns,
//! never run at the same time. What the machine could do at best is measured in the same round.
//!
//! - `run` measures and writes a report; `scale` does so at growing sizes, with a plot; `load` puts the load on a server that runs already.
//! - `gitops` compares with Argo CD, in the same way.
//! - `golden-path` has no peer: it measures what a form, a sign-in and the platform around them cost, against what is promised.
//! - `peer` starts etcd and kube-apiserver (and, if asked, the controllers that Fairway has too) and keeps them until
//!   interrupted: the client transcripts under `tests/clients` are recorded against it.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool talks to its user"
)]

mod catalog;
mod ceilings;
mod client;
mod fairway;
mod figures;
mod gateway;
mod gitops;
mod golden_path;
mod kubeconfig;
mod load;
mod machines;
mod peer;
mod process;
mod renderers;
mod report;
mod rerender;
mod scale;
mod server;
mod switch;
mod workloads;
mod workspaces;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::figures::{Figures, Rounds};
use crate::server::Server;
use crate::workloads::Sizes;

#[derive(Parser)]
#[command(about = "Fairway beside etcd and kube-apiserver: the same load, ratios out")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure both servers in turns and write bench/results/DATE-COMMIT.md.
    Run(Run),
    /// Measure both servers at growing sizes and write bench/results/scale-DATE-COMMIT.md with a plot.
    Scale(scale::Options),
    /// Render the same directories with kustomize, helm and Fairway, and compare CPU time and memory.
    Renderers(renderers::Options),
    /// Measure what a workspace costs among 10,000 and write bench/results/workspaces-DATE-COMMIT.md.
    Workspaces(workspaces::Options),
    /// Sync applications with Argo CD and with Fairway, and write bench/results/gitops-DATE-COMMIT.md.
    Gitops(gitops::Options),
    /// Render a repository of 1,000 applications, then again after commits of one file.
    Rerender(rerender::Options),
    /// Ask the index of the software catalog what pages ask, with 10,000 entities.
    Catalog(catalog::Options),
    /// Send frames through the userspace switch, beside a bare copy through the same sockets.
    Switch(switch::Options),
    /// Put the same load on nginx, HAProxy and the data plane of gateways, and compare CPU time per request.
    Gateway(gateway::Options),
    /// Boot a machine by Fairway and by hand, and write bench/results/machines-DATE-COMMIT.md.
    Machines(machines::Options),
    /// Run the golden path of a machine, sign in, list the catalog, and write bench/results/golden-path-DATE-COMMIT.md.
    GoldenPath(golden_path::Options),
    /// Run a command and print what it took; for `renderers`.
    #[command(hide = true)]
    Measured(renderers::measured::Options),
    /// Put the load once on a server that runs already, and print the figures.
    Load {
        #[arg(long)]
        kubeconfig: PathBuf,
        /// Processes of the server, whose CPU time and memory are read from /proc.
        #[arg(long, value_delimiter = ',')]
        pids: Vec<u32>,
        #[arg(long, default_value_t = 1.0)]
        scale: f64,
    },
    /// Start etcd and kube-apiserver, write DATA/kubeconfig, and keep them until interrupted.
    Peer {
        #[arg(long)]
        data: PathBuf,
        #[arg(long, default_value = ".tools/bin")]
        bin: PathBuf,
        /// With kube-controller-manager, running only the controllers that Fairway's kernel has too.
        #[arg(long)]
        controllers: bool,
    },
}

#[derive(Args)]
struct Run {
    /// The Fairway binary to measure.
    #[arg(long, default_value = "target/release/fairway")]
    fairway: PathBuf,
    /// Where etcd and kube-apiserver are (scripts/peers.sh builds them).
    #[arg(long, default_value = ".tools/bin")]
    bin: PathBuf,
    #[arg(long)]
    only: Option<Which>,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Multiplies the number of operations: 0.1 for a quick look, which is never written as a result.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Where data directories are made. The file system under it decides what an fsync costs.
    #[arg(long, default_value = "target/bench")]
    data: PathBuf,
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    Fairway,
    Peer,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match cli.command {
            Command::Run(options) => run(&options).await,
            Command::Scale(options) => scale::run(&options).await,
            Command::Renderers(options) => renderers::run(&options),
            Command::Workspaces(options) => workspaces::run(&options).await,
            Command::Gitops(options) => gitops::run(&options).await,
            Command::Rerender(options) => rerender::run(&options),
            Command::Catalog(options) => catalog::run(&options),
            Command::Switch(options) => switch::run(&options).await,
            Command::Gateway(options) => gateway::run(&options).await,
            Command::Machines(options) => machines::run(&options).await,
            Command::GoldenPath(options) => golden_path::run(&options).await,
            Command::Measured(options) => renderers::measured::run(&options),
            Command::Load {
                kubeconfig,
                pids,
                scale,
            } => {
                let server = Server::running(&kubeconfig, &pids)?;
                let figures = workloads::measure(&server, &Sizes::scaled(scale)).await?;
                println!("{}", report::one_server(&figures));
                Ok(())
            }
            Command::Peer {
                data,
                bin,
                controllers,
            } => peer::serve(&data, &bin, controllers).await,
        }
    })
}

async fn run(options: &Run) -> Result<()> {
    std::fs::create_dir_all(&options.data)
        .with_context(|| format!("cannot make {}", options.data.display()))?;
    let sizes = Sizes::scaled(options.scale);
    let mut rounds = Rounds::default();
    for round in 0..options.rounds {
        rounds.ceilings.push(ceilings::measure(&options.data)?);
        // The one that goes first meets a colder machine, so they take turns at that too.
        let mut order = vec![Which::Fairway, Which::Peer];
        if round % 2 == 1 {
            order.reverse();
        }
        for which in order
            .into_iter()
            .filter(|which| options.only.is_none_or(|only| only == *which))
        {
            let name = if which == Which::Fairway {
                "Fairway"
            } else {
                "etcd + kube-apiserver"
            };
            eprintln!("round {} of {}: {name}", round + 1, options.rounds);
            let directory = tempfile::tempdir_in(&options.data)?;
            let figures = measure_one(which, options, directory.path(), &sizes)
                .await
                .with_context(|| format!("measuring {name}"))?;
            match which {
                Which::Fairway => rounds.fairway.push(figures),
                Which::Peer => rounds.peer.push(figures),
            }
        }
    }
    let text = report::compare(
        &rounds,
        &report::Circumstances::gather(options.rounds, options.scale),
    );
    println!("{text}");
    if options.only.is_none() && options.scale >= 1.0 {
        let path = report::write(&options.results, &text)?;
        eprintln!("written to {}", path.display());
    }
    Ok(())
}

async fn measure_one(which: Which, options: &Run, directory: &Path, sizes: &Sizes) -> Result<Figures> {
    // What the server before has written is still on its way to the disk, and this one would wait for it with its first fsync.
    tokio::task::spawn_blocking(nix::unistd::sync).await?;
    let server = match which {
        Which::Fairway => fairway::start(&options.fairway, directory).await?,
        Which::Peer => peer::start(&options.bin, directory, false).await?,
    };
    workloads::measure(&server, sizes).await
}
