//! A glance tells what reading the whole object tells.

use serde_json::{Value, json};

use super::{Binding, Cluster, Workspace};
use crate::binding::ApiBinding;
use crate::logical_cluster::LogicalCluster;

const SERVER: &str = "https://h:1";

fn workspace() -> Value {
    json!({
        "metadata": {"name": "a", "resourceVersion": "7", "labels": {"tenancy.kcp.io/phase": "Ready"},
            "managedFields": [{"manager": "m"}]},
        "spec": {"cluster": "2qzhbwv4eyivub90", "type": {"name": "universal"}},
        "status": {"phase": "Ready", "conditions": []},
    })
}

#[test]
fn workspaces() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change, bool); 6] = [
        ("as it should be", |_| {}, true),
        (
            "not ready",
            |w| w["status"]["phase"] = json!("Initializing"),
            false,
        ),
        ("not labelled", |w| w["metadata"]["labels"] = json!(null), false),
        (
            "being deleted",
            |w| w["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
            false,
        ),
        ("no status", |w| w["status"] = json!(null), false),
        ("no spec", |w| w["spec"] = json!(null), true),
    ];
    for (name, change, settled) in cases {
        let mut object = workspace();
        change(&mut object);
        let text = object.to_string();
        let glance: Workspace<'_> = serde_json::from_str(&text).unwrap();
        assert_eq!(glance.is_settled(), settled, "{name}");
        let cluster = object["spec"]["cluster"].as_str().unwrap_or_default();
        assert_eq!(glance.cluster(), cluster, "{name}");
        assert_eq!(glance.metadata.resource_version.as_str(), "7");
    }
}

fn cluster() -> Value {
    json!({
        "metadata": {"name": "cluster", "labels": {"tenancy.kcp.io/phase": "Ready"},
            "annotations": {"kcp.io/path": "root:a", "internal.tenancy.kcp.io/type": "root:universal", "x": "\"quoted\""},
            "finalizers": ["core.kcp.io/logicalcluster-deletion"]},
        "spec": {"owner": {"cluster": "root", "name": "a", "uid": "u"}},
        "status": {"phase": "Ready", "URL": "https://h:1/clusters/root:a"},
    })
}

#[test]
fn clusters() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change, bool); 9] = [
        ("as it should be", |_| {}, true),
        (
            "at another address",
            |c| c["status"]["URL"] = json!("https://h:2/clusters/root:a"),
            false,
        ),
        (
            "at another path",
            |c| c["metadata"]["annotations"]["kcp.io/path"] = json!("root:b"),
            false,
        ),
        (
            "without finalizer",
            |c| c["metadata"]["finalizers"] = json!([]),
            false,
        ),
        (
            "initializing",
            |c| c["status"]["phase"] = json!("Initializing"),
            false,
        ),
        ("new", |c| c["status"] = json!({}), false),
        (
            "inactive",
            |c| c["metadata"]["annotations"]["core.kcp.io/inactive"] = json!("true"),
            false,
        ),
        (
            "being deleted",
            |c| c["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
            false,
        ),
        ("without owner", |c| c["spec"] = json!({}), true),
    ];
    for (name, change, settled) in cases {
        let mut object = cluster();
        change(&mut object);
        let text = object.to_string();
        let glance: Cluster<'_> = serde_json::from_str(&text).unwrap();
        let whole = LogicalCluster::read(&object);
        let at_home = glance.server() == Some(SERVER);
        assert_eq!(glance.is_settled() && at_home, settled, "{name}");
        let owner = whole.owner();
        let owner = owner.as_ref().map(|(cluster, owner)| (cluster.as_str(), *owner));
        assert_eq!(glance.owner(), owner, "{name}");
        assert_eq!(
            glance.type_name(),
            whole.type_name().unwrap_or_default(),
            "{name}"
        );
        assert_eq!(
            glance.is_initializing(),
            whole.phase < crate::logical_cluster::Phase::Ready,
            "{name}"
        );
        assert_eq!(glance.metadata.is_deleting(), whole.meta.is_deleting(), "{name}");
    }
}

#[test]
fn bindings() {
    let conditions = |applied: &str| json!([{"type": "InitialBindingCompleted", "status": "True"}, {"type": "PermissionClaimsApplied", "status": applied}]);
    let claim = |state: &str| json!([{"resource": "secrets", "state": state}]);
    for (name, claims, conditions) in [
        ("no claims", json!([]), conditions("False")),
        ("rejected", claim("Rejected"), conditions("False")),
        ("accepted, not applied", claim("Accepted"), conditions("False")),
        ("accepted", claim("Accepted"), conditions("True")),
        ("nothing said", json!([]), json!(null)),
    ] {
        for export in ["provider", "", "system:fairway"] {
            let object = json!({
                "metadata": {"name": "b"},
                "spec": {"reference": {"export": {"path": "root", "name": "e"}}, "permissionClaims": claims},
                "status": {"apiExportClusterName": export, "conditions": conditions,
                    "boundResources": [{"group": "g", "resource": "r", "schema": {"name": "s", "UID": "u", "identityHash": "i"}}]},
            });
            let text = object.to_string();
            let glance: Binding<'_> = serde_json::from_str(&text).unwrap();
            let whole = ApiBinding::read(&object);
            assert_eq!(glance.is_initially_bound(), whole.is_initially_bound(), "{name}");
            let found = whole.export().map(|(cluster, name)| (cluster.as_str(), name));
            assert_eq!(glance.export(), found, "{name} {export}");
            let consents = whole.answers.iter().any(crate::claims::Answer::is_accepted);
            assert_eq!(glance.consents(), consents, "{name}");
            let bound = &glance.bound()[0];
            let known = &whole.bound[0];
            assert_eq!(bound.group.as_str(), known.group);
            assert_eq!(bound.schema.uid.as_str(), known.schema.uid);
            assert_eq!(bound.schema.identity_hash.as_str(), known.schema.identity_hash);
        }
    }
}
