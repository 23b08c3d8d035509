//! At which ports what is published is reached from outside, known before anything is published.

use std::io::ErrorKind;
use std::net::SocketAddr;

use fairway_gateway_engine::{Settings, instead};
use fairway_portal_scaffolder::Gateways;
use tokio::net::TcpSocket;

/// The ports of gateways.
pub(in crate::server) struct Doors {
    settings: Settings,
    is_served: bool,
}

impl Doors {
    /// `None`: no gateways are served here, and whoever serves them has the usual ports.
    pub(in crate::server) fn new(settings: Option<Settings>) -> Self {
        Self {
            is_served: settings.is_some(),
            settings: settings.unwrap_or_default(),
        }
    }
}

impl Gateways for Doors {
    fn domain(&self) -> &str {
        &self.settings.domain
    }

    fn port(&self, wanted: u16) -> u16 {
        let door = SocketAddr::new(self.settings.address, wanted);
        match instead(wanted).filter(|_| self.is_served && lacks_privilege(door)) {
            Some(port) => port,
            None => wanted,
        }
    }
}

/// Whether this process may not have a port. Nothing listens for that, so that nobody who wants the port is disturbed.
fn lacks_privilege(door: SocketAddr) -> bool {
    let socket = match door {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    };
    let tried = socket.and_then(|socket| {
        socket.set_reuseaddr(true)?;
        socket.bind(door)
    });
    tried.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_port_is_the_one_that_gateways_get() {
        let doors = Doors::new(Some(Settings::default()));
        for (wanted, other) in [(80, 8080), (443, 8443)] {
            let refused = TcpListener::bind(("127.0.0.1", wanted));
            let expected = match refused.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
                true => other,
                false => wanted,
            };
            assert_eq!(doors.port(wanted), expected, "{wanted}");
            assert_eq!(
                Doors::new(None).port(wanted),
                wanted,
                "somebody else serves {wanted}"
            );
        }
        assert_eq!(doors.port(9443), 9443, "nothing stands in for it");
    }
}
