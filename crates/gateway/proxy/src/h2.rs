//! A client's connection that speaks HTTP/2: hyper reads and writes it, and each of its requests goes the same way as others.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::body::{Body, Http2Body};
use crate::h1::head::Bad;
use crate::h1::server::Link;
use crate::pipeline::{self, Context, Request};
use crate::record::Record;

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
        .adaptive_window(true)
        .keep_alive_interval(options.timeouts.keep_alive.min(Duration::from_secs(60)))
        .keep_alive_timeout(Duration::from_secs(20));
    let mut closing = link.closing.clone();
    // Streams that come while the door is being closed are served as those before.
    let first = link.context();
    let link = Arc::new((link, first));
    let service = service_fn(move |request| {
        let link = Arc::clone(&link);
        async move { Ok::<_, Infallible>(answer(&link.0, link.1.clone(), request).await) }
    });
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        ended = connection.as_mut() => log(ended),
        _ = closing.changed() => {
            connection.as_mut().graceful_shutdown();
            log(connection.await);
        }
    }
}

fn log(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a client's HTTP/2 connection ended");
    }
}

async fn answer(link: &Link, first: Option<Context>, request: http::Request<Incoming>) -> Response<Body> {
    let mut record = Record::new(&link.shared);
    let (parts, incoming) = request.into_parts();
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
            Body::Http2(Box::new(Http2Body {
                incoming,
                _kept: None,
            }))
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
    let (mut parts, body) = answer.response.into_parts();
    parts.version = http::Version::HTTP_2;
    Response::from_parts(parts, Body::Recorded(Box::new((body, record))))
}
