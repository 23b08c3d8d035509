//! A request's way through the kernel: understand, authenticate, authorise, count, dispatch, record.
//!
//! The listener and the in-process client both enter here, so nothing is skipped for either.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairway_kernel_authz::UserInfo;
use http::{HeaderValue, Method, Request, Response};

use crate::audit::Entry;
use crate::authn::{self, Peer};
use crate::authorize;
use crate::dispatch;
use crate::http::body::{self, RequestBody, ResponseBody};
use crate::http::negotiate::{Accept, Format};
use crate::http::respond;
use crate::kernel::Kernel;
use crate::query::Query;
use crate::request::RequestInfo;
use crate::status::ApiError;

/// How long a request that is not a watch may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A request after everything but its own work has been done.
pub struct Admitted<'a> {
    /// Method, URI and headers.
    pub parts: &'a http::request::Parts,
    /// Its body.
    pub body: Bytes,
    /// What it asks for.
    pub info: &'a RequestInfo,
    /// Its parameters.
    pub query: &'a Query,
    /// Who asks.
    pub user: &'a UserInfo,
    /// What the client wants to read.
    pub accept: Accept,
}

/// What is known of a request when it has been answered, for the log.
#[derive(Default)]
struct Trace {
    info: Option<Arc<RequestInfo>>,
    user: Option<Arc<UserInfo>>,
    impersonated: Option<Arc<UserInfo>>,
    decision: Option<(&'static str, String)>,
}

/// Answers a request.
pub async fn serve(
    kernel: &Arc<Kernel>,
    request: Request<RequestBody>,
    peer: &Peer,
) -> Response<ResponseBody> {
    let started = Instant::now();
    let received = kernel.clock.rfc3339_micros();
    let (parts, body) = request.into_parts();
    let mut trace = Trace::default();
    let head = parts.method == Method::HEAD;
    let mut response = match answer(kernel, &parts, body, peer, &mut trace).await {
        Ok(response) => response,
        Err(error) => respond::error(Format::Json, &error),
    };
    if head {
        *response.body_mut() = body::full(Bytes::new());
    }
    let id = kernel.random.uuid();
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert("audit-id", value);
    }
    finish(
        kernel,
        &parts,
        peer,
        &trace,
        response.status().as_u16(),
        &id,
        &received,
        started,
    );
    response
}

#[allow(
    clippy::too_many_arguments,
    reason = "all of it goes into one line of the log"
)]
fn finish(
    kernel: &Kernel,
    parts: &http::request::Parts,
    peer: &Peer,
    trace: &Trace,
    code: u16,
    id: &str,
    received: &str,
    started: Instant,
) {
    let Some(info) = &trace.info else { return };
    let served = kernel.api_services.load().route(info).is_some();
    let known = served
        || info.resource.as_ref().is_some_and(|r| {
            kernel
                .registry
                .load()
                .find(&r.group, &r.version, &r.resource)
                .is_some()
        });
    kernel.metrics.count(info, known, code, started.elapsed());
    if kernel.audit.is_on() && !is_probe(&info.path) {
        kernel.audit.record(&Entry {
            id,
            info,
            uri: parts
                .uri
                .path_and_query()
                .map_or("", http::uri::PathAndQuery::as_str),
            user: trace.user.as_deref(),
            impersonated: trace.impersonated.as_deref(),
            peer,
            user_agent: parts
                .headers
                .get(http::header::USER_AGENT)
                .and_then(|v| v.to_str().ok())
                .unwrap_or(""),
            code,
            received,
            answered: &kernel.clock.rfc3339_micros(),
            decision: trace.decision.as_ref().map(|(d, r)| (*d, r.as_str())),
        });
    }
}

fn is_probe(path: &str) -> bool {
    ["/livez", "/readyz", "/healthz"]
        .iter()
        .any(|p| path.starts_with(p))
}

async fn answer(
    kernel: &Arc<Kernel>,
    parts: &http::request::Parts,
    body: RequestBody,
    peer: &Peer,
    trace: &mut Trace,
) -> Result<Response<ResponseBody>, ApiError> {
    let query = Query::parse(parts.uri.query().unwrap_or(""))?;
    let info = RequestInfo::read(&parts.method, parts.uri.path(), &query).map_err(|e| path_error(&e))?;
    let info = Arc::clone(trace.info.insert(Arc::new(info)));
    crate::query::check_timeout(&query)?;
    let accept = Accept::read(&parts.headers, &query);
    let format = accept.as_ref().map_or(Format::Json, |a| a.format);
    let routed = kernel.api_services.load().route(&info);
    let is_long = routed.as_ref().is_some_and(|route| route.resource.long_running);
    let work = async {
        let requestor = Arc::new(authn::authenticate(kernel, peer, &parts.headers)?);
        trace.user = Some(Arc::clone(&requestor));
        trace.impersonated =
            authn::impersonate::impersonate(kernel, &requestor, &parts.headers)?.map(Arc::new);
        let user = trace.impersonated.clone().unwrap_or(requestor);
        let _place = match info.verb {
            "watch" => None,
            _ if is_long => None,
            _ => Some(kernel.inflight.enter(info.is_mutating())?),
        };
        let only_name = authorize::selected_name(&info, &query);
        match kernel.authorize(&authorize::attributes(&user, &info, &only_name)) {
            Ok(reason) => trace.decision = Some(("allow", reason)),
            Err(refused) => {
                trace.decision = Some(("forbid", refused.message.clone()));
                return Err(refused);
            }
        }
        if *kernel.shutdown.borrow() && info.is_mutating() {
            return Err(ApiError::unavailable("the server is shutting down"));
        }
        if let Some(route) = &routed {
            return route.forward(parts, body, &info, &user).await;
        }
        let body = body::read(body).await?;
        // Discovery and health are read in whatever form they have; only resources are negotiated strictly.
        let accept = match accept {
            Err(refused) if info.resource.is_some() => return Err(refused),
            other => other.unwrap_or(Accept::JSON),
        };
        let admitted = Admitted {
            parts,
            body,
            info: &info,
            query: &query,
            user: &user,
            accept,
        };
        dispatch::dispatch(kernel, admitted).await
    };
    let limit = if is_long { Duration::MAX } else { REQUEST_TIMEOUT };
    let answered = match tokio::time::timeout(limit, work).await {
        Ok(answered) => answered,
        Err(_) => Err(ApiError::timeout(
            "request did not complete within the allotted timeout; it may or may not have been carried out",
            0,
        )),
    };
    Ok(answered.unwrap_or_else(|error| respond::error(format, &error)))
}

fn path_error(error: &crate::request::PathError) -> ApiError {
    match error {
        crate::request::PathError::Encoding => ApiError::bad_request(error.to_string()),
        crate::request::PathError::NoSuchWorkspace(_) => ApiError {
            message: error.to_string(),
            ..ApiError::no_such_path()
        },
    }
}

/// Whether the server has finished starting.
pub fn is_ready(kernel: &Kernel) -> bool {
    kernel.ready.load(Ordering::Acquire) && !*kernel.shutdown.borrow()
}
