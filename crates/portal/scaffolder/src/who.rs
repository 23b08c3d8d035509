//! Who a run acts for, found out again before each step.
//!
//! What an authenticator said when the run was started may be old. Of people of a realm (`authentication.fairway.dev/realm`) their User
//! and the Groups that they are in now are looked up; whoever is disabled or gone acts no more. Of others only what was said is known;
//! what they may do is judged by RBAC at each request anyway.

use fairway_api::Kind;
use fairway_controller::error::status;
use fairway_controller::{Failure, Requests, WorkspaceId};
use fairway_portal_template::run::Setback;
use serde_json::Value;

use crate::World;
use crate::ports::Person;

const REALM: &str = "authentication.fairway.dev/realm";
const HOME: &str = "authentication.fairway.dev/home";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

const USERS: &str = "/apis/fairway.dev/v1alpha1/users";
const GROUPS: &str = "/apis/fairway.dev/v1alpha1/groups";

/// Somebody has to do something about it.
fn for_good(why: String) -> Setback {
    Setback { why, may_pass: false }
}

/// Whether a request that failed may succeed later although nobody does anything about it.
pub(crate) fn may_pass(failure: &Failure) -> bool {
    match failure {
        Failure::Api { source, .. } => match status(source) {
            Some(status) => may_pass_as(status.code),
            None => true,
        },
        _ => true,
    }
}

/// The same of an answer's code: what was refused stays refused; what was too early, too much or broken does not.
pub(crate) fn may_pass_as(code: u16) -> bool {
    !(400..500).contains(&code) || matches!(code, 408 | 409 | 425 | 429)
}

/// The person as he is now, or why he acts no more.
pub(crate) async fn now(world: &World, workspace: &WorkspaceId, person: &Person) -> Result<Person, Setback> {
    if person.username.is_empty() {
        return Err(for_good("nobody is named who started it".to_owned()));
    }
    if let Some(rest) = person.username.strip_prefix(SERVICE_ACCOUNT) {
        return account(world, workspace, person, rest).await;
    }
    let first = |key: &str| person.extra.get(key).and_then(|values| values.first());
    let Some(realm) = first(REALM) else {
        return Ok(person.clone());
    };
    // Those of root's realm are at home in no workspace: the root is above all of them.
    let home = match (first(HOME), realm.as_str()) {
        (Some(home), _) => WorkspaceId::parse(home).map_err(|error| for_good(error.to_string()))?,
        (None, "root") => WorkspaceId::root(),
        (None, _) => return Ok(person.clone()),
    };
    let requests = Requests::new(world.own.of(&home));
    let name = person.short_name();
    let gone = || {
        for_good(format!(
            "user {} is disabled or does not exist any more",
            person.username
        ))
    };
    if !is_name(name) {
        return Err(gone());
    }
    let unknown = |failure: Failure| Setback {
        why: format!("who the user is cannot be found out: {}", failure.sentence()),
        may_pass: may_pass(&failure),
    };
    let user = requests.get(&format!("{USERS}/{name}")).await.map_err(unknown)?;
    let user = user.ok_or_else(gone)?;
    let is_same = person.uid.is_empty() || user["metadata"]["uid"] == person.uid.as_str();
    if user["spec"]["disabled"] == true || !is_same {
        return Err(gone());
    }
    let groups = requests.list(GROUPS).await.map_err(unknown)?;
    let is_member = |group: &&Value| {
        let members = group["spec"]["members"].as_array();
        members.is_some_and(|all| all.iter().any(|member| member == name))
    };
    let own = groups
        .iter()
        .filter(is_member)
        .filter_map(|group| group["metadata"]["name"].as_str())
        .map(|group| format!("{realm}/{group}"));
    // Groups that are not the realm's, such as system:authenticated, are what they were.
    let prefix = format!("{realm}/");
    let mut now: Vec<String> = person
        .groups
        .iter()
        .filter(|group| !group.starts_with(&prefix))
        .cloned()
        .collect();
    now.extend(own);
    now.push(format!("{realm}/everyone"));
    Ok(Person {
        groups: now,
        ..person.clone()
    })
}

/// A service account acts as long as it exists.
async fn account(
    world: &World,
    workspace: &WorkspaceId,
    person: &Person,
    name: &str,
) -> Result<Person, Setback> {
    let gone = || for_good(format!("service account {name} does not exist any more"));
    let (namespace, account) = name.split_once(':').ok_or_else(gone)?;
    // Those of other workspaces are not known here, and those of the platform have no object.
    if !is_name(namespace) || !is_name(account) {
        return Err(gone());
    }
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}");
    let found = Requests::new(world.own.of(workspace)).get(&path).await;
    let unknown = |failure: Failure| Setback {
        why: failure.sentence(),
        may_pass: may_pass(&failure),
    };
    let found = found.map_err(unknown)?.ok_or_else(gone)?;
    match person.uid.is_empty() || found["metadata"]["uid"] == person.uid.as_str() {
        true => Ok(person.clone()),
        false => Err(gone()),
    }
}

/// Whether a name can be part of a path.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=253).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
        && !name.starts_with('.')
}

/// The path of the objects of a kind.
pub(crate) fn collection(kind: Kind, namespace: &str) -> String {
    match namespace {
        "" => format!("/apis/{}/{}", kind.api_version(), kind.plural),
        namespace => format!(
            "/apis/{}/namespaces/{namespace}/{}",
            kind.api_version(),
            kind.plural
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_stays_refused() {
        for (code, expected) in [
            (403, false),
            (404, false),
            (422, false),
            (409, true),
            (429, true),
            (500, true),
            (503, true),
        ] {
            assert_eq!(may_pass_as(code), expected, "{code}");
        }
        assert!(may_pass(&Failure::NotYet("not yet".to_owned())));
    }
}
