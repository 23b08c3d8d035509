//! Tables for the field manager, over a small kind that looks like a built-in one.

use fairway_kernel_schema::shape::{
    Atom, Field, List, ListRelationship, Map as MapShape, PatchStrategy, Scalar, ShapeId, Shapes,
};
use serde_json::{Value, json};

use super::*;
use crate::fieldpath::Filter;

const T1: &str = "2026-01-01T00:00:01Z";
const T2: &str = "2026-01-01T00:00:02Z";

struct World {
    shapes: Shapes,
    shape: ShapeId,
    reset: ResetFields,
}

impl World {
    fn new() -> Self {
        let mut shapes = Shapes::new();
        let leaf = |shapes: &mut Shapes, scalar| {
            shapes.push(Atom {
                scalar: Some(scalar),
                ..Atom::default()
            })
        };
        let record = |shapes: &mut Shapes, fields: &[(&'static str, ShapeId, Option<Value>)], element| {
            let mut fields: Vec<Field> = fields
                .iter()
                .map(|(name, shape, default)| Field {
                    name: (*name).into(),
                    shape: *shape,
                    default: default.clone(),
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
        let text = leaf(&mut shapes, Scalar::String);
        let number = leaf(&mut shapes, Scalar::Numeric);
        let texts = record(&mut shapes, &[], Some(text));
        let item = record(&mut shapes, &[("name", text, None), ("image", text, None)], None);
        let items = shapes.push(Atom {
            list: Some(List {
                element: item,
                relationship: ListRelationship::Map(vec!["name".into()]),
                patch: PatchStrategy::default(),
            }),
            ..Atom::default()
        });
        let metadata = record(
            &mut shapes,
            &[
                ("name", text, None),
                ("uid", text, None),
                ("generation", number, None),
                ("labels", texts, None),
                ("annotations", texts, None),
            ],
            None,
        );
        let spec = record(
            &mut shapes,
            &[
                ("replicas", number, None),
                ("items", items, Some(Value::Null)),
                ("paused", text, None),
            ],
            None,
        );
        let status = record(&mut shapes, &[("ready", number, None)], None);
        let shape = record(
            &mut shapes,
            &[
                ("apiVersion", text, None),
                ("kind", text, None),
                ("metadata", metadata, Some(json!({}))),
                ("spec", spec, Some(json!({}))),
                ("status", status, Some(json!({}))),
                ("data", texts, None),
            ],
            None,
        );
        Self {
            shapes,
            shape,
            reset: ResetFields::none(),
        }
    }

    fn ctx<'a>(&'a self, time: &'a str) -> Ctx<'a> {
        Ctx {
            shapes: &self.shapes,
            shape: self.shape,
            api_version: "v1",
            kind: "Thing",
            subresource: "",
            time,
            built_in: true,
            reset_fields: &self.reset,
            converter: &SameVersion,
        }
    }
}

fn thing(rest: &Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "t"}});
    for (key, value) in rest.as_object().unwrap() {
        if key == "metadata" {
            object["metadata"]
                .as_object_mut()
                .unwrap()
                .extend(value.as_object().unwrap().clone());
        } else {
            object[key] = value.clone();
        }
    }
    object
}

/// The record, shortened: manager, operation, time, fields.
fn owners(object: &Value) -> Vec<(String, String, String, Value)> {
    let text = |entry: &Value, key: &str| {
        entry
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let entries = object["metadata"]
        .get("managedFields")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    entries
        .iter()
        .map(|e| {
            (
                text(e, "manager"),
                text(e, "operation"),
                text(e, "time"),
                e["fieldsV1"].clone(),
            )
        })
        .collect()
}

fn owner(manager: &str, operation: &str, time: &str, fields: &Value) -> (String, String, String, Value) {
    (
        manager.to_owned(),
        operation.to_owned(),
        time.to_owned(),
        fields.clone(),
    )
}

#[test]
fn creation_records_all_but_what_identifies_the_object() {
    let world = World::new();
    let new = thing(&json!({
        "metadata": {"uid": "u", "labels": {"app": "x"}, "generation": 1},
        "spec": {"replicas": 1, "items": [{"name": "a", "image": "i"}]},
        "data": {"k": "v"}
    }));
    let created = update(&world.ctx(T1), None, new, "kubectl-create");
    assert_eq!(
        created["metadata"]["managedFields"].to_string(),
        json!([{
            "manager": "kubectl-create", "operation": "Update", "apiVersion": "v1", "time": T1, "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:data": {".": {}, "f:k": {}},
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {"f:items": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}, "f:name": {}}}, "f:replicas": {}}
            }
        }])
        .to_string()
    );
}

#[test]
fn custom_resources_own_the_maps_that_they_add() {
    let world = World::new();
    let ctx = Ctx {
        built_in: false,
        ..world.ctx(T1)
    };
    let created = update(&ctx, None, thing(&json!({"spec": {"replicas": 1}})), "m");
    assert_eq!(
        owners(&created),
        [owner(
            "m",
            "Update",
            T1,
            &json!({"f:spec": {".": {}, "f:replicas": {}}})
        )]
    );
}

