//! The way of a request: listener → route → guard → filters → backend, and its answer back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use fairway_fabric::Connection;
use fairway_gateway_guard::{Asked, Passage, Refusal, Verdict};
use fairway_gateway_routes::lookup::Request as Sought;
use fairway_gateway_routes::table::{Action, Cors, Filter};
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, ORIGIN};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};

use crate::body::Body;
use crate::filters::{self, cors};
use crate::forward;
use crate::forwarded::{self, Writes};
use crate::grpc::{self, Ours};
use crate::guards;
use crate::h1::head::Bad;
use crate::intake::{self, Host};
use crate::metrics::{self, Judged};
use crate::mirror;
use crate::peer::Peer;
use crate::permit::Permit;
use crate::plan::{DoorPlan, ListenerPlan, Listening, Plan, RulePlan};
use crate::proxy::Shared;
use crate::record::Record;
use crate::upstream::InFlight;

/// Who serves a request, and what with.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    pub(crate) worker: usize,
    pub(crate) peer: Arc<Peer>,
    pub(crate) plan: Arc<Plan>,
    pub(crate) door: Arc<DoorPlan>,
}

pub(crate) struct Request {
    pub(crate) parts: Parts,
    pub(crate) body: Body,
    /// The protocol that the client wants instead, if it does.
    pub(crate) upgrade: Option<HeaderValue>,
}

pub(crate) struct Answer {
    pub(crate) response: Response<Body>,
    /// After 101: the backend's end of the connection.
    pub(crate) upgraded: Option<Upgraded>,
    /// Nothing that follows on the same connection is to be trusted.
    pub(crate) close: bool,
}

pub(crate) struct Upgraded {
    pub(crate) io: Box<dyn Connection>,
    /// What the backend said already.
    pub(crate) first: Bytes,
    pub(crate) in_flight: InFlight,
    /// Of the rules that it was let through by: one may lead to another.
    pub(crate) permits: Vec<Permit>,
}

impl From<Response<Body>> for Answer {
    fn from(response: Response<Body>) -> Self {
        Self {
            response,
            upgraded: None,
            close: false,
        }
    }
}

/// A Route may lead to a Gateway, and so on; but not for ever.
pub(crate) const DEEPEST: u8 = 4;

/// Serves one request. What is told of it is in `record` when it returns.
pub(crate) async fn serve(context: &Context, request: Request, record: &mut Record) -> Answer {
    let is_call = grpc::is_call(&request.parts.headers);
    let mut answer = answer(context, request, record).await;
    if is_call {
        grpc::translate(&mut answer.response);
    }
    answer
}

async fn answer(context: &Context, mut request: Request, record: &mut Record) -> Answer {
    let host = match intake::admit(&mut request.parts) {
        Ok(host) => host,
        Err(bad) => return refuse(&context.shared, bad, record),
    };
    let peer = &context.peer;
    let id = forwarded::id(&request.parts.headers, &context.shared.options.trust);
    introduce(&mut request.parts, &context.shared, peer, &id);
    record.begin(
        &request.parts,
        &host.0,
        peer.scheme(),
        peer.client,
        id.to_str().unwrap_or("-"),
    );
    let answer = match context.door.listener(&host.0, peer.server_name.as_deref()) {
        Listening::Here(listener) => {
            let arrived = Arrived { host: &host, id: &id };
            dispatch(context, listener, request, &arrived, 0, record).await
        }
        Listening::Elsewhere => plain(StatusCode::MISDIRECTED_REQUEST).into(),
        Listening::Nobody => {
            metrics::add(&context.shared.metrics.totals.unrouted_requests);
            plain(StatusCode::NOT_FOUND).into()
        }
    };
    record.status(answer.response.status());
    answer
}

/// Writes where a request came from, before routes and guards look at it: what is believed of it is not what clients say.
pub(crate) fn introduce(parts: &mut Parts, shared: &Shared, peer: &Peer, id: &HeaderValue) {
    let options = &shared.options;
    let writes = Writes {
        trust: &options.trust,
        traces: options.start_traces,
        forwarded: options.forwarded,
    };
    forwarded::write(&mut parts.headers, peer, id, writes);
}

