//! The web listener: one port for everything that is not the Kubernetes API, by host name; disks are sent to it by number, too.

mod behind;
mod fairway_api;
mod portal;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context;
use bytes::Bytes;
use fairway_controller::clients::Within;
use fairway_controller::{ClientFactory, Metrics, Shutdown};
use fairway_gitops_githost::{Body, Host, Options};
use fairway_kernel_apiserver::Kernel;
use fairway_kernel_apiserver::authn::UserInfo;
use fairway_kernel_apiserver::client::InProcess;
use fairway_kernel_apiserver::http::accept::{self, Bounds, Site};
use fairway_machines_volumes::Uploads;
use fairway_portal_identity::Provider;
use fairway_portal_web_server::{BoxError, WebServer};
use http::header::HOST;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use kube::Client;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::server::TlsStream;
use tower::Service;
use tracing::warn;

use super::realms::Identity;
use super::rotation::Live;
use crate::config::Config;
use crate::config::domain::Domain;
use crate::data_dir::DataDir;
pub(crate) use portal::{Portal, Visitor};

/// What strangers may take.
const BOUNDS: Bounds = Bounds {
    connections: 1024,
    head: 64 * 1024,
    streams: 100,
    send_buffer: 256 * 1024,
};

/// Takes the address, before anything else is touched. If none was chosen, it goes with that of the API, so that several
/// Fairways can run side by side; and if somebody else is there, any other will do.
pub(super) async fn bind(chosen: Option<SocketAddr>, api: SocketAddr) -> anyhow::Result<TcpListener> {
    if let Some(address) = chosen {
        return TcpListener::bind(address).await.with_context(|| {
            format!("{address} cannot be listened on; choose another address with --web-listen ADDR:PORT")
        });
    }
    let beside = SocketAddr::from((Ipv4Addr::LOCALHOST, api.port().checked_add(1000).unwrap_or(0)));
    match TcpListener::bind(beside).await {
        Ok(socket) => Ok(socket),
        Err(error) => {
            warn!(%beside, %error, "the web listener takes another port; choose one with --web-listen ADDR:PORT");
            let anywhere = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
            anywhere.context("no port is free for the web listener")
        }
    }
}

/// The web listener that runs.
pub(super) struct Web {
    /// Where.
    pub listen: SocketAddr,
    /// The repositories.
    pub host: Arc<Host>,
    /// Disks that are sent, also for machines on other nodes.
    pub uploads: Option<Uploads>,
    identity: Identity,
    /// Backstage's APIs.
    pub portal: Portal,
    /// Where people find the portal.
    pub portal_url: String,
    serving: JoinHandle<()>,
    keeping: JoinHandle<()>,
}

impl Web {
    /// For gateways, which verify tokens themselves.
    pub(super) fn realms(&self) -> Arc<dyn fairway_gateway_engine::Realms> {
        self.identity.at_gateways()
    }

    /// Waits until everything under way is finished, once the shutdown was given.
    pub(super) async fn ended(self) {
        for task in [self.serving, self.keeping] {
            if let Err(error) = task.await {
                warn!(%error, "a task of the web listener failed");
            }
        }
        self.identity.ended().await;
    }
}

/// Serves until the end.
pub(super) fn start(
    (socket, api_server): (TcpListener, String),
    data: &DataDir,
    config: &Config,
    kernel: &Arc<Kernel>,
    live: &Live,
    (clients, metrics): (ClientFactory, Arc<Metrics>),
    mut shutdown: Shutdown,
) -> anyhow::Result<Web> {
    let listen = socket
        .local_addr()
        .context("the web listener's address is not known")?;
    let domain = &config.domain;
    let site = |host: String| format!("https://{host}:{}", listen.port());
    let portal_url = site(domain.portal());
    let addresses = (site(domain.sign_in()), portal_url.clone());
    let allowed_hosts = config.allowed_hosts.clone();
    let identity = super::realms::start(kernel, &clients, addresses, allowed_hosts, shutdown.clone())?;
    let user = fairway_gitops_githost::USER;
    let user = UserInfo::new(user, fairway_kernel_controllers::groups(user));
    let in_process = InProcess::new(Arc::clone(kernel), user);
    let client_at = move |workspace: &str| client_within(in_process.clone(), workspace);
    let host = Host::new(Options {
        repositories: data.repositories(),
        url: site(domain.git()),
        client_at: Arc::new(client_at),
        allowed_hosts: config.allowed_hosts.clone(),
    })
    .context("the Git host could not be prepared")?;
    let keeping = tokio::spawn(fairway_gitops_githost::reconcile::run(
        Arc::clone(&host),
        clients,
        metrics,
        shutdown.clone(),
    ));
    // By number: who sends a disk may know no name of this host.
    let uploads = Uploads::new(&format!("https://{listen}"));
    let portal = Portal::default();
    behind::join(&portal, kernel, &host);
    fairway_api::join(
        &portal,
        kernel,
        config.audit.as_ref().map(|audit| audit.path(data)),
    );
    let web_server = WebServer::new(fairway_portal_web_server::Options {
        url: portal_url.clone(),
        domain: domain.to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        api_server,
        git_url: host.url().to_owned(),
        provider: Arc::clone(&identity.provider),
        behind: portal.handler(),
    });
    let sites = Sites {
        names: Names::below(domain),
        host: Arc::clone(&host),
        uploads: uploads.clone(),
        provider: Arc::clone(&identity.provider),
        web_server,
        live: live.clone(),
    };
    let end = async move { shutdown.wait().await };
    let serving = tokio::spawn(accept::serve(Arc::new(sites), socket, BOUNDS, end));
    Ok(Web {
        listen,
        host,
        uploads,
        identity,
        portal,
        portal_url,
        serving,
        keeping,
    })
}

