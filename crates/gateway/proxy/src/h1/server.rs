//! A client's connection that speaks HTTP/1: one request after the other, each served by the table of its moment.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use http::{Method, StatusCode, Version};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::{Notify, watch};
use tokio_rustls::server::TlsStream;

use super::client_body::{ClientBody, Home, ReadSide, Reader, Returned};
use super::head::{self, Bad, Framing, Head, Read};
use super::writer::{self, Ending};
use crate::body::Body;
use crate::h2;
use crate::peer::Peer;
use crate::pipeline::{self, Answer, Context, Request};
use crate::plan::DoorPlan;
use crate::proxy::Shared;
use crate::record::Record;
use crate::rewound::Rewound;
use crate::tunnel;
use crate::watch::Watch;

/// What a connection is served with.
pub(crate) struct Link {
    pub(crate) shared: Arc<Shared>,
    pub(crate) worker: usize,
    pub(crate) peer: Arc<Peer>,
    /// Its sender goes when the door is closed.
    pub(crate) closing: watch::Receiver<()>,
}

impl Link {
    /// With the table of now. None: it has this door no longer, or the door speaks another protocol now, which must not be
    /// served on a connection of the old one.
    pub(crate) fn context(&self) -> Option<Context> {
        let plan = self.shared.plan.load_full();
        let door = plan.doors.get(&self.peer.door).cloned()?;
        match &*door {
            DoorPlan::Http(_) if !self.peer.secure => {}
            DoorPlan::Tls(_) if self.peer.secure => {}
            DoorPlan::Http(_) | DoorPlan::Tls(_) | DoorPlan::Tcp(_) => return None,
        }
        Some(Context {
            shared: Arc::clone(&self.shared),
            worker: self.worker,
            peer: Arc::clone(&self.peer),
            plan,
            door,
        })
    }
}

pub(crate) enum ClientIo {
    Tcp(TcpStream),
    Tls(Box<TlsStream<Rewound<TcpStream>>>),
}

pub(crate) enum WriteSide {
    Tcp(OwnedWriteHalf),
    Tls(tokio::io::WriteHalf<TlsStream<Rewound<TcpStream>>>),
}

impl AsyncWrite for WriteSide {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Tcp(io) => Pin::new(io).poll_write(cx, data),
            Self::Tls(io) => Pin::new(io).poll_write(cx, data),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Tcp(io) => Pin::new(io).poll_flush(cx),
            Self::Tls(io) => Pin::new(io).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Tcp(io) => Pin::new(io).poll_shutdown(cx),
            Self::Tls(io) => Pin::new(io).poll_shutdown(cx),
        }
    }
}

/// What a client may send ahead of its turn.
const AHEAD: usize = 64 * 1024;

/// What is read of a body that nobody wanted, so that the answer is not lost with the connection.
const UNWANTED: usize = 256 * 1024;
const UNWANTED_TIME: Duration = Duration::from_secs(2);

struct Connection {
    link: Link,
    context: Option<Context>,
    writer: WriteSide,
    watch: Watch,
    scanned: usize,
}

/// Why a connection reads no further request.
enum Stop {
    /// Nothing more is to be said.
    Quiet,
    Refused(Bad),
    Http2,
}

pub(crate) async fn serve(link: Link, io: ClientIo) {
    let (read, write) = match io {
        ClientIo::Tcp(stream) => {
            let (read, write) = stream.into_split();
            (ReadSide::Tcp(read), WriteSide::Tcp(write))
        }
        ClientIo::Tls(stream) => {
            let (read, write) = tokio::io::split(*stream);
            (ReadSide::Tls(read), WriteSide::Tls(write))
        }
    };
    let mut closing = link.closing.clone();
    let mut closed = pin!(closing.changed());
    let mut connection = Connection {
        watch: Watch::new(link.shared.options.timeouts.keep_alive),
        context: None,
        link,
        writer: write,
        scanned: 0,
    };
    let mut reader = Reader::new(read);
    loop {
        let head = poll_fn(|cx| connection.poll_head(cx, &mut reader, closed.as_mut())).await;
        let head = match head {
            Ok(head) => head,
            Err(Stop::Quiet) => break,
            Err(Stop::Http2) => {
                let (link, first) = (connection.link, reader.buffer.freeze());
                // Over TLS, HTTP/2 is agreed on in the handshake.
                if let (ReadSide::Tcp(read), WriteSide::Tcp(write)) = (reader.io, connection.writer)
                    && let Ok(stream) = read.reunite(write)
                {
                    h2::serve(link, Rewound::new(first, stream)).await;
                }
                return;
            }
            Err(Stop::Refused(bad)) => {
                let mut record = Record::new(&connection.link.shared);
                let answer = pipeline::refuse(&connection.link.shared, bad, &mut record);
                let _ = connection
                    .write(
                        answer.response,
                        &mut record,
                        Version::HTTP_11,
                        &Method::GET,
                        false,
                    )
                    .await;
                linger(reader, connection.writer).await;
                return;
            }
        };
        match connection.exchange(*head, reader).await {
            Next::Request(next) => reader = next,
            Next::Closed => return,
            Next::Linger(reader) => return linger(reader, connection.writer).await,
            Next::Upgraded(reader, upgraded) => return join(connection, reader, upgraded).await,
        }
    }
    let _ = connection.writer.shutdown().await;
}

