//! Pull requests: a branch that wants to become part of another. Both are branches of the same repository.

mod merge;
mod open;
mod shape;

use fairway_gitops_git::{ObjectId, RefName, Repository};
use serde_json::{Value, json};

use super::call::{Answer, Call, Problem};
use super::commits::word;
use super::proposals::Pull;
use super::shapes::now;
use super::{labels, records, shapes};
use crate::access::Verb;
use crate::hooks::payload::{self, Scene};
use crate::host::Opened;
use crate::route::Slug;

pub(super) use merge::merge;
pub use open::OpenPull;
pub(crate) use open::open;
pub(crate) use shape::shape;

/// The file of a repository's pull requests; one's comments have a file of their own.
const PULLS: &str = "pulls";
/// The most commits and the longest text that are kept or shown.
const MAX_COMMITS: usize = 500;
const MAX_TEXT: usize = 64 << 10;

fn text(call: &Call, field: &str) -> Option<String> {
    let found = call.text(field)?;
    Some(found.chars().take(MAX_TEXT).collect())
}

/// Base and head of a pull request, as they are now; of a merged one, as they were then.
async fn ends(
    repository: &Repository,
    pull: &Value,
) -> Result<(Option<ObjectId>, Option<ObjectId>), Problem> {
    let fixed = |field: &str| pull[field].as_str().and_then(|text| ObjectId::parse(text).ok());
    if let (Some(base), Some(head)) = (fixed("base_sha"), fixed("head_sha")) {
        return Ok((Some(base), Some(head)));
    }
    let branch = |field: &str| RefName::branch(pull[field].as_str().unwrap_or(""));
    let base = repository.reference(&branch("base")?).await?;
    let head = repository.reference(&branch("head")?).await?;
    Ok((base, head))
}

async fn present(call: &Call, slug: &Slug, opened: &Opened, pull: &Value) -> Result<Value, Problem> {
    shape(&call.host, slug, &opened.wanted, &opened.repository, pull).await
}

/// Open pull requests with this head.
pub(crate) async fn open_of(repository: &Repository, branch: &str) -> Vec<Value> {
    let all = records::read(repository, PULLS.to_owned())
        .await
        .unwrap_or_default();
    let is_it = |pull: &Value| pull["state"] == "open" && pull["head"] == branch;
    all.into_iter().filter(is_it).collect()
}

pub(super) async fn find(opened: &Opened, number: &str) -> Result<Value, Problem> {
    let number: u64 = number
        .parse()
        .map_err(|_| Problem::not_found("The pull request"))?;
    let all = records::read(&opened.repository, PULLS.to_owned()).await?;
    let found = all.into_iter().find(|pull| pull["number"] == number);
    found.ok_or_else(|| Problem::not_found("The pull request"))
}

/// Changes a pull request on disk; what it is then.
pub(super) async fn update(
    opened: &Opened,
    number: u64,
    change: impl FnOnce(&mut Value) -> Result<(), Problem> + Send + 'static,
) -> Result<Value, Problem> {
    records::change(&opened.repository, PULLS.to_owned(), move |all| {
        let found = all.iter_mut().find(|pull| pull["number"] == number);
        let pull = found.ok_or_else(|| Problem::not_found("The pull request"))?;
        change(pull)?;
        pull["updated_at"] = now().into();
        Ok(pull.clone())
    })
    .await
}

/// `POST pulls`
pub(super) async fn create(call: &Call, slug: &Slug) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let title = text(call, "title").filter(|title| !title.trim().is_empty());
    let title = title.ok_or_else(|| Problem::wrong("a pull request needs a title"))?;
    let (base, head) = (call.text("base").unwrap_or(""), call.text("head").unwrap_or(""));
    // `owner:branch` names a fork, of which there are none.
    let head = head
        .strip_prefix(&format!("{}:", slug.owner))
        .unwrap_or(head)
        .to_owned();
    if base == head {
        return Err(Problem::wrong("base and head are the same branch"));
    }
    let mut tips = Vec::new();
    for branch in [base, &head] {
        let found = opened.repository.reference(&RefName::branch(branch)?).await?;
        tips.push(found.ok_or_else(|| Problem::not_found(&format!("The branch {branch}")))?);
    }
    if opened.repository.count(&tips[1], Some(&tips[0])).await? == 0 {
        return Err(Problem::wrong(format!("{head} has nothing that {base} has not")));
    }
    let labels = labels::meant(&opened.repository, &call.body["labels"]).await?;
    let pull = json!({
        "number": 0, "labels": labels, "title": title, "body": text(call, "body").unwrap_or_default(), "state": "open", "base": base, "head": head,
        "user": opened.caller.short_name(), "created_at": now(), "updated_at": now(), "comments": 0,
    });
    let made = records::change(&opened.repository, PULLS.to_owned(), move |all| {
        let is_same = |known: &&Value| {
            known["state"] == "open" && known["base"] == pull["base"] && known["head"] == pull["head"]
        };
        if let Some(known) = all.iter().find(is_same) {
            let why = format!(
                "pull request {} is open for these branches already",
                known["number"]
            );
            return Err(Problem::new(http::StatusCode::CONFLICT, why));
        }
        let mut pull = pull;
        let last = all.last().and_then(|last| last["number"].as_u64()).unwrap_or(0);
        pull["number"] = (last + 1).into();
        all.push(pull.clone());
        Ok(pull)
    })
    .await?;
    call.host.tell_pulls(slug);
    let opening = Pull {
        wanted: opened.wanted.clone(),
        owner: slug.owner.clone(),
        repository: opened.repository.clone(),
        number: made["number"].as_u64().unwrap_or(0),
        base: made["base"].as_str().unwrap_or("").to_owned(),
        head: tips[1].clone(),
    };
    call.host
        .watchers()
        .iter()
        .for_each(|watcher| watcher.proposed(&opening));
    payload::pull_changed(
        &Scene::of(&call.host, slug, &opened),
        &made,
        "opened",
        Value::Null,
    )
    .await;
    Ok(Answer::created(present(call, slug, &opened, &made).await?))
}

