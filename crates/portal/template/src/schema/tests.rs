//! Schemas, values, and what is wrong with them.

use serde_json::{Value, json};

use super::*;

fn said(schema: &Value, value: &Value) -> String {
    let all: Vec<String> = check(schema, value).iter().map(ToString::to_string).collect();
    all.join("; ")
}

#[test]
fn values_are_judged() {
    let cases: Vec<(Value, Value, &str)> = vec![
        (json!({"type": "string"}), json!("x"), ""),
        (json!({"type": "string"}), json!(1), "it must be a text"),
        (json!({"type": "integer"}), json!(1.0), ""),
        (
            json!({"type": "integer"}),
            json!(1.5),
            "it must be a whole number",
        ),
        (json!({"type": ["string", "null"]}), json!(null), ""),
        (
            json!({"type": ["string", "null"]}),
            json!(1),
            "it must be a text or null",
        ),
        (json!({"enum": ["a", 1]}), json!(1), ""),
        (json!({"enum": ["a", 1]}), json!("b"), "it must be one of a, 1"),
        (
            json!({"minLength": 2, "maxLength": 3}),
            json!("é"),
            "it must have at least 2 characters",
        ),
        (
            json!({"pattern": "^[a-z]+$"}),
            json!("A"),
            "it must match ^[a-z]+$",
        ),
        (
            json!({"pattern": "^[a-z]+$", "ui:help": "letters"}),
            json!("A"),
            "it does not have the wanted form: letters",
        ),
        (json!({"format": "email"}), json!("a@b.c"), ""),
        (
            json!({"format": "email"}),
            json!("a@b@"),
            "it must be a valid email",
        ),
        (json!({"format": "textarea"}), json!("anything"), ""),
        (json!({"format": "uri"}), json!("https://x/y"), ""),
        (
            json!({"format": "date"}),
            json!("2025-02-29"),
            "it must be a valid date",
        ),
        (
            json!({"minimum": 2, "multipleOf": 2}),
            json!(1),
            "it must be at least 2; it must be a multiple of 2",
        ),
        (
            json!({"items": {"type": "string"}, "uniqueItems": true}),
            json!(["a", "a"]),
            "its items must be different",
        ),
        (
            json!({"items": {"type": "string"}}),
            json!(["a", 1]),
            "[1]: it must be a text",
        ),
        (
            json!({"required": ["a"], "properties": {"a": {}}}),
            json!({}),
            "a: an answer is required",
        ),
        (
            json!({"properties": {"a": {"properties": {"b": {"type": "string"}}}}}),
            json!({"a": {"b": 1}}),
            "a.b: it must be a text",
        ),
        (
            json!({"properties": {"a": {}}, "additionalProperties": false}),
            json!({"b": 1}),
            "b: nobody asks for it",
        ),
        (
            json!({"dependencies": {"a": ["b"]}}),
            json!({"a": 1}),
            "b: an answer is required because there is one to a",
        ),
        (
            json!({"allOf": [{"minimum": 1}, {"maximum": 3}]}),
            json!(5),
            "it must be at most 3",
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!(1),
            "it fits none of what is allowed",
        ),
        (
            json!({"oneOf": [{"minimum": 1}, {"minimum": 2}]}),
            json!(3),
            "it fits more than one of what is allowed",
        ),
        (json!({"not": {"const": "x"}}), json!("x"), "it must not be this"),
        (
            json!({"if": {"const": 1}, "then": {"maximum": 0}, "else": {"minimum": 9}}),
            json!(5),
            "it must be at least 9",
        ),
        (
            json!({"$ref": "#/definitions/n", "definitions": {"n": {"type": "number"}}}),
            json!("x"),
            "it must be a number",
        ),
        (
            json!({"$ref": "#/definitions/n"}),
            json!("x"),
            "the questions refer to #/definitions/n, which is not there",
        ),
    ];
    for (schema, value, expected) in cases {
        assert_eq!(said(&schema, &value), expected, "{schema} {value}");
    }
}

#[test]
fn dependent_questions_are_asked() {
    // As Backstage's documentation writes questions that depend on an answer.
    let schema = json!({
        "properties": {"kind": {"enum": ["oidc", "none"]}},
        "dependencies": {"kind": {"oneOf": [
            {"properties": {"kind": {"enum": ["none"]}}},
            {"properties": {"kind": {"enum": ["oidc"]}, "issuer": {"type": "string", "format": "uri"}}, "required": ["issuer"]},
        ]}},
    });
    assert_eq!(said(&schema, &json!({"kind": "none"})), "");
    assert_eq!(said(&schema, &json!({"kind": "oidc", "issuer": "https://x"})), "");
    assert_eq!(
        said(&schema, &json!({"kind": "oidc"})),
        "issuer: an answer is required"
    );
    assert_eq!(
        said(&schema, &json!({"kind": "oidc", "issuer": "no"})),
        "issuer: it must be a valid uri"
    );
}

#[test]
fn circles_and_bombs_end() {
    let circle = json!({"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/a"}}});
    assert!(said(&circle, &json!(1)).contains("too complex"));
    let mut wide = json!({"type": "string"});
    for _ in 0..12 {
        wide = json!({"anyOf": [wide.clone(), wide.clone(), wide]});
    }
    assert!(said(&wide, &json!(1)).contains("too complex") || said(&wide, &json!(1)).contains("none"));
    let mut deep = json!({});
    for _ in 0..60 {
        deep = json!({"items": deep});
    }
    assert!(problems(&deep, "p")[0].contains("nested"));
    assert!(problems(&json!({"$ref": "https://x"}), "p")[0].contains("same page"));
    assert!(problems(&json!({"pattern": "(a{1000}){1000}"}), "p")[0].contains("pattern"));
}
