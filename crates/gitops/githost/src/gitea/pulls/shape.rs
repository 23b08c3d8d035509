//! A pull request as Gitea's JSON has it.

use fairway_gitops_git::{Merged, ObjectId, Repository};
use serde_json::{Value, json};

use super::ends;
use crate::catalog::Wanted;
use crate::gitea::call::Problem;
use crate::gitea::{labels, shapes};
use crate::host::Host;
use crate::route::Slug;

/// With what is true of it now: where its branches are, and whether they can be merged.
pub(crate) async fn shape(
    host: &Host,
    slug: &Slug,
    wanted: &Wanted,
    repository: &Repository,
    pull: &Value,
) -> Result<Value, Problem> {
    let (base, head) = ends(repository, pull).await?;
    let is_open = pull["state"] == "open";
    let (mut mergeable, mut merge_base) = (false, None);
    if let (Some(base), Some(head)) = (&base, &head) {
        merge_base = repository.merge_base(base, head).await?;
        let merged = async || repository.merge_trees(base, head).await;
        mergeable = is_open && merge_base.is_some() && matches!(merged().await, Ok(Merged::Tree(_)));
    }
    let url = host.url();
    let link = format!("{url}/{slug}/pulls/{}", pull["number"]);
    let end = |branch: &Value, id: Option<&ObjectId>| {
        json!({
            "label": branch, "ref": branch, "sha": id.map_or("", ObjectId::as_str),
            "repo_id": shapes::number_of(&wanted.uid),
            "repo": {"id": shapes::number_of(&wanted.uid), "name": slug.name, "full_name": slug.to_string(),
                     "owner": shapes::user(&slug.owner), "clone_url": host.clone_url(slug), "private": wanted.is_private},
        })
    };
    let is_merged = pull["merged"] == true;
    let labels = labels::shown(host, slug, repository, pull).await?;
    Ok(json!({
        "id": pull["number"], "url": link, "number": pull["number"],
        "user": shapes::user(pull["user"].as_str().unwrap_or("")),
        "title": pull["title"], "body": pull["body"], "labels": labels, "milestone": null, "assignee": null, "assignees": null,
        "requested_reviewers": [], "state": pull["state"], "draft": false, "is_locked": false, "comments": pull["comments"],
        "html_url": link,
        "diff_url": format!("{url}/api/v1/repos/{slug}/pulls/{}.diff", pull["number"]),
        "patch_url": format!("{url}/api/v1/repos/{slug}/pulls/{}.patch", pull["number"]),
        "mergeable": mergeable, "merged": is_merged, "merged_at": pull["merged_at"],
        "merge_commit_sha": pull["merge_commit_sha"],
        "merged_by": pull["merged_by"].as_str().map(shapes::user), "allow_maintainer_edit": false,
        "base": end(&pull["base"], base.as_ref()), "head": end(&pull["head"], head.as_ref()),
        "merge_base": merge_base.as_ref().map_or("", ObjectId::as_str), "due_date": null,
        "created_at": pull["created_at"], "updated_at": pull["updated_at"], "closed_at": pull["closed_at"],
    }))
}
