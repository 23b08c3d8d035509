//! Rules for branches: `spec.protectedBranches` of the Repository, in Gitea's words.
//!
//! What Gitea can demand and this host does not (reviews, signatures, checks that must have passed) is refused by name, so that
//! nobody believes a branch to be safer than it is.

use fairway_controller::Json;
use http::StatusCode;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::call::{Answer, Call, Problem};
use crate::access::Verb;
use crate::catalog::{self, Protection};
use crate::host::Opened;
use crate::route::Slug;

/// The most rules of a repository.
const MAX_RULES: usize = 100;
/// What is not demanded here.
const UNSERVED: [&str; 15] = [
    "push_whitelist_deploy_keys",
    "enable_merge_whitelist",
    "enable_status_check",
    "required_approvals",
    "enable_approvals_whitelist",
    "block_on_rejected_reviews",
    "block_on_official_review_requests",
    "block_on_outdated_branch",
    "dismiss_stale_approvals",
    "ignore_stale_approvals",
    "require_signed_commits",
    "protected_file_patterns",
    "unprotected_file_patterns",
    "enable_force_push_allowlist",
    "block_admin_merge_override",
];

fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_i64() != Some(0),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

/// Takes over what somebody asks for.
fn change(rule: &mut Protection, asked: &Value) -> Result<(), String> {
    if let Some(field) = UNSERVED.iter().find(|field| is_set(&asked[**field])) {
        return Err(format!(
            "{field} is not served here: branches are protected by who may push, and how"
        ));
    }
    if let Some(can_push) = asked["enable_push"].as_bool() {
        rule.require_pull_request = !can_push;
    }
    if let Some(can_force) = asked["enable_force_push"].as_bool() {
        rule.allow_force_push = can_force;
    }
    let names = |field: &str, prefix: &str| -> Vec<String> {
        let found = asked[field].as_array().into_iter().flatten();
        found
            .filter_map(|name| Some(format!("{prefix}{}", name.as_str()?)))
            .collect()
    };
    match asked["enable_push_whitelist"].as_bool() {
        Some(false) => rule.pushers.clear(),
        Some(true) => {
            let users = names("push_whitelist_usernames", "");
            rule.pushers = [users, names("push_whitelist_teams", "group:")].concat();
            if rule.pushers.is_empty() {
                // An empty list would let everybody push.
                rule.require_pull_request = true;
            }
        }
        None => {}
    }
    Ok(())
}

fn shape(rule: &Protection, since: &str) -> Value {
    let (teams, users): (Vec<&String>, Vec<&String>) = rule
        .pushers
        .iter()
        .partition(|pusher| pusher.starts_with("group:"));
    let teams: Vec<&str> = teams
        .iter()
        .map(|team| team.trim_start_matches("group:"))
        .collect();
    json!({
        "branch_name": rule.branches, "rule_name": rule.branches, "enable_push": !rule.require_pull_request,
        "enable_push_whitelist": !rule.pushers.is_empty(), "push_whitelist_usernames": users, "push_whitelist_teams": teams,
        "push_whitelist_deploy_keys": false, "enable_force_push": rule.allow_force_push, "enable_merge_whitelist": false,
        "merge_whitelist_usernames": [], "merge_whitelist_teams": [], "enable_status_check": false, "status_check_contexts": [],
        "required_approvals": 0, "enable_approvals_whitelist": false, "approvals_whitelist_username": [],
        "approvals_whitelist_teams": [], "block_on_rejected_reviews": false, "block_on_official_review_requests": false,
        "block_on_outdated_branch": false, "dismiss_stale_approvals": false, "require_signed_commits": false,
        "protected_file_patterns": "", "unprotected_file_patterns": "", "created_at": since, "updated_at": since,
    })
}

fn record(rule: &Protection) -> Value {
    json!({
        "name": rule.branches, "allowForcePush": rule.allow_force_push, "allowDeletion": rule.allow_deletion,
        "pushers": rule.pushers, "requirePullRequest": rule.require_pull_request,
    })
}

fn find<'a>(rules: &'a [Protection], name: &str) -> Result<&'a Protection, Problem> {
    let found = rules.iter().find(|rule| rule.branches == name);
    found.ok_or_else(|| Problem::not_found("The rule"))
}

/// `GET branch_protections`
pub(super) async fn list(call: &Call, slug: &Slug) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let rules = opened.wanted.protected.iter();
    Ok(call.page_of(rules.map(|rule| shape(rule, &opened.wanted.created)).collect()))
}

