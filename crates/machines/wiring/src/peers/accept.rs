//! The side that is called: listens, asks who calls and what for, and does it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use fairway_fabric::{Destination, DialError, Origin};
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::{TlsAcceptor, server};

use super::identity::Fingerprint;
use super::wire::{self, Answer, Wish};
use super::{FIRST_RETRY, HELD, PATIENCE, Peers};
use crate::settings::Tunnel;

/// Callers at a time who have not said yet who they are. More wait: they may be anybody.
const STRANGERS: usize = 32;
/// Connections of other nodes at a time.
const CONNECTIONS: usize = 4096;
/// A link over which nothing came through for so long is broken, in milliseconds.
const SILENCE: u32 = 15_000;

/// Listens. Where no port is configured and the usual one is taken, any other will do: others are told which.
pub(super) async fn bind(tunnel: &Tunnel) -> io::Result<TcpListener> {
    match TcpListener::bind(tunnel.usual()).await {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && tunnel.port.is_none() => {
            TcpListener::bind((tunnel.address, 0)).await
        }
        usual => usual,
    }
}

/// Small packets go at once, and a node that is gone is noticed.
pub(super) fn tune(stream: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(5))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(5))?;
    sockopt::set_tcp_keepcnt(stream, 2)?;
    sockopt::set_tcp_user_timeout(stream, SILENCE)?;
    Ok(())
}

fn late(_: tokio::time::error::Elapsed) -> io::Error {
    io::Error::from(io::ErrorKind::TimedOut)
}

/// A caller who is a node.
struct Caller {
    name: String,
    key: Fingerprint,
    stream: server::TlsStream<TcpStream>,
    wish: Wish,
}

impl Peers {
    /// Takes the calls of others.
    pub(super) async fn accept(self: Arc<Self>, listener: TcpListener) {
        let peers = Arc::downgrade(&self);
        let is_known = move |key| peers.upgrade().is_some_and(|it| it.name_of(key).is_some());
        let acceptor = match self.identity.server(is_known) {
            Ok(config) => TlsAcceptor::from(Arc::new(config)),
            Err(error) => {
                tracing::error!(%error, "this node takes no links of others");
                return std::future::pending().await;
            }
        };
        let strangers = Arc::new(Semaphore::new(STRANGERS));
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        let mut calls = JoinSet::new();
        loop {
            while calls.try_join_next().is_some() {}
            // The semaphore is never closed.
            let Ok(stranger) = Arc::clone(&strangers).acquire_owned().await else {
                return;
            };
            let (stream, from) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot take a call of another node; trying again");
                    tokio::time::sleep(FIRST_RETRY).await;
                    continue;
                }
            };
            let (peers, acceptor, room) = (Arc::clone(&self), acceptor.clone(), Arc::clone(&room));
            calls.spawn(async move {
                let heard = tokio::time::timeout(PATIENCE, peers.hear(stream, &acceptor)).await;
                drop(stranger);
                let served = match heard.map_err(late).flatten() {
                    Ok(caller) => match room.try_acquire() {
                        Ok(_permit) => peers.serve(caller).await,
                        Err(_) => Err(io::Error::other("too many connections of other nodes")),
                    },
                    Err(error) => Err(error),
                };
                if let Err(error) = served {
                    tracing::debug!(%from, %error, "a call of another node came to nothing");
                }
            });
        }
    }

    /// Asks who calls and what for.
    async fn hear(&self, stream: TcpStream, acceptor: &TlsAcceptor) -> io::Result<Caller> {
        tune(&stream)?;
        let mut stream = acceptor.accept(stream).await?;
        let certificate = stream.get_ref().1.peer_certificates().and_then(|all| all.first());
        let key = Fingerprint::of(certificate.ok_or(io::ErrorKind::PermissionDenied)?);
        let name = self.name_of(key).ok_or(io::ErrorKind::PermissionDenied)?;
        let wish = wire::hear(&mut stream).await?;
        Ok(Caller {
            name,
            key,
            stream,
            wish,
        })
    }

    async fn serve(&self, caller: Caller) -> io::Result<()> {
        let Caller {
            name,
            key,
            mut stream,
            wish,
        } = caller;
        let (to, is_talk) = match wish {
            Wish::Link => {
                wire::answer(&mut stream, &Answer::Yes).await?;
                self.carry(&name, key, stream).await;
                return Ok(());
            }
            Wish::Dial(to) => (Destination::from(to), false),
            Wish::Talk(to) => (Destination::from(to), true),
        };
        let Some(network) = self.network().await else {
            let none = Answer::No("no machine runs there".to_owned());
            return wire::answer(&mut stream, &none).await;
        };
        // A node that is removed meanwhile is cut off.
        let carried = async {
            if is_talk {
                match network.talk_here(to).await {
                    Ok(talk) => {
                        wire::answer(&mut stream, &Answer::Yes).await?;
                        wire::relay(&mut stream, talk.receive, talk.send).await;
                        Ok(())
                    }
                    Err(error) => wire::answer(&mut stream, &refusal(error)).await,
                }
            } else {
                match network.dial_here(to).await {
                    Ok(mut guest) => {
                        wire::answer(&mut stream, &Answer::Yes).await?;
                        // Either side may break off; there is nobody to tell.
                        let _ = copy_bidirectional_with_sizes(&mut stream, &mut guest, HELD, HELD).await;
                        Ok(())
                    }
                    Err(error) => wire::answer(&mut stream, &refusal(error)).await,
                }
            }
        };
        tokio::select! {
            carried = carried => carried,
            () = self.until_unknown(&name, key) => Ok(()),
        }
    }
}

fn refusal(error: DialError) -> Answer {
    match error {
        DialError::Refused { .. } => Answer::Refused,
        DialError::Timeout { after, .. } => Answer::Late(after.as_secs()),
        DialError::Unreachable { why, .. } => Answer::No(why),
        error @ (DialError::Io { .. } | DialError::Closed { .. }) => Answer::No(error.to_string()),
    }
}

impl From<wire::Place> for Destination {
    fn from(place: wire::Place) -> Self {
        let mut to = Self::new(place.workspace, place.address, place.port);
        to.origin = place.client.map_or(Origin::Node, Origin::Client);
        to
    }
}
