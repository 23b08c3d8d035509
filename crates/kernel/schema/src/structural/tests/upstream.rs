//! Answers that Kubernetes itself gave, see `testdata/upstream`.

use serde_json::Value;

use super::load;
use crate::field::{FieldError, Path};
use crate::structural::{Budget, Structural};

fn sorted(errors: &[FieldError]) -> Vec<String> {
    let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.sort();
    texts
}

fn texts(value: &Value) -> Vec<String> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// Whole numbers compare equal however they are written.
fn plain(value: &Value) -> Value {
    crate::structural::canonical::shown(value)
}

#[test]
fn objects() {
    let mut count = 0;
    for line in include_str!("../../../testdata/upstream/objects.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (schema, value) = (&case["schema"], &case["value"]);
        let compiled = load(schema);
        assert_eq!(
            sorted(&Structural::violations(schema, &Path::root())),
            texts(&case["structural"]),
            "{line}"
        );
        let errors = compiled.validate(value, None, &mut Budget::default());
        assert_eq!(sorted(&errors), texts(&case["errors"]), "{line}");
        if let Some(update) = case.get("update") {
            let errors = compiled.validate(value, Some(&case["old"]), &mut Budget::default());
            assert_eq!(sorted(&errors), texts(update), "{line}");
        }
        let mut pruned = value.clone();
        assert_eq!(compiled.prune(&mut pruned), texts(&case["unknown"]), "{line}");
        assert_eq!(plain(&pruned), plain(&case["pruned"]), "{line}");
        let mut defaulted = value.clone();
        compiled.drop_nulls(&mut defaulted);
        compiled.default(&mut defaulted);
        assert_eq!(plain(&defaulted), plain(&case["default"]), "{line}");
        count += 1;
    }
    assert!(count > 340, "{count}");
}

#[test]
fn definitions() {
    // Upstream shows values in its own notation where it shows whole structures.
    let cut = |text: String| match text.split_once(": Invalid value: {") {
        Some((path, rest)) => format!(
            "{path}: {}",
            rest.rsplit_once("}: ").map_or(rest, |(_, detail)| detail)
        ),
        None => text,
    };
    let mut count = 0;
    for line in include_str!("../../../testdata/upstream/definitions.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let mut ours: Vec<String> = sorted(&crate::crd::validate(&case["definition"]))
            .into_iter()
            .map(cut)
            .collect();
        let mut theirs: Vec<String> = texts(&case["errors"]).into_iter().map(cut).collect();
        ours.sort();
        theirs.sort();
        assert_eq!(ours, theirs, "{line}");
        count += 1;
    }
    assert!(count > 250, "{count}");
}
