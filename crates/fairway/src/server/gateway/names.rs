//! Names that are published, for those outside and for machines. There is one name server, which machines ask already; from the
//! first name on it listens for those outside, too.

use std::net::{Ipv4Addr, SocketAddr};
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

/// Answers until the end. `of_machines` is the name server that machines ask, if there are any.
pub(super) async fn serve(
    address: SocketAddr,
    domain: String,
    of_machines: Option<Arc<Server>>,
    mut names: watch::Receiver<Arc<Names>>,
    mut shutdown: Shutdown,
) {
    let server = of_machines.unwrap_or_else(|| {
        let others = resolvers(Path::new(RESOLVERS));
        Arc::new(Server::new((!others.is_empty()).then(|| Upstream::new(others))))
    });
    // Nobody else is asked for names of the platform, also while there are none.
    tell(&server, &domain, &Names::default());
    let first = async { names.wait_for(|names| !names.is_empty()).await.is_ok() };
    let has_names = tokio::select! {
        () = shutdown.wait() => false,
        has_names = first => has_names,
    };
    if !has_names {
        return;
    }
    let keeping = async {
        loop {
            let now = Arc::clone(&names.borrow_and_update());
            tell(&server, &domain, &now);
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

fn tell(server: &Server, domain: &str, names: &Names) {
    server.set_zone(OUTSIDE, zone(domain, names, |_| true));
    // This host's loopback is not theirs: there they would meet themselves.
    server.set_common(zone(domain, names, |address| !address.is_loopback()));
}

/// The names with those of their addresses that the asker has a way to.
fn zone(domain: &str, names: &Names, is_there: impl Fn(&Ipv4Addr) -> bool) -> Zone {
    let hosts = names.iter().map(|(name, addresses)| {
        let addresses = addresses.iter().copied().filter(&is_there).collect();
        (name.clone(), addresses)
    });
    Zone::of_hosts(domain, hosts)
}

#[cfg(test)]
mod tests {
    use fairway_dns::zone::Data;

    use super::*;

    #[test]
    fn machines_are_not_led_to_their_own_loopback() {
        let outside = Ipv4Addr::new(192, 0, 2, 7);
        let names: Names = [
            ("laptop.apps.example".to_owned(), [Ipv4Addr::LOCALHOST].into()),
            (
                "both.apps.example".to_owned(),
                [Ipv4Addr::LOCALHOST, outside].into(),
            ),
        ]
        .into();
        let machines = zone("apps.example", &names, |address| !address.is_loopback());
        for (name, expected) in [
            ("laptop.apps.example", Some(&[][..])),
            ("both.apps.example", Some(&[Data::A(outside)])),
            ("none.apps.example", None),
        ] {
            assert_eq!(machines.records(name), expected, "{name}");
            assert!(machines.owns(name), "{name}");
        }
        let all = zone("apps.example", &names, |_| true);
        let here = Data::A(Ipv4Addr::LOCALHOST);
        assert_eq!(all.records("laptop.apps.example"), Some(&[here][..]));
    }
}
