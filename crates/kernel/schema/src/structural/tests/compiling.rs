//! Which schemas are refused, and with which words.

use serde_json::{Value, json};

use super::spec_schema;
use crate::structural::Structural;

fn refusals(schema: &Value) -> Vec<String> {
    match Structural::compile(schema) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn good_schemas() {
    let preserve = json!({"x-kubernetes-preserve-unknown-fields": true});
    let cases = [
        json!({"type": "object"}),
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {
            "name": {"type": "string", "pattern": "^a"}, "generateName": {"type": "string"}}}}}),
        spec_schema(&json!({"x": {"x-kubernetes-int-or-string": true}})),
        spec_schema(
            &json!({"x": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}}),
        ),
        spec_schema(&json!({"x": {"x-kubernetes-int-or-string": true,
            "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "^a"}]}})),
        spec_schema(
            &json!({"x": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": preserve}}}),
        ),
        spec_schema(&json!({"x": {"type": "string", "default": "a", "pattern": "^a$"}})),
        spec_schema(
            &json!({"x": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string", "default": ""}}}}}),
        ),
        spec_schema(&json!({"x": {"type": "object", "additionalProperties": {"type": "string"}}})),
        // Upstream reads nested junctors only from the root.
        spec_schema(
            &json!({"x": {"type": "object", "oneOf": [{"required": ["a"]}], "properties": {"a": {"type": "string"}}}}),
        ),
    ];
    for schema in cases {
        assert_eq!(refusals(&schema), [""; 0], "{schema}");
    }
}

#[test]
fn not_structural() {
    // (schema, refusals)
    let cases: Vec<(Value, &[&str])> = vec![
        (
            json!({}),
            &["type: Required value: must not be empty at the root"],
        ),
        (
            json!({"type": "string"}),
            &[r#"type: Invalid value: "string": must be object at the root"#],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            &["additionalProperties: Forbidden: must not be used at the root"],
        ),
        (
            json!({"type": "object", "properties": {"a": {}}}),
            &["properties[a].type: Required value: must not be empty for specified object fields"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {}}}}),
            &["properties[a].items.type: Required value: must not be empty for specified array items"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array"}}}),
            &["properties[a].items: Required value: must be specified"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"x-kubernetes-int-or-string": true,
                "x-kubernetes-preserve-unknown-fields": true}}}),
            &[
                "properties[a].x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is true",
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-embedded-resource": true}}}),
            &[
                "properties[a].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
                r#"properties[a].type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true"#,
            ],
        ),
        (
            json!({"type": "object", "properties": {"kind": {"type": "integer"}, "apiVersion": {"type": "string"},
                "metadata": {"type": "string"}}}),
            &[
                r#"properties[kind].type: Invalid value: "integer": must be string"#,
                r#"properties[metadata].type: Invalid value: "string": must be object"#,
            ],
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
            &[
                "properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
            ],
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "description": "x"}}}),
            &[
                "properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}),
            &[
                "properties[a].pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`",
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}},
                "anyOf": [{"type": "object", "title": "t", "description": "d", "nullable": true, "default": {},
                           "additionalProperties": true, "properties": {"a": {"type": "string"}, "metadata": {}}}]}),
            &[
                "anyOf[0].additionalProperties: Forbidden: must be undefined to be structural",
                "anyOf[0].default: Forbidden: must be undefined to be structural",
                "anyOf[0].description: Forbidden: must be empty to be structural",
                "anyOf[0].nullable: Forbidden: must be false to be structural",
                "anyOf[0].properties[a].type: Forbidden: must be empty to be structural",
                "anyOf[0].properties[metadata]: Forbidden: must not be specified in a nested context",
                "anyOf[0].title: Forbidden: must be empty to be structural",
                "anyOf[0].type: Forbidden: must be empty to be structural",
                "properties[metadata]: Required value: because it is defined in anyOf[0].properties[metadata]",
            ],
        ),
        (
            json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string"}}},
                "not": {"items": {"pattern": "a"}, "properties": {"l": {"items": {"x-kubernetes-int-or-string": true}}, "m": {}}}}),
            &[
                "items: Required value: because it is defined in not.items",
                "not.properties[l].items.x-kubernetes-int-or-string: Forbidden: must be false to be structural",
                "properties[m]: Required value: because it is defined in not.properties[m]",
            ],
        ),
    ];
    for (schema, expected) in cases {
        let found: Vec<String> = refusals(&schema);
        assert_eq!(found, expected, "{schema}");
        assert!(
            !Structural::violations(&schema, &crate::field::Path::root()).is_empty(),
            "{schema}"
        );
    }
}

