//! What receivers are told, in Gitea's form.

use std::collections::HashMap;

use fairway_gitops_git::{CommitInfo, GitError, ObjectId, Repository};
use serde_json::{Value, json};
use tracing::warn;

use super::{Event, Kind, announce, listening};
use crate::access::Caller;
use crate::catalog::Wanted;
use crate::gitea::{pulls, shapes};
use crate::host::{Host, Opened};
use crate::route::Slug;
use crate::seams::{Push, Update};

/// The most commits that are told of; `total_commits` says how many there are.
const MAX_COMMITS: usize = 20;
/// The most paths in all of them, and of references in one push that are told of.
const MAX_PATHS: usize = 5000;
const MAX_UPDATES: usize = 50;

/// Where something happens, and who does it.
pub(crate) struct Scene<'a> {
    pub(crate) host: &'a Host,
    pub(crate) slug: Slug,
    pub(crate) wanted: &'a Wanted,
    pub(crate) repository: &'a Repository,
    pub(crate) by: &'a Caller,
}

impl<'a> Scene<'a> {
    /// Where somebody acts on a repository through the API.
    pub(crate) fn of(host: &'a Host, slug: &Slug, opened: &'a Opened) -> Self {
        Self {
            host,
            slug: slug.clone(),
            wanted: &opened.wanted,
            repository: &opened.repository,
            by: &opened.caller,
        }
    }

    fn with(&self, mut payload: Value) -> Value {
        let everything = shapes::Permissions {
            admin: true,
            push: true,
            pull: true,
        };
        payload["repository"] =
            shapes::repository(self.host.url(), &self.slug, self.wanted, false, 0, everything);
        payload["sender"] = shapes::caller(self.by);
        payload
    }
}

/// Tells hooks that references have moved.
pub(crate) async fn pushed(host: &Host, push: &Push) {
    let hooks = listening(host, &push.wanted).await;
    if hooks.is_empty() {
        return;
    }
    let scene = Scene {
        host,
        slug: Slug {
            owner: push.owner.clone(),
            name: push.wanted.name.clone(),
        },
        wanted: &push.wanted,
        repository: &push.repository,
        by: &push.pusher,
    };
    for update in push.updates.iter().take(MAX_UPDATES) {
        match of_update(&scene, update).await {
            Ok(events) => {
                for event in events {
                    announce(host, &push.wanted, &push.repository, &hooks, &event).await;
                }
            }
            Err(error) => {
                warn!(slug = %scene.slug, reference = %update.name, error = error.full(), "webhooks are not told of a push");
            }
        }
    }
}

/// What an update means to hooks, in the order in which Gitea tells it.
async fn of_update(scene: &Scene<'_>, update: &Update) -> Result<Vec<Event>, GitError> {
    let branch = update.name.as_branch().map(str::to_owned);
    let (kind, short) = match (&branch, update.name.as_tag()) {
        (Some(branch), _) => ("branch", branch.clone()),
        (None, Some(tag)) => ("tag", tag.to_owned()),
        (None, None) => return Ok(Vec::new()),
    };
    let event = |kind: Kind, payload: Value| Event {
        kind,
        branch: branch.clone(),
        payload: scene.with(payload),
    };
    let Some(new) = &update.new else {
        let deleted = json!({"ref": short, "ref_type": kind, "pusher_type": "user"});
        let mut events = vec![event(Kind::Delete, deleted)];
        if kind == "tag" {
            events.insert(0, event(Kind::Push, push(scene, update, &[], 0, &Value::Null)));
        }
        return Ok(events);
    };
    let mut events = Vec::new();
    if update.old.is_none() {
        let created = json!({"sha": new.as_str(), "ref": short, "ref_type": kind});
        events.push(event(Kind::Create, created));
    }
    // By its hash: the reference may have moved on.
    let commit = scene.repository.resolve(new.as_str()).await?;
    let head = scene.repository.commit_info(&commit).await?;
    let (commits, total) = match kind {
        "branch" => commits(scene, update.old.as_ref(), new, branch.as_deref()).await?,
        _ => (Vec::new(), 0),
    };
    let shown = describe(scene, &commits, &head).await?;
    if let Some((head, commits)) = shown.split_first() {
        events.push(event(Kind::Push, push(scene, update, commits, total, head)));
    }
    if let (Some(_), Some(branch)) = (&update.old, &branch) {
        events.extend(of_pulls(scene, branch).await);
    }
    Ok(events)
}

