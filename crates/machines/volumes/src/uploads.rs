//! Uploads, in the way of CDI's upload proxy, so that `virtctl image-upload` works.
//!
//! 1. Somebody makes a DataVolume or a claim that waits for an upload, and waits until it says that it is ready.
//! 2. He asks the API for a token (`UploadTokenRequest`), which the kernel allows those who may create such requests.
//! 3. He sends the file with the token to [`Uploads::serve`], which is reached beside the API (`CDIConfig` says where). It is unpacked,
//!    judged and made a disk while it arrives; what breaks off leaves nothing. If the disk is to be on another node, that one fetches what
//!    was sent, and the answer comes when it has it.
//!
//! Tokens are signed with a key that lives as long as the process: they are good for some minutes only.

mod receive;
mod token;

use std::sync::{Arc, OnceLock};

use fairway_apiservice::{ApiService, Body, BoxError, Handler, RequestInfo, Resource, full};
use fairway_controller::{Clients, ObjectKey, Queue, Requests, WorkspaceId};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::service_fn;

use crate::alone::Alone;
use crate::images::Images;
use crate::names;
use crate::place::Place;
use crate::view::{self, Claim};
use token::{Key, Token};

/// The largest request for a token.
const MAX_REQUEST: usize = 64 << 10;
/// The paths of the protocol. After the last of them the answer could come before the disk is made; here it never does.
const PATHS: [&str; 4] = [
    "/v1beta1/upload",
    "/v1alpha1/upload",
    "/v1beta1/upload-async",
    "/v1alpha1/upload-async",
];

/// Under which key a file is kept that was sent for the claim with this UID.
pub(crate) fn kept_key(uid: &str) -> String {
    format!("upload{}", uid.replace('-', ""))
}

/// Takes uploads. Clones share it.
#[derive(Clone)]
pub struct Uploads(Arc<Shared>);

struct Shared {
    url: String,
    key: Key,
    inside: OnceLock<Inside>,
    alone: Alone,
}

/// What is known once the controllers run.
pub(crate) struct Inside {
    pub(crate) clients: Clients,
    /// The node of this process; empty if no machines run here.
    pub(crate) node: String,
    pub(crate) place: Arc<Place>,
    pub(crate) images: Arc<Images>,
    pub(crate) queue: Queue<ObjectKey>,
}

/// Why an upload is not taken: a status, and what to say.
struct Refusal(StatusCode, String);

impl Uploads {
    /// Uploads that are sent to this address; nothing if there is no randomness for a key.
    pub fn new(url: &str) -> Option<Self> {
        Some(Self(Arc::new(Shared {
            url: url.to_owned(),
            key: Key::new()?,
            inside: OnceLock::new(),
            alone: Alone::default(),
        })))
    }

    /// Where uploads are sent.
    pub(crate) fn url(&self) -> &str {
        &self.0.url
    }

    /// From now on there are volumes to fill.
    pub(crate) fn run_with(&self, inside: Inside) {
        // There is one set of controllers in a process.
        let _ = self.0.inside.set(inside);
    }

    /// Whether a request is one for uploads.
    pub fn serves(path: &str) -> bool {
        PATHS.contains(&path)
    }

    /// Takes an upload.
    pub async fn serve(&self, request: Request<Body>) -> Response<Body> {
        match self.take(request).await {
            Ok(()) => plain(StatusCode::OK, String::new()),
            Err(Refusal(status, why)) => plain(status, why),
        }
    }

    async fn take(&self, request: Request<Body>) -> Result<(), Refusal> {
        if !Self::serves(request.uri().path()) {
            return Err(Refusal(StatusCode::NOT_FOUND, "there is nothing here".to_owned()));
        }
        let bearer = request
            .headers()
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let Some(bearer) = bearer else {
            return Err(Refusal(
                StatusCode::BAD_REQUEST,
                "the header Authorization has to be `Bearer TOKEN`".to_owned(),
            ));
        };
        let token = self.0.key.open(bearer.trim(), jiff::Timestamp::now());
        let token = token.map_err(|why| Refusal(StatusCode::UNAUTHORIZED, why.to_owned()))?;
        match *request.method() {
            // Whether the file could be sent.
            Method::HEAD => Ok(()),
            Method::POST | Method::PUT => self.receive(&token, request.into_body()).await,
            _ => Err(Refusal(
                StatusCode::METHOD_NOT_ALLOWED,
                "files are sent with POST".to_owned(),
            )),
        }
    }

