//! Where nodes dial: `machines.fairway.dev/v1`, `nodes/NAME/link`.

use fairway_apiservice::websocket::{self, Accepted};
use fairway_apiservice::{ApiService, Body, BoxError, Handler, RequestInfo, Resource, full};
use fairway_controller::WorkspaceId;
use http::{Request, Response, StatusCode};
use serde_json::json;
use tower::service_fn;

use crate::{GROUP, Links, PROTOCOL, VERSION};

/// Takes the streams of nodes. Who may be which node is judged before a request gets here.
pub struct Service {
    links: Links,
}

impl Service {
    /// Streams go to these.
    pub fn new(links: Links) -> Self {
        Self { links }
    }
}

impl ApiService for Service {
    fn group_version(&self) -> (&str, &str) {
        (GROUP, VERSION)
    }

    fn resources(&self) -> Vec<Resource> {
        vec![
            Resource::new("nodes/link", "Stream")
                .cluster_scoped()
                .verbs(&["get"])
                .long_running(),
        ]
    }

    fn handler(&self) -> Handler {
        let links = self.links.clone();
        Handler::new(service_fn(move |request: Request<Body>| {
            let links = links.clone();
            async move { Ok::<_, BoxError>(answer(&links, &request)) }
        }))
    }
}

fn answer(links: &Links, request: &Request<Body>) -> Response<Body> {
    let info = request.extensions().get::<RequestInfo>();
    let is_root = |info: &&RequestInfo| WorkspaceId::parse(&info.cluster).is_ok_and(|it| it.is_root());
    // A workspace that is somebody's own has people who may do anything in it; nodes are not in it.
    let Some(info) = info.filter(is_root) else {
        return refused("nodes connect in the root workspace");
    };
    let node = info.name.clone();
    match websocket::accept(request, &[PROTOCOL]) {
        Ok(Accepted {
            response, upgrade, ..
        }) => {
            let links = links.clone();
            tokio::spawn(async move {
                match upgrade.io().await {
                    Ok(socket) => links.take(&node, socket).await,
                    // It left before it was answered.
                    Err(error) => tracing::debug!(%error, "a node did not wait for its stream"),
                }
            });
            response.map(|_| full(Vec::new()))
        }
        Err(refused) => *refused,
    }
}

fn refused(why: &str) -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 403, "reason": "Forbidden",
        "message": why,
    });
    let mut response = Response::new(full(status.to_string()));
    *response.status_mut() = StatusCode::FORBIDDEN;
    response
}
