//! A client's connection as something that is read: between requests by the connection itself, during one by its body.

use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Frame;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::Notify;
use tokio_rustls::server::TlsStream;

use super::chunked::{Chunk, Decoder};
use super::head::Framing;
use crate::body::BodyError;
use crate::rewound::Rewound;
use crate::watch::Watch;

/// What a client's bytes come from.
pub(crate) enum ReadSide {
    Tcp(OwnedReadHalf),
    Tls(tokio::io::ReadHalf<TlsStream<Rewound<TcpStream>>>),
}

impl AsyncRead for ReadSide {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Tcp(io) => Pin::new(io).poll_read(cx, buffer),
            Self::Tls(io) => Pin::new(io).poll_read(cx, buffer),
        }
    }
}

/// With what has been read and not yet understood.
pub(crate) struct Reader {
    pub(crate) io: ReadSide,
    pub(crate) buffer: BytesMut,
}

/// What a connection reads at a time, at least.
const ROOM: usize = 4 * 1024;
/// What is read of a body at a time.
const BODY_ROOM: usize = 16 * 1024;

impl Reader {
    pub(crate) fn new(io: ReadSide) -> Self {
        Self {
            io,
            buffer: BytesMut::new(),
        }
    }

    /// Reads more; zero is the end.
    pub(crate) fn poll_fill(&mut self, cx: &mut Context<'_>, room: usize) -> Poll<io::Result<usize>> {
        self.buffer.reserve(room);
        pin!(self.io.read_buf(&mut self.buffer)).poll(cx)
    }

    pub(crate) fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.poll_fill(cx, ROOM)
    }

    /// Ready when the client is gone. What it sends meanwhile is kept, up to a bound.
    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>, most: usize) -> Poll<()> {
        loop {
            if self.buffer.len() >= most {
                return Poll::Pending;
            }
            match ready!(self.poll_fill(cx, ROOM)) {
                Ok(0) | Err(_) => return Poll::Ready(()),
                Ok(_) => {}
            }
        }
    }
}

/// Where a body leaves the connection when it is done with it.
#[derive(Clone, Default)]
pub(crate) struct Home(Arc<Mutex<Option<Returned>>>);

pub(crate) struct Returned {
    pub(crate) reader: Reader,
    /// The body was read to its end: the next request follows.
    pub(crate) finished: bool,
    /// Wrong bytes came: nothing after them can be trusted.
    pub(crate) broken: bool,
    left: Left,
    idle: Duration,
}

impl Returned {
    /// What was not read of it.
    pub(crate) fn into_body(self, home: Home) -> ClientBody {
        ClientBody {
            reader: Some(self.reader),
            left: self.left,
            home,
            watch: Watch::new(self.idle),
            idle: self.idle,
            awaited: None,
            broken: self.broken,
        }
    }
}

impl Home {
    pub(crate) fn take(&self) -> Option<Returned> {
        self.0.lock().ok()?.take()
    }
}

enum Left {
    Length(u64),
    Chunked(Decoder),
    Nothing,
}

/// The body of one request.
pub(crate) struct ClientBody {
    reader: Option<Reader>,
    left: Left,
    home: Home,
    watch: Watch,
    idle: Duration,
    /// Told once when the body is first asked for: the client waits for `100 Continue`.
    awaited: Option<Arc<Notify>>,
    broken: bool,
}

impl ClientBody {
    pub(crate) fn new(
        reader: Reader,
        framing: Framing,
        home: Home,
        idle: Duration,
        awaited: Option<Arc<Notify>>,
    ) -> Self {
        Self {
            reader: Some(reader),
            left: match framing {
                Framing::None => Left::Nothing,
                Framing::Length(length) => Left::Length(length),
                Framing::Chunked => Left::Chunked(Decoder::new()),
            },
            home,
            watch: Watch::new(idle),
            idle,
            awaited,
            broken: false,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(self.left, Left::Nothing | Left::Length(0))
    }

    pub(crate) fn left(&self) -> Option<u64> {
        match &self.left {
            Left::Nothing => Some(0),
            Left::Length(length) => Some(*length),
            Left::Chunked(_) => None,
        }
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(awaited) = self.awaited.take() {
            awaited.notify_one();
        }
        let polled = self.poll_inner(cx);
        if let Poll::Ready(Some(Err(_))) = &polled {
            self.broken = true;
        }
        polled
    }

    fn poll_inner(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(reader) = &mut self.reader else {
            return Poll::Ready(None);
        };
        loop {
            match &mut self.left {
                Left::Nothing | Left::Length(0) => {
                    self.left = Left::Nothing;
                    return Poll::Ready(None);
                }
                Left::Length(left) if !reader.buffer.is_empty() => {
                    let here = usize::try_from(*left)
                        .unwrap_or(usize::MAX)
                        .min(reader.buffer.len());
                    *left -= here as u64;
                    return Poll::Ready(Some(Ok(Frame::data(reader.buffer.split_to(here).freeze()))));
                }
                Left::Length(_) => {}
                Left::Chunked(decoder) => match decoder.next(&mut reader.buffer) {
                    Ok(Chunk::Data(data)) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                    Ok(Chunk::Trailers(trailers)) => return Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
                    Ok(Chunk::End) => {
                        self.left = Left::Nothing;
                        return Poll::Ready(None);
                    }
                    Ok(Chunk::Partial) => {}
                    Err(error) => return Poll::Ready(Some(Err(BodyError::Malformed(error)))),
                },
            }
            match reader.poll_fill(cx, BODY_ROOM) {
                Poll::Ready(Ok(0)) => {
                    return Poll::Ready(Some(Err(BodyError::Client(io::ErrorKind::UnexpectedEof.into()))));
                }
                Poll::Ready(Ok(_)) => self.watch.set(self.idle),
                Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(BodyError::Client(error)))),
                Poll::Pending => {
                    return match self.watch.poll_expired(cx) {
                        Poll::Ready(()) => Poll::Ready(Some(Err(BodyError::ClientIdle))),
                        Poll::Pending => Poll::Pending,
                    };
                }
            }
        }
    }
}

impl Drop for ClientBody {
    fn drop(&mut self) {
        let finished = match &self.left {
            Left::Nothing | Left::Length(0) => true,
            Left::Chunked(decoder) => decoder.is_done(),
            Left::Length(_) => false,
        };
        if let (Some(reader), Ok(mut home)) = (self.reader.take(), self.home.0.lock()) {
            *home = Some(Returned {
                reader,
                finished: finished && !self.broken,
                broken: self.broken,
                left: std::mem::replace(&mut self.left, Left::Nothing),
                idle: self.idle,
            });
        }
    }
}
