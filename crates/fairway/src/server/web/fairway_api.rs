//! `/api/fairway` of the portal: each address is asked of the Kubernetes API with the token that stands in the request.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairway_gitops_githost::Body;
use fairway_gitops_githost::transport::full;
use fairway_kernel_apiserver::authn::Peer;
use fairway_kernel_apiserver::key::ROOT_CLUSTER;
use fairway_kernel_apiserver::{Kernel, service};
use fairway_portal_web_server::ClientAddress;
use fairway_portal_web_server::endpoints::{self, Call, Refusal, activity};
use fairway_why_gather::{Failed, Places, Question};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::Client;
use serde_json::{Value, json};
use tower::service_fn;

use super::portal::{Portal, refuse};

const PREFIX: &str = "/api/fairway";
/// The most bytes of a question.
const MAX_QUESTION: usize = 64 * 1024;
/// How long one may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);
/// How much of the end of the audit log is looked at.
const TAIL: u64 = 4 << 20;
/// Rights that are asked about for one list of deeds; what is of yet other objects is left out.
const MAX_RIGHTS: usize = 64;

struct Api {
    kernel: Arc<Kernel>,
    audit_log: Option<PathBuf>,
}

/// Whoever asks.
struct Asker {
    token: Option<HeaderValue>,
    peer: Peer,
}

/// Has the portal answer it.
pub(super) fn join(portal: &Portal, kernel: &Arc<Kernel>, audit_log: Option<PathBuf>) {
    let api = Arc::new(Api {
        kernel: Arc::clone(kernel),
        audit_log,
    });
    portal.join(
        PREFIX,
        Arc::new(move |request| {
            let api = Arc::clone(&api);
            Box::pin(async move { api.serve(request).await })
        }),
    );
}

impl Api {
    async fn serve(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let rest = parts.uri.path().strip_prefix(PREFIX).unwrap_or_default();
        let what = rest.trim_start_matches('/');
        let question = match endpoints::takes_body(what) {
            false => None,
            true => match question(body).await {
                Some(question) => Some(question),
                None => {
                    return refuse(
                        StatusCode::BAD_REQUEST,
                        "InputError",
                        "the body is not JSON, or is larger than 64 KiB",
                    );
                }
            },
        };
        let asker = Asker {
            token: parts.headers.get(AUTHORIZATION).cloned(),
            peer: Peer {
                address: parts.extensions.get::<ClientAddress>().map(|it| it.0),
                ..Peer::default()
            },
        };
        match endpoints::call(
            &parts.method,
            what,
            parts.uri.query().unwrap_or_default(),
            question,
        ) {
            Ok(Call::One { method, path, body }) => self.ask(&asker, method, &path, body.as_ref()).await,
            Ok(Call::Activity { workspace, limit }) => self.activity(&asker, &workspace, limit).await,
            Ok(Call::Why {
                workspace,
                object,
                namespace,
            }) => self.why(&asker, &workspace, object, namespace).await,
            Err(Refusal::Wrong(why)) => refuse(StatusCode::BAD_REQUEST, "InputError", &why),
            Err(Refusal::Method(allowed)) => {
                let why = format!("only {allowed} is answered here");
                refuse(StatusCode::METHOD_NOT_ALLOWED, "NotAllowedError", &why)
            }
            Err(Refusal::Unknown) => refuse(
                StatusCode::NOT_FOUND,
                "NotFoundError",
                "here are activity, applications/plan, gateway/explain, usage and why",
            ),
        }
    }

    async fn ask(&self, asker: &Asker, method: Method, path: &str, body: Option<&Value>) -> Response<Body> {
        let content = body.map(ToString::to_string).unwrap_or_default();
        let mut request = Request::new(full(Bytes::from(content)));
        *request.method_mut() = method;
        let Ok(uri) = path.parse() else {
            return refuse(StatusCode::BAD_REQUEST, "InputError", "the path is none");
        };
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(token) = &asker.token {
            headers.insert(AUTHORIZATION, token.clone());
        }
        service::serve(&self.kernel, request, &asker.peer).await
    }

