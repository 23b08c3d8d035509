//! A stream of bytes into a machine: KubeVirt's WebSocket, from the client's side.
//!
//! Two directions, which never wait for each other. When there is nothing more to send, the server is told with
//! [`code::END_OF_INPUT`] and still listened to; a server that does not know that code closes.

use fairway_websocket::handshake::{HandshakeError, Offer};
use fairway_websocket::{Event, Reader, Role, Writer, code};
use http::{Request, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf, split};
use tokio::sync::mpsc;

use super::session::{Refused, Session, judged};

/// KubeVirt's subprotocol: bytes in binary messages.
const PROTOCOL: &str = "plain.kubevirt.io";
/// How much is sent at once.
const PIECE: usize = 16 << 10;

/// A stream that is open.
pub(super) struct Stream {
    reader: Reader<ReadHalf<TokioIo<Upgraded>>>,
    writer: Writer<WriteHalf<TokioIo<Upgraded>>>,
}

/// What to do when there is nothing more to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// Listen on.
    Half,
    /// Leave.
    Leave,
}

/// How a stream ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// There was nothing more to send.
    Left,
    /// The server closed it.
    Closed,
    /// It broke off.
    Broken(String),
    /// What came could not be written here.
    NotTaken(String),
}

impl Stream {
    /// Opens the stream at this path.
    pub(super) async fn open(session: &Session, path: &str) -> Result<Self, Refused> {
        let failed = |message: String| Refused { code: 0, message };
        let not_websocket = |error: HandshakeError| failed(format!("Can't connect to websocket: {error}"));
        let offer = Offer::new(PROTOCOL).map_err(not_websocket)?;
        let request = Request::get(path).body(Body::empty());
        let mut request = request.map_err(|error| failed(format!("the request cannot be made: {error}")))?;
        offer.add_to(request.headers_mut());
        let response = session.send(request).await?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            let status = response.status();
            return match judged(response).await {
                Err(refused) => Err(refused),
                Ok(_) => Err(not_websocket(HandshakeError::Status(status))),
            };
        }
        offer
            .check(response.status(), response.headers())
            .map_err(not_websocket)?;
        let upgraded = hyper::upgrade::on(response).await;
        let upgraded = upgraded.map_err(|error| failed(format!("Can't connect to websocket: {error}")))?;
        let (read, write) = split(TokioIo::new(upgraded));
        Ok(Self {
            reader: Reader::new(read, Role::Client),
            writer: Writer::new(write, Role::Client),
        })
    }

    /// Closes it without having sent anything.
    pub(super) async fn close(mut self) {
        // It ends with the connection anyway.
        let _ = self.writer.close(code::NORMAL, "").await;
        let _ = self.writer.shutdown().await;
    }

    /// Carries bytes until the stream ends.
    pub(super) async fn carry(
        self,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
        input: Input,
    ) -> End {
        let Self {
            mut reader,
            mut writer,
        } = self;
        let (pings, mut pinged) = mpsc::channel(4);
        let end = tokio::select! {
            end = inward(&mut reader, to, pings) => end,
            end = outward(&mut writer, from, &mut pinged, input) => end,
        };
        // A word to the other side, if it still listens.
        let _ = writer.close(code::NORMAL, "").await;
        let _ = writer.shutdown().await;
        end
    }
}

/// From the machine.
async fn inward(
    reader: &mut Reader<ReadHalf<TokioIo<Upgraded>>>,
    to: &mut (impl AsyncWrite + Unpin),
    pings: mpsc::Sender<Vec<u8>>,
) -> End {
    loop {
        match reader.next().await {
            Ok(Event::Data(bytes)) => {
                let written = match to.write_all(bytes).await {
                    Ok(()) => to.flush().await,
                    failed => failed,
                };
                if let Err(error) = written {
                    return End::NotTaken(error.to_string());
                }
            }
            Ok(Event::Ping(payload)) => {
                // Of many pings that wait, the last ones need no answer.
                let _ = pings.try_send(payload);
            }
            Ok(Event::Pong) => {}
            Ok(Event::Close(close)) if matches!(close.code, 0 | code::NORMAL | code::GOING_AWAY) => {
                let _ = to.shutdown().await;
                return End::Closed;
            }
            Ok(Event::Close(close)) => return End::Broken(close.reason),
            Ok(Event::End) => {
                let why = "websocket: close 1006 (abnormal closure): unexpected EOF";
                return End::Broken(why.to_owned());
            }
            Err(error) => return End::Broken(error.to_string()),
        }
    }
}

/// To the machine.
async fn outward(
    writer: &mut Writer<WriteHalf<TokioIo<Upgraded>>>,
    from: &mut (impl AsyncRead + Unpin),
    pinged: &mut mpsc::Receiver<Vec<u8>>,
    input: Input,
) -> End {
    let mut piece = vec![0; PIECE].into_boxed_slice();
    let mut is_open = true;
    loop {
        let sent = tokio::select! {
            Some(payload) = pinged.recv() => writer.pong(&payload).await,
            read = from.read(&mut piece), if is_open => match (read, input) {
                (Ok(0) | Err(_), Input::Leave) => return End::Left,
                (Ok(0) | Err(_), Input::Half) => {
                    is_open = false;
                    writer.close(code::END_OF_INPUT, "").await
                }
                (Ok(count), _) => writer.data(&piece[..count]).await,
            },
        };
        if sent.is_err() {
            // The other direction knows why.
            std::future::pending::<()>().await;
        }
    }
}
