//! A WebSocket as a plain stream of bytes, for whoever wants to speak something else inside of it.

use std::time::Duration;

use fairway_websocket::{Event, Reader, Role, Writer, code};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, duplex, split};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// What is on its way between the WebSocket and whoever reads it, in each direction.
const PIECE: usize = 64 << 10;
/// Pings that wait for their answer.
const PONGS: usize = 4;
/// How long the other end may take to hear of the end.
const LINGER: Duration = Duration::from_secs(2);

/// The plain stream, and what keeps it going: to be run until it ends.
pub(crate) fn tube<S>(socket: S, role: Role) -> (DuplexStream, impl Future<Output = ()> + Send)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (near, far) = duplex(PIECE);
    (near, carry(socket, role, far))
}

async fn carry<S: AsyncRead + AsyncWrite>(socket: S, role: Role, plain: DuplexStream) {
    let (from, to) = split(socket);
    let (mut from_plain, mut to_plain) = split(plain);
    let (mut reader, mut writer) = (Reader::new(from, role), Writer::new(to, role));
    let (pong, mut pongs) = mpsc::channel::<Vec<u8>>(PONGS);
    let inward = async {
        loop {
            match reader.next().await {
                Ok(Event::Data(bytes)) => {
                    if to_plain.write_all(bytes).await.is_err() {
                        break;
                    }
                }
                // Of many pings that wait, the last ones need no answer.
                Ok(Event::Ping(payload)) => drop(pong.try_send(payload)),
                Ok(Event::Pong) => {}
                Ok(Event::Close(_) | Event::End) | Err(_) => break,
            }
        }
        let _ = to_plain.shutdown().await;
    };
    let outward = async {
        let mut piece = vec![0; PIECE].into_boxed_slice();
        loop {
            let sent = tokio::select! {
                biased;
                Some(payload) = pongs.recv() => writer.pong(&payload).await,
                read = from_plain.read(&mut piece) => match read {
                    Ok(count) if count > 0 => writer.data(&piece[..count]).await,
                    _ => break,
                },
            };
            if sent.is_err() {
                return;
            }
        }
        let _ = timeout(LINGER, async {
            let _ = writer.close(code::NORMAL, "").await;
            let _ = writer.shutdown().await;
        })
        .await;
    };
    // Whichever ends, the stream is over: what is inside has its own ends.
    tokio::select! {
        () = inward => {}
        () = outward => {}
    }
}
