//! A port of the host that leads to a guest or a Service: NodePorts, load balancer addresses, port-forwards.
//!
//! The client's address goes along as the origin, so that NetworkPolicies judge who is really there. Connections are
//! bounded; one over the bound is closed at once rather than left waiting.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{Semaphore, mpsc};

use crate::{Destination, Fabric, Origin};

/// Where accepted connections go, asked anew for each.
pub trait Target: Send + Sync + 'static {
    /// `None`: nowhere at the moment, or not for this client; the connection is closed.
    fn destination(&self, client: IpAddr) -> Option<Destination>;
}

impl Target for Destination {
    fn destination(&self, _: IpAddr) -> Option<Destination> {
        Some(self.clone())
    }
}

/// How many connections one port carries at a time.
pub const CONNECTIONS: usize = 1024;

/// How long to rest when the host has no file left for another connection.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// Accepts and forwards until the future is dropped; connections that are open then are cut.
pub async fn serve(listener: TcpListener, fabric: Arc<dyn Fabric>, target: Arc<dyn Target>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = tokio::task::JoinSet::new();
    loop {
        // Finished ones are collected on the way, so that they do not pile up.
        while connections.try_join_next().is_some() {}
        let (client, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection to forward; trying again");
                tokio::time::sleep(EXHAUSTED).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&room).try_acquire_owned() else {
            tracing::debug!(%from, "closed a connection: {CONNECTIONS} are being forwarded");
            continue;
        };
        let Some(mut to) = target.destination(from.ip().to_canonical()) else {
            continue;
        };
        to.origin = origin(from.ip());
        let fabric = Arc::clone(&fabric);
        connections.spawn(async move {
            forward(client, fabric, to).await;
            drop(permit);
        });
    }
}

/// Datagrams that wait for one client's talk, or for the port's turn.
const WAITING: usize = 64;
/// The largest datagram.
const DATAGRAM: usize = 65_535;

/// Forwards datagrams until the future is dropped. Each client has a talk of its own, which ends by itself when nobody has said
/// anything for a while.
pub async fn serve_datagrams(socket: UdpSocket, fabric: Arc<dyn Fabric>, target: Arc<dyn Target>) {
    let socket = Arc::new(socket);
    let mut talks: HashMap<SocketAddr, mpsc::Sender<Vec<u8>>> = HashMap::new();
    let mut tasks = tokio::task::JoinSet::new();
    let mut buffer = vec![0; DATAGRAM];
    loop {
        let (length, from) = tokio::select! {
            Some(ended) = tasks.join_next() => {
                if let Ok(client) = ended {
                    talks.remove(&client);
                }
                continue;
            }
            received = socket.recv_from(&mut buffer) => match received {
                Ok(received) => received,
                // An error of an earlier datagram; the port itself is sound.
                Err(error) => {
                    tracing::debug!(%error, "a datagram could not be received");
                    continue;
                }
            },
        };
        let datagram = buffer[..length].to_vec();
        if let Some(talk) = talks.get(&from) {
            // A full queue loses datagrams, as networks do.
            let _ = talk.try_send(datagram);
            continue;
        }
        let Some(mut to) = target.destination(from.ip().to_canonical()) else {
            continue;
        };
        if talks.len() >= CONNECTIONS {
            tracing::debug!(%from, "dropped a datagram: {CONNECTIONS} clients are being served");
            continue;
        }
        to.origin = origin(from.ip());
        let (send, receive) = mpsc::channel(WAITING);
        let _ = send.try_send(datagram);
        talks.insert(from, send);
        let (fabric, socket) = (Arc::clone(&fabric), Arc::clone(&socket));
        tasks.spawn(async move {
            carry(&socket, from, receive, fabric, to).await;
            from
        });
    }
}

async fn carry(
    socket: &UdpSocket,
    client: SocketAddr,
    mut from_client: mpsc::Receiver<Vec<u8>>,
    fabric: Arc<dyn Fabric>,
    to: Destination,
) {
    let mut talk = match fabric.talk(to).await {
        Ok(talk) => talk,
        Err(error) => return tracing::debug!(error = %error, "dropped a client's datagrams"),
    };
    loop {
        tokio::select! {
            datagram = from_client.recv() => match datagram {
                Some(datagram) => drop(talk.send.try_send(datagram)),
                None => return,
            },
            answer = talk.receive.recv() => match answer {
                Some(answer) => drop(socket.send_to(&answer, client).await),
                None => return,
            },
        }
    }
}

/// Whoever connects over the loopback is the node itself.
fn origin(client: IpAddr) -> Origin {
    let client = client.to_canonical();
    if client.is_loopback() {
        Origin::Node
    } else {
        Origin::Client(client)
    }
}

async fn forward(mut client: TcpStream, fabric: Arc<dyn Fabric>, to: Destination) {
    let _ = client.set_nodelay(true);
    match fabric.dial(to).await {
        Ok(mut guest) => {
            // Either side may break off; there is nobody to tell.
            let _ = copy_bidirectional(&mut client, &mut guest).await;
        }
        Err(error) => tracing::debug!(error = %error, "closed a forwarded connection"),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::PlainTcp;

    #[tokio::test]
    async fn a_port_leads_to_its_target() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = server.local_addr().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let door = listener.local_addr().unwrap();
        let forwarding = tokio::spawn(serve(
            listener,
            Arc::new(PlainTcp::default()),
            Arc::new(Destination::new("root", target.ip(), target.port())),
        ));
        let mut client = TcpStream::connect(door).await.unwrap();
        client.write_all(b"ping").await.unwrap();
        client.shutdown().await.unwrap();
        let (mut accepted, _) = server.accept().await.unwrap();
        let mut heard = String::new();
        accepted.read_to_string(&mut heard).await.unwrap();
        accepted.write_all(b"pong").await.unwrap();
        drop(accepted);
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert_eq!((heard.as_str(), answer.as_str()), ("ping", "pong"));
        forwarding.abort();
    }

    #[tokio::test]
    async fn a_target_that_is_gone_closes_the_connection() {
        struct Nowhere;
        impl Target for Nowhere {
            fn destination(&self, _: IpAddr) -> Option<Destination> {
                None
            }
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let door = listener.local_addr().unwrap();
        let forwarding = tokio::spawn(serve(listener, Arc::new(PlainTcp::default()), Arc::new(Nowhere)));
        let mut client = TcpStream::connect(door).await.unwrap();
        assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
        forwarding.abort();
    }

    #[test]
    fn the_loopback_is_the_node() {
        for (address, expected) in [
            ("127.0.0.1", Origin::Node),
            ("::1", Origin::Node),
            ("::ffff:127.0.0.1", Origin::Node),
            ("192.0.2.7", Origin::Client("192.0.2.7".parse().unwrap())),
            ("::ffff:192.0.2.7", Origin::Client("192.0.2.7".parse().unwrap())),
        ] {
            assert_eq!(origin(address.parse().unwrap()), expected, "{address}");
        }
    }
}
