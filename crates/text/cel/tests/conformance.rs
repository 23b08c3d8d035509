//! The conformance tests of the CEL specification, as far as they do not need protobuf messages.
//!
//! They live in the Go module `cel.dev/expr` and run only when `FAIRWAY_CEL_SPEC` is set and `go` can fetch that module.

// Helpers outside test functions are test code too.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

#[path = "conformance/textproto.rs"]
mod textproto;

use std::path::PathBuf;
use std::process::Command;

use fairway_text_cel::{Activation, Env, Library, Type, Value, eval};
use textproto::Message;

const MODULE: &str = "cel.dev/expr@v0.24.0";

const FILES: &[&str] = &[
    "basic",
    "bindings_ext",
    "comparisons",
    "conversions",
    "encoders_ext",
    "fields",
    "fp_math",
    "integer_math",
    "lists",
    "logic",
    "macros",
    "macros2",
    "math_ext",
    "namespace",
    "optionals",
    "parse",
    "plumbing",
    "string",
    "string_ext",
    "timestamps",
    "type_deduction",
];

const OUT_OF_SCOPE: &[&str] = &[
    "block_ext (cel.block, an optimizer's output)",
    "dynamic, proto2, proto2_ext, proto3, wrappers, enums (protobuf messages)",
    "unknowns (partial evaluation)",
    "single tests that name protobuf types, containers or declare functions",
];

/// Where Kubernetes' CEL differs from the specification, and this crate with it.
const KNOWN: &[(&str, &str)] = &[
    (
        "timestamps/duration_converters/get_milliseconds",
        "counts whole milliseconds, as cel-go does",
    ),
    (
        "string_ext/format/",
        "version 2 of the strings extension prints numbers as the locale en_US does",
    ),
    (
        "string_ext/value_errors/indexof_out_of_range",
        "version 2 of the strings extension: -1",
    ),
    (
        "string_ext/value_errors/lastindexof_out_of_range",
        "version 2 of the strings extension: -1",
    ),
];

fn testdata() -> Option<PathBuf> {
    std::env::var_os("FAIRWAY_CEL_SPEC")?;
    let output = Command::new("go")
        .args(["mod", "download", "-json", MODULE])
        .output()
        .ok()?;
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(PathBuf::from(json["Dir"].as_str()?).join("tests/simple/testdata"))
}

fn env(test: &Message) -> Option<Env> {
    let mut env = Env::new().with_mixed_literals();
    for library in [
        Library::Bindings,
        Library::Math,
        Library::Encoders,
        Library::StringsLatest,
    ] {
        env = env.with_library(library);
    }
    for declaration in test.all("type_env") {
        let ty = declaration.message("ident")?.message("type")?;
        env = env.with_variable(&declaration.text("name")?, declared_type(ty)?);
    }
    if test.has("disable_check") {
        // Without the checker every variable is dynamic; this crate always checks.
        for binding in test.all("bindings") {
            env = env.with_variable(&binding.text("key")?, Type::Dyn);
        }
    }
    Some(env)
}

fn declared_type(ty: &Message) -> Option<Type> {
    if let Some(primitive) = ty.text("primitive") {
        return Some(match primitive.as_str() {
            "BOOL" => Type::Bool,
            "INT64" => Type::Int,
            "UINT64" => Type::Uint,
            "DOUBLE" => Type::Double,
            "STRING" => Type::String,
            "BYTES" => Type::Bytes,
            _ => return None,
        });
    }
    if let Some(list) = ty.message("list_type") {
        return Some(Type::list(
            list.message("elem_type").map_or(Some(Type::Dyn), declared_type)?,
        ));
    }
    if let Some(map) = ty.message("map_type") {
        return Some(Type::map(
            declared_type(map.message("key_type")?)?,
            declared_type(map.message("value_type")?)?,
        ));
    }
    if ty.has("dyn") {
        return Some(Type::Dyn);
    }
    match ty.text("well_known")?.as_str() {
        "TIMESTAMP" => Some(Type::Timestamp),
        "DURATION" => Some(Type::Duration),
        _ => None,
    }
}

fn value(message: &Message) -> Option<Value<'static>> {
    let (field, scalar) = message.first()?;
    Some(match field {
        "null_value" => Value::Null,
        "bool_value" => Value::Bool(scalar.text()? == "true"),
        "int64_value" => Value::Int(scalar.text()?.parse().ok()?),
        "uint64_value" => Value::Uint(scalar.text()?.parse().ok()?),
        "double_value" => Value::Double(match scalar.text()?.as_str() {
            "inf" | "infinity" => f64::INFINITY,
            "-inf" | "-infinity" => f64::NEG_INFINITY,
            other => other.parse().ok()?,
        }),
        "string_value" => Value::string(scalar.text()?),
        "bytes_value" => Value::Bytes(scalar.bytes()?.into()),
        "type_value" => Value::string(format!("type:{}", scalar.text()?)),
        "list_value" => Value::list(
            scalar
                .message()?
                .all("values")
                .map(value)
                .collect::<Option<_>>()?,
        ),
        "map_value" => return None,
        _ => return None,
    })
}

