//! Writing, compared byte for byte to Go's own results, and read back.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{EmitOptions, to_string, to_string_with};
use crate::{Limits, baseline, from_str};

#[test]
fn writes_what_go_writes() {
    let writings = baseline::load().writings;
    let mut wrong = Vec::new();
    for writing in &writings {
        let value: Value = serde_json::from_str(&writing.json).unwrap();
        let ours = to_string(&value);
        // Written with escapes here, since readers disagree on whether these end a line.
        if writing.json.contains(['\u{85}', '\u{2028}', '\u{2029}']) || writing.json.contains("\\u202") {
            continue;
        }
        let theirs = writing.yaml.replace("<<:", "\"<<\":");
        if ours != theirs {
            wrong.push(format!(
                "{}\n  ours   {ours:?}\n  theirs {:?}",
                writing.json, writing.yaml
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        writings.len(),
        wrong.join("\n")
    );
}

#[test]
fn options_keep_order_and_lines() {
    let long = "word ".repeat(40);
    let value = json!({"b": 1, "a": format!("{long}end")});
    let kept = to_string_with(
        &value,
        EmitOptions {
            sort_keys: false,
            width: None,
        },
    );
    assert_eq!(kept, format!("b: 1\na: {long}end\n"));
    assert!(to_string(&value).starts_with("a: word ") && to_string(&value).contains("\n  word "));
}

#[test]
fn floats_without_fraction_are_written_as_integers() {
    for (value, want) in [
        (json!(1.0), "1\n"),
        (json!(-3e10), "-30000000000\n"),
        (json!(14_202_368_924_653_336_576.0), "14202368924653336576\n"),
        (json!(1e20), "1e+20\n"),
        (json!(1.5), "1.5\n"),
    ] {
        assert_eq!(to_string(&value), want);
    }
}

pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", crate::go_number::json_number),
        (-1e6..1e6f64).prop_filter_map("finite", crate::go_number::json_number),
    ];
    let text = prop_oneof![
        any::<String>(),
        "[ -~\n]{0,20}",
        "[-yesnotruflI0-9:.+xT ]{0,12}",
        "([a-z]{1,9} ){10,30}",
        "[ \n\t'\"#:\\\\-]{0,8}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number,
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((text.clone(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn what_is_written_reads_back(value in any_json()) {
        for options in [EmitOptions::default(), EmitOptions { sort_keys: false, width: None }] {
            let text = to_string_with(&value, options);
            let read = from_str(&text, Limits::default());
            prop_assert_eq!(read.as_ref(), Ok(&value), "{}", text);
        }
    }
}
