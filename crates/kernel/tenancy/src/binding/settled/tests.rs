//! Which bindings need no look.

use std::sync::Arc;

use serde_json::{Value, json};

use super::offered;
use crate::export::ApiExport;
use crate::glance::Binding;
use crate::schema::ApiResourceSchema;

fn export() -> Value {
    json!({
        "metadata": {"name": "boats", "annotations": {"kcp.io/cluster": "provider"}},
        "spec": {"resources": [{"group": "sea.io", "name": "boats", "schema": "v1.boats.sea.io"}]},
        "status": {"identityHash": "abc"},
    })
}

fn schema() -> Value {
    json!({"metadata": {"name": "v1.boats.sea.io", "uid": "u1"}, "spec": {
        "group": "sea.io", "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"},
        "versions": [{"name": "v1", "served": true, "storage": true}],
    }})
}

fn binding() -> Value {
    let kinds = [
        "APIExportValid",
        "BindingUpToDate",
        "InitialBindingCompleted",
        "PermissionClaimsApplied",
        "PermissionClaimsValid",
        "Ready",
    ];
    let conditions = kinds
        .map(|kind| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}));
    json!({
        "metadata": {"name": "boats", "annotations": {"kcp.io/cluster": "consumer"}},
        "spec": {"reference": {"export": {"path": "root:provider", "name": "boats"}}},
        "status": {
            "phase": "Bound", "apiExportClusterName": "provider", "conditions": conditions,
            "boundResources": [{"group": "sea.io", "resource": "boats", "storageVersions": ["v1"],
                "schema": {"name": "v1.boats.sea.io", "UID": "u1", "identityHash": "abc"}}],
        },
    })
}

#[test]
fn only_a_binding_that_has_all_that_is_offered_needs_no_look() {
    type Change = fn(&mut Value, &mut Value, &mut Value);
    let cases: [(&str, Change, bool); 14] = [
        ("nothing has changed", |_, _, _| {}, true),
        (
            "stored in an older version, too",
            |b, _, _| b["status"]["boundResources"][0]["storageVersions"] = json!(["v0", "v1"]),
            true,
        ),
        (
            "it is not bound yet",
            |b, _, _| b["status"]["phase"] = json!("Binding"),
            false,
        ),
        (
            "it is being deleted",
            |b, _, _| b["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
            false,
        ),
        (
            "it complains",
            |b, _, _| b["status"]["conditions"][0]["status"] = json!("False"),
            false,
        ),
        (
            "it says less than it should",
            |b, _, _| b["status"]["conditions"] = json!([]),
            false,
        ),
        (
            "it answers a claim",
            |b, _, _| b["spec"]["permissionClaims"] = json!([{"resource": "secrets", "state": "Accepted"}]),
            false,
        ),
        (
            "a claim was applied",
            |b, _, _| b["status"]["appliedPermissionClaims"] = json!([{"resource": "secrets"}]),
            false,
        ),
        (
            "the export claims something",
            |_, e, _| e["spec"]["permissionClaims"] = json!([{"resource": "secrets"}]),
            false,
        ),
        (
            "the export offers another schema",
            |_, e, s| {
                e["spec"]["resources"][0]["schema"] = json!("v2.boats.sea.io");
                s["metadata"]["name"] = json!("v2.boats.sea.io");
            },
            false,
        ),
        (
            "the schema was replaced",
            |_, _, s| s["metadata"]["uid"] = json!("u2"),
            false,
        ),
        (
            "the schema is gone",
            |_, _, s| s["metadata"]["name"] = json!("other"),
            false,
        ),
        (
            "the export has another identity",
            |_, e, _| e["status"]["identityHash"] = json!("def"),
            false,
        ),
        (
            "another export took its place",
            |_, e, _| e["metadata"]["annotations"]["kcp.io/cluster"] = json!("other"),
            false,
        ),
    ];
    for (name, change, want) in cases {
        let (mut binding, mut export, mut schema) = (binding(), export(), schema());
        change(&mut binding, &mut export, &mut schema);
        let schema = Arc::new(ApiResourceSchema::read(&schema));
        let find = |name: &str| (schema.meta.name == name).then(|| Arc::clone(&schema));
        let text = binding.to_string();
        let taken = serde_json::from_str::<Binding<'_>>(&text).unwrap().taken();
        let offer = offered(&ApiExport::read(&export), &find);
        assert_eq!(taken.is_some() && taken == offer, want, "{name}");
    }
}
