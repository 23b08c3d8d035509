//! One request to a backend over HTTP/1, and its answer: a state machine without a task of its own.
//!
//! Whoever waits for the head, and later for the body, also drives what is left of the request's body, so an answer that comes
//! early is handed on early. At the end the connection goes back to its pool if both sides are through.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use fairway_fabric::Connection;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, UPGRADE};
use http::request::Parts;
use http::{HeaderValue, Method};
use http_body::{Body as _, Frame};
use tokio::io::{AsyncReadExt, AsyncWrite};

use super::chunked::{self, Chunk, Decoder};
use super::response::{self, BadAnswer, Framing};
use crate::body::{Body, BodyError};
use crate::upstream::InFlight;
use crate::upstream::pool::Conn;
use crate::watch::Watch;

pub(crate) struct Exchange {
    conn: Option<Conn>,
    request: Body,
    sending: Sending,
    method: Method,
    answer: Answer,
    reusable: bool,
    watch: Watch,
    limits: ExchangeLimits,
    _in_flight: Option<InFlight>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ExchangeLimits {
    pub(crate) head: usize,
    pub(crate) head_after: Duration,
    pub(crate) idle: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sending {
    Plain,
    Chunked,
    /// All of it is in the connection's buffer, or written.
    Finished,
}

enum Answer {
    Head,
    Length(u64),
    Chunked(Decoder),
    Close,
    Done,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("the connection to the backend broke before it answered")]
    Broke(#[source] io::Error),
    #[error("the backend closed the connection without an answer")]
    Closed,
    #[error(transparent)]
    Bad(BadAnswer),
    #[error("the backend did not answer in time")]
    Slow,
    #[error(transparent)]
    Body(BodyError),
}

/// What is written at once with the head if it is there already.
const TOGETHER: usize = 16 * 1024;
const ROOM: usize = 8 * 1024;

impl Exchange {
    /// Writes nothing yet: that is done by whoever waits for the head.
    pub(crate) fn new(
        mut conn: Conn,
        parts: &Parts,
        upgrade: Option<&HeaderValue>,
        body: Body,
        in_flight: InFlight,
        limits: ExchangeLimits,
    ) -> Self {
        let sending = write_head(&mut conn.out, parts, upgrade, &body);
        Self {
            conn: Some(conn),
            request: body,
            sending,
            method: parts.method.clone(),
            answer: Answer::Head,
            reusable: false,
            watch: Watch::new(limits.head_after),
            limits,
            _in_flight: Some(in_flight),
        }
    }

    pub(crate) async fn head(&mut self) -> Result<response::Head, Failure> {
        poll_fn(|cx| self.poll_head(cx)).await
    }

    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<response::Head, Failure>> {
        let sent = self.poll_send(cx);
        let Some(conn) = &mut self.conn else {
            return Poll::Ready(Err(Failure::Closed));
        };
        loop {
            match response::read(&mut conn.buffer, self.limits.head, &self.method) {
                Err(error) => return Poll::Ready(Err(Failure::Bad(error))),
                Ok(Some(head)) => {
                    conn.received = true;
                    self.reusable = head.keep_alive;
                    self.answer = match head.framing {
                        Framing::None => Answer::Done,
                        Framing::Length(length) => Answer::Length(length),
                        Framing::Chunked => Answer::Chunked(Decoder::new()),
                        Framing::Close => Answer::Close,
                    };
                    self.watch.set(self.limits.idle);
                    if matches!(self.answer, Answer::Done)
                        && head.status != http::StatusCode::SWITCHING_PROTOCOLS
                    {
                        self.finish();
                    }
                    return Poll::Ready(Ok(head));
                }
                Ok(None) => {}
            }
            match conn.poll_fill(cx, ROOM) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(Failure::Closed)),
                Poll::Ready(Ok(_)) => conn.received = true,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(Failure::Broke(error))),
                Poll::Pending => {
                    // A backend may answer and hang up while the body is still being sent, so what it said counts first.
                    if let Err(failure) = sent {
                        return Poll::Ready(Err(failure));
                    }
                    return self.watch.poll_expired(cx).map(|()| Err(Failure::Slow));
                }
            }
        }
    }

    /// Sends what can be sent now.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        let Some(conn) = &mut self.conn else {
            return Ok(());
        };
        loop {
            // The first piece of the body travels with the head.
            while self.sending != Sending::Finished && conn.out.len() < TOGETHER {
                match Pin::new(&mut self.request).poll_frame(cx) {
                    Poll::Pending => break,
                    Poll::Ready(Some(Err(error))) => return Err(Failure::Body(error)),
                    Poll::Ready(Some(Ok(frame))) => {
                        let chunked = self.sending == Sending::Chunked;
                        match frame.into_data() {
                            Ok(data) if chunked => chunked::encode(&mut conn.out, &data),
                            Ok(data) => conn.out.extend_from_slice(&data),
                            Err(frame) => {
                                if let (true, Ok(trailers)) = (chunked, frame.into_trailers()) {
                                    chunked::encode_end(&mut conn.out, Some(&trailers));
                                    self.sending = Sending::Finished;
                                    // Trailers are the last frame; asking once more lets the client's connection go.
                                    self.request = Body::Empty;
                                }
                            }
                        }
                    }
                    Poll::Ready(None) => {
                        if self.sending == Sending::Chunked {
                            chunked::encode_end(&mut conn.out, None);
                        }
                        self.sending = Sending::Finished;
                        // Dropped at once, so that the client's connection has its reader back.
                        self.request = Body::Empty;
                    }
                }
            }
            if conn.out.is_empty() {
                return Ok(());
            }
            match Pin::new(&mut conn.io).poll_write(cx, &conn.out) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err(Failure::Broke(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(written)) => {
                    conn.sent = true;
                    conn.out.advance(written);
                    self.watch.set(self.limits.head_after);
                    if conn.out.is_empty() && conn.flushes {
                        // TLS keeps what it could not write at once; plain connections have nothing to flush.
                        let _ = Pin::new(&mut conn.io).poll_flush(cx);
                    }
                }
                Poll::Ready(Err(error)) => return Err(Failure::Broke(error)),
            }
        }
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if matches!(self.answer, Answer::Done) {
            return Poll::Ready(None);
        }
        if (self.sending != Sending::Finished || self.conn.as_ref().is_some_and(|conn| !conn.out.is_empty()))
            && self.poll_send(cx).is_err()
        {
            // The answer may still be whole; the connection is not used again.
            self.sending = Sending::Plain;
            self.request = Body::Empty;
            self.reusable = false;
            if let Some(conn) = &mut self.conn {
                conn.out.clear();
            }
        }
        let Some(conn) = &mut self.conn else {
            return Poll::Ready(Some(Err(BodyError::Truncated)));
        };
        loop {
            match &mut self.answer {
                Answer::Length(left) if !conn.buffer.is_empty() => {
                    let here = usize::try_from(*left)
                        .unwrap_or(usize::MAX)
                        .min(conn.buffer.len());
                    *left -= here as u64;
                    let done = *left == 0;
                    let data = conn.buffer.split_to(here).freeze();
                    if done {
                        self.finish();
                    }
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Answer::Close if !conn.buffer.is_empty() => {
                    return Poll::Ready(Some(Ok(Frame::data(conn.buffer.split().freeze()))));
                }
                Answer::Chunked(decoder) => match decoder.next(&mut conn.buffer) {
                    Ok(Chunk::Data(data)) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                    Ok(Chunk::Trailers(trailers)) => {
                        self.finish();
                        return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
                    }
                    Ok(Chunk::End) => {
                        self.finish();
                        return Poll::Ready(None);
                    }
                    Ok(Chunk::Partial) => {}
                    Err(error) => return Poll::Ready(Some(Err(BodyError::UpstreamMalformed(error)))),
                },
                Answer::Done => return Poll::Ready(None),
                Answer::Head | Answer::Length(_) | Answer::Close => {}
            }
            match conn.poll_fill(cx, ROOM) {
                Poll::Ready(Ok(0)) if matches!(self.answer, Answer::Close) => {
                    self.reusable = false;
                    self.finish();
                    return Poll::Ready(None);
                }
                Poll::Ready(Ok(0)) => return Poll::Ready(Some(Err(BodyError::Truncated))),
                Poll::Ready(Ok(_)) => self.watch.set(self.limits.idle),
                Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(BodyError::Upstream(error)))),
                Poll::Pending => {
                    return self
                        .watch
                        .poll_expired(cx)
                        .map(|()| Some(Err(BodyError::Upstream(io::ErrorKind::TimedOut.into()))));
                }
            }
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(self.answer, Answer::Done)
    }

    pub(crate) fn left(&self) -> Option<u64> {
        match &self.answer {
            Answer::Done => Some(0),
            Answer::Length(left) => Some(*left),
            Answer::Head | Answer::Chunked(_) | Answer::Close => None,
        }
    }

    /// Nothing of the request left this process, or nothing of an answer came: another attempt may be made.
    pub(crate) fn attempt(&self) -> Attempt {
        let conn = self.conn.as_ref();
        Attempt {
            reused: conn.is_some_and(|conn| conn.used > 0),
            sent: conn.is_none_or(|conn| conn.sent),
            received: conn.is_none_or(|conn| conn.received),
        }
    }

    fn finish(&mut self) {
        self.answer = Answer::Done;
        self._in_flight = None;
        if let Some(conn) = self.conn.take() {
            // Bytes after the answer belong to nobody: whoever sent them is not trusted with another request.
            if self.reusable
                && self.sending == Sending::Finished
                && conn.out.is_empty()
                && conn.buffer.is_empty()
            {
                conn.keep();
            }
        }
    }

    /// The connection itself, after 101, with what came after the head.
    pub(crate) fn into_upgraded(mut self) -> Option<(Box<dyn Connection>, Bytes, InFlight)> {
        let mut conn = self.conn.take()?;
        let first = conn.buffer.split().freeze();
        let in_flight = self._in_flight.take()?;
        Some((Box::new(conn.into_io()), first, in_flight))
    }
}

