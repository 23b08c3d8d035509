//! `voyages/dryrun`: what a run would do, asked through the Kubernetes API, so that whoever has a kubeconfig can ask. The name in the
//! path means nothing; whoever may create Voyages in the namespace needs `create` on `voyages/dryrun`, too.

use std::sync::Arc;

use fairway_api::fairway::VOYAGE;
use fairway_apiservice::{ApiService, Body, BoxError, Handler, RequestInfo, Resource, User, full};
use fairway_controller::{Shutdown, WorkspaceId};
use http::{HeaderValue, Request, Response, StatusCode, header};
use serde_json::{Value, json};
use tower::service_fn;

use crate::ports::Person;
use crate::submit::Submission;
use crate::{World, dry_run};

/// The largest request.
const MAX_BODY: usize = 1 << 20;

/// Answers `voyages/dryrun`.
pub struct DryRuns {
    pub(crate) world: Arc<World>,
}

impl ApiService for DryRuns {
    fn group_version(&self) -> (&str, &str) {
        (VOYAGE.group, VOYAGE.version)
    }

    fn resources(&self) -> Vec<Resource> {
        vec![Resource::new("voyages/dryrun", "VoyageDryRun").verbs(&["create"])]
    }

    fn handler(&self) -> Handler {
        let world = Arc::clone(&self.world);
        Handler::new(service_fn(move |request: Request<Body>| {
            let world = Arc::clone(&world);
            async move { Ok::<_, BoxError>(answer(&world, request).await) }
        }))
    }
}

async fn answer(world: &Arc<World>, request: Request<Body>) -> Response<Body> {
    match foreseen(world, request).await {
        Ok(report) => respond(StatusCode::CREATED, &report),
        Err(why) => respond(
            StatusCode::UNPROCESSABLE_ENTITY,
            &json!({
                "apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Invalid", "code": 422, "message": why, "metadata": {},
            }),
        ),
    }
}

async fn foreseen(world: &Arc<World>, request: Request<Body>) -> Result<Value, String> {
    let (parts, body) = request.into_parts();
    let (Some(user), Some(info)) = (
        parts.extensions.get::<User>(),
        parts.extensions.get::<RequestInfo>(),
    ) else {
        return Err("nobody is known who asks".to_owned());
    };
    let person = Person::from(user);
    let workspace = WorkspaceId::parse(&info.cluster).map_err(|error| error.to_string())?;
    let bytes = crate::rest::body::read(body, MAX_BODY).await;
    let bytes = bytes.ok_or_else(|| "the request is too large, or was broken off".to_owned())?;
    let asked: Value =
        serde_json::from_slice(&bytes).map_err(|error| format!("the body is not JSON: {error}"))?;
    let spec = &asked["spec"];
    let secrets = asked["secrets"].as_object().into_iter().flatten();
    let submission = Submission {
        template: spec["template"].as_str().unwrap_or("").to_owned(),
        namespace: info.namespace.clone().unwrap_or_else(|| "default".to_owned()),
        values: spec["values"].as_object().cloned().unwrap_or_default(),
        secrets: secrets
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect(),
        ..Submission::default()
    };
    let (_trigger, shutdown) = Shutdown::new();
    let mut report = dry_run::dry_run(world, &workspace, &person, None, &submission, shutdown).await?;
    report["apiVersion"] = VOYAGE.api_version().into();
    report["kind"] = "VoyageDryRun".into();
    report["metadata"] = json!({});
    Ok(report)
}

fn respond(status: StatusCode, value: &Value) -> Response<Body> {
    let mut answer = Response::new(full(value.to_string()));
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}
