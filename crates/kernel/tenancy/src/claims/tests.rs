//! What a provider sees, and what it must not see.

use super::*;
use crate::export::ApiExport;

fn export(claims: Value) -> ApiExport {
    ApiExport::read(&json!({
        "metadata": {"name": "widgets", "annotations": {"kcp.io/cluster": "prov"}},
        "spec": {"permissionClaims": claims},
        "status": {"identityHash": "h"},
    }))
}

fn binding(answers: Value, over: Value) -> ApiBinding {
    let mut object = json!({
        "metadata": {"name": "b"},
        "spec": {"reference": {"export": {"path": "root:prov", "name": "widgets"}}, "permissionClaims": answers},
        "status": {
            "apiExportClusterName": "prov",
            "boundResources": [{"group": "x.io", "resource": "widgets", "schema": {"identityHash": "h"}}],
        },
    });
    if let Value::Object(over) = over {
        for (key, value) in over {
            object["status"][key] = value;
        }
    }
    ApiBinding::read(&object)
}

fn answer(resource: &str, verbs: &[&str], state: &str) -> Value {
    json!({"resource": resource, "verbs": verbs, "state": state, "selector": {"matchAll": true}})
}

#[test]
fn access_to_kinds() {
    let asks = export(json!([
        {"resource": "secrets", "verbs": ["get", "list"]},
        {"resource": "configmaps", "verbs": ["*"]},
        {"resource": "events", "verbs": ["create"]},
        {"group": "y.io", "resource": "gadgets", "identityHash": "i", "verbs": ["get"]},
    ]));
    let gadget = json!({"group": "y.io", "resource": "gadgets", "identityHash": "other", "verbs": ["get"], "state": "Accepted", "selector": {"matchAll": true}});
    let consumer = binding(
        json!([
            answer("secrets", &["get", "watch"], "Accepted"),
            answer("configmaps", &["get"], "Accepted"),
            answer("namespaces", &["*"], "Accepted"),
            answer("events", &["*"], "Accepted"),
            gadget,
        ]),
        json!({}),
    );
    for (group, resource, verb, expected) in [
        ("x.io", "widgets", "delete", Ok("bound")),
        ("", "secrets", "get", Ok("claimed")),
        // The consumer did not grant it, or the export did not ask for it.
        (
            "",
            "secrets",
            "list",
            Err("failed to find suitable reason to allow access in APIBinding"),
        ),
        (
            "",
            "secrets",
            "watch",
            Err("failed to find suitable reason to allow access in APIBinding"),
        ),
        ("", "configmaps", "get", Ok("claimed")),
        (
            "",
            "configmaps",
            "update",
            Err("failed to find suitable reason to allow access in APIBinding"),
        ),
        (
            "",
            "namespaces",
            "get",
            Err("failed to find suitable reason to allow access in APIBinding"),
        ),
        ("", "events", "create", Ok("claimed")),
        ("events.k8s.io", "events", "create", Ok("claimed")),
        // Same name, another kind.
        (
            "y.io",
            "gadgets",
            "get",
            Err("failed to find suitable reason to allow access in APIBinding"),
        ),
        (
            "other.io",
            "widgets",
            "get",
            Err("failed to find suitable reason to allow access in APIBinding"),
        ),
        ("apis.kcp.io", "apibindings", "list", Ok("own binding")),
        (
            "apis.kcp.io",
            "apibindings",
            "update",
            Err("write access to APIBinding is not allowed from virtual workspace"),
        ),
    ] {
        let found = access(&asks, Some(&consumer), group, resource, verb).map(|access| match access {
            Access::Bound => "bound",
            Access::Claimed(_) => "claimed",
            Access::OwnBinding => "own binding",
        });
        assert_eq!(found, expected, "{verb} {resource}.{group}");
    }
}

#[test]
fn no_access_without_a_binding_to_this_export() {
    let asks = export(json!([{"resource": "secrets", "verbs": ["*"]}]));
    let answers = json!([answer("secrets", &["*"], "Accepted")]);
    let refusal = Err("could not find suitable APIBinding in target logical cluster");
    let elsewhere = binding(answers.clone(), json!({"apiExportClusterName": "other"}));
    let unresolved = binding(answers, json!({"apiExportClusterName": ""}));
    assert_eq!(access(&asks, None, "", "secrets", "get"), refusal);
    assert_eq!(access(&asks, Some(&elsewhere), "", "secrets", "get"), refusal);
    assert_eq!(
        access(&asks, Some(&unresolved), "x.io", "widgets", "get"),
        refusal
    );
    let rejected = binding(json!([answer("secrets", &["*"], "Rejected")]), json!({}));
    assert!(access(&asks, Some(&rejected), "", "secrets", "get").is_err());
}

#[test]
fn selectors() {
    for (selector, labels, seen) in [
        (json!({"matchAll": true}), json!({}), true),
        (json!({"matchAll": false}), json!({}), false),
        (json!({}), json!({"a": "b"}), false),
        (Value::Null, json!({"a": "b"}), false),
        (json!({"matchLabels": {}}), json!({"a": "b"}), false),
        (
            json!({"matchLabels": {"a": "b"}}),
            json!({"a": "b", "c": "d"}),
            true,
        ),
        (json!({"matchLabels": {"a": "b"}}), json!({"a": "c"}), false),
        (json!({"matchLabels": {"a": "b"}}), Value::Null, false),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
            json!({"a": ""}),
            true,
        ),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x"]}]}),
            json!({}),
            true,
        ),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "Bogus"}]}),
            json!({"a": "b"}),
            false,
        ),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}),
            json!({"a": "b"}),
            false,
        ),
    ] {
        let answer = Answer {
            selector: selector.clone(),
            state: "Accepted".to_owned(),
            ..Answer::default()
        };
        assert_eq!(
            is_visible(&Access::Claimed(&answer), &labels),
            seen,
            "{selector} on {labels}"
        );
    }
    assert!(is_visible(&Access::Bound, &json!({})));
    assert!(!is_visible(&Access::OwnBinding, &json!({})));
}

