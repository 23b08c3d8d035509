//! Things as Gitea's JSON has them.

use std::fmt::Write as _;

use fairway_gitops_git::{CommitInfo, Signature};
use serde_json::{Value, json};

use crate::access::Caller;
use crate::catalog::Wanted;
use crate::route::Slug;

/// What a caller may do with a repository.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Permissions {
    pub admin: bool,
    pub push: bool,
    pub pull: bool,
}

/// This moment.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A number for a thing that has none: the same for the same text, and one that JavaScript can hold.
pub(crate) fn number_of(text: &str) -> u64 {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let start = digest.as_ref().iter().take(6);
    start.fold(0, |number, byte| number * 256 + u64::from(*byte))
}

/// A user by name.
pub(crate) fn user(name: &str) -> Value {
    json!({
        "id": number_of(name), "login": name, "login_name": "", "source_id": 0, "full_name": "", "email": "",
        "avatar_url": "", "html_url": "", "language": "", "is_admin": false, "active": true, "restricted": false,
        "prohibit_login": false, "location": "", "website": "", "description": "", "visibility": "public",
        "followers_count": 0, "following_count": 0, "starred_repos_count": 0, "username": name,
    })
}

/// Who asks.
pub(crate) fn caller(caller: &Caller) -> Value {
    let mut shape = user(caller.short_name());
    shape["full_name"] = caller.name().into();
    shape
}

/// An organisation, which is a workspace.
pub(crate) fn organisation(owner: &str) -> Value {
    json!({
        "id": number_of(owner), "name": owner, "username": owner, "full_name": owner, "email": "", "avatar_url": "",
        "description": "", "website": "", "location": "", "visibility": "private", "repo_admin_change_team_access": false,
    })
}

/// A repository.
pub(crate) fn repository(
    url: &str,
    slug: &Slug,
    wanted: &Wanted,
    is_empty: bool,
    size: u64,
    permissions: Permissions,
) -> Value {
    let html = format!("{url}/{slug}");
    json!({
        "id": number_of(&wanted.uid), "owner": user(&slug.owner), "name": slug.name, "full_name": slug.to_string(),
        "description": wanted.description, "empty": is_empty, "private": wanted.is_private, "fork": false, "template": false,
        "parent": null, "mirror": wanted.mirror.is_some(), "size": size / 1024, "language": "", "languages_url": "",
        "html_url": html, "url": format!("{url}/api/v1/repos/{slug}"), "link": "", "ssh_url": "",
        "clone_url": format!("{html}.git"),
        "original_url": wanted.mirror.as_ref().map_or("", |mirror| &mirror.url),
        "website": "", "stars_count": 0, "forks_count": 0, "watchers_count": 0, "open_issues_count": 0, "open_pr_counter": 0,
        "release_counter": 0, "default_branch": wanted.default_branch, "archived": false, "created_at": wanted.created,
        "updated_at": wanted.created, "archived_at": "1970-01-01T00:00:00Z",
        "permissions": {"admin": permissions.admin, "push": permissions.push, "pull": permissions.pull},
        "has_issues": false, "has_wiki": false, "has_pull_requests": true, "has_projects": false, "has_releases": false,
        "has_packages": false, "has_actions": false, "internal": false, "mirror_interval": "", "object_format_name": "sha1",
        "default_merge_style": "merge", "avatar_url": "", "topics": [],
    })
}

/// A pull request as the issue that it is to those who know issues only.
pub(crate) fn issue(pull: &Value) -> Value {
    let mut issue = json!({
        "id": pull["id"], "url": pull["url"], "html_url": pull["html_url"], "number": pull["number"], "user": pull["user"],
        "original_author": "", "original_author_id": 0, "title": pull["title"], "body": pull["body"], "ref": "", "assets": [],
        "labels": pull["labels"], "milestone": null, "assignee": null, "assignees": null, "state": pull["state"], "is_locked": false,
        "comments": pull["comments"], "created_at": pull["created_at"], "updated_at": pull["updated_at"],
        "closed_at": pull["closed_at"], "due_date": null,
    });
    issue["pull_request"] = json!({
        "merged": pull["merged"], "merged_at": pull["merged_at"], "draft": false, "html_url": pull["html_url"],
    });
    issue["repository"] = pull["base"]["repo"].clone();
    issue
}

