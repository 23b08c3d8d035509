//! Backstage's catalog API. Paths, parameters, answers and errors are upstream's, so that its clients work unmodified.
//!
//! A request is read whole, its sender reviewed, his right asked for, and the index asked. Which workspace is meant: the header
//! `X-Fairway-Workspace` or `?workspace=` by path or id, else the one that the token is of, else the root.

mod answer;
mod asked;
mod entities;
mod locations;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use fairway_api::identity::home_of_token;
use fairway_apiservice::User;
use fairway_controller::WorkspaceId;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::BodyExt as _;
use k8s_openapi::api::authentication::v1::UserInfo;
use kube::Client;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use tracing::warn;

use crate::access::{self, Wish};
use crate::{Body, Catalog, WORKSPACE_HEADER, live};
pub(crate) use answer::{Answer, Refusal};
pub(crate) use entities::{reference, visible};

/// The largest body of a request: a batch of references.
const MAX_BODY: usize = 4 << 20;
/// How long a body may take.
const BODY_TIME: Duration = Duration::from_secs(30);
/// How long a request waits for a server that has just started.
const UNTIL_SYNCED: Duration = Duration::from_secs(10);
const PREFIX: &str = "/api/catalog";

/// A request, read.
pub(crate) struct Call {
    pub catalog: Arc<Catalog>,
    pub method: Method,
    /// The parts of the path below `/api/catalog`, decoded.
    pub path: Vec<String>,
    pub query: Vec<(String, String)>,
    /// Path and query as they came.
    pub url: String,
    pub body: Value,
    pub workspace: WorkspaceId,
    pub client: Client,
    pub user: UserInfo,
}

impl Call {
    /// All values of a parameter.
    pub(crate) fn all<'c>(&'c self, name: &str) -> Vec<&'c str> {
        // Some clients write `fields[]=a`, as Backstage's servers accept it.
        let named = self
            .query
            .iter()
            .filter(|(key, _)| key.strip_suffix("[]").unwrap_or(key) == name);
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// A parameter; the last one, if it is there more than once.
    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        self.all(name).pop()
    }

    /// A parameter that is a number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<usize>, Refusal> {
        let text = self.one(name);
        text.map(|text| {
            text.parse()
                .map_err(|_| Refusal::input(format!("Invalid {name}, not an integer")))
        })
        .transpose()
    }

    /// Refuses who may not do this.
    pub(crate) async fn allowed(
        &self,
        verb: &'static str,
        resource: &'static str,
        name: Option<&str>,
    ) -> Result<(), Refusal> {
        let wish = Wish {
            verb,
            group: "fairway.dev",
            resource,
            namespace: None,
            name,
        };
        match self.may(wish).await? {
            true => Ok(()),
            false => Err(Refusal::not_allowed(format!(
                "Unauthorized: {} may not {verb} {resource}.fairway.dev in this workspace",
                self.user.username.as_deref().unwrap_or("system:anonymous")
            ))),
        }
    }

    /// Whether the caller may do this.
    pub(crate) async fn may(&self, wish: Wish<'_>) -> Result<bool, Refusal> {
        let asked = access::may(self.client.clone(), &self.user, wish).await;
        asked.map_err(|error| broken("asking for rights", &error))
    }
}

/// Answers a request.
pub(crate) async fn serve(catalog: &Arc<Catalog>, request: Request<Body>) -> Response<Body> {
    let method = request.method().clone();
    let url = request
        .uri()
        .path_and_query()
        .map_or("/", |url| url.as_str())
        .to_owned();
    let outcome = match read(catalog, request).await {
        Ok(call) => route(&call).await,
        Err(refusal) => Err(refusal),
    };
    match outcome {
        Ok(answer) => answer.response(),
        Err(refusal) => refusal.response(&method, &url),
    }
}

async fn read(catalog: &Arc<Catalog>, request: Request<Body>) -> Result<Call, Refusal> {
    let (parts, body) = request.into_parts();
    let url = parts
        .uri
        .path_and_query()
        .map_or("/", |url| url.as_str())
        .to_owned();
    let rest = parts.uri.path().strip_prefix(PREFIX).unwrap_or_default();
    let decoded: Option<Vec<String>> = rest
        .split('/')
        .filter(|part| !part.is_empty())
        .map(|part| percent_decode_str(part).decode_utf8().ok().map(Cow::into_owned))
        .collect();
    let path = decoded.ok_or_else(|| Refusal::input("the path is not UTF-8"))?;
    let query: Vec<(String, String)> =
        form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes())
            .into_owned()
            .collect();
    // Whoever asks from within the process is known already; no request from outside has this.
    let (workspace, client, user) = match parts.extensions.get::<User>() {
        Some(user) => {
            let workspace = workspace_of(catalog, &parts.headers, &[], "")?;
            let client = catalog.client_at(workspace.as_str());
            (workspace, client, access::known(user))
        }
        None => stranger(catalog, &parts.headers, &query).await?,
    };
    let body = match parts.method {
        Method::POST | Method::PUT => body_of(body).await?,
        _ => Value::Null,
    };
    if !catalog.known.synced(UNTIL_SYNCED).await {
        return Err(Refusal::unavailable(
            "the catalog is still being read; try again in a moment",
        ));
    }
    Ok(Call {
        catalog: Arc::clone(catalog),
        method: parts.method,
        path,
        query,
        url,
        body,
        workspace,
        client,
        user,
    })
}

