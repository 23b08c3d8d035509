//! To a backend, and to another one if that is allowed and the first did not answer.

use std::sync::Arc;
use std::time::Duration;

use fairway_gateway_routes::table::{self, BackendProtocol, PathMatch, Retry};
use http::header::{HOST, UPGRADE};
use http::request::Parts;
use http::{Method, Response, StatusCode, Uri, Version};

use crate::affinity;
use crate::body::{Body, Http2Body, ReplayHome, Uplink};
use crate::chance;
use crate::filters;
use crate::h1::exchange::{Attempt, Exchange, ExchangeLimits, Failure};
use crate::hops;
use crate::metrics;
use crate::pipeline::{Answer, Arrived, Context, Request, Upgraded, dispatch_again, plain};
use crate::plan::{BackendPlan, RulePlan, TargetPlan};
use crate::record::Record;
use crate::upstream::cluster::Cluster;
use crate::upstream::dial::{self, ConnectError, Dialler};
use crate::upstream::{Endpoint, InFlight};

/// Why an attempt came to nothing.
enum Failed {
    /// Nothing was sent.
    Connect(ConnectError),
    /// The endpoint carries all that it may.
    Overflow,
    NoAnswer(Failure, Attempt),
    Http2 {
        error: hyper::Error,
        sent: bool,
    },
    Timeout,
}

pub(crate) async fn send(
    context: &Context,
    rule: &Arc<RulePlan>,
    matched: &PathMatch,
    request: Request,
    arrived: &Arrived<'_>,
    depth: u8,
    record: &mut Record,
) -> Answer {
    match rule.rule.timeouts.request {
        None => attempts(context, rule, matched, request, arrived, depth, record).await,
        Some(within) => {
            let until = tokio::time::Instant::now() + within;
            let answer = attempts(context, rule, matched, request, arrived, depth, record);
            match tokio::time::timeout_at(until, answer).await {
                Ok(answer) => timed(answer, until),
                Err(_) => plain(StatusCode::GATEWAY_TIMEOUT).into(),
            }
        }
    }
}

/// The rest of an answer has to come in time, too.
fn timed(mut answer: Answer, until: tokio::time::Instant) -> Answer {
    let body = std::mem::replace(answer.response.body_mut(), Body::Empty);
    if answer.upgraded.is_none() && !http_body::Body::is_end_stream(&body) {
        *answer.response.body_mut() =
            Body::Timed(Box::new((body, Box::pin(tokio::time::sleep_until(until)))));
    } else {
        *answer.response.body_mut() = body;
    }
    answer
}