/// `GET pulls`, newest first.
pub(super) async fn list(call: &Call, slug: &Slug) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    let state = call.query.get("state").map_or("open", String::as_str);
    let mut all = records::read(&opened.repository, PULLS.to_owned()).await?;
    all.retain(|pull| state == "all" || pull["state"] == state);
    if let Some(wanted) = call.query.get("labels").filter(|list| !list.is_empty()) {
        let wanted: Vec<u64> = wanted
            .split(',')
            .filter_map(|id| id.trim().parse().ok())
            .collect();
        all.retain(|pull| {
            let has = labels::ids(pull);
            wanted.iter().all(|id| has.contains(id))
        });
    }
    all.reverse();
    let (skip, limit) = call.page();
    let mut shown = Vec::new();
    for pull in all.iter().skip(skip).take(limit) {
        shown.push(present(call, slug, &opened, pull).await?);
    }
    Ok(call.paged(shown, all.len()))
}

/// `GET pulls/{number}`, also with `.diff` or `.patch` at its end.
pub(super) async fn get(call: &Call, slug: &Slug, number: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    let plain = number
        .strip_suffix(".diff")
        .or_else(|| number.strip_suffix(".patch"));
    let pull = find(&opened, plain.unwrap_or(number)).await?;
    if plain.is_none() {
        return Ok(Answer::ok(present(call, slug, &opened, &pull).await?));
    }
    let (start, head) = range(&opened, &pull).await?;
    let patch = opened.repository.diff(&start, &head).await?;
    Ok(Answer::bytes(patch, "text/plain; charset=utf-8"))
}

/// Where the branches parted, and the head.
async fn range(opened: &Opened, pull: &Value) -> Result<(ObjectId, ObjectId), Problem> {
    let (Some(base), Some(head)) = ends(&opened.repository, pull).await? else {
        return Err(Problem::not_found("A branch of the pull request"));
    };
    let start = opened.repository.merge_base(&base, &head).await?;
    let start = start.ok_or_else(|| Problem::wrong("the branches have no commit in common"))?;
    Ok((start, head))
}

/// `PATCH pulls/{number}`: title, body, labels, and whether it is open.
pub(super) async fn edit(call: &Call, slug: &Slug, number: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let pull = find(&opened, number).await?;
    let state = call.text("state").map(str::to_owned);
    if state
        .as_deref()
        .is_some_and(|state| !["open", "closed"].contains(&state))
    {
        return Err(Problem::wrong("state is open or closed"));
    }
    if call.text("base").is_some_and(|base| pull["base"] != base) {
        let why = "the base of a pull request cannot be changed; make a new one";
        return Err(Problem::new(http::StatusCode::NOT_IMPLEMENTED, why));
    }
    let (title, body) = (text(call, "title"), text(call, "body"));
    let labels = match call.body["labels"].is_array() {
        true => Some(labels::meant(&opened.repository, &call.body["labels"]).await?),
        false => None,
    };
    let changed = update(&opened, pull["number"].as_u64().unwrap_or(0), move |pull| {
        if let Some(title) = title.filter(|title| !title.trim().is_empty()) {
            pull["title"] = title.into();
        }
        if let Some(body) = body {
            pull["body"] = body.into();
        }
        if let Some(labels) = labels {
            pull["labels"] = labels.into();
        }
        if let Some(state) = state {
            if pull["merged"] == true && state == "open" {
                return Err(Problem::wrong("a merged pull request cannot be opened again"));
            }
            pull["closed_at"] = if state == "closed" {
                now().into()
            } else {
                Value::Null
            };
            pull["state"] = state.into();
        }
        Ok(())
    })
    .await?;
    call.host.tell_pulls(slug);
    for (action, changes) in happened(&pull, &changed) {
        payload::pull_changed(&Scene::of(&call.host, slug, &opened), &changed, action, changes).await;
    }
    tell_labels(call, slug, &opened, &pull, &changed).await;
    Ok(Answer::created(present(call, slug, &opened, &changed).await?))
}