/// What follows a request.
enum Next {
    Request(Reader),
    Closed,
    /// The client may still be sending.
    Linger(Reader),
    Upgraded(Reader, pipeline::Upgraded),
}

impl Connection {
    fn poll_head(
        &mut self,
        cx: &mut TaskContext<'_>,
        reader: &mut Reader,
        closed: Pin<&mut impl Future>,
    ) -> Poll<Result<Box<Head>, Stop>> {
        let options = &self.link.shared.options;
        loop {
            let (longest, most) = (options.limits.request_head, options.limits.headers);
            match head::read(&mut reader.buffer, &mut self.scanned, longest, most) {
                Ok(Read::Head(head)) => return Poll::Ready(Ok(head)),
                Ok(Read::Http2) => return Poll::Ready(Err(Stop::Http2)),
                Ok(Read::Partial) => {}
                Err(bad) => return Poll::Ready(Err(Stop::Refused(bad))),
            }
            let waiting = reader.buffer.is_empty();
            match reader.poll_more(cx) {
                Poll::Ready(Ok(0)) | Poll::Ready(Err(_)) => return Poll::Ready(Err(Stop::Quiet)),
                Poll::Ready(Ok(_)) => {
                    if waiting {
                        self.watch.set(options.timeouts.request_head);
                    }
                }
                Poll::Pending if waiting => {
                    // Nothing is under way, so nobody misses it.
                    if closed.poll(cx).is_ready() || self.watch.poll_expired(cx).is_ready() {
                        return Poll::Ready(Err(Stop::Quiet));
                    }
                    return Poll::Pending;
                }
                Poll::Pending => {
                    return self.watch.poll_expired(cx).map(|()| {
                        Err(Stop::Refused(Bad {
                            status: StatusCode::REQUEST_TIMEOUT,
                            why: "the head of the request took too long",
                        }))
                    });
                }
            }
        }
    }

    /// Serves one request.
    async fn exchange(&mut self, head: Head, reader: Reader) -> Next {
        let mut record = Record::new(&self.link.shared);
        let current = self.refresh();
        let Some(context) = self.context.take() else {
            return Next::Closed;
        };
        let (method, version) = (head.parts.method.clone(), head.parts.version);
        let upgrade = head
            .upgrades
            .then(|| head.parts.headers.get(http::header::UPGRADE).cloned())
            .flatten();
        let awaited = head.expects.then(|| Arc::new(Notify::new()));
        let (mut here, home, body) = match head.framing {
            Framing::None => (Some(reader), None, Body::Empty),
            framing => {
                let home = Home::default();
                let idle = self.link.shared.options.timeouts.body_idle;
                let body = ClientBody::new(reader, framing, home.clone(), idle, awaited.clone());
                (None, Some(home), Body::Client(Box::new(body)))
            }
        };
        let request = Request {
            parts: head.parts,
            body,
            upgrade,
        };
        let answer = {
            let mut serving = pin!(pipeline::serve(&context, request, &mut record));
            match (&mut here, &awaited) {
                (Some(reader), _) => {
                    // A client that leaves takes its request with it.
                    poll_fn(|cx| match serving.as_mut().poll(cx) {
                        Poll::Ready(answer) => Poll::Ready(Some(answer)),
                        Poll::Pending => reader.poll_gone(cx, AHEAD).map(|()| None),
                    })
                    .await
                }
                (None, None) => Some(serving.await),
                (None, Some(awaited)) => {
                    tokio::select! {
                        biased;
                        answer = serving.as_mut() => Some(answer),
                        () = awaited.notified() => {
                            match self.writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await {
                                Ok(()) => Some(serving.await),
                                Err(_) => None,
                            }
                        }
                    }
                }
            }
        };
        self.context = Some(context);
        let Some(Answer {
            response,
            upgraded,
            close,
        }) = answer
        else {
            return Next::Closed;
        };
        if let Some(upgraded) = upgraded {
            let (parts, _) = response.into_parts();
            let written = writer::write_upgrade(&mut self.writer, &parts.headers).await;
            return match (written, here) {
                (Ok(()), Some(reader)) => Next::Upgraded(reader, upgraded),
                _ => Next::Closed,
            };
        }
        // A client that waited for 100 and got an answer instead may send its body or not.
        let unsure = awaited.is_some() && here.is_none();
        let keep = head.keep_alive && current && !close && self.link.closing.has_changed().is_ok() && !unsure;
        let ended = self.write(response, &mut record, version, &method, keep).await;
        drop(record);
        self.watch.set(self.link.shared.options.timeouts.keep_alive);
        match (ended, here) {
            (Ok(Ending::KeepAlive), Some(reader)) => Next::Request(reader),
            (Ok(Ending::Close), Some(reader)) if !head.keep_alive => {
                drop(reader);
                let _ = self.writer.shutdown().await;
                Next::Closed
            }
            (Ok(Ending::Close), Some(reader)) => Next::Linger(reader),
            (Ok(ending), None) => self.after_body(home, ending, unsure).await,
            (Err(_), _) => Next::Closed,
        }
    }

