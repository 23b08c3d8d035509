//! Which part of the kernel answers a request.

use std::sync::Arc;

use fairway_kernel_kinds::validation;
use http::Method;

use crate::discovery;
use crate::health;
use crate::home;
use crate::http::negotiate::Format;
use crate::http::respond;
use crate::kernel::Kernel;
use crate::key::ROOT_CLUSTER;
use crate::metrics;
use crate::registry::{Registry, ResourceDef};
use crate::request::ResourcePath;
use crate::rest::call::{Answer, Call};
use crate::rest::{create, delete, delete_collection, get, list, patch, update, watch};
use crate::reviews;
use crate::service::Admitted;
use crate::status::ApiError;
use crate::subresource;
use crate::version;
use crate::virtual_workspace::check_maximal_policy;

/// Answers a request that has been authorised.
pub(crate) async fn dispatch(kernel: &Arc<Kernel>, request: Admitted<'_>) -> Answer {
    match &request.info.resource {
        Some(path) => resource(kernel, &request, path).await,
        None => other(kernel, &request).await,
    }
}

async fn other(kernel: &Arc<Kernel>, request: &Admitted<'_>) -> Answer {
    // Upstream asks for no method here.
    let any_method = |path: &str| health::is_health(path) || path == "/apis" || path.starts_with("/openapi/");
    if !matches!(request.info.verb, "get" | "head") && !any_method(&request.info.path) {
        return Err(ApiError::method_not_allowed());
    }
    let format = request.accept.format;
    match request.info.path.trim_end_matches('/') {
        // People look at this one; upstream indents it for everybody.
        "/version" => Ok(respond::value(200, Format::PrettyJson, &version::version())),
        // They are the server's, and tell of all workspaces.
        "/metrics" if request.info.cluster != ROOT_CLUSTER => Err(ApiError::not_implemented(
            "server-level endpoint not available at workspace scope",
        )),
        "/metrics" => {
            let mut all = metrics::render(kernel);
            if let Some(ask) = kernel.asked_metrics.get() {
                all += &ask().await;
            }
            Ok(respond::text(200, all))
        }
        "/.well-known/openid-configuration" => Ok(respond::value(200, format, &kernel.tokens.discovery())),
        "/openid/v1/jwks" => Ok(respond::value(200, format, &kernel.tokens.jwks())),
        path if health::is_health(path) => health::answer(kernel, path, request.query),
        "/openapi/v2" => crate::openapi::v2::answer(kernel, request).await,
        path if path == "/openapi/v3" || path.starts_with("/openapi/v3/") => {
            crate::openapi::answer(kernel, path, request)
        }
        path => discovery::answer(kernel, path, request),
    }
}

async fn resource(kernel: &Arc<Kernel>, request: &Admitted<'_>, path: &ResourcePath) -> Answer {
    let registry = &request.registry;
    let def = registry
        .find(&path.group, &path.version, &path.resource)
        .cloned()
        .ok_or_else(|| no_such_resource(registry, path))?;
    if request.visit.as_ref().is_none_or(|visit| visit.is_inside) {
        check_maximal_policy(kernel, request.user, request.info, &def)?;
    }
    check_scope(&def, path, request.info.verb)?;
    if request.info.verb == "watch" && !matches!(request.parts.method, Method::GET | Method::HEAD) {
        return Err(ApiError::method_not_allowed());
    }
    let faults = validation::is_path_segment_name(&path.name);
    if !faults.is_empty() && !path.name.is_empty() {
        return Err(ApiError::bad_request(format!(
            "Name parameter invalid: {:?}: {}",
            path.name,
            faults.join(";")
        )));
    }
    let call = Call::new(
        kernel,
        def,
        &request.info.cluster,
        path,
        request.query,
        &request.parts.headers,
        request.user,
        request.accept,
    )
    .visited_by(request.visit.as_ref());
    if let Some(warning) = deprecation(&call.def) {
        call.warn(warning);
    }
    let answer = if !path.subresource.is_empty() {
        subresource::dispatch(&call, request).await
    } else if home::is_asked_for(&call, request.info.verb) {
        home::answer(&call).await
    } else if reviews::is_review(&call.def) {
        reviews::answer(&call, request).await
    } else {
        verb(&call, request).await
    };
    let warnings = call.take_warnings();
    match answer {
        Ok(mut response) => {
            respond::warn(&mut response, &warnings);
            Ok(response)
        }
        Err(error) if warnings.is_empty() => Err(error),
        Err(error) => {
            let mut response = respond::error(request.accept.format, &error);
            respond::warn(&mut response, &warnings);
            Ok(response)
        }
    }
}

/// What whoever uses a deprecated built-in resource is told, whatever he does with it.
fn deprecation(def: &ResourceDef) -> Option<&'static str> {
    (def.is("", "endpoints") && def.custom().is_none())
        .then_some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
}

/// Carries out a verb on a stored resource.
pub(crate) async fn verb(call: &Call<'_>, request: &Admitted<'_>) -> Answer {
    let verb = request.info.verb;
    if !call.def.verbs.iter().any(|v| v == verb) {
        return Err(ApiError::method_not_allowed());
    }
    let named = !call.path.name.is_empty();
    let body = request.body.clone();
    match verb {
        "get" => get::get(call).await,
        "list" => list::list(call).await,
        "watch" => watch::watch(call).await,
        "create" if !named => create::create(call, body).await,
        "update" if named => update::update(call, body).await,
        "patch" if named => patch::patch(call, body).await,
        "delete" => delete::delete(call, body).await,
        "deletecollection" => delete_collection::delete_collection(call, body).await,
        _ => Err(ApiError::method_not_allowed()),
    }
}

/// Groups of Kubernetes answer for themselves what they do not have; what no group claims is not a page.
fn no_such_resource(registry: &Registry, path: &ResourcePath) -> ApiError {
    let built_in = registry
        .iter()
        .any(|def| def.group == path.group && def.custom().is_none());
    if built_in {
        ApiError::no_such_path()
    } else {
        ApiError::page_not_found()
    }
}

/// Namespaced objects are named within a namespace, others outside; collections of namespaced objects may be read across
/// all namespaces, but not written.
fn check_scope(def: &ResourceDef, path: &ResourcePath, verb: &str) -> Result<(), ApiError> {
    let in_namespace = path.namespace.is_some() && !def.is("", "namespaces");
    if !def.namespaced && in_namespace {
        return Err(ApiError::no_such_path());
    }
    if def.namespaced && !in_namespace && !path.name.is_empty() {
        return Err(ApiError::no_such_path());
    }
    if def.namespaced && !in_namespace && !matches!(verb, "list" | "watch") {
        // Upstream serves the two by different handlers, and clients tell their answers apart: Crossplane takes "not
        // found" for "nothing to delete".
        if def.custom().is_some() {
            return Err(ApiError::page_not_found());
        }
        return Err(ApiError::method_not_allowed());
    }
    Ok(())
}
