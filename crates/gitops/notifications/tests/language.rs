//! Expressions as the original evaluates them: the golden file is written by `tests/notifications` with the real expr-lang.

// Helpers outside test functions are test code too.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fairway_gitops_notifications::{Config, Facts, Subject, decide};
use serde_json::{Value, json};

const EXPRESSIONS: &str = include_str!("../testdata/expressions.txt");
const GOLDEN: &str = include_str!("../testdata/expressions.golden");
const VARIABLES: &str = include_str!("../testdata/variables.json");
/// What the original refuses by the types of literals before it evaluates anything. Here types are looked at when there are values,
/// which are nothing, or fit after all.
const NOT_REFUSED: [&str; 7] = [
    "'hello'[0]",
    "1 == '1'",
    "true and 1",
    "'x' in nil",
    "nil contains 'a'",
    "last('abc')",
    "get(nil, 'x')",
];
const NOW: &str = "2026-05-01T10:00:00Z";

/// The value of an expression, by the only door: what a condition is told once for.
fn evaluate(text: &str, application: &Value) -> Option<String> {
    let entries: BTreeMap<String, String> = [
        (
            "trigger.t",
            json!([{"when": "true", "oncePer": format!("[(\n{text}\n)]"), "send": []}]).to_string(),
        ),
        ("service.webhook.hook", "url: http://x".to_owned()),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .into();
    let config = Config::read(&entries, &BTreeMap::new());
    let subject = Subject {
        application,
        project: &Value::Null,
        unrecorded: &[],
    };
    let now = NOW.parse::<jiff::Timestamp>().unwrap().as_nanosecond();
    let decision = decide(&config, &subject, &Facts::at(now));
    let key = &decision.notices.first()?.key;
    // `[VALUE]:t:[0].HASH:hook:`
    let value = key.rsplit_once(":t:[0].")?.0;
    Some(value.strip_prefix('[')?.strip_suffix(']')?.to_owned())
}

#[test]
fn values_are_the_originals() {
    let mut application = serde_json::from_str::<Value>(VARIABLES).unwrap()["app"].clone();
    application["metadata"]["annotations"]["notifications.argoproj.io/subscribe.t.hook"] = "".into();
    let mut found = String::new();
    for text in EXPRESSIONS.lines().filter(|line| !line.is_empty()) {
        let value = evaluate(text, &application).unwrap_or_else(|| "error".to_owned());
        let value = fairway_text_gotemplate::text::quoted(&value);
        writeln!(found, "{text}\n  {value}").unwrap();
    }
    let differing: Vec<String> = pairs(&found)
        .zip(pairs(GOLDEN))
        .filter(|(ours, theirs)| ours != theirs && !NOT_REFUSED.contains(&ours.0))
        .map(|((text, ours), (_, theirs))| format!("{text}: {ours} instead of {theirs}"))
        .collect();
    assert_eq!(pairs(&found).count(), pairs(GOLDEN).count());
    assert!(
        differing.is_empty(),
        "{} differ:\n{}",
        differing.len(),
        differing.join("\n")
    );
}

fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut lines = text.lines();
    std::iter::from_fn(move || Some((lines.next()?, lines.next()?)))
}
