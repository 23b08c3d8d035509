//! Taking a connection over.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::BoxError;

/// Bytes in both directions.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Io for T {}

type Pending = BoxFuture<'static, Result<Upgraded, BoxError>>;

/// The client asked to speak something else on this connection. An extension of such requests; answer with code 101 and
/// spawn a task that waits for [`Upgrade::io`], which is ready when the answer has been sent.
#[derive(Clone)]
pub struct Upgrade(Arc<Mutex<Option<Pending>>>);

impl Upgrade {
    /// For the kernel: the connection will be there when `pending` is done.
    pub fn new(pending: impl Future<Output = Result<Upgraded, BoxError>> + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::pin(pending)))))
    }

    /// The connection. It can be taken once.
    pub async fn io(self) -> Result<Upgraded, BoxError> {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        match taken {
            Some(pending) => pending.await,
            None => Err("the connection has been taken over already".into()),
        }
    }
}

impl fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upgrade")
    }
}

/// A connection that was taken over. The kernel counts it until it is dropped.
pub struct Upgraded(Box<dyn Io>);

impl Upgraded {
    /// For the kernel.
    pub fn new(io: impl Io) -> Self {
        Self(Box::new(io))
    }
}

impl fmt::Debug for Upgraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upgraded")
    }
}

impl AsyncRead for Upgraded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
