//! Tables: the examples of RFC 6902, then upstream's liberties, then errors.

use serde_json::json;

use super::*;

#[test]
fn examples_of_the_rfc() {
    for (name, document, patch, expected) in [
        (
            "A.1",
            json!({"foo": "bar"}),
            json!([{"op": "add", "path": "/baz", "value": "qux"}]),
            json!({"foo": "bar", "baz": "qux"}),
        ),
        (
            "A.2",
            json!({"foo": ["bar", "baz"]}),
            json!([{"op": "add", "path": "/foo/1", "value": "qux"}]),
            json!({"foo": ["bar", "qux", "baz"]}),
        ),
        (
            "A.3",
            json!({"baz": "qux", "foo": "bar"}),
            json!([{"op": "remove", "path": "/baz"}]),
            json!({"foo": "bar"}),
        ),
        (
            "A.4",
            json!({"foo": ["bar", "qux", "baz"]}),
            json!([{"op": "remove", "path": "/foo/1"}]),
            json!({"foo": ["bar", "baz"]}),
        ),
        (
            "A.5",
            json!({"baz": "qux"}),
            json!([{"op": "replace", "path": "/baz", "value": "boo"}]),
            json!({"baz": "boo"}),
        ),
        (
            "A.6",
            json!({"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}}),
            json!([{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}]),
            json!({"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}}),
        ),
        (
            "A.7",
            json!({"foo": ["all", "grass", "cows", "eat"]}),
            json!([{"op": "move", "from": "/foo/1", "path": "/foo/3"}]),
            json!({"foo": ["all", "cows", "eat", "grass"]}),
        ),
        (
            "A.8",
            json!({"baz": "qux", "foo": ["a", 2, "c"]}),
            json!([{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}]),
            json!({"baz": "qux", "foo": ["a", 2, "c"]}),
        ),
        (
            "A.14",
            json!({"/": 9, "~1": 10}),
            json!([{"op": "test", "path": "/~01", "value": 10}]),
            json!({"/": 9, "~1": 10}),
        ),
        (
            "A.16",
            json!({"foo": ["bar"]}),
            json!([{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}]),
            json!({"foo": ["bar", ["abc", "def"]]}),
        ),
    ] {
        assert_eq!(json_patch(document, &patch), Ok(expected), "{name}");
    }
}

#[test]
fn liberties() {
    for (name, document, patch, expected) in [
        (
            "replace adds",
            json!({}),
            json!([{"op": "replace", "path": "/a", "value": 1}]),
            json!({"a": 1}),
        ),
        (
            "absent is null",
            json!({}),
            json!([{"op": "test", "path": "/a", "value": null}, {"op": "test", "path": "/a"}]),
            json!({}),
        ),
        (
            "copy of absent",
            json!({}),
            json!([{"op": "copy", "from": "/a", "path": "/b"}]),
            json!({"b": null}),
        ),
        (
            "no value is null",
            json!({}),
            json!([{"op": "add", "path": "/a"}]),
            json!({"a": null}),
        ),
        (
            "negative index",
            json!([1, 2, 3]),
            json!([{"op": "remove", "path": "/-1"}]),
            json!([1, 2]),
        ),
        (
            "negative add",
            json!([1, 2]),
            json!([{"op": "add", "path": "/-1", "value": 3}]),
            json!([1, 2, 3]),
        ),
        (
            "text before the slash",
            json!({"a": 1}),
            json!([{"op": "remove", "path": "x/a"}]),
            json!({}),
        ),
        (
            "whole document",
            json!({"a": 1}),
            json!([{"op": "replace", "path": "", "value": {"b": 2}}]),
            json!({"b": 2}),
        ),
        ("no operations", json!({"a": 1}), json!(null), json!({"a": 1})),
        (
            "escaped annotation",
            json!({"m": {"a/b": "x", "c~d": "y"}}),
            json!([{"op": "remove", "path": "/m/a~1b"}, {"op": "add", "path": "/m/c~0d", "value": "z"}]),
            json!({"m": {"c~d": "z"}}),
        ),
    ] {
        assert_eq!(json_patch(document, &patch), Ok(expected), "{name}");
    }
}

#[test]
fn errors_and_their_status() {
    let many = Value::Array(vec![json!({"op": "test", "path": ""}); MAX_OPERATIONS + 1]);
    for (document, patch, status, message) in [
        (
            json!({}),
            json!({}),
            400,
            "cannot unmarshal object into Go value of type jsonpatch.Patch",
        ),
        (
            json!({}),
            json!([1]),
            400,
            "cannot unmarshal number into Go value of type jsonpatch.Operation",
        ),
        (
            json!({}),
            many,
            413,
            "The allowed maximum operations in a JSON patch is 10000, got 10001",
        ),
        (
            json!({}),
            json!([{"op": "jump", "path": "/a"}]),
            422,
            "Unexpected kind: jump",
        ),
        (json!({}), json!([null]), 422, "Unexpected kind: unknown"),
        (
            json!({}),
            json!([{"op": "add"}]),
            422,
            "add operation failed to decode path: missing value",
        ),
        (
            json!({}),
            json!([{"op": "remove", "path": "/a"}]),
            422,
            "error in remove for path: '/a': Unable to remove nonexistent key: a: missing value",
        ),
        (
            json!({}),
            json!([{"op": "add", "path": "/a/b", "value": 1}]),
            422,
            "add operation does not apply: doc is missing path: \"/a/b\": missing value",
        ),
        (
            json!({"a": 1}),
            json!([{"op": "add", "path": "/a/b", "value": 1}]),
            422,
            "doc is missing path",
        ),
        (
            json!({"a": [1]}),
            json!([{"op": "add", "path": "/a/2", "value": 1}]),
            422,
            "Unable to access invalid index: 2: invalid index referenced",
        ),
        (
            json!({"a": [1]}),
            json!([{"op": "replace", "path": "/a/x", "value": 1}]),
            422,
            "replace operation does not apply: doc is missing key: /a/x: missing value",
        ),
        (
            json!({"a": [1]}),
            json!([{"op": "remove", "path": "/a/-2"}]),
            422,
            "invalid index",
        ),
        (
            json!({"a": [1]}),
            json!([{"op": "remove", "path": "/a/-9223372036854775808"}]),
            422,
            "invalid index",
        ),
        (
            json!({"a": 1}),
            json!([{"op": "test", "path": "/a", "value": 2}]),
            422,
            "testing value /a failed: test failed",
        ),
        (
            json!({"a": 1}),
            json!([{"op": "test", "path": "/a"}]),
            422,
            "testing value /a failed: test failed",
        ),
        (
            json!({"a": 1}),
            json!([{"op": "move", "from": "/b", "path": "/c"}]),
            422,
            "error in move for path: 'b'",
        ),
        (
            json!({"a": 1}),
            json!([{"op": "replace", "path": "", "value": 1}]),
            422,
            "must be object or array",
        ),
        (
            json!({}),
            json!([{"op": "add", "path": "", "value": {}}]),
            422,
            "add operation does not apply",
        ),
    ] {
        let error = json_patch(document, &patch).unwrap_err();
        assert_eq!(error.status(), status, "{patch}: {error}");
        assert!(
            error.to_string().contains(message),
            "{error} should say {message}"
        );
    }
}

#[test]
fn copies_do_not_add_up_without_end() {
    let doubling: Vec<Value> = (0..40)
        .map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"}))
        .collect();
    let error = json_patch(json!({"a": ["0123456789"]}), &Value::Array(doubling)).unwrap_err();
    assert!(
        error.to_string().contains("exceeding the limit 3145728"),
        "{error}"
    );
}

#[test]
fn operations_cannot_stack_values_without_end() {
    let nested = (0..60).fold(json!(1), |inner, _| json!({"a": inner}));
    let document = json!({"spec": nested, "other": nested});
    let below = format!("/spec{}", "/a".repeat(60));
    for operation in [
        json!({"op": "add", "path": below, "value": nested}),
        json!({"op": "replace", "path": below, "value": nested}),
        json!({"op": "copy", "from": "/spec", "path": below}),
        json!({"op": "move", "from": "/other", "path": below}),
    ] {
        let refused = json_patch(document.clone(), &json!([operation]));
        assert!(
            matches!(&refused, Err(PatchError::Beyond(why)) if why.contains("nest deeper")),
            "{operation}: {refused:?}"
        );
    }
    let shallow = json!([{"op": "copy", "from": "/other", "path": "/spec/b"}]);
    assert!(json_patch(document, &shallow).is_ok());
}
