//! Merging a pull request: with a merge commit, as one commit, or commit by commit on top of the base.

use fairway_gitops_git::{Merged, NewCommit, ObjectId, RefName};
use http::StatusCode;
use serde_json::Value;

use super::{ends, find, update};
use crate::access::Verb;
use crate::gitea::call::{Answer, Call, Problem};
use crate::gitea::contents::signature;
use crate::gitea::land::land;
use crate::gitea::shapes::now;
use crate::hooks::payload::{self, Scene};
use crate::host::Opened;
use crate::push::rules::Means;
use crate::route::Slug;

fn conflict(paths: &[String]) -> Problem {
    let why = format!(
        "the branches disagree in {}; bring the base into the head first",
        paths.join(", ")
    );
    Problem::new(StatusCode::CONFLICT, why)
}

/// `POST pulls/{number}/merge`
pub(in crate::gitea) async fn merge(call: &Call, slug: &Slug, number: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let pull = find(&opened, number).await?;
    if pull["state"] != "open" {
        return Err(Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "the pull request is not open",
        ));
    }
    if call.flag("merge_when_checks_succeed") == Some(true) {
        let why = "nobody waits for checks here; merge when they have succeeded";
        return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, why));
    }
    let (Some(base), Some(head)) = ends(&opened.repository, &pull).await? else {
        return Err(Problem::not_found("A branch of the pull request"));
    };
    if call
        .text("head_commit_id")
        .is_some_and(|expected| !expected.is_empty() && expected != head.as_str())
    {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "the head has moved: look at it again",
        ));
    }
    let style = call.text("Do").or_else(|| call.text("do")).unwrap_or("merge");
    let made = match style {
        "merge" => {
            one_commit(
                call,
                &opened,
                &pull,
                vec![base.clone(), head.clone()],
                &base,
                &head,
            )
            .await?
        }
        "squash" => one_commit(call, &opened, &pull, vec![base.clone()], &base, &head).await?,
        "rebase" => {
            let committer = signature(&Value::Null, "", &opened);
            let rebased = opened.repository.rebase(&head, &base, &committer).await?;
            rebased.map_err(|paths| conflict(&paths))?
        }
        "rebase-merge" => {
            let committer = signature(&Value::Null, "", &opened);
            let rebased = opened.repository.rebase(&head, &base, &committer).await?;
            let rebased = rebased.map_err(|paths| conflict(&paths))?;
            let parents = vec![base.clone(), rebased.clone()];
            one_commit(call, &opened, &pull, parents, &base, &rebased).await?
        }
        "fast-forward-only" => match opened.repository.is_ancestor(&base, &head).await? {
            true => head.clone(),
            false => {
                return Err(Problem::new(
                    StatusCode::CONFLICT,
                    "the base has commits that the head has not",
                ));
            }
        },
        other => {
            let why =
                format!("{other:?} is none of merge, squash, rebase, rebase-merge and fast-forward-only");
            return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, why));
        }
    };
    let target = RefName::branch(pull["base"].as_str().unwrap_or(""))?;
    land(
        call,
        slug,
        &opened,
        target,
        Some(base.clone()),
        Some(made.clone()),
        Means::Merge,
    )
    .await?;
    let (by, old, new) = (
        opened.caller.short_name().to_owned(),
        base.to_string(),
        head.to_string(),
    );
    let merged = update(&opened, pull["number"].as_u64().unwrap_or(0), move |pull| {
        pull["state"] = "closed".into();
        pull["merged"] = true.into();
        pull["merged_by"] = by.into();
        pull["merge_commit_sha"] = made.to_string().into();
        pull["base_sha"] = old.into();
        pull["head_sha"] = new.into();
        for field in ["merged_at", "closed_at"] {
            pull[field] = now().into();
        }
        Ok(())
    })
    .await?;
    call.host.tell_pulls(slug);
    payload::pull_changed(
        &Scene::of(&call.host, slug, &opened),
        &merged,
        "closed",
        Value::Null,
    )
    .await;
    if call.flag("delete_branch_after_merge") == Some(true) {
        let source = RefName::branch(pull["head"].as_str().unwrap_or(""))?;
        land(call, slug, &opened, source, Some(head), None, Means::Merge).await?;
    }
    Ok(Answer::with(StatusCode::OK, Value::Null))
}

/// What both branches are together, as a commit on top of `parents`.
async fn one_commit(
    call: &Call,
    opened: &Opened,
    pull: &Value,
    parents: Vec<ObjectId>,
    base: &ObjectId,
    head: &ObjectId,
) -> Result<ObjectId, Problem> {
    let tree = match opened.repository.merge_trees(base, head).await? {
        Merged::Tree(tree) => tree,
        Merged::Conflicts(paths) => return Err(conflict(&paths)),
    };
    let title = pull["title"].as_str().unwrap_or("");
    let default = match parents.len() {
        1 => format!("{title} (#{})", pull["number"]),
        _ => format!(
            "Merge pull request '{title}' (#{}) from {} into {}",
            pull["number"],
            word(&pull["head"]),
            word(&pull["base"])
        ),
    };
    let given = call
        .text("MergeTitleField")
        .or_else(|| call.text("merge_title_field"));
    let mut message = given
        .filter(|text| !text.is_empty())
        .map_or(default, str::to_owned);
    let body = call
        .text("MergeMessageField")
        .or_else(|| call.text("merge_message_field"));
    if let Some(body) = body.filter(|text| !text.is_empty()) {
        message.push_str("\n\n");
        message.push_str(body);
    }
    message.push('\n');
    let commit = NewCommit {
        parents,
        changes: Vec::new(),
        author: signature(&Value::Null, "", opened),
        committer: signature(&Value::Null, "", opened),
        message,
    };
    Ok(opened.repository.commit_tree(&tree, &commit).await?)
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}
