//! Agreement with Kubernetes: `golden/expected.json` is what its own CEL environment says about `golden/cases.json`.

// Helpers outside test functions are test code too.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use fairway_text_cel::{Activation, DeclType, Env, Value, eval};
use serde_json::Value as Json;

/// Where we differ on purpose, each with its reason.
const KNOWN: &[(&str, &str)] = &[
    ("\"a", "upstream reports a second error at the end of the input"),
    (
        "int(\"x\")",
        "upstream folds constants after compiling, and so has no position to report",
    ),
    ("string(b\"\\xff\")", "as above"),
    (
        "self.str.find(\"[\")",
        "as above, and another library's words about the pattern",
    ),
    (
        "\"a\".matches(self.str + \"[\")",
        "another library's words about the pattern",
    ),
    (
        "[\"a\", \"a\"].transformMapEntry(i, v, {v: i})",
        "the failing insertion is not charged",
    ),
];

fn read(text: &str) -> Json {
    serde_json::from_str(text).unwrap()
}

/// The result in the form in which the generator writes it.
fn shown(value: &Value<'_>) -> Json {
    match value {
        Value::Bool(v) => serde_json::json!({ "bool": v }),
        Value::Int(v) => serde_json::json!({ "int": v }),
        Value::Double(v) if v.fract() == 0.0 => serde_json::json!({ "double": *v as i64 }),
        Value::Double(v) => serde_json::json!({ "double": v }),
        Value::String(v) => serde_json::json!({ "string": v.as_str() }),
        Value::Uint(v) => serde_json::json!({ "uint": v.to_string() }),
        other => serde_json::json!({ "other": other.type_name() }),
    }
}

/// Everything about one expression, as lines that can be compared.
fn outcome(env: &Env, expr: &str, self_value: &Json, decl: &DeclType) -> Vec<(&'static str, String)> {
    let program = match env.compile(expr) {
        Ok(program) => program,
        Err(errors) => {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            return vec![("compileError", errors.join("\n"))];
        }
    };
    let estimate = program.estimate_cost();
    let mut lines = vec![
        ("type", program.result_type().to_string()),
        ("minCost", estimate.min.to_string()),
        ("maxCost", estimate.max.to_string()),
    ];
    let activation = Activation::new()
        .bind_schema_value("self", self_value, decl)
        .bind_schema_value("oldSelf", self_value, decl);
    let mut budget = 10_000_000;
    match eval(&program, &activation, &mut budget) {
        Ok(value) => lines.push(("result", shown(&value).to_string())),
        Err(error) => lines.push(("error", error.to_string())),
    }
    lines.push(("cost", (10_000_000 - budget).to_string()));
    lines
}

fn wanted(expected: &Json, field: &str) -> String {
    match &expected[field] {
        Json::String(text) => text.clone(),
        Json::Null => String::new(),
        other => other.to_string(),
    }
}

#[test]
fn results_errors_and_costs_are_those_of_kubernetes() {
    let cases = read(include_str!("golden/cases.json"));
    let expected = read(include_str!("golden/expected.json"));
    let (mut count, mut differences) = (0, Vec::new());
    for (group, expected) in cases.as_array().unwrap().iter().zip(expected.as_array().unwrap()) {
        let decl = DeclType::from_json_schema(&group["schema"], false).unwrap();
        let env = Env::new()
            .with_schema_variable("self", &decl)
            .with_schema_variable("oldSelf", &decl);
        for expected in expected.as_array().unwrap() {
            let expr = expected["expr"].as_str().unwrap();
            if KNOWN.iter().any(|(known, _)| *known == expr) {
                continue;
            }
            count += 1;
            for (field, found) in outcome(&env, expr, &group["self"], &decl) {
                let wanted = wanted(expected, field);
                if wanted != found {
                    differences.push(format!("{expr}\n    {field}: {found}\n    wanted: {wanted}"));
                }
            }
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {count}:\n{}",
        differences.len(),
        differences.join("\n")
    );
    println!("{count} expressions agree, {} differ on purpose", KNOWN.len());
}
