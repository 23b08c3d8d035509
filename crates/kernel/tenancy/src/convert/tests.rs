//! Both versions say the same, and nothing is lost on the way.

use super::*;

fn up(object: &Value) -> Value {
    let mut object = object.clone();
    to_v1alpha2(&mut object);
    object
}

fn down(object: &Value) -> Value {
    let mut object = object.clone();
    to_v1alpha1(&mut object);
    object
}

fn of(version: &str, kind: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("apis.kcp.io/{version}"), "kind": kind, "metadata": {"name": "a"}, "spec": spec})
}

#[test]
fn an_older_export() {
    let old = of(
        "v1alpha1",
        "APIExport",
        json!({
            "latestResourceSchemas": ["v1.widgets.x.io", "v1.things.core"],
            "permissionClaims": [{"resource": "secrets", "all": true}],
        }),
    );
    let new = up(&old);
    assert_eq!(new["apiVersion"], "apis.kcp.io/v1alpha2");
    assert_eq!(
        new["spec"],
        json!({
            "resources": [
                {"name": "widgets", "group": "x.io", "schema": "v1.widgets.x.io", "storage": {"crd": {}}},
                {"name": "things", "group": "", "schema": "v1.things.core", "storage": {"crd": {}}},
            ],
            "permissionClaims": [{"resource": "secrets", "verbs": ["*"]}],
        })
    );
    assert_eq!(new["metadata"], json!({"name": "a"}));
    assert_eq!(down(&new), old);
}

#[test]
fn nothing_is_lost() {
    let answers = json!({
        "reference": {"export": {"path": "root", "name": "e"}},
        "permissionClaims": [
            {"resource": "secrets", "verbs": ["get"], "selector": {"matchLabels": {"a": "b"}}, "state": "Accepted"},
            {"group": "y.io", "resource": "gadgets", "identityHash": "i", "verbs": ["*"], "selector": {"matchAll": true}, "state": "Rejected"},
        ],
    });
    let asks = json!({
        "resources": [
            {"name": "widgets", "group": "x.io", "schema": "v1.widgets.x.io", "storage": {"crd": {}}},
            {"name": "views", "group": "x.io", "schema": "v1.views.x.io", "storage": {"virtual": {"identityHash": "i"}}},
        ],
        "permissionClaims": [
            {"resource": "secrets", "verbs": ["get", "list"]},
            {"resource": "configmaps", "verbs": ["*"], "defaultSelector": {"matchAll": true}},
        ],
    });
    for new in [
        of("v1alpha2", "APIExport", asks),
        of("v1alpha2", "APIBinding", answers),
    ] {
        let back = up(&down(&new));
        let same = |field: &str| {
            // Lists may come back in another order of fields; what they say is the same.
            assert_eq!(back["spec"][field], new["spec"][field], "{field}");
        };
        same("resources");
        same("permissionClaims");
        same("reference");
        assert_eq!(
            back["metadata"],
            json!({"name": "a"}),
            "no annotation is left behind"
        );
    }
    let selecting = of(
        "v1alpha1",
        "APIExport",
        json!({"permissionClaims": [{"resource": "secrets", "resourceSelector": [{"name": "one"}]}]}),
    );
    assert_eq!(down(&up(&selecting)), selecting);
}

#[test]
fn others_are_left_alone() {
    let schema = of("v1alpha1", "APIResourceSchema", json!({"group": "x.io"}));
    assert_eq!(up(&schema), schema);
    assert_eq!(down(&schema), schema);
    let new = of("v1alpha2", "APIExport", json!({}));
    assert_eq!(up(&new), new);
    // Rubbish in the annotations of kcp's does no harm.
    let mut odd = of("v1alpha1", "APIExport", json!({}));
    odd["metadata"]["annotations"] = json!({SCHEMAS: "not json", CLAIMS: "{}", "mine": "1"});
    assert_eq!(up(&odd)["metadata"]["annotations"], json!({"mine": "1"}));
}

#[test]
fn statuses() {
    let mut new = of("v1alpha2", "APIBinding", json!({}));
    new["status"] = json!({"appliedPermissionClaims": [{"resource": "secrets", "verbs": ["*"], "selector": {"matchAll": true}}]});
    assert_eq!(
        down(&new)["status"],
        json!({"appliedPermissionClaims": [{"resource": "secrets", "all": true}]})
    );
    assert_eq!(up(&down(&new))["status"], new["status"]);
}
