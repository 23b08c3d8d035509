//! What nodes say to each other after they know who they are: one wish per connection.

use std::io;
use std::net::IpAddr;

use fairway_fabric::{Destination, Origin};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

/// What a connection is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Wish {
    /// Frames between the two switches, as QEMU writes them.
    Link,
    /// The bytes of a connection to a machine of the node that is asked.
    Dial(Place),
    /// Datagrams to such a machine, each with its length before it.
    Talk(Place),
}

/// A machine and its port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) workspace: String,
    pub(super) address: IpAddr,
    pub(super) port: u16,
    /// On whose behalf; the node's own if nobody is named.
    pub(super) client: Option<IpAddr>,
}

impl From<&Destination> for Place {
    fn from(to: &Destination) -> Self {
        Self {
            workspace: to.workspace.clone(),
            address: to.address,
            port: to.port,
            client: match to.origin {
                Origin::Node => None,
                Origin::Client(client) => Some(client),
            },
        }
    }
}

/// Whether it can be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Answer {
    Yes,
    /// Nothing listens there.
    Refused,
    /// The machine did not answer for so many seconds.
    Late(u64),
    No(String),
}

/// The longest message.
const LONGEST: u16 = 4096;

/// Writes a message with its length before it.
async fn write(stream: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> io::Result<()> {
    let message = serde_json::to_vec(message)?;
    let length = u16::try_from(message.len())
        .ok()
        .filter(|length| *length <= LONGEST);
    let length = length.ok_or(io::ErrorKind::InvalidInput)?;
    stream.write_u16(length).await?;
    stream.write_all(&message).await?;
    stream.flush().await
}

async fn read<T: DeserializeOwned>(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<T> {
    let length = stream.read_u16().await?;
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut message = vec![0; usize::from(length)];
    stream.read_exact(&mut message).await?;
    Ok(serde_json::from_slice(&message)?)
}

/// Says what is wanted.
pub(super) async fn ask(stream: &mut (impl AsyncWrite + Unpin), wish: &Wish) -> io::Result<()> {
    write(stream, wish).await
}

/// Hears what is wanted.
pub(super) async fn hear(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Wish> {
    read(stream).await
}

/// Says whether it can be.
pub(super) async fn answer(stream: &mut (impl AsyncWrite + Unpin), answer: &Answer) -> io::Result<()> {
    write(stream, answer).await
}

/// Hears whether it can be.
pub(super) async fn answered(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Answer> {
    read(stream).await
}

/// Carries datagrams until either side ends.
pub(super) async fn relay(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    mut outgoing: mpsc::Receiver<Vec<u8>>,
    incoming: mpsc::Sender<Vec<u8>>,
) {
    let (mut from, mut to) = tokio::io::split(stream);
    let out = async {
        while let Some(datagram) = outgoing.recv().await {
            let Ok(length) = u16::try_from(datagram.len()) else {
                continue;
            };
            to.write_u16(length).await?;
            to.write_all(&datagram).await?;
            to.flush().await?;
        }
        Ok::<_, io::Error>(())
    };
    let back = async {
        loop {
            let length = from.read_u16().await?;
            let mut datagram = vec![0; usize::from(length)];
            from.read_exact(&mut datagram).await?;
            match incoming.try_send(datagram) {
                // Datagrams may be lost.
                Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => {}
                Err(mpsc::error::TrySendError::Closed(_)) => return Ok::<_, io::Error>(()),
            }
        }
    };
    // However it ended, the talk is over.
    tokio::select! {
        _ = out => {}
        _ = back => {}
        () = incoming.closed() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn wishes_and_answers_are_heard_as_they_are_said() {
        let (mut one, mut other) = tokio::io::duplex(64 * 1024);
        let to = Destination::new("team", std::net::Ipv4Addr::new(10, 88, 0, 2), 22)
            .on_behalf_of("192.0.2.7".parse().unwrap());
        let place = Place::from(&to);
        for wish in [Wish::Link, Wish::Dial(place.clone()), Wish::Talk(place.clone())] {
            ask(&mut one, &wish).await.unwrap();
            assert_eq!(hear(&mut other).await.unwrap(), wish);
        }
        assert_eq!(Destination::from(place), to);
        for said in [
            Answer::Yes,
            Answer::Refused,
            Answer::Late(7),
            Answer::No("no".into()),
        ] {
            answer(&mut one, &said).await.unwrap();
            assert_eq!(answered(&mut other).await.unwrap(), said);
        }
    }

    #[tokio::test]
    async fn nonsense_is_refused() {
        for bytes in [&b"\xff\xff"[..], b"\x00\x02{}", b"\x00\x09{\"Link\":1"] {
            let (mut one, mut other) = tokio::io::duplex(64 * 1024);
            one.write_all(bytes).await.unwrap();
            drop(one);
            assert!(hear(&mut other).await.is_err(), "{bytes:?}");
        }
    }

    #[tokio::test]
    async fn datagrams_are_carried_as_they_are_until_one_side_ends() {
        let (mut one, mut other) = tokio::io::duplex(64 * 1024);
        let (send, outgoing) = mpsc::channel(4);
        let (back, mut echoed) = mpsc::channel(4);
        let (incoming, received) = mpsc::channel(4);
        let near = tokio::spawn(async move { relay(&mut one, outgoing, back).await });
        // The other side sends back what it hears.
        let far = tokio::spawn(async move { relay(&mut other, received, incoming).await });
        for datagram in [&b"hello"[..], b"", &[7; 3000]] {
            send.send(datagram.to_vec()).await.unwrap();
            assert_eq!(echoed.recv().await.as_deref(), Some(datagram));
        }
        drop(send);
        near.await.unwrap();
        far.await.unwrap();
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(300))]

        #[test]
        fn random_messages_are_read_or_refused(noise in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut message = u16::try_from(noise.len()).unwrap().to_be_bytes().to_vec();
                message.extend(&noise);
                for bytes in [&noise, &message] {
                    let _ = hear(&mut bytes.as_slice()).await;
                    let _ = answered(&mut bytes.as_slice()).await;
                }
            });
        }

        #[test]
        fn fingerprints_and_neighbours_are_read_or_refused(text in ".{0,80}") {
            let _ = text.parse::<super::super::identity::Fingerprint>();
            let node = serde_json::json!({"metadata": {"annotations": {
                "fairway.dev/tunnel-address": text, "fairway.dev/tunnel-key": "00".repeat(32),
            }}});
            let _ = super::super::Neighbour::read(&node);
        }
    }
}
