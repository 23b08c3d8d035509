//! Random input: reading never panics, and evaluating and deciding end.

// Helpers outside test functions are test code too.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use fairway_gitops_notifications::expr::Expr;
use fairway_gitops_notifications::{Config, Facts, Subject, decide};
use proptest::prelude::*;
use serde_json::json;

/// Text made of the pieces that expressions are made of, in any order.
fn fragments() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "app",
        ".",
        "status",
        "?.",
        "??",
        "?",
        ":",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ";",
        "1",
        "2.5",
        "0x",
        "1e9",
        "'x'",
        "\"",
        "`",
        "\\",
        "+",
        "-",
        "*",
        "/",
        "%",
        "**",
        "..",
        "==",
        "!=",
        "<",
        ">=",
        "&&",
        "||",
        "!",
        " in ",
        " not ",
        " and ",
        " or ",
        " matches ",
        " contains ",
        "let a = ",
        "if ",
        " else ",
        "nil",
        "true",
        "#",
        "#acc",
        "#index",
        "all(",
        "map(",
        "filter(",
        "reduce(",
        "sortBy(",
        "groupBy(",
        "len(",
        "string(",
        "repeat(",
        "toJSON(",
        "flatten(",
        "time.Now()",
        "time.Parse(",
        ".Add(",
        "time.Minute",
        "repo.QueryEscape(",
        "|",
        "::",
        "é",
        "\n",
        "//",
        "/*",
        "9999999999999999999",
        "$env",
        "app.metadata.name",
        "app.list",
        "join(",
        "split(",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Expressions that are well formed: lists that grow.
fn expressions() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("app.list".to_owned()),
        Just("[1, 2, 3]".to_owned()),
        (0u32..100_000).prop_map(|n| format!("0..{n}")),
    ];
    leaf.prop_recursive(5, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("concat({a}, {b})")),
            inner.clone().prop_map(|a| format!("map({a}, [#, #])")),
            inner.clone().prop_map(|a| format!("filter({a}, # in {a})")),
            inner.clone().prop_map(|a| format!("reduce({a}, [#acc, #acc])")),
            inner.clone().prop_map(|a| format!("uniq({a})")),
            inner.clone().prop_map(|a| format!("[string({a})]")),
            inner.clone().prop_map(|a| format!("flatten({a})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("map({a}, len({b}))")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("({a} == {b} ? {a} : {b})")),
        ]
    })
}

/// Decides with a condition and a template; what is told.
fn told(when: &str, message: &str) -> usize {
    let entries: BTreeMap<String, String> = [
        (
            "trigger.t",
            json!([{"when": when, "oncePer": when, "send": ["m"]}]).to_string(),
        ),
        ("template.m", json!({"message": message}).to_string()),
        ("service.webhook.hook", "url: http://x".to_owned()),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .into();
    let config = Config::read(&entries, &BTreeMap::new());
    let application = json!({"metadata": {
        "name": "x", "annotations": {"notifications.argoproj.io/subscribe.t.hook": ""},
    }, "list": [1, [2, {"a": null}], "text"]});
    let subject = Subject {
        application: &application,
        project: &json!(null),
        unrecorded: &[],
    };
    decide(&config, &subject, &Facts::at(0)).notices.len()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn reading_anything_does_not_panic(source in "\\PC{0,80}") {
        let _ = Expr::parse(&source);
    }

    #[test]
    fn whatever_can_be_read_can_be_judged(source in fragments()) {
        told(&source, "");
    }

    #[test]
    fn no_expression_runs_away(source in expressions()) {
        let begun = std::time::Instant::now();
        told(&source, "");
        prop_assert!(begun.elapsed().as_secs() < 10, "{source}");
    }

    #[test]
    fn no_template_panics(source in "[a-z{}.$|()\" ]{0,60}") {
        told("true", &source);
    }

    #[test]
    fn no_entry_panics(key in "(trigger|template|service|subscriptions|context|defaultTriggers)(\\.[a-z]{1,8}){0,3}", content in "\\PC{0,80}") {
        let entries: BTreeMap<String, String> = [(key, content)].into();
        let _ = Config::read(&entries, &BTreeMap::new());
    }
}
