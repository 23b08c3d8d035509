//! Encoding of built-in objects, as Go's encoder would do it: the form in which upstream stores and shows them.
//!
//! What Go leaves out when it is empty is taken out (`labels: {}`, `hostNetwork: false`), what it always writes is put in
//! (`status: {}`, `resources: {}`, `lastProbeTime: null`). Clients notice: managed fields, diffs and equality are about
//! the stored form. It is a step of its own, after defaulting, because patches and applied configurations must keep
//! what they say explicitly.

use serde_json::{Map, Value};

use super::kinds::KindInfo;
use super::scalar;
use super::table::Presence;
use super::types::{Types, types};
use crate::shape::ShapeId;

/// Brings an object that passed [`super::check`] into the form in which upstream stores it.
pub fn encode(kind: &KindInfo, object: &mut Value) {
    value(types(), kind.shape, object);
}

/// Like [`encode`], for any built-in type.
pub fn encode_shape(shape: ShapeId, object: &mut Value) {
    value(types(), shape, object);
}

fn value(types: &'static Types, id: ShapeId, target: &mut Value) {
    // Scalars and free-form values look the same in Go.
    if types.format(id).is_some() {
        return;
    }
    let atom = types.shapes.get(id);
    match (target, &atom.map, &atom.list) {
        (Value::Object(object), Some(map), _) => match map.element {
            None => structure(types, id, object),
            Some(element) if types.format(element).is_none() => {
                object.values_mut().for_each(|child| value(types, element, child));
            }
            Some(_) => {}
        },
        (Value::Array(items), _, Some(list)) if types.format(list.element).is_none() => {
            items.iter_mut().for_each(|item| value(types, list.element, item));
        }
        _ => {}
    }
}

fn structure(types: &'static Types, id: ShapeId, object: &mut Map<String, Value>) {
    let Some(map) = &types.shapes.get(id).map else {
        return;
    };
    let presence = types.presence(id);
    let presence_of = |name: &str| {
        let index = map.fields.binary_search_by(|f| f.name.as_ref().cmp(name)).ok()?;
        Some((&map.fields[index], *presence.get(index)?))
    };
    let mut dropped = false;
    for (key, child) in object.iter_mut() {
        let Some((field, presence)) = presence_of(key) else {
            continue;
        };
        if presence == Presence::OmitEmpty && is_empty(child) {
            // Null marks what the second step takes out; nothing that may be left out is null otherwise.
            *child = Value::Null;
            dropped = true;
        } else {
            value(types, field.shape, child);
        }
    }
    if dropped {
        object.retain(|key, child| {
            !child.is_null() || presence_of(key).is_none_or(|(_, p)| p != Presence::OmitEmpty)
        });
    }
    for (field, presence) in map.fields.iter().zip(presence) {
        if !matches!(presence, Presence::Always | Presence::AlwaysNull)
            || object.contains_key(field.name.as_ref())
        {
            continue;
        }
        let mut added = match presence {
            Presence::AlwaysNull => Value::Null,
            _ => zero(types, field.shape),
        };
        value(types, field.shape, &mut added);
        object.insert(field.name.clone().into_owned(), added);
    }
}

/// The zero value of something that Go does not hold by pointer.
fn zero(types: &Types, id: ShapeId) -> Value {
    match types.format(id) {
        Some(format) => scalar::zero(format).unwrap_or(Value::Null),
        None => Value::Object(Map::new()),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::builtin::kind;

    #[track_caller]
    fn becomes(group: &str, kind_name: &str, mut object: Value, expected: &Value) {
        encode(kind(group, "v1", kind_name).unwrap(), &mut object);
        assert_eq!(object, *expected);
    }

    #[test]
    fn empty_values_are_left_out_unless_go_holds_a_pointer() {
        becomes(
            "",
            "Pod",
            json!({
                "metadata": {"labels": {}, "finalizers": [], "generation": 0, "name": "a"},
                "spec": {
                    "containers": [{"name": "c", "env": [], "stdin": false, "securityContext": {"privileged": false}}],
                    "hostNetwork": false, "automountServiceAccountToken": false, "priority": 0, "nodeName": "",
                    "volumes": [{"name": "v", "emptyDir": {}}],
                },
                "status": {},
            }),
            &json!({
                "metadata": {"name": "a"},
                "spec": {
                    "containers": [{"name": "c", "resources": {}, "securityContext": {"privileged": false}}],
                    "automountServiceAccountToken": false, "priority": 0,
                    "volumes": [{"name": "v", "emptyDir": {}}],
                },
                "status": {},
            }),
        );
    }

    #[test]
    fn what_go_always_writes_is_there() {
        // The result of marshalling an appsv1.Deployment with one container and one without anything.
        becomes(
            "apps",
            "Deployment",
            json!({"spec": {"template": {"metadata": {"labels": {"a": ""}}, "spec": {"containers": [{}]}}}}),
            &json!({
                "metadata": {},
                "spec": {
                    "selector": null,
                    "strategy": {},
                    "template": {
                        "metadata": {"labels": {"a": ""}},
                        "spec": {"containers": [{"name": "", "resources": {}}]},
                    },
                },
                "status": {},
            }),
        );
        becomes(
            "rbac.authorization.k8s.io",
            "ClusterRole",
            json!({}),
            &json!({"metadata": {}, "rules": null}),
        );
        becomes("", "ConfigMap", json!({"data": {}}), &json!({"metadata": {}}));
    }

    #[test]
    fn times_that_are_not_set_are_null() {
        let pod = json!({"metadata": {}, "spec": {"containers": []}, "status": {"conditions": [{"type": "Ready"}]}});
        let mut pod = pod;
        encode(kind("", "v1", "Pod").unwrap(), &mut pod);
        assert_eq!(
            pod["status"]["conditions"][0],
            json!({"type": "Ready", "lastProbeTime": null, "lastTransitionTime": null, "status": ""})
        );
    }

    #[test]
    fn encoding_twice_changes_nothing() {
        for info in crate::builtin::kinds() {
            let mut object = json!({"metadata": {"name": "a", "labels": {}}});
            encode(info, &mut object);
            let once = object.clone();
            encode(info, &mut object);
            assert_eq!(object, once, "{}", info.kind);
        }
    }
}
