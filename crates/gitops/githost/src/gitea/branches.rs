//! Branches and tags.

use fairway_gitops_git::{NewCommit, ObjectId, RefName, Reference};
use serde_json::{Value, json};

use super::call::{Answer, Call, Problem};
use super::contents::signature;
use super::land::land;
use super::shapes;
use crate::access::Verb;
use crate::host::Opened;
use crate::push::rules::Means;
use crate::route::Slug;

async fn shape(
    call: &Call,
    slug: &Slug,
    opened: &Opened,
    name: &str,
    commit: &ObjectId,
) -> Result<Value, Problem> {
    let info = opened.repository.commit_info(commit).await?;
    let is_protected = opened.wanted.protected.iter().any(|rule| {
        rule.branches == name || fairway_text_glob::matches_between(&rule.branches, name, &['/'])
    });
    Ok(json!({
        "name": name, "commit": shapes::payload_commit(call.host.url(), slug, &info), "protected": is_protected,
        "required_approvals": 0, "enable_status_check": false, "status_check_contexts": [], "user_can_push": true,
        "user_can_merge": true, "effective_branch_protection_name": "",
    }))
}

/// `GET branches`
pub(super) async fn list(call: &Call, slug: &Slug) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    let branches = opened.repository.references("refs/heads/").await?;
    let (skip, limit) = call.page();
    let mut shown = Vec::new();
    for branch in branches.iter().skip(skip).take(limit) {
        if let Some(commit) = &branch.commit {
            shown.push(shape(call, slug, &opened, branch.name.short(), commit).await?);
        }
    }
    Ok(call.paged(shown, branches.len()))
}

/// `GET branches/{branch}`
pub(super) async fn get(call: &Call, slug: &Slug, branch: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    let name = RefName::branch(branch).map_err(|_| Problem::not_found("The branch"))?;
    let commit = opened.repository.resolve(name.as_str()).await?;
    Ok(Answer::ok(shape(call, slug, &opened, branch, &commit).await?))
}

/// `POST branches`
pub(super) async fn create(call: &Call, slug: &Slug) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let branch = call.text("new_branch_name").unwrap_or("");
    let name = RefName::branch(branch)?;
    let from = call.text("old_ref_name").or_else(|| call.text("old_branch_name"));
    let commit = opened
        .repository
        .resolve(from.unwrap_or(&opened.wanted.default_branch))
        .await?;
    land(call, slug, &opened, name, None, Some(commit.clone()), Means::Push).await?;
    Ok(Answer::created(
        shape(call, slug, &opened, branch, &commit).await?,
    ))
}

/// `DELETE branches/{branch}`
pub(super) async fn delete(call: &Call, slug: &Slug, branch: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let name = RefName::branch(branch).map_err(|_| Problem::not_found("The branch"))?;
    remove(call, slug, &opened, name).await
}

async fn remove(call: &Call, slug: &Slug, opened: &Opened, name: RefName) -> Result<Answer, Problem> {
    let old = opened.repository.reference(&name).await?;
    let old = old.ok_or_else(|| Problem::not_found(name.short()))?;
    land(call, slug, opened, name, Some(old), None, Means::Push).await?;
    Ok(Answer::nothing())
}

async fn tag_shape(
    call: &Call,
    slug: &Slug,
    opened: &Opened,
    tag: &Reference,
) -> Result<Option<Value>, Problem> {
    let Some(commit) = &tag.commit else {
        return Ok(None);
    };
    let url = call.host.url();
    let message = match tag.id == *commit {
        true => opened.repository.commit_info(commit).await?.message,
        false => {
            let object = opened.repository.object(&tag.id, "tag", 1 << 20).await?;
            let text = String::from_utf8_lossy(&object).into_owned();
            text.split_once("\n\n")
                .map_or(String::new(), |(_, message)| message.to_owned())
        }
    };
    Ok(Some(json!({
        "name": tag.name.short(), "message": message, "id": tag.id.as_str(),
        "commit": {"url": format!("{url}/api/v1/repos/{slug}/git/commits/{commit}"), "sha": commit.as_str(), "created": null},
        "zipball_url": "", "tarball_url": "",
    })))
}

/// `GET tags`
pub(super) async fn list_tags(call: &Call, slug: &Slug) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    let tags = opened.repository.references("refs/tags/").await?;
    let (skip, limit) = call.page();
    let mut shown = Vec::new();
    for tag in tags.iter().skip(skip).take(limit) {
        shown.extend(tag_shape(call, slug, &opened, tag).await?);
    }
    Ok(call.paged(shown, tags.len()))
}

async fn find_tag(opened: &Opened, name: &RefName) -> Result<Reference, Problem> {
    let tags = opened.repository.references("refs/tags/").await?;
    let found = tags.into_iter().find(|tag| tag.name == *name);
    found.ok_or_else(|| Problem::not_found("The tag"))
}

/// `GET tags/{tag}`
pub(super) async fn get_tag(call: &Call, slug: &Slug, tag: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    let name = RefName::tag(tag).map_err(|_| Problem::not_found("The tag"))?;
    let found = find_tag(&opened, &name).await?;
    let shape = tag_shape(call, slug, &opened, &found).await?;
    Ok(Answer::ok(shape.ok_or_else(|| Problem::not_found("The tag"))?))
}

/// `POST tags`: annotated with a message, light without one.
pub(super) async fn create_tag(call: &Call, slug: &Slug) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let name = RefName::tag(call.text("tag_name").unwrap_or(""))?;
    let target = call
        .text("target")
        .filter(|text| !text.is_empty())
        .unwrap_or(&opened.wanted.default_branch);
    let commit = opened.repository.resolve(target).await?;
    let id = match call.text("message").filter(|text| !text.is_empty()) {
        None => commit.clone(),
        Some(message) => {
            let made = NewCommit {
                parents: Vec::new(),
                changes: Vec::new(),
                author: signature(&call.body, "tagger", &opened),
                committer: signature(&call.body, "tagger", &opened),
                message: format!("{}\n", message.trim_end()),
            };
            opened.repository.create_tag(name.short(), &commit, &made).await?
        }
    };
    land(
        call,
        slug,
        &opened,
        name.clone(),
        None,
        Some(id.clone()),
        Means::Push,
    )
    .await?;
    let made = Reference {
        name,
        id,
        commit: Some(commit),
    };
    let shape = tag_shape(call, slug, &opened, &made).await?;
    Ok(Answer::created(shape.unwrap_or_default()))
}

/// `DELETE tags/{tag}`
pub(super) async fn delete_tag(call: &Call, slug: &Slug, tag: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let name = RefName::tag(tag).map_err(|_| Problem::not_found("The tag"))?;
    remove(call, slug, &opened, name).await
}
