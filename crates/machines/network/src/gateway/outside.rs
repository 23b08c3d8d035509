//! Connections of the host on a guest's behalf, refused where they would end on the host itself.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use tokio::net::TcpStream;

/// How long the outside may take. A guest's own patience is longer; it is told in time.
const PATIENCE: Duration = Duration::from_secs(15);

/// Whether an address is one of the host's own, by the kernel's routing table at this moment: what goes to an own
/// address comes from that address. Nothing is sent.
pub(super) fn is_own(address: Ipv4Addr) -> io::Result<bool> {
    let probe = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    probe.connect((address, 9))?;
    Ok(probe.local_addr()?.ip() == address)
}

/// Fails where a guest must not go.
pub(super) fn must_be_elsewhere(address: Ipv4Addr) -> io::Result<()> {
    if is_own(address)? {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "guests do not reach the host: allow the address by name if they should",
        ));
    }
    Ok(())
}

/// Connects for a guest. `named`: the operator allows this very address, even if it is the host's.
pub(crate) async fn connect(address: Ipv4Addr, port: u16, named: bool) -> io::Result<TcpStream> {
    if !named {
        must_be_elsewhere(address)?;
    }
    let connecting = TcpStream::connect(SocketAddrV4::new(address, port));
    let stream = tokio::time::timeout(PATIENCE, connecting)
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_own_addresses_are_known() {
        assert!(is_own(Ipv4Addr::LOCALHOST).unwrap());
        // Whatever address the host would use towards the world is its own; a host without a network has none.
        let probe = UdpSocket::bind("0.0.0.0:0").unwrap();
        if probe.connect("192.0.2.1:9").is_ok()
            && let std::net::IpAddr::V4(own) = probe.local_addr().unwrap().ip()
        {
            assert!(is_own(own).unwrap(), "{own}");
            assert!(!is_own(Ipv4Addr::new(192, 0, 2, 1)).unwrap());
        }
    }
}
