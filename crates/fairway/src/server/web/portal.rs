//! `portal.DOMAIN`: a small router from prefixes of paths to the parts that answer below them. Before it is the web server,
//! which serves the application and knows browsers by their sessions.
//!
//! `/clusters/PATH/api/…` is `/api/…` in that workspace, as in the Kubernetes API: the prefix is taken off and handed on as a header, so that
//! a client whose address is all that one can configure reaches any workspace.

use std::sync::{Arc, PoisonError, RwLock, Weak};

use bytes::Bytes;
use fairway_gitops_githost::Body;
use fairway_portal_catalog::WORKSPACE_HEADER;
use fairway_portal_web_server::Handler;
use http::header::CONTENT_TYPE;
use http::uri::{PathAndQuery, Uri};
use http::{HeaderValue, Request, Response, StatusCode};
use serde_json::json;

type Parts = RwLock<Vec<(&'static str, Handler)>>;

/// The parts, by the prefixes of their paths. They join while the server starts.
#[derive(Clone, Default)]
pub(crate) struct Portal(Arc<Parts>);

/// How a part asks the others without keeping them, and so itself, alive.
#[derive(Clone)]
pub(crate) struct Visitor(Weak<Parts>);

impl Visitor {
    /// The portal, as long as it is served.
    pub(crate) fn portal(&self) -> Option<Portal> {
        self.0.upgrade().map(Portal)
    }
}

impl Portal {
    /// For a part that asks others.
    pub(crate) fn visitor(&self) -> Visitor {
        Visitor(Arc::downgrade(&self.0))
    }

    /// Has a part answer everything below a prefix, such as `/api/catalog`.
    pub(crate) fn join(&self, prefix: &'static str, handler: Handler) {
        let mut parts = self.0.write().unwrap_or_else(PoisonError::into_inner);
        parts.push((prefix, handler));
        // The longest first: `/api/a/b` is not `/api/a`'s.
        parts.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
    }

    /// The router as one handler.
    pub(crate) fn handler(&self) -> Handler {
        let portal = self.clone();
        Arc::new(move |request| {
            let portal = portal.clone();
            Box::pin(async move { portal.serve(request).await })
        })
    }

    /// Answers a request.
    pub(crate) async fn serve(&self, request: Request<Body>) -> Response<Body> {
        let Some(request) = within(request) else {
            return refuse(
                StatusCode::BAD_REQUEST,
                "InputError",
                "the path names no workspace",
            );
        };
        let path = request.uri().path();
        let handler = {
            let parts = self.0.read().unwrap_or_else(PoisonError::into_inner);
            let found = parts.iter().find(|(prefix, _)| {
                path.strip_prefix(prefix)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            });
            found.map(|(_, handler)| Arc::clone(handler))
        };
        match handler {
            Some(handler) => handler(request).await,
            None => {
                let why = format!(
                    "Nothing is served at {path}; the catalog is below /api/catalog, the Kubernetes API below /k8s"
                );
                refuse(StatusCode::NOT_FOUND, "NotFoundError", &why)
            }
        }
    }
}

/// The same request for another path; none if that is no path.
pub(super) fn at(mut request: Request<Body>, path: &str) -> Option<Request<Body>> {
    let rest = match request.uri().query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = Some(rest.parse::<PathAndQuery>().ok()?);
    *request.uri_mut() = Uri::from_parts(parts).ok()?;
    Some(request)
}

/// Takes the workspace out of a path; none if what is left is no path.
fn within(request: Request<Body>) -> Option<Request<Body>> {
    let Some(rest) = request.uri().path().strip_prefix("/clusters/") else {
        return Some(request);
    };
    let (workspace, path) = rest.split_once('/')?;
    let workspace = HeaderValue::from_str(workspace)
        .ok()
        .filter(|name| !name.is_empty())?;
    let path = format!("/{path}");
    let mut request = at(request, &path)?;
    request.headers_mut().insert(WORKSPACE_HEADER, workspace);
    Some(request)
}

/// An error as Backstage's clients read it.
pub(super) fn refuse(status: StatusCode, name: &str, message: &str) -> Response<Body> {
    let content = json!({
        "error": {"name": name, "message": message}, "response": {"statusCode": status.as_u16()},
    });
    let body = fairway_gitops_githost::transport::full(Bytes::from(content.to_string()));
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/json; charset=utf-8"),
    );
    response
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn request(path: &str) -> Request<Body> {
        let body = fairway_gitops_githost::transport::full(Bytes::new());
        Request::builder().uri(path).body(body).unwrap()
    }

    #[test]
    fn workspaces_are_in_paths() {
        for (path, expected) in [
            (
                "/api/catalog/entities?a=b",
                Some(("/api/catalog/entities?a=b", None)),
            ),
            (
                "/clusters/root:acme/api/x?a=b",
                Some(("/api/x?a=b", Some("root:acme"))),
            ),
            (
                "https://portal.fairway.localhost/clusters/abc/api",
                Some(("/api", Some("abc"))),
            ),
            ("/clusters//api", None),
            ("/clusters/abc", None),
        ] {
            let found = within(request(path));
            let found = found.as_ref().map(|request| {
                let header = request.headers().get(WORKSPACE_HEADER);
                (
                    request.uri().path_and_query().unwrap().as_str(),
                    header.map(|value| value.to_str().unwrap()),
                )
            });
            assert_eq!(found, expected, "{path}");
        }
    }

    #[tokio::test]
    async fn prefixes_are_whole_parts() {
        let portal = Portal::default();
        for prefix in ["/api/catalog", "/api/catalog/more"] {
            let handler: Handler = Arc::new(move |_| {
                let body = fairway_gitops_githost::transport::full(Bytes::from_static(prefix.as_bytes()));
                async move { Response::new(body) }.boxed()
            });
            portal.join(prefix, handler);
        }
        for (path, status, part) in [
            ("/api/catalog/entities", 200, "/api/catalog"),
            ("/clusters/root/api/catalog", 200, "/api/catalog"),
            ("/api/catalog/more/x", 200, "/api/catalog/more"),
            ("/api/catalogs", 404, "NotFoundError"),
            ("/", 404, "NotFoundError"),
        ] {
            let response = portal.serve(request(path)).await;
            assert_eq!(response.status(), status, "{path}");
            let body = http_body_util::BodyExt::collect(response.into_body())
                .await
                .unwrap();
            let text = String::from_utf8(body.to_bytes().to_vec()).unwrap();
            assert!(text.contains(part), "{path}: {text}");
        }
    }
}
