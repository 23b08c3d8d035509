//! Tables for the walks over typed values, over one small schema that has every kind of field.

use fairway_kernel_schema::shape::{
    Atom, Field, List, ListRelationship, Map as MapShape, PatchStrategy, Scalar, ShapeId, Shapes,
};
use serde_json::{Value, json};

use super::validate::Duplicates;
use super::*;
use crate::fieldpath::Set;

fn scalar(shapes: &mut Shapes, scalar: Scalar) -> ShapeId {
    shapes.push(Atom {
        scalar: Some(scalar),
        ..Atom::default()
    })
}

fn list(shapes: &mut Shapes, element: ShapeId, relationship: ListRelationship) -> ShapeId {
    let list = List {
        element,
        relationship,
        patch: PatchStrategy::default(),
    };
    shapes.push(Atom {
        list: Some(list),
        ..Atom::default()
    })
}

fn map(
    shapes: &mut Shapes,
    fields: &[(&'static str, ShapeId, Value)],
    element: Option<ShapeId>,
    atomic: bool,
) -> ShapeId {
    let mut fields: Vec<Field> = fields
        .iter()
        .map(|(name, shape, default)| Field {
            name: (*name).into(),
            shape: *shape,
            default: (*default != json!("none")).then(|| default.clone()),
            patch: PatchStrategy::default(),
        })
        .collect();
    fields.sort_by(|l, r| l.name.cmp(&r.name));
    shapes.push(Atom {
        map: Some(MapShape {
            fields,
            element,
            atomic,
        }),
        ..Atom::default()
    })
}

fn schema() -> (Shapes, ShapeId) {
    let mut shapes = Shapes::new();
    let none = json!("none");
    let text = scalar(&mut shapes, Scalar::String);
    let number = scalar(&mut shapes, Scalar::Numeric);
    let free = shapes.push(Atom::default());
    shapes.set(
        free,
        Atom {
            scalar: Some(Scalar::Untyped),
            list: Some(List {
                element: free,
                relationship: ListRelationship::Atomic,
                patch: PatchStrategy::default(),
            }),
            map: Some(MapShape {
                fields: vec![],
                element: Some(free),
                atomic: false,
            }),
        },
    );
    let port = map(
        &mut shapes,
        &[
            ("port", number, none.clone()),
            ("protocol", text, json!("TCP")),
            ("name", text, none.clone()),
        ],
        None,
        false,
    );
    let ports = list(
        &mut shapes,
        port,
        ListRelationship::Map(vec!["port".into(), "protocol".into()]),
    );
    let set = list(&mut shapes, text, ListRelationship::Set);
    let atomic_list = list(&mut shapes, number, ListRelationship::Atomic);
    let labels = map(&mut shapes, &[], Some(text), false);
    let selector = map(&mut shapes, &[], Some(text), true);
    let inner = map(
        &mut shapes,
        &[("size", number, none.clone()), ("labels", labels, none.clone())],
        None,
        false,
    );
    let root = map(
        &mut shapes,
        &[
            ("text", text, none.clone()),
            ("number", number, none.clone()),
            ("ports", ports, none.clone()),
            ("set", set, none.clone()),
            ("atomic", atomic_list, none.clone()),
            ("labels", labels, none.clone()),
            ("selector", selector, none.clone()),
            ("inner", inner, json!({})),
            ("pointer", inner, none.clone()),
            ("free", free, none),
        ],
        None,
        false,
    );
    (shapes, root)
}

#[test]
fn merge_keeps_what_is_not_mentioned() {
    let (shapes, root) = schema();
    for (live, config, merged) in [
        (
            json!({"text": "a", "number": 1}),
            json!({"text": "b"}),
            json!({"text": "b", "number": 1}),
        ),
        (
            json!({"labels": {"a": "1"}}),
            json!({"labels": {"b": "2"}}),
            json!({"labels": {"a": "1", "b": "2"}}),
        ),
        (
            json!({"selector": {"a": "1"}}),
            json!({"selector": {"b": "2"}}),
            json!({"selector": {"b": "2"}}),
        ),
        (
            json!({"atomic": [1, 2]}),
            json!({"atomic": [3]}),
            json!({"atomic": [3]}),
        ),
        (
            json!({"set": ["a", "b"]}),
            json!({"set": ["c", "a"]}),
            json!({"set": ["c", "a", "b"]}),
        ),
        (
            json!({"set": ["a", "b", "c"]}),
            json!({"set": ["c", "a"]}),
            json!({"set": ["b", "c", "a"]}),
        ),
        (
            json!({"set": ["a", "b"]}),
            json!({"set": []}),
            json!({"set": ["a", "b"]}),
        ),
        (json!({"set": []}), json!({"set": null}), json!({"set": null})),
        (
            json!({"ports": [{"port": 80, "name": "a"}, {"port": 81}]}),
            json!({"ports": [{"port": 80, "protocol": "TCP", "name": "b"}]}),
            json!({"ports": [{"port": 80, "name": "b", "protocol": "TCP"}, {"port": 81}]}),
        ),
        // Duplicates in the live list give way to the one that is applied.
        (
            json!({"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]}),
            json!({"ports": [{"port": 80, "name": "c"}]}),
            json!({"ports": [{"port": 80, "name": "c"}]}),
        ),
        (
            json!({"free": {"a": {"b": 1}}}),
            json!({"free": {"a": {"c": 2}}}),
            json!({"free": {"a": {"b": 1, "c": 2}}}),
        ),
        (
            json!({"free": {"a": [1]}}),
            json!({"free": {"a": [2]}}),
            json!({"free": {"a": [2]}}),
        ),
        (
            json!({"free": {"a": 1}}),
            json!({"free": [1]}),
            json!({"free": [1]}),
        ),
        (
            json!({"inner": {"size": 1}}),
            json!({"inner": null}),
            json!({"inner": {"size": 1}}),
        ),
        (json!(null), json!({"text": "a"}), json!({"text": "a"})),
    ] {
        let got = Typed::new(&shapes, root, &live)
            .merge(&Typed::new(&shapes, root, &config))
            .unwrap();
        assert_eq!(got.value.to_string(), merged.to_string(), "{config} into {live}");
    }
}

#[test]
fn compare_finds_what_changed() {
    let (shapes, root) = schema();
    for (old, new, added, modified, removed) in [
        (
            json!({"text": "a"}),
            json!({"text": "b", "number": 1}),
            json!({"f:number": {}}),
            json!({"f:text": {}}),
            json!({}),
        ),
        (
            json!({"number": 1}),
            json!({"number": 1.0}),
            json!({}),
            json!({}),
            json!({}),
        ),
        (
            json!({}),
            json!({"labels": {"a": "1"}}),
            json!({"f:labels": {".": {}, "f:a": {}}}),
            json!({}),
            json!({}),
        ),
        (
            json!({"labels": {"a": "1"}}),
            json!({"labels": {}}),
            json!({}),
            json!({}),
            json!({"f:labels": {"f:a": {}}}),
        ),
        (
            json!({"labels": {}}),
            json!({"labels": null}),
            json!({}),
            json!({"f:labels": {}}),
            json!({}),
        ),
        (
            json!({"ports": [{"port": 80, "name": "a"}]}),
            json!({"ports": [{"port": 81}, {"port": 80, "name": "b"}]}),
            json!({"f:ports": {"k:{\"port\":81,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}),
            json!({"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {"f:name": {}}}}),
            json!({}),
        ),
        // A list whose order alone changed is the same list.
        (
            json!({"set": ["a", "b"]}),
            json!({"set": ["b", "a"]}),
            json!({}),
            json!({}),
            json!({}),
        ),
        (
            json!({"set": ["a"]}),
            json!({"set": ["a", "a"]}),
            json!({"f:set": {"v:\"a\"": {}}}),
            json!({}),
            json!({"f:set": {"v:\"a\"": {}}}),
        ),
        (
            json!({"free": 1}),
            json!({"free": {"a": 1}}),
            json!({"f:free": {"f:a": {}}}),
            json!({"f:free": {}}),
            json!({}),
        ),
    ] {
        let got = Typed::new(&shapes, root, &old)
            .compare(&Typed::new(&shapes, root, &new))
            .unwrap();
        let written = [&got.added, &got.modified, &got.removed].map(Set::to_fields_v1);
        assert_eq!(written, [added, modified, removed], "{old} to {new}");
    }
}

#[test]
fn structs_of_go_always_have_their_plain_fields() {
    let (shapes, root) = schema();
    for (zero_values, new, added) in [
        (
            false,
            json!({"inner": {"size": 1}}),
            json!({"f:inner": {".": {}, "f:size": {}}}),
        ),
        (
            true,
            json!({"inner": {"size": 1}}),
            json!({"f:inner": {"f:size": {}}}),
        ),
        (true, json!({"inner": {}}), json!({})),
        (
            true,
            json!({"pointer": {"size": 1}}),
            json!({"f:pointer": {".": {}, "f:size": {}}}),
        ),
    ] {
        let old = json!({});
        let old = Typed {
            zero_values,
            ..Typed::new(&shapes, root, &old)
        };
        let got = old.compare(&Typed::new(&shapes, root, &new)).unwrap();
        assert_eq!(
            got.added.to_fields_v1(),
            added,
            "{new}, zero values: {zero_values}"
        );
    }
}

#[test]
fn a_field_set_has_leaves_items_and_entries() {
    let (shapes, root) = schema();
    let value = json!({
        "text": "a", "labels": {"x": "1"}, "selector": {"y": "2"}, "atomic": [1], "set": ["b"], "inner": {"size": 1},
        "ports": [{"port": 80}, {"port": 81}, {"port": 81}], "free": {"deep": {"x": [1]}}, "pointer": {}, "number": null
    });
    assert_eq!(
        Typed::new(&shapes, root, &value)
            .to_field_set()
            .unwrap()
            .to_fields_v1(),
        json!({
            "f:atomic": {},
            "f:free": {"f:deep": {".": {}, "f:x": {}}},
            "f:inner": {"f:size": {}},
            "f:labels": {"f:x": {}},
            "f:number": {},
            "f:pointer": {},
            "f:ports": {
                "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
                "k:{\"port\":81,\"protocol\":\"TCP\"}": {}
            },
            "f:selector": {},
            "f:set": {"v:\"b\"": {}},
            "f:text": {}
        })
    );
}

#[test]
fn remove_and_extract_are_each_others_rest() {
    let (shapes, root) = schema();
    let value = json!({
        "text": "a", "labels": {"x": "1", "y": "2"}, "ports": [{"port": 80, "name": "n"}, {"port": 81, "name": "m"}], "set": ["a", "b"]
    });
    let typed = Typed::new(&shapes, root, &value);
    for (set, removed, extracted) in [
        (json!({}), value.clone(), json!(null)),
        (
            json!({"f:text": {}, "f:labels": {"f:x": {}}}),
            json!({"labels": {"y": "2"}, "ports": value["ports"], "set": ["a", "b"]}),
            json!({"text": "a", "labels": {"x": "1"}}),
        ),
        (
            json!({"f:set": {"v:\"a\"": {}}, "f:ports": {"k:{\"port\":81,\"protocol\":\"TCP\"}": {"f:name": {}}}}),
            json!({"text": "a", "labels": value["labels"], "ports": [{"port": 80, "name": "n"}, {"port": 81}], "set": ["b"]}),
            json!({"ports": [{"name": "m"}], "set": ["a"]}),
        ),
        (
            json!({"f:set": {"v:\"a\"": {}, "v:\"b\"": {}}}),
            json!({"text": "a", "labels": value["labels"], "ports": value["ports"], "set": null}),
            json!({"set": ["a", "b"]}),
        ),
    ] {
        let items = Set::from_fields_v1(&set).unwrap();
        assert_eq!(typed.remove(&items).value.as_ref(), &removed, "without {set}");
        assert_eq!(typed.extract(&items).value.as_ref(), &extracted, "only {set}");
    }
    let items =
        Set::from_fields_v1(&json!({"f:ports": {"k:{\"port\":81,\"protocol\":\"TCP\"}": {"f:name": {}}}}))
            .unwrap();
    assert_eq!(
        typed.extract_with_keys(&items).value.as_ref(),
        &json!({"ports": [{"port": 81, "name": "m"}]})
    );
}

#[test]
fn validation_names_the_place() {
    let (shapes, root) = schema();
    for (value, duplicates, error) in [
        (json!({"text": 1}), Duplicates::Allow, ".text: expected string"),
        (
            json!({"nope": 1}),
            Duplicates::Allow,
            ".nope: field not declared in schema",
        ),
        (
            json!({"inner": {"size": "x"}}),
            Duplicates::Allow,
            ".inner.size: expected numeric (int or float), got string",
        ),
        (json!({"inner": [1]}), Duplicates::Allow, ".inner: expected map"),
        (json!({"atomic": {}}), Duplicates::Allow, ".atomic: expected list"),
        (
            json!({"atomic": [1, "x"]}),
            Duplicates::Allow,
            ".atomic[1]: expected numeric",
        ),
        (
            json!({"set": [null]}),
            Duplicates::Allow,
            ".set: element 0: associative list without keys has an element that's an explicit null",
        ),
        (
            json!({"set": [{}]}),
            Duplicates::Allow,
            "an element that's a map type",
        ),
        (
            json!({"ports": [1]}),
            Duplicates::Allow,
            "may not have non-map elements",
        ),
        (
            json!({"ports": [null]}),
            Duplicates::Allow,
            "may not have a null element",
        ),
        (
            json!({"ports": [{"port": "x"}]}),
            Duplicates::Allow,
            ".ports[port=\"x\",protocol=\"TCP\"].port: expected numeric",
        ),
        (
            json!({"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]}),
            Duplicates::Refuse,
            ".ports: duplicate entries for key [port=80,protocol=\"TCP\"]",
        ),
        (
            json!({"text": 1, "number": "x"}),
            Duplicates::Allow,
            "errors:\n  .text: ",
        ),
    ] {
        let got = Typed::new(&shapes, root, &value)
            .validate(duplicates)
            .unwrap_err()
            .to_string();
        assert!(got.contains(error), "{value}: {got}");
    }
    let fine =
        json!({"ports": [{"port": 80}, {"port": 80}], "text": null, "inner": null, "free": [{"a": 1}, "b"]});
    assert_eq!(
        Typed::new(&shapes, root, &fine).validate(Duplicates::Allow),
        Ok(())
    );
}

#[test]
fn long_lists_cost_no_more_than_sorting_them() {
    let (shapes, root) = schema();
    let ports = |numbers: &mut dyn Iterator<Item = i64>| json!({"ports": numbers.map(|n| json!({"port": n})).collect::<Vec<_>>()});
    let (live, config) = (ports(&mut (0..100_000)), ports(&mut (50_000..150_000).rev()));
    let (live, config) = (
        Typed::new(&shapes, root, &live),
        Typed::new(&shapes, root, &config),
    );
    let started = std::time::Instant::now();
    config.validate(Duplicates::Refuse).unwrap();
    let merged = live.merge(&config).unwrap();
    assert_eq!(merged.value["ports"].as_array().unwrap().len(), 150_000);
    let changes = live.compare(&merged).unwrap();
    assert_eq!(changes.added.len(), 100_000);
    let set = config.to_field_set().unwrap();
    let left = merged.remove(&set.with_named_fields(&shapes, Some(root)));
    assert_eq!(
        left.value["ports"],
        json!(null),
        "the field itself goes with its last owner"
    );
    // Quadratic work would take minutes.
    assert!(started.elapsed().as_secs() < 30, "took {:?}", started.elapsed());
}
