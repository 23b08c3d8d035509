//! Commits, and what differs between two.

use fairway_gitops_git::{FileDifference, ObjectId};
use serde_json::{Value, json};

use super::call::{Answer, Call, Problem};
use super::shapes;
use crate::access::Verb;
use crate::host::Opened;
use crate::route::Slug;

/// The most commits in a comparison.
const MAX_COMPARED: usize = 500;

/// `GET commits`
pub(super) async fn list(call: &Call, slug: &Slug) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    let asked = call.query.get("sha").filter(|text| !text.is_empty());
    let start = opened
        .repository
        .resolve(asked.unwrap_or(&opened.wanted.default_branch))
        .await?;
    let path = call
        .query
        .get("path")
        .map(String::as_str)
        .filter(|path| !path.is_empty());
    let (skip, limit) = call.page();
    let without = match call.query.get("not").filter(|text| !text.is_empty()) {
        Some(revision) => Some(opened.repository.resolve(revision).await?),
        None => None,
    };
    let without = without.as_ref();
    let commits = opened.repository.log(&start, without, path, skip, limit).await?;
    let total = match path {
        None => opened.repository.count(&start, without).await?,
        // One more than is shown says that there are more; how many, would cost a walk over all of history.
        Some(_) => skip + commits.len() + usize::from(commits.len() == limit),
    };
    let is_wanted = |field: &str| call.query.get(field).is_none_or(|text| text != "false");
    let (with_files, with_figures) = (is_wanted("files"), is_wanted("stat"));
    let mut shown = Vec::new();
    for info in &commits {
        let mut shape = shapes::commit(call.host.url(), slug, info);
        if with_files || with_figures {
            describe(&opened, info.parents.first(), &info.id, &mut shape).await?;
        }
        if !with_files {
            shape["files"] = json!([]);
        }
        shown.push(shape);
    }
    Ok(call.paged(shown, total))
}

/// `GET git/commits/{revision}`, also with `.diff` or `.patch` at its end: what it changed against its first parent.
pub(super) async fn get(call: &Call, slug: &Slug, revision: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    let plain = revision
        .strip_suffix(".diff")
        .or_else(|| revision.strip_suffix(".patch"));
    let id = opened.repository.resolve(plain.unwrap_or(revision)).await?;
    let info = opened.repository.commit_info(&id).await?;
    if plain.is_some() {
        let parent = match info.parents.first() {
            Some(parent) => parent.clone(),
            None => nothing_like(&id)?,
        };
        let patch = opened.repository.diff(&parent, &id).await?;
        return Ok(Answer::bytes(patch, "text/plain; charset=utf-8"));
    }
    let mut shape = shapes::commit(call.host.url(), slug, &info);
    describe(&opened, info.parents.first(), &id, &mut shape).await?;
    Ok(Answer::ok(shape))
}

/// The tree without files, which a first commit is compared with. Git knows it in every repository; its name depends on the hash.
fn nothing_like(commit: &ObjectId) -> Result<ObjectId, Problem> {
    let name = match commit.as_str().len() {
        40 => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        _ => "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
    };
    Ok(ObjectId::parse(name)?)
}

/// Says which files a commit changed.
async fn describe(
    opened: &Opened,
    old: Option<&ObjectId>,
    new: &ObjectId,
    shape: &mut Value,
) -> Result<(), Problem> {
    let files = match old {
        Some(old) => opened.repository.differences(old, new).await?,
        None => {
            let paths = opened.repository.changed_paths(None, new).await?;
            let added = paths.into_iter().map(|path| FileDifference {
                path,
                old_path: None,
                kind: 'A',
                additions: None,
                deletions: None,
            });
            added.collect()
        }
    };
    let additions: u64 = files.iter().filter_map(|file| file.additions).sum();
    let deletions: u64 = files.iter().filter_map(|file| file.deletions).sum();
    shape["files"] = files
        .iter()
        .map(|file| json!({"filename": file.path, "status": word(file.kind)}))
        .collect();
    shape["stats"] = json!({"total": additions + deletions, "additions": additions, "deletions": deletions});
    Ok(())
}

/// What happened to a file, in Gitea's word.
pub(super) fn word(kind: char) -> &'static str {
    match kind {
        'A' => "added",
        'D' => "removed",
        'R' => "renamed",
        _ => "modified",
    }
}

/// `GET compare/{base}...{head}`
pub(super) async fn compare(call: &Call, slug: &Slug, range: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    let split = range.split_once("...").or_else(|| range.split_once(".."));
    let (base, head) = split.ok_or_else(|| Problem::wrong("write what to compare as BASE...HEAD"))?;
    let base = opened.repository.resolve(base).await?;
    let head = opened.repository.resolve(head).await?;
    let commits = opened
        .repository
        .log(&head, Some(&base), None, 0, MAX_COMPARED)
        .await?;
    let total = opened.repository.count(&head, Some(&base)).await?;
    let shown: Vec<Value> = commits
        .iter()
        .map(|info| shapes::commit(call.host.url(), slug, info))
        .collect();
    Ok(Answer::ok(json!({"total_commits": total, "commits": shown})))
}
