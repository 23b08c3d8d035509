//! Bodies, wherever they come from and wherever they go: pieces are handed on as they arrive, and whoever reads slowly
//! slows the sender down.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body as _, Frame, SizeHint};
use tokio::sync::mpsc;

use crate::activity::Open;
use crate::h1::chunked::BadChunk;
use crate::h1::client_body::ClientBody;
use crate::h1::exchange::Exchange;
use crate::permit::Permit;
use crate::record::Record;
use crate::upstream::InFlight;
use crate::watch::Watch;

pub(crate) enum Body {
    Empty,
    Full(Bytes),
    /// Of a request over HTTP/1.
    Client(Box<ClientBody>),
    /// Of an answer over HTTP/1.
    Upstream(Box<Exchange>),
    /// Either, over HTTP/2. What is kept with it is let go at its end.
    Http2(Box<Http2Body>),
    /// Of a request, on its way to a backend over HTTP/2.
    Uplink(Box<Uplink>),
    /// Kept on the way, for another attempt.
    Replay(Box<Replay>),
    /// Copied on the way, for a mirror.
    Tee(Box<Tee>),
    /// The mirror's end of a [`Tee`].
    Copy(mpsc::Receiver<Bytes>),
    /// That has to end by a certain time.
    Timed(Box<(Body, Pin<Box<tokio::time::Sleep>>)>),
    /// That ends with what let it through.
    Held(Box<(Body, Permit)>),
    /// With what is told when it ends.
    Recorded(Box<(Body, Record)>),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the client's connection broke")]
    Client(#[source] std::io::Error),
    #[error("the client's body is malformed")]
    Malformed(#[source] BadChunk),
    #[error("the client sent nothing for too long")]
    ClientIdle,
    #[error("the backend's connection broke")]
    Upstream(#[source] std::io::Error),
    #[error("the backend's body is malformed")]
    UpstreamMalformed(#[source] BadChunk),
    #[error("the backend's body ended too early")]
    Truncated,
    #[error("the answer took longer than the rule allows")]
    Late,
    #[error("what let it through has ended: {0}")]
    Lost(&'static str),
    #[error("the client's stream broke")]
    ClientReset(#[source] hyper::Error),
    #[error("the backend's stream broke")]
    Http2(#[source] hyper::Error),
}

impl BodyError {
    /// Whose fault it is.
    pub(crate) fn is_clients(&self) -> bool {
        matches!(
            self,
            Self::Client(_) | Self::Malformed(_) | Self::ClientIdle | Self::ClientReset(_) | Self::Lost(_)
        )
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut *self {
            Self::Empty => Poll::Ready(None),
            Self::Full(_) => match std::mem::replace(&mut *self, Self::Empty) {
                Self::Full(bytes) if !bytes.is_empty() => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                _ => Poll::Ready(None),
            },
            Self::Client(body) => body.poll_frame(cx),
            Self::Upstream(exchange) => exchange.poll_frame(cx),
            Self::Http2(body) => body.poll_frame(cx),
            Self::Uplink(uplink) => uplink.poll_frame(cx),
            Self::Replay(replay) => replay.poll_frame(cx),
            Self::Tee(tee) => tee.poll_frame(cx),
            Self::Copy(receiver) => receiver.poll_recv(cx).map(|data| data.map(Frame::data).map(Ok)),
            Self::Timed(timed) => {
                let (body, until) = &mut **timed;
                match Pin::new(body).poll_frame(cx) {
                    Poll::Pending if until.as_mut().poll(cx).is_ready() => {
                        Poll::Ready(Some(Err(BodyError::Late)))
                    }
                    polled => polled,
                }
            }
            Self::Held(held) => {
                let (body, permit) = &mut **held;
                match Pin::new(body).poll_frame(cx) {
                    Poll::Ready(frame) if !permit.is_due() => Poll::Ready(frame),
                    polled => match permit.poll_lost(cx) {
                        Poll::Ready(why) => Poll::Ready(Some(Err(BodyError::Lost(why)))),
                        Poll::Pending => polled,
                    },
                }
            }
            Self::Recorded(recorded) => {
                let (body, record) = &mut **recorded;
                record.asked();
                let frame = ready!(Pin::new(body).poll_frame(cx));
                match &frame {
                    Some(Ok(frame)) => record.sent(frame.data_ref().map_or(0, Bytes::len)),
                    Some(Err(error)) => record.broke(error),
                    None => {}
                }
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Full(bytes) => bytes.is_empty(),
            Self::Client(body) => body.is_done(),
            Self::Upstream(exchange) => exchange.is_done(),
            Self::Http2(body) => body.incoming.is_end_stream(),
            Self::Uplink(uplink) => uplink.inner.is_end_stream(),
            Self::Replay(replay) => replay.left.is_empty() && replay.inner.is_end_stream(),
            Self::Tee(tee) => tee.inner.is_end_stream(),
            Self::Copy(_) => false,
            Self::Timed(timed) => timed.0.is_end_stream(),
            Self::Held(held) => held.0.is_end_stream(),
            Self::Recorded(recorded) => recorded.0.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Client(body) => body.left().map_or_else(SizeHint::new, SizeHint::with_exact),
            Self::Upstream(exchange) => exchange.left().map_or_else(SizeHint::new, SizeHint::with_exact),
            Self::Http2(body) => body.incoming.size_hint(),
            Self::Uplink(uplink) => uplink.inner.size_hint(),
            Self::Replay(replay) => {
                let inner = replay.inner.size_hint();
                match inner.exact() {
                    Some(exact) => SizeHint::with_exact(exact + replay.left.len() as u64),
                    None => SizeHint::new(),
                }
            }
            Self::Tee(tee) => tee.inner.size_hint(),
            Self::Copy(_) => SizeHint::new(),
            Self::Timed(timed) => timed.0.size_hint(),
            Self::Held(held) => held.0.size_hint(),
            Self::Recorded(recorded) => recorded.0.size_hint(),
        }
    }
}

/// Bytes over HTTP/2, and what its sender wants kept until they have passed.
pub(crate) struct Http2Body {
    incoming: hyper::body::Incoming,
    side: Http2Side,
}

enum Http2Side {
    /// Who has to send something now and then.
    Client { watch: Watch, idle: Duration },
    /// Who may be silent: whether it is alive is asked by pings.
    Backend { _kept: (InFlight, Open) },
}

impl Http2Body {
    pub(crate) fn of_client(incoming: hyper::body::Incoming, idle: Duration) -> Self {
        let watch = Watch::new(idle);
        Self {
            incoming,
            side: Http2Side::Client { watch, idle },
        }
    }

    pub(crate) fn of_backend(incoming: hyper::body::Incoming, in_flight: InFlight, stream: Open) -> Self {
        Self {
            incoming,
            side: Http2Side::Backend {
                _kept: (in_flight, stream),
            },
        }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = Pin::new(&mut self.incoming).poll_frame(cx);
        match &mut self.side {
            Http2Side::Backend { .. } => polled.map_err(BodyError::Http2),
            Http2Side::Client { watch, idle } => match polled {
                Poll::Ready(frame) => {
                    watch.set(*idle);
                    Poll::Ready(frame.map(|frame| frame.map_err(BodyError::ClientReset)))
                }
                Poll::Pending => watch.poll_expired(cx).map(|()| Some(Err(BodyError::ClientIdle))),
            },
        }
    }
}

/// A request's body on its way to a backend over HTTP/2. hyper tells of a body that broke as of a stream that did; whose fault
/// it was, and when the last of it was sent, whoever waits for the answer learns here.
pub(crate) struct Uplink {
    inner: Body,
    seen: Arc<Uplinked>,
}

/// What became of an [`Uplink`].
#[derive(Default)]
pub(crate) struct Uplinked {
    broke: std::sync::Mutex<Option<BodyError>>,
    /// Something was sent since the last look.
    moved: AtomicBool,
}

impl Uplinked {
    pub(crate) fn broke(&self) -> Option<BodyError> {
        self.broke.lock().ok()?.take()
    }

    pub(crate) fn has_moved(&self) -> bool {
        self.moved.swap(false, Ordering::Relaxed)
    }
}

impl Uplink {
    pub(crate) fn wrap(inner: Body) -> (Body, Arc<Uplinked>) {
        let seen = Arc::new(Uplinked::default());
        if matches!(inner, Body::Empty) {
            return (inner, seen);
        }
        let uplink = Self {
            inner,
            seen: Arc::clone(&seen),
        };
        (Body::Uplink(Box::new(uplink)), seen)
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        self.seen.moved.store(true, Ordering::Relaxed);
        match frame {
            Some(Err(error)) => {
                if let Ok(mut broke) = self.seen.broke.lock() {
                    *broke = Some(error);
                }
                let told = BodyError::Client(std::io::ErrorKind::BrokenPipe.into());
                Poll::Ready(Some(Err(told)))
            }
            frame => Poll::Ready(frame),
        }
    }
}

/// What was sent of a body, so that another backend can be sent the same.
#[derive(Default)]
pub(crate) struct Kept {
    bytes: BytesMut,
    trailers: Option<http::HeaderMap>,
    /// More than may be kept has passed: there is no second attempt.
    lost: bool,
}

/// A body that is kept on its way, up to a bound.
pub(crate) struct Replay {
    /// From the attempt before.
    left: Bytes,
    inner: Body,
    kept: Kept,
    longest: usize,
    home: Arc<std::sync::Mutex<Option<(Kept, Body)>>>,
}

/// Where a [`Replay`] leaves what it kept when its attempt is over.
#[derive(Clone, Default)]
pub(crate) struct ReplayHome(Arc<std::sync::Mutex<Option<(Kept, Body)>>>);

impl ReplayHome {
    pub(crate) fn first(&self, inner: Body, longest: usize) -> Body {
        Body::Replay(Box::new(Replay {
            left: Bytes::new(),
            inner,
            kept: Kept::default(),
            longest,
            home: Arc::clone(&self.0),
        }))
    }

    /// The body once more, if all of it that was sent was kept.
    pub(crate) fn again(&self, longest: usize) -> Option<Body> {
        let (kept, inner) = self.0.lock().ok()?.take()?;
        if kept.lost || kept.trailers.is_some() {
            return None;
        }
        let left = kept.bytes.freeze();
        Some(Body::Replay(Box::new(Replay {
            left,
            inner,
            kept: Kept::default(),
            longest,
            home: Arc::clone(&self.0),
        })))
    }
}

impl Replay {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = if self.left.is_empty() {
            ready!(Pin::new(&mut self.inner).poll_frame(cx))
        } else {
            Some(Ok(Frame::data(std::mem::take(&mut self.left))))
        };
        if let Some(Ok(frame)) = &frame {
            if let Some(data) = frame.data_ref() {
                if self.kept.lost || self.kept.bytes.len() + data.len() > self.longest {
                    self.kept.lost = true;
                    self.kept.bytes = BytesMut::new();
                } else {
                    self.kept.bytes.extend_from_slice(data);
                }
            } else if let Some(trailers) = frame.trailers_ref() {
                self.kept.trailers = Some(trailers.clone());
            }
        }
        Poll::Ready(frame)
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        // What was not yet handed out again comes after what was.
        if !self.left.is_empty() && !self.kept.lost {
            self.kept.bytes.extend_from_slice(&self.left);
        }
        let kept = std::mem::take(&mut self.kept);
        let inner = std::mem::replace(&mut self.inner, Body::Empty);
        if let Ok(mut home) = self.home.lock() {
            *home = Some((kept, inner));
        }
    }
}

/// A body that goes to two places. The second never slows the first down: if it cannot follow, it gets no more.
pub(crate) struct Tee {
    inner: Body,
    copy: Option<mpsc::Sender<Bytes>>,
    /// The copy ended before the body did.
    cut: Arc<AtomicBool>,
}

/// Pieces that may wait for a mirror.
const WAITING: usize = 32;

impl Tee {
    /// The body, its copy, and whether the copy was cut short.
    pub(crate) fn split(inner: Body) -> (Body, Body, Arc<AtomicBool>) {
        let (send, receive) = mpsc::channel(WAITING);
        let cut = Arc::new(AtomicBool::new(false));
        let tee = Self {
            inner,
            copy: Some(send),
            cut: Arc::clone(&cut),
        };
        (Body::Tee(Box::new(tee)), Body::Copy(receive), cut)
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        match (&frame, &self.copy) {
            (Some(Ok(frame)), Some(copy)) => {
                if frame
                    .data_ref()
                    .is_some_and(|data| copy.try_send(data.clone()).is_err())
                {
                    self.cut.store(true, Ordering::Relaxed);
                    self.copy = None;
                }
            }
            (Some(Err(_)), _) => {
                self.cut.store(true, Ordering::Relaxed);
                self.copy = None;
            }
            _ => self.copy = None,
        }
        Poll::Ready(frame)
    }
}
