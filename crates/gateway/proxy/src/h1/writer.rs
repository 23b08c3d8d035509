//! An answer on its way to a client over HTTP/1.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Response, StatusCode, Version};
use http_body::{Body as _, Frame};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::chunked;
use super::response::{write_header, write_headers, write_length, write_status};
use super::server::WriteSide;
use crate::body::{Body, BodyError};
use crate::pipeline;
use crate::record::Record;
use crate::watch::Watch;

/// Whether the connection can carry another request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    KeepAlive,
    Close,
}

/// Where an answer goes, and how long the client may take to read it.
pub(crate) struct To<'a> {
    pub(crate) writer: &'a mut WriteSide,
    pub(crate) watch: &'a mut Watch,
    pub(crate) idle: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    None,
    Length,
    Chunked,
    Close,
}

/// What is copied next to the head rather than written apart.
const TOGETHER: usize = 16 * 1024;

pub(crate) async fn write(
    mut to: To<'_>,
    response: Response<Body>,
    record: &mut Record,
    version: Version,
    method: &Method,
    keep: bool,
) -> io::Result<Ending> {
    let (mut parts, mut body) = response.into_parts();
    // What is there already travels with the head.
    let mut first = match next_now(&mut body) {
        Poll::Ready(Some(Err(error))) => {
            // Nothing was said yet, so the truth can be.
            record.broke(&error);
            record.status(StatusCode::BAD_GATEWAY);
            (parts, body) = pipeline::plain(StatusCode::BAD_GATEWAY).into_parts();
            next_now(&mut body)
        }
        polled => polled,
    };
    let status = parts.status;
    let framing = framing(&parts, &body, &first, version, method);
    let keep = keep && framing != Framing::Close;
    let mut out = BytesMut::with_capacity(1024);
    write_status(&mut out, version, status);
    for (name, value) in &parts.headers {
        let ours = *name == TRANSFER_ENCODING
            || *name == CONNECTION
            || (*name == CONTENT_LENGTH && (framing != Framing::None || status == StatusCode::NO_CONTENT));
        if !ours {
            write_header(&mut out, name.as_str().as_bytes(), value.as_bytes());
        }
    }
    if !parts.headers.contains_key(DATE) {
        write_header(&mut out, b"date", date().as_bytes());
    }
    match framing {
        Framing::Length => write_length(&mut out, exact(&body, &first).unwrap_or(0)),
        Framing::Chunked => write_header(&mut out, b"transfer-encoding", b"chunked"),
        Framing::None | Framing::Close => {}
    }
    if !keep {
        write_header(&mut out, b"connection", b"close");
    } else if version == Version::HTTP_10 {
        write_header(&mut out, b"connection", b"keep-alive");
    }
    out.extend_from_slice(b"\r\n");
    if framing == Framing::None {
        to.write(&mut out, None).await?;
        return Ok(if keep { Ending::KeepAlive } else { Ending::Close });
    }
    let (mut sent, promised) = (0_u64, exact(&body, &first).filter(|_| framing == Framing::Length));
    loop {
        let frame = match std::mem::replace(&mut first, Poll::Pending) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                if !out.is_empty() {
                    to.write(&mut out, None).await?;
                }
                poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await
            }
        };
        match frame {
            None => break,
            Some(Err(error)) => {
                record.broke(&error);
                // The client must see that it is not whole: the connection ends in the middle.
                return Err(io::Error::other(error));
            }
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => {
                    sent += data.len() as u64;
                    record.sent(data.len());
                    to.frame(&mut out, data, framing).await?;
                }
                Err(frame) => {
                    if let (Framing::Chunked, Ok(trailers)) = (framing, frame.into_trailers()) {
                        chunked::encode_end(&mut out, Some(&trailers));
                        to.write(&mut out, None).await?;
                        return Ok(if keep { Ending::KeepAlive } else { Ending::Close });
                    }
                }
            },
        }
        if body.is_end_stream() {
            break;
        }
        first = next_now(&mut body);
    }
    if promised.is_some_and(|promised| promised != sent) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if framing == Framing::Chunked {
        chunked::encode_end(&mut out, None);
    }
    to.write(&mut out, None).await?;
    Ok(if keep { Ending::KeepAlive } else { Ending::Close })
}

