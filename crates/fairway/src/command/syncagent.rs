//! `fairway syncagent`: an agent between two servers that kubeconfigs lead to.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use fairway_controller::Shutdown;
use fairway_kernel_scalar::names::is_dns1035_label;
use fairway_tenancy_syncagent::Agent;
use fairway_tenancy_syncagent::connect::{self, Sides};
use fairway_tenancy_syncagent::election::Election;
use fairway_tenancy_syncagent::probes::{Probes, Purpose};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing::info;

use super::service;
use crate::cli::syncagent::Syncagent;

/// Runs the command.
pub(crate) fn run(options: &Syncagent) -> anyhow::Result<ExitCode> {
    if let Some(name) = &options.agent_name
        && !is_dns1035_label(name).is_empty()
    {
        bail!(
            "--agent-name {name:?} is invalid: use lower case letters, digits and inner dashes, at most 63"
        );
    }
    let runtime = service::prepare("syncagent", &options.log)?;
    runtime.block_on(serve(options))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(options: &Syncagent) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("signals cannot be received")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("signals cannot be received")?;
    let (end, shutdown) = Shutdown::new();
    let probes = Probes::default();
    for (purpose, option, address) in [
        (Purpose::Metrics, "--metrics-address", &options.metrics_address),
        (Purpose::Health, "--health-address", &options.health_address),
    ] {
        if let Some(socket) = listen(option, address).await? {
            tokio::spawn(probes.clone().serve(purpose, socket, shutdown.clone()));
        }
    }
    let mut service = match &options.kubeconfig {
        Some(file) => read(file).await?,
        None => Config::infer()
            .await
            .context("no service cluster is known: name its kubeconfig with --kubeconfig FILE")?,
    };
    redirect(&mut service, options)?;
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
    probes.set_ready(true);
    let work = work(options, agent, &probes, shutdown);
    let mut working = tokio::spawn(work);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        ended = &mut working => return ended.context("the sync agent failed")?,
    }
    info!("ending: what is under way is finished first");
    probes.set_ready(false);
    end.shut_down();
    working.await.context("the sync agent failed")?
}

/// Works as long as it is elected, or without an election until the end.
fn work(
    options: &Syncagent,
    agent: Agent,
    probes: &Probes,
    mut shutdown: Shutdown,
) -> impl Future<Output = anyhow::Result<()>> + Send + use<> {
    let lease = format!("syncagent-{}", agent.name);
    let started = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let started = started.map_or(0, |it| it.as_nanos());
    let identity = format!("{}-{started:x}", std::process::id());
    let election = options
        .enable_leader_election
        .then(|| Election::new(agent.service.clone(), &options.namespace, &lease, &identity));
    let metrics = Arc::clone(&probes.metrics);
    async move {
        let Some(mut election) = election else {
            info!(
                agent = agent.name,
                export = agent.export,
                "the sync agent is at work"
            );
            agent.run(metrics, shutdown).await;
            return Ok(());
        };
        info!(lease, identity, "waiting to be elected");
        if !election.win(shutdown.clone()).await {
            return Ok(());
        }
        info!(
            agent = agent.name,
            export = agent.export,
            "elected: the sync agent is at work"
        );
        let (end, token) = Shutdown::new();
        let working = tokio::spawn(agent.run(metrics, token));
        let (give_back, held) = Shutdown::new();
        let mut holding = tokio::spawn(async move { election.hold(held).await });
        let lost = tokio::select! {
            () = shutdown.wait() => false,
            _ = &mut holding => true,
        };
        end.shut_down();
        working.await.context("the sync agent failed")?;
        if lost {
            bail!("the Lease {lease} was lost to another agent, or could not be renewed");
        }
        // Given back last: until now there was work under way.
        give_back.shut_down();
        holding.await.context("the Lease could not be given back")
    }
}

/// The socket for figures or probes, if there is to be one.
async fn listen(option: &str, address: &str) -> anyhow::Result<Option<TcpListener>> {
    if address.is_empty() || address == "0" {
        return Ok(None);
    }
    // As Go has it, a port alone is that port of every address.
    let whole = match address.strip_prefix(':') {
        Some(port) => format!("[::]:{port}"),
        None => address.to_owned(),
    };
    let socket = TcpListener::bind(&whole).await.with_context(|| {
        format!("{option} {address} cannot be listened on; choose another address, or 0 for none")
    })?;
    Ok(Some(socket))
}

/// Leads a configuration elsewhere than its kubeconfig does.
fn redirect(service: &mut Config, options: &Syncagent) -> anyhow::Result<()> {
    if let Some(url) = &options.kubeconfig_host_override {
        service.cluster_url = url
            .parse()
            .with_context(|| format!("--kubeconfig-host-override {url:?} is no address"))?;
    }
    if let Some(file) = &options.kubeconfig_ca_file_override {
        let wrong = || format!("--kubeconfig-ca-file-override {} cannot be used", file.display());
        let certificates = CertificateDer::pem_file_iter(file)
            .with_context(wrong)?
            .collect::<Result<Vec<_>, _>>()
            .with_context(wrong)?;
        if certificates.is_empty() {
            bail!("{}: it holds no certificate", wrong());
        }
        service.root_cert = Some(certificates.iter().map(|it| it.to_vec()).collect());
    }
    Ok(())
}

async fn read(file: &Path) -> anyhow::Result<Config> {
    let kubeconfig = Kubeconfig::read_from(file)
        .with_context(|| format!("kubeconfig {} cannot be read", file.display()))?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("kubeconfig {} cannot be used", file.display()))
}
