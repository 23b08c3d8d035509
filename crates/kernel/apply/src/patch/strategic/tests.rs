//! Tables for strategic merge patch, over a kind like a Pod's template.

use fairway_kernel_schema::shape::{
    Atom, Field, List, ListRelationship, Map as MapShape, PatchStrategy, Scalar, ShapeId, Shapes,
};
use serde_json::json;

use super::*;

fn schema() -> (Shapes, ShapeId) {
    let mut shapes = Shapes::new();
    let text = shapes.push(Atom {
        scalar: Some(Scalar::Untyped),
        ..Atom::default()
    });
    let list = |shapes: &mut Shapes, element, merge_key: Option<&'static str>, merge| {
        let patch = PatchStrategy {
            merge,
            retain_keys: false,
            merge_key: merge_key.map(Into::into),
        };
        let list = List {
            element,
            relationship: ListRelationship::Atomic,
            patch,
        };
        shapes.push(Atom {
            list: Some(list),
            ..Atom::default()
        })
    };
    let record = |shapes: &mut Shapes, fields: &[(&'static str, ShapeId)], element| {
        let mut fields: Vec<Field> = fields
            .iter()
            .map(|(name, shape)| Field {
                name: (*name).into(),
                shape: *shape,
                default: None,
                patch: PatchStrategy::default(),
            })
            .collect();
        fields.sort_by(|l, r| l.name.cmp(&r.name));
        shapes.push(Atom {
            map: Some(MapShape {
                fields,
                element,
                atomic: false,
            }),
            ..Atom::default()
        })
    };
    let labels = record(&mut shapes, &[], Some(text));
    let env = record(&mut shapes, &[("name", text), ("value", text)], None);
    let envs = list(&mut shapes, env, Some("name"), true);
    let args = list(&mut shapes, text, None, false);
    let container = record(
        &mut shapes,
        &[("name", text), ("image", text), ("env", envs), ("args", args)],
        None,
    );
    let containers = list(&mut shapes, container, Some("name"), true);
    let finalizers = list(&mut shapes, text, None, true);
    let tolerations = list(&mut shapes, env, None, false);
    let keyless = list(&mut shapes, env, None, true);
    let nested = record(&mut shapes, &[], Some(labels));
    let strategy = record(&mut shapes, &[("type", text), ("rolling", labels)], None);
    let root = record(
        &mut shapes,
        &[
            ("labels", labels),
            ("containers", containers),
            ("finalizers", finalizers),
            ("tolerations", tolerations),
            ("keyless", keyless),
            ("nested", nested),
            ("strategy", strategy),
            ("replicas", text),
        ],
        None,
    );
    (shapes, root)
}

