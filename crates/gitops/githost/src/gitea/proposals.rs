//! Pull requests, for those who judge them in this process: they hear of each that is opened, moves, or whose base moves, and may leave a status on
//! its head and a comment on it.

use std::sync::Arc;

use fairway_gitops_git::{ObjectId, RefName, Repository};
use serde_json::{Value, json};
use tracing::debug;

use super::shapes::now;
use super::{records, shapes};
use crate::catalog::Wanted;
use crate::host::Host;
use crate::seams::Push;

/// The file of a repository's pull requests.
const PULLS: &str = "pulls";
/// The most pull requests that a push moves.
const MAX_MOVED: usize = 50;
/// The most comments that are looked through for an earlier one.
const MAX_COMMENTS: usize = 10_000;

/// A pull request that is open.
#[derive(Debug, Clone)]
pub struct Pull {
    /// The repository's object.
    pub wanted: Arc<Wanted>,
    /// The owner's name.
    pub owner: String,
    /// The repository.
    pub repository: Repository,
    /// Its number.
    pub number: u64,
    /// The branch that it would change.
    pub base: String,
    /// Where its own branch is.
    pub head: ObjectId,
}

/// A status of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Who says it.
    pub context: String,
    /// `success`, `warning`, `failure`, ...
    pub state: String,
    /// In a few words.
    pub description: String,
}

impl Host {
    /// Tells everybody of the pull requests whose branch, or whose base, a push has moved. Returns at once.
    pub(crate) fn proposed_by(&self, push: &Push) {
        let branches: Vec<String> = push
            .updates
            .iter()
            .filter(|update| update.new.is_some())
            .filter_map(|update| update.name.as_branch().map(str::to_owned))
            .collect();
        let watchers = self.watchers();
        if branches.is_empty() || watchers.is_empty() {
            return;
        }
        let push = push.clone();
        tokio::spawn(async move {
            for pull in open(&push, &branches).await {
                watchers.iter().for_each(|watcher| watcher.proposed(&pull));
            }
        });
    }
}

async fn open(push: &Push, branches: &[String]) -> Vec<Pull> {
    let all = match records::read(&push.repository, PULLS.to_owned()).await {
        Ok(all) => all,
        Err(problem) => {
            debug!(problem = problem.message, "pull requests cannot be read");
            return Vec::new();
        }
    };
    let mut found = Vec::new();
    for pull in all.iter().rev().filter(|pull| pull["state"] == "open") {
        let (Some(base), Some(head)) = (pull["base"].as_str(), pull["head"].as_str()) else {
            continue;
        };
        if !branches.iter().any(|branch| branch == head || branch == base) {
            continue;
        }
        if found.len() >= MAX_MOVED {
            debug!("a branch is the base of too many pull requests; the newest are planned");
            break;
        }
        if let Some(at) = tip(&push.repository, head).await {
            found.push(Pull {
                wanted: Arc::clone(&push.wanted),
                owner: push.owner.clone(),
                repository: push.repository.clone(),
                number: pull["number"].as_u64().unwrap_or(0),
                base: base.to_owned(),
                head: at,
            });
        }
    }
    found
}

async fn tip(repository: &Repository, branch: &str) -> Option<ObjectId> {
    let name = RefName::branch(branch).ok()?;
    repository.reference(&name).await.ok().flatten()
}

/// The base and the head of a pull request that is open.
pub async fn find(repository: &Repository, number: u64) -> Option<(String, ObjectId)> {
    let all = records::read(repository, PULLS.to_owned()).await.ok()?;
    let is_meant = |pull: &&Value| pull["number"] == number && pull["state"] == "open";
    let pull = all.iter().find(is_meant)?;
    let head = tip(repository, pull["head"].as_str()?).await?;
    Some((pull["base"].as_str()?.to_owned(), head))
}

impl Pull {
    /// Leaves a status on the head, unless it is there already.
    ///
    /// # Errors
    /// It could not be written; a sentence.
    pub async fn remark(&self, host: &Host, remark: Remark) -> Result<(), String> {
        let (host, head) = (host.url(), self.head.as_str());
        let slug = format!("{}/{}", self.owner, self.wanted.name);
        let status = json!({
            "id": 0, "status": remark.state, "target_url": format!("{host}/{slug}/pulls/{}", self.number),
            "description": remark.description, "context": remark.context, "creator": shapes::user("fairway"),
            "url": format!("{host}/api/v1/repos/{slug}/statuses/{head}"), "created_at": now(), "updated_at": now(),
        });
        let file = format!("statuses-{head}");
        let written = records::change(&self.repository, file, move |all| {
            let last = all
                .iter()
                .rev()
                .find(|known| known["context"] == status["context"]);
            let is_same = |known: &Value| {
                known["status"] == status["status"] && known["description"] == status["description"]
            };
            if last.is_some_and(is_same) {
                return Ok(());
            }
            let mut status = status;
            let last = all.last().and_then(|last| last["id"].as_u64()).unwrap_or(0);
            status["id"] = (last + 1).into();
            all.push(status);
            Ok(())
        });
        written.await.map_err(|problem| problem.message)
    }

    /// Leaves a comment on it, in place of the one that begins with the same mark.
    ///
    /// # Errors
    /// It could not be written; a sentence.
    pub async fn comment(&self, host: &Host, mark: &'static str, body: String) -> Result<(), String> {
        let slug = format!("{}/{}", self.owner, self.wanted.name);
        let link = format!("{}/{slug}/pulls/{}", host.url(), self.number);
        let made = json!({
            "id": 0, "body": body, "user": shapes::user("fairway"), "created_at": now(), "updated_at": now(),
            "html_url": link, "pull_request_url": link, "issue_url": "", "assets": [],
        });
        let file = format!("comments-{}", self.number);
        let written = records::change(&self.repository, file, move |all| {
            let is_earlier =
                |known: &&mut Value| known["body"].as_str().is_some_and(|body| body.starts_with(mark));
            if let Some(earlier) = all.iter_mut().take(MAX_COMMENTS).find(is_earlier) {
                if earlier["body"] != made["body"] {
                    earlier["body"] = made["body"].clone();
                    earlier["updated_at"] = made["updated_at"].clone();
                }
                return Ok(all.len());
            }
            let mut made = made;
            let last = all.last().and_then(|last| last["id"].as_u64()).unwrap_or(0);
            made["id"] = (last + 1).into();
            all.push(made);
            Ok(all.len())
        });
        let count = written.await.map_err(|problem| problem.message)?;
        let number = self.number;
        let counted = records::change(&self.repository, PULLS.to_owned(), move |all| {
            if let Some(pull) = all.iter_mut().find(|pull| pull["number"] == number) {
                pull["comments"] = count.into();
            }
            Ok(())
        });
        counted.await.map_err(|problem| problem.message)
    }
}