    /// The client's side comes back from the body, wherever that went.
    async fn after_body(&mut self, home: Option<Home>, ending: Ending, unsure: bool) -> Next {
        let Some(returned) = home.and_then(|home| home.take()) else {
            return Next::Closed;
        };
        if returned.finished && ending == Ending::KeepAlive {
            return Next::Request(returned.reader);
        }
        if returned.broken || unsure || ending == Ending::Close {
            return Next::Linger(returned.reader);
        }
        // The rest of the body stands between this request and the next.
        match tokio::time::timeout(UNWANTED_TIME, drain(returned)).await {
            Ok(Some(reader)) => Next::Request(reader),
            Ok(None) | Err(_) => Next::Closed,
        }
    }

    /// Takes the newest table. False: it does not have this door as it was, so this request is the last, served as before.
    fn refresh(&mut self) -> bool {
        let newest = self.link.shared.plan.load();
        let known = self.context.as_ref().map(|context| &context.plan);
        if known.is_some_and(|plan| Arc::ptr_eq(plan, &newest)) {
            return true;
        }
        drop(newest);
        match self.link.context() {
            Some(context) => {
                self.context = Some(context);
                true
            }
            None => false,
        }
    }

    async fn write(
        &mut self,
        response: http::Response<Body>,
        record: &mut Record,
        version: Version,
        method: &Method,
        keep: bool,
    ) -> io::Result<Ending> {
        let idle = self.link.shared.options.timeouts.body_idle;
        let to = writer::To {
            writer: &mut self.writer,
            watch: &mut self.watch,
            idle,
        };
        writer::write(to, response, record, version, method, keep).await
    }
}

async fn drain(returned: Returned) -> Option<Reader> {
    let home = Home::default();
    let mut body = returned.into_body(home.clone());
    let mut seen = 0;
    loop {
        match poll_fn(|cx| body.poll_frame(cx)).await {
            Some(Ok(frame)) => {
                seen += frame.data_ref().map_or(0, bytes::Bytes::len);
                if seen > UNWANTED {
                    return None;
                }
            }
            Some(Err(_)) => return None,
            None => {
                drop(body);
                return home.take().map(|returned| returned.reader);
            }
        }
    }
}

/// Ends a connection so that the client reads the last answer: closing while it sends would destroy what it has not read.
async fn linger(mut reader: Reader, mut writer: WriteSide) {
    let _ = writer.shutdown().await;
    let rest = async {
        let mut seen = 0;
        while seen < UNWANTED {
            reader.buffer.clear();
            match poll_fn(|cx| reader.poll_more(cx)).await {
                Ok(0) | Err(_) => return,
                Ok(read) => seen += read,
            }
        }
    };
    let _ = tokio::time::timeout(UNWANTED_TIME, rest).await;
}

async fn join(connection: Connection, reader: Reader, upgraded: pipeline::Upgraded) {
    let idle = connection.link.shared.options.timeouts.tunnel_idle;
    let first = reader.buffer.freeze();
    let backend = Rewound::new(upgraded.first, upgraded.io);
    let _in_flight = upgraded.in_flight;
    match (reader.io, connection.writer) {
        (ReadSide::Tcp(read), WriteSide::Tcp(write)) => {
            if let Ok(stream) = read.reunite(write) {
                tunnel::join(Rewound::new(first, stream), backend, idle, upgraded.permits).await;
            }
        }
        (ReadSide::Tls(read), WriteSide::Tls(write)) => {
            let client = Rewound::new(first, read.unsplit(write));
            tunnel::join(client, backend, idle, upgraded.permits).await;
        }
        _ => {}
    }
}
