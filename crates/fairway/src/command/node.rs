//! `fairway node`: the machines of one host, for an API server elsewhere.

mod credentials;
mod join;
mod remote;
mod renewal;
mod token;

use std::fs::File;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use fairway_controller::served::Served;
use fairway_controller::{Metrics, Shutdown};
use fairway_kernel_apiserver::admission::service::ServiceNetwork;
use fairway_machines_node::supervise::Fencing;
use rustix::fs::{FlockOperation, flock};
use tokio::signal::unix::{SignalKind, signal};
use tracing::info;

use super::service;
use crate::cli::node::{Node, NodeCommand, NodeRun};
use crate::config::machines::{MachinesConfig, MachinesFile, towards};
use crate::data_dir::DataDir;
use crate::server::machines::{Common, Host, Role, settings};
use remote::Remote;

/// Runs the command.
pub(crate) fn run(options: &Node) -> anyhow::Result<ExitCode> {
    match &options.command {
        None => machines(&options.run),
        Some(NodeCommand::Join(options)) => blocking(join::run(options)),
        Some(NodeCommand::Token(options)) => blocking(token::run(options)),
    }
}

/// Runs a command that comes to an end.
fn blocking(command: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    // rustls wants to be told which cryptography to use, once.
    let _ = rustls::crypto::ring::default_provider().install_default();
    super::runtime()?.block_on(command)
}

fn machines(options: &NodeRun) -> anyhow::Result<ExitCode> {
    let data = DataDir::find(options.data.dir.as_deref())?;
    data.create()?;
    let _alone = alone(&data)?;
    let runtime = service::prepare("node", &options.log)?;
    runtime.block_on(serve(options, &data))?;
    Ok(ExitCode::SUCCESS)
}

/// What is said on the command line, with the name that the certificate gives this host.
fn named(options: &NodeRun, remote: &Remote) -> anyhow::Result<MachinesConfig> {
    let name = remote.node();
    let mut host = options.host.clone();
    match host.node_name.replace(name.to_owned()) {
        Some(given) if given != name => bail!(
            "the certificate in {} is that of node {name}, and not of {given}; leave --node-name out, or join again as {given}",
            remote.file().display()
        ),
        _ => {
            let mut config = MachinesConfig::of_host(MachinesFile::default(), &host)?;
            if let Some(own) = towards(remote.server()) {
                config.set_seen_at(own);
            }
            config.deny_server(remote.server());
            Ok(config)
        }
    }
}

/// Two nodes in one directory would both be the owner of its machines.
fn alone(data: &DataDir) -> anyhow::Result<File> {
    if super::running::Running::find(data)?.is_some() {
        bail!(
            "a server runs in {}, with a node of its own; give this node a directory of its own (--data DIR)",
            data.path().display()
        );
    }
    let path = data.node_lock();
    let lock = File::create(&path).with_context(|| format!("{} could not be made", path.display()))?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive).with_context(|| {
        format!(
            "a node runs in {} already; give this one a directory of its own (--data DIR)",
            data.path().display()
        )
    })?;
    Ok(lock)
}

/// The least that a machine waits: a Lease is renewed every ten seconds, and one renewal may fail.
const SHORTEST_FENCE: u64 = 25;

/// Whether machines end when this node is not heard of: each is then run under this very program.
fn fencing(options: &NodeRun) -> anyhow::Result<Option<Fencing>> {
    match options.fence_seconds {
        0 => return Ok(None),
        seconds if seconds < SHORTEST_FENCE => bail!(
            "--fence-seconds {seconds} would end machines while all is well; use {SHORTEST_FENCE} or more, or 0 for never"
        ),
        _ => {}
    }
    let program = std::env::current_exe().context("the path of this program is not known")?;
    Ok(Some(Fencing {
        supervisor: vec![program.display().to_string(), "supervise".to_owned()],
        after: Duration::from_secs(options.fence_seconds),
    }))
}

async fn serve(options: &NodeRun, data: &DataDir) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("signals cannot be received")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("signals cannot be received")?;
    let file = options
        .kubeconfig
        .clone()
        .unwrap_or_else(|| data.node_kubeconfig());
    let remote = Remote::open(&file, options.server.as_deref()).await?;
    let config = &named(options, &remote)?;
    let (end, shutdown) = Shutdown::new();
    let clients = remote.clients();
    let (served, following) = Served::poll(clients.clients(""), shutdown.clone());
    let common = Common {
        clients,
        served,
        metrics: Arc::new(Metrics::default()),
        shutdown: shutdown.clone(),
        settings: settings(&ServiceNetwork::default(), Vec::new(), Some(config)),
    };
    let host = Host::start(&common, config, data, Role::Node(fencing(options)?));
    info!(
        node = config.node,
        server = remote.server(),
        "the node is at work"
    );
    let renewal = renewal::run(data.clone(), remote.clone(), shutdown.clone());
    let stream = fairway_machines_link::keep(host.answers(), move || remote.client(), shutdown);
    let working = tokio::spawn(async move {
        tokio::join!(host.run(common), following, renewal, stream);
    });
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    info!("ending: machines run on, and are found again at the next start");
    end.shut_down();
    working.await.context("the node failed")
}