async fn attempts(
    context: &Context,
    rule: &Arc<RulePlan>,
    matched: &PathMatch,
    mut request: Request,
    arrived: &Arrived<'_>,
    depth: u8,
    record: &mut Record,
) -> Answer {
    let affinity = rule.rule.affinity.as_ref();
    let mark = affinity
        .and_then(|affinity| affinity::mark(affinity, &request.parts.headers))
        .map(str::to_owned);
    let Some(backend) = choose(rule, mark.as_deref()) else {
        record.why("the rule has no backend with a weight");
        return plain(StatusCode::INTERNAL_SERVER_ERROR).into();
    };
    let cluster = match &backend.target {
        TargetPlan::Cluster(cluster) => cluster,
        TargetPlan::Broken(why) => {
            record.why(why);
            return plain(StatusCode::INTERNAL_SERVER_ERROR).into();
        }
    };
    filters::on_request(&backend.filters, matched, &mut request.parts);
    let retry = rule.rule.retry.as_ref();
    let replay = retry
        .filter(|_| !matches!(request.body, Body::Empty))
        .map(|_| ReplayHome::default());
    let longest = context.shared.options.limits.replay;
    let mut body = match &replay {
        Some(home) => home.first(std::mem::replace(&mut request.body, Body::Empty), longest),
        None => std::mem::replace(&mut request.body, Body::Empty),
    };
    let mut failed_at: Option<Arc<Endpoint>> = None;
    let (mut tried, mut forgiven) = (0_u32, false);
    loop {
        let now = context.shared.now();
        let picked = cluster.pick(
            context.shared.options.balance,
            now,
            mark.as_deref(),
            failed_at.as_ref(),
        );
        let Some(endpoint) = picked else {
            record.why("the backend has no endpoints");
            return plain(StatusCode::SERVICE_UNAVAILABLE).into();
        };
        if let table::Endpoint::Listener(_) = &endpoint.at {
            let names = context.plan.inner.get(&cluster.key);
            let Some(listener) = names.and_then(|names| names.candidates(&arrived.host.0).next()) else {
                record.why("the backend is a listener that is not meant for this host");
                return plain(StatusCode::NOT_FOUND).into();
            };
            request.body = body;
            let mut answer = dispatch_again(context, listener, request, arrived, depth + 1, record).await;
            filters::on_response(&backend.filters, answer.response.headers_mut());
            return answer;
        }
        record.attempt(endpoint);
        // Whether there is a body to send again is known only after it was sent.
        let empty = matches!(body, Body::Empty);
        let sending = Attempting {
            context,
            cluster,
            endpoint,
            parts: &request.parts,
            upgrade: request.upgrade.as_ref(),
        };
        let result = match rule.rule.timeouts.backend_request {
            None => sending.send(&mut body).await,
            Some(within) => match tokio::time::timeout(within, sending.send(&mut body)).await {
                Ok(result) => result,
                Err(_) => Err(Failed::Timeout),
            },
        };
        judge_endpoint(context, endpoint, &result, now);
        let again = again(&result, &request.parts.method, retry, tried, forgiven);
        if again != Again::No {
            let next = match (&body, &replay) {
                // It was not begun: the same again.
                _ if empty => Some(Body::Empty),
                (Body::Empty, Some(home)) => {
                    // What the attempt holds has to be let go before its body is at home.
                    drop(result);
                    home.again(longest)
                }
                (Body::Empty, None) => None,
                _ => Some(std::mem::replace(&mut body, Body::Empty)),
            };
            let Some(next) = next else {
                return plain(StatusCode::BAD_GATEWAY).into();
            };
            body = next;
            metrics::add(&context.shared.metrics.totals.upstream_retries);
            failed_at = Some(Arc::clone(endpoint));
            match again {
                Again::AtOnce => forgiven = true,
                _ => {
                    tried += 1;
                    tokio::time::sleep(backoff(retry, tried)).await;
                }
            }
            continue;
        }
        return match result {
            Ok(mut answer) => {
                clean(&mut answer);
                filters::on_response(&backend.filters, answer.response.headers_mut());
                if let Some(affinity) = affinity.filter(|_| mark.as_deref() != Some(&endpoint.mark)) {
                    affinity::tell(
                        affinity,
                        &endpoint.mark,
                        context.peer.secure,
                        answer.response.headers_mut(),
                    );
                }
                answer
            }
            Err(failed) => failure(context, endpoint, &failed, record).into(),
        };
    }
}

/// What belonged to the backend's connection goes; which protocol it agreed to stays.
fn clean(answer: &mut Answer) {
    let headers = answer.response.headers_mut();
    let protocol = answer
        .upgraded
        .as_ref()
        .and_then(|_| headers.get(UPGRADE).cloned());
    hops::remove(headers);
    if let Some(protocol) = protocol {
        headers.insert(UPGRADE, protocol);
    }
}

/// By weight, unless a session began at one of them.
fn choose<'a>(rule: &'a RulePlan, mark: Option<&str>) -> Option<&'a BackendPlan> {
    if let Some(mark) = mark {
        let home = rule.backends.all.iter().find(|backend| match &backend.target {
            TargetPlan::Cluster(cluster) => {
                backend.weight > 0 && cluster.endpoints.iter().any(|endpoint| endpoint.mark == mark)
            }
            TargetPlan::Broken(_) => false,
        });
        if home.is_some() {
            return home;
        }
    }
    rule.backends.pick(chance::next())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    No,
    /// It was not this request's fault, nor anybody's: a kept connection had been closed, or nobody listens any longer.
    AtOnce,
    /// As the rule says.
    Later,
}

fn again(
    result: &Result<Answer, Failed>,
    method: &Method,
    retry: Option<&Retry>,
    tried: u32,
    forgiven: bool,
) -> Again {
    let allowed = retry.is_some_and(|retry| tried < retry.attempts);
    let later = |may: bool| if may && allowed { Again::Later } else { Again::No };
    match result {
        Ok(answer) => later(
            answer.upgraded.is_none()
                && retry.is_some_and(|retry| retry.codes.contains(&answer.response.status().as_u16())),
        ),
        Err(Failed::Connect(error)) if error.is_endpoints() => {
            if forgiven {
                later(true)
            } else {
                Again::AtOnce
            }
        }
        Err(Failed::Connect(_) | Failed::Overflow) => Again::No,
        Err(Failed::NoAnswer(Failure::Body(_), _)) => Again::No,
        Err(Failed::NoAnswer(_, attempt)) => {
            let safe = !attempt.sent || method.is_idempotent();
            if attempt.reused && !attempt.received && safe && !forgiven {
                Again::AtOnce
            } else {
                later(safe && !attempt.received)
            }
        }
        Err(Failed::Http2 { sent, .. }) => {
            let safe = !sent || method.is_idempotent();
            if safe && !forgiven {
                Again::AtOnce
            } else {
                later(safe)
            }
        }
        Err(Failed::Timeout) => later(method.is_idempotent()),
    }
}

