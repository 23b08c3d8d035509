//! One committer: a reconciler edits a copy of the object, and what changed is written as one patch.
//!
//! Spec and status are never written in the same pass: each has its own endpoint, so two writes could leave a state
//! between them that nobody meant. Metadata goes with the spec.

use std::fmt::Debug;

use kube::Error;
use kube::api::{Api, Patch, PatchParams};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// What there is to write.
#[derive(Clone, Debug, PartialEq)]
pub enum Commit {
    /// Nothing.
    Nothing,
    /// A merge patch of the object.
    Object(Value),
    /// A merge patch of its status.
    Status(Value),
}

/// A pass that changed both halves of an object: a mistake in the reconciler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a pass changed both the object and its status")]
pub struct BothChanged;

/// Compares an object with its edited copy. The patch carries the resource version, so it fails if the object changed
/// meanwhile.
pub fn decide(before: &Value, after: &Value) -> Result<Commit, BothChanged> {
    let (mut object_patch, mut status_patch) = (Map::new(), Map::new());
    if let Some(Value::Object(changes)) = difference(before, after) {
        for (field, change) in changes {
            let half = if field == "status" {
                &mut status_patch
            } else {
                &mut object_patch
            };
            half.insert(field, change);
        }
    }
    let locked = |mut patch: Map<String, Value>| {
        let version = before
            .pointer("/metadata/resourceVersion")
            .cloned()
            .unwrap_or(Value::Null);
        let metadata = patch
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("resourceVersion".to_owned(), version);
        }
        Value::Object(patch)
    };
    match (object_patch.is_empty(), status_patch.is_empty()) {
        (true, true) => Ok(Commit::Nothing),
        (false, true) => Ok(Commit::Object(locked(object_patch))),
        (true, false) => Ok(Commit::Status(locked(status_patch))),
        (false, false) => Err(BothChanged),
    }
}

/// The merge patch from one value to the other; `None` if they are equal.
pub fn difference(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return Some(after.clone());
    };
    let mut patch = Map::new();
    for (field, value) in after {
        match before.get(field) {
            None => {
                patch.insert(field.clone(), value.clone());
            }
            Some(old) => {
                if let Some(change) = difference(old, value) {
                    patch.insert(field.clone(), change);
                }
            }
        }
    }
    for field in before.keys().filter(|field| !after.contains_key(*field)) {
        patch.insert(field.clone(), Value::Null);
    }
    Some(Value::Object(patch))
}

/// Writes a decision.
pub async fn write<K>(api: &Api<K>, name: &str, commit: Commit, manager: &str) -> Result<(), Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    let params = PatchParams {
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    };
    match commit {
        Commit::Nothing => Ok(()),
        Commit::Object(patch) => api.patch(name, &params, &Patch::Merge(patch)).await.map(drop),
        Commit::Status(patch) => api
            .patch_status(name, &params, &Patch::Merge(patch))
            .await
            .map(drop),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{BothChanged, Commit, decide};

    #[test]
    fn one_patch_or_none() {
        let before = json!({
            "metadata": {"name": "a", "resourceVersion": "5", "labels": {"x": "1"}},
            "spec": {"list": [1, 2], "deep": {"a": 1, "b": 2}},
            "status": {"phase": "Old"},
        });
        let edited = |edit: fn(&mut Value)| {
            let mut after = before.clone();
            edit(&mut after);
            after
        };
        type Case = (&'static str, fn(&mut Value), Result<Commit, BothChanged>);
        let cases: [Case; 5] = [
            ("nothing", |_| {}, Ok(Commit::Nothing)),
            (
                "spec, with removal and a list that is replaced",
                |o| {
                    o["spec"]["list"] = json!([1]);
                    o["spec"]["deep"].as_object_mut().unwrap().shift_remove("b");
                },
                Ok(Commit::Object(json!({
                    "spec": {"list": [1], "deep": {"b": null}}, "metadata": {"resourceVersion": "5"},
                }))),
            ),
            (
                "metadata",
                |o| o["metadata"]["labels"]["y"] = json!("2"),
                Ok(Commit::Object(
                    json!({"metadata": {"labels": {"y": "2"}, "resourceVersion": "5"}}),
                )),
            ),
            (
                "status",
                |o| o["status"]["phase"] = json!("New"),
                Ok(Commit::Status(
                    json!({"status": {"phase": "New"}, "metadata": {"resourceVersion": "5"}}),
                )),
            ),
            (
                "both",
                |o| {
                    o["spec"]["list"] = json!([]);
                    o["status"] = json!({});
                },
                Err(BothChanged),
            ),
        ];
        for (name, edit, want) in cases {
            assert_eq!(decide(&before, &edited(edit)), want, "{name}");
        }
    }
}