/// Tells of the labels of a pull request, if they are others now.
pub(super) async fn tell_labels(call: &Call, slug: &Slug, opened: &Opened, before: &Value, after: &Value) {
    let (old, new) = (labels::ids(before), labels::ids(after));
    if old == new {
        return;
    }
    call.host.tell_pulls(slug);
    let action = if new.is_empty() {
        "label_cleared"
    } else {
        "label_updated"
    };
    payload::pull_labelled(&Scene::of(&call.host, slug, opened), after, action).await;
}

/// Takes a label from all pull requests.
pub(super) async fn without_label(opened: &Opened, id: u64) -> Result<(), Problem> {
    records::change(&opened.repository, PULLS.to_owned(), move |all| {
        for pull in all {
            let mut labels = labels::ids(pull);
            if labels.contains(&id) {
                labels.retain(|known| *known != id);
                pull["labels"] = labels.into();
            }
        }
        Ok(())
    })
    .await
}

/// What an edit did, in the words of hooks.
fn happened(before: &Value, after: &Value) -> Vec<(&'static str, Value)> {
    let mut found = Vec::new();
    let mut changes = json!({});
    for field in ["title", "body"]
        .into_iter()
        .filter(|field| before[field] != after[field])
    {
        changes[field] = json!({"from": before[field]});
    }
    if changes != json!({}) {
        found.push(("edited", changes));
    }
    match (before["state"].as_str(), after["state"].as_str()) {
        (Some("open"), Some("closed")) => found.push(("closed", Value::Null)),
        (Some("closed"), Some("open")) => found.push(("reopened", Value::Null)),
        _ => {}
    }
    found
}

/// `GET pulls/{number}/commits`
pub(super) async fn commits(call: &Call, slug: &Slug, number: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    let pull = find(&opened, number).await?;
    let (start, head) = range(&opened, &pull).await?;
    let commits = opened
        .repository
        .log(&head, Some(&start), None, 0, MAX_COMMITS)
        .await?;
    let shown = commits
        .iter()
        .map(|info| shapes::commit(call.host.url(), slug, info))
        .collect();
    Ok(call.page_of(shown))
}

/// `GET pulls/{number}/files`
pub(super) async fn files(call: &Call, slug: &Slug, number: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    let pull = find(&opened, number).await?;
    let (start, head) = range(&opened, &pull).await?;
    let url = call.host.url();
    let files = opened.repository.differences(&start, &head).await?;
    let shown = files.iter().map(|file| {
        let (additions, deletions) = (file.additions.unwrap_or(0), file.deletions.unwrap_or(0));
        json!({
            "filename": file.path, "previous_filename": file.old_path.as_deref().unwrap_or(""), "status": word(file.kind),
            "additions": additions, "deletions": deletions, "changes": additions + deletions, "html_url": "",
            "contents_url": format!("{url}/api/v1/repos/{slug}/contents/{}?ref={head}", file.path),
            "raw_url": format!("{url}/api/v1/repos/{slug}/raw/{}?ref={head}", file.path),
        })
    });
    Ok(call.page_of(shown.collect()))
}

/// `GET pulls/{number}/merge`: nothing if it was merged, not found if not.
pub(super) async fn is_merged(call: &Call, slug: &Slug, number: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    match find(&opened, number).await?["merged"] == true {
        true => Ok(Answer::nothing()),
        false => Err(Problem::not_found("A merge")),
    }
}

fn comments_of(number: &Value) -> String {
    format!("comments-{number}")
}

/// `GET issues/{number}/comments`
pub(super) async fn comments(call: &Call, slug: &Slug, number: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    let pull = find(&opened, number).await?;
    let all = records::read(&opened.repository, comments_of(&pull["number"])).await?;
    Ok(call.page_of(all))
}

/// `POST issues/{number}/comments`: whoever can read and is known may comment.
pub(super) async fn comment(call: &Call, slug: &Slug, number: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    if !opened.caller.is_known() {
        return Err(crate::host::Denial::Unauthenticated.into());
    }
    let pull = find(&opened, number).await?;
    let body = text(call, "body").filter(|body| !body.is_empty());
    let body = body.ok_or_else(|| Problem::wrong("a comment needs a body"))?;
    let link = format!("{}/{slug}/pulls/{}", call.host.url(), pull["number"]);
    let made = json!({
        "id": 0, "body": body, "user": shapes::caller(&opened.caller), "created_at": now(), "updated_at": now(),
        "html_url": link, "pull_request_url": link, "issue_url": "", "assets": [],
    });
    let (made, count) = records::change(&opened.repository, comments_of(&pull["number"]), move |all| {
        let mut made = made;
        let last = all.last().and_then(|last| last["id"].as_u64()).unwrap_or(0);
        made["id"] = (last + 1).into();
        all.push(made.clone());
        Ok((made, all.len()))
    })
    .await?;
    let number = pull["number"].as_u64().unwrap_or(0);
    let pull = update(&opened, number, move |pull| {
        pull["comments"] = count.into();
        Ok(())
    })
    .await?;
    payload::commented(&Scene::of(&call.host, slug, &opened), &pull, &made, "created").await;
    Ok(Answer::created(made))
}
