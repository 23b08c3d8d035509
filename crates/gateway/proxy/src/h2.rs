//! A client's connection that speaks HTTP/2: hyper reads and writes it, and each of its requests goes the same way as others.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use crate::activity::{Activity, Open};
use crate::body::{Body, Http2Body};
use crate::h1::head::Bad;
use crate::h1::server::Link;
use crate::pipeline::{self, Context, Request};
use crate::record::Record;

/// What a client may have on its way to a backend that does not take it: of one request, and of a connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// What of an answer waits for a client that gives room for more than it reads.
const SEND_BUFFER: usize = 64 * 1024;

pub(crate) async fn serve<T>(link: Link, stream: T)
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let options = &link.shared.options;
    let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(options.limits.streams)
        .max_header_list_size(u32::try_from(options.limits.request_head).unwrap_or(u32::MAX))
        // Windows that adapt would let one client have some megabytes of memory for each of its connections.
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(options.timeouts.keep_alive.min(Duration::from_secs(60)))
        .keep_alive_timeout(Duration::from_secs(20));
    let mut closing = link.closing.clone();
    let (idle, drain) = (options.timeouts.keep_alive, options.timeouts.drain);
    let stalled = options.timeouts.body_idle;
    let activity = Arc::new(Activity::new());
    let own = Arc::clone(&activity);
    // Streams that come while the door is being closed are served as those before.
    let first = link.context();
    let link = Arc::new((link, first));
    let service = service_fn(move |request| {
        let link = Arc::clone(&link);
        let open = Activity::open(&own);
        async move { Ok::<_, Infallible>(answer(&link.0, link.1.clone(), open, request).await) }
    });
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    loop {
        tokio::select! {
            ended = connection.as_mut() => return log(ended),
            _ = closing.changed() => break,
            () = tokio::time::sleep_until(activity.idle_at(idle).min(activity.stalled_at(stalled))) => {
                if activity.stalled_at(stalled) <= Instant::now() {
                    // What it asked for is of no use to anybody, and backends wait with it.
                    tracing::debug!("a client's HTTP/2 connection takes nothing of what it asked for");
                    return;
                }
                if activity.idle_at(idle) <= Instant::now() {
                    break;
                }
            }
        }
    }
    // Those who answer pings and send nothing must not keep what others could use.
    connection.as_mut().graceful_shutdown();
    if let Ok(ended) = tokio::time::timeout(drain, connection).await {
        log(ended);
    }
}

fn log(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a client's HTTP/2 connection ended");
    }
}

async fn answer(
    link: &Link,
    first: Option<Context>,
    open: Open,
    request: http::Request<Incoming>,
) -> Response<Body> {
    let mut record = Record::new(&link.shared);
    record.open = Some(open);
    let (mut parts, incoming) = request.into_parts();
    join_cookies(&mut parts.headers);
    let answer = if parts.method == http::Method::CONNECT {
        let bad = Bad {
            status: StatusCode::METHOD_NOT_ALLOWED,
            why: "this is not a forward proxy",
        };
        pipeline::refuse(&link.shared, bad, &mut record)
    } else if parts.headers.len() > link.shared.options.limits.headers {
        let bad = Bad {
            status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            why: "the headers are too many",
        };
        pipeline::refuse(&link.shared, bad, &mut record)
    } else {
        let body = if incoming.is_end_stream() {
            Body::Empty
        } else {
            Body::Http2(Box::new(Http2Body::of_client(
                incoming,
                link.shared.options.timeouts.body_idle,
            )))
        };
        let request = Request {
            parts,
            body,
            upgrade: None,
        };
        match link.context().or(first) {
            Some(context) => pipeline::serve(&context, request, &mut record).await,
            None => pipeline::plain(StatusCode::SERVICE_UNAVAILABLE).into(),
        }
    };
    record.status(answer.response.status());
    record.handed_over();
    let (mut parts, body) = answer.response.into_parts();
    parts.version = http::Version::HTTP_2;
    Response::from_parts(parts, Body::Recorded(Box::new((body, record))))
}

/// Clients may send each cookie as a header of its own, which only HTTP/2 knows (RFC 9113, 8.2.3): routes, policies and
/// backends see one.
fn join_cookies(headers: &mut HeaderMap) {
    let mut all = headers.get_all(COOKIE).iter();
    let (Some(first), Some(_)) = (all.next(), all.next()) else {
        return;
    };
    let mut joined = first.as_bytes().to_vec();
    for cookie in headers.get_all(COOKIE).iter().skip(1) {
        joined.extend_from_slice(b"; ");
        joined.extend_from_slice(cookie.as_bytes());
    }
    // Of what was values before, all bytes may be in one.
    if let Ok(value) = HeaderValue::from_bytes(&joined) {
        headers.insert(COOKIE, value);
    }
}
