//! Updates: what was wrong before and did not change is tolerated.

use serde_json::json;

use super::{errors, load, spec_schema};
use crate::structural::Budget;

#[test]
fn unchanged_parts_are_tolerated() {
    let schema = spec_schema(&json!({
        "a": {"type": "string", "pattern": "^ok$"},
        "b": {"type": "string"},
        "nested": {"type": "object", "properties": {
            "c": {"type": "integer", "maximum": 1},
            "d": {"type": "string"}}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {
                "k": {"type": "string"}, "v": {"type": "integer", "maximum": 1}}}},
        "list": {"type": "array", "items": {"type": "integer", "maximum": 1}},
    }));
    let old = json!({"spec": {
        "a": "bad", "b": "x", "nested": {"c": 5},
        "map": [{"k": "one", "v": 9}, {"k": "two", "v": 0}],
        "list": [7, 8]}});
    let check = |name: &str, spec: serde_json::Value, expected: &[&str]| {
        assert_eq!(
            errors(&schema, &json!({"spec": spec}), Some(&old)),
            expected,
            "{name}"
        );
    };
    check("nothing changed", old["spec"].clone(), &[]);
    check(
        "another field changed",
        json!({"a": "bad", "b": "y", "nested": {"c": 5}}),
        &[],
    );
    check(
        "a sibling inside changed",
        json!({"nested": {"c": 5, "d": "new"}}),
        &[],
    );
    check(
        "the bad field changed",
        json!({"a": "worse"}),
        &[r#"spec.a: Invalid value: "worse": spec.a in body should match '^ok$'"#],
    );
    check(
        "a map list was reordered and extended",
        json!({"map": [{"k": "two"}, {"k": "one", "v": 9}, {"k": "3"}]}),
        &[],
    );
    check(
        "an element moved to another key",
        json!({"map": [{"k": "four", "v": 9}]}),
        &["spec.map[0].v: Invalid value: 9: spec.map[0].v in body should be less than or equal to 1"],
    );
    check(
        "an atomic list is a unit: unchanged",
        json!({"list": [7, 8]}),
        &[],
    );
    check(
        "an atomic list is a unit: changed",
        json!({"list": [7, 0]}),
        &["spec.list[0]: Invalid value: 7: spec.list[0] in body should be less than or equal to 1"],
    );
}

#[test]
fn new_requirements_hold_for_changed_objects() {
    let schema = spec_schema(&json!({"o": {"type": "object", "required": ["a"], "properties": {
        "a": {"type": "string"}, "b": {"type": "string"}}}}));
    let old = json!({"spec": {"o": {"b": "x"}}});
    assert_eq!(
        errors(&schema, &json!({"spec": {"o": {"b": "x"}}}), Some(&old)),
        [""; 0]
    );
    assert_eq!(
        errors(&schema, &json!({"spec": {"o": {"b": "y"}}}), Some(&old)),
        ["spec.o.a: Required value"]
    );
}

#[test]
fn duplicates_are_tolerated_if_they_were_there() {
    let schema = spec_schema(
        &json!({"s": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}),
    );
    let bad = json!({"spec": {"s": ["a", "a"]}});
    assert_eq!(
        errors(&schema, &bad, None),
        [r#"spec.s[1]: Duplicate value: "a""#]
    );
    assert_eq!(
        errors(&schema, &json!({"spec": {"s": ["a", "a", "b", "b"]}}), Some(&bad)),
        [""; 0]
    );
    assert_eq!(
        errors(&schema, &bad, Some(&json!({"spec": {"s": ["a"]}}))),
        [r#"spec.s[1]: Duplicate value: "a""#]
    );
}

#[test]
fn a_status_update_looks_at_the_status() {
    let schema = load(&json!({"type": "object", "properties": {
        "spec": {"type": "string"},
        "status": {"type": "object", "required": ["b"], "properties": {
            "a": {"type": "integer"}, "b": {"type": "integer"}}}}}));
    let old = json!({"spec": 5, "status": {"b": 1}});
    let check = |new: serde_json::Value, expected: &[&str]| {
        let found: Vec<String> = schema
            .validate_status(&new, &old, &mut Budget::default())
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, expected, "{new}");
    };
    check(json!({"spec": 5}), &[]);
    check(
        json!({"spec": 5, "status": {"a": "x"}}),
        &[
            r#"status.a: Invalid value: "string": a in body must be of type integer: "string""#,
            "status.b: Required value",
        ],
    );
    check(
        json!({"status": 1}),
        &[r#"status: Invalid value: "integer":  in body must be of type object: "integer""#],
    );
}