    /// The claim that a token is for, if it waits for a file.
    async fn claim(&self, inside: &Inside, token: &Token) -> Result<Claim, Refusal> {
        let unavailable = |why: String| Refusal(StatusCode::SERVICE_UNAVAILABLE, why);
        let name = &token.name;
        let requests = Requests::new(inside.clients.of(&token.workspace()?));
        let path = format!(
            "/api/v1/namespaces/{}/persistentvolumeclaims/{name}",
            token.namespace
        );
        let found = requests
            .get(&path)
            .await
            .map_err(|failure| unavailable(failure.sentence()))?;
        let claim: Option<Claim> = found
            .map(|found| view::read("persistentvolumeclaim", &found))
            .transpose()
            .map_err(|failure| unavailable(failure.sentence()))?;
        let Some(claim) =
            claim.filter(|claim| claim.metadata.uid == token.uid && !claim.metadata.is_deleting())
        else {
            return Err(unavailable(format!(
                "rejecting Upload Request for PVC {name} that doesn't exist"
            )));
        };
        if claim.metadata.annotation(names::POD_PHASE) == Some("Succeeded") || claim.status.phase == "Bound" {
            return Err(Refusal(
                StatusCode::CONFLICT,
                format!("rejecting Upload Request for PVC {name} that already finished uploading"),
            ));
        }
        let is_ready = claim.metadata.annotation(names::POD_READY) == Some("true");
        let has_node = claim.metadata.annotation(names::SELECTED_NODE).is_some();
        match is_ready && has_node {
            true => Ok(claim),
            false => Err(unavailable(format!("PVC {name} does not wait for an upload"))),
        }
    }

    /// Answers a request for a token.
    async fn token(&self, request: Request<Body>) -> Result<Value, Refusal> {
        let bad = |why: String| Refusal(StatusCode::BAD_REQUEST, why);
        let info = request
            .extensions()
            .get::<RequestInfo>()
            .cloned()
            .unwrap_or_default();
        let namespace = info.namespace.unwrap_or_default();
        let mut arriving = request.into_body();
        let mut body = Vec::new();
        while let Some(frame) = arriving.frame().await {
            let frame = frame.map_err(|error| bad(error.to_string()))?;
            body.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
            if body.len() > MAX_REQUEST {
                return Err(bad(format!("the request is longer than {MAX_REQUEST} bytes")));
            }
        }
        let mut asked: Value = serde_json::from_slice(&body).map_err(|error| bad(error.to_string()))?;
        let name = asked["spec"]["pvcName"].as_str().unwrap_or_default().to_owned();
        if name.is_empty() {
            return Err(bad("spec.pvcName is missing".to_owned()));
        }
        let Some(inside) = self.0.inside.get() else {
            return Err(Refusal(
                StatusCode::SERVICE_UNAVAILABLE,
                "nothing is uploaded here: this server has no volumes".to_owned(),
            ));
        };
        let workspace = WorkspaceId::parse(&info.cluster).map_err(|error| bad(error.to_string()))?;
        let requests = Requests::new(inside.clients.of(&workspace));
        let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}");
        let failed = |why: String| Refusal(StatusCode::INTERNAL_SERVER_ERROR, why);
        let found = requests
            .get(&path)
            .await
            .map_err(|failure| failed(failure.sentence()))?;
        let uid = found.as_ref().and_then(|found| found["metadata"]["uid"].as_str());
        let Some(uid) = uid else {
            return Err(Refusal(
                StatusCode::NOT_FOUND,
                format!("persistentvolumeclaims {name:?} not found"),
            ));
        };
        let token = Token::new(&workspace, &namespace, &name, uid, jiff::Timestamp::now());
        asked["apiVersion"] = json!("upload.cdi.kubevirt.io/v1beta1");
        asked["kind"] = json!("UploadTokenRequest");
        asked["metadata"]["namespace"] = json!(namespace);
        asked["status"] = json!({"token": self.0.key.seal(&token)});
        Ok(asked)
    }
}

impl std::fmt::Debug for Uploads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uploads")
            .field("url", &self.0.url)
            .finish_non_exhaustive()
    }
}

impl ApiService for Uploads {
    fn group_version(&self) -> (&str, &str) {
        ("upload.cdi.kubevirt.io", "v1beta1")
    }

    fn resources(&self) -> Vec<Resource> {
        let mut requests = Resource::new("uploadtokenrequests", "UploadTokenRequest").verbs(&["create"]);
        requests.short_names = vec!["utr".to_owned(), "utrs".to_owned()];
        vec![requests]
    }

    fn handler(&self) -> Handler {
        let uploads = self.clone();
        Handler::new(service_fn(move |request: Request<Body>| {
            let uploads = uploads.clone();
            async move {
                let answer = match uploads.token(request).await {
                    Ok(object) => answer(StatusCode::OK, &object),
                    Err(Refusal(status, message)) => answer(status, &failure(status, &message)),
                };
                Ok::<_, BoxError>(answer)
            }
        }))
    }
}

fn failure(status: StatusCode, message: &str) -> Value {
    let reason = match status {
        StatusCode::BAD_REQUEST => "BadRequest",
        StatusCode::NOT_FOUND => "NotFound",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        _ => "InternalError",
    };
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": status.as_u16(),
    })
}

fn answer(status: StatusCode, object: &Value) -> Response<Body> {
    let mut response = Response::new(full(object.to_string()));
    *response.status_mut() = status;
    let kind = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn plain(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(full(text));
    *response.status_mut() = status;
    let kind = http::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
