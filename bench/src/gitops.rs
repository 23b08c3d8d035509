//! GitOps beside the real Argo CD: the same repository of four-object applications, synced by Argo CD on etcd and
//! kube-apiserver, and by Fairway; then Fairway alone with thousands.
//!
//! CPU is that of all processes that the work needs, `git` children included: for Argo CD its components, Redis, kube-apiserver and
//! etcd; for Fairway its one process. Memory is compared with Argo CD's components alone, although Fairway's contains an API
//! server, too. Everything runs in a network namespace of its own, because Argo CD's controller listens on all interfaces.

mod applications;
mod argocd;
mod fleet;
mod namespace;
mod report;
mod repository;
mod side;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::Which;
use crate::figures::Figures;

#[derive(Args)]
pub(crate) struct Options {
    /// The Fairway binary to measure.
    #[arg(long, default_value = "target/release/fairway")]
    fairway: PathBuf,
    /// Where argocd, kubectl, etcd and kube-apiserver are (scripts/peers.sh builds them).
    #[arg(long, default_value = ".tools/bin")]
    bin: PathBuf,
    /// Argo CD's module, with its manifests [default: where go keeps it].
    #[arg(long)]
    module: Option<PathBuf>,
    /// One of both alone; nothing is written then.
    #[arg(long)]
    only: Option<Which>,
    /// Divides every count: 10 or 100 for a quick look, which is never written as a result.
    #[arg(long, default_value_t = 1)]
    divide: usize,
    /// Seconds of rest before memory is read: a server remembers what happened in the last minutes.
    #[arg(long, default_value_t = 400)]
    rest: u64,
    /// One part of the run alone; nothing is written then.
    #[arg(long)]
    part: Option<Part>,
    /// Where data directories are made. The file system under it decides what an fsync costs.
    #[arg(long, default_value = "target/bench")]
    data: PathBuf,
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
}

/// The parts of a run.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Both side by side.
    Beside,
    /// Fairway with thousands of applications.
    Fleet,
}

/// Everything that was measured.
#[derive(Default)]
struct Measured {
    fairway: Option<Figures>,
    argocd: Option<Figures>,
    fleet: Option<Figures>,
}

pub(crate) async fn run(options: &Options) -> Result<()> {
    let has = |part: Part| options.part.is_none_or(|only| only == part);
    let wants = |which: Which| options.only.is_none_or(|only| only == which);
    let wants_peer = wants(Which::Peer) && has(Part::Beside);
    let module = match (&options.module, wants_peer) {
        (Some(module), _) => Some(module.clone()),
        (None, true) => Some(argocd::module()?),
        (None, false) => None,
    };
    if !namespace::is_inside() {
        return namespace::enter(module.as_deref());
    }
    std::fs::create_dir_all(&options.data)
        .with_context(|| format!("cannot make {}", options.data.display()))?;
    let mut measured = Measured::default();
    if let Some(module) = module.filter(|_| wants_peer) {
        eprintln!("Argo CD on etcd + kube-apiserver");
        let directory = tempfile::tempdir_in(&options.data)?;
        let side = argocd::start(&options.bin, directory.path(), &module).await?;
        let figures = side
            .measure(options.divide, options.rest)
            .await
            .context("measuring Argo CD")?;
        measured.argocd = Some(figures);
    }
    if wants(Which::Fairway) && has(Part::Beside) {
        eprintln!("Fairway");
        let directory = tempfile::tempdir_in(&options.data)?;
        let side = side::fairway(&options.fairway, directory.path()).await?;
        let figures = side
            .measure(options.divide, options.rest)
            .await
            .context("measuring Fairway")?;
        measured.fairway = Some(figures);
    }
    if wants(Which::Fairway) && has(Part::Fleet) {
        eprintln!("Fairway with a fleet");
        let directory = tempfile::tempdir_in(&options.data)?;
        let figures = fleet::measure(&options.fairway, directory.path(), options.divide, options.rest)
            .await
            .context("measuring Fairway with a fleet")?;
        measured.fleet = Some(figures);
    }
    let text = report::write(&measured);
    println!("{text}");
    if options.only.is_none() && options.divide == 1 && options.part.is_none() {
        let path = crate::report::write_named(&options.results, "gitops-", &text)?;
        eprintln!("written to {}", path.display());
    }
    Ok(())
}