    async fn activity(&self, asker: &Asker, workspace: &str, limit: usize) -> Response<Body> {
        // Whether he may be there at all is the first thing to find out, and whoever he is.
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let path = format!("/clusters/{workspace}/apis/authentication.k8s.io/v1/selfsubjectreviews");
        let answer = self.ask(asker, Method::POST, &path, Some(&review)).await;
        if !answer.status().is_success() {
            return answer;
        }
        let Some(log) = self.audit_log.clone() else {
            let why = "no audit log is kept here (--no-audit), so nobody knows who did what";
            return refuse(StatusCode::NOT_FOUND, "NotFoundError", why);
        };
        let Some(id) = self.kernel.workspaces.resolve(workspace) else {
            return refuse(
                StatusCode::NOT_FOUND,
                "NotFoundError",
                "there is no such workspace",
            );
        };
        let kernel = Arc::clone(&self.kernel);
        let read = tokio::task::spawn_blocking(move || {
            let log = tail(&log)?;
            let is_here =
                |named: &str| named == &*id || kernel.workspaces.resolve(named).is_some_and(|it| it == id);
            Ok::<_, std::io::Error>(activity::deeds(&log, is_here))
        });
        let Ok(Ok(mut deeds)) = read.await else {
            tracing::warn!("the audit log could not be read");
            let why = "the audit log could not be read; the server's log says why";
            return refuse(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", why);
        };
        let mut visible = BTreeSet::new();
        for object in activity::objects(&deeds, MAX_RIGHTS) {
            if self.may_see(asker, workspace, &object).await {
                visible.insert(object);
            }
        }
        deeds.retain(|deed| visible.contains(&deed.object()));
        deeds.truncate(limit);
        answered(&json!({"source": "audit log", "items": deeds}))
    }

    /// What `fairway why` says.
    async fn why(
        &self,
        asker: &Asker,
        workspace: &str,
        object: String,
        namespace: Option<String>,
    ) -> Response<Body> {
        let places = Places {
            here: self.client(asker, workspace),
            root: (workspace != ROOT_CLUSTER).then(|| self.client(asker, ROOT_CLUSTER)),
        };
        let question = Question {
            object,
            anywhere: namespace.is_none(),
            namespace: namespace.unwrap_or_else(|| "default".to_owned()),
        };
        match tokio::time::timeout(PATIENCE, fairway_why_gather::why(&places, &question)).await {
            Ok(Ok(report)) => answered(&fairway_why_chain::described(&report)),
            Ok(Err(Failed::Input(why))) => refuse(StatusCode::BAD_REQUEST, "InputError", &why),
            Ok(Err(Failed::NotFound(why))) => refuse(StatusCode::NOT_FOUND, "NotFoundError", &why),
            Ok(Err(Failed::Unreachable(why))) => {
                refuse(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailableError", &why)
            }
            Err(_) => refuse(
                StatusCode::GATEWAY_TIMEOUT,
                "ServiceUnavailableError",
                "looking took too long; try again",
            ),
        }
    }

    /// A client of a workspace that comes with the token of whoever asks.
    fn client(&self, asker: &Asker, workspace: &str) -> Client {
        let (kernel, token) = (Arc::clone(&self.kernel), asker.token.clone());
        let peer = Arc::new(asker.peer.clone());
        let bearer = service_fn(move |mut request: Request<kube::client::Body>| {
            let (kernel, peer) = (Arc::clone(&kernel), Arc::clone(&peer));
            if let Some(token) = &token {
                request.headers_mut().insert(AUTHORIZATION, token.clone());
            }
            let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
            async move { Ok::<_, Infallible>(service::serve(&kernel, request, &peer).await) }
        });
        super::client_within(bearer, workspace)
    }

    /// Whether somebody may read the objects that a deed was done to.
    async fn may_see(&self, asker: &Asker, workspace: &str, object: &activity::Object) -> bool {
        let (group, resource, namespace) = object;
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {
                "verb": "get", "group": group, "resource": resource, "namespace": namespace,
            }},
        });
        let path = format!("/clusters/{workspace}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
        let answer = self.ask(asker, Method::POST, &path, Some(&review)).await;
        let Ok(body) = answer.into_body().collect().await else {
            return false;
        };
        let answer: Value = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
        answer["status"]["allowed"] == true
    }
}

fn answered(content: &Value) -> Response<Body> {
    let mut answer = Response::new(full(Bytes::from(content.to_string())));
    let kind = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

async fn question(body: Body) -> Option<Value> {
    let bytes = tokio::time::timeout(PATIENCE, whole(body)).await.ok()??;
    serde_json::from_slice(&bytes).ok()
}

/// The whole of a body, if it is not too much.
async fn whole(mut body: Body) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.ok()?.into_data() {
            if bytes.len() + data.len() > MAX_QUESTION {
                return None;
            }
            bytes.extend_from_slice(&data);
        }
    }
    Some(bytes)
}

/// The end of a file.
fn tail(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut content = Vec::new();
    file.take(TAIL).read_to_end(&mut content)?;
    Ok(content)
}
