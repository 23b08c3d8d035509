//! What must be done to a stored default object so that it grants what this version expects.
//!
//! Administrators may change default roles, so nothing that they added is taken away, and an object whose
//! `autoupdate` annotation says false is left alone.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::binding::Subject;
use crate::escalation::covers;
use crate::rule::PolicyRule;

/// The annotation by which an administrator keeps an object from being changed.
const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// What to do with a default object.
#[derive(Debug, Clone, PartialEq)]
pub enum Reconciliation {
    /// It is as it should be, or protected.
    Nothing,
    /// It does not exist: create the expected object.
    Create,
    /// Write this object in its place.
    Update(Value),
    /// Delete it and create the expected object: a binding's role cannot be changed.
    Recreate,
}

/// Compares a default object with the one that is stored under its name.
pub fn reconcile(existing: Option<&Value>, expected: &Value) -> Reconciliation {
    let Some(existing) = existing else {
        return Reconciliation::Create;
    };
    let protected = existing
        .pointer("/metadata/annotations")
        .and_then(|all| all.get(AUTO_UPDATE));
    if protected.and_then(Value::as_str) == Some("false") {
        return Reconciliation::Nothing;
    }
    if existing.get("roleRef") != expected.get("roleRef") {
        return Reconciliation::Recreate;
    }
    let mut updated = existing.clone();
    add_metadata(&mut updated, expected);
    if expected.get("roleRef").is_some() {
        add_subjects(&mut updated, expected);
    } else {
        add_rules(&mut updated, expected);
        reconcile_aggregation(&mut updated, expected);
    }
    if updated == *existing {
        Reconciliation::Nothing
    } else {
        Reconciliation::Update(updated)
    }
}

/// Adds the annotations and labels that are missing. What is there counts.
fn add_metadata(object: &mut Value, expected: &Value) {
    for field in ["annotations", "labels"] {
        let Some(Value::Object(wanted)) = expected.pointer(&format!("/metadata/{field}")) else {
            continue;
        };
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            continue;
        };
        let present = metadata.entry(field).or_insert_with(|| Value::Object(Map::new()));
        if present.is_null() {
            *present = Value::Object(Map::new());
        }
        let Some(present) = present.as_object_mut() else {
            continue;
        };
        for (key, value) in wanted {
            present.entry(key.as_str()).or_insert_with(|| value.clone());
        }
    }
}

/// Adds `items` to the list in a field of the object.
fn append(object: &mut Value, field: &str, items: Vec<Value>) {
    let Some(object) = object.as_object_mut().filter(|_| !items.is_empty()) else {
        return;
    };
    match object.entry(field).or_insert(Value::Null) {
        Value::Array(list) => list.extend(items),
        other => *other = Value::Array(items),
    }
}

fn add_rules(object: &mut Value, expected: &Value) {
    let held = PolicyRule::list_from(object.get("rules"));
    let missing = covers(&held, &PolicyRule::list_from(expected.get("rules")));
    let missing = missing
        .iter()
        .filter_map(|rule| serde_json::to_value(rule).ok())
        .collect();
    append(object, "rules", missing);
}