/// Maps are compared entry by entry, since the reader cannot build them.
fn matches(wanted: &Message, found: &Value<'_>) -> Option<bool> {
    if let Some(map) = wanted.message("map_value") {
        let Value::Map(found) = found else {
            return Some(false);
        };
        let entries: Vec<_> = map.all("entries").collect();
        if entries.len() != found.len() {
            return Some(false);
        }
        for entry in entries {
            let key = value(entry.message("key")?)?;
            match found.get(&key) {
                Ok(Some(inner)) if matches(entry.message("value")?, &inner)? => {}
                _ => return Some(false),
            }
        }
        return Some(true);
    }
    if let Some(list) = wanted.message("list_value") {
        let Value::List(found) = found else {
            return Some(false);
        };
        let values: Vec<_> = list.all("values").collect();
        if values.len() != found.len() {
            return Some(false);
        }
        for (index, wanted) in values.into_iter().enumerate() {
            if !matches(wanted, &found.get(index).ok()?)? {
                return Some(false);
            }
        }
        return Some(true);
    }
    Some(match (value(wanted)?, found) {
        (Value::Double(a), Value::Double(b)) if a.is_nan() => b.is_nan(),
        (Value::String(text), Value::Type(name)) => text.strip_prefix("type:") == Some(*name),
        (a, b) if a.type_name() != b.type_name() => false,
        (Value::Bytes(a), Value::Bytes(b)) => a == *b,
        (a, b) => a.to_json() == b.to_json(),
    })
}

enum Verdict {
    Pass,
    Skip,
    Fail(String),
}

fn run(test: &Message) -> Verdict {
    let Some(expr) = test.text("expr") else {
        return Verdict::Skip;
    };
    let foreign = [
        "google.",
        "cel.expr",
        "TestAllTypes",
        "GlobalEnum",
        "proto.",
        "cel.block",
        "cel.@block",
    ];
    let duration = expr.contains("google.protobuf.Timestamp") || expr.contains("google.protobuf.Duration");
    if test.has("container") || (foreign.iter().any(|name| expr.contains(name)) && !duration) {
        return Verdict::Skip;
    }
    let Some(env) = env(test) else {
        return Verdict::Skip;
    };
    let fails = test.has("eval_error") || test.has("any_eval_errors");
    let program = match env.compile(&expr) {
        Ok(program) => program,
        Err(_) if fails => return Verdict::Pass,
        // Tests that only make sense without a checker.
        Err(_) if test.has("disable_check") => return Verdict::Skip,
        Err(errors) => return Verdict::Fail(format!("does not compile: {}", errors[0].message)),
    };
    if test.has("check_only") {
        return Verdict::Skip;
    }
    let mut activation = Activation::new();
    let bindings: Option<Vec<_>> = test
        .all("bindings")
        .map(|binding| {
            Some((
                binding.text("key")?,
                value(binding.message("value")?.message("value")?)?,
            ))
        })
        .collect();
    let Some(bindings) = bindings else {
        return Verdict::Skip;
    };
    for (name, value) in &bindings {
        activation = activation.bind(name, value.clone());
    }
    let mut budget = 1_000_000;
    let wanted = test
        .message("value")
        .or_else(|| test.message("typed_result").and_then(|t| t.message("result")));
    match (eval(&program, &activation, &mut budget), wanted) {
        (Err(_), _) if fails => Verdict::Pass,
        (Err(error), _) => Verdict::Fail(error.to_string()),
        (Ok(_), _) if fails => Verdict::Fail("did not fail".to_owned()),
        // Tests without a value expect `true`.
        (Ok(found), None) => match found {
            Value::Bool(true) => Verdict::Pass,
            other => Verdict::Fail(format!("{other:?}")),
        },
        (Ok(found), Some(wanted)) => match matches(wanted, &found) {
            Some(true) => Verdict::Pass,
            Some(false) => Verdict::Fail(format!("{found:?}")),
            None => Verdict::Skip,
        },
    }
}

#[test]
fn specification() {
    let Some(directory) = testdata() else {
        println!("SKIPPED: set FAIRWAY_CEL_SPEC and install go to run the specification's tests");
        return;
    };
    let (mut passed, mut skipped, mut known, mut failures) = (0, 0, 0, Vec::new());
    for file in FILES {
        let text = std::fs::read_to_string(directory.join(format!("{file}.textproto"))).unwrap();
        let parsed = textproto::parse(&text);
        for section in parsed.all("section") {
            for test in section.all("test") {
                let name = format!(
                    "{file}/{}/{}",
                    section.text("name").unwrap_or_default(),
                    test.text("name").unwrap_or_default()
                );
                match run(test) {
                    Verdict::Fail(_) if KNOWN.iter().any(|(prefix, _)| name.starts_with(prefix)) => {
                        known += 1;
                    }
                    Verdict::Pass => passed += 1,
                    Verdict::Skip => skipped += 1,
                    Verdict::Fail(why) => failures.push(format!(
                        "{name}: {}: {why}",
                        test.text("expr").unwrap_or_default()
                    )),
                }
            }
        }
    }
    println!(
        "{passed} passed, {} failed, {known} differ as Kubernetes does, {skipped} out of scope",
        failures.len()
    );
    println!("out of scope: {}", OUT_OF_SCOPE.join("; "));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
