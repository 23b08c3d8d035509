//! Objects against schemas: texts as users of kubectl see them.

use serde_json::{Value, json};

use super::{errors, spec_schema};

/// Validates `spec.x` of one schema against values and the expected errors.
fn check(x: &Value, cases: &[(Value, &[&str])]) {
    let schema = spec_schema(&json!({"x": x}));
    for (value, expected) in cases {
        let found = errors(&schema, &json!({"spec": {"x": value}}), None);
        assert_eq!(found, *expected, "{x} on {value}");
    }
}

#[test]
fn types() {
    check(
        &json!({"type": "integer"}),
        &[
            (json!(1), &[]),
            (json!(1.0), &[]),
            (
                json!("a"),
                &[r#"spec.x: Invalid value: "string": spec.x in body must be of type integer: "string""#],
            ),
            (
                json!(null),
                &[r#"spec.x: Invalid value: "null": spec.x in body must be of type integer: "null""#],
            ),
            (
                json!(true),
                &[r#"spec.x: Invalid value: "boolean": spec.x in body must be of type integer: "boolean""#],
            ),
            (
                json!(1.5),
                &[
                    r#"spec.x: Invalid value: "number": spec.x in body must be of type integer: "number""#,
                    r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.x"#,
                ],
            ),
        ],
    );
    check(
        &json!({"type": "integer", "format": "int32"}),
        &[
            (json!(2_147_483_647), &[]),
            (
                json!(2_147_483_648_i64),
                &[
                    r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.x"#,
                ],
            ),
            (
                json!("1"),
                &[r#"spec.x: Invalid value: "string": spec.x in body must be of type integer: "string""#],
            ),
            (
                json!(true),
                &[r#"spec.x: Invalid value: "": spec.x in body must be of type int32: """#],
            ),
        ],
    );
    check(&json!({"type": "number"}), &[(json!(1), &[]), (json!(1.5), &[])]);
    check(
        &json!({"type": "number", "format": "float"}),
        &[(
            json!(1e300),
            &[
                r#"<nil>: Invalid value: "": Checked value must be of type number with format float in spec.x"#,
            ],
        )],
    );
    check(
        &json!({"x-kubernetes-int-or-string": true}),
        &[
            (json!(1), &[]),
            (json!("1"), &[]),
            (
                json!(true),
                &[
                    r#"spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean""#,
                ],
            ),
        ],
    );
    check(
        &json!({"type": "string", "nullable": true}),
        &[(json!(null), &[]), (json!("a"), &[])],
    );
    check(
        &json!({"type": "object"}),
        &[
            (json!({"anything": 1}), &[]),
            (
                json!([]),
                &[r#"spec.x: Invalid value: "array": spec.x in body must be of type object: "array""#],
            ),
        ],
    );
    check(
        &json!({"type": "string", "format": "date-time"}),
        &[
            (json!("2020-01-01T00:00:00Z"), &[]),
            (
                json!("now"),
                &[r#"spec.x: Invalid value: "now": spec.x in body must be of type date-time: "now""#],
            ),
            (
                json!(5),
                &[r#"spec.x: Invalid value: "int64": spec.x in body must be of type date-time: "int64""#],
            ),
            (
                json!([]),
                &[r#"spec.x: Invalid value: "array": spec.x in body must be of type string: "array""#],
            ),
        ],
    );
    check(
        &json!({"x-kubernetes-preserve-unknown-fields": true}),
        &[(json!([1, {"a": null}]), &[])],
    );
}

#[test]
fn numbers() {
    check(
        &json!({"type": "integer", "minimum": 1, "maximum": 10, "multipleOf": 3}),
        &[
            (json!(9), &[]),
            (
                json!(12),
                &["spec.x: Invalid value: 12: spec.x in body should be less than or equal to 10"],
            ),
            (
                json!(0),
                &["spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 1"],
            ),
            (
                json!(4),
                &["spec.x: Invalid value: 4: spec.x in body should be a multiple of 3"],
            ),
        ],
    );
    check(
        &json!({"type": "number", "minimum": 1, "exclusiveMinimum": true, "maximum": 10, "exclusiveMaximum": true}),
        &[
            (
                json!(1),
                &["spec.x: Invalid value: 1: spec.x in body should be greater than 1"],
            ),
            (
                json!(10),
                &["spec.x: Invalid value: 10: spec.x in body should be less than 10"],
            ),
            (
                json!(10.5),
                &["spec.x: Invalid value: 10.5: spec.x in body should be less than 10"],
            ),
            (json!(1.5), &[]),
        ],
    );
    check(
        &json!({"type": "number", "multipleOf": 0.1}),
        &[
            (json!(0.3), &[]),
            (
                json!(0.25),
                &["spec.x: Invalid value: 0.25: spec.x in body should be a multiple of 0.1"],
            ),
        ],
    );
    check(
        &json!({"type": "integer", "maximum": 5.5}),
        &[(
            json!(7),
            &[
                r#"<nil>: Invalid value: "": Maximum boundary value must be of type integer (default format) in spec.x"#,
                "spec.x: Invalid value: 7: spec.x in body should be less than or equal to 5.5",
            ],
        )],
    );
}

#[test]
fn strings_and_enums() {
    check(
        &json!({"type": "string", "minLength": 3, "maxLength": 5, "pattern": "^[a-z]+$"}),
        &[
            (json!("abcd"), &[]),
            (
                json!("ab"),
                &[r#"spec.x: Invalid value: "ab": spec.x in body should be at least 3 chars long"#],
            ),
            (
                json!("abcdef"),
                &["spec.x: Too long: may not be more than 5 bytes"],
            ),
            (
                json!("ABC"),
                &[r#"spec.x: Invalid value: "ABC": spec.x in body should match '^[a-z]+$'"#],
            ),
        ],
    );
    check(
        &json!({"type": "string", "minLength": 2, "maxLength": 2}),
        &[
            (json!("\u{e9}\u{e9}"), &[]),
            (
                json!("\u{1F600}"),
                &["spec.x: Invalid value: \"\u{1F600}\": spec.x in body should be at least 2 chars long"],
            ),
        ],
    );
    check(
        &json!({"type": "string", "enum": ["b", "a"]}),
        &[
            (json!("a"), &[]),
            (
                json!("x"),
                &[r#"spec.x: Unsupported value: "x": supported values: "b", "a""#],
            ),
        ],
    );
    check(
        &json!({"type": "integer", "enum": [1, 2]}),
        &[
            (json!(1.0), &[]),
            (
                json!(3),
                &[r#"spec.x: Unsupported value: 3: supported values: "1", "2""#],
            ),
        ],
    );
    check(
        &json!({"type": "string", "nullable": true, "enum": ["a"]}),
        &[(
            json!(null),
            &[r#"spec.x: Unsupported value: null: supported values: "a""#],
        )],
    );
}

#[test]
fn lists_and_maps() {
    check(
        &json!({"type": "array", "minItems": 1, "maxItems": 2, "uniqueItems": true, "items": {"type": "integer"}}),
        &[
            (json!([1, 2]), &[]),
            (
                json!([]),
                &["spec.x: Invalid value: 0: spec.x in body should have at least 1 items"],
            ),
            (
                json!([1, 2, 3]),
                &["spec.x: Too many: 3: must have at most 2 items"],
            ),
            (
                json!([1, 1]),
                &[r#"spec.x: Invalid value: "": spec.x in body shouldn't contain duplicates"#],
            ),
            (
                json!([1, "a"]),
                &[
                    r#"spec.x[1]: Invalid value: "string": spec.x[1] in body must be of type integer: "string""#,
                ],
            ),
        ],
    );
    check(
        &json!({"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": {"type": "string"}}),
        &[
            (json!({"a": "b"}), &[]),
            (
                json!({}),
                &["spec.x: Invalid value: 0: spec.x in body should have at least 1 properties"],
            ),
            (
                json!({"a": "b", "c": "d"}),
                &["spec.x: Too many: 2: must have at most 1 item"],
            ),
            (
                json!({"a": 1}),
                &[
                    r#"spec.x.a: Invalid value: "integer": spec.x.a in body must be of type string: "integer""#,
                ],
            ),
        ],
    );
    check(
        &json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string"}}}),
        &[
            (json!({"a": "", "b": null}), &[]),
            (
                json!({}),
                &["spec.x.a: Required value", "spec.x.b: Required value"],
            ),
        ],
    );
    check(
        &json!({"type": "object", "additionalProperties": false}),
        &[(
            json!({"a": 1}),
            &[r#"spec.x: Invalid value: "a": spec.x.a in body is a forbidden property"#],
        )],
    );
    assert_eq!(
        errors(&json!({"type": "object", "required": ["spec"]}), &json!({}), None),
        ["spec: Required value"]
    );
}

#[test]
fn junctors() {
    check(
        &json!({"type": "string", "anyOf": [{"pattern": "^a"}, {"pattern": "^b"}]}),
        &[
            (json!("b"), &[]),
            (
                json!("c"),
                &[
                    r#"<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf)"#,
                    r#"spec.x: Invalid value: "c": spec.x in body should match '^a'"#,
                ],
            ),
        ],
    );
    check(
        &json!({"type": "string", "oneOf": [{"pattern": "a"}, {"pattern": "b"}]}),
        &[
            (json!("a"), &[]),
            (
                json!("ab"),
                &[
                    r#"<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
                ],
            ),
            (
                json!("c"),
                &[
                    r#"<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found none valid"#,
                    r#"spec.x: Invalid value: "c": spec.x in body should match 'a'"#,
                ],
            ),
        ],
    );
    check(
        &json!({"type": "string", "allOf": [{"pattern": "a"}, {"pattern": "b"}], "not": {"pattern": "z"}}),
        &[
            (json!("ab"), &[]),
            (
                json!("a"),
                &[
                    r#"spec.x: Invalid value: "a": spec.x in body should match 'b'"#,
                    r#"<nil>: Invalid value: "": "spec.x" must validate all the schemas (allOf)"#,
                ],
            ),
            (
                json!("abz"),
                &[r#"<nil>: Invalid value: "": "spec.x" must not validate the schema (not)"#],
            ),
        ],
    );
    check(
        &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        &[
            (json!({"a": ""}), &[]),
            (
                json!({}),
                &[
                    r#"<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found none valid"#,
                    "spec.x.a: Required value",
                ],
            ),
        ],
    );
}

#[test]
fn keyed_lists() {
    let map = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"],
        "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}});
    check(
        &map,
        &[
            (json!([{"a": "x", "b": 1}, {"a": "x", "b": 2}]), &[]),
            (
                json!([{"b": 1, "a": "x"}, {"a": "x", "b": 1}, {"a": "x", "b": 1}]),
                &[r#"spec.x[1]: Duplicate value: {"a":"x","b":1}"#],
            ),
            (json!([{"c": 1}, {"c": 2}]), &["spec.x[1]: Duplicate value: {}"]),
        ],
    );
    check(
        &json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
        &[
            (json!(["a", "b"]), &[]),
            (
                json!(["a", "b", "a", "a", "b"]),
                &[
                    r#"spec.x[2]: Duplicate value: "a""#,
                    r#"spec.x[4]: Duplicate value: "b""#,
                ],
            ),
        ],
    );
    check(
        &json!({"type": "object", "additionalProperties": {"type": "array", "x-kubernetes-list-type": "set",
                "items": {"type": "object", "x-kubernetes-map-type": "atomic",
                          "x-kubernetes-preserve-unknown-fields": true}}}),
        &[(
            json!({"k": [{"a": 1, "b": 2}, {"b": 2, "a": 1}]}),
            &[r#"spec.x[k][1]: Duplicate value: {"a":1,"b":2}"#],
        )],
    );
}

#[test]
fn embedded_resources() {
    let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true});
    check(
        &embedded,
        &[
            (
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}}),
                &[],
            ),
            (json!({"apiVersion": "v1", "kind": "Pod"}), &[]),
            (
                json!({}),
                &["spec.x.apiVersion: Required value", "spec.x.kind: Required value"],
            ),
            (
                json!({"apiVersion": "", "kind": "", "metadata": {"name": ".."}}),
                &[
                    r#"spec.x.apiVersion: Invalid value: "": must not be empty"#,
                    r#"spec.x.kind: Invalid value: "": must not be empty"#,
                    r#"spec.x.metadata.name: Invalid value: "..": may not be '..'"#,
                ],
            ),
            (
                json!({"apiVersion": "a/b/c", "kind": "Pod"}),
                &[r#"spec.x.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c"#],
            ),
            (
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": 1}}}),
                &[
                    r#"spec.x.metadata: Invalid value: {"labels":{"a":1}}: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"#,
                ],
            ),
        ],
    );
}