/// What of a request decides about its route.
pub(crate) fn sought(parts: &Parts) -> Sought<'_> {
    Sought::new(&parts.method, parts.uri.path(), parts.uri.query(), &parts.headers)
}

/// Refuses what was not even a request.
pub(crate) fn refuse(shared: &Shared, bad: Bad, record: &mut Record) -> Answer {
    metrics::add(&shared.metrics.totals.bad_requests);
    record.why(bad.why);
    record.status(bad.status);
    Answer {
        close: true,
        ..plain(bad.status).into()
    }
}

/// What was found out of a request when it arrived.
pub(crate) struct Arrived<'a> {
    pub(crate) host: &'a Host,
    pub(crate) id: &'a HeaderValue,
}

/// The same by way of a box, for requests that go from one listener to another.
pub(crate) fn dispatch_again<'a>(
    context: &'a Context,
    listener: &'a Arc<ListenerPlan>,
    request: Request,
    arrived: &'a Arrived<'a>,
    depth: u8,
    record: &'a mut Record,
) -> BoxFuture<'a, Answer> {
    Box::pin(async move {
        if depth > DEEPEST {
            record.why("listeners lead to each other in circles");
            return plain(StatusCode::LOOP_DETECTED).into();
        }
        dispatch(context, listener, request, arrived, depth, record).await
    })
}

async fn dispatch(
    context: &Context,
    listener: &Arc<ListenerPlan>,
    mut request: Request,
    arrived: &Arrived<'_>,
    depth: u8,
    record: &mut Record,
) -> Answer {
    let found = {
        let parts = &request.parts;
        listener.find(&arrived.host.0, &sought(parts))
    };
    let Some(found) = found else {
        metrics::add(&context.shared.metrics.totals.unrouted_requests);
        return plain(StatusCode::NOT_FOUND).into();
    };
    let (rule, matched) = (found.rule, &found.entry.matches.path);
    record.rule(rule);
    let cors = cors_of(rule);
    let origin = cors.and_then(|_| request.parts.headers.get(ORIGIN).cloned());
    if let Some(cors) = cors {
        // Browsers send preflights without credentials, so guards could only refuse them.
        if let Some(response) = cors::preflight(cors, &request.parts.method, &request.parts.headers) {
            return response.into();
        }
    }
    let passage = match judge(context, rule, &request.parts, arrived, record).await {
        Ok(passage) => passage,
        Err(refusal) => {
            let mut response = refused(refusal);
            if let (Some(cors), Some(origin)) = (cors, &origin) {
                cors::permit(cors, origin, response.headers_mut());
            }
            return response.into();
        }
    };
    let (mut response_headers, mut standing) = (Vec::new(), None);
    if let Some(passage) = passage {
        guards::withhold(&mut request.parts.headers, &passage.withheld);
        for (name, value) in passage.request_headers {
            request.parts.headers.insert(name, value);
        }
        (response_headers, standing) = (passage.response_headers, passage.standing);
    }
    let filters = &rule.rule.filters;
    if let Some(response) = redirected(context, rule, matched, &request.parts, arrived) {
        let mut response = response;
        finish(
            &mut response,
            filters,
            response_headers,
            cors.zip(origin.as_ref()),
        );
        return response.into();
    }
    if rule.rule.action == Action::Answered {
        record.why("the rule's redirection cannot be written as a header");
        return plain(StatusCode::INTERNAL_SERVER_ERROR).into();
    }
    filters::on_request(filters, matched, &mut request.parts);
    let permit = || Permit::new(&context.shared, rule, standing.clone());
    if rule.protection.is_some() {
        Permit::hold(&mut request.body, permit);
    }
    if !rule.mirrors.is_empty() {
        request.body = mirror::send(context, rule, &request.parts, matched, request.body);
    }
    let mut answer = forward::send(context, rule, matched, request, arrived, depth, record).await;
    if let Some(upgraded) = &mut answer.upgraded {
        upgraded.permits.push(permit());
    } else if rule.protection.is_some() {
        Permit::hold(answer.response.body_mut(), permit);
    }
    finish(
        &mut answer.response,
        filters,
        response_headers,
        cors.zip(origin.as_ref()),
    );
    answer
}

