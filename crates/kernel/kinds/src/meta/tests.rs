//! Metadata on create and update, through a kind without rules of its own.

use serde_json::{Value, json};

use super::{Birth, NAMESPACE_MISMATCH, generate_name, match_namespace, prepare_create};
use crate::check::{create, stored, update};

fn configmap(metadata: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

#[test]
fn a_new_object_gets_its_system_fields() {
    let object = create(
        "",
        "configmaps",
        configmap(json!({"generateName": "web-", "uid": "mine", "generation": 9, "deletionTimestamp": "x", "resourceVersion": "3"})),
    )
    .ok();
    assert_eq!(
        object["metadata"],
        json!({"generateName": "web-", "uid": "uid-1", "namespace": "ns", "name": "web-abcde", "creationTimestamp": "2026-01-02T03:04:05Z"})
    );
}

#[test]
fn generated_names_fit_a_label() {
    assert_eq!(generate_name("a-", "xyz12"), "a-xyz12");
    assert_eq!(generate_name(&"a".repeat(100), "xyz12").len(), 63);
    assert!(generate_name(&"ä".repeat(60), "xyz12").ends_with("äxyz12"));
    let mut named = json!({"metadata": {"name": "a", "generateName": "b-"}});
    prepare_create(
        &mut named,
        &Birth {
            now: "",
            uid: "u",
            name_suffix: "s",
        },
    );
    assert_eq!(named["metadata"]["name"], "a", "a name wins over generateName");
}

#[test]
fn namespaces_must_agree() {
    let mut object = json!({"metadata": {"namespace": "a"}});
    assert_eq!(match_namespace(&mut object, Some("b")), Err(NAMESPACE_MISMATCH));
    assert_eq!(match_namespace(&mut object, Some("a")), Ok(()));
    match_namespace(&mut object, None).unwrap();
    assert_eq!(object, json!({"metadata": {}}), "cluster-scoped kinds have none");
    match_namespace(&mut object, Some("b")).unwrap();
    assert_eq!(object, json!({"metadata": {"namespace": "b"}}));
}

#[test]
fn wrong_on_create() {
    let owner = |kind: &str, controller: bool| json!({"apiVersion": "apps/v1", "kind": kind, "name": "n", "uid": "u", "controller": controller});
    let cases: Vec<(Value, &[&str], &str)> = vec![
        (
            json!({}),
            &["metadata.name: Required value: name or generateName is required"],
            "no name",
        ),
        (
            json!({"name": "Bad_Name"}),
            &[
                "metadata.name: Invalid value: \"Bad_Name\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is ",
            ],
            "bad name",
        ),
        (
            json!({"generateName": "Bad-"}),
            &[
                "metadata.generateName: Invalid value: \"Bad-\": a lowercase RFC 1123 subdomain",
                "metadata.name: Invalid value: \"Bad-abcde\"",
            ],
            "bad generateName",
        ),
        (
            json!({"name": "a", "namespace": "Bad"}),
            &["metadata.namespace: Invalid value: \"Bad\": a lowercase RFC 1123 label"],
            "bad namespace",
        ),
        (
            json!({"name": "a", "labels": {"a b": "c", "ok": "not ok"}}),
            &[
                "metadata.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                "metadata.labels: Invalid value: \"not ok\": a valid label must be an empty string",
            ],
            "bad labels",
        ),
        (
            json!({"name": "a", "annotations": {"a b": "c", "Example.COM/ok": ""}}),
            &["metadata.annotations: Invalid value: \"a b\": name part must consist of"],
            "annotation prefixes may be upper case",
        ),
        (
            json!({"name": "a", "annotations": {"a": "x".repeat(256 * 1024)}}),
            &["metadata.annotations: Too long: may not be more than 262144 bytes"],
            "annotations too large",
        ),
        (
            json!({"name": "a", "finalizers": ["bad one", "orphan", "foregroundDeletion", "plain"]}),
            &[
                "metadata.finalizers: Invalid value: \"bad one\": name part must consist of",
                "metadata.finalizers: Invalid value: [\"bad one\",\"orphan\",\"foregroundDeletion\",\"plain\"]: finalizer orphan and foregroundDeletion cannot be both set",
                "metadata.finalizers[0]: Invalid value: \"bad one\": name is neither a standard finalizer name nor is it fully qualified",
                "metadata.finalizers[3]: Invalid value: \"plain\": name is neither a standard finalizer name nor is it fully qualified",
            ],
            "finalizers",
        ),
        (
            json!({"name": "a", "ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}]}),
            &[
                "metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty",
                "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
                "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
                "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
            ],
            "owner without anything",
        ),
        (
            json!({"name": "a", "ownerReferences": [owner("A", true), owner("B", true), owner("C", false)]}),
            &["metadata.ownerReferences: Invalid value: [{\"apiVersion\""],
            "one controller",
        ),
        (
            json!({"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "n", "uid": "u"}]}),
            &["metadata.ownerReferences: Invalid value: {"],
            "events own nothing",
        ),
        (
            json!({"name": "a", "managedFields": [{"operation": "Steal", "fieldsType": "V2", "manager": "a\nb"}]}),
            &[
                "metadata.managedFields[0].operation: Invalid value: \"Steal\": must be `Apply` or `Update`",
                "metadata.managedFields[0].fieldsType: Invalid value: \"V2\": must be `FieldsV1`",
                "metadata.managedFields[0].manager: Invalid value: \"a\\nb\": invalid character U+000A (at position 1)",
            ],
            "managed fields",
        ),
    ];
    for (metadata, expected, reason) in cases {
        println!("{reason}");
        create("", "configmaps", configmap(metadata)).fails(expected);
    }
}

#[test]
fn cluster_kinds_have_no_namespace() {
    create(
        "",
        "namespaces",
        json!({"metadata": {"name": "a", "namespace": "b"}}),
    )
    .fails(&["metadata.namespace: Forbidden: not allowed on this type"]);
}

#[test]
fn wrong_on_update() {
    let old = stored(
        "",
        "configmaps",
        configmap(json!({"name": "a", "finalizers": ["x.io/a"]})),
    );
    let set = |key: &'static str, value: Value| move |o: &mut Value| o["metadata"][key] = value;
    update("", "configmaps", &old, set("name", json!("b")))
        .fails(&["metadata.name: Invalid value: \"b\": field is immutable"]);
    update("", "configmaps", &old, set("uid", json!("b")))
        .fails(&["metadata.uid: Invalid value: \"b\": field is immutable"]);
    update("", "configmaps", &old, set("resourceVersion", json!("")))
        .fails(&["metadata.resourceVersion: Invalid value: \"\": must be specified for an update"]);
    update(
        "",
        "configmaps",
        &old,
        set("deletionTimestamp", json!("2026-01-02T03:04:06Z")),
    )
    .fails(&["metadata.deletionTimestamp: Invalid value: \"2026-01-02T03:04:06Z\": field is immutable"]);
    let kept = update(
        "",
        "configmaps",
        &old,
        set("creationTimestamp", json!("2000-01-01T00:00:00Z")),
    )
    .ok();
    assert_eq!(kept, old, "changes of the creation time are ignored");

    let mut dying = old;
    dying["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:06Z");
    update("", "configmaps", &dying, set("finalizers", json!(["x.io/a", "x.io/b"]))).fails(&[
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"x.io/b\"}",
    ]);
    update("", "configmaps", &dying, |o| {
        o["metadata"].as_object_mut().unwrap().shift_remove("finalizers");
    })
    .ok();
}