/// A client of a workspace, by its path or id.
pub(super) fn client_within<S, B>(service: S, workspace: &str) -> Client
where
    S: Service<Request<kube::client::Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    // A path was judged where it was read; one that fits no URL leads nowhere.
    let prefix = format!("/clusters/{workspace}").parse();
    let prefix = prefix.unwrap_or_else(|_| http::uri::PathAndQuery::from_static("/clusters/-"));
    Client::new(Within::below(service, prefix), "default")
}

/// What is served, by host name.
struct Sites {
    names: Names,
    host: Arc<Host>,
    uploads: Option<Uploads>,
    provider: Arc<Provider>,
    web_server: Arc<WebServer>,
    live: Live,
}

/// The hosts.
struct Names {
    git: String,
    sign_in: String,
    portal: String,
}

impl Names {
    fn below(domain: &Domain) -> Self {
        Self {
            git: domain.git(),
            sign_in: domain.sign_in(),
            portal: domain.portal(),
        }
    }
}

impl Site for Sites {
    type Body = Body;
    type Trust = ();
    type Peer = IpAddr;

    fn tls(&self) -> (Arc<ServerConfig>, ()) {
        (self.live.tls.load().web(), ())
    }

    fn peer((): (), _: &TlsStream<TcpStream>, address: SocketAddr) -> IpAddr {
        address.ip()
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>, peer: Arc<IpAddr>) -> Response<Body> {
        answer(&self, request, *peer).await
    }
}

async fn answer(sites: &Sites, request: Request<Incoming>, peer: IpAddr) -> Response<Body> {
    let name = name_of(&request);
    let boxed = |request: Request<Incoming>| request.map(|body| body.map_err(Into::into).boxed_unsync());
    let Names { git, sign_in, portal } = &sites.names;
    match (name, &sites.uploads) {
        (name, _) if name == *git => sites.host.serve(boxed(request)).await,
        (name, _) if name == *sign_in && request.uri().path() == "/font.woff2" => WebServer::font(),
        (name, _) if name == *sign_in => sites.provider.serve(boxed(request), peer).await,
        (name, _) if name == *portal => sites.web_server.serve(boxed(request), peer).await,
        // Whatever the host is called: the paths are those of CDI's proxy, and nobody else's.
        (_, Some(uploads)) if Uploads::serves(request.uri().path()) => uploads.serve(boxed(request)).await,
        (name, _) => {
            let why = format!(
                "No site is called {name:?} here. Git repositories are at https://{git}, sign-in is at https://{sign_in}, the portal \
                 at https://{portal}; the Kubernetes API is at another port."
            );
            fairway_gitops_githost::transport::text(StatusCode::MISDIRECTED_REQUEST, &why)
        }
    }
}

/// The host that a request is for, without a port, in lower case.
fn name_of(request: &Request<Incoming>) -> String {
    let header = request.headers().get(HOST).and_then(|value| value.to_str().ok());
    let named = request.uri().host().or(header).unwrap_or("");
    let name = named
        .rsplit_once(':')
        .map_or(named, |(name, port)| match port.parse::<u16>() {
            Ok(_) => name,
            Err(_) => named,
        });
    name.trim_end_matches('.').to_ascii_lowercase()
}
