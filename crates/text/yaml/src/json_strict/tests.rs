//! Strict JSON: repetitions, depth, numbers, and the cost of looking.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{JsonError, MAX_REPORTED, parse_json};

fn check(text: &str, want: &Value, duplicates: &[&str]) {
    let (value, found) = parse_json(text.as_bytes(), 100).unwrap();
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        (&value, found.as_slice()),
        (
            want,
            &duplicates.iter().map(|d| (*d).to_owned()).collect::<Vec<_>>()[..]
        )
    );
}

#[test]
fn repeated_fields_are_reported_by_path_and_the_last_counts() {
    check(r#"{"a":1,"b":2}"#, &json!({"a": 1, "b": 2}), &[]);
    check(r#"{"a":1,"a":2}"#, &json!({"a": 2}), &[r#"duplicate field "a""#]);
    check(
        r#"{"metadata":{"name":"x","name":"y"},"spec":{"c":[{},{"p":1,"p":1,"p":2}]}}"#,
        &json!({"metadata": {"name": "y"}, "spec": {"c": [{}, {"p": 2}]}}),
        &[
            r#"duplicate field "metadata.name""#,
            r#"duplicate field "spec.c[1].p""#,
        ],
    );
    // Names differ by case, and equal names in different objects are not repetitions.
    check(
        r#"{"a":{"x":1},"A":{"x":1}}"#,
        &json!({"a": {"x": 1}, "A": {"x": 1}}),
        &[],
    );
    check(
        r#"{"a":1,"\u0061":2}"#,
        &json!({"a": 2}),
        &[r#"duplicate field "a""#],
    );
}

#[test]
fn reports_are_bounded() {
    let fields: Vec<String> = (0..500)
        .flat_map(|n| [format!("\"f{n}\":1"), format!("\"f{n}\":2")])
        .collect();
    let (_, found) = parse_json(format!("{{{}}}", fields.join(",")).as_bytes(), 10).unwrap();
    assert_eq!(found.len(), MAX_REPORTED);
}

#[test]
fn numbers_are_integers_where_they_can_be() {
    check(
        "[1.0, -2e3, 0.5, 18446744073709551615, 9007199254740993]",
        &json!([1, -2000, 0.5, u64::MAX, 9007199254740993i64]),
        &[],
    );
    check("[1e20, -0.0]", &json!([1e20, 0]), &[]);
    assert!(matches!(parse_json(b"1e999", 10), Err(JsonError::Syntax(_))));
    for digits in [
        "1.9999999999999993",
        "0.21544346900318842",
        "9.999999999999999e-06",
        "0.1",
    ] {
        let (value, _) = parse_json(digits.as_bytes(), 10).unwrap();
        assert_eq!(
            value.as_f64().unwrap(),
            digits.parse::<f64>().unwrap(),
            "the nearest float"
        );
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse_json(nested(100).as_bytes(), 100).is_ok());
    assert!(matches!(
        parse_json(nested(101).as_bytes(), 100),
        Err(JsonError::TooDeep { limit: 100 })
    ));
    // Never closed, and far deeper than any stack: still an error, and at once.
    assert!(parse_json("[".repeat(1_000_000).as_bytes(), 100).is_err());
    assert!(parse_json("[".repeat(1_000_000).as_bytes(), usize::MAX).is_err());
    assert!(parse_json("{\"a\":".repeat(1_000_000).as_bytes(), 100).is_err());
}

#[test]
fn anything_but_one_value_is_an_error() {
    for text in [
        "",
        " ",
        "{",
        "{}x",
        "{} {}",
        "{\"a\":1,}",
        "nul",
        "\"a",
        "[1,]",
        "{\"a\" 1}",
        "'a'",
        "\u{feff}{}",
    ] {
        assert!(
            matches!(parse_json(text.as_bytes(), 10), Err(JsonError::Syntax(_))),
            "{text:?}"
        );
    }
    assert!(parse_json(b"\"\xff\"", 10).is_err());
}

proptest! {
    #[test]
    fn reads_what_serde_json_reads(text in "[\\[\\]{}:,\" 0-9a-e.\\\\u-]{0,60}") {
        let ours = parse_json(text.as_bytes(), 120).ok().map(|(value, _)| value);
        let theirs = serde_json::from_str::<Value>(&text).ok().map(normalized);
        prop_assert_eq!(ours, theirs);
    }
}

/// Integral floats as integers, the one thing in which the readers differ on purpose.
fn normalized(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            crate::go_number::json_number(number.as_f64().unwrap()).unwrap()
        }
        Value::Array(items) => items.into_iter().map(normalized).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (name, normalized(value)))
            .collect(),
        other => other,
    }
}

/// Prints the cost beside that of the plain reader; `cargo test --release -- --ignored --nocapture json_cost`.
#[test]
#[ignore = "a measurement"]
fn json_cost() {
    let item = json!({"metadata": {"name": "abc", "namespace": "default", "labels": {"app": "web", "tier": "x"}},
        "spec": {"replicas": 3, "template": {"containers": [{"name": "c", "image": "nginx:1", "ports": [{"containerPort": 80}]}]}}});
    let text = serde_json::to_vec(&json!({"items": vec![item; 200]})).unwrap();
    let mut best = [f64::MAX; 2];
    for _ in 0..60 {
        let started = std::time::Instant::now();
        drop(std::hint::black_box(
            serde_json::from_slice::<Value>(&text).unwrap(),
        ));
        best[0] = best[0].min(started.elapsed().as_secs_f64());
        let started = std::time::Instant::now();
        drop(std::hint::black_box(parse_json(&text, 100).unwrap()));
        best[1] = best[1].min(started.elapsed().as_secs_f64());
    }
    println!(
        "{} bytes: serde_json {:.1} us, strict {:.1} us",
        text.len(),
        best[0] * 1e6,
        best[1] * 1e6
    );
}
