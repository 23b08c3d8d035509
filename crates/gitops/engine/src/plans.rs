//! Asking the engine what a sync would do: `applications/plan`, a subresource that [`crate::service`] serves.
//!
//! It is a request, since a plan is an answer and nothing to keep; and of the Application, so that the roles that let somebody
//! see or change Applications in a namespace of a workspace let him plan there, too. What is asked for is named in
//! [`Request`]; `create` it.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use fairway_apiservice::Body;
use fairway_controller::{ObjectKey, WorkspaceId};
use fairway_gitops_sync::project::normalize_url;
use fairway_gitops_tree::Tree;
use futures::future::BoxFuture;
use http::{Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::application::{Application, path_of};
use crate::desired::repository;
use crate::engine::Engine;
use crate::engine::planning::{Asked, NoPlan};
use crate::service::{failed_to, not_found, read_body, refused, respond};

/// How long a plan may take.
const PATIENCE: Duration = Duration::from_secs(50);
/// How many Applications are planned for one pull request.
const MOST: usize = 200;

/// A change that somebody proposes to a repository.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Proposal {
    /// The repository.
    pub url: String,
    /// The branch that it would change; empty: the default one.
    pub base: String,
    /// What it would be: a branch or a commit.
    pub head: String,
}

/// Finds pull requests: of which workspace, of which repository, and of which number.
pub type Pulls = Arc<dyn Fn(WorkspaceId, String, u64) -> BoxFuture<'static, Option<Proposal>> + Send + Sync>;

/// What is asked for: at most one of revisions, files, and a proposal (`branch` or `pull`).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct Request {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    #[serde(rename = "metadata")]
    _metadata: Value,
    /// Of the one source.
    revision: String,
    /// Of each source.
    revisions: Vec<String>,
    /// Files by path, in base64.
    files: Option<BTreeMap<String, String>>,
    /// The directory of the Application among them.
    path: String,
    /// The repository of a proposal.
    #[serde(rename = "repoURL")]
    repo_url: String,
    branch: String,
    base: String,
    pull: u64,
    /// Whether an Application that is not touched needs no plan.
    only_touched: bool,
}

/// The way to the engine: it is there while the engine runs.
#[derive(Clone, Default)]
pub struct Plans(Arc<RwLock<Weak<Engine>>>);

impl Plans {
    pub(crate) fn run_with(&self, engine: &Arc<Engine>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(engine);
    }

    pub(crate) fn engine(&self) -> Option<Arc<Engine>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// The plans of all Applications of a workspace that a proposal touches.
    pub async fn of(&self, workspace: &WorkspaceId, proposal: &Proposal) -> Vec<Value> {
        let Some(engine) = self.engine() else {
            return Vec::new();
        };
        let url = normalize_url(&proposal.url);
        let mut keys: Vec<ObjectKey> = engine
            .results
            .all()
            .into_iter()
            .filter(|(key, rendered)| {
                let is_of = |url: &str, asked: &str| normalize_url(asked) == url;
                key.workspace == *workspace && rendered.asked.iter().any(|(asked, _)| is_of(&url, &asked.url))
            })
            .map(|(key, _)| key)
            .collect();
        keys.sort();
        let mut plans = Vec::new();
        for key in keys.into_iter().take(MOST) {
            match engine.plan_proposal(&key, proposal, true).await {
                Ok(plan) if plan["touched"] == true => plans.push(plan),
                Ok(_) | Err(NoPlan::NotFound) => {}
                Err(NoPlan::Invalid(why)) => plans.push(failed(&key, &why)),
                Err(NoPlan::Failed(failure)) => plans.push(failed(&key, &failure.sentence())),
            }
        }
        plans
    }
}

fn failed(key: &ObjectKey, why: &str) -> Value {
    json!({
        "metadata": {"name": key.name, "namespace": key.namespace}, "touched": true, "revisions": [], "changes": [],
        "impact": "unknown", "failure": why,
    })
}

