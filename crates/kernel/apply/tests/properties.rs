//! Properties that hold for any input: no panic, bounded work, ownership that adds up.

use fairway_kernel_apply::fieldpath::Set;
use fairway_kernel_apply::managed_fields::{Ctx, SameVersion, apply, keep_unchanged_timestamps, update};
use fairway_kernel_apply::patch::{json_patch, merge_patch, strategic_merge_patch};
use fairway_kernel_apply::updater::ResetFields;
use fairway_kernel_schema::shape::{
    Atom, Field, List, ListRelationship, Map as MapShape, PatchStrategy, Scalar, ShapeId, Shapes,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

static NO_RESET: ResetFields = ResetFields::none();

/// A kind whose `data` is a map, `tags` a set, `items` a list by key, and `free` anything.
fn schema() -> (Shapes, ShapeId) {
    let mut shapes = Shapes::new();
    let text = shapes.push(Atom {
        scalar: Some(Scalar::String),
        ..Atom::default()
    });
    let free = shapes.push(Atom::default());
    let list = |element, relationship, merge_key: Option<&'static str>| List {
        element,
        relationship,
        patch: PatchStrategy {
            merge: true,
            retain_keys: false,
            merge_key: merge_key.map(Into::into),
        },
    };
    shapes.set(
        free,
        Atom {
            scalar: Some(Scalar::Untyped),
            list: Some(list(free, ListRelationship::Atomic, None)),
            map: Some(MapShape {
                fields: vec![],
                element: Some(free),
                atomic: false,
            }),
        },
    );
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
    let data = record(&mut shapes, &[], Some(text));
    let tags = shapes.push(Atom {
        list: Some(list(text, ListRelationship::Set, None)),
        ..Atom::default()
    });
    let item = record(
        &mut shapes,
        &[("name", text), ("value", text), ("tags", tags)],
        None,
    );
    let by_name = ListRelationship::Map(vec!["name".into()]);
    let items = shapes.push(Atom {
        list: Some(list(item, by_name, Some("name"))),
        ..Atom::default()
    });
    let root = record(
        &mut shapes,
        &[
            ("apiVersion", text),
            ("kind", text),
            ("metadata", free),
            ("data", data),
            ("tags", tags),
            ("items", items),
            ("free", free),
        ],
        None,
    );
    (shapes, root)
}

fn ctx<'a>(shapes: &'a Shapes, shape: ShapeId, time: &'a str) -> Ctx<'a> {
    Ctx {
        shapes,
        shape,
        api_version: "v1",
        kind: "Thing",
        subresource: "",
        time,
        built_in: false,
        reset_fields: &NO_RESET,
        converter: &SameVersion,
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c~/$]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            btree_map(any_key(), inner, 0..6).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// Keys that mean something to one of the formats.
fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("$patch"),
        Just("$retainKeys"),
        Just("$setElementOrder/items"),
        Just("$deleteFromPrimitiveList/tags"),
        Just("items"),
        Just("tags"),
        Just("data"),
        Just("free"),
        Just("name"),
        Just("metadata"),
        Just("managedFields"),
        Just("f:a"),
        Just("k:{\"a\":1}"),
        Just("op"),
        Just("path"),
        Just("a"),
    ]
    .prop_map(str::to_owned)
}

/// An object that fits the schema.
fn thing() -> impl Strategy<Value = Value> {
    let text = || "[x-z]{1}";
    let tags = || proptest::collection::btree_set(text(), 0..4).prop_map(|tags| json!(tags));
    let item = (proptest::option::of(text()), proptest::option::of(tags()));
    (
        btree_map("[a-d]", text(), 0..4),
        tags(),
        btree_map(text(), item, 0..4),
        proptest::option::of(any_json()),
    )
        .prop_map(|(data, tags, items, free)| {
            let items: Vec<Value> = items
                .into_iter()
                .map(|(name, (value, tags))| {
                    let mut item = json!({ "name": name });
                    if let Some(value) = value {
                        item["value"] = value.into();
                    }
                    if let Some(tags) = tags {
                        item["tags"] = tags;
                    }
                    item
                })
                .collect();
            let mut thing = json!({
                "apiVersion": "v1", "kind": "Thing", "metadata": {"name": "t"}, "data": data, "tags": tags, "items": items
            });
            if let Some(free) = free {
                thing["free"] = free;
            }
            thing
        })
}

