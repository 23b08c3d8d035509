//! What is asked of the engine through the API, with the words of Argo CD's own API: subresources of Applications and projects.
//!
//! | subresource | verb | is | needs, where there are policies |
//! |---|---|---|---|
//! | `applications/view` | get | the Application | `applications, get` |
//! | `applications/tree` | get | its objects and what they own | `applications, get` |
//! | `applications/plan` | create | what a sync would do | `applications, get` |
//! | `applications/sync` | create | a sync | `applications, sync` |
//! | `applications/rollback` | create | back to a deployment | `applications, sync` |
//! | `applications/terminate` | create | the end of an operation | `applications, sync` |
//! | `appprojects/token` | create | a token of a role, or its end | `projects, update`, or a group of the role |
//!
//! The engine does it in its own name, so that somebody can be let sync an Application without being let write it.

use std::sync::Arc;

use fairway_api::argoproj::{API_VERSION, APPLICATION, CONTROL_PLANES};
use fairway_apiservice::{ApiService, Body, BoxError, Handler, RequestInfo, Resource, User, full};
use fairway_controller::requests::version;
use fairway_controller::{Failure, ObjectKey, Requests, WorkspaceId};
use fairway_gitops_sync::rbac::Request;
use fairway_gitops_sync::rbac::roles;
use fairway_gitops_view::application::project;
use fairway_gitops_view::operation::{self, SyncRequest};
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower::service_fn;

use crate::application::path_of;
use crate::engine::Engine;
use crate::permissions::{NotPermitted, find_project};
use crate::plans::{self, Plans, Pulls};
use crate::project_tokens::{self, NoToken};
use crate::settings::control_planes_of;

/// How often a write is tried again because somebody else was quicker.
const ATTEMPTS: usize = 10;

/// Serves what is asked of the engine.
pub struct Service {
    /// The way to the engine.
    pub plans: Plans,
    /// Pull requests of hosted repositories.
    pub pulls: Pulls,
}

/// What a sync is asked for with: Argo CD's `ApplicationSyncRequest`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Sync {
    revision: String,
    revisions: Vec<String>,
    source_positions: Vec<usize>,
    dry_run: bool,
    prune: bool,
    strategy: Value,
    resources: Vec<Value>,
    manifests: Vec<Value>,
    infos: Vec<Info>,
    retry_strategy: Option<Value>,
    sync_options: SyncOptions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SyncOptions {
    items: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Info {
    name: String,
    value: String,
}

/// What a rollback is asked for with.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Rollback {
    id: Option<i64>,
    prune: bool,
}

/// What a token is asked for with; with `revoke` it ends.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Token {
    role: String,
    id: String,
    expires_in: i64,
    revoke: String,
}

impl ApiService for Service {
    fn group_version(&self) -> (&str, &str) {
        (APPLICATION.group, APPLICATION.version)
    }

    fn resources(&self) -> Vec<Resource> {
        vec![
            Resource::new("applications/view", "Application").verbs(&["get"]),
            Resource::new("applications/tree", "ApplicationTree").verbs(&["get"]),
            Resource::new("applications/plan", "ApplicationPlan").verbs(&["create"]),
            Resource::new("applications/sync", "ApplicationSyncRequest").verbs(&["create"]),
            Resource::new("applications/rollback", "ApplicationRollbackRequest").verbs(&["create"]),
            Resource::new("applications/terminate", "OperationTerminateRequest").verbs(&["create"]),
            Resource::new("appprojects/token", "ProjectToken").verbs(&["create"]),
        ]
    }

    fn handler(&self) -> Handler {
        let (plans, pulls) = (self.plans.clone(), Arc::clone(&self.pulls));
        Handler::new(service_fn(move |request: http::Request<Body>| {
            let (plans, pulls) = (plans.clone(), Arc::clone(&pulls));
            async move { answer(&plans, &pulls, request).await }
        }))
    }
}

