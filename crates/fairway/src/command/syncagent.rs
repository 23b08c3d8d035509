//! `fairway syncagent`: an agent between two servers that kubeconfigs lead to.

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use fairway_controller::{Metrics, Shutdown};
use fairway_tenancy_syncagent::connect::{self, Sides};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::signal::unix::{SignalKind, signal};
use tracing::info;
use tracing_subscriber::EnvFilter;

use crate::cli::syncagent::Syncagent;

/// Runs the command.
pub(crate) fn run(options: &Syncagent) -> anyhow::Result<ExitCode> {
    if let Some(name) = &options.agent_name
        && !is_label(name)
    {
        bail!(
            "--agent-name {name:?} is invalid: use lower case letters, digits and inner dashes, at most 63"
        );
    }
    let filter = EnvFilter::try_new(&options.log)
        .with_context(|| format!("the log filter {:?} cannot be understood", options.log))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("syncagent")
        .build()
        .context("the asynchronous runtime could not be started")?;
    runtime.block_on(serve(options))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(options: &Syncagent) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("signals cannot be received")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("signals cannot be received")?;
    let service = match &options.kubeconfig {
        Some(file) => read(file).await?,
        None => Config::infer()
            .await
            .context("no service cluster is known: name its kubeconfig with --kubeconfig FILE")?,
    };
    let kcp = read(&options.kcp_kubeconfig).await?;
    let slice = options.apiexportendpointslice_ref.as_ref();
    let slice = slice
        .or(options.apiexport_ref.as_ref())
        .cloned()
        .unwrap_or_default();
    let agent = connect::agent(Sides {
        service,
        kcp,
        slice,
        name: options.agent_name.clone(),
        selector: options.published_resource_selector.clone(),
        workers: options.workers,
    })
    .await
    .context("the sync agent cannot start")?;
    info!(
        agent = agent.name,
        export = agent.export,
        "the sync agent is at work"
    );
    let (end, shutdown) = Shutdown::new();
    let working = tokio::spawn(agent.run(Arc::<Metrics>::default(), shutdown));
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    info!("ending: what is under way is finished first");
    end.shut_down();
    working.await.context("the sync agent failed")
}

async fn read(file: &Path) -> anyhow::Result<Config> {
    let kubeconfig = Kubeconfig::read_from(file)
        .with_context(|| format!("kubeconfig {} cannot be read", file.display()))?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("kubeconfig {} cannot be used", file.display()))
}

fn is_label(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=63).contains(&name.len())
        && name.bytes().all(inner)
        && name.as_bytes()[0].is_ascii_lowercase()
        && !name.ends_with('-')
}