fn all_owned(object: &Value) -> Set {
    let entries = object["metadata"]["managedFields"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    entries.iter().fold(Set::new(), |all, entry| {
        all.union(&Set::from_fields_v1(&entry["fieldsV1"]).unwrap_or_default())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn applying_the_same_again_changes_nothing(live in thing(), config in thing()) {
        let (shapes, shape) = schema();
        let live = update(&ctx(&shapes, shape, "2026-01-01T00:00:00Z"), None, live, "creator");
        let once = apply(&ctx(&shapes, shape, "2026-01-01T00:00:01Z"), Some(&live), &config, "ci", true).unwrap();
        let twice = apply(&ctx(&shapes, shape, "2026-01-01T00:00:02Z"), Some(&once), &config, "ci", false).unwrap();
        prop_assert_eq!(&twice, &once);
        let mut restored = twice;
        keep_unchanged_timestamps(&mut restored, &once);
        prop_assert_eq!(&restored, &once);
    }

    #[test]
    fn what_an_applier_drops_is_gone(first in thing(), second in thing()) {
        let (shapes, shape) = schema();
        let ctx = ctx(&shapes, shape, "2026-01-01T00:00:00Z");
        let once = apply(&ctx, None, &first, "ci", false).unwrap();
        let mut twice = apply(&ctx, Some(&once), &second, "ci", false).unwrap();
        let mut fresh = apply(&ctx, None, &second, "ci", false).unwrap();
        for object in [&mut twice, &mut fresh] {
            object["metadata"].as_object_mut().unwrap().shift_remove("managedFields");
        }
        for field in ["data", "tags", "items"] {
            let entries = |object: &Value| match &object[field] {
                Value::Object(map) => map.iter().map(|(k, v)| format!("{k}={v}")).collect::<std::collections::BTreeSet<_>>(),
                Value::Array(items) => items.iter().map(|item| item.get("name").unwrap_or(item).to_string()).collect(),
                _ => Default::default(),
            };
            prop_assert_eq!(entries(&twice), entries(&fresh), "{}", field);
        }
    }

    #[test]
    fn updates_keep_every_field_owned(versions in vec(thing(), 1..5)) {
        let (shapes, shape) = schema();
        let mut live: Option<Value> = None;
        for (index, version) in versions.into_iter().enumerate() {
            let manager = format!("m{}", index % 2);
            let next = update(&ctx(&shapes, shape, "2026-01-01T00:00:00Z"), live.as_ref(), version, &manager);
            live = Some(next);
        }
        let live = live.unwrap();
        // Nobody owns what is not there, and all that is there is owned by somebody.
        let owned = all_owned(&live);
        let mut bare = live;
        bare["metadata"].as_object_mut().unwrap().shift_remove("managedFields");
        let fresh = all_owned(&update(&ctx(&shapes, shape, "2026-01-01T00:00:00Z"), None, bare, "fresh"));
        prop_assert_eq!(owned.leaves().difference(&fresh).to_fields_v1(), json!({}));
        prop_assert_eq!(fresh.leaves().difference(&owned).to_fields_v1(), json!({}));
    }

    #[test]
    fn nothing_panics(live in any_json(), new in any_json(), patch in any_json()) {
        let (shapes, shape) = schema();
        let ctx = ctx(&shapes, shape, "2026-01-01T00:00:00Z");
        let _ = json_patch(live.clone(), &patch);
        let _ = json_patch(live.clone(), &json!([{"op": "add", "path": "/a/0", "value": new}, {"op": "move", "from": "/a", "path": "/b"}]));
        let _ = merge_patch(live.clone(), patch.clone());
        let _ = strategic_merge_patch(&shapes, shape, live.clone(), patch.clone());
        let mut config = json!({"apiVersion": "v1", "kind": "Thing"});
        if let (Value::Object(config), Value::Object(patch)) = (&mut config, patch) {
            config.extend(patch);
        }
        let _ = apply(&ctx, Some(&live), &config, "ci", true);
        let _ = update(&ctx, Some(&live), new.clone(), "m");
        let _ = update(&ctx, None, new, "m");
        let _ = Set::from_fields_v1(&live).map(|set| set.to_fields_v1());
    }

    #[test]
    fn sets_survive_being_written(fields in any_json()) {
        if let Ok(set) = Set::from_fields_v1(&fields) {
            prop_assert_eq!(Set::from_fields_v1(&set.to_fields_v1()), Ok(set));
        }
    }
}
