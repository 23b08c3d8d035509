//! Arbitrary and malicious schemas and objects: no panics, bounded time and memory.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{load, spec_schema};
use crate::structural::{Budget, Structural};

/// Any JSON value with field names that schemas use.
pub(super) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-4_i64..4).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((field_name(), inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn field_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]",
        prop::sample::select(vec!["metadata", "kind", "apiVersion", "spec", "name", "labels"])
            .prop_map(str::to_owned),
    ]
}

/// Schemas that are mostly well-typed.
pub(super) fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = any_facts().prop_map(Value::Object);
    leaf.prop_recursive(4, 40, 4, |inner| {
        (
            any_facts(),
            prop::collection::vec((field_name(), inner.clone()), 0..4),
            prop::option::of(inner.clone()),
            prop::option::of(inner.clone()),
            prop::option::of((
                prop::sample::select(vec!["anyOf", "allOf", "oneOf"]),
                prop::collection::vec(inner.clone(), 1..3),
            )),
            prop::option::weighted(0.1, inner),
        )
            .prop_map(|(mut schema, properties, items, additional, junctor, not)| {
                if !properties.is_empty() {
                    schema.insert(
                        "properties".into(),
                        Value::Object(properties.into_iter().collect()),
                    );
                }
                for (name, value) in [
                    ("items", items),
                    ("additionalProperties", additional),
                    ("not", not),
                ] {
                    if let Some(value) = value {
                        schema.insert(name.into(), value);
                    }
                }
                if let Some((name, parts)) = junctor {
                    schema.insert(name.into(), parts.into());
                }
                Value::Object(schema)
            })
    })
}

