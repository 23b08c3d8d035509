//! What a service sends and takes for long, for as long as whoever asked may have it.
//!
//! Unlike a watch, which ends as if there were no more, such a stream breaks off: half a disk must not look like a whole one.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt as _;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::http::body::{BoxError, ResponseBody};
use crate::service::standing::Lost;

const WHY: &str = "whoever opened this stream has lost the right to it";

/// A body on a leash.
struct Leashed {
    /// None once it broke off.
    body: Option<ResponseBody>,
    lost: Lost,
}

/// The body, for as long as nothing is lost.
pub(super) fn body(body: ResponseBody, lost: Lost) -> ResponseBody {
    let body = Some(body);
    Leashed { body, lost }.boxed_unsync()
}

impl Body for Leashed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.body.is_some() && self.lost.poll_unpin(cx).is_ready() {
            self.body = None;
            return Poll::Ready(Some(Err(WHY.into())));
        }
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

/// A connection on a leash. Reading and writing each wait on their own, since different tasks may do them.
pub(super) struct Connection<T> {
    io: T,
    reading: Side,
    writing: Side,
}

impl<T> Connection<T> {
    pub(super) fn new(io: T, lost: Option<Lost>) -> Self {
        let side = |lost| Side { lost, is_lost: false };
        Self {
            io,
            reading: side(lost.clone()),
            writing: side(lost),
        }
    }
}

struct Side {
    lost: Option<Lost>,
    is_lost: bool,
}

impl Side {
    /// Breaks off if the right is lost, and wakes whoever asked when it will be.
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if let Some(lost) = self.lost.as_mut().filter(|_| !self.is_lost) {
            self.is_lost = lost.poll_unpin(cx).is_ready();
        }
        match self.is_lost {
            true => Err(io::Error::new(io::ErrorKind::ConnectionAborted, WHY)),
            false => Ok(()),
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Connection<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.reading.check(cx)?;
        Pin::new(&mut self.io).poll_read(cx, into)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Connection<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.writing.check(cx)?;
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writing.check(cx)?;
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // It may be ended properly in any case.
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use http_body_util::Full;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::oneshot;

    use super::*;

    fn leash() -> (oneshot::Sender<()>, Lost) {
        let (lose, lost) = oneshot::channel::<()>();
        (lose, lost.map(drop).boxed().shared())
    }

    #[tokio::test]
    async fn a_body_breaks_off_and_does_not_look_whole() {
        let (lose, lost) = leash();
        let full = || Full::new(Bytes::from_static(b"a")).map_err(|never| match never {});
        let whole = body(full().boxed_unsync(), lost.clone()).collect().await;
        assert_eq!(whole.unwrap().to_bytes(), "a");
        let mut broken = body(full().boxed_unsync(), lost);
        lose.send(()).unwrap();
        assert!(broken.frame().await.unwrap().is_err());
        assert!(broken.frame().await.is_none() && broken.is_end_stream());
    }

    /// Whoever waits for something to read is woken, also when another task has written since.
    #[tokio::test]
    async fn a_connection_breaks_off_for_all_who_wait() {
        let (lose, lost) = leash();
        let (near, mut far) = tokio::io::duplex(8);
        let (mut read, mut write) = tokio::io::split(Connection::new(near, Some(lost)));
        let reading = tokio::spawn(async move { read.read_u8().await });
        tokio::task::yield_now().await;
        write.write_all(b"ab").await.unwrap();
        let writing = tokio::spawn(async move { write.write_all(&[0; 64]).await });
        tokio::task::yield_now().await;
        lose.send(()).unwrap();
        let aborted = |result: io::Result<()>| result.unwrap_err().kind() == io::ErrorKind::ConnectionAborted;
        assert!(aborted(reading.await.unwrap().map(drop)));
        assert!(aborted(writing.await.unwrap()));
        assert_eq!(
            far.read_u8().await.unwrap(),
            b'a',
            "what was written before is there"
        );
    }

    #[tokio::test]
    async fn without_a_leash_nothing_ends() {
        let (near, mut far) = tokio::io::duplex(8);
        let mut near = Connection::new(near, None);
        far.write_all(b"x").await.unwrap();
        assert_eq!(near.read_u8().await.unwrap(), b'x');
    }
}
