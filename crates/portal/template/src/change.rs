//! What a run changed of something that was there before, so that it can be changed back.
//!
//! Only fields that the run set are kept, as they were and as they became. Changed back is what is still as the run left it: what
//! somebody has changed since is his.

use serde_json::{Map, Value};

/// The fields that a manifest changes, as they were and as they became. Nothing, if it changes none.
pub fn between(applied: &Value, before: &Value, after: &Value) -> Option<(Value, Value)> {
    let (Some(fields), true, true) = (applied.as_object(), before.is_object(), after.is_object()) else {
        return (before != after).then(|| (before.clone(), after.clone()));
    };
    let (mut was, mut is) = (Map::new(), Map::new());
    for (key, field) in fields {
        if let Some((old, new)) = between(field, &before[key], &after[key]) {
            was.insert(key.clone(), old);
            is.insert(key.clone(), new);
        }
    }
    (!was.is_empty()).then_some((Value::Object(was), Value::Object(is)))
}

/// The merge patch that changes back what is still as it became.
pub fn restore(was: &Value, is: &Value, now: &Value) -> Option<Value> {
    if now == is && !(was.is_object() && is.is_object()) {
        return Some(was.clone());
    }
    let (was, is) = (was.as_object()?, is.as_object()?);
    let mut patch = Map::new();
    for (key, became) in is {
        let old = was.get(key).unwrap_or(&Value::Null);
        if let Some(back) = restore(old, became, &now[key]) {
            patch.insert(key.clone(), back);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_changed_is_changed_back_unless_somebody_else_has_changed_it() {
        let before =
            json!({"metadata": {"labels": {"a": "1"}}, "data": {"x": "old", "y": "kept"}, "list": [1]});
        let applied = json!({"metadata": {"labels": {"b": "2"}}, "data": {"x": "new", "y": "kept", "z": "more"}, "list": [2]});
        let after = json!({
            "metadata": {"labels": {"a": "1", "b": "2"}}, "data": {"x": "new", "y": "kept", "z": "more"}, "list": [1, 2],
        });
        let (was, is) = between(&applied, &before, &after).unwrap();
        assert_eq!(
            was,
            json!({"metadata": {"labels": {"b": null}}, "data": {"x": "old", "z": null}, "list": [1]})
        );
        assert_eq!(
            is,
            json!({"metadata": {"labels": {"b": "2"}}, "data": {"x": "new", "z": "more"}, "list": [1, 2]})
        );
        for (reason, now, expected) in [
            ("nobody else was there", after, Some(was.clone())),
            (
                "one field is another's now",
                json!({"metadata": {"labels": {"b": "2"}}, "data": {"x": "his", "z": "more"}, "list": [3]}),
                Some(json!({"metadata": {"labels": {"b": null}}, "data": {"z": null}})),
            ),
            ("it was changed back already", before.clone(), None),
            ("nothing is left of it", json!({}), None),
        ] {
            assert_eq!(restore(&was, &is, &now), expected, "{reason}");
        }
        assert_eq!(between(&before, &before, &before), None, "nothing is changed");
    }

    #[test]
    fn a_field_that_was_not_there_goes_as_a_whole() {
        let (before, after) = (json!({"a": 1}), json!({"a": 1, "b": {"c": {"d": 2}}}));
        let (was, is) = between(&json!({"b": {"c": {"d": 2}}}), &before, &after).unwrap();
        assert_eq!((&was, &is), (&json!({"b": null}), &json!({"b": {"c": {"d": 2}}})));
        assert_eq!(restore(&was, &is, &after), Some(json!({"b": null})));
    }
}