/// The newest commits that an update brought, and how many it brought.
async fn commits(
    scene: &Scene<'_>,
    old: Option<&ObjectId>,
    new: &ObjectId,
    branch: Option<&str>,
) -> Result<(Vec<CommitInfo>, usize), GitError> {
    let repository = scene.repository;
    // A new branch brings what the default branch has not.
    let base = match old {
        Some(old) => Some(old.clone()),
        None if branch == Some(&scene.wanted.default_branch) => None,
        None => repository
            .resolve(&format!("refs/heads/{}", scene.wanted.default_branch))
            .await
            .ok(),
    };
    let log = repository.log(new, base.as_ref(), None, 0, MAX_COMMITS).await?;
    let total = match log.len() < MAX_COMMITS {
        true => log.len(),
        false => repository.count(new, base.as_ref()).await?,
    };
    Ok((log, total))
}

/// The head, then the commits, with the files that each changed.
async fn describe(
    scene: &Scene<'_>,
    commits: &[CommitInfo],
    head: &CommitInfo,
) -> Result<Vec<Value>, GitError> {
    let mut asked = String::new();
    let again = commits.iter().filter(|info| info.id != head.id);
    for info in std::iter::once(head).chain(again) {
        asked.push_str(info.id.as_str());
        asked.push('\n');
    }
    let printed = scene
        .repository
        .command("diff-tree")
        .args(["--stdin", "-r", "--root", "--no-renames", "--name-status", "-z"])
        .arg("--diff-merges=first-parent")
        .input(asked)
        .output()
        .await?;
    let files = files(&printed);
    let shown = std::iter::once(head).chain(commits).map(|info| {
        let mut shape = shapes::payload_commit(scene.host.url(), &scene.slug, info);
        let empty = Files::default();
        let changed = files.get(info.id.as_str()).unwrap_or(&empty);
        shape["added"] = changed.added.clone().into();
        shape["removed"] = changed.removed.clone().into();
        shape["modified"] = changed.modified.clone().into();
        shape
    });
    Ok(shown.collect())
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Files {
    added: Vec<String>,
    removed: Vec<String>,
    modified: Vec<String>,
}

/// Reads `COMMIT<nul>` and `STATUS<nul>PATH<nul>`.
fn files(printed: &[u8]) -> HashMap<String, Files> {
    let mut words = printed.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let (mut found, mut current, mut paths) = (HashMap::<String, Files>::new(), String::new(), 0);
    while let Some(word) = words.next() {
        if word.len() > 1 {
            current = word.trim().to_owned();
            continue;
        }
        let (Some(status), Some(path)) = (word.chars().next(), words.next()) else {
            break;
        };
        paths += 1;
        if paths > MAX_PATHS {
            break;
        }
        let files = found.entry(current.clone()).or_default();
        let list = match status {
            'A' => &mut files.added,
            'D' => &mut files.removed,
            _ => &mut files.modified,
        };
        list.push(path.into_owned());
    }
    found
}

fn push(scene: &Scene<'_>, update: &Update, commits: &[Value], total: usize, head: &Value) -> Value {
    let zero = ObjectId::zero();
    let (before, after) = (
        update.old.as_ref().unwrap_or(&zero),
        update.new.as_ref().unwrap_or(&zero),
    );
    json!({
        "ref": update.name.as_str(), "before": before.as_str(), "after": after.as_str(),
        "compare_url": format!("{}/{}/compare/{before}...{after}", scene.host.url(), scene.slug),
        "commits": commits, "total_commits": total, "head_commit": head,
        "repository": null, "pusher": shapes::caller(scene.by), "sender": null,
    })
}

/// Open pull requests whose head has moved.
async fn of_pulls(scene: &Scene<'_>, branch: &str) -> Vec<Event> {
    let mut events = Vec::new();
    for pull in pulls::open_of(scene.repository, branch).await {
        if let Some(payload) = pull_request(scene, &pull, "synchronized").await {
            events.push(Event {
                kind: Kind::PullRequestSync,
                branch: pull["base"].as_str().map(str::to_owned),
                payload,
            });
        }
    }
    events
}

async fn pull_request(scene: &Scene<'_>, pull: &Value, action: &str) -> Option<Value> {
    let shape = pulls::shape(scene.host, &scene.slug, scene.wanted, scene.repository, pull).await;
    let shape = shape.ok()?;
    let commit = shape["head"]["sha"].clone();
    Some(scene.with(json!({
        "action": action, "number": pull["number"], "pull_request": shape, "requested_reviewer": null,
        "repository": null, "sender": null, "commit_id": commit, "review": null,
    })))
}

/// Tells hooks of a pull request.
pub(crate) async fn pull_changed(scene: &Scene<'_>, pull: &Value, action: &str, changes: Value) {
    tell_of_pull(scene, Kind::PullRequest, pull, action, changes).await;
}

/// Tells hooks that a pull request has other labels.
pub(crate) async fn pull_labelled(scene: &Scene<'_>, pull: &Value, action: &str) {
    tell_of_pull(scene, Kind::PullRequestLabel, pull, action, Value::Null).await;
}

async fn tell_of_pull(scene: &Scene<'_>, kind: Kind, pull: &Value, action: &str, changes: Value) {
    let hooks = listening(scene.host, scene.wanted).await;
    if hooks.is_empty() {
        return;
    }
    let Some(mut payload) = pull_request(scene, pull, action).await else {
        return;
    };
    if !changes.is_null() {
        payload["changes"] = changes;
    }
    let event = Event {
        kind,
        branch: pull["base"].as_str().map(str::to_owned),
        payload,
    };
    announce(scene.host, scene.wanted, scene.repository, &hooks, &event).await;
}

/// Tells hooks of a comment on a pull request.
pub(crate) async fn commented(scene: &Scene<'_>, pull: &Value, comment: &Value, action: &str) {
    let hooks = listening(scene.host, scene.wanted).await;
    if hooks.is_empty() {
        return;
    }
    let shape = pulls::shape(scene.host, &scene.slug, scene.wanted, scene.repository, pull).await;
    let Ok(shape) = shape else { return };
    let event = Event {
        kind: Kind::PullRequestComment,
        branch: None,
        payload: scene.with(json!({
            "action": action, "issue": shapes::issue(&shape), "pull_request": shape, "comment": comment,
            "repository": null, "sender": null, "is_pull": true,
        })),
    };
    announce(scene.host, scene.wanted, scene.repository, &hooks, &event).await;
}

/// What a test delivery tells: the newest commit of the default branch.
pub(crate) async fn test(scene: &Scene<'_>) -> Value {
    let name = format!("refs/heads/{}", scene.wanted.default_branch);
    let (Ok(reference), Ok(tip)) = (
        fairway_gitops_git::RefName::parse(&name),
        scene.repository.resolve(&name).await,
    ) else {
        let nothing = json!({"ref": name, "commits": [], "total_commits": 0, "head_commit": null});
        return scene.with(nothing);
    };
    let update = Update {
        name: reference,
        old: Some(tip.clone()),
        new: Some(tip.clone()),
    };
    let shown = match scene.repository.commit_info(&tip).await {
        Ok(head) => describe(scene, &[], &head).await.unwrap_or_default(),
        Err(_) => Vec::new(),
    };
    let head = shown.first().cloned().unwrap_or_default();
    scene.with(push(scene, &update, &shown, 1, &head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_files_are_read() {
        let one = "a".repeat(40);
        let two = "b".repeat(40);
        let printed = format!("{one}\0A\0x/y\0D\0z\0T\0link\0{two}\0M\0{one}\0");
        let found = files(printed.as_bytes());
        assert_eq!(found[&one].added, ["x/y"]);
        assert_eq!(
            (&found[&one].removed[..], &found[&one].modified[..]),
            (&["z".to_owned()][..], &["link".to_owned()][..])
        );
        assert_eq!(found[&two].modified, [one]);
        assert!(files(b"").is_empty());
        let many = format!("{two}\0") + &"A\0p\0".repeat(MAX_PATHS + 10);
        assert_eq!(files(many.as_bytes())[&two].added.len(), MAX_PATHS);
    }
}