/// How far an attempt went before it failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    /// The connection had carried requests before: it may have been closed by the backend in the meantime.
    pub(crate) reused: bool,
    pub(crate) sent: bool,
    pub(crate) received: bool,
}

fn write_head(out: &mut BytesMut, parts: &Parts, upgrade: Option<&HeaderValue>, body: &Body) -> Sending {
    out.reserve(1024);
    out.extend_from_slice(parts.method.as_str().as_bytes());
    out.extend_from_slice(b" ");
    let target = parts
        .uri
        .path_and_query()
        .map_or("/", http::uri::PathAndQuery::as_str);
    out.extend_from_slice(target.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    if !parts.headers.contains_key(HOST) {
        response::write_header(out, b"host", b"");
    }
    for (name, value) in &parts.headers {
        // The length is written from the body itself, so what is said and what is sent cannot differ.
        if *name != CONTENT_LENGTH {
            response::write_header(out, name.as_str().as_bytes(), value.as_bytes());
        }
    }
    if let Some(protocol) = upgrade {
        response::write_header(out, CONNECTION.as_str().as_bytes(), b"upgrade");
        response::write_header(out, UPGRADE.as_str().as_bytes(), protocol.as_bytes());
    }
    let sending = match body.size_hint().exact() {
        Some(0) => {
            // A server that is told of no length may wait for a body where a method usually has one.
            if matches!(parts.method, Method::POST | Method::PUT | Method::PATCH) {
                response::write_length(out, 0);
            }
            Sending::Finished
        }
        Some(length) => {
            response::write_length(out, length);
            Sending::Plain
        }
        None => {
            response::write_header(out, b"transfer-encoding", b"chunked");
            Sending::Chunked
        }
    };
    out.extend_from_slice(b"\r\n");
    sending
}

impl Conn {
    fn poll_fill(&mut self, cx: &mut Context<'_>, room: usize) -> Poll<io::Result<usize>> {
        self.buffer.reserve(room);
        pin!(self.io.read_buf(&mut self.buffer)).poll(cx)
    }
}
