//! What holds a stream: its place among those of the session, and for a connection that was taken over the question whether the session
//! goes on, which nobody else asks again.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::{Body, BoxError};

/// How often it is asked whether the session goes on.
const LOOK: Duration = Duration::from_secs(2);

/// A place among the streams of a session; given back when it is dropped.
pub(crate) struct Place(Arc<AtomicUsize>);

impl Place {
    /// Takes one if fewer are taken than the most.
    pub(crate) fn take(taken: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let more = |count: usize| (count < most).then_some(count + 1);
        taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .ok()?;
        Some(Self(Arc::clone(taken)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An answer that keeps its place until it was read or given up.
pub(crate) struct Held {
    body: Body,
    _place: Place,
}

impl Held {
    pub(crate) fn new(body: Body, place: Place) -> Self {
        Self { body, _place: place }
    }
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection that was taken over, for as long as the session goes on.
pub(crate) struct Leash<T> {
    io: T,
    next: Pin<Box<Sleep>>,
    goes_on: Box<dyn Fn() -> bool + Send + Sync>,
    _place: Place,
}

impl<T> Leash<T> {
    pub(crate) fn new(io: T, place: Place, goes_on: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self {
            io,
            next: Box::pin(sleep(LOOK)),
            goes_on: Box::new(goes_on),
            _place: place,
        }
    }

    /// Whether it has ended. Somebody always waits to read, so asking there is enough.
    fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        while self.next.as_mut().poll(cx).is_ready() {
            if !(self.goes_on)() {
                return true;
            }
            self.next.as_mut().reset(Instant::now() + LOOK);
        }
        false
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Leash<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.is_over(cx) {
            let why = std::io::Error::new(std::io::ErrorKind::ConnectionAborted, "the session has ended");
            return Poll::Ready(Err(why));
        }
        Pin::new(&mut self.io).poll_read(cx, into)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Leash<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[test]
    fn places_are_given_back() {
        let taken = Arc::default();
        let first = Place::take(&taken, 2).unwrap();
        let second = Place::take(&taken, 2).unwrap();
        assert!(Place::take(&taken, 2).is_none());
        drop(first);
        assert!(Place::take(&taken, 2).is_some());
        drop(second);
        assert_eq!(taken.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_with_its_session() {
        let (mut far, near) = duplex(64);
        let (taken, goes_on) = (Arc::default(), Arc::new(AtomicBool::new(true)));
        let place = Place::take(&taken, 1).unwrap();
        let asked = Arc::clone(&goes_on);
        let mut leash = Leash::new(near, place, move || asked.load(Ordering::Relaxed));
        far.write_all(b"a").await.unwrap();
        assert_eq!(leash.read_u8().await.unwrap(), b'a');
        tokio::time::advance(LOOK * 3).await;
        far.write_all(b"b").await.unwrap();
        assert_eq!(leash.read_u8().await.unwrap(), b'b');
        goes_on.store(false, Ordering::Relaxed);
        let ended = leash.read_u8().await.unwrap_err();
        assert_eq!(ended.kind(), std::io::ErrorKind::ConnectionAborted);
        drop(leash);
        assert_eq!(taken.load(Ordering::Relaxed), 0);
    }
}