#[test]
fn writes_stay_within_the_claim() {
    let with = |selector: Value| Answer {
        selector,
        ..Answer::default()
    };
    let by_label = with(json!({"matchLabels": {"owner": "prov"}}));
    for (answer, labels, expected) in [
        (&by_label, json!({}), Ok(json!({"owner": "prov"}))),
        (
            &by_label,
            json!({"owner": "prov", "x": "y"}),
            Ok(json!({"owner": "prov", "x": "y"})),
        ),
        (
            &by_label,
            json!({"owner": "me"}),
            Err("protected label owner must have value prov"),
        ),
        (&with(json!({"matchAll": true})), json!({}), Ok(json!({}))),
        (
            &with(json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]})),
            json!({}),
            Err("object does not match required labels"),
        ),
        (
            &with(json!({})),
            json!({}),
            Err("object does not match required labels"),
        ),
    ] {
        let mut map = labels.as_object().cloned().unwrap();
        let answer = admit_write(answer, &mut map).map(|()| Value::Object(map));
        assert_eq!(answer, expected.map_err(str::to_owned), "{labels}");
    }
}

#[test]
fn labels_of_claimed_objects() {
    // What kcp computes for the same claim.
    let root = ClusterId::root();
    let claim = Claim {
        resource: "configmaps".to_owned(),
        verbs: vec!["get".to_owned()],
        ..Claim::default()
    };
    assert_eq!(
        claim_label(&root, "tenancy.kcp.io", &claim),
        (
            "claimed.internal.apis.kcp.io/bmCdly9xXiUpEHe3ypvDwvXMTfoVZUE92mqAQf".to_owned(),
            "3QVjs6pfBjMpLEVYYhysJnroYGsQGlWm05E4qe".to_owned()
        )
    );
    let more = Claim {
        verbs: vec!["*".to_owned()],
        default_selector: Some(json!({"matchAll": true})),
        ..claim.clone()
    };
    assert_eq!(
        claim_label(&root, "tenancy.kcp.io", &more),
        claim_label(&root, "tenancy.kcp.io", &claim)
    );

    let consumer = binding(
        json!([
            {"resource": "secrets", "verbs": ["get"], "state": "Accepted", "selector": {"matchLabels": {"a": "b"}}},
            answer("configmaps", &["get"], "Rejected"),
        ]),
        json!({}),
    );
    let expected = labels_for([&consumer], "", "secrets", &json!({"a": "b"}));
    assert_eq!(expected.len(), 1);
    assert!(labels_for([&consumer], "", "secrets", &json!({})).is_empty());
    assert!(labels_for([&consumer], "", "configmaps", &json!({"a": "b"})).is_empty());

    // A label that somebody forged does not stay.
    let forged = json!({"a": "b", "claimed.internal.apis.kcp.io/x": "y"});
    let mut labels = forged.as_object().cloned().unwrap();
    assert!(set_labels(&mut labels, &expected));
    assert_eq!(labels.len(), 2);
    assert!(!labels.contains_key("claimed.internal.apis.kcp.io/x"));
    assert!(!set_labels(&mut labels, &expected), "nothing left to change");
    assert!(set_labels(&mut labels, &BTreeMap::new()));
    assert_eq!(Value::Object(labels), json!({"a": "b"}));
}

#[test]
fn claims_without_an_identity() {
    assert!(is_built_in("", "secrets"));
    assert!(is_built_in("apis.kcp.io", "apibindings"));
    assert!(is_built_in("tenancy.kcp.io", "workspaces"));
    assert!(!is_built_in("", "pods"));
    assert!(!is_built_in("x.io", "secrets"));
}

#[test]
fn claims_that_nobody_answered() {
    let binding = |answers: Value| {
        json!({
            "spec": {"permissionClaims": answers},
            "status": {"exportPermissionClaims": [
                {"resource": "configmaps", "verbs": ["*"]},
                {"group": "x.io", "resource": "boats", "identityHash": "h", "verbs": ["*"]},
            ]},
        })
    };
    let maps = |state: &str| json!({"group": "", "resource": "configmaps", "state": state});
    for (answers, want) in [
        (json!(null), &["configmaps", "boats.x.io"][..]),
        (json!([maps("Accepted")]), &["boats.x.io"]),
        (json!([maps("Rejected")]), &["boats.x.io"]),
        (json!([maps("")]), &["configmaps", "boats.x.io"]),
        (
            json!([{"group": "x.io", "resource": "boats", "state": "Accepted"}]),
            &["configmaps", "boats.x.io"],
        ),
        (
            json!([maps("Accepted"), {"group": "x.io", "resource": "boats", "identityHash": "h", "state": "Accepted"}]),
            &[],
        ),
    ] {
        assert_eq!(unanswered(&binding(answers.clone())), want, "{answers}");
    }
    assert_eq!(unanswered(&json!({})), [""; 0]);
}
