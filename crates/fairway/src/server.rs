//! The one place where parts are wired: store, keys, certificates, kernel, controllers, listener.

mod catalog;
mod control;
mod controllers;
mod gateway;
mod gitops;
mod identity;
pub(crate) mod keys;
mod kinds;
pub(crate) mod machines;
mod oidc;
mod realms;
mod rest;
mod rotation;
pub(crate) mod scaffolder;
mod web;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use anyhow::Context;
use fairway_kernel_apiserver::bootstrap;
use fairway_kernel_apiserver::chance::Clock;
use fairway_kernel_apiserver::http::listener;
use fairway_kernel_apiserver::{Kernel, KernelOptions};
use fairway_kernel_store::value::KeyRing;
use fairway_kernel_store::{EmbeddedStore, Options, Store};
use fairway_machines_engine::Foresight;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing::info;

use crate::command::running::Running;
use crate::config::Config;
use crate::data_dir::DataDir;

/// The issuer of service-account tokens: a name, not an address, so that tokens survive a change of the address.
const TOKEN_ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// Serves until the process is asked to end.
pub(crate) async fn run(
    data: &DataDir,
    config: &Config,
    on_ready: impl FnOnce(&Running, Option<&str>),
) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("signals cannot be received")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("signals cannot be received")?;
    // The address first: if it is taken, nothing has been touched yet.
    let socket = TcpListener::bind(config.listen).await.with_context(|| {
        format!(
            "{} cannot be listened on; choose another address with --listen ADDR:PORT",
            config.listen
        )
    })?;
    let listen = socket
        .local_addr()
        .context("the listening address is not known")?;
    let web_socket = web::bind(config.web_listen, listen).await?;
    // A new installation waits for the disk many times: what does not depend on each other waits together.
    let keys = tokio::task::spawn_blocking({
        let data = data.clone();
        move || -> anyhow::Result<_> {
            let sealing = KeyRing::load_or_create(&data.encryption_keys())
                .context("the encryption keys cannot be used")?;
            Ok((sealing, crate::signing_keys::load_or_create(&data)?))
        }
    });
    let embedded = Arc::new(
        EmbeddedStore::open_unsettled(&data.store(), &Options::default())
            .with_context(|| format!("the state in {} could not be opened", data.store().display()))?,
    );
    let store: Arc<dyn Store> = embedded.clone();
    // Not before the store is ours: another server's kubeconfig must not get our address.
    let source = identity::Source::new(
        data,
        config,
        listen,
        format!("https://{}", kubeconfig_host(listen)),
    );
    let identity = tokio::task::spawn_blocking(move || {
        let loaded = source.load(Clock.unix());
        (source, loaded)
    });
    let (sealing_keys, token_key) = keys.await.context("the keys could not be loaded")??;
    let kernel = Kernel::start(KernelOptions {
        store: Arc::clone(&store),
        keys: Arc::new(sealing_keys),
        token_key,
        issuer: TOKEN_ISSUER.to_owned(),
        jwks_uri: format!("https://{}/openid/v1/jwks", kubeconfig_host(listen)),
        audit_log: config
            .audit
            .as_ref()
            .map(|audit| audit.options(data))
            .transpose()?,
        kinds: kinds::provided(),
    })
    .await
    .context("the kernel could not be started")?;
    keys::follow(&kernel, data)?;
    oidc::follow(&kernel, &config.oidc)?;
    // By a worker: what this allocates for a moment is used again there, but would stay idle with the main thread.
    let fresh = Arc::clone(&kernel);
    tokio::spawn(async move { bootstrap::run(&fresh).await })
        .await
        .context("the start was broken off")?
        .context("the default objects could not be created")?;
    // Before anybody is served: from here on whatever is acknowledged is durable.
    embedded
        .settle()
        .await
        .context("the default objects could not be made durable")?;
    let (source, identity) = identity.await.context("the certificates could not be loaded")?;
    let identity = identity?;
    let live = rotation::Live::new(&identity);
    let serving = tokio::spawn(listener::serve(
        Arc::clone(&kernel),
        socket,
        Arc::clone(&live.tls),
    ));
    let control = control::start(data, &store);
    let (stop, shutdown) = fairway_controller::Shutdown::new();
    let rotation = rotation::start(source, &identity, live.clone(), shutdown.clone());
    let advertise = config.advertise.map_or_else(
        || kubeconfig_host(listen),
        |ip| SocketAddr::new(ip, listen.port()),
    );
    let shared = (controllers::clients(&kernel), Arc::default());
    let web = web::start(
        (web_socket, format!("https://{advertise}")),
        data,
        config,
        &kernel,
        &live,
        shared.clone(),
        shutdown.clone(),
    )?;
    let foresight = Foresight::new(config.machines.as_ref().map(|machines| machines.node.clone()));
    let voyages = Arc::new(scaffolder::make(
        &kernel,
        &shared.0,
        &web.host,
        (&web.portal_url, &web.portal),
        &config.allowed_hosts,
        scaffolder::Neighbours {
            foresight: foresight.clone(),
            doors: gateway::Doors::new(config.gateway.as_ref().map(|it| it.settings.clone())),
        },
    ));
    scaffolder::join(&voyages, &web.portal);
    if let Err(problem) = kernel.serve_api(&voyages.dry_runs()) {
        tracing::error!(%problem, "dry runs of templates are not answered");
    }
    let first = shared.0.clients(fairway_portal_identity::FIRST_USER);
    let password = fairway_portal_identity::first_administrator(first)
        .await
        .context("the first administrator could not be made")?;
    let catalog = catalog::start(
        &kernel,
        &web.host,
        &web.portal,
        config.allowed_hosts.clone(),
        shared.clone(),
        shutdown.clone(),
    );
    let own = gitops::OwnHost {
        host: Arc::clone(&web.host),
        kernel: Arc::clone(&kernel),
        listen: web.listen,
        allowed_hosts: config.allowed_hosts.clone(),
    };
    let (controllers, served) = controllers::start(
        &kernel,
        &live,
        config,
        (
            gitops::Directories::of(data, config.config_management_plugins.clone()),
            own,
        ),
        shared.clone(),
        advertise,
        shutdown.clone(),
    );
    let voyages = tokio::spawn(scaffolder::run(
        voyages,
        shared.0.clone(),
        Arc::clone(&shared.1),
        shutdown.clone(),
    ));
    let running = Running::this(
        listen,
        (web.listen, config.domain.clone()),
        kernel.clock.rfc3339(),
    );
    running.write(data)?;
    info!(%listen, "the Kubernetes API is ready");
    on_ready(&running, password.as_deref());
    // Last: nobody waits for them before there is a machine.
    let disks = (served, web.uploads.clone(), foresight);
    let (machines, reachable) =
        machines::start(&kernel, data, config, shared.clone(), disks, shutdown.clone());
    let reserved = identity::names(config);
    let gateway = config.gateway.as_ref().map(|config| {
        let own = (&live, reserved, web.realms());
        gateway::start(&kernel, config, shared, own, reachable, shutdown)
    });
    let rest = tokio::spawn(rest::run());

    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    rest.abort();
    info!("ending: requests under way are finished first");
    // Controllers first, while they can still write what they have begun.
    stop.shut_down();
    controllers.await.context("the controllers failed")?;
    voyages.await.context("the controllers of voyages failed")?;
    catalog.await.context("the catalog failed")?;
    if let Some(gateway) = gateway {
        gateway.await.context("the controllers of gateways failed")?;
    }
    // Guests go on without them, and are found again.
    machines.await.context("the controllers of machines failed")?;
    web.ended().await;
    rotation.await.context("the rotation of certificates failed")?;
    control.end().await;
    kernel.shut_down();
    serving.await.context("the listener failed")?;
    store.close().await.context("the store could not be closed")?;
    Running::forget(data);
    info!("ended");
    Ok(())
}

/// The address that clients on this machine use: an unspecified one means loopback to them.
fn kubeconfig_host(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
        other => other,
    };
    SocketAddr::new(ip, listen.port())
}
