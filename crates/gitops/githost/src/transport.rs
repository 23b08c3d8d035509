//! Bodies of requests and responses: read piece by piece, within a time and a size; written as they come.

use std::future::Future;
use std::io::Write;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures::stream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::sync::mpsc;

use crate::pkt::{self, BadFrame, Head};

/// Any error of a connection.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// A body.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// The most time between two pieces of a body, in either direction: who is slower is gone.
pub const STALL: Duration = Duration::from_secs(60);
/// Pieces that wait for a slow reader.
const QUEUE: usize = 8;

/// Why a request's body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The connection failed.
    #[error("the request broke off")]
    Broken(#[source] BoxError),
    /// Nothing came for a while.
    #[error("nothing was sent for {} seconds", STALL.as_secs())]
    Stalled,
    /// More than is allowed.
    #[error("the request is larger than the limit of {0} bytes")]
    TooLarge(u64),
    /// It ended within a frame.
    #[error("the request ended too early")]
    Short,
    /// Not pkt-lines.
    #[error(transparent)]
    Frame(#[from] BadFrame),
    /// Not what its `Content-Encoding` says.
    #[error("the request cannot be decompressed")]
    Encoding,
}

/// A request's body.
pub struct Input {
    body: Body,
    gzip: Option<flate2::write::MultiGzDecoder<Vec<u8>>>,
    buffer: BytesMut,
    received: u64,
    limit: u64,
    is_done: bool,
}

impl Input {
    /// Reads a body of at most `limit` bytes, decompressed.
    pub fn new(body: Body, is_gzip: bool, limit: u64) -> Self {
        Self {
            body,
            gzip: is_gzip.then(|| flate2::write::MultiGzDecoder::new(Vec::new())),
            buffer: BytesMut::new(),
            received: 0,
            limit,
            is_done: false,
        }
    }

    /// The next piece, as it came.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, InputError> {
        while self.buffer.is_empty() {
            if self.is_done {
                return Ok(None);
            }
            self.fill().await?;
        }
        Ok(Some(self.buffer.split().freeze()))
    }

    async fn fill(&mut self) -> Result<(), InputError> {
        let frame = match tokio::time::timeout(STALL, self.body.frame()).await {
            Err(_) => return Err(InputError::Stalled),
            Ok(None) => {
                self.is_done = true;
                return Ok(());
            }
            Ok(Some(frame)) => frame.map_err(InputError::Broken)?,
        };
        let Ok(data) = frame.into_data() else {
            return Ok(());
        };
        match &mut self.gzip {
            None => self.take(&data)?,
            Some(_) => {
                // In small pieces, so that what a few bytes become is counted before it fills the memory.
                for piece in data.chunks(512) {
                    let Some(gzip) = &mut self.gzip else { break };
                    gzip.write_all(piece).map_err(|_| InputError::Encoding)?;
                    gzip.flush().map_err(|_| InputError::Encoding)?;
                    let plain = std::mem::take(gzip.get_mut());
                    self.take(&plain)?;
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, data: &[u8]) -> Result<(), InputError> {
        self.received += data.len() as u64;
        if self.received > self.limit {
            return Err(InputError::TooLarge(self.limit));
        }
        self.buffer.extend_from_slice(data);
        Ok(())
    }

    /// Exactly so many bytes.
    pub async fn exact(&mut self, count: usize) -> Result<Bytes, InputError> {
        while self.buffer.len() < count {
            if self.is_done {
                return Err(InputError::Short);
            }
            self.fill().await?;
        }
        Ok(self.buffer.split_to(count).freeze())
    }

    /// Whether nothing more comes.
    pub async fn is_at_end(&mut self) -> Result<bool, InputError> {
        while self.buffer.is_empty() && !self.is_done {
            self.fill().await?;
        }
        Ok(self.buffer.is_empty())
    }

    /// The content of the next frame, none at the end of a section.
    pub async fn frame(&mut self) -> Result<Option<Bytes>, InputError> {
        let mut digits = [0; 4];
        self.exact(4).await?.copy_to_slice(&mut digits);
        match pkt::head(digits)? {
            Head::Content(length) => self.exact(length).await.map(Some),
            _ => Ok(None),
        }
    }

    /// All of it.
    pub async fn whole(mut self) -> Result<Bytes, InputError> {
        while !self.is_done {
            self.fill().await?;
        }
        Ok(self.buffer.split().freeze())
    }
}

/// The writing end of a response's body.
#[derive(Debug, Clone)]
pub struct Output(mpsc::Sender<Result<Bytes, BoxError>>);

/// The reader is gone or asleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client does not read the response")]
pub struct Gone;

impl Output {
    /// Hands on a piece, if the client takes it in time.
    pub async fn send(&self, piece: Bytes) -> Result<(), Gone> {
        match tokio::time::timeout(STALL, self.0.send(Ok(piece))).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Gone),
        }
    }

    /// Breaks the response off, so that the client does not take it for whole.
    pub async fn fail(&self, error: impl Into<BoxError>) {
        let _ = tokio::time::timeout(STALL, self.0.send(Err(error.into()))).await;
    }

    /// Ends when the client leaves.
    pub fn left(&self) -> impl Future<Output = ()> + Send + use<> {
        let sender = self.0.clone();
        async move { sender.closed().await }
    }
}

/// A body that is written while it is sent.
pub fn channel() -> (Output, Body) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let pieces = stream::unfold(
        receiver,
        |mut receiver: mpsc::Receiver<Result<Bytes, BoxError>>| async move {
            let piece = receiver.recv().await?;
            Some((piece.map(Frame::data), receiver))
        },
    );
    (Output(sender), StreamBody::new(pieces).boxed_unsync())
}

