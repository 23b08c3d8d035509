//! Objects of other parts as entities: people of a realm, their groups, and templates that were put into the API.

use serde_json::{Map, Value, json};

use crate::annotation;

/// What metadata of Kubernetes have no field for, as annotations of a Template's object.
const TITLE: &str = "fairway.dev/title";
const DESCRIPTION: &str = "fairway.dev/description";
const TAGS: &str = "fairway.dev/tags";

/// A person of a realm (`fairway.dev/v1alpha1` User). Whose member he is, groups say.
pub fn user(object: &Value) -> Option<Value> {
    let mut entity = named(object, "User", "users")?;
    entity["spec"] = json!({"profile": profile(object), "memberOf": []});
    Some(entity)
}

/// A group of a realm (`fairway.dev/v1alpha1` Group).
pub fn group(object: &Value) -> Option<Value> {
    let mut entity = named(object, "Group", "groups")?;
    let members = object["spec"]["members"].as_array().cloned().unwrap_or_default();
    entity["spec"] = json!({"type": "team", "profile": profile(object), "children": [], "members": members});
    Some(entity)
}

fn named(object: &Value, kind: &str, plural: &str) -> Option<Value> {
    let name = object.pointer("/metadata/name")?.as_str()?;
    let from = format!("fairway:{plural}/{name}");
    Some(json!({
        "apiVersion": "backstage.io/v1alpha1", "kind": kind,
        "metadata": {"name": name, "annotations": {annotation::LOCATION: from, annotation::ORIGIN: from}},
    }))
}

fn profile(object: &Value) -> Value {
    let mut profile = Map::new();
    for field in ["displayName", "email"] {
        if let Some(text) = object["spec"][field].as_str().filter(|text| !text.is_empty()) {
            profile.insert(field.to_owned(), text.into());
        }
    }
    Value::Object(profile)
}

/// A Template of the API.
pub fn template(object: &Value) -> Option<Value> {
    let metadata = object.get("metadata")?;
    let mut shown = Map::new();
    for field in ["name", "namespace", "labels"] {
        if let Some(value) = metadata.get(field) {
            shown.insert(field.to_owned(), value.clone());
        }
    }
    let mut annotations = metadata["annotations"].as_object().cloned().unwrap_or_default();
    let mut take = |key: &str| {
        let text = annotations.shift_remove(key)?;
        text.as_str().map(str::to_owned)
    };
    if let Some(title) = take(TITLE) {
        shown.insert("title".to_owned(), title.into());
    }
    if let Some(description) = take(DESCRIPTION) {
        shown.insert("description".to_owned(), description.into());
    }
    if let Some(tags) = take(TAGS) {
        shown.insert("tags".to_owned(), tags.split(',').collect());
    }
    annotations.shift_remove("kcp.io/cluster");
    shown.insert("annotations".to_owned(), Value::Object(annotations));
    Some(json!({
        "apiVersion": "scaffolder.backstage.io/v1beta3", "kind": "Template", "metadata": shown, "spec": object.get("spec")?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::validate;

    #[test]
    fn objects_become_good_entities() {
        let people = json!({
            "metadata": {"name": "alice", "uid": "u"}, "spec": {"displayName": "Alice", "email": "a@example.com", "disabled": false},
        });
        let alice = user(&people).unwrap();
        assert_eq!(validate(&alice).unwrap().to_string(), "user:default/alice");
        assert_eq!(
            alice["spec"],
            json!({"profile": {"displayName": "Alice", "email": "a@example.com"}, "memberOf": []})
        );
        let team =
            group(&json!({"metadata": {"name": "developers"}, "spec": {"members": ["alice"]}})).unwrap();
        assert_eq!(validate(&team).unwrap().to_string(), "group:default/developers");
        assert_eq!(team["spec"]["members"], json!(["alice"]));
        let object = json!({
            "apiVersion": "scaffolder.backstage.io/v1beta3", "kind": "Template",
            "metadata": {
                "name": "vm", "namespace": "default", "uid": "u", "managedFields": [],
                "annotations": {
                    TITLE: "A machine", TAGS: "vm,debian", "kcp.io/cluster": "abc",
                    "backstage.io/source-location": "builtin:virtual-machine/",
                },
            },
            "spec": {"type": "service", "steps": []},
        });
        let entity = template(&object).unwrap();
        assert_eq!(validate(&entity).unwrap().to_string(), "template:default/vm");
        assert_eq!(
            entity["metadata"],
            json!({
                "name": "vm", "namespace": "default", "title": "A machine", "tags": ["vm", "debian"],
                "annotations": {"backstage.io/source-location": "builtin:virtual-machine/"},
            })
        );
        assert_eq!(user(&json!({})), None);
    }
}