/// Twice as long each time, and not all at the same moment.
fn backoff(retry: Option<&Retry>, tried: u32) -> Duration {
    let base = retry.map_or(Duration::ZERO, |retry| retry.backoff);
    let whole = base
        .saturating_mul(1 << (tried - 1).min(10))
        .min(Duration::from_secs(30));
    let half = whole / 2;
    let spread = u64::try_from(half.as_micros()).unwrap_or(u64::MAX);
    half + Duration::from_micros(chance::next() % (spread + 1))
}

fn judge_endpoint(context: &Context, endpoint: &Arc<Endpoint>, result: &Result<Answer, Failed>, now: u64) {
    let totals = &context.shared.metrics.totals;
    let bad = match result {
        Ok(answer) => matches!(answer.response.status().as_u16(), 500 | 502 | 503 | 504),
        Err(Failed::Connect(error)) => {
            metrics::add(&totals.upstream_connect_failures);
            error.is_endpoints()
        }
        Err(Failed::Overflow) => {
            metrics::add(&totals.upstream_overflows);
            false
        }
        Err(Failed::NoAnswer(Failure::Body(error), _)) if error.is_clients() => false,
        // A kept connection that was closed in the meantime says nothing of the endpoint.
        Err(Failed::NoAnswer(_, attempt)) if attempt.reused && !attempt.received => false,
        Err(_) => {
            metrics::add(&totals.upstream_failures);
            true
        }
    };
    if !bad {
        endpoint.health.succeeded();
    } else if endpoint.health.failed(now, &endpoint.outliers) {
        metrics::add(&totals.upstream_ejections);
        tracing::debug!(%endpoint, "left out an endpoint after failures in a row");
    }
}

fn failure(context: &Context, endpoint: &Endpoint, failed: &Failed, record: &mut Record) -> Response<Body> {
    let (status, why) = match failed {
        Failed::Connect(error @ (ConnectError::Overflow(_) | ConnectError::Busy(_))) => {
            metrics::add(&context.shared.metrics.totals.upstream_overflows);
            (StatusCode::SERVICE_UNAVAILABLE, chain(error))
        }
        Failed::Connect(error @ ConnectError::Settings(_)) => {
            (StatusCode::INTERNAL_SERVER_ERROR, chain(error))
        }
        Failed::Connect(error) => (StatusCode::BAD_GATEWAY, chain(error)),
        Failed::Overflow => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the endpoint carries all it may".into(),
        ),
        Failed::NoAnswer(Failure::Slow, _) | Failed::Timeout => (
            StatusCode::GATEWAY_TIMEOUT,
            "the backend did not answer in time".into(),
        ),
        Failed::NoAnswer(Failure::Body(crate::body::BodyError::ClientIdle), _) => (
            StatusCode::REQUEST_TIMEOUT,
            "the client sent nothing for too long".into(),
        ),
        // Whoever comes again is judged again, and told more.
        Failed::NoAnswer(Failure::Body(error @ crate::body::BodyError::Lost(_)), _) => {
            (StatusCode::UNAUTHORIZED, chain(error))
        }
        Failed::NoAnswer(Failure::Body(error), _) if error.is_clients() => {
            metrics::add(&context.shared.metrics.totals.bad_requests);
            (StatusCode::BAD_REQUEST, chain(error))
        }
        Failed::NoAnswer(error, _) => (StatusCode::BAD_GATEWAY, chain(error)),
        Failed::Http2 { error, .. } => (StatusCode::BAD_GATEWAY, chain(error)),
    };
    record.why(format_args!("{endpoint}: {why}"));
    plain(status)
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

/// An attempt whose request's body broke on the way.
const BROKEN: Attempt = Attempt {
    reused: false,
    sent: true,
    received: false,
};

/// One attempt at one endpoint.
pub(crate) struct Attempting<'a> {
    pub(crate) context: &'a Context,
    pub(crate) cluster: &'a Cluster,
    pub(crate) endpoint: &'a Arc<Endpoint>,
    pub(crate) parts: &'a Parts,
    pub(crate) upgrade: Option<&'a http::HeaderValue>,
}