fn add_subjects(object: &mut Value, expected: &Value) {
    let read = |subject: &Value| Subject::deserialize(subject).ok();
    let list = |object: &Value| {
        object
            .get("subjects")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let present: Vec<Option<Subject>> = list(object).iter().map(read).collect();
    let missing = list(expected)
        .into_iter()
        .filter(|subject| !present.contains(&read(subject)))
        .collect();
    append(object, "subjects", missing);
}

/// Adds the selectors that are missing; a role that is not meant to be aggregated no longer is.
fn reconcile_aggregation(object: &mut Value, expected: &Value) {
    let Some(wanted) = expected.get("aggregationRule").filter(|rule| !rule.is_null()) else {
        if object.get("aggregationRule").is_some_and(|rule| !rule.is_null()) {
            object
                .as_object_mut()
                .and_then(|object| object.shift_remove("aggregationRule"));
        }
        return;
    };
    let selectors = |rule: &Value| {
        let list = rule.get("clusterRoleSelectors").and_then(Value::as_array);
        list.cloned().unwrap_or_default()
    };
    let present = object.get("aggregationRule").map(selectors).unwrap_or_default();
    let missing: Vec<Value> = selectors(wanted)
        .into_iter()
        .filter(|item| !present.contains(item))
        .collect();
    let Some(fields) = object.as_object_mut().filter(|_| !missing.is_empty()) else {
        return;
    };
    let rule = fields.entry("aggregationRule").or_insert(Value::Null);
    if rule.is_null() {
        *rule = Value::Object(Map::new());
    }
    append(rule, "clusterRoleSelectors", missing);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Reconciliation, reconcile};

    fn role(resources: &[&str]) -> Value {
        json!({"metadata": {"name": "r", "labels": {"l": "1"}}, "rules": [
            {"apiGroups": [""], "resources": resources, "verbs": ["get"]}]})
    }

    fn updated(existing: &Value, expected: &Value) -> Value {
        match reconcile(Some(existing), expected) {
            Reconciliation::Update(object) => object,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn default_objects_are_reconciled_with_themselves() {
        for item in super::super::objects() {
            assert_eq!(reconcile(None, &item.object), Reconciliation::Create);
            assert_eq!(
                reconcile(Some(&item.object), &item.object),
                Reconciliation::Nothing,
                "{}",
                item.name
            );
        }
    }

    #[test]
    fn missing_rules_and_labels_are_added_and_extras_kept() {
        let mut existing = role(&["pods", "extra"]);
        existing["metadata"]["labels"] = json!({"l": "mine", "other": "x"});
        existing["metadata"]["resourceVersion"] = json!("7");
        let object = updated(&existing, &role(&["pods", "services"]));
        assert_eq!(object["rules"][0], existing["rules"][0]);
        assert_eq!(
            object["rules"][1],
            json!({"verbs": ["get"], "apiGroups": [""], "resources": ["services"]})
        );
        assert_eq!(object["metadata"], existing["metadata"]);
        let mut bare = role(&["pods"]);
        bare["metadata"] = json!({"name": "r"});
        assert_eq!(
            updated(&bare, &role(&["pods"]))["metadata"]["labels"],
            json!({"l": "1"})
        );
        assert_eq!(
            reconcile(Some(&role(&["pods", "extra"])), &role(&["pods"])),
            Reconciliation::Nothing
        );
    }

    #[test]
    fn protected_objects_are_left_alone() {
        let mut existing = role(&["extra"]);
        existing["metadata"]["annotations"] = json!({"rbac.authorization.kubernetes.io/autoupdate": "false"});
        assert_eq!(
            reconcile(Some(&existing), &role(&["pods"])),
            Reconciliation::Nothing
        );
    }

    #[test]
    fn aggregation_follows_what_is_expected() {
        let selector = |label: &str| json!({"matchLabels": {label: "true"}});
        let mut expected = role(&[]);
        expected["rules"] = json!(null);
        expected["aggregationRule"] = json!({"clusterRoleSelectors": [selector("a"), selector("b")]});
        let mut existing = role(&["gathered"]);
        existing["aggregationRule"] = json!({"clusterRoleSelectors": [selector("mine"), selector("a")]});
        let object = updated(&existing, &expected);
        let want = json!([selector("mine"), selector("a"), selector("b")]);
        assert_eq!(object["aggregationRule"]["clusterRoleSelectors"], want);
        assert_eq!(object["rules"], existing["rules"]);
        let plain = updated(&role(&["pods"]), &expected);
        assert_eq!(plain["aggregationRule"], expected["aggregationRule"]);
        let object = updated(&existing, &role(&["gathered"]));
        assert_eq!(object.get("aggregationRule"), None);
    }

    #[test]
    fn bindings_gain_subjects_and_are_made_anew_for_another_role() {
        let binding = |role: &str, users: &[&str]| {
            let subjects: Vec<Value> = users
                .iter()
                .map(|name| json!({"kind": "User", "name": name}))
                .collect();
            json!({"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": role}, "subjects": subjects})
        };
        let object = updated(&binding("r", &["mine", "a"]), &binding("r", &["a", "b"]));
        assert_eq!(object, binding("r", &["mine", "a", "b"]));
        assert_eq!(
            reconcile(Some(&binding("r", &["a", "x"])), &binding("r", &["a"])),
            Reconciliation::Nothing
        );
        assert_eq!(
            reconcile(Some(&binding("old", &["a"])), &binding("r", &["a"])),
            Reconciliation::Recreate
        );
        let mut empty = binding("r", &[]);
        empty.as_object_mut().unwrap().shift_remove("subjects");
        assert_eq!(updated(&empty, &binding("r", &["a"])), binding("r", &["a"]));
    }
}