/// A moment, as RFC 3339 with the offset that it was written with.
pub(crate) fn moment(signature: &Signature) -> String {
    let local = signature
        .seconds
        .saturating_add(i64::from(signature.offset_minutes) * 60);
    let stamp = jiff::Timestamp::from_second(local).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let mut text = stamp.strftime("%Y-%m-%dT%H:%M:%S").to_string();
    let minutes = signature.offset_minutes;
    match minutes {
        0 => text.push('Z'),
        _ => {
            let sign = if minutes < 0 { '-' } else { '+' };
            let _ = write!(text, "{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60);
        }
    }
    text
}

fn identity(signature: &Signature) -> Value {
    json!({"name": signature.name, "email": signature.email, "date": moment(signature)})
}

/// A commit in a list of commits.
pub(crate) fn commit(url: &str, slug: &Slug, info: &CommitInfo) -> Value {
    let api = format!("{url}/api/v1/repos/{slug}");
    let link = |id: &str| format!("{api}/git/commits/{id}");
    let parents: Vec<Value> = info
        .parents
        .iter()
        .map(|id| json!({"url": link(id.as_str()), "sha": id.as_str(), "created": "0001-01-01T00:00:00Z"}))
        .collect();
    json!({
        "url": link(info.id.as_str()), "sha": info.id.as_str(), "created": moment(&info.committer),
        "html_url": format!("{url}/{slug}/commit/{}", info.id),
        "commit": {
            "url": link(info.id.as_str()), "author": identity(&info.author), "committer": identity(&info.committer),
            "message": info.message,
            "tree": {"url": format!("{api}/git/trees/{}", info.tree), "sha": info.tree.as_str(), "created": moment(&info.committer)},
            "verification": verification(info),
        },
        "author": null, "committer": null, "parents": parents, "files": [], "stats": {"total": 0, "additions": 0, "deletions": 0},
    })
}

pub(crate) fn verification(info: &CommitInfo) -> Value {
    let reason = if info.is_signed {
        "gpg.error.no_gpg_keys_found"
    } else {
        "gpg.error.not_signed_commit"
    };
    json!({"verified": false, "reason": reason, "signature": "", "signer": null, "payload": ""})
}

/// A commit that changed files: the same without another level.
pub(crate) fn file_commit(url: &str, slug: &Slug, info: &CommitInfo) -> Value {
    let mut shape = commit(url, slug, info);
    let inner = shape["commit"].take();
    json!({
        "url": shape["url"], "sha": shape["sha"], "created": shape["created"], "html_url": shape["html_url"],
        "author": inner["author"], "committer": inner["committer"], "parents": shape["parents"], "message": inner["message"],
        "tree": inner["tree"],
    })
}

/// A commit as branches and webhooks have it.
pub(crate) fn payload_commit(url: &str, slug: &Slug, info: &CommitInfo) -> Value {
    let person =
        |signature: &Signature| json!({"name": signature.name, "email": signature.email, "username": ""});
    json!({
        "id": info.id.as_str(), "message": info.message, "url": format!("{url}/{slug}/commit/{}", info.id),
        "author": person(&info.author), "committer": person(&info.committer), "verification": verification(info),
        "timestamp": moment(&info.committer), "added": null, "removed": null, "modified": null,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_keep_their_offset() {
        let at = |seconds, offset_minutes| {
            moment(&Signature {
                name: String::new(),
                email: String::new(),
                seconds,
                offset_minutes,
            })
        };
        assert_eq!(at(1_700_000_000, 0), "2023-11-14T22:13:20Z");
        assert_eq!(at(1_700_000_000, 90), "2023-11-14T23:43:20+01:30");
        assert_eq!(at(1_700_000_000, -330), "2023-11-14T16:43:20-05:30");
        assert_eq!(at(i64::MAX, 0), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn numbers_fit_into_javascript() {
        assert_eq!(number_of("a"), number_of("a"));
        assert_ne!(number_of("a"), number_of("b"));
        assert!(number_of("a") < 1 << 53);
    }
}
