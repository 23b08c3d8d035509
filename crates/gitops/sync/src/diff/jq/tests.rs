//! Expressions as users write them, and hostile ones.

use serde_json::json;

use super::*;

fn object() -> Value {
    json!({
        "spec": {
            "replicas": 3,
            "containers": [
                {"name": "app", "image": "a:1", "env": [{"name": "A", "value": "1"}]},
                {"name": "istio-proxy", "image": "b:2"},
                {"name": "istio-init", "image": "c:3", "on": true},
            ],
            "labels": {"a.b/c": "x", "team": "red"},
        },
        "webhooks": [{"clientConfig": {"caBundle": "zzz"}}, {"clientConfig": {}}],
        "none": null,
    })
}

#[test]
fn expressions_name_values() {
    let cases = [
        (".spec.replicas", json!([3])),
        (".spec.labels[\"a.b/c\"]", json!(["x"])),
        (".spec.labels.\"a.b/c\"", json!(["x"])),
        (".spec[\"labels\"].team", json!(["red"])),
        (".spec.containers[0].name", json!(["app"])),
        (".spec.containers[-1].name", json!(["istio-init"])),
        (
            ".spec.containers[].name",
            json!(["app", "istio-proxy", "istio-init"]),
        ),
        (
            ".spec.containers[1:].name | ascii_upcase",
            json!(["ISTIO-PROXY", "ISTIO-INIT"]),
        ),
        (
            ".spec.containers[] | select(.name == \"app\").image",
            json!(["a:1"]),
        ),
        (
            ".spec.containers[] | select(.name | startswith(\"istio\")) | .image",
            json!(["b:2", "c:3"]),
        ),
        (
            ".spec.containers[] | select(.name | test(\"^ISTIO\"; \"i\")) | .image",
            json!(["b:2", "c:3"]),
        ),
        (
            ".spec.containers[] | select(.name == \"app\" or .on).name",
            json!(["app", "istio-init"]),
        ),
        (
            ".spec.containers[] | select(.env and (.env | length > 0)).name",
            json!(["app"]),
        ),
        (
            ".spec.containers[] | select(has(\"on\") | not).name",
            json!(["app", "istio-proxy"]),
        ),
        (
            ".spec.containers[] | select(any(.env[]?; .name == \"A\")).name",
            json!("refused"),
        ),
        (
            ".spec.containers[] | select([.env[]? | .name] | contains([\"A\"])).name",
            json!(["app"]),
        ),
        (".. | .caBundle? // empty", json!(["zzz"])),
        (".missing.deeper", json!([null])),
        (".none[]?", json!([])),
        (
            "if .spec.replicas > 2 then .spec.replicas else empty end",
            json!([3]),
        ),
        (
            "if .spec.replicas > 9 then 1 elif .spec.replicas == 3 then 2 else 3 end",
            json!([2]),
        ),
        (".spec.replicas, .none", json!([3, null])),
        (".spec | keys", json!([["containers", "labels", "replicas"]])),
        ("(.a, .b) // 7", json!([7])),
    ];
    for (text, expected) in cases {
        let got = Expression::parse(text).and_then(|expression| expression.values(&object()));
        match got {
            Ok(values) => assert_eq!(Value::from(values), expected, "{text}"),
            Err(error) => assert_eq!(expected, "refused", "{text}: {error}"),
        }
    }
}

#[test]
fn fields_are_taken_out() {
    let cases = [
        (".spec.replicas", ".spec | has(\"replicas\")", json!([false])),
        (
            ".spec.containers[] | select(.name | startswith(\"istio\"))",
            ".spec.containers[].name",
            json!(["app"]),
        ),
        (
            ".webhooks[]?.clientConfig.caBundle",
            ".webhooks",
            json!([[{"clientConfig": {}}, {"clientConfig": {}}]]),
        ),
        (
            ".spec.containers[0,2]",
            ".spec.containers[].name",
            json!(["istio-proxy"]),
        ),
        (
            ".. | select(.name? == \"A\")",
            ".spec.containers[0].env",
            json!([[]]),
        ),
        (".not.there", ".", json!([object()])),
        (
            ".spec.labels | .team, .other",
            ".spec.labels",
            json!([{"a.b/c": "x"}]),
        ),
    ];
    for (text, look, expected) in cases {
        let mut object = object();
        Expression::parse(text).unwrap().remove(&mut object).unwrap();
        let got = Expression::parse(look).unwrap().values(&object).unwrap();
        assert_eq!(Value::from(got), expected, "{text}");
    }
}

#[test]
fn what_does_not_fit_changes_nothing() {
    for text in [
        ".spec.replicas[]",
        ".spec.replicas.x",
        ".spec.containers.name",
        "1",
        ".spec | keys",
    ] {
        let mut changed = object();
        let result = Expression::parse(text).unwrap().remove(&mut changed);
        assert!(matches!(result, Err(JqError::Run(_))), "{text}: {result:?}");
        assert_eq!(changed, object(), "{text}");
    }
}

#[test]
fn what_is_not_understood_is_refused_by_name() {
    let cases = [
        ("", "ends too early"),
        (".spec |", "ends too early"),
        (".a[", "ends too early"),
        (".a = 1", "'='"),
        (".a |= 1", "'|'"),
        ("range(10)", "range is not understood"),
        ("def f: f; f", "def is not understood"),
        ("input", "input is not understood"),
        ("env.HOME", "env is not understood"),
        ("select()", "')'"),
        ("select(.a; .b)", "select does not take 2 arguments"),
        (".a .b .c \"", "'\"'"),
        ("\"abc", "does not end"),
    ];
    for (text, expected) in cases {
        let error = Expression::parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn expressions_end() {
    let doubling = format!(".{}", " | (., .)".repeat(60));
    let products = format!(
        "[{}]",
        ["(.spec.containers[], .spec.containers[])"; 20].join(" == ")
    );
    let walks = format!("..{}", " | (.., ..)".repeat(30));
    for text in [doubling, walks] {
        let result = Expression::parse(&text).unwrap().values(&object());
        assert_eq!(result, Err(JqError::OverBudget), "{text}");
    }
    assert!(Expression::parse(&products).is_err(), "comparisons do not chain");
    assert!(Expression::parse(&"(".repeat(2000)).is_err());
    assert!(Expression::parse(&"[".repeat(4000)).is_err());
    assert!(Expression::parse(&".a".repeat(4000)).is_err());
}
