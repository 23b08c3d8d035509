//! What others think of a commit: a check that runs, has passed or has failed.

use fairway_gitops_git::Repository;
use serde_json::{Value, json};

use super::call::{Answer, Call, Problem};
use super::{records, shapes};
use crate::access::Verb;
use crate::route::Slug;

/// The most statuses of a commit; the oldest go.
const MAX_STATUSES: usize = 1000;

fn file(id: &str) -> String {
    format!("statuses-{id}")
}

/// `POST statuses/{sha}`
pub(super) async fn create(call: &Call, slug: &Slug, id: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let commit = opened.repository.resolve(id).await?;
    let state = call.text("state").unwrap_or("");
    if !["pending", "success", "error", "failure", "warning"].contains(&state) {
        return Err(Problem::wrong(format!(
            "state {state:?} is none of pending, success, error, failure, warning"
        )));
    }
    let text = |field: &str, default: &str| -> String {
        let found = call
            .text(field)
            .filter(|text| !text.is_empty())
            .unwrap_or(default);
        found.chars().take(2048).collect()
    };
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let link = format!("{}/api/v1/repos/{slug}/statuses/{commit}", call.host.url());
    let mut status = json!({
        "id": 0, "status": state, "target_url": text("target_url", ""), "description": text("description", ""), "url": link,
        "context": text("context", "default"), "creator": shapes::caller(&opened.caller), "created_at": now, "updated_at": now,
    });
    let kept = status.clone();
    let id = records::change(&opened.repository, file(commit.as_str()), move |list| {
        let mut kept = kept;
        let last = list.last().and_then(|last| last["id"].as_u64()).unwrap_or(0);
        kept["id"] = (last + 1).into();
        list.push(kept);
        let surplus = list.len().saturating_sub(MAX_STATUSES);
        list.drain(..surplus);
        Ok(last + 1)
    })
    .await?;
    status["id"] = id.into();
    Ok(Answer::created(status))
}

/// `GET statuses/{revision}`, newest first.
pub(super) async fn list(call: &Call, slug: &Slug, revision: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    let commit = opened.repository.resolve(revision).await?;
    let mut all = records::read(&opened.repository, file(commit.as_str())).await?;
    all.reverse();
    Ok(call.page_of(all))
}

/// `GET commits/{revision}/status`: the newest of each context, and the worst of them.
pub(super) async fn combined(call: &Call, slug: &Slug, revision: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    let commit = opened.repository.resolve(revision).await?;
    let latest = latest(&opened.repository, commit.as_str()).await?;
    let url = call.host.url();
    let repository = super::repos::describe(call, slug, &opened.wanted, &opened.caller).await?;
    Ok(Answer::ok(json!({
        "state": worst(&latest), "sha": commit.as_str(), "total_count": latest.len(), "statuses": latest,
        "repository": repository,
        "commit_url": format!("{url}/api/v1/repos/{slug}/git/commits/{commit}"),
        "url": format!("{url}/api/v1/repos/{slug}/commits/{commit}/status"),
    })))
}

async fn latest(repository: &Repository, commit: &str) -> Result<Vec<Value>, Problem> {
    let all = records::read(repository, file(commit)).await?;
    let mut latest: Vec<Value> = Vec::new();
    for status in all.into_iter().rev() {
        if !latest.iter().any(|known| known["context"] == status["context"]) {
            latest.push(status);
        }
    }
    Ok(latest)
}

/// The worst state of several; nothing of none.
fn worst(statuses: &[Value]) -> &'static str {
    let order = ["error", "failure", "warning", "pending", "success"];
    let has = |state: &&&'static str| statuses.iter().any(|status| status["status"] == **state);
    order.iter().find(has).copied().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_state_wins() {
        for (states, expected) in [
            (vec![], ""),
            (vec!["success"], "success"),
            (vec!["success", "pending"], "pending"),
            (vec!["pending", "failure", "success"], "failure"),
            (vec!["warning", "error"], "error"),
        ] {
            let statuses: Vec<Value> = states.iter().map(|state| json!({"status": state})).collect();
            assert_eq!(worst(&statuses), expected, "{states:?}");
        }
    }
}
