//! Definitions that change.

use serde_json::{Value, json};

use super::{crd, set, texts};
use crate::crd::conditions::{Condition, Status};
use crate::crd::{
    prepare_for_status_update, prepare_for_update, validate, validate_status_update, validate_update,
};

#[test]
fn updates() {
    let old = crd(|crd| {
        set(crd, "/metadata/resourceVersion", json!("5"));
        set(crd, "/metadata/uid", json!("u"));
    });
    let established = {
        let mut crd = old.clone();
        Condition::new("Established", Status::True, "r", "m").set(&mut crd, "2020-01-01T00:00:00Z");
        crd
    };
    let check = |old: &Value, pointer: &str, value: Value, expected: &[&str]| {
        let mut new = old.clone();
        set(&mut new, pointer, value);
        prepare_for_update(&mut new, old);
        assert_eq!(texts(&validate_update(&new, old)), expected, "{pointer}");
        new
    };
    check(&old, "/metadata/labels", json!({"a": "b"}), &[]);
    let new = check(&old, "/spec/names/shortNames", json!(["s"]), &[]);
    assert_eq!(new["metadata"]["generation"], 2);
    check(&old, "/spec/scope", json!("Cluster"), &[]);
    check(
        &established,
        "/spec/scope",
        json!("Cluster"),
        &[r#"spec.scope: Invalid value: "Cluster": field is immutable"#],
    );
    check(
        &established,
        "/spec/names/kind",
        json!("Boat"),
        &[r#"spec.names.kind: Invalid value: "Boat": field is immutable"#],
    );
    check(
        &old,
        "/spec/group",
        json!("b.c"),
        &[r#"spec.group: Invalid value: "b.c": field is immutable"#],
    );
    check(
        &old,
        "/spec/names/plural",
        json!("boats"),
        &[r#"spec.names.plural: Invalid value: "boats": field is immutable"#],
    );
    check(
        &old,
        "/metadata/name",
        json!("x"),
        &[r#"metadata.name: Invalid value: "x": field is immutable"#],
    );
    check(
        &old,
        "/metadata/resourceVersion",
        json!(""),
        &[r#"metadata.resourceVersion: Invalid value: "": must be specified for an update"#],
    );
    // What a client writes into the status does not count.
    let new = check(&old, "/status/storedVersions", json!(["v9"]), &[]);
    assert_eq!(new["status"]["storedVersions"], json!(["v1"]));
    // A new storage version joins the stored ones; an old one may not be dropped.
    let mut moved = old.clone();
    let mut v2 = moved["spec"]["versions"][0].clone();
    v2["name"] = "v2".into();
    moved["spec"]["versions"][0]["storage"] = false.into();
    set(&mut moved, "/spec/versions/-", v2.clone());
    prepare_for_update(&mut moved, &old);
    assert_eq!(texts(&validate_update(&moved, &old)), [""; 0]);
    assert_eq!(moved["status"]["storedVersions"], json!(["v1", "v2"]));
    let mut dropped = moved.clone();
    dropped["spec"]["versions"] = json!([v2]);
    prepare_for_update(&mut dropped, &moved);
    let found = texts(&validate_update(&dropped, &moved));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions;")
    );
    // After the migration the status says so.
    let mut migrated = moved.clone();
    migrated["status"]["storedVersions"] = json!(["v2"]);
    prepare_for_status_update(&mut migrated, &moved);
    assert_eq!(texts(&validate_status_update(&migrated, &moved)), [""; 0]);
    let mut dropped = migrated.clone();
    dropped["spec"]["versions"] = json!([v2]);
    prepare_for_update(&mut dropped, &migrated);
    assert_eq!(texts(&validate_update(&dropped, &migrated)), [""; 0]);
}

#[test]
fn many_selectable_fields_are_tolerated_only_if_they_were_there() {
    let names: Vec<String> = (0..9).map(|i| format!("f{i}")).collect();
    let old = crd(|crd| {
        set(crd, "/metadata/resourceVersion", json!("5"));
        for name in &names {
            set(
                crd,
                &format!("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/{name}"),
                json!({"type": "string"}),
            );
        }
        let fields: Vec<Value> = names
            .iter()
            .map(|n| json!({"jsonPath": format!(".spec.{n}")}))
            .collect();
        set(crd, "/spec/versions/0/selectableFields", fields.into());
    });
    assert_eq!(
        texts(&validate(&old)),
        ["spec.selectableFields: Too many: 9: must have at most 8 items"]
    );
    assert_eq!(texts(&validate_update(&old, &old)), [""; 0]);
}