/// `GET branch_protections/{name}`
pub(super) async fn get(call: &Call, slug: &Slug, name: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let rule = find(&opened.wanted.protected, name)?;
    Ok(Answer::ok(shape(rule, &opened.wanted.created)))
}

/// Writes the rules, unless somebody else has changed the object since it was read.
async fn write(
    call: &Call,
    opened: &Opened,
    slug: &Slug,
    decide: impl FnOnce(&mut Vec<Protection>) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let api = catalog::api(call.host.client_at(&opened.wanted.workspace));
    let found: Json = api.get(&slug.name).await?;
    let mut rules = catalog::Wanted::read(&opened.wanted.workspace, &found.value).protected;
    decide(&mut rules)?;
    if rules.len() > MAX_RULES {
        return Err(Problem::wrong(format!(
            "a repository has at most {MAX_RULES} rules"
        )));
    }
    let records: Vec<Value> = rules.iter().map(record).collect();
    let patch = json!({
        "metadata": {"resourceVersion": found.metadata.resource_version},
        "spec": {"protectedBranches": records},
    });
    api.patch(&slug.name, &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    Ok(())
}

/// `POST branch_protections`
pub(super) async fn create(call: &Call, slug: &Slug) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let named = call.text("rule_name").filter(|name| !name.is_empty());
    let name = named
        .or_else(|| call.text("branch_name"))
        .unwrap_or("")
        .to_owned();
    if name.is_empty() || name.len() > 255 {
        return Err(Problem::wrong(
            "a rule needs a rule_name: a branch, or a pattern such as release/*",
        ));
    }
    let mut rule = Protection {
        branches: name,
        // Gitea's default: who does not say that pushes are allowed forbids them.
        require_pull_request: true,
        ..Protection::default()
    };
    change(&mut rule, &call.body).map_err(Problem::wrong)?;
    write(call, &opened, slug, |rules| {
        if rules.iter().any(|known| known.branches == rule.branches) {
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                "Branch protection already exist",
            ));
        }
        rules.push(rule.clone());
        Ok(())
    })
    .await?;
    Ok(Answer::created(shape(&rule, &opened.wanted.created)))
}

/// `PATCH branch_protections/{name}`
pub(super) async fn edit(call: &Call, slug: &Slug, name: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let mut changed = find(&opened.wanted.protected, name)?.clone();
    change(&mut changed, &call.body).map_err(Problem::wrong)?;
    write(call, &opened, slug, |rules| {
        let rule = rules.iter_mut().find(|rule| rule.branches == name);
        *rule.ok_or_else(|| Problem::not_found("The rule"))? = changed.clone();
        Ok(())
    })
    .await?;
    Ok(Answer::ok(shape(&changed, &opened.wanted.created)))
}

/// `DELETE branch_protections/{name}`
pub(super) async fn delete(call: &Call, slug: &Slug, name: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    find(&opened.wanted.protected, name)?;
    write(call, &opened, slug, |rules| {
        rules.retain(|rule| rule.branches != name);
        Ok(())
    })
    .await?;
    Ok(Answer::nothing())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_and_shown() {
        let mut rule = Protection::default();
        change(
            &mut rule,
            &json!({"enable_push": true, "enable_push_whitelist": true, "enable_force_push": true,
                                  "push_whitelist_usernames": ["alice"], "push_whitelist_teams": ["ops"]}),
        )
        .unwrap();
        assert_eq!(rule.pushers, ["alice", "group:ops"]);
        assert!(rule.allow_force_push && !rule.require_pull_request);
        let shown = shape(&rule, "t");
        assert_eq!(
            (&shown["push_whitelist_teams"], &shown["enable_push"]),
            (&json!(["ops"]), &json!(true))
        );
        change(&mut rule, &json!({"enable_push": false})).unwrap();
        assert!(rule.require_pull_request && rule.pushers.len() == 2);
        change(
            &mut rule,
            &json!({"enable_push": true, "enable_push_whitelist": true}),
        )
        .unwrap();
        assert!(
            rule.require_pull_request,
            "nobody is on the list, so nobody pushes"
        );
        for (asked, field) in [
            (json!({"required_approvals": 1}), "required_approvals"),
            (json!({"require_signed_commits": true}), "require_signed_commits"),
            (json!({"protected_file_patterns": "*"}), "protected_file_patterns"),
        ] {
            assert!(change(&mut rule, &asked).unwrap_err().contains(field), "{asked}");
        }
        change(
            &mut rule,
            &json!({"required_approvals": 0, "enable_status_check": false, "status_check_contexts": []}),
        )
        .unwrap();
    }
}
