//! Stands for a domain that owns a kind: it answers dry runs with what the change would do to what runs.

use bytes::Bytes;
use fairway_kernel_apiserver::client::InProcess;
use http::{Request, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use kube::client::Body;
use serde_json::Value;
use tower::{BoxError, Service, ServiceExt as _};

/// The plural of the kind that the domain owns.
pub(crate) const OWNED: &str = "/machines";

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// The API with the domain behind it: `spec.impact` of a machine is what a change to it does.
pub(crate) fn answering(
    api: InProcess,
) -> impl Service<Request<Body>, Response = Answer, Error = BoxError, Future: Send + 'static>
+ Clone
+ Send
+ 'static {
    tower::service_fn(move |request: Request<Body>| {
        let api = api.clone();
        async move {
            let is_dry_run = request
                .uri()
                .query()
                .is_some_and(|query| query.contains("dryRun=All"));
            let is_owned = request.uri().path().contains(OWNED);
            let response = match api.oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
            if !is_dry_run || !is_owned || !response.status().is_success() {
                return Ok::<Answer, BoxError>(response);
            }
            let (mut parts, body) = response.into_parts();
            let bytes = body.collect().await?.to_bytes();
            let mut object: Value = serde_json::from_slice(&bytes)?;
            object["metadata"]["annotations"]["fairway.dev/impact"] = object["spec"]["impact"].clone();
            parts.headers.remove(header::CONTENT_LENGTH);
            let body = Full::new(Bytes::from(object.to_string()));
            Ok(Response::from_parts(
                parts,
                body.map_err(|never| match never {}).boxed_unsync(),
            ))
        }
    })
}
