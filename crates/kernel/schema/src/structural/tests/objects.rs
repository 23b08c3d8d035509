//! Defaulting, pruning, nulls and embedded metadata.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::hostile::{any_json, any_schema};
use super::load;

#[test]
fn defaults() {
    // (schema, object, expected)
    let cases = [
        (
            "null default is none",
            json!({"properties": {"a": {"default": null}}}),
            json!({}),
            json!({}),
        ),
        (
            "scalar",
            json!({"properties": {"a": {"default": 1}}}),
            json!({}),
            json!({"a": 1}),
        ),
        (
            "kept",
            json!({"properties": {"a": {"default": 1}}}),
            json!({"a": 2}),
            json!({"a": 2}),
        ),
        (
            "null is replaced where it is not allowed",
            json!({"properties": {"a": {"default": 1}, "b": {"default": 1, "nullable": true}}}),
            json!({"a": null, "b": null}),
            json!({"a": 1, "b": null}),
        ),
        (
            "nested, only where the parent is there",
            json!({"properties": {"a": {"properties": {"b": {"default": {"c": 1}, "properties": {"d": {"default": 2}}}}}}}),
            json!({}),
            json!({}),
        ),
        (
            "nested in a default",
            json!({"properties": {"a": {"default": {}, "properties": {"b": {"default": {"c": 1}, "properties": {"d": {"default": 2}}}}}}}),
            json!({}),
            json!({"a": {"b": {"c": 1, "d": 2}}}),
        ),
        (
            "items and additional properties",
            json!({"properties": {
                "l": {"items": {"properties": {"a": {"default": 1}}}},
                "m": {"additionalProperties": {"properties": {"a": {"default": 1}}}}}}),
            json!({"l": [{}, {"a": 2}], "m": {"x": {}}}),
            json!({"l": [{"a": 1}, {"a": 2}], "m": {"x": {"a": 1}}}),
        ),
        (
            "null items take the default of items",
            json!({"properties": {
                "l": {"items": {"default": "x"}},
                "m": {"additionalProperties": {"default": "y"}},
                "n": {"items": {"nullable": true, "default": "x"}}}}),
            json!({"l": [null, "a"], "m": {"k": null}, "n": [null]}),
            json!({"l": ["x", "a"], "m": {"k": "y"}, "n": [null]}),
        ),
    ];
    for (name, schema, mut object, expected) in cases {
        load(&schema).default(&mut object);
        assert_eq!(object, expected, "{name}");
    }
}

#[test]
fn nulls() {
    let schema = load(&json!({
        "properties": {
            "a": {"type": "string"}, "b": {"nullable": true}, "c": {"default": 1},
            "d": {"properties": {"e": {"type": "string"}}},
            "l": {"items": {"type": "string"}},
            "m": {"additionalProperties": {"type": "string"}}}}));
    let mut object =
        json!({"a": null, "b": null, "c": null, "d": {"e": null}, "l": [null], "m": {"x": null}, "u": null});
    schema.drop_nulls(&mut object);
    assert_eq!(
        object,
        json!({"b": null, "c": null, "d": {}, "l": [null], "m": {}, "u": null})
    );
}