/// Who shows a token, and where it is good.
async fn stranger(
    catalog: &Catalog,
    headers: &HeaderMap,
    query: &[(String, String)],
) -> Result<(WorkspaceId, Client, UserInfo), Refusal> {
    let token = access::token(headers).ok_or_else(|| Refusal::unauthenticated("Missing credentials"))?;
    let workspace = workspace_of(catalog, headers, query, &token)?;
    let client = catalog.client_at(workspace.as_str());
    match access::review(client.clone(), &token).await {
        Ok(Some(user)) => Ok((workspace, client, user)),
        Ok(None) => Err(Refusal::unauthenticated("Invalid token")),
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => {
            Err(Refusal::unauthenticated("Invalid token"))
        }
        Err(error) => Err(broken("reviewing a token", &error)),
    }
}

fn workspace_of(
    catalog: &Catalog,
    headers: &HeaderMap,
    query: &[(String, String)],
    token: &str,
) -> Result<WorkspaceId, Refusal> {
    let header = headers
        .get(WORKSPACE_HEADER)
        .and_then(|value| value.to_str().ok());
    let parameter = query
        .iter()
        .find(|(key, _)| key == "workspace")
        .map(|(_, value)| value.as_str());
    let named = header
        .or(parameter)
        .map(str::to_owned)
        .or_else(|| home_of_token(token))
        .unwrap_or_else(|| "root".to_owned());
    // Whether it exists is told only to who is known there; a wrong token learns the same.
    (catalog.options.resolve)(&named).ok_or_else(|| Refusal::unauthenticated("Invalid token"))
}

async fn body_of(body: Body) -> Result<Value, Refusal> {
    let collected = tokio::time::timeout(BODY_TIME, whole(body)).await;
    let bytes = collected.map_err(|_| Refusal::input("the body takes too long"))??;
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&bytes).map_err(|error| Refusal::input(format!("Malformed request: {error}")))
}

async fn whole(mut body: Body) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Refusal::input("the body broke off"))?;
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data);
        }
        if bytes.len() > MAX_BODY {
            return Err(Refusal::input(format!("the body has more than {MAX_BODY} bytes")));
        }
    }
    Ok(bytes)
}

pub(crate) fn broken(attempt: &str, error: &dyn std::fmt::Display) -> Refusal {
    warn!(attempt, %error, "the catalog cannot answer");
    Refusal::broken(format!("{attempt} failed: {error}"))
}

async fn route(call: &Call) -> Result<Answer, Refusal> {
    let parts: Vec<&str> = call.path.iter().map(String::as_str).collect();
    let (get, post, put, delete) = (
        call.method == Method::GET,
        call.method == Method::POST,
        call.method == Method::PUT,
        call.method == Method::DELETE,
    );
    match parts.as_slice() {
        ["entities"] if get => entities::list(call).await,
        ["entities", "by-query"] if get => entities::by_query(call).await,
        ["entities", "by-query"] if post => entities::by_predicate(call).await,
        ["entities", "by-refs"] if post => entities::by_refs(call).await,
        ["entities", "by-uid", uid] if get => entities::by_uid(call, uid).await,
        ["entities", "by-uid", uid] if delete => entities::remove(call, uid).await,
        ["entities", "by-name", kind, namespace, name] if get => {
            entities::by_name(call, kind, namespace, name).await
        }
        ["entities", "by-name", kind, namespace, name, "ancestry"] if get => {
            entities::ancestry(call, kind, namespace, name).await
        }
        ["entities", "by-name", kind, namespace, name, "live"] if get => {
            live::of_entity(call, kind, namespace, name).await
        }
        ["entity-facets"] if get => entities::facets(call).await,
        ["entity-facets"] if post => entities::facets_by_predicate(call).await,
        ["locations"] if get => locations::list(call).await,
        ["locations"] if post => locations::register(call).await,
        ["locations", "by-entity", kind, namespace, name] if get => {
            locations::by_entity(call, kind, namespace, name).await
        }
        ["locations", "by-query"] if post => locations::by_query(call).await,
        ["locations", id] if put => locations::update(call, id).await,
        ["locations", id] if get => locations::by_id(call, id).await,
        ["locations", id] if delete => locations::unregister(call, id).await,
        ["refresh"] if post => locations::refresh(call).await,
        ["validate-entity"] if post => entities::validate(call).await,
        ["analyze-location"] if post => locations::analyze(call).await,
        _ => Err(Refusal::not_found(format!(
            "{} {} is not served",
            call.method, call.url
        ))),
    }
}
