//! Questions about the rest of the world, passed on to resolvers that the operator names.
//!
//! Each question goes out from a port of its own, which the kernel chooses, with a random number, and only an answer to
//! that very question from that very resolver is taken.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hickory_proto::op::{Edns, Message, MessageType, Query};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::Semaphore;

use crate::server::read_message;

/// How many questions may be out at a time.
const OUTSTANDING: usize = 512;
const DATAGRAM: u16 = 1232;

/// Resolvers, asked in turn until one answers.
#[derive(Debug)]
pub struct Upstream {
    servers: Vec<SocketAddr>,
    /// For each of them.
    pub timeout: Duration,
    room: Semaphore,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("no resolver is configured")]
    NoServer,
    #[error("{OUTSTANDING} questions wait for an answer already")]
    Busy,
    #[error("the question cannot be written: {0}")]
    Unwritable(#[source] hickory_proto::ProtoError),
    #[error("the resolver {server} did not answer within {} ms", .after.as_millis())]
    Timeout { server: SocketAddr, after: Duration },
    #[error("cannot ask the resolver {server}")]
    Io {
        server: SocketAddr,
        #[source]
        source: io::Error,
    },
}

impl Upstream {
    pub fn new(servers: Vec<SocketAddr>) -> Self {
        Self {
            servers,
            timeout: Duration::from_secs(2),
            room: Semaphore::new(OUTSTANDING),
        }
    }

    pub async fn ask(&self, query: Query) -> Result<Message, AskError> {
        let _permit = self.room.try_acquire().map_err(|_| AskError::Busy)?;
        let mut failure = AskError::NoServer;
        for &server in &self.servers {
            match tokio::time::timeout(self.timeout, ask_one(server, &query)).await {
                Ok(Ok(reply)) => return Ok(reply),
                Ok(Err(error)) => failure = error,
                Err(_) => {
                    failure = AskError::Timeout {
                        server,
                        after: self.timeout,
                    };
                }
            }
        }
        Err(failure)
    }
}

async fn ask_one(server: SocketAddr, query: &Query) -> Result<Message, AskError> {
    let mut question = Message::query();
    question.metadata.recursion_desired = true;
    question.add_query(query.clone());
    let mut edns = Edns::new();
    edns.set_max_payload(DATAGRAM);
    question.set_edns(edns);
    let bytes = question.to_vec().map_err(AskError::Unwritable)?;
    let failed = |source| AskError::Io { server, source };
    let reply = by_datagram(server, &question, &bytes).await.map_err(failed)?;
    if !reply.metadata.truncation {
        return Ok(reply);
    }
    by_stream(server, &question, &bytes).await.map_err(failed)
}

async fn by_datagram(server: SocketAddr, question: &Message, bytes: &[u8]) -> io::Result<Message> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await?;
    // The kernel then drops what comes from elsewhere.
    socket.connect(server).await?;
    socket.send(bytes).await?;
    let mut buffer = [0; 4096];
    loop {
        let length = socket.recv(&mut buffer).await?;
        // A wrong answer is not an answer: the right one may still come.
        if let Ok(reply) = Message::from_vec(&buffer[..length])
            && answers(&reply, question)
        {
            return Ok(reply);
        }
    }
}

async fn by_stream(server: SocketAddr, question: &Message, bytes: &[u8]) -> io::Result<Message> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
    let mut framed = length.to_be_bytes().to_vec();
    framed.extend(bytes);
    stream.write_all(&framed).await?;
    let message = read_message(&mut stream).await?;
    Message::from_vec(&message)
        .ok()
        .filter(|reply| answers(reply, question))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the answer is to another question"))
}

fn answers(reply: &Message, question: &Message) -> bool {
    reply.metadata.message_type == MessageType::Response
        && reply.metadata.id == question.metadata.id
        && reply.queries == question.queries
}
