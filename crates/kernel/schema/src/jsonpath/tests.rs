//! Expressions on one object, and expressions that are none.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{JsonPath, text};

#[test]
fn expressions() {
    let data = json!({
        "spec": {"a": {"b": 1}, "dotted.name": "d", "list": [1, 2, 3, 4], "nothing": null, "f": 1.5, "t": true},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "n": 3},
            {"type": "Synced", "status": "False", "n": 5, "ok": true}]},
    });
    let cases: Vec<(&str, Value)> = vec![
        (".spec.a.b", json!([1])),
        ("{.spec.a.b}", json!([1])),
        ("$.spec.a.b", json!([1])),
        (".spec.missing.b", json!([])),
        (".spec.a.b.c", json!([])),
        (".spec.nothing", json!([null])),
        (".spec.nothing.x", json!([])),
        (".spec['a'].b", json!([1])),
        (".spec['dotted\\.name']", json!(["d"])),
        (".spec.dotted\\.name", json!(["d"])),
        (".spec.list[0]", json!([1])),
        (".spec.list[-1]", json!([4])),
        (".spec.list[-1:]", json!([4])),
        (".spec.list[1:3]", json!([2, 3])),
        (".spec.list[::2]", json!([1, 3])),
        (".spec.list[*]", json!([1, 2, 3, 4])),
        (".spec.list[0,2]", json!([1, 3])),
        (".spec.list[:0]", json!([])),
        (".status.conditions[?(@.type==\"Ready\")].status", json!(["True"])),
        (".status.conditions[?(@.type=='Ready')].status", json!(["True"])),
        (".status.conditions[?(@.type!='Ready')].status", json!(["False"])),
        (".status.conditions[?(@.n>3)].type", json!(["Synced"])),
        (".status.conditions[?(@.n <= 3)].type", json!(["Ready"])),
        (".status.conditions[?(@.ok)].type", json!(["Synced"])),
        (".status.conditions[?(@.ok==true)].type", json!(["Synced"])),
        (".status.conditions[*].type", json!(["Ready", "Synced"])),
        (
            ".status.conditions[*]['type','status']",
            json!(["Ready", "Synced", "True", "False"]),
        ),
        ("..type", json!(["Ready", "Synced"])),
        (".spec.a.*", json!([1])),
    ];
    for (path, expected) in cases {
        let parsed = JsonPath::parse(path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let found: Vec<Value> = parsed
            .find(&data)
            .unwrap_or_else(|e| panic!("{path}: {e}"))
            .into_iter()
            .cloned()
            .collect();
        assert_eq!(Value::from(found), expected, "{path}");
    }
    for (path, error) in [
        (".spec.list[9]", "array index out of bounds: index 9, length 4"),
        (
            ".spec.list[3:1]",
            "starting index 3 is greater than ending index 1",
        ),
        (".spec.list[0:2:0]", "step must be > 0"),
        (".spec.a[0]", "map[string]interface {} is not array or slice"),
        (
            ".spec.a[?(@.x)]",
            "map[string]interface {} is not array or slice and cannot be filtered",
        ),
        (
            ".status.conditions[?(@.n==\"3\")]",
            "incompatible types for comparison",
        ),
    ] {
        assert_eq!(
            JsonPath::parse(path)
                .unwrap()
                .find(&data)
                .unwrap_err()
                .to_string(),
            error,
            "{path}"
        );
        assert_eq!(JsonPath::parse(path).unwrap().first(&data), None);
    }
}

#[test]
fn malformed() {
    for path in [
        ".a[",
        ".a[x]",
        ".a[1:2:3:4]",
        ".a[?(@.b",
        ".a[?(@.b==\"c)]",
        "abc",
        ".a[?(@.b=~1)]",
        "....",
        "\"a",
        "!",
    ] {
        assert!(JsonPath::parse(path).is_err(), "{path}");
    }
    let deep = format!("{}@.a{}", "[?(".repeat(40), ")]".repeat(40));
    assert!(JsonPath::parse(&deep).is_err());
}

#[test]
fn texts() {
    for (value, expected) in [
        (json!("a"), "a"),
        (json!(1), "1"),
        (json!(1.5), "1.5"),
        (json!(2.0), "2"),
        (json!(true), "true"),
        (json!(null), "<no value>"),
        (json!({"a": [1]}), r#"{"a":[1]}"#),
    ] {
        assert_eq!(text(&value), expected);
    }
}

#[test]
fn descent_is_bounded() {
    let mut data = json!(vec![0; 64]);
    for _ in 0..12 {
        data = json!([data.clone(), data]);
    }
    let path = JsonPath::parse("..[0]..[0]..[0]..[0]..[0]").unwrap();
    assert_eq!(path.find(&data).unwrap_err().to_string(), "too many results");
}

proptest! {
    #[test]
    fn never_panics(path in "[\\.\\[\\]\\?\\(\\)@a-c0-9'\"=<>!*:,\\\\ -]{0,24}") {
        if let Ok(path) = JsonPath::parse(&path) {
            let _ = path.find(&json!({"a": [{"b": 1}, {"c": [1, 2]}], "b": {"a": null}}));
        }
    }
}