async fn answer(
    plans: &Plans,
    pulls: &Pulls,
    request: http::Request<Body>,
) -> Result<Response<Body>, BoxError> {
    let extension = request.extensions();
    let info = extension.get::<RequestInfo>().cloned().unwrap_or_default();
    let user = extension.get::<User>().cloned().unwrap_or_default();
    let body = request.into_body().collect().await?.to_bytes();
    let key = match WorkspaceId::parse(&info.cluster) {
        Ok(workspace) => ObjectKey::new(&workspace, &info.namespace.unwrap_or_default(), &info.name),
        Err(error) => return Ok(refused(StatusCode::BAD_REQUEST, "BadRequest", &error.to_string())),
    };
    let Some(engine) = plans.engine() else {
        let why = "the engine does not run yet; try again in a moment";
        return Ok(refused(
            StatusCode::SERVICE_UNAVAILABLE,
            "ServiceUnavailable",
            why,
        ));
    };
    if info.resource == "appprojects" {
        return Ok(engine.project_token(&key, &user, &body).await);
    }
    let action = match info.subresource.as_str() {
        "view" | "tree" | "plan" => "get",
        _ => "sync",
    };
    let application = match engine.permitted(&key, &user, action).await {
        Ok(application) => application,
        Err(answer) => return Ok(answer),
    };
    Ok(match info.subresource.as_str() {
        "view" => respond(StatusCode::OK, &application),
        "tree" => match engine.tree(&key, application).await {
            Ok(Ok(tree)) => respond(StatusCode::OK, &tree),
            Ok(Err(why)) => refused(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", &why),
            Err(failure) => failed_to(&failure),
        },
        "plan" => plans::answer(&engine, pulls, &key, &body).await,
        "sync" => engine.begin_sync(&key, &user, &body).await,
        "rollback" => match read_body::<Rollback>(&body) {
            Ok(asked) => {
                let make = |live: &Value| operation::rollback(live, asked.id, asked.prune, &user.name);
                engine.begin(&key, make).await
            }
            Err(error) => malformed(&error),
        },
        _ => engine.change_asked(&key, operation::termination).await,
    })
}

impl Engine {
    /// The Application, if somebody may do this with it; else the answer.
    async fn permitted(&self, key: &ObjectKey, user: &User, action: &str) -> Result<Value, Response<Body>> {
        let requests = Requests::new(self.clients.of(&key.workspace));
        let found = requests
            .get(&path_of(key))
            .await
            .map_err(|failure| failed_to(&failure))?;
        let planes = control_planes_of(&key.namespace);
        // An Application that is not there is in no project: who may see nothing does not learn that, either.
        let project = found.as_ref().map_or("", |found| project(found));
        let object = match CONTROL_PLANES.contains(&key.namespace.as_str()) {
            true => format!("{project}/{}", key.name),
            false => format!("{project}/{}/{}", key.namespace, key.name),
        };
        let wanted = Request {
            resource: "applications",
            action,
            object: &object,
        };
        self.permit(&key.workspace, &planes, user, wanted)
            .await
            .map_err(not_permitted)?;
        found.ok_or_else(|| not_found("applications", &key.name))
    }

    async fn begin_sync(&self, key: &ObjectKey, user: &User, body: &[u8]) -> Response<Body> {
        let asked: Sync = match read_body(body) {
            Ok(asked) => asked,
            Err(error) => return malformed(&error),
        };
        let request = match sync_request(asked, &user.name) {
            Ok(request) => request,
            Err(why) => return refused(StatusCode::BAD_REQUEST, "BadRequest", &why),
        };
        self.begin(key, |live| operation::sync(live, &request)).await
    }

    async fn begin(&self, key: &ObjectKey, make: impl Fn(&Value) -> Result<Value, String>) -> Response<Body> {
        let make = |live: &Value| {
            let operation = make(live)?;
            Ok(json!({"operation": operation, "status": {"operationState": null}}))
        };
        self.change_asked(key, make).await
    }

    /// Changes an Application because somebody asked, again if somebody else was quicker.
    async fn change_asked(
        &self,
        key: &ObjectKey,
        make: impl Fn(&Value) -> Result<Value, String>,
    ) -> Response<Body> {
        let requests = Requests::new(self.clients.of(&key.workspace));
        let path = path_of(key);
        for _ in 0..ATTEMPTS {
            let live = match requests.get(&path).await {
                Ok(Some(live)) => live,
                Ok(None) => return not_found("applications", &key.name),
                Err(failure) => return failed_to(&failure),
            };
            let mut patch = match make(&live) {
                Ok(patch) => patch,
                Err(why) => return refused(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", &why),
            };
            patch["metadata"] = json!({"resourceVersion": version(&live)});
            match requests.merge(&path, &patch).await {
                Ok(Some(changed)) => return respond(StatusCode::CREATED, &changed),
                Ok(None) => return not_found("applications", &key.name),
                Err(failure) if failure.is_conflict() => {}
                Err(failure) => return failed_to(&failure),
            }
        }
        let why = format!("the application {} changes too often; try again", key.name);
        refused(StatusCode::CONFLICT, "Conflict", &why)
    }

    /// Makes or ends a token of a project's role.
    async fn project_token(&self, key: &ObjectKey, user: &User, body: &[u8]) -> Response<Body> {
        let asked: Token = match read_body(body) {
            Ok(asked) => asked,
            Err(error) => return malformed(&error),
        };
        if !CONTROL_PLANES.contains(&key.namespace.as_str()) {
            let why = format!(
                "projects count in the namespaces {}",
                CONTROL_PLANES.join(" and ")
            );
            return refused(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", &why);
        }
        let planes = [key.namespace.as_str()];
        let requests = Requests::new(self.clients.of(&key.workspace));
        let wanted = Request {
            resource: "projects",
            action: "update",
            object: &key.name,
        };
        if let Err(refusal) = self.permit(&key.workspace, &planes, user, wanted).await {
            let project = match find_project(&requests, &planes, &key.name).await {
                Ok(project) => project,
                Err(failure) => return failed_to(&failure),
            };
            let all = project
                .as_ref()
                .and_then(|it| roles::read(it).ok())
                .unwrap_or_default();
            let is_member = all
                .iter()
                .filter(|role| role.name == asked.role)
                .any(|role| role.groups.iter().any(|group| user.groups.contains(group)));
            if !is_member {
                return not_permitted(refusal);
            }
        }
        let made = match asked.revoke.as_str() {
            "" => project_tokens::issue(&requests, key, &asked.role, &asked.id, asked.expires_in)
                .await
                .map(|token| json!({"token": token})),
            id => project_tokens::revoke(&requests, key, &asked.role, id)
                .await
                .map(|()| json!({})),
        };
        match made {
            Ok(mut answer) => {
                answer["apiVersion"] = API_VERSION.into();
                answer["kind"] = "ProjectToken".into();
                respond(StatusCode::CREATED, &answer)
            }
            Err(NoToken::NotFound(why)) => refused(StatusCode::NOT_FOUND, "NotFound", &why),
            Err(NoToken::Invalid(why)) => refused(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", &why),
            Err(NoToken::Failed(failure)) => failed_to(&failure),
        }
    }
}

fn sync_request(asked: Sync, user: &str) -> Result<SyncRequest, String> {
    if !asked.manifests.is_empty() {
        return Err("manifests in the request are not synced; push them, or use files in a plan".to_owned());
    }
    if asked.revisions.len() != asked.source_positions.len() {
        return Err("revisions needs as many sourcePositions".to_owned());
    }
    let strategies = asked.strategy.as_object();
    let chosen = strategies.and_then(|all| all.iter().find(|(_, detail)| !detail.is_null()));
    Ok(SyncRequest {
        user: user.to_owned(),
        revision: asked.revision,
        revisions: asked.source_positions.into_iter().zip(asked.revisions).collect(),
        prune: asked.prune,
        dry_run: asked.dry_run,
        strategy: chosen.map(|(name, _)| name.clone()).unwrap_or_default(),
        force: chosen.is_some_and(|(_, detail)| detail["force"] == true),
        options: asked.sync_options.items,
        resources: asked.resources,
        retry: asked.retry_strategy,
        info: asked
            .infos
            .into_iter()
            .map(|info| (info.name, info.value))
            .collect(),
    })
}

/// A body; none is as good as an empty one.
pub(crate) fn read_body<T: DeserializeOwned>(body: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(if body.is_empty() { b"{}" } else { body })
}

fn malformed(error: &serde_json::Error) -> Response<Body> {
    let why = format!("the request cannot be read: {error}");
    refused(StatusCode::BAD_REQUEST, "BadRequest", &why)
}

fn not_permitted(refusal: NotPermitted) -> Response<Body> {
    match refusal {
        NotPermitted::Denied(why) => refused(StatusCode::FORBIDDEN, "Forbidden", &why),
        NotPermitted::Failed(failure) => failed_to(&failure),
    }
}

pub(crate) fn not_found(resource: &str, name: &str) -> Response<Body> {
    let why = format!("{resource}.argoproj.io {name:?} not found");
    refused(StatusCode::NOT_FOUND, "NotFound", &why)
}

pub(crate) fn failed_to(failure: &Failure) -> Response<Body> {
    refused(
        StatusCode::INTERNAL_SERVER_ERROR,
        "InternalError",
        &failure.sentence(),
    )
}

pub(crate) fn respond(status: StatusCode, value: &Value) -> Response<Body> {
    let mut response = Response::new(full(value.to_string()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

pub(crate) fn refused(status: StatusCode, reason: &str, why: &str) -> Response<Body> {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": why, "reason": reason,
        "code": status.as_u16(),
    });
    respond(status, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_in_argo_cd_s_words() {
        let asked = json!({
            "prune": true, "dryRun": true, "strategy": {"apply": {"force": true}}, "syncOptions": {"items": ["Replace=true"]},
            "revisions": ["v2"], "sourcePositions": [2], "infos": [{"name": "why", "value": "test"}], "appNamespace": "x",
            "retryStrategy": {"limit": 3},
        });
        let request = sync_request(serde_json::from_value(asked).unwrap(), "bob").unwrap();
        assert_eq!(
            (request.user.as_str(), request.strategy.as_str()),
            ("bob", "apply")
        );
        assert!(request.prune && request.dry_run && request.force);
        assert_eq!(request.revisions, [(2, "v2".to_owned())]);
        assert_eq!((request.options.len(), request.info.len()), (1, 1));
        assert_eq!(request.retry.as_ref().unwrap()["limit"], 3);
        let again = sync_request(serde_json::from_value(request.to_api()).unwrap(), "bob").unwrap();
        assert_eq!(
            format!("{again:?}"),
            format!("{request:?}"),
            "what the command sends"
        );
        for wrong in [json!({"manifests": ["x"]}), json!({"revisions": ["a"]})] {
            assert!(sync_request(serde_json::from_value(wrong).unwrap(), "bob").is_err());
        }
    }
}
