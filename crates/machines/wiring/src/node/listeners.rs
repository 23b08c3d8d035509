//! Ports of the host: opened, led elsewhere, closed.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use arc_swap::ArcSwap;
use fairway_fabric::forward::{self, Target};
use fairway_fabric::{Destination, Fabric};
use fairway_machines_frames::packet::UDP;
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinHandle;

use crate::kinds::SERVICE;
use crate::picture::{Door, Remark};

/// Where connections of a port go now.
struct Way(ArcSwap<Door>);

impl Target for Way {
    fn destination(&self, client: IpAddr) -> Option<Destination> {
        let door = self.0.load();
        let is_allowed = match (&door.allowed, client) {
            (None, _) => true,
            (Some(allowed), IpAddr::V4(client)) => allowed.iter().any(|network| network.contains(client)),
            (Some(_), IpAddr::V6(_)) => false,
        };
        is_allowed.then(|| door.to.clone())
    }
}

/// A port that is open.
struct Open {
    way: Arc<Way>,
    task: JoinHandle<()>,
}

impl Open {
    /// Ends when the port is free again.
    async fn close(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The ports that are open.
#[derive(Default)]
pub(super) struct Listeners {
    open: BTreeMap<(SocketAddr, u8), Open>,
}

/// What became of the ports that were wanted.
#[derive(Debug, Default)]
pub(super) struct Opened {
    /// One for each port that could not be opened.
    pub(super) remarks: Vec<Remark>,
}

impl Listeners {
    /// Opens what is wanted and not open, leads the rest where it should, and closes what is not wanted. Connections through a port that is
    /// closed are cut.
    pub(super) async fn set(&mut self, wanted: &[Door], fabric: &Arc<dyn Fabric>) -> Opened {
        // Another Service's connections must not go on under this one's name.
        let stays = |place: &(SocketAddr, u8), open: &Open| {
            let service = &open.way.0.load().service;
            (wanted.iter()).any(|door| (door.at, door.protocol) == *place && door.service == *service)
        };
        for (_, open) in self.open.extract_if(.., |place, open| !stays(place, open)) {
            open.close().await;
        }
        let mut opened = Opened::default();
        for door in wanted {
            if let Some(open) = self.open.get(&(door.at, door.protocol)) {
                if **open.way.0.load() != *door {
                    open.way.0.store(Arc::new(door.clone()));
                }
                continue;
            }
            match open(door, fabric).await {
                Ok(open) => drop(self.open.insert((door.at, door.protocol), open)),
                Err(error) => opened.remarks.push(Remark::about(
                    &SERVICE,
                    &door.service,
                    "PortNotOpened",
                    failure(door.at, &error),
                )),
            }
        }
        opened
    }
}

/// Opens a port.
async fn open(door: &Door, fabric: &Arc<dyn Fabric>) -> io::Result<Open> {
    let way = Arc::new(Way(ArcSwap::from_pointee(door.clone())));
    let (fabric, target) = (Arc::clone(fabric), Arc::clone(&way) as Arc<dyn Target>);
    let task = if door.protocol == UDP {
        let socket = UdpSocket::bind(door.at).await?;
        tokio::spawn(forward::serve_datagrams(socket, fabric, target))
    } else {
        let listener = TcpListener::bind(door.at).await?;
        tokio::spawn(forward::serve(listener, fabric, target))
    };
    Ok(Open { way, task })
}

/// Why a port could not be opened, and what helps.
fn failure(at: SocketAddr, error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program listens there: end it, or choose another port".to_owned()
        }
        io::ErrorKind::PermissionDenied => format!(
            "port {} is one of those that need a privilege: choose one from 1024 on, or lower net.ipv4.ip_unprivileged_port_start",
            at.port()
        ),
        io::ErrorKind::AddrNotAvailable => {
            format!("{} is not an address of this host", at.ip())
        }
        _ => error.to_string(),
    };
    format!("Cannot listen on {at}: {advice}.")
}

#[cfg(test)]
mod tests {
    use fairway_controller::{ObjectKey, WorkspaceId};
    use fairway_fabric::PlainTcp;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpStream;

    use super::*;

    fn door(at: SocketAddr, to: SocketAddr, service: &str) -> Door {
        Door {
            at,
            protocol: fairway_machines_frames::packet::TCP,
            service: ObjectKey::new(&WorkspaceId::root(), "shop", service),
            to: Destination::new("root", to.ip(), to.port()),
            allowed: None,
        }
    }

    /// A server that says its name to everybody.
    async fn server(name: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                tokio::io::AsyncWriteExt::write_all(&mut client, name.as_bytes())
                    .await
                    .unwrap();
            }
        });
        address
    }

    async fn heard(at: SocketAddr) -> String {
        let mut heard = String::new();
        match TcpStream::connect(at).await {
            Ok(mut client) => drop(client.read_to_string(&mut heard).await),
            Err(_) => heard.push_str("closed"),
        }
        heard
    }

    #[tokio::test]
    async fn ports_open_change_and_close() {
        let fabric: Arc<dyn Fabric> = Arc::new(PlainTcp::default());
        let (one, other) = (server("one").await, server("other").await);
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = free.local_addr().unwrap();
        let mut listeners = Listeners::default();

        let opened = listeners.set(&[door(at, one, "a")], &fabric).await;
        assert_eq!(
            opened.remarks[0].message,
            format!("Cannot listen on {at}: another program listens there: end it, or choose another port.")
        );
        drop(free);
        assert!(
            listeners
                .set(&[door(at, one, "a")], &fabric)
                .await
                .remarks
                .is_empty()
        );
        assert_eq!(heard(at).await, "one");
        for (service, to, expected) in [("a", other, "other"), ("b", one, "one")] {
            listeners.set(&[door(at, to, service)], &fabric).await;
            assert_eq!(heard(at).await, expected, "{service}");
        }
        let mut closed_to_us = door(at, one, "b");
        closed_to_us.allowed = Some(vec!["192.0.2.0/24".parse().unwrap()]);
        listeners.set(&[closed_to_us], &fabric).await;
        assert_eq!(heard(at).await, "", "only others are allowed");
        listeners.set(&[], &fabric).await;
        assert_eq!(heard(at).await, "closed");
    }

    #[test]
    fn failures_say_what_helps() {
        let at = "192.0.2.1:80".parse().unwrap();
        for (kind, expected) in [
            (
                io::ErrorKind::AddrNotAvailable,
                "192.0.2.1 is not an address of this host",
            ),
            (io::ErrorKind::PermissionDenied, "choose one from 1024 on"),
        ] {
            let message = failure(at, &io::Error::from(kind));
            assert!(message.contains(expected), "{message}");
        }
    }
}