fn finish(
    response: &mut Response<Body>,
    filters: &[Filter],
    added: Vec<(http::HeaderName, HeaderValue)>,
    cors: Option<(&Cors, &HeaderValue)>,
) {
    filters::on_response(filters, response.headers_mut());
    for (name, value) in added {
        response.headers_mut().insert(name, value);
    }
    if let Some((cors, origin)) = cors {
        cors::permit(cors, origin, response.headers_mut());
    }
}

pub(crate) fn cors_of(rule: &RulePlan) -> Option<&Cors> {
    rule.rule.filters.iter().find_map(|filter| match filter {
        Filter::Cors(cors) => Some(cors),
        _ => None,
    })
}

async fn judge(
    context: &Context,
    rule: &RulePlan,
    parts: &Parts,
    arrived: &Arrived<'_>,
    record: &mut Record,
) -> Result<Option<Passage>, Refusal> {
    let Some(protection) = &rule.protection else {
        return Ok(None);
    };
    let asked = asked(&context.peer, parts, arrived, false);
    let begun = Instant::now();
    match guards::judge(protection, &asked).await {
        Verdict::Allow(mut passage) => {
            rule.metrics.judged(Judged::Allowed, begun.elapsed());
            record.told(&mut passage.told);
            Ok(Some(passage))
        }
        Verdict::Deny(refusal) => {
            let failed = refusal.by.starts_with("fairway/guard-");
            if failed {
                metrics::add(&context.shared.metrics.totals.guard_failures);
            }
            let verdict = if failed { Judged::Failed } else { Judged::Denied };
            rule.metrics.judged(verdict, begun.elapsed());
            record.denied(&refusal.by, &refusal.why);
            Err(refusal)
        }
    }
}

pub(crate) fn asked<'a>(
    peer: &'a Peer,
    parts: &'a Parts,
    arrived: &'a Arrived<'a>,
    probe: bool,
) -> Asked<'a> {
    Asked {
        method: &parts.method,
        uri: &parts.uri,
        host: &arrived.host.0,
        scheme: peer.scheme(),
        version: parts.version,
        headers: &parts.headers,
        client: peer.client.ip(),
        client_port: peer.client.port(),
        door: SocketAddr::new(peer.door.ip(), peer.port),
        id: arrived.id.to_str().unwrap_or("-"),
        now: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos()),
        probe,
    }
}

fn refused(refusal: Refusal) -> Response<Body> {
    let mut response = ours(refusal.status, refusal.body);
    for (name, value) in refusal.headers {
        response.headers_mut().append(name, value);
    }
    response
}

pub(crate) fn redirected(
    context: &Context,
    rule: &RulePlan,
    matched: &fairway_gateway_routes::table::PathMatch,
    parts: &Parts,
    arrived: &Arrived<'_>,
) -> Option<Response<Body>> {
    rule.rule.filters.iter().find_map(|filter| match filter {
        Filter::Redirect(redirect) => {
            let from = filters::From {
                scheme: context.peer.scheme(),
                host: &arrived.host.0,
                port: context.peer.port,
                uri: &parts.uri,
            };
            filters::redirect(redirect, matched, &from)
        }
        _ => None,
    })
}

/// An answer of our own.
pub(crate) fn plain(status: StatusCode) -> Response<Body> {
    let text = status.canonical_reason().unwrap_or("error");
    let mut response = ours(status, Bytes::from_static(text.as_bytes()));
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}

fn ours(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::Full(body));
    *response.status_mut() = status;
    response.extensions_mut().insert(Ours);
    response
}
