//! What is behind the portal beside Backstage's APIs: the Kubernetes API below `/k8s`, and Gitea's below `/api/gitea/v1`. Both are asked
//! inside the process, with the token that stands in the request: they judge it as they judge any other client's.

use std::sync::Arc;

use fairway_gitops_githost::{Body, Host};
use fairway_kernel_apiserver::authn::Peer;
use fairway_kernel_apiserver::{Kernel, service};
use fairway_portal_web_server::{ClientAddress, Handler};
use futures::FutureExt as _;
use http::{Request, Response, StatusCode};

use super::portal::{Portal, at, refuse};

/// Where the Kubernetes API is.
const KUBERNETES: &str = "/k8s";
/// Where Gitea's API is.
const GITEA: &str = "/api/gitea/v1";
/// Where the Git host has it.
const GITEA_INSIDE: &str = "/api/v1";

/// Has both answered by the portal.
pub(super) fn join(portal: &Portal, kernel: &Arc<Kernel>, host: &Arc<Host>) {
    let kernel = Arc::clone(kernel);
    portal.join(
        KUBERNETES,
        rewritten(KUBERNETES, "", move |request| {
            let kernel = Arc::clone(&kernel);
            async move {
                let peer = Peer {
                    address: request.extensions().get::<ClientAddress>().map(|it| it.0),
                    ..Peer::default()
                };
                service::serve(&kernel, request, &peer).await
            }
        }),
    );
    let host = Arc::clone(host);
    portal.join(
        GITEA,
        rewritten(GITEA, GITEA_INSIDE, move |request| {
            let host = Arc::clone(&host);
            async move { host.serve(request).await }
        }),
    );
}

/// A handler of paths that begin otherwise inside.
fn rewritten<F: Future<Output = Response<Body>> + Send + 'static>(
    outside: &'static str,
    inside: &'static str,
    handler: impl Fn(Request<Body>) -> F + Send + Sync + Clone + 'static,
) -> Handler {
    Arc::new(move |request| {
        let rest = request.uri().path().strip_prefix(outside).unwrap_or_default();
        let path = match format!("{inside}{rest}") {
            path if path.is_empty() => "/".to_owned(),
            path => path,
        };
        let handler = handler.clone();
        async move {
            match at(request, &path) {
                Some(request) => handler(request).await,
                None => refuse(StatusCode::BAD_REQUEST, "InputError", "the path is none"),
            }
        }
        .boxed()
    })
}