impl To<'_> {
    /// A small piece waits to be written with what comes at once after it, a large one is not copied.
    async fn frame(&mut self, out: &mut BytesMut, data: Bytes, framing: Framing) -> io::Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        if out.len() + data.len() <= TOGETHER {
            match framing {
                Framing::Chunked => chunked::encode(out, &data),
                _ => out.extend_from_slice(&data),
            }
            return Ok(());
        }
        if framing == Framing::Chunked {
            chunked::encode_size(out, data.len());
        }
        self.write(out, Some(data)).await?;
        if framing == Framing::Chunked {
            out.extend_from_slice(b"\r\n");
        }
        Ok(())
    }

    /// Writes all of it; a client that reads nothing for too long is given up.
    async fn write(&mut self, out: &mut BytesMut, data: Option<Bytes>) -> io::Result<()> {
        self.watch.set(self.idle);
        let mut data = data.unwrap_or_default();
        poll_fn(|cx| {
            loop {
                let rest: &[u8] = if out.is_empty() { &data } else { out };
                if rest.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                match Pin::new(&mut *self.writer).poll_write(cx, rest) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Poll::Ready(Ok(written)) => {
                        if out.is_empty() {
                            data.advance(written);
                        } else {
                            out.advance(written);
                        }
                        self.watch.set(self.idle);
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {
                        return self
                            .watch
                            .poll_expired(cx)
                            .map(|()| Err(io::ErrorKind::TimedOut.into()));
                    }
                }
            }
        })
        .await?;
        if matches!(self.writer, WriteSide::Tls(_)) {
            self.writer.flush().await?;
        }
        Ok(())
    }
}

/// A frame, if there is one without waiting.
fn next_now(body: &mut Body) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    Pin::new(body).poll_frame(&mut cx)
}

fn framing(
    parts: &http::response::Parts,
    body: &Body,
    first: &Poll<Option<Result<Frame<Bytes>, BodyError>>>,
    version: Version,
    method: &Method,
) -> Framing {
    let status = parts.status;
    if *method == Method::HEAD
        || status.is_informational()
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED
    {
        Framing::None
    } else if exact(body, first).is_some() {
        Framing::Length
    } else if version == Version::HTTP_10 {
        Framing::Close
    } else {
        Framing::Chunked
    }
}

/// The length of the whole body, of which `first` was taken already.
fn exact(body: &Body, first: &Poll<Option<Result<Frame<Bytes>, BodyError>>>) -> Option<u64> {
    let taken = match first {
        Poll::Ready(Some(Ok(frame))) => match frame.data_ref() {
            Some(data) => data.len() as u64,
            None => return None,
        },
        Poll::Ready(None) => return Some(0),
        Poll::Ready(Some(Err(_))) | Poll::Pending => 0,
    };
    body.size_hint().exact().map(|left| left + taken)
}

/// The head of a 101.
pub(crate) async fn write_upgrade(writer: &mut WriteSide, headers: &HeaderMap) -> io::Result<()> {
    let mut out = BytesMut::with_capacity(512);
    write_status(&mut out, Version::HTTP_11, StatusCode::SWITCHING_PROTOCOLS);
    write_headers(&mut out, headers);
    write_header(&mut out, b"connection", b"upgrade");
    out.extend_from_slice(b"\r\n");
    writer.write_all(&out).await?;
    writer.flush().await
}

/// As HTTP writes it (RFC 9110, 5.6.7).
fn date() -> String {
    jiff::Timestamp::now()
        .strftime("%a, %d %b %Y %H:%M:%S GMT")
        .to_string()
}