#[test]
fn merges_by_strategy() {
    let (shapes, root) = schema();
    let c = |name: &str, image: &str| json!({"name": name, "image": image});
    for (name, original, patch, expected) in [
        (
            "scalars and nulls",
            json!({"replicas": 1, "labels": {"a": "1", "b": "2"}}),
            json!({"replicas": 2, "labels": {"b": null, "c": "3"}}),
            json!({"replicas": 2, "labels": {"a": "1", "c": "3"}}),
        ),
        (
            "null of what is absent",
            json!({}),
            json!({"labels": {"a": null, "b": "1"}, "replicas": null}),
            json!({"labels": {"b": "1"}}),
        ),
        (
            "item by key",
            json!({"containers": [c("a", "1"), c("b", "1")]}),
            json!({"containers": [{"name": "b", "image": "2"}]}),
            json!({"containers": [c("a", "1"), c("b", "2")]}),
        ),
        (
            "new item goes first",
            json!({"containers": [c("a", "1")]}),
            json!({"containers": [c("b", "2")]}),
            json!({"containers": [c("b", "2"), c("a", "1")]}),
        ),
        (
            "item deleted",
            json!({"containers": [c("a", "1"), c("b", "1")]}),
            json!({"containers": [{"name": "a", "$patch": "delete"}]}),
            json!({"containers": [c("b", "1")]}),
        ),
        (
            "last item deleted",
            json!({"containers": [c("a", "1")]}),
            json!({"containers": [{"name": "a", "$patch": "delete"}]}),
            json!({"containers": []}),
        ),
        (
            "list replaced",
            json!({"containers": [c("a", "1")]}),
            json!({"containers": [c("b", "2"), {"$patch": "replace"}]}),
            json!({"containers": [c("b", "2")]}),
        ),
        (
            "list emptied",
            json!({"containers": [c("a", "1")]}),
            json!({"containers": [{"$patch": "replace"}]}),
            json!({"containers": []}),
        ),
        (
            "nested list",
            json!({"containers": [{"name": "a", "env": [{"name": "x", "value": "1"}]}]}),
            json!({"containers": [{"name": "a", "env": [{"name": "y", "value": "2"}]}]}),
            json!({"containers": [{"name": "a", "env": [{"name": "y", "value": "2"}, {"name": "x", "value": "1"}]}]}),
        ),
        (
            "atomic list",
            json!({"tolerations": [{"name": "a"}]}),
            json!({"tolerations": [{"name": "b"}]}),
            json!({"tolerations": [{"name": "b"}]}),
        ),
        (
            "primitives merged",
            json!({"finalizers": ["a", "b"]}),
            json!({"finalizers": ["c", "a"]}),
            json!({"finalizers": ["c", "a", "b"]}),
        ),
        (
            "primitives deleted",
            json!({"finalizers": ["a", "b", "c"]}),
            json!({"$deleteFromPrimitiveList/finalizers": ["b", "x"]}),
            json!({"finalizers": ["a", "c"]}),
        ),
        (
            "primitives deleted from nothing",
            json!({}),
            json!({"$deleteFromPrimitiveList/finalizers": ["b"]}),
            json!({}),
        ),
        (
            "order of items",
            json!({"containers": [c("a", "1"), c("b", "1"), c("c", "1")]}),
            json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}], "containers": [{"name": "a", "image": "2"}]}),
            json!({"containers": [c("b", "1"), c("c", "1"), c("a", "2")]}),
        ),
        (
            "order alone",
            json!({"finalizers": ["a", "b", "c"]}),
            json!({"$setElementOrder/finalizers": ["c", "b", "a"]}),
            json!({"finalizers": ["c", "b", "a"]}),
        ),
        (
            "order of a new list",
            json!({}),
            json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [c("b", "1"), c("a", "1")]}),
            json!({"containers": [c("b", "1"), c("a", "1")]}),
        ),
        (
            "order of no list",
            json!({}),
            json!({"$setElementOrder/containers": [{"name": "b"}]}),
            json!({}),
        ),
        (
            "map replaced",
            json!({"labels": {"a": "1"}}),
            json!({"labels": {"$patch": "replace", "b": "2"}}),
            json!({"labels": {"b": "2"}}),
        ),
        (
            "map deleted",
            json!({"labels": {"a": "1"}}),
            json!({"labels": {"$patch": "delete"}}),
            json!({"labels": {}}),
        ),
        (
            "all replaced",
            json!({"replicas": 1}),
            json!({"$patch": "replace", "labels": {}}),
            json!({"labels": {}}),
        ),
        (
            "directive on what is absent",
            json!({}),
            json!({"labels": {"$patch": "delete"}}),
            json!({}),
        ),
        (
            "keys retained",
            json!({"strategy": {"type": "Rolling", "rolling": {"a": "1"}}}),
            json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}),
            json!({"strategy": {"type": "Recreate"}}),
        ),
        (
            "type changed",
            json!({"replicas": [1]}),
            json!({"replicas": {"a": null, "b": 1}}),
            json!({"replicas": {"b": 1}}),
        ),
        (
            "two items with a key",
            json!({"containers": [c("a", "1"), c("a", "2")]}),
            json!({"containers": [c("a", "3")]}),
            json!({"containers": [c("a", "3"), c("a", "2")]}),
        ),
    ] {
        let got = strategic_merge_patch(&shapes, root, original, patch);
        assert_eq!(got.map(|v| v.to_string()), Ok(expected.to_string()), "{name}");
    }
}