impl Engine {
    /// The plan of an Application for a proposal, if it follows the branch that the proposal would change.
    async fn plan_proposal(
        &self,
        key: &ObjectKey,
        proposal: &Proposal,
        only_touched: bool,
    ) -> Result<Value, NoPlan> {
        let requests = fairway_controller::Requests::new(self.clients.of(&key.workspace));
        let object = requests.get(&path_of(key)).await?.ok_or(NoPlan::NotFound)?;
        let application = Application::read(key, object).map_err(|(why, _)| NoPlan::Invalid(why))?;
        let (url, sources) = (normalize_url(&proposal.url), application.sources());
        let (mut revisions, mut head) = (vec![String::new(); sources.len()], String::new());
        for (place, source) in sources.iter().enumerate() {
            if normalize_url(&source.repo_url) != url {
                continue;
            }
            let at = repository(&application, source);
            let resolve = async |revision: &str| self.renderer.resolve_one(&at, revision).await;
            let invalid = |error: crate::sources::SourceError| NoPlan::Invalid(error.to_string());
            let base = resolve(&proposal.base).await.map_err(invalid)?;
            // An Application that cannot be resolved now may be mended by the proposal: it is planned.
            if resolve(&source.target_revision)
                .await
                .is_ok_and(|own| own != base)
            {
                continue;
            }
            head = resolve(&proposal.head).await.map_err(invalid)?;
            let merged = self.renderer.merged(&at, &base, &head).await;
            revisions[place] = merged.map_err(invalid)?;
        }
        if revisions.iter().all(String::is_empty) {
            return Ok(json!({
                "apiVersion": fairway_api::argoproj::API_VERSION, "kind": "ApplicationPlan",
                "metadata": {"name": key.name, "namespace": key.namespace},
                "touched": false, "revisions": [], "changes": [], "impact": "none",
            }));
        }
        let asked = Asked {
            revisions,
            only_touched,
            ..Asked::default()
        };
        let mut plan = self.plan(key, &asked).await?;
        plan["head"] = head.into();
        Ok(plan)
    }
}

/// The answer to a request for a plan.
pub(crate) async fn answer(
    engine: &Arc<Engine>,
    pulls: &Pulls,
    key: &ObjectKey,
    body: &[u8],
) -> Response<Body> {
    let asked: Request = match read_body(body) {
        Ok(asked) => asked,
        Err(error) => {
            let why = format!("this is not what a plan is asked for with: {error}");
            return refused(StatusCode::BAD_REQUEST, "BadRequest", &why);
        }
    };
    let planning = plan(engine, pulls, key, asked);
    let Ok(planned) = tokio::time::timeout(PATIENCE, planning).await else {
        let why = format!("the plan took longer than {} seconds", PATIENCE.as_secs());
        return refused(StatusCode::GATEWAY_TIMEOUT, "Timeout", &why);
    };
    match planned {
        Ok(plan) => respond(StatusCode::CREATED, &plan),
        Err(NoPlan::NotFound) => not_found("applications", &key.name),
        Err(NoPlan::Invalid(why)) => refused(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", &why),
        Err(NoPlan::Failed(failure)) => failed_to(&failure),
    }
}

async fn plan(engine: &Arc<Engine>, pulls: &Pulls, key: &ObjectKey, asked: Request) -> Result<Value, NoPlan> {
    let is_proposal = !asked.branch.is_empty() || asked.pull > 0;
    if is_proposal && asked.repo_url.is_empty() {
        return Err(NoPlan::Invalid(
            "a branch or a pull request needs repoURL".to_owned(),
        ));
    }
    if asked.pull > 0 {
        let found = pulls(key.workspace.clone(), asked.repo_url.clone(), asked.pull).await;
        let proposal = found.ok_or_else(|| {
            NoPlan::Invalid(format!(
                "there is no pull request {} of {} here",
                asked.pull, asked.repo_url
            ))
        })?;
        return engine.plan_proposal(key, &proposal, asked.only_touched).await;
    }
    if !asked.branch.is_empty() {
        let proposal = Proposal {
            url: asked.repo_url,
            base: asked.base,
            head: asked.branch,
        };
        return engine.plan_proposal(key, &proposal, asked.only_touched).await;
    }
    let local = match asked.files {
        Some(files) => Some((tree(files)?, asked.path)),
        None => None,
    };
    let revisions = match asked.revision.is_empty() {
        true => asked.revisions,
        false => vec![asked.revision],
    };
    let asked = Asked {
        revisions,
        local,
        only_touched: asked.only_touched,
    };
    engine.plan(key, &asked).await
}

/// Files that somebody sent along.
fn tree(files: BTreeMap<String, String>) -> Result<Tree, NoPlan> {
    let mut read = Vec::with_capacity(files.len());
    for (path, content) in files {
        let content = BASE64.decode(content.as_bytes());
        let content = content.map_err(|error| NoPlan::Invalid(format!("file {path}: {error}")))?;
        read.push((path, content));
    }
    Tree::of(read).map_err(|error| NoPlan::Invalid(error.to_string()))
}
