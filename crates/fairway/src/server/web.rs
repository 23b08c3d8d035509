//! The web listener: one port for everything that is not the Kubernetes API, by host name.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use fairway_controller::clients::Within;
use fairway_controller::{ClientFactory, Metrics, Shutdown};
use fairway_gitops_githost::{Body, Host, Options};
use fairway_kernel_apiserver::Kernel;
use fairway_kernel_apiserver::authn::UserInfo;
use fairway_kernel_apiserver::client::InProcess;
use http::header::HOST;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use kube::Client;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use super::rotation::Live;
use crate::data_dir::DataDir;

/// The host name of Git, Gitea's API and webhooks.
pub(crate) const GIT: &str = "git.fairway.localhost";
/// A handshake that takes longer is given up.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time to send the head of a request.
const HEADERS: Duration = Duration::from_secs(30);
/// Connections at once.
const MAX_CONNECTIONS: usize = 1024;
/// The most bytes of a request's head.
const MAX_HEAD: usize = 64 * 1024;
/// Time for requests under way to finish when the server ends.
const DRAIN: Duration = Duration::from_secs(5);

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
    serving: JoinHandle<()>,
    keeping: JoinHandle<()>,
}

impl Web {
    /// Waits until everything under way is finished, once the shutdown was given.
    pub(super) async fn ended(self) {
        for task in [self.serving, self.keeping] {
            if let Err(error) = task.await {
                warn!(%error, "a task of the web listener failed");
            }
        }
    }
}

/// Serves until the end.
pub(super) fn start(
    socket: TcpListener,
    data: &DataDir,
    kernel: &Arc<Kernel>,
    live: &Live,
    shutdown: Shutdown,
) -> anyhow::Result<Web> {
    let listen = socket
        .local_addr()
        .context("the web listener's address is not known")?;
    let user = || {
        let name = fairway_gitops_githost::USER;
        UserInfo::new(name, fairway_kernel_controllers::groups(name))
    };
    let in_process = InProcess::new(Arc::clone(kernel), user());
    let client_at = move |workspace: &str| {
        // A path was judged where it was read; one that fits no URL leads nowhere.
        let prefix = format!("/clusters/{workspace}").parse();
        let prefix = prefix.unwrap_or_else(|_| http::uri::PathAndQuery::from_static("/clusters/-"));
        Client::new(Within::below(in_process.clone(), prefix), "default")
    };
    let host = Host::new(Options {
        repositories: data.repositories(),
        url: format!("https://{GIT}:{}", listen.port()),
        client_at: Arc::new(client_at),
    })
    .context("the Git host could not be prepared")?;
    let for_clients = Arc::clone(kernel);
    let clients = ClientFactory::across_workspaces(move |user| {
        InProcess::new(
            Arc::clone(&for_clients),
            UserInfo::new(user, fairway_kernel_controllers::groups(user)),
        )
    });
    let keeping = tokio::spawn(fairway_gitops_githost::reconcile::run(
        Arc::clone(&host),
        clients,
        Arc::new(Metrics::default()),
        shutdown.clone(),
    ));
    let serving = tokio::spawn(serve(socket, Arc::clone(&host), live.clone(), shutdown));
    Ok(Web {
        listen,
        host,
        serving,
        keeping,
    })
}

async fn serve(socket: TcpListener, host: Arc<Host>, live: Live, mut shutdown: Shutdown) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let graceful = hyper_util::server::graceful::GracefulShutdown::new();
    let server = Arc::new(builder());
    loop {
        let (stream, address) = tokio::select! {
            () = shutdown.wait() => break,
            accepted = socket.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, most likely: waiting is all that helps.
                    warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            debug!(%address, "too many connections");
            continue;
        };
        let (tls, host, server) = (live.tls.load().web(), Arc::clone(&host), Arc::clone(&server));
        let watcher = graceful.watcher();
        tokio::spawn(async move {
            let _place = place;
            let Some(stream) = handshake(tls, stream, address).await else {
                return;
            };
            let service = service_fn(move |request| {
                let host = Arc::clone(&host);
                async move { Ok::<_, Infallible>(answer(&host, request).await) }
            });
            let connection = server
                .serve_connection_with_upgrades(TokioIo::new(stream), service)
                .into_owned();
            if let Err(error) = watcher.watch(connection).await {
                debug!(%address, %error, "a connection ended with an error");
            }
        });
    }
    drop(socket);
    if tokio::time::timeout(DRAIN, graceful.shutdown()).await.is_err() {
        debug!("connections of the web listener were still open at the end and are cut");
    }
}

fn builder() -> auto::Builder<TokioExecutor> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .max_buf_size(MAX_HEAD);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(100)
        .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX))
        .initial_stream_window_size(256 * 1024)
        .initial_connection_window_size(1024 * 1024)
        .max_send_buf_size(256 * 1024)
        .keep_alive_interval(Some(Duration::from_secs(30)))
        .keep_alive_timeout(Duration::from_secs(15));
    server
}

async fn handshake(
    tls: Arc<rustls::ServerConfig>,
    stream: TcpStream,
    address: SocketAddr,
) -> Option<tokio_rustls::server::TlsStream<TcpStream>> {
    let _ = stream.set_nodelay(true);
    match tokio::time::timeout(HANDSHAKE, TlsAcceptor::from(tls).accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            debug!(%address, %error, "a TLS handshake failed");
            None
        }
        Err(_) => {
            debug!(%address, "a TLS handshake took too long");
            None
        }
    }
}

async fn answer(host: &Arc<Host>, request: Request<Incoming>) -> Response<Body> {
    let name = name_of(&request);
    match name.as_str() {
        GIT => {
            let request = request.map(|body: Incoming| body.map_err(Into::into).boxed_unsync());
            host.serve(request).await
        }
        _ => {
            let why = format!(
                "No site is called {name:?} here. Git repositories are at https://{GIT}; the Kubernetes API is at another port."
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