/// A body that is there already.
pub fn full(content: impl Into<Bytes>) -> Body {
    Full::new(content.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// A response with a body of a media type. Nothing here may be kept by anybody on the way.
pub fn response(status: StatusCode, media_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, max-age=0, must-revalidate"),
    );
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

/// A response for a person.
pub fn text(status: StatusCode, text: &str) -> Response<Body> {
    response(status, "text/plain; charset=utf-8", full(format!("{text}\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(pieces: &[&[u8]]) -> Body {
        let frames: Vec<Result<Frame<Bytes>, BoxError>> = pieces
            .iter()
            .map(|piece| Ok(Frame::data(Bytes::copy_from_slice(piece))))
            .collect();
        StreamBody::new(stream::iter(frames)).boxed_unsync()
    }

    #[tokio::test]
    async fn frames_may_come_in_any_pieces() {
        let whole = b"0007hi\n0000PACKrest";
        for size in 1..whole.len() {
            let pieces: Vec<&[u8]> = whole.chunks(size).collect();
            let mut input = Input::new(body(&pieces), false, 1000);
            assert_eq!(input.frame().await.unwrap().unwrap(), "hi\n");
            assert_eq!(input.frame().await.unwrap(), None);
            let mut rest = Vec::new();
            while let Some(piece) = input.piece().await.unwrap() {
                rest.extend_from_slice(&piece);
            }
            assert_eq!(rest, b"PACKrest", "{size}");
            assert!(input.is_at_end().await.unwrap());
        }
    }

    #[tokio::test]
    async fn wrong_bodies_are_refused() {
        let mut short = Input::new(body(&[b"0009hi"]), false, 1000);
        assert!(matches!(short.frame().await, Err(InputError::Short)));
        let mut wrong = Input::new(body(&[b"zzzz"]), false, 1000);
        assert!(matches!(wrong.frame().await, Err(InputError::Frame(_))));
        let mut large = Input::new(body(&[b"0123456789"]), false, 9);
        assert!(matches!(large.piece().await, Err(InputError::TooLarge(9))));
        let mut plain = Input::new(body(&[b"this is not gzip at all, not at all"]), true, 1000);
        assert!(matches!(plain.piece().await, Err(InputError::Encoding)));
    }

    #[tokio::test]
    async fn a_small_body_that_becomes_a_large_one_is_refused() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        for _ in 0..2000 {
            packer.write_all(&[0; 16 << 10]).unwrap();
        }
        let packed = packer.finish().unwrap();
        assert!(packed.len() < 50_000);
        let input = Input::new(body(&[&packed]), true, 1 << 20);
        assert!(matches!(input.whole().await, Err(InputError::TooLarge(_))));
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(b"0007hi\n0000").unwrap();
        let mut input = Input::new(body(&[&packer.finish().unwrap()]), true, 100);
        assert_eq!(input.frame().await.unwrap().unwrap(), "hi\n");
    }
}
