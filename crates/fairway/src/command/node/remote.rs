//! The API server, as a node elsewhere reaches it: one identity for all of its parts, which may be renewed while they work.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context as Waker, Poll};

use anyhow::Context;
use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_controller::ClientFactory;
use fairway_kernel_x509::Certificate;
use futures::future::BoxFuture;
use http::{Request, Response};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::Service;

use super::credentials::USER;

/// The server that a kubeconfig leads to.
#[derive(Clone)]
pub(super) struct Remote {
    file: PathBuf,
    /// What goes before the address in it.
    given: Option<String>,
    server: String,
    node: String,
    client: Arc<ArcSwap<Client>>,
}

impl Remote {
    /// Reads the kubeconfig; `server` goes before what it says.
    pub(super) async fn open(file: &Path, server: Option<&str>) -> anyhow::Result<Self> {
        // rustls wants to be told which cryptography to use, once.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config = config(file, server).await?;
        let node = node(&config).with_context(|| {
            format!(
                "{} is not the kubeconfig of a node; let this host join with `fairway node join`",
                file.display()
            )
        })?;
        let server_url = config.cluster_url.to_string();
        let client = client(file, config)?;
        Ok(Self {
            file: file.to_owned(),
            given: server.map(str::to_owned),
            server: server_url,
            node,
            client: Arc::new(ArcSwap::from_pointee(client)),
        })
    }

    /// The name that the server knows this host by.
    pub(super) fn node(&self) -> &str {
        &self.node
    }

    /// Its address.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// The kubeconfig.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// A client of the root workspace.
    pub(super) fn client(&self) -> Client {
        Client::clone(&self.client.load())
    }

    /// Goes on with what the kubeconfig says now. What is under way ends as it began.
    pub(super) async fn reload(&self) -> anyhow::Result<()> {
        let config = config(&self.file, self.given.as_deref()).await?;
        self.client.store(Arc::new(client(&self.file, config)?));
        Ok(())
    }

    /// Clients of every workspace. Whatever part asks, it is this node.
    pub(super) fn clients(&self) -> ClientFactory {
        let current = Current(Arc::clone(&self.client));
        ClientFactory::across_workspaces(move |_| current.clone())
    }
}

fn client(file: &Path, config: Config) -> anyhow::Result<Client> {
    Client::try_from(config).with_context(|| format!("kubeconfig {} cannot be used", file.display()))
}

/// The node whose certificate a configuration has.
fn node(config: &Config) -> Option<String> {
    let identity = &config.auth_info;
    let pem = match (&identity.client_certificate_data, &identity.client_certificate) {
        (Some(data), _) => String::from_utf8(STANDARD.decode(data).ok()?).ok()?,
        (None, Some(file)) => std::fs::read_to_string(file).ok()?,
        (None, None) => return None,
    };
    let certificate = Certificate::first_from_pem(&pem).ok()?;
    let name = certificate.subject.common_name.strip_prefix(USER)?;
    Some(name.to_owned())
}

async fn config(file: &Path, server: Option<&str>) -> anyhow::Result<Config> {
    let kubeconfig = Kubeconfig::read_from(file).with_context(|| {
        format!(
            "kubeconfig {} cannot be read; let this host join with `fairway node join`, or name one with --kubeconfig FILE",
            file.display()
        )
    })?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("kubeconfig {} cannot be used", file.display()))?;
    if let Some(server) = server {
        config.cluster_url = server
            .parse()
            .with_context(|| format!("--server {server:?} is no address"))?;
    }
    Ok(config)
}

/// Sends by whatever client there is at the moment.
#[derive(Clone)]
struct Current(Arc<ArcSwap<Client>>);

impl Service<Request<Body>> for Current {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Waker<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.0.load_full();
        Box::pin(async move { client.send(request).await })
    }
}
