//! The side that calls: keeps the links that are this node's to make, and opens connections to machines of others.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::Clients;
use fairway_fabric::{Connection, Destination, DialError, Talk};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::{TlsConnector, client};

use super::accept::tune;
use super::wire::{self, Answer, Wish};
use super::{FIRST_RETRY, LAST_RETRY, Neighbour, PATIENCE, Peers};

/// Datagrams that wait in each direction of a talk.
const DATAGRAMS: usize = 64;

/// Why another node did not do what was wished.
#[derive(Debug, thiserror::Error)]
enum CallError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it refused: {0:?}")]
    Answer(Answer),
}

impl CallError {
    /// As if this node had dialled itself.
    fn of(self, node: &str, to: Destination) -> DialError {
        let why = match self {
            Self::Answer(Answer::Refused) => return DialError::Refused { to },
            Self::Answer(Answer::Late(seconds)) => {
                let after = Duration::from_secs(seconds);
                return DialError::Timeout { to, after };
            }
            Self::Answer(Answer::No(why)) => why,
            Self::Answer(Answer::Yes) => String::new(),
            Self::Io(error) => format!("node {node}, on which the machine is, cannot be reached: {error}"),
        };
        DialError::Unreachable { to, why }
    }
}

impl Peers {
    /// Says on the Node where this one listens, and keeps the links that are this node's to make.
    pub(super) async fn call(self: Arc<Self>, own: &Neighbour, clients: &Clients) {
        let mut changes = self.changes.subscribe();
        let mut tasks = JoinSet::new();
        let mut kept: BTreeMap<String, AbortHandle> = BTreeMap::new();
        loop {
            changes.borrow_and_update();
            let has_told = self.tell(Some(own), clients).await;
            let wanted = self.nodes.keys_where(|key, _| self.node < key.name);
            kept.retain(|name, task| {
                let stays = wanted.iter().any(|key| key.name == *name);
                if !stays {
                    task.abort();
                }
                stays
            });
            while tasks.try_join_next().is_some() {}
            for key in wanted {
                kept.entry(key.name.clone())
                    .or_insert_with(|| tasks.spawn(Arc::clone(&self).keep(key.name)));
            }
            let again = async {
                match has_told {
                    true => std::future::pending().await,
                    false => tokio::time::sleep(FIRST_RETRY).await,
                }
            };
            tokio::select! {
                _ = changes.changed() => {}
                () = again => {}
            }
        }
    }

    /// Keeps the link to a node whenever it has a tunnel.
    async fn keep(self: Arc<Self>, name: String) {
        let mut changes = self.changes.subscribe();
        let mut retry = FIRST_RETRY;
        loop {
            let Some(neighbour) = self.neighbour(&name) else {
                let _ = changes
                    .wait_for(|_| self.neighbour(&name).is_some())
                    .await
                    .is_ok();
                continue;
            };
            match self.connect(&neighbour, &Wish::Link).await {
                Ok(stream) => {
                    retry = FIRST_RETRY;
                    self.carry(&name, neighbour.key, stream).await;
                }
                Err(error) if retry == FIRST_RETRY => tracing::warn!(
                    node = name, address = %neighbour.address, %error,
                    "machines of this node do not reach those of another: cannot link to it; trying again"
                ),
                Err(error) => tracing::debug!(node = name, %error, "still no link to another node"),
            }
            tokio::select! {
                () = tokio::time::sleep(retry) => retry = (retry * 2).min(LAST_RETRY),
                // What it says of itself now may be better.
                _ = changes.wait_for(|_| self.neighbour(&name).as_ref() != Some(&neighbour)) => retry = FIRST_RETRY,
            }
        }
    }

    /// Calls a node, and says what for. It must agree.
    async fn connect(
        &self,
        neighbour: &Neighbour,
        wish: &Wish,
    ) -> Result<client::TlsStream<TcpStream>, CallError> {
        let config = self.identity.client(neighbour.key).map_err(io::Error::other)?;
        let connecting = async {
            let stream = TcpStream::connect(neighbour.address).await?;
            tune(&stream)?;
            let name = ServerName::IpAddress(neighbour.address.ip().into());
            let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
            wire::ask(&mut stream, wish).await?;
            match wire::answered(&mut stream).await? {
                Answer::Yes => Ok(stream),
                refusal => Err(CallError::Answer(refusal)),
            }
        };
        // The other side may itself wait for the machine.
        tokio::time::timeout(PATIENCE * 2, connecting)
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    async fn connect_to(&self, node: &str, wish: &Wish) -> Result<client::TlsStream<TcpStream>, CallError> {
        match self.neighbour(node) {
            Some(neighbour) => self.connect(&neighbour, wish).await,
            None => Err(CallError::Io(io::Error::other("it has no tunnel yet"))),
        }
    }

    /// Opens a connection to a machine of another node.
    pub(crate) async fn dial_at(
        &self,
        node: &str,
        to: Destination,
    ) -> Result<Box<dyn Connection>, DialError> {
        match self.connect_to(node, &Wish::Dial((&to).into())).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(error.of(node, to)),
        }
    }

    /// Begins to exchange datagrams with a machine of another node.
    pub(crate) async fn talk_at(&self, node: &str, to: Destination) -> Result<Talk, DialError> {
        let mut stream = match self.connect_to(node, &Wish::Talk((&to).into())).await {
            Ok(stream) => stream,
            Err(error) => return Err(error.of(node, to)),
        };
        let (send, outgoing) = mpsc::channel(DATAGRAMS);
        let (incoming, receive) = mpsc::channel(DATAGRAMS);
        // It ends with the talk, or with the other node's end of it.
        tokio::spawn(async move { wire::relay(&mut stream, outgoing, incoming).await });
        Ok(Talk { send, receive })
    }
}