impl Attempting<'_> {
    /// The body is taken only when there is a connection for it.
    async fn send(&self, body: &mut Body) -> Result<Answer, Failed> {
        let in_flight = self.endpoint.enter().ok_or(Failed::Overflow)?;
        match self.cluster.spec.protocol {
            BackendProtocol::Http2 => self.http2(body, in_flight).await,
            BackendProtocol::Http1 | BackendProtocol::WebSocket => self.http1(body, in_flight).await,
        }
    }

    /// For mirrors, which do not care why.
    pub(crate) async fn send_once(&self, body: Body) -> Option<Answer> {
        let mut body = body;
        self.send(&mut body).await.ok()
    }

    fn dialler(&self) -> Dialler<'_> {
        Dialler {
            fabric: &self.context.shared.fabric,
            worker: self.context.worker,
            connect: self.context.shared.options.timeouts.connect,
        }
    }

    async fn http1(&self, body: &mut Body, in_flight: InFlight) -> Result<Answer, Failed> {
        let origin = self.context.peer.origin;
        let conn = dial::http1(self.dialler(), self.cluster, self.endpoint, origin)
            .await
            .map_err(Failed::Connect)?;
        let options = &self.context.shared.options;
        let limits = ExchangeLimits {
            head: options.limits.response_head,
            head_after: options.timeouts.response_head,
            idle: options.timeouts.body_idle,
        };
        let body = std::mem::replace(body, Body::Empty);
        let mut exchange = Box::new(Exchange::new(
            conn,
            self.parts,
            self.upgrade,
            body,
            in_flight,
            limits,
        ));
        let head = match exchange.head().await {
            Ok(head) => head,
            Err(failure) => {
                let attempt = exchange.attempt();
                return Err(Failed::NoAnswer(failure, attempt));
            }
        };
        let mut response = Response::new(Body::Empty);
        *response.status_mut() = head.status;
        *response.headers_mut() = head.headers;
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(match (self.upgrade, exchange.into_upgraded()) {
                (Some(_), Some((io, first, in_flight))) => Answer {
                    response,
                    upgraded: Some(Upgraded {
                        io,
                        first,
                        in_flight,
                        permits: Vec::new(),
                    }),
                    close: false,
                },
                // Nobody asked for it.
                _ => plain(StatusCode::BAD_GATEWAY).into(),
            });
        }
        if !exchange.is_done() {
            *response.body_mut() = Body::Upstream(exchange);
        }
        Ok(response.into())
    }

    async fn http2(&self, body: &mut Body, in_flight: InFlight) -> Result<Answer, Failed> {
        if self.upgrade.is_some() {
            // Protocols are not changed on HTTP/2; the client is told by an ordinary answer.
            tracing::debug!("an upgrade was asked of a backend that speaks HTTP/2");
        }
        let origin = self.context.peer.origin;
        let (mut sender, stream) = dial::http2(self.dialler(), self.cluster, self.endpoint, origin)
            .await
            .map_err(Failed::Connect)?;
        let Some(request) = as_http2(self.parts, self.cluster.tls.is_some()) else {
            return Ok(plain(StatusCode::BAD_REQUEST).into());
        };
        let (body, uplinked) = Uplink::wrap(std::mem::replace(body, Body::Empty));
        let (parts, ()) = request.into_parts();
        let mut answering = std::pin::pin!(sender.send_request(http::Request::from_parts(parts, body)));
        let within = self.context.shared.options.timeouts.response_head;
        let response = loop {
            match tokio::time::timeout(within, answering.as_mut()).await {
                // A backend may wait for the whole request, and the time is the backend's: it begins when nothing more comes.
                Err(_) if uplinked.has_moved() => {}
                Err(_) => return Err(Failed::Timeout),
                Ok(Ok(response)) => break response,
                Ok(Err(error)) => {
                    return Err(match uplinked.broke() {
                        Some(broke) => Failed::NoAnswer(Failure::Body(broke), BROKEN),
                        None => {
                            let sent = !error.is_canceled();
                            Failed::Http2 { error, sent }
                        }
                    });
                }
            }
        };
        let (mut parts, incoming) = response.into_parts();
        parts.version = Version::HTTP_11;
        let body = Body::Http2(Box::new(Http2Body::of_backend(incoming, in_flight, stream)));
        Ok(Response::from_parts(parts, body).into())
    }
}

fn as_http2(parts: &Parts, secure: bool) -> Option<http::Request<()>> {
    let mut headers = parts.headers.clone();
    let host = headers.remove(HOST)?;
    let target = parts.uri.path_and_query().cloned();
    let uri = Uri::builder()
        .scheme(if secure { "https" } else { "http" })
        .authority(host.as_bytes())
        .path_and_query(target.unwrap_or_else(|| http::uri::PathAndQuery::from_static("/")))
        .build()
        .ok()?;
    let mut request = http::Request::new(());
    *request.method_mut() = parts.method.clone();
    *request.uri_mut() = uri;
    *request.version_mut() = Version::HTTP_2;
    *request.headers_mut() = headers;
    Some(request)
}