#[test]
fn updates_take_what_they_change_and_keep_the_time_otherwise() {
    let world = World::new();
    let created = update(
        &world.ctx(T1),
        None,
        thing(&json!({"data": {"a": "1", "b": "1"}})),
        "one",
    );
    let mut changed = created.clone();
    changed["data"]["b"] = json!("2");
    let changed = update(&world.ctx(T2), Some(&created), changed, "two");
    assert_eq!(
        owners(&changed),
        [
            owner("one", "Update", T1, &json!({"f:data": {".": {}, "f:a": {}}})),
            owner("two", "Update", T2, &json!({"f:data": {"f:b": {}}})),
        ]
    );
    // Writing the same again changes nothing, not even with the record left out.
    let mut same = changed.clone();
    take_record(&mut same);
    assert_eq!(
        update(&world.ctx("2026-01-01T00:00:03Z"), Some(&changed), same, "three"),
        changed
    );
    // Removal takes the fields from their owners, and gives them to nobody.
    let mut less = changed.clone();
    less["data"].as_object_mut().unwrap().shift_remove("b");
    let less = update(&world.ctx(T2), Some(&changed), less, "two");
    assert_eq!(
        owners(&less),
        [owner(
            "one",
            "Update",
            T1,
            &json!({"f:data": {".": {}, "f:a": {}}})
        )]
    );
}

#[test]
fn apply_owns_what_it_mentions_and_removes_what_it_mentions_no_more() {
    let world = World::new();
    let config = |data: Value| thing(&json!({ "data": data }));
    let first = apply(
        &world.ctx(T1),
        None,
        &config(json!({"a": "1", "b": "1"})),
        "ci",
        false,
    )
    .unwrap();
    assert_eq!(
        owners(&first),
        [owner(
            "ci",
            "Apply",
            T1,
            &json!({"f:data": {"f:a": {}, "f:b": {}}})
        )]
    );

    let again = apply(
        &world.ctx(T2),
        Some(&first),
        &config(json!({"a": "1", "b": "1"})),
        "ci",
        false,
    )
    .unwrap();
    assert_eq!(again, first, "nothing to write");

    let less = apply(
        &world.ctx(T2),
        Some(&first),
        &config(json!({"a": "1"})),
        "ci",
        false,
    )
    .unwrap();
    assert_eq!(less["data"], json!({"a": "1"}));
    assert_eq!(
        owners(&less),
        [owner("ci", "Apply", T2, &json!({"f:data": {"f:a": {}}}))]
    );

    // Two appliers of the same value own it together; it goes with the last.
    let shared = apply(
        &world.ctx(T2),
        Some(&first),
        &config(json!({"b": "1"})),
        "other",
        false,
    )
    .unwrap();
    let kept = apply(
        &world.ctx(T2),
        Some(&shared),
        &config(json!({"a": "1"})),
        "ci",
        false,
    )
    .unwrap();
    assert_eq!(kept["data"], json!({"a": "1", "b": "1"}));
    let gone = apply(&world.ctx(T2), Some(&kept), &config(json!({})), "other", false).unwrap();
    assert_eq!(gone["data"], json!({"a": "1"}));
}

#[test]
fn conflicts_read_as_users_know_them() {
    let world = World::new();
    let created = update(
        &world.ctx(T1),
        None,
        thing(&json!({"data": {"key": "1", "other": "1"}})),
        "kubectl",
    );
    let one = thing(&json!({"data": {"key": "2"}}));
    let error = apply(&world.ctx(T2), Some(&created), &one, "ci", false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"kubectl\" using v1: .data.key"
    );
    let ApplyError::Conflicts(conflicts) = &error else {
        panic!("{error}")
    };
    assert_eq!(
        conflicts.causes().collect::<Vec<_>>(),
        [("conflict with \"kubectl\" using v1".to_owned(), ".data.key")]
    );

    let status = Ctx {
        subresource: "status",
        ..world.ctx(T1)
    };
    let applied = apply(
        &status,
        Some(&created),
        &thing(&json!({"status": {"ready": 1}})),
        "status-ci",
        false,
    )
    .unwrap();
    let both = thing(&json!({"data": {"key": "2", "other": "2"}, "status": {"ready": 2}}));
    assert_eq!(
        apply(&world.ctx(T2), Some(&applied), &both, "ci", false)
            .unwrap_err()
            .to_string(),
        "Apply failed with 3 conflicts: conflicts with \"kubectl\" using v1:\n- .data.key\n- .data.other\n\
         conflicts with \"status-ci\" with subresource \"status\":\n- .status.ready"
    );

    let forced = apply(&world.ctx(T2), Some(&created), &one, "ci", true).unwrap();
    assert_eq!(forced["data"], json!({"key": "2", "other": "1"}));
    assert_eq!(
        owners(&forced),
        [
            owner("ci", "Apply", T2, &json!({"f:data": {"f:key": {}}})),
            owner(
                "kubectl",
                "Update",
                T1,
                &json!({"f:data": {".": {}, "f:other": {}}})
            ),
        ]
    );
}