#[test]
fn pruning() {
    // (schema, object, expected, unknown)
    let cases: Vec<(&str, Value, Value, Value, &[&str])> = vec![
        (
            "empty schema",
            json!({}),
            json!({"a": 1, "metadata": {"x": 1}}),
            json!({"metadata": {"x": 1}}),
            &["a"],
        ),
        (
            "declared fields stay",
            json!({"properties": {"a": {}, "o": {"properties": {"b": {}}}}}),
            json!({"a": 1, "x": 1, "o": {"b": 1, "y": {"z": 1}}, "apiVersion": "v1"}),
            json!({"a": 1, "o": {"b": 1}, "apiVersion": "v1"}),
            &["o.y", "x"],
        ),
        (
            "lists",
            json!({"properties": {"l": {"items": {"properties": {"a": {}}}}, "u": {}}}),
            json!({"l": [{"a": 1, "b": 2}, {"c": 3}], "u": [{"a": 1}]}),
            json!({"l": [{"a": 1}, {}], "u": [{}]}),
            &["l[0].b", "l[1].c", "u[0].a"],
        ),
        (
            "additional properties, also boolean ones",
            json!({"properties": {"m": {"additionalProperties": {"properties": {"a": {}}}}, "n": {"additionalProperties": true}}}),
            json!({"m": {"x": {"a": 1, "b": 2}}, "n": {"y": {"z": 1}}}),
            json!({"m": {"x": {"a": 1}}, "n": {"y": {}}}),
            &["m.x.b", "n.y.z"],
        ),
        (
            "preserved, but pruned again where specified",
            json!({"x-kubernetes-preserve-unknown-fields": true,
                   "properties": {"o": {"properties": {"a": {}}}, "p": {"x-kubernetes-preserve-unknown-fields": true}}}),
            json!({"x": {"y": 1}, "o": {"a": 1, "b": 2}, "p": {"q": 1}}),
            json!({"x": {"y": 1}, "o": {"a": 1}, "p": {"q": 1}}),
            &["o.b"],
        ),
        (
            "embedded resources keep type and metadata",
            json!({"properties": {"e": {"x-kubernetes-embedded-resource": true, "properties": {"spec": {"properties": {"a": {}}}}}}}),
            json!({"e": {"apiVersion": "v1", "kind": "A", "metadata": {"z": 1}, "spec": {"a": 1, "b": 1}, "status": {}}}),
            json!({"e": {"apiVersion": "v1", "kind": "A", "metadata": {"z": 1}, "spec": {"a": 1}}}),
            &["e.spec.b", "e.status"],
        ),
        (
            "metadata elsewhere is a field like others",
            json!({"properties": {"o": {}}}),
            json!({"o": {"metadata": {}}}),
            json!({"o": {}}),
            &["o.metadata"],
        ),
        (
            "lists below preserved fields",
            json!({"properties": {"l": {"x-kubernetes-preserve-unknown-fields": true, "items": {"properties": {"a": {"properties": {"b": {}}}}}}}}),
            json!({"l": [{"a": {"b": 1, "c": 1}, "z": 1}]}),
            json!({"l": [{"a": {"b": 1}, "z": 1}]}),
            &["l[0].a.c"],
        ),
    ];
    for (name, schema, mut object, expected, unknown) in cases {
        let found = load(&schema).prune(&mut object);
        assert_eq!(object, expected, "{name}");
        assert_eq!(found, unknown, "{name}");
    }
}

#[test]
fn embedded_metadata_is_read_as_a_type() {
    let schema = load(
        &json!({"properties": {"e": {"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true}}}),
    );
    let mut object = json!({"e": {"apiVersion": "v1", "kind": "A", "metadata": {
        "name": "n", "generateName": "", "unknown": 1, "creationTimestamp": null, "labels": {"a": null}, "annotations": {},
        "deletionTimestamp": "2020-01-01T01:00:00+01:00", "generation": 0, "deletionGracePeriodSeconds": 0,
        "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "u", "extra": true}],
        "finalizers": []}}});
    assert_eq!(
        schema.coerce(&mut object),
        Ok(vec![
            "e.metadata.ownerReferences[0].extra".into(),
            "e.metadata.unknown".into()
        ])
    );
    assert_eq!(
        object["e"]["metadata"],
        json!({"name": "n", "labels": {"a": ""}, "deletionTimestamp": "2020-01-01T00:00:00Z",
               "deletionGracePeriodSeconds": 0,
               "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "u"}]})
    );
    for (bad, text) in [
        (
            json!({"apiVersion": 1}),
            "e.apiVersion: Invalid value: 1: must be a string",
        ),
        (
            json!({"metadata": {"name": 1}}),
            r#"e.metadata: Invalid value: {"name":1}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"#,
        ),
        (
            json!({"metadata": "x"}),
            r#"e.metadata: Invalid value: "x": json: cannot unmarshal string into Go value of type v1.ObjectMeta"#,
        ),
    ] {
        let mut object = json!({"e": bad});
        assert_eq!(schema.coerce(&mut object).unwrap_err().to_string(), text);
    }
}

#[test]
fn reading_an_object_does_all_of_it() {
    let schema = load(&json!({"properties": {"spec": {"properties": {
        "a": {"type": "string"}, "b": {"default": 1}, "e": {"x-kubernetes-embedded-resource": true}}}}}));
    let mut object = json!({"spec": {"a": null, "x": 1, "e": {"kind": "A", "metadata": {"q": 1}}}});
    assert_eq!(
        schema.decode(&mut object),
        Ok(vec!["spec.x".into(), "spec.e.metadata.q".into()])
    );
    assert_eq!(
        object,
        json!({"spec": {"e": {"kind": "A", "metadata": {}}, "b": 1}})
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn defaulting_and_pruning_twice_is_like_once(schema in any_schema(), value in any_json()) {
        let Ok(schema) = crate::structural::Structural::load(&schema) else { return Ok(()) };
        let mut once = value;
        schema.prune(&mut once);
        let mut twice = once.clone();
        prop_assert!(schema.prune(&mut twice).is_empty());
        prop_assert_eq!(&once, &twice);
        schema.default(&mut once);
        let mut twice = once.clone();
        schema.default(&mut twice);
        prop_assert_eq!(&once, &twice);
        let mut nulls = once.clone();
        schema.drop_nulls(&mut nulls);
        let mut again = nulls.clone();
        schema.drop_nulls(&mut again);
        prop_assert_eq!(nulls, again);
    }
}
