//! Entities as the portal's catalog shows them to somebody: those of files, and people, groups and templates of the workspace alike.

use fairway_portal_template::names::EntityRef;
use http::Request;
use serde_json::Value;

use crate::World;
use crate::ports::Person;
use crate::who::is_name;
use fairway_controller::WorkspaceId;

/// The largest entity.
const MOST: usize = 1 << 20;
/// The most members of a group that are looked at.
const MEMBERS: usize = 50;

/// An entity, if there is one that the person may see.
pub(crate) async fn find(
    world: &World,
    workspace: &WorkspaceId,
    person: &Person,
    entity: &EntityRef,
) -> Result<Option<Value>, String> {
    let entity = entity.clone().folded();
    let parts = [&entity.kind, &entity.namespace, &entity.name];
    if !parts.iter().all(|part| is_name(part)) {
        return Err(format!("{entity} is not a reference to an entity"));
    }
    let path = format!(
        "/api/catalog/entities/by-name/{}/{}/{}",
        entity.kind, entity.namespace, entity.name
    );
    let request = Request::builder().uri(path).header("accept", "application/json");
    let request = request.body(Vec::new()).map_err(|error| error.to_string())?;
    let answer = world.options.apis.ask(workspace, person, request, MOST).await?;
    match answer.status().as_u16() {
        200 => serde_json::from_slice(answer.body())
            .map(Some)
            .map_err(|error| format!("the catalog's answer cannot be read: {error}")),
        404 => Ok(None),
        code => Err(format!("the catalog answers {code}")),
    }
}

/// The address of a person's or group's profile.
pub(crate) fn address(entity: &Value) -> Option<&str> {
    let address = entity["spec"]["profile"]["email"].as_str();
    address.filter(|address| address.contains('@'))
}

/// Who is in a group, as it is related both ways.
pub(crate) fn members(group: &Value) -> Vec<String> {
    let relations = group["relations"].as_array().into_iter().flatten();
    let related = relations
        .filter(|relation| relation["type"] == "hasMember")
        .filter_map(|relation| relation["targetRef"].as_str().map(str::to_owned));
    let mut found: Vec<String> = related.collect();
    found.sort();
    found.dedup();
    found.truncate(MEMBERS);
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_those_that_are_related() {
        let group = json!({
            "spec": {"profile": {"email": "team@example.com"}},
            "relations": [
                {"type": "hasMember", "targetRef": "user:default/bob"}, {"type": "hasMember", "targetRef": "user:default/ann"},
                {"type": "parentOf", "targetRef": "group:default/other"}, {"type": "hasMember", "targetRef": "user:default/bob"},
            ],
        });
        assert_eq!(members(&group), ["user:default/ann", "user:default/bob"]);
        assert_eq!(address(&group), Some("team@example.com"));
        assert_eq!(address(&json!({"spec": {"profile": {"email": "none"}}})), None);
    }
}