#[test]
fn an_object_without_a_record_was_there_before_the_first_apply() {
    let world = World::new();
    let live = thing(&json!({"metadata": {"uid": "u"}, "data": {"a": "1"}}));
    // Updates leave it without one.
    assert_eq!(update(&world.ctx(T1), Some(&live), live.clone(), "m"), live);
    let applied = apply(
        &world.ctx(T1),
        Some(&live),
        &thing(&json!({"data": {"b": "1"}})),
        "ci",
        false,
    )
    .unwrap();
    assert_eq!(
        owners(&applied),
        [
            owner("ci", "Apply", T1, &json!({"f:data": {"f:b": {}}})),
            owner(
                "before-first-apply",
                "Update",
                T1,
                &json!({"f:data": {".": {}, "f:a": {}}})
            ),
        ]
    );
}

#[test]
fn clients_may_reset_the_record_but_not_break_it() {
    let world = World::new();
    let live = update(
        &world.ctx(T1),
        None,
        thing(&json!({"metadata": {"uid": "u"}, "data": {"a": "1"}})),
        "m",
    );
    for (managed_fields, is_kept) in [
        (json!([]), false),
        (json!([{}]), false),
        (json!(null), true),
        (json!([{"manager": "x"}]), true),
        (
            json!([{"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV2"}]),
            true,
        ),
    ] {
        let mut new = live.clone();
        new["metadata"]["managedFields"] = managed_fields.clone();
        let expected = if is_kept { owners(&live) } else { vec![] };
        assert_eq!(
            owners(&update(&world.ctx(T2), Some(&live), new.clone(), "m")),
            expected,
            "{managed_fields}"
        );
        // A subresource is no way to reset it.
        let status = Ctx {
            subresource: "status",
            ..world.ctx(T2)
        };
        assert_eq!(
            owners(&update(&status, Some(&live), new, "m")),
            owners(&live),
            "{managed_fields}"
        );
    }
    // A record that is valid is taken as given.
    let mut new = live.clone();
    new["metadata"]["managedFields"] = json!([{
        "manager": "y", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "time": "2026-01-01T01:00:00.5+01:00", "fieldsV1": {"f:data": {"f:a": {}}}
    }]);
    let taken = update(&world.ctx(T2), Some(&live), new, "m");
    assert_eq!(
        owners(&taken),
        [owner(
            "y",
            "Apply",
            "2026-01-01T00:00:00Z",
            &json!({"f:data": {"f:a": {}}})
        )]
    );
}

#[test]
fn malformed_requests_are_refused() {
    let world = World::new();
    for (config, message) in [
        (
            json!({"apiVersion": "v2", "kind": "Thing"}),
            "invalid object type: /v2, Kind=Thing",
        ),
        (
            json!({"apiVersion": "apps/v1", "kind": "X"}),
            "invalid object type: apps/v1, Kind=X",
        ),
        (
            thing(&json!({"metadata": {"managedFields": []}})),
            "metadata.managedFields must be nil",
        ),
        (
            thing(&json!({"nope": 1})),
            "failed to create typed patch object (/t; /v1, Kind=Thing): .nope: field not declared in schema",
        ),
        (
            thing(&json!({"spec": {"items": [{"name": "a"}, {"name": "a"}]}})),
            "failed to create typed patch object (/t; /v1, Kind=Thing): .spec.items: duplicate entries for key [name=\"a\"]",
        ),
    ] {
        assert_eq!(
            apply(&world.ctx(T1), None, &config, "ci", false)
                .unwrap_err()
                .to_string(),
            message
        );
    }
    let mut broken = thing(&json!({}));
    broken["metadata"]["managedFields"] = json!([{"manager": "m"}]);
    assert_eq!(
        apply(&world.ctx(T1), Some(&broken), &thing(&json!({})), "ci", false)
            .unwrap_err()
            .to_string(),
        "failed to decode managed fields: operation must be `Apply` or `Update`"
    );
    // An update of what does not fit its type loses the record and goes on.
    let live = update(&world.ctx(T1), None, thing(&json!({"data": {"a": "1"}})), "m");
    let mut unfit = live.clone();
    unfit["unknown"] = json!(1);
    assert_eq!(owners(&update(&world.ctx(T1), Some(&live), unfit, "m")), []);
}

#[test]
fn subresources_own_what_they_may_write() {
    let mut world = World::new();
    world.reset = ResetFields::new(vec![(
        "v1".to_owned(),
        Filter::Exclude(Set::from_paths(&[&["status"]])),
    )]);
    let created = update(
        &world.ctx(T1),
        None,
        thing(&json!({"data": {"a": "1"}, "status": {"ready": 1}})),
        "m",
    );
    assert_eq!(
        owners(&created),
        [owner("m", "Update", T1, &json!({"f:data": {".": {}, "f:a": {}}}))]
    );
    let config = thing(&json!({"data": {"a": "1"}, "status": {"ready": 5}}));
    let applied = apply(&world.ctx(T1), Some(&created), &config, "ci", false).unwrap();
    assert_eq!(
        owners(&applied)[0],
        owner("ci", "Apply", T1, &json!({"f:data": {"f:a": {}}}))
    );
}

mod housekeeping;
