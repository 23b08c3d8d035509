//! The name server for what is published. It listens from the first name on.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::Shutdown;
use fairway_dns::{Server, Sockets, Upstream, Zone};
use fairway_gateway_engine::Names;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::config::machines::resolvers;

/// Where the host says who knows other names.
const RESOLVERS: &str = "/etc/resolv.conf";
/// Those who ask from outside have one view.
const OUTSIDE: &str = "outside";
/// How soon to try again to listen.
const RETRY: Duration = Duration::from_secs(30);

/// Answers until the end.
pub(super) async fn serve(
    address: SocketAddr,
    domain: String,
    mut names: watch::Receiver<Arc<Names>>,
    mut shutdown: Shutdown,
) {
    let first = async { names.wait_for(|names| !names.is_empty()).await.is_ok() };
    let has_names = tokio::select! {
        () = shutdown.wait() => false,
        has_names = first => has_names,
    };
    if !has_names {
        return;
    }
    let others = resolvers(Path::new(RESOLVERS));
    let server = Arc::new(Server::new((!others.is_empty()).then(|| Upstream::new(others))));
    let keeping = async {
        loop {
            let now = Arc::clone(&names.borrow_and_update());
            let hosts = now.iter().map(|(name, addresses)| {
                let addresses = addresses.iter().copied().collect();
                (name.clone(), addresses)
            });
            server.set_zone(OUTSIDE, Zone::of_hosts(&domain, hosts));
            if names.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    let answering = async {
        let mut told = false;
        loop {
            match Sockets::bind(address).await {
                Ok(sockets) => {
                    info!(%address, "published names are answered");
                    sockets.serve(Arc::clone(&server), OUTSIDE).await;
                }
                Err(error) if !told => {
                    told = true;
                    warn!(%address, %error, "published names are not answered; choose another address with --dns-listen ADDR:PORT");
                }
                Err(_) => {}
            }
            tokio::time::sleep(RETRY).await;
        }
    };
    tokio::select! {
        () = shutdown.wait() => {}
        () = keeping => {}
        () = answering => {}
    }
}
