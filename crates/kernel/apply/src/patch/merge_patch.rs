//! JSON merge patch, RFC 7386.

use serde_json::{Map, Value};

use super::PatchError;

/// The document with the patch merged into it.
pub fn merge_patch(mut document: Value, patch: Value) -> Result<Value, PatchError> {
    let (Value::Object(fields), Value::Object(patch)) = (&mut document, patch) else {
        return Err(PatchError::BadRequest("Invalid JSON Patch".to_owned()));
    };
    merge_objects(fields, patch);
    Ok(document)
}

fn merge_objects(document: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (key, patch) in patch {
        if patch.is_null() {
            document.shift_remove(&key);
            continue;
        }
        match (document.get_mut(&key), patch) {
            (Some(Value::Object(fields)), Value::Object(patch)) => merge_objects(fields, patch),
            // What replaces an object is taken as it is; what comes anew, or replaces anything else, loses its nulls.
            (Some(current @ Value::Object(_)), patch) => *current = patch,
            (Some(current), mut patch) => {
                drop_nulls(&mut patch);
                *current = patch;
            }
            (None, mut patch) => {
                drop_nulls(&mut patch);
                document.insert(key, patch);
            }
        }
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn examples_of_the_rfc_that_patch_objects() {
        for (document, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (
                json!({}),
                json!({"a": {"bb": {"ccc": null}}}),
                json!({"a": {"bb": {}}}),
            ),
            (json!({"a": "foo"}), json!({"b": null}), json!({"a": "foo"})),
        ] {
            assert_eq!(
                merge_patch(document.clone(), patch.clone()),
                Ok(expected),
                "{document} with {patch}"
            );
        }
    }

    #[test]
    fn nulls_inside_lists_follow_upstream() {
        for (document, patch, expected) in [
            (
                json!({}),
                json!({"a": [null, {"b": null}]}),
                json!({"a": [null, {}]}),
            ),
            (json!({"a": [1]}), json!({"a": [{"b": null}]}), json!({"a": [{}]})),
            (
                json!({"a": {"x": 1}}),
                json!({"a": [{"b": null}]}),
                json!({"a": [{"b": null}]}),
            ),
        ] {
            assert_eq!(
                merge_patch(document.clone(), patch.clone()),
                Ok(expected),
                "{document} with {patch}"
            );
        }
    }

    #[test]
    fn a_patch_must_be_an_object() {
        for patch in [json!(null), json!([]), json!("a"), json!(1)] {
            assert_eq!(merge_patch(json!({}), patch).unwrap_err().status(), 400);
        }
    }
}