#[test]
fn keywords_and_extensions() {
    // Refusals of `spec.x`, without the path to it.
    let cases: Vec<(Value, &[&str])> = vec![
        (
            json!({"type": "strin"}),
            &[
                r#"type: Unsupported value: "strin": supported values: "array", "boolean", "integer", "number", "object", "string""#,
            ],
        ),
        (
            json!({"type": "string", "$ref": "x"}),
            &["$ref: Forbidden: $ref is not supported"],
        ),
        (
            json!({"type": "string", "id": "x"}),
            &["id: Forbidden: id is not supported"],
        ),
        (
            json!({"type": "object", "patternProperties": {"x": {}}}),
            &["patternProperties: Forbidden: patternProperties is not supported"],
        ),
        (
            json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}}),
            &[
                "uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            &["additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
            &["x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"],
        ),
        (
            json!({"type": "string", "x-kubernetes-map-type": "odd"}),
            &[
                r#"type: Invalid value: "string": must be object if x-kubernetes-map-type is specified"#,
                r#"x-kubernetes-map-type: Unsupported value: "odd": supported values: "atomic", "granular""#,
            ],
        ),
        (
            json!({"type": "string", "x-kubernetes-list-type": "odd"}),
            &[
                r#"type: Invalid value: "string": must be array if x-kubernetes-list-type is specified"#,
                r#"x-kubernetes-list-type: Unsupported value: "odd": supported values: "atomic", "set", "map""#,
            ],
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}}),
            &[
                "items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
            ],
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string", "nullable": true}}),
            &["items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set"],
        ),
        (
            json!({"type": "array", "x-kubernetes-list-map-keys": ["a"], "items": {"type": "object", "properties": {"a": {"type": "string"}}}}),
            &[
                "x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty",
            ],
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "string"}}),
            &[
                "x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
                r#"items.type: Invalid value: "string": must be object if parent array's x-kubernetes-list-type is map"#,
            ],
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "a", "b", "c", "d"],
                "items": {"type": "object", "required": ["a"], "properties": {
                    "a": {"type": "string"}, "b": {"type": "string"}, "d": {"type": "object", "default": {}, "nullable": true}}}}),
            &[
                r#"x-kubernetes-list-map-keys: Invalid value: ["a","a","b","c","d"]: must not contain duplicate entries"#,
                r#"x-kubernetes-list-map-keys: Invalid value: ["a","a","b","c","d"]: entries must all be names of item properties"#,
                r#"items.properties[d].type: Invalid value: "object": must be a scalar type if parent array's x-kubernetes-list-type is map"#,
                "items.properties[b].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
                "items.properties[d].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
            ],
        ),
        (
            json!({"type": "string", "minLength": "3"}),
            &[r#"minLength: Invalid value: "3": must be an integer"#],
        ),
        (
            json!({"type": "array", "items": [{"type": "string"}]}),
            &["items: Forbidden: items must be a schema object and not an array"],
        ),
    ];
    for (x, expected) in cases {
        let found: Vec<String> = refusals(&spec_schema(&json!({"x": x})))
            .iter()
            .map(|e| {
                e.strip_prefix("properties[spec].properties[x].")
                    .unwrap_or(e)
                    .to_owned()
            })
            .collect();
        assert_eq!(found, expected, "{x}");
    }
}