fn any_facts() -> impl Strategy<Value = Map<String, Value>> {
    let facts = vec![
        (
            "type",
            vec![
                json!("object"),
                json!("array"),
                json!("string"),
                json!("integer"),
                json!("number"),
                json!("boolean"),
                json!("null"),
                json!("x"),
            ],
        ),
        (
            "format",
            vec![
                json!("date-time"),
                json!("int32"),
                json!("ipv4"),
                json!("uuid"),
                json!("duration"),
                json!("uri"),
                json!("email"),
                json!("hostname"),
                json!("mac"),
                json!("creditcard"),
                json!("byte"),
            ],
        ),
        ("nullable", vec![json!(true)]),
        (
            "default",
            vec![
                json!(1),
                json!({}),
                json!({"a": {"b": 1}}),
                json!("a"),
                json!([null]),
            ],
        ),
        ("minimum", vec![json!(0), json!(-1e300), json!(0.5)]),
        ("maximum", vec![json!(1), json!(1e300)]),
        ("exclusiveMaximum", vec![json!(true)]),
        ("multipleOf", vec![json!(2), json!(0), json!(0.1), json!(-1)]),
        ("minLength", vec![json!(1), json!(-5)]),
        ("maxLength", vec![json!(2), json!(-1)]),
        (
            "pattern",
            vec![json!("^a"), json!("("), json!("[a-"), json!("\\")],
        ),
        ("minItems", vec![json!(1)]),
        ("maxItems", vec![json!(1), json!(-1)]),
        ("uniqueItems", vec![json!(true)]),
        ("maxProperties", vec![json!(1)]),
        ("required", vec![json!(["a"]), json!(["a", "spec"])]),
        ("enum", vec![json!(["a", 1, null, {"a": 1}])]),
        (
            "x-kubernetes-list-type",
            vec![json!("set"), json!("map"), json!("atomic"), json!("q")],
        ),
        (
            "x-kubernetes-list-map-keys",
            vec![json!(["a"]), json!(["a", "b"]), json!([])],
        ),
        ("x-kubernetes-map-type", vec![json!("atomic"), json!("granular")]),
        (
            "x-kubernetes-preserve-unknown-fields",
            vec![json!(true), json!(false)],
        ),
        ("x-kubernetes-embedded-resource", vec![json!(true)]),
        ("x-kubernetes-int-or-string", vec![json!(true)]),
        ("additionalProperties", vec![json!(true), json!(false)]),
        ("description", vec![json!("d")]),
        ("items", vec![json!([]), json!([{}])]),
        (
            "x-kubernetes-validations",
            vec![
                json!([{"rule": "self.a == 1"}]),
                json!([{"rule": "oldSelf == self"}]),
                json!([{"rule": "("}]),
                json!([5]),
            ],
        ),
    ];
    prop::collection::vec(
        prop::sample::select(facts).prop_flat_map(|(name, values)| {
            prop::sample::select(values).prop_map(move |v| (name.to_owned(), v))
        }),
        0..5,
    )
    .prop_map(|facts| facts.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn nothing_panics(schema in any_schema(), mut value in any_json(), old in any_json()) {
        let _ = Structural::compile(&schema);
        if let Ok(schema) = Structural::load(&schema) {
            schema.validate(&value, None, &mut Budget::default());
            schema.validate(&value, Some(&old), &mut Budget::default());
            schema.validate_status(&value, &old, &mut Budget::default());
            let _ = schema.shapes();
            let _ = schema.decode(&mut value);
        }
    }

    #[test]
    fn any_json_is_no_schema_to_panic_about(schema in any_json(), value in any_json()) {
        if let Ok(schema) = Structural::compile(&schema) {
            schema.validate(&value, None, &mut Budget::default());
        }
    }
}

#[test]
fn deep_schemas_are_refused() {
    let mut schema = json!({"type": "string"});
    for _ in 0..150 {
        schema = json!({"type": "object", "properties": {"a": schema}});
    }
    let errors = Structural::compile(&schema).unwrap_err();
    assert!(
        errors[0]
            .to_string()
            .ends_with("Forbidden: schemas must not be nested that deeply"),
        "{}",
        errors[0]
    );
}

#[test]
fn large_lists_take_linear_time() {
    let schema = load(&spec_schema(&json!({
        "u": {"type": "array", "uniqueItems": true, "items": {"type": "integer"}},
        "s": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "m": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
              "items": {"type": "object", "properties": {"k": {"type": "integer"}, "v": {"type": "integer", "maximum": 90_000}}}},
    })));
    let n = 100_000;
    let value = json!({"spec": {
        "u": (0..n).collect::<Vec<i32>>(),
        "s": (0..n).map(|i| i.to_string()).collect::<Vec<String>>(),
        "m": (0..n).map(|i| json!({"k": i, "v": i})).collect::<Vec<Value>>()}});
    let started = Instant::now();
    let errors = schema.validate(&value, None, &mut Budget::default());
    assert_eq!(errors.len(), 9_999, "some elements of m exceed their maximum");
    assert!(
        schema
            .validate(&value, Some(&value), &mut Budget::default())
            .is_empty()
    );
    // Comparing all pairs would take minutes.
    assert!(
        started.elapsed() < Duration::from_secs(60),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn junctors_cannot_multiply_without_end() {
    // Each level looks at the value twice.
    let mut part = json!({"pattern": "^z"});
    for _ in 0..40 {
        part = json!({"anyOf": [part, part]});
        if part.to_string().len() > 1_000_000 {
            break;
        }
    }
    let schema = load(&spec_schema(
        &json!({"l": {"type": "array", "items": {"type": "string", "anyOf": part["anyOf"]}}}),
    ));
    let value = json!({"spec": {"l": vec!["a"; 100_000]}});
    let mut budget = Budget {
        steps: 100_000,
        ..Budget::default()
    };
    let errors = schema.validate(&value, None, &mut budget);
    assert!(errors.iter().any(|e| e.detail.contains("too large together")));
    assert_eq!(budget.steps, 0);
}

#[test]
fn patterns_are_bounded() {
    for pattern in [
        "(((a{100}){100}){100})",
        "(a|b|ab)*c{1000}(\\p{L}{500}){1000}",
        "a{99999}",
    ] {
        let schema = spec_schema(&json!({"x": {"type": "string", "pattern": pattern}}));
        assert!(Structural::compile(&schema).is_err(), "{pattern}");
    }
    // Exponential in backtracking engines.
    let schema = load(&spec_schema(
        &json!({"x": {"type": "string", "pattern": "^(a+)+$"}}),
    ));
    let started = Instant::now();
    let value = json!({"spec": {"x": "a".repeat(100_000) + "b"}});
    assert_eq!(schema.validate(&value, None, &mut Budget::default()).len(), 1);
    assert!(started.elapsed() < Duration::from_secs(5));
}