#[test]
fn errors_and_their_status() {
    let (shapes, root) = schema();
    for (original, patch, status, message) in [
        (json!({}), json!([]), 400, "invalid JSON document"),
        (
            json!({"labels": {}}),
            json!({"labels": {"$patch": "merge"}}),
            500,
            "unknown patch type: merge in map: map[$patch:merge]",
        ),
        (
            json!({"labels": {}}),
            json!({"labels": {"$patch": null}}),
            500,
            "unknown patch type: %!s(<nil>) in map: map[$patch:<nil>]",
        ),
        (
            json!({"labels": {}}),
            json!({"labels": {"$patch": [1, {"b": true, "a": "x"}]}}),
            500,
            "unknown patch type: [%!s(int64=1) map[a:x b:%!s(bool=true)]] in map: ",
        ),
        (
            json!({"containers": [{"name": "a"}]}),
            json!({"$setElementOrder/containers": "a"}),
            500,
            "expected a []interface {}, but received a string",
        ),
        (
            json!({"containers": [{"name": "a"}]}),
            json!({"$setElementOrder/containers": [{"name": "a"}], "containers": 5}),
            500,
            "expected a int64, but received a []interface {}",
        ),
        (
            json!({"containers": [{"name": "a"}]}),
            json!({"$setElementOrder/containers": [{"name": "a"}], "containers": ["a"]}),
            500,
            "expected a map[string]interface {}, but received a string",
        ),
        (
            json!({"containers": [{"name": "a"}]}),
            json!({"containers": [{"image": "x"}]}),
            500,
            "does not contain declared merge key: name",
        ),
        (
            json!({"containers": [{"name": "a"}]}),
            json!({"containers": [{"$patch": "delete"}]}),
            500,
            "does not contain declared merge key: name",
        ),
        (
            json!({"containers": [{"name": "a"}]}),
            json!({"containers": [{"name": "a", "$patch": "merge"}]}),
            500,
            "merging lists cannot yet be specified",
        ),
        (
            json!({"containers": [{"name": "a"}]}),
            json!({"containers": ["a"]}),
            500,
            "list element types are not identical: [[map[name:a]] [a]]",
        ),
        (
            json!({"finalizers": [["a"]]}),
            json!({"finalizers": [["b"]]}),
            422,
            "lists of lists are not supported",
        ),
        (
            json!({"keyless": [{"name": "a"}]}),
            json!({"keyless": [{"name": "b"}]}),
            500,
            "cannot merge lists without merge key",
        ),
        (
            json!({"finalizers": ["a"]}),
            json!({"$deleteFromPrimitiveListfinalizers": ["a"]}),
            400,
            "invalid patch format of primitive list",
        ),
        (
            json!({"finalizers": ["a"]}),
            json!({"$setElementOrderfinalizers": ["a"]}),
            400,
            "invalid patch format of setElementOrder list",
        ),
        (
            json!({"finalizers": ["a"]}),
            json!({"$setElementOrder/finalizers": ["b", "a"], "finalizers": ["a", "b"]}),
            500,
            "doesn't match $setElementOrder list",
        ),
        (
            json!({"strategy": {}}),
            json!({"strategy": {"$retainKeys": "type"}}),
            400,
            "invalid patch format of retainKeys",
        ),
        (
            json!({"strategy": {}}),
            json!({"strategy": {"$retainKeys": ["x"], "type": "y"}}),
            400,
            "invalid patch format of retainKeys",
        ),
        (
            json!({"nope": {}}),
            json!({"nope": {}}),
            500,
            "unable to find api field in struct for the json field \"nope\"",
        ),
        (
            json!({"nested": {"a": {"b": "1"}}}),
            json!({"nested": {"a": {"c": "2"}}}),
            500,
            "data type is not struct",
        ),
    ] {
        let error = strategic_merge_patch(&shapes, root, original, patch.clone()).unwrap_err();
        assert_eq!(error.status(), status, "{patch}: {error}");
        assert!(
            error.to_string().contains(message),
            "{error} should say {message}"
        );
    }
}

#[test]
fn long_lists_cost_no_more_than_sorting_them() {
    let (shapes, root) = schema();
    let items = |numbers: std::ops::Range<i64>| {
        numbers
            .map(|n| json!({"name": n.to_string()}))
            .collect::<Vec<_>>()
    };
    let started = std::time::Instant::now();
    let patched = strategic_merge_patch(
        &shapes,
        root,
        json!({"containers": items(0..20_000), "finalizers": (0..20_000).collect::<Vec<_>>()}),
        json!({
            "$setElementOrder/containers": items(10_000..30_000), "containers": items(10_000..30_000),
            "finalizers": (10_000..30_000).collect::<Vec<_>>()
        }),
    )
    .unwrap();
    assert_eq!(patched["containers"].as_array().unwrap().len(), 30_000);
    assert_eq!(patched["finalizers"].as_array().unwrap().len(), 30_000);
    // Quadratic work would take minutes.
    assert!(started.elapsed().as_secs() < 30, "took {:?}", started.elapsed());
}