#[test]
fn rules_without_cel() {
    let rule = |rule: Value| {
        let schema = spec_schema(
            &json!({"x": {"type": "object", "properties": {"a": {"type": "object", "properties": {"b-c": {"type": "string"}}}},
            "x-kubernetes-validations": [rule]}}),
        );
        refusals(&schema)
            .iter()
            .map(|e| {
                e.strip_prefix("properties[spec].properties[x].x-kubernetes-validations[0].")
                    .unwrap_or(e)
                    .to_owned()
            })
            .collect::<Vec<String>>()
    };
    assert_eq!(
        rule(json!({"rule": " "})),
        ["rule: Required value: rule is not specified"]
    );
    assert_eq!(
        rule(json!({"rule": "true", "message": " "})),
        [r#"message: Invalid value: " ": must be non-empty if specified"#]
    );
    assert_eq!(
        rule(json!({"rule": "true", "message": "a\nb"})),
        [r#"message: Invalid value: "a\nb": must not contain line breaks"#]
    );
    assert_eq!(
        rule(json!({"rule": "true\n&& true"})),
        ["message: Required value: message must be specified if rule contains line breaks"]
    );
    assert_eq!(
        rule(json!({"rule": "true", "reason": "Odd"})),
        [
            r#"reason: Unsupported value: "Odd": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired""#
        ]
    );
    assert_eq!(rule(json!({"rule": "true", "fieldPath": ".a['b-c']"})), [""; 0]);
    for bad in ["a", ".b", ".a.", ".a['b", ".a[b]", ".a['b-c'", ".a.b-d"] {
        assert_eq!(
            rule(json!({"rule": "true", "fieldPath": bad})),
            [format!("fieldPath: Invalid value: {bad:?}: must be a valid path")],
            "{bad}"
        );
    }
}

#[test]
fn defaults_must_be_valid() {
    let cases: Vec<(Value, &[&str])> = vec![
        (
            json!({"type": "string", "default": 1}),
            &[r#"default: Invalid value: "integer":  in body must be of type string: "integer""#],
        ),
        (
            json!({"type": "object", "default": {"a": "b", "c": 1}, "properties": {"a": {"type": "integer"}}}),
            &[
                r#"default: Invalid value: {"a":"b","c":1}: must not have unknown fields"#,
                r#"default.a: Invalid value: "string": a in body must be of type integer: "string""#,
            ],
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
                "default": {"kind": "A"}}),
            &["default.apiVersion: Required value"],
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "default": ".."}}}}}),
            &[
                r#"properties[metadata].properties[name].default: Invalid value: "..": must result in valid metadata: metadata.name: Invalid value: "..": may not be '..'"#,
            ],
        ),
        (
            json!({"type": "array", "items": {"type": "string", "default": "x", "pattern": "^a"}}),
            &[r#"items.default: Invalid value: "x":  in body should match '^a'"#],
        ),
    ];
    for (x, expected) in cases {
        let found: Vec<String> = refusals(&spec_schema(&json!({"x": x})))
            .iter()
            .map(|e| {
                e.strip_prefix("properties[spec].properties[x].")
                    .unwrap_or(e)
                    .to_owned()
            })
            .collect();
        assert_eq!(found, expected, "{x}");
    }
    assert_eq!(
        refusals(&json!({"type": "object", "properties": {"kind": {"type": "string", "default": "A"}}})),
        ["properties[kind].default: Forbidden: must not be set in top-level kind"]
    );
}

#[test]
fn a_definition_fits_in_memory() {
    assert!(
        size_of::<crate::structural::node::Node>() <= 40,
        "{}",
        size_of::<crate::structural::node::Node>()
    );
    assert!(
        size_of::<crate::structural::node::Check>() <= 24,
        "{}",
        size_of::<crate::structural::node::Check>()
    );
}
