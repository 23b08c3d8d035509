//! A request's way through the kernel: understand, authenticate, authorise, count, dispatch, record.
//!
//! The listener and the in-process client both enter here, so nothing is skipped for either.

pub(crate) mod standing;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairway_kernel_authz::UserInfo;
use futures::FutureExt;
use http::{Method, Request, Response};

use crate::access;
use crate::audit::trail::Trail;
use crate::authn::{self, Peer};
use crate::authorize;
use crate::dispatch;
use crate::http::body::{self, RequestBody, ResponseBody};
use crate::http::negotiate::{Accept, Format};
use crate::http::respond;
use crate::kernel::Kernel;
use crate::lifecycle_workspace::{self, Entry};
use crate::query::Query;
use crate::registry::Registry;
use crate::request::{Door, RequestInfo};
use crate::status::ApiError;
use crate::virtual_workspace::{self, Visit};
use standing::Standing;

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
    /// The resources that there are for it.
    pub registry: Arc<Registry>,
    /// What a provider may see and do.
    pub(crate) visit: Option<Visit>,
}

/// Answers a request.
pub async fn serve(
    kernel: &Arc<Kernel>,
    request: Request<RequestBody>,
    peer: &Peer,
) -> Response<ResponseBody> {
    let started = Instant::now();
    let (parts, body) = request.into_parts();
    let mut trail = Trail::new(kernel, &parts.headers);
    let head = parts.method == Method::HEAD;
    let answered = AssertUnwindSafe(answer(kernel, &parts, body, peer, &mut trail))
        .catch_unwind()
        .await;
    let mut response = match answered {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => respond::error(Format::Json, &error),
        Err(panic) => {
            trail.panicked(kernel, &parts, peer, panic_reason(panic.as_ref()));
            let error = "This request caused apiserver to panic. Look in the logs for details.";
            respond::error(Format::Json, &ApiError::internal(error))
        }
    };
    if head {
        *response.body_mut() = body::full(Bytes::new());
    }
    if let Some(info) = &trail.info {
        count(kernel, info, response.status().as_u16(), started);
    }
    trail.end(kernel, parts, peer, response).await
}

fn panic_reason(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("unknown")
}

fn count(kernel: &Kernel, info: &RequestInfo, code: u16, started: Instant) {
    let known = info.resource.as_ref().is_some_and(|r| {
        kernel
            .apis
            .of(&info.cluster)
            .find(&r.group, &r.version, &r.resource)
            .is_some()
    }) || kernel.api_services.load().route(info).is_some();
    kernel.metrics.count(info, known, code, started.elapsed());
}

async fn answer(
    kernel: &Arc<Kernel>,
    parts: &http::request::Parts,
    body: RequestBody,
    peer: &Peer,
    trail: &mut Trail,
) -> Result<Response<ResponseBody>, ApiError> {
    let query = Query::parse(parts.uri.query().unwrap_or(""))?;
    // A service account that names no workspace means its own, as a client inside a cluster does.
    let home_path = authn::path_at_home(parts.uri.path(), &parts.headers);
    let path = home_path.as_deref().unwrap_or(parts.uri.path());
    let info = RequestInfo::read(&parts.method, path, &query, |named| {
        kernel
            .workspaces
            .resolve(named)
            .or_else(|| access::unborn(named, parts.uri.path()))
    })
    .map_err(|error| ApiError::bad_request(error.to_string()))?;
    let info = Arc::clone(trail.info.insert(Arc::new(info)));
    crate::query::check_timeout(&query)?;
    let accept = Accept::read(&parts.headers, &query);
    let format = accept.as_ref().map_or(Format::Json, |a| a.format);
    let routed = kernel.api_services.load().route(&info);
    let is_long = routed.as_ref().is_some_and(|route| route.resource.long_running);
    let work = async {
        // From before he is asked who he is: what he loses meanwhile counts, too.
        let changes = (info.verb == "watch" || is_long).then(|| kernel.guests.follow_standing());
        let requestor = authn::authenticate(kernel, info.home(), peer, &parts.headers).await?;
        trail.user = Some(Arc::clone(&requestor));
        trail.begin(kernel, parts, peer);
        if info.door == Door::Own {
            access::enter(kernel, peer, &requestor, &info)?;
        }
        trail.impersonated =
            authn::impersonate::impersonate(kernel, info.home(), &requestor, &parts.headers)?.map(Arc::new);
        let mut user = trail.impersonated.clone().unwrap_or(requestor);
        let place = match info.verb {
            "watch" => None,
            _ if is_long => None,
            // A provider that comes through its export waits in its own workspace, not in its consumer's.
            _ => Some(kernel.inflight.enter(info.home(), info.is_mutating()).await?),
        };
        let only_name = authorize::selected_name(&info, &query);
        let (allowed, visit) = match &info.door {
            Door::Own => {
                let attributes = authorize::attributes(&user, &info, &only_name);
                (kernel.authorize(&info.cluster, &attributes), None)
            }
            Door::Export { .. } => match virtual_workspace::visit(kernel, &user, &info) {
                Ok(visit) => (Ok("by the consumer's APIBinding".to_owned()), Some(visit)),
                Err(refused) => (Err(refused), None),
            },
            Door::Lifecycle { .. } => match lifecycle_workspace::enter(kernel, &user, &info) {
                Ok(Entry::Clusters(visit) | Entry::Ruled(visit)) => {
                    (Ok("by the workspace's WorkspaceType".to_owned()), Some(visit))
                }
                Ok(Entry::AsCreator(creator)) => {
                    user = Arc::clone(trail.impersonated.insert(Arc::new(creator)));
                    let attributes = authorize::attributes(&user, &info, &only_name);
                    (kernel.authorize(&info.cluster, &attributes), None)
                }
                Err(refused) => (Err(refused), None),
            },
        };
        match allowed {
            Ok(reason) => trail.decision = Some(("allow", reason)),
            Err(refused) => {
                trail.decision = Some(("forbid", refused.message.clone()));
                return Err(refused);
            }
        }
        if *kernel.shutdown.borrow() && info.is_mutating() {
            return Err(ApiError::unavailable("the server is shutting down"));
        }
        // Whoever acts as somebody else answers for it by his own certificate or token, and is asked no further.
        let came_by = authn::bearer(&parts.headers).filter(|_| trail.impersonated.is_none());
        let standing = came_by
            .zip(changes)
            .map(|by| Standing::new(kernel, &info, &only_name, &user, by));
        if let Some(route) = &routed {
            return route
                .forward(parts, body, &info, &user, standing.map(Standing::lost))
                .await;
        }
        let body = body::read(body).await?;
        trail.keep(&body);
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
            registry: match &visit {
                Some(visit) => Arc::clone(&visit.registry),
                None => kernel.apis.of(&info.cluster),
            },
            visit,
        };
        let answer = dispatch::dispatch(kernel, admitted).await?;
        let answer = match standing {
            Some(standing) => answer.map(|body| standing.keep(body)),
            None => answer,
        };
        Ok(match place {
            Some(place) if !info.is_mutating() => answer.map(|body| place.keep_for(body)),
            _ => answer,
        })
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

/// Whether the server has finished starting.
pub fn is_ready(kernel: &Kernel) -> bool {
    kernel.ready.load(Ordering::Acquire) && !*kernel.shutdown.borrow()
}
