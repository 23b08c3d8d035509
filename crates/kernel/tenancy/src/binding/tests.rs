//! Bindings from nothing to bound, and everything that may stand in the way.

use super::*;
use crate::conditions::Conditions as Said;

mod writing;

fn export(over: Value) -> Value {
    let mut object = json!({
        "metadata": {"name": "widgets", "annotations": {"kcp.io/cluster": "prov"}},
        "spec": {"resources": [
            {"name": "widgets", "group": "x.io", "schema": "v1.widgets.x.io"},
            {"name": "gadgets", "group": "x.io", "schema": "v1.gadgets.x.io"},
        ]},
        "status": {"identityHash": "h"},
    });
    for (part, value) in over.as_object().into_iter().flatten() {
        for (key, value) in value.as_object().into_iter().flatten() {
            object[part][key] = value.clone();
        }
    }
    object
}

fn schema(name: &str) -> Option<Arc<ApiResourceSchema>> {
    let (prefix, plural, group) = crate::schema::split_name(name)?;
    if prefix == "gone" {
        return None;
    }
    let kind = plural.trim_end_matches('s');
    Some(Arc::new(ApiResourceSchema::read(&json!({
        "metadata": {"name": name, "uid": format!("uid-{name}")},
        "spec": {
            "group": group,
            "names": {"plural": plural, "singular": kind, "kind": kind.to_uppercase(), "listKind": format!("{kind}List"), "shortNames": ["wg"]},
            "versions": [{"name": prefix, "storage": true}],
        },
    }))))
}

fn binding(over: Value) -> Value {
    let mut object = json!({
        "metadata": {"name": "mine"},
        "spec": {"reference": {"export": {"path": "root:prov", "name": "widgets"}}},
    });
    for (part, value) in over.as_object().into_iter().flatten() {
        for (key, value) in value.as_object().into_iter().flatten() {
            object[part][key] = value.clone();
        }
    }
    object
}

