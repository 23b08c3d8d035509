//! Pull requests: a port for those of this installation's own host, and Gitea's API for those elsewhere.

use std::sync::Arc;
use std::time::Duration;

use fairway_controller::{Requests, WorkspaceId};
use fairway_gitops_appset::generator::PullRequest;
use futures::future::BoxFuture;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use kube::{Client, Config};
use serde_json::Value;

use crate::destination::secret;

/// How long a service may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pull requests on a page, pages, and bytes of a page.
const PAGE: usize = 50;
const MAX_PAGES: usize = 40;
const MAX_BYTES: usize = 16 << 20;

/// A repository on a host of pull requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Where the set is that asks.
    pub workspace: WorkspaceId,
    /// The address of the host.
    pub api: String,
    /// The owner of the repository.
    pub owner: String,
    /// Its name.
    pub name: String,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PullsError {
    /// There is no such repository, or it is not for us to know.
    #[error("{0}")]
    NotFound(String),
    /// Something else.
    #[error("{0}")]
    Failed(String),
}

/// The open pull requests of a repository.
pub type Pulls<'a> = BoxFuture<'a, Result<Vec<PullRequest>, PullsError>>;

/// The pull requests of this installation's own host.
pub trait HostedPulls: Send + Sync + 'static {
    /// The address of a repository as pushes name it, if it is one of this host that the workspace may read.
    fn address(&self, asked: &Asked) -> Option<String>;

    /// Its open pull requests.
    fn open<'a>(&'a self, asked: &'a Asked) -> Pulls<'a>;
}

/// They as the controller holds them; there may be no host.
pub type SharedPulls = Option<Arc<dyn HostedPulls>>;

/// A `gitea` provider.
pub(crate) struct Gitea {
    pub(crate) asked: Asked,
    token: String,
    is_insecure: bool,
}

impl Gitea {
    /// Reads a provider and the Secret that it names; the error is for people.
    pub(crate) async fn read(
        requests: &Requests,
        workspace: &WorkspaceId,
        namespace: &str,
        provider: &Value,
    ) -> Result<Self, String> {
        let text = |field: &str| provider[field].as_str().unwrap_or_default().to_owned();
        let token = match &provider["tokenRef"] {
            Value::Null => String::new(),
            reference => token(requests, namespace, reference).await?,
        };
        let asked = Asked {
            workspace: workspace.clone(),
            api: text("api").trim_end_matches('/').to_owned(),
            owner: text("owner"),
            name: text("repo"),
        };
        let is_sound = |part: &str| {
            let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
            !part.is_empty() && part.bytes().all(fits) && !part.starts_with('.')
        };
        if !is_sound(&asked.owner) || !is_sound(&asked.name) {
            return Err(format!(
                "{:?} is no repository: owner and repo are names",
                format!("{}/{}", asked.owner, asked.name)
            ));
        }
        Ok(Self {
            asked,
            token,
            is_insecure: provider["insecure"] == true,
        })
    }

    /// Asks the service.
    pub(crate) async fn open(&self) -> Result<Vec<PullRequest>, PullsError> {
        let failed = |why: String| PullsError::Failed(format!("{}: {why}", self.asked.api));
        let url = self.asked.api.parse::<http::Uri>();
        let url = url.map_err(|error| failed(format!("this is no address: {error}")))?;
        if !matches!(url.scheme_str(), Some("https" | "http")) {
            return Err(failed("an address begins with https:// or http://".to_owned()));
        }
        let mut config = Config::new(url);
        config.accept_invalid_certs = self.is_insecure;
        config.connect_timeout = Some(PATIENCE);
        config.read_timeout = Some(PATIENCE);
        let client = Client::try_from(config).map_err(|error| failed(error.to_string()))?;
        let mut all = Vec::new();
        for page in 1..=MAX_PAGES {
            let asked = tokio::time::timeout(PATIENCE, self.page(&client, page)).await;
            let found = asked.unwrap_or_else(|_| {
                let waited = PATIENCE.as_secs();
                Err(PullsError::Failed(format!("no answer within {waited} seconds")))
            })?;
            let is_last = found.len() < PAGE;
            all.extend(found);
            if is_last {
                break;
            }
        }
        Ok(all)
    }

    async fn page(&self, client: &Client, page: usize) -> Result<Vec<PullRequest>, PullsError> {
        let Asked { api, owner, name, .. } = &self.asked;
        let failed = |why: String| PullsError::Failed(format!("{api}: {why}"));
        let path = format!("/api/v1/repos/{owner}/{name}/pulls?state=open&page={page}&limit={PAGE}");
        let mut request = Request::get(path).header("accept", "application/json");
        if !self.token.is_empty() {
            request = request.header("authorization", format!("token {}", self.token));
        }
        let request = request
            .body(Body::empty())
            .map_err(|error| failed(error.to_string()))?;
        let response = client
            .send(request)
            .await
            .map_err(|error| failed(error.to_string()))?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND {
            return Err(PullsError::NotFound(format!(
                "{api}: there is no repository {owner}/{name}"
            )));
        }
        // What a stranger's server says of itself is not for a status that others read.
        if !status.is_success() {
            return Err(failed(format!("it answered {status}")));
        }
        let body = Limited::new(response.into_body(), MAX_BYTES).collect().await;
        let body = body.map_err(|error| failed(error.to_string()))?.to_bytes();
        let pulls: Vec<Value> = serde_json::from_slice(&body)
            .map_err(|error| failed(format!("its answer is no list: {error}")))?;
        Ok(pulls.iter().map(pull_request).collect())
    }
}

/// The token of a Secret.
async fn token(requests: &Requests, namespace: &str, reference: &Value) -> Result<String, String> {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let (name, key) = (text("secretName"), text("key"));
    let bad = |why: &str| format!("error fetching Secret token: {why}");
    let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
    let found = requests.get(&path).await;
    let found = found.map_err(|failure| bad(&failure.sentence()))?;
    let found = found.ok_or_else(|| {
        bad(&format!(
            "error fetching secret {namespace}/{name}: there is none"
        ))
    })?;
    secret::text(&found, key)
        .ok_or_else(|| bad(&format!("key {key:?} in secret {namespace}/{name} not found")))
}

/// A pull request in Gitea's JSON.
pub fn pull_request(pull: &Value) -> PullRequest {
    let text = |pointer: &str| {
        let found = pull.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let labels = pull["labels"].as_array().into_iter().flatten();
    PullRequest {
        number: pull["number"].as_u64().unwrap_or_default(),
        title: text("/title"),
        branch: text("/head/ref"),
        target_branch: text("/base/ref"),
        head: text("/head/sha"),
        labels: labels
            .filter_map(|label| label["name"].as_str())
            .map(str::to_owned)
            .collect(),
        author: text("/user/login"),
    }
}

#[cfg(test)]
mod tests;
