//! The server on sockets, for those who ask from outside of the platform's networks: datagrams and streams at one address.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::Semaphore;
use tracing::debug;

use crate::server::{Server, Transport};

/// The largest question that is read; longer ones come over streams.
const LONGEST: usize = 4096;
/// Questions of datagrams, and streams, under way at once. What comes then waits, or is dropped by the system.
const AT_ONCE: usize = 256;

/// Both sockets of an address.
pub struct Sockets {
    datagrams: Arc<UdpSocket>,
    streams: TcpListener,
}

impl Sockets {
    /// Takes an address.
    ///
    /// # Errors
    /// Somebody else has it, or it is not this host's.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let datagrams = UdpSocket::bind(address).await?;
        // The same port, also if any would do.
        let streams = TcpListener::bind(datagrams.local_addr()?).await?;
        Ok(Self {
            datagrams: Arc::new(datagrams),
            streams,
        })
    }

    /// Where they are.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.datagrams.local_addr()
    }

    /// Answers as somebody in `workspace` is answered, until the future is dropped.
    pub async fn serve(self, server: Arc<Server>, workspace: &str) {
        let workspace: Arc<str> = workspace.into();
        let streams = serve_streams(self.streams, Arc::clone(&server), Arc::clone(&workspace));
        tokio::join!(serve_datagrams(self.datagrams, server, workspace), streams);
    }
}

async fn serve_datagrams(socket: Arc<UdpSocket>, server: Arc<Server>, workspace: Arc<str>) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut buffer = vec![0; LONGEST];
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        let (length, from) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            // An answer that could not be delivered is told here; the socket goes on.
            Err(error) => {
                debug!(%error, "a datagram was not received");
                continue;
            }
        };
        let (question, socket) = (buffer[..length].to_vec(), Arc::clone(&socket));
        let (server, workspace) = (Arc::clone(&server), Arc::clone(&workspace));
        tokio::spawn(async move {
            let _permit = permit;
            if let Some(answer) = server.answer(&workspace, &question, Transport::Datagram).await
                && let Err(error) = socket.send_to(&answer, from).await
            {
                debug!(%error, %from, "an answer was not sent");
            }
        });
    }
}

async fn serve_streams(listener: TcpListener, server: Arc<Server>, workspace: Arc<str>) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            continue;
        };
        let (server, workspace) = (Arc::clone(&server), Arc::clone(&workspace));
        tokio::spawn(async move {
            let _permit = permit;
            server.serve_stream(&workspace, stream).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use hickory_proto::op::{Message, Query, ResponseCode};
    use hickory_proto::rr::{Name, RecordType};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;
    use crate::zone::Zone;

    fn question(name: &str) -> Vec<u8> {
        let mut message = Message::query();
        message.add_query(Query::query(Name::from_ascii(name).unwrap(), RecordType::A));
        message.to_vec().unwrap()
    }

    #[tokio::test]
    async fn both_ways_lead_to_the_same_answer() {
        let server = Arc::new(Server::new(None));
        let hosts = [("*.apps.test".to_owned(), vec![Ipv4Addr::new(192, 0, 2, 7)])];
        server.set_zone("outside", Zone::of_hosts("apps.test", hosts));
        let sockets = Sockets::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = sockets.address().unwrap();
        tokio::spawn(async move { sockets.serve(server, "outside").await });

        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut buffer = vec![0; 1024];
        for (name, code, answers) in [
            ("a.apps.test.", ResponseCode::NoError, 1),
            ("apps.test.", ResponseCode::NoError, 0),
            ("elsewhere.test.", ResponseCode::Refused, 0),
        ] {
            socket.send_to(&question(name), address).await.unwrap();
            let length = socket.recv(&mut buffer).await.unwrap();
            let reply = Message::from_vec(&buffer[..length]).unwrap();
            assert_eq!(
                (reply.metadata.response_code, reply.answers.len()),
                (code, answers),
                "{name}"
            );
        }
        let mut stream = TcpStream::connect(address).await.unwrap();
        let asked = question("b.apps.test.");
        stream
            .write_u16(u16::try_from(asked.len()).unwrap())
            .await
            .unwrap();
        stream.write_all(&asked).await.unwrap();
        let length = stream.read_u16().await.unwrap();
        let mut answer = vec![0; usize::from(length)];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(Message::from_vec(&answer).unwrap().answers.len(), 1);
    }
}