/// Who brings it, its group, its names.
type Existing = (Option<(&'static str, &'static str)>, &'static str, Names);

struct World {
    export: Option<Value>,
    locks: Locks,
    served: Vec<Existing>,
    unusable: Option<&'static str>,
}

impl Default for World {
    fn default() -> Self {
        Self {
            export: Some(export(json!({}))),
            locks: Locks::default(),
            served: Vec::new(),
            unusable: None,
        }
    }
}

fn run(object: &Value, world: &World) -> Plan {
    let export = world.export.as_ref().map(ApiExport::read);
    let served: Vec<Served<'_>> = world
        .served
        .iter()
        .map(|(binding, group, names)| Served {
            binding: *binding,
            group,
            names,
        })
        .collect();
    decide(&Observed {
        binding: &ApiBinding::read(object),
        here: &ClusterId::parse("here").unwrap(),
        export: export.as_ref(),
        schema: &schema,
        unusable: &|_| world.unusable.map(str::to_owned),
        served: &served,
        locks: &world.locks,
        now: "t",
    })
}

fn names(plural: &str, singular: &str, short: &str, kind: &str) -> Names {
    Names {
        plural: plural.to_owned(),
        singular: singular.to_owned(),
        short_names: vec![short.to_owned()],
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        categories: Vec::new(),
    }
}

#[test]
fn bound_at_once() {
    let mut object = binding(json!({}));
    let plan = run(&object, &World::default());
    let status = plan.status.unwrap();
    assert_eq!(status["phase"], "Bound");
    assert_eq!(status["apiExportClusterName"], "prov");
    assert_eq!(
        status["boundResources"][0],
        json!({
            "group": "x.io",
            "resource": "widgets",
            "schema": {"name": "v1.widgets.x.io", "UID": "uid-v1.widgets.x.io", "identityHash": "h"},
            "storageVersions": ["v1"],
        })
    );
    let kinds: Vec<_> = status["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["type"].as_str().unwrap(), it["status"].as_str().unwrap()))
        .collect();
    assert_eq!(
        kinds,
        [
            ("Ready", "True"),
            ("APIExportValid", "True"),
            ("BindingUpToDate", "True"),
            ("InitialBindingCompleted", "True"),
            ("PermissionClaimsApplied", "True"),
            ("PermissionClaimsValid", "True"),
        ]
    );
    let locks = plan.locks.unwrap();
    assert_eq!(
        locks.to_annotation(),
        r#"{"gadgets.x.io":{"n":"mine"},"widgets.x.io":{"n":"mine"}}"#
    );
    object["status"] = status;
    let settled = World {
        locks,
        ..World::default()
    };
    assert_eq!(
        run(&object, &settled),
        Plan::default(),
        "nothing new, nothing to do"
    );
    assert!(ApiBinding::read(&object).is_initially_bound());
    assert_eq!(
        ApiBinding::read(&object).identity_of("x.io", "widgets"),
        Some("h")
    );
}

#[test]
fn in_the_way() {
    let mut by_other = Locks::default();
    by_other.take("theirs", "x.io", "widgets").unwrap();
    let mut by_crd = Locks::default();
    by_crd.take_for_definition("x.io", "widgets", "t9").unwrap();
    let two_versions = export(
        json!({"spec": {"resources": [{"name": "widgets", "group": "x.io", "schema": "gone.widgets.x.io"}]}}),
    );
    for (what, object, world, kind, reason, message) in [
        (
            "no reference",
            binding(json!({"spec": {"reference": {}}})),
            World::default(),
            "APIExportValid",
            "APIExportInvalidReference",
            "Missing APIExport reference",
        ),
        (
            "no export",
            binding(json!({})),
            World {
                export: None,
                ..World::default()
            },
            "APIExportValid",
            "APIExportNotFound",
            "APIExport root:prov|widgets not found",
        ),
        (
            "no export here",
            binding(json!({"spec": {"reference": {"export": {"name": "widgets"}}}})),
            World {
                export: None,
                ..World::default()
            },
            "APIExportValid",
            "APIExportNotFound",
            "APIExport here|widgets not found",
        ),
        (
            "no identity",
            binding(json!({})),
            World {
                export: Some(export(json!({"status": {"identityHash": ""}}))),
                ..World::default()
            },
            "APIExportValid",
            "MissingIdentityHash",
            "APIExport root:prov|widgets is missing status.identityHash",
        ),
        (
            "no schema",
            binding(json!({})),
            World {
                export: Some(two_versions),
                ..World::default()
            },
            "APIExportValid",
            "InternalError",
            "Invalid APIExport. Please contact the APIExport owner to resolve: APIResourceSchema \"gone.widgets.x.io\" not found",
        ),
        (
            "held by another binding",
            binding(json!({})),
            World {
                locks: by_other,
                ..World::default()
            },
            "InitialBindingCompleted",
            "NamingConflicts",
            "Unable to bind APIs because they are bound by other APIBindings or CRDs: widgets.x.io by APIBinding \"theirs\"",
        ),
        (
            "held by a definition",
            binding(json!({})),
            World {
                locks: by_crd,
                ..World::default()
            },
            "BindingUpToDate",
            "NamingConflicts",
            "Unable to bind APIs because they are bound by other APIBindings or CRDs: widgets.x.io by a CustomResourceDefinition",
        ),
        (
            "a word of another binding",
            binding(json!({})),
            World {
                served: vec![(
                    Some(("theirs", "root:o:n")),
                    "x.io",
                    names("others", "widget", "o", "Other"),
                )],
                ..World::default()
            },
            "BindingUpToDate",
            "NamingConflicts",
            "Unable to bind APIs: naming conflict with APIBinding \"theirs\" bound to APIExport root:o:n: spec.names.singular=widget is forbidden",
        ),
        (
            "a short name of a definition",
            binding(json!({})),
            World {
                served: vec![(None, "x.io", names("others", "other", "wg", "Other"))],
                ..World::default()
            },
            "BindingUpToDate",
            "NamingConflicts",
            "Unable to bind APIs: naming conflict with CustomResourceDefinition \"others.x.io\": spec.names.shortNames=[wg] is forbidden",
        ),
        (
            "a kind of a definition",
            binding(json!({})),
            World {
                served: vec![(None, "x.io", names("others", "other", "o", "WIDGET"))],
                ..World::default()
            },
            "BindingUpToDate",
            "NamingConflicts",
            "Unable to bind APIs: naming conflict with CustomResourceDefinition \"others.x.io\": spec.names.kind=WIDGET is forbidden",
        ),
        (
            "a schema that is none",
            binding(json!({})),
            World {
                unusable: Some("not structural"),
                ..World::default()
            },
            "InitialBindingCompleted",
            "APIResourceSchemaInvalid",
            "APIResourceSchema prov|v1.widgets.x.io is invalid: not structural",
        ),
    ] {
        let plan = run(&object, &world);
        let status = plan.status.unwrap();
        let said = Said::read(&json!({"status": status}));
        assert_eq!(said.reason(kind), Some(reason), "{what}: {status}");
        assert_eq!(said.get(kind).unwrap()["message"], message, "{what}");
        assert_eq!(status["phase"], "Binding", "{what}");
        assert!(said.is_false("Ready"), "{what}");
    }
    // Another group is another matter.
    let elsewhere = World {
        served: vec![(None, "y.io", names("widgets", "widget", "wg", "WIDGET"))],
        ..World::default()
    };
    assert_eq!(
        run(&binding(json!({})), &elsewhere).status.unwrap()["phase"],
        "Bound"
    );
}

#[test]
fn what_can_be_bound_is() {
    let mut locks = Locks::default();
    locks.take("theirs", "x.io", "widgets").unwrap();
    let plan = run(
        &binding(json!({})),
        &World {
            locks,
            ..World::default()
        },
    );
    let bound = &plan.status.unwrap()["boundResources"];
    assert_eq!(bound.as_array().unwrap().len(), 1);
    assert_eq!(bound[0]["resource"], "gadgets");
}

/// A binding that is bound, and what comes of it when the export changes.
#[test]
fn later_changes() {
    let mut object = binding(json!({}));
    let first = run(&object, &World::default());
    object["status"] = first.status.unwrap();
    let locks = first.locks.unwrap();
    let after = |export: Option<Value>, unusable| {
        let world = World {
            export,
            locks: locks.clone(),
            unusable,
            ..World::default()
        };
        run(&object, &world)
            .status
            .map(|status| (Said::read(&json!({"status": status})), status))
    };
    // A new schema: taken up, and the old storage version is remembered.
    let newer = export(
        json!({"spec": {"resources": [{"name": "widgets", "group": "x.io", "schema": "v2.widgets.x.io"}]}}),
    );
    let (said, status) = after(Some(newer), None).unwrap();
    assert_eq!(status["phase"], "Bound");
    assert!(said.is_true("BindingUpToDate"));
    assert_eq!(status["boundResources"][0]["schema"]["name"], "v2.widgets.x.io");
    assert_eq!(
        status["boundResources"][0]["storageVersions"],
        json!(["v1", "v2"])
    );
    // What the export no longer offers stays served: there are objects of it.
    assert_eq!(status["boundResources"].as_array().unwrap().len(), 2);
    // The export vanishes, or changes into something that cannot be served: told, and nothing else.
    let (said, status) = after(None, None).unwrap();
    assert_eq!(
        (said.reason("APIExportValid"), &status["phase"]),
        (Some("APIExportNotFound"), &json!("Bound"))
    );
    assert!(said.is_true("Ready") && said.is_true("InitialBindingCompleted"));
    let (said, status) = after(Some(export(json!({}))), Some("broken")).unwrap();
    assert_eq!(said.reason("BindingUpToDate"), Some("APIResourceSchemaInvalid"));
    assert!(said.is_true("InitialBindingCompleted"));
    assert_eq!(status["boundResources"].as_array().unwrap().len(), 2);
    // Somebody put another export into its place.
    let (said, status) = after(Some(export(json!({"status": {"identityHash": "other"}}))), None).unwrap();
    assert_eq!(said.reason("APIExportValid"), Some("IdentityMismatch"));
    assert_eq!(status["boundResources"][0]["schema"]["identityHash"], "h");
}

#[test]
fn claims_in_the_status() {
    let asks = export(json!({"spec": {"permissionClaims": [
        {"resource": "secrets", "verbs": ["get"]},
        {"resource": "configmaps", "verbs": ["*"], "defaultSelector": {"matchLabels": {"a": "b"}}},
    ]}}));
    let answer = |resource: &str, verbs: &[&str], selector: Value, state: &str| json!({"resource": resource, "verbs": verbs, "selector": selector, "state": state});
    let all = json!({"matchAll": true});
    for (what, answers, applied, reason, message) in [
        ("none", json!([]), 0, None, None),
        (
            "rejected",
            json!([answer("secrets", &["get"], all.clone(), "Rejected")]),
            0,
            None,
            None,
        ),
        (
            "accepted",
            json!([answer("secrets", &["get"], all.clone(), "Accepted")]),
            1,
            None,
            None,
        ),
        (
            "fewer verbs",
            json!([answer("secrets", &["list"], all.clone(), "Accepted")]),
            1,
            Some("PermissionClaimsMismatch"),
            Some(
                "1 permission claim(s) have mismatched verbs or selectors (showing first 1): secrets. (verbs: accepted [list], exported [get])",
            ),
        ),
        (
            "another selector",
            json!([answer("configmaps", &["get"], all.clone(), "Accepted")]),
            1,
            Some("PermissionClaimsMismatch"),
            Some(
                "1 permission claim(s) have mismatched verbs or selectors (showing first 1): configmaps. (selector differs from defaultSelector)",
            ),
        ),
        (
            "the selector that was meant",
            json!([answer(
                "configmaps",
                &["get"],
                json!({"matchLabels": {"a": "b"}, "matchAll": false}),
                "Accepted"
            )]),
            1,
            None,
            None,
        ),
        (
            "never asked for",
            json!([answer("namespaces", &["get"], all, "Accepted")]),
            0,
            Some("InvalidPermissionClaims"),
            Some(
                "1 unexpected and/or invalid permission claims (showing first 1): unexpected/invalid claim for namespaces. (identity \"\")",
            ),
        ),
    ] {
        let object = binding(json!({"spec": {"permissionClaims": answers}}));
        let world = World {
            export: Some(asks.clone()),
            ..World::default()
        };
        let status = run(&object, &world).status.unwrap();
        let said = Said::read(&json!({"status": status}));
        assert_eq!(said.reason("PermissionClaimsValid"), reason, "{what}");
        if let Some(message) = message {
            assert_eq!(
                said.get("PermissionClaimsValid").unwrap()["message"],
                message,
                "{what}"
            );
        }
        let list = status.get("appliedPermissionClaims").and_then(Value::as_array);
        assert_eq!(list.map_or(0, Vec::len), applied, "{what}");
        assert!(list.is_none_or(|list| list.iter().all(|it| it.get("state").is_none())));
        assert_eq!(
            status["exportPermissionClaims"].as_array().unwrap().len(),
            2,
            "{what}"
        );
        assert_eq!(status["phase"], "Bound", "{what}");
    }
}

#[test]
fn deletion() {
    let mut object = binding(json!({}));
    object["status"] = run(&object, &World::default()).status.unwrap();
    object["metadata"]["finalizers"] = json!(["apis.kcp.io/apibinding-finalizer", "mine"]);
    object["metadata"]["deletionTimestamp"] = json!("t");
    let bound = ApiBinding::read(&object);
    let held = [("example.com/f".to_owned(), 2)];
    let left = |finalizers| Remaining {
        group: "x.io",
        resource: "widgets",
        objects: 3,
        finalizers,
    };
    let reason = |deletion: &Deletion| {
        let said = Said::read(&json!({"status": deletion.status.clone().unwrap()}));
        said.reason("BindingResourceDeleteSuccess").map(str::to_owned)
    };
    let waiting = decide_deletion(&bound, &[], &[left(&[])], "t");
    assert_eq!(waiting.delete.len(), 1);
    assert_eq!(waiting.delete[0].schema.identity_hash, "h");
    assert_eq!(waiting.finalizers, None);
    assert_eq!(reason(&waiting).as_deref(), Some("SomeResourcesRemain"));
    let stuck = decide_deletion(&bound, &[], &[left(&held)], "t");
    assert_eq!(reason(&stuck).as_deref(), Some("SomeFinalizersRemain"));
    let done = decide_deletion(&bound, &[], &[], "t");
    assert_eq!(done.finalizers, Some(vec!["mine".to_owned()]));
    assert_eq!(reason(&done), None);

    // Another binding brings the same: the objects stay.
    let successor = ApiBinding::read(&json!({"metadata": {"name": "next"}}));
    let leaving = ApiBinding::read(&json!({"metadata": {"name": "next", "deletionTimestamp": "t"}}));
    let same = ApiExport::read(&export(json!({})));
    let foreign = ApiExport::read(&export(json!({"status": {"identityHash": "other"}})));
    for (next, offers, kept) in [
        (&successor, &same, true),
        (&successor, &foreign, false),
        (&leaving, &same, false),
        (&bound, &same, false),
    ] {
        let deletion = decide_deletion(&bound, &[(next, offers)], &[left(&[])], "t");
        assert_eq!(deletion.delete.is_empty(), kept);
        assert_eq!(deletion.finalizers.is_some(), kept);
    }
}
