//! Subresources: other doors to the same object.

mod scale;
mod token;

pub(crate) use scale::view as scale_of;

use crate::http::respond;
use crate::rest::call::{Answer, Call};
use crate::rest::{get, patch, update};
use crate::service::Admitted;
use crate::status::ApiError;

/// Answers a request on a subresource.
pub(crate) async fn dispatch(call: &Call<'_>, request: &Admitted<'_>) -> Answer {
    let verb = request.info.verb;
    let name = call.path.subresource.as_str();
    let Some(sub) = call.def.subresource(name) else {
        return Err(if call.def.custom().is_some() {
            ApiError::not_found(call.about(&call.path.name))
        } else {
            ApiError::no_such_path()
        });
    };
    if !sub.verbs.iter().any(|v| v == verb) {
        return Err(ApiError::method_not_allowed());
    }
    let body = request.body.clone();
    match (call.def.resource.as_str(), name, verb) {
        ("serviceaccounts", "token", "create") => token::create(call, &body).await,
        (_, "scale", "get") => scale::get(call).await,
        (_, "scale", "update") => scale::update(call, &body).await,
        (_, "scale", "patch") => scale::patch(call, &body).await,
        // The same object, with other rules on what may change: the kind's strategy knows them.
        (_, "status" | "finalize" | "approval" | "ephemeralcontainers" | "resize", "get") => {
            get::get(call).await
        }
        (_, "status" | "finalize" | "approval" | "ephemeralcontainers" | "resize", "update") => {
            update::update(call, body).await
        }
        (_, "status" | "finalize" | "approval" | "ephemeralcontainers" | "resize", "patch") => {
            patch::patch(call, body).await
        }
        ("pods" | "nodes" | "services", _, _) => Err(ApiError::not_implemented(format!(
            "{}/{name} needs a node that runs pods, and no node here runs pods",
            call.def.resource
        ))),
        _ => Err(ApiError::not_implemented(format!(
            "{}/{name} is not served",
            call.def.resource
        ))),
    }
}

/// Answers with a value of another kind than the resource's own.
fn other(call: &Call<'_>, code: u16, value: &serde_json::Value) -> Answer {
    Ok(respond::value(code, call.accept.format, value))
}
