//! Random input: parsing never panics, and evaluation never costs more than its budget.

// Helpers outside test functions are test code too.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use fairway_text_cel::{Activation, Env, Type, eval};
use proptest::prelude::*;

fn env() -> Env {
    Env::new()
        .with_variable("self", Type::Dyn)
        .with_variable("l", Type::list(Type::Int))
}

/// Text made of the pieces that expressions are made of, in any order.
fn fragments() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "self",
        ".",
        "a",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "?",
        ":",
        ",",
        "1",
        "2u",
        "1.5",
        "'x'",
        "b'y'",
        "+",
        "-",
        "*",
        "/",
        "%",
        "==",
        "!=",
        "<",
        "&&",
        "||",
        "!",
        " in ",
        ".map(a, ",
        ".all(a, ",
        ".exists(a, ",
        ".filter(a, ",
        "has(",
        "size(",
        "l",
        ".?b",
        "[?",
        "optional.of(",
        "\\",
        "\"",
        "'''",
        "r'",
        "0x",
        "9999999999999999999",
        "é",
        "\n",
        "//",
        "`",
        "null",
        "true",
        "lists.range(",
        "quantity('",
        "ip('",
        ".format([",
        ".matches('",
        ".sortBy(a, ",
        ".optMap(a, ",
        "timestamp('",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Expressions that are well formed and mostly well typed: arithmetic and loops over lists of integers.
fn expressions() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("l".to_owned()),
        Just("[1, 2, 3]".to_owned()),
        (0u32..5000).prop_map(|n| format!("lists.range({n})")),
    ];
    leaf.prop_recursive(5, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} + {b})")),
            inner.clone().prop_map(|a| format!("{a}.map(x, x + 1)")),
            inner.clone().prop_map(|a| format!("{a}.filter(x, x % 2 == 0)")),
            inner.clone().prop_map(|a| format!("{a}.sort()")),
            inner.clone().prop_map(|a| format!("{a}.reverse()")),
            inner.clone().prop_map(|a| format!("{a}.distinct()")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}.map(x, {b}.size())")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("({a} == {b} ? {a} : {b})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn compiling_anything_does_not_panic(source in "\\PC{0,80}") {
        let _ = env().compile(&source);
    }

    #[test]
    fn whatever_compiles_can_be_evaluated(source in fragments()) {
        if let Ok(program) = env().compile(&source) {
            let json = serde_json::json!({"a": [1, {"b": null}], "b": "text"});
            let mut budget = 10_000;
            let _ = eval(&program, &Activation::new().bind_json("self", &json), &mut budget);
        }
    }

    #[test]
    fn cost_never_exceeds_the_budget(source in expressions(), budget in 1u64..20_000) {
        let program = env().compile(&source).map_err(|e| TestCaseError::fail(format!("{source}: {}", e[0])))?;
        let json = serde_json::json!([1, 2, 3]);
        let activation = Activation::new().bind_json("l", &json);
        let mut unlimited = 100_000_000;
        let full = eval(&program, &activation, &mut unlimited);
        let spent = 100_000_000 - unlimited;
        let mut left = budget;
        let limited = eval(&program, &activation, &mut left);
        prop_assert!(left <= budget);
        prop_assert_eq!(limited.is_ok(), full.is_ok() && spent <= budget, "{}: {} of {}", source, spent, budget);
    }
}
