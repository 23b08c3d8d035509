//! The phases of a LogicalCluster, and who may push it from one to the other.

use serde_json::json;

use super::*;

fn plan(object: &Value) -> Plan {
    decide(&LogicalCluster::read(object), &Progress::default(), "u", "t")
}

#[test]
fn phases() {
    let deleted = |status: Value| json!({"metadata": {"deletionTimestamp": "t"}, "status": status});
    let inactive = json!({"core.kcp.io/inactive": "true"});
    for (object, phase, initializers, content) in [
        (json!({}), "Ready", json!(null), false),
        (
            json!({"spec": {"initializers": ["a:b"], "terminators": ["c:d"]}}),
            "Initializing",
            json!(["a:b"]),
            false,
        ),
        (
            json!({"spec": {"initializers": ["a:b"]}, "status": {"phase": "Initializing", "initializers": ["a:b"]}}),
            "Initializing",
            json!(["a:b"]),
            false,
        ),
        // Done: what spec once said does not come back.
        (
            json!({"spec": {"initializers": ["a:b"]}, "status": {"phase": "Initializing"}}),
            "Ready",
            json!(null),
            false,
        ),
        (
            json!({"metadata": {"annotations": inactive}, "status": {"phase": "Ready"}}),
            "Inactive",
            json!(null),
            false,
        ),
        (
            json!({"metadata": {"annotations": {"internal.kcp.io/inactive": "true"}}, "status": {"phase": "Ready"}}),
            "Inactive",
            json!(null),
            false,
        ),
        (
            json!({"status": {"phase": "Inactive"}}),
            "Ready",
            json!(null),
            false,
        ),
        (
            deleted(json!({"phase": "Ready", "terminators": ["c:d"]})),
            "Terminating",
            json!(null),
            false,
        ),
        (
            deleted(json!({"phase": "Terminating"})),
            "Deleting",
            json!(null),
            true,
        ),
        (
            deleted(json!({"phase": "Initializing", "initializers": ["a:b"]})),
            "Deleting",
            json!(["a:b"]),
            true,
        ),
        (deleted(json!({})), "Deleting", json!(null), true),
    ] {
        let plan = plan(&object);
        let status = plan.status.unwrap();
        assert_eq!(status["phase"], phase, "{object}");
        assert_eq!(
            status.get("initializers").cloned().unwrap_or_default(),
            initializers,
            "{object}"
        );
        assert_eq!(plan.delete_content, content, "{object}");
        assert_eq!(plan.labels.unwrap()["tenancy.kcp.io/phase"], phase, "{object}");
    }
}

#[test]
fn the_systems_own_work_counts() {
    let spec = json!({"initializers": ["root:universal", "system:apibindings", "a:b"]});
    let fresh = json!({"spec": spec});
    let waiting = Waiting {
        reason: "WaitingOnAPIBindings",
        severity: Severity::Info,
        message: "w".to_owned(),
    };
    let done = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    for (finished, apis, phase, left) in [
        (
            done(&["root:universal"]),
            Some(Err(waiting.clone())),
            "Initializing",
            json!(["system:apibindings", "a:b"]),
        ),
        (
            done(&["root:universal", "system:apibindings"]),
            Some(Ok(())),
            "Initializing",
            json!(["a:b"]),
        ),
        (
            done(&["root:universal", "system:apibindings", "a:b"]),
            None,
            "Ready",
            json!(null),
        ),
    ] {
        let progress = Progress {
            finished,
            apis: apis.clone(),
            content: None,
        };
        let plan = decide(&LogicalCluster::read(&fresh), &progress, "u", "t");
        let status = plan.status.unwrap();
        assert_eq!(status["phase"], phase);
        assert_eq!(status.get("initializers").cloned().unwrap_or_default(), left);
        let told = status["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["type"] == "APIBindingsInitialized")
            .map(|it| it["status"].clone());
        assert_eq!(
            told,
            apis.map(|it| json!(if it.is_ok() { "True" } else { "False" }))
        );
    }
    let going = json!({"metadata": {"deletionTimestamp": "t"}, "status": {"phase": "Ready"}});
    let progress = Progress {
        content: Some(waiting),
        ..Progress::default()
    };
    let status = decide(&LogicalCluster::read(&going), &progress, "u", "t")
        .status
        .unwrap();
    assert_eq!(status["conditions"][0]["type"], "WorkspaceContentDeleted");
    assert_eq!(status["conditions"][0]["message"], "w");
}

#[test]
fn a_settled_cluster_is_left_alone() {
    let settled = json!({
        "metadata": {
            "labels": {"tenancy.kcp.io/phase": "Ready"},
            "finalizers": ["core.kcp.io/logicalcluster-deletion"],
        },
        "status": {"phase": "Ready", "URL": "u"},
    });
    let nothing = Plan {
        labels: None,
        finalizers: None,
        status: None,
        delete_content: false,
    };
    assert_eq!(plan(&settled), nothing);
}

#[test]
fn labels_and_finalizers_follow() {
    let object = json!({
        "metadata": {"labels": {"mine": "1", "initializer.internal.kcp.io/gone": "x"}, "finalizers": ["mine"]},
        "spec": {"initializers": ["root:universal"], "terminators": ["root:x"]},
    });
    let plan = plan(&object);
    let labels = plan.labels.unwrap();
    let (key, value) = lifecycle_label(label::INITIALIZER_PREFIX, "root:universal");
    assert_eq!(key.len(), 63);
    assert_eq!(value.len(), 56);
    assert_eq!(labels[&key], value);
    assert_eq!(labels["mine"], "1");
    assert!(!labels.contains_key("initializer.internal.kcp.io/gone"));
    assert_eq!(
        plan.finalizers.unwrap(),
        [
            "core.kcp.io/logicalcluster-deletion",
            "mine",
            "kcp.io/has-terminators"
        ]
    );
    // Nobody can add a finalizer to what is being deleted.
    let deleting = json!({"metadata": {"deletionTimestamp": "t", "finalizers": ["mine"]}});
    assert_eq!(
        decide(&LogicalCluster::read(&deleting), &Progress::default(), "u", "t").finalizers,
        None
    );
}

#[test]
fn required_groups() {
    let groups = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    for (required, held, let_in) in [
        (None, &[][..], true),
        (Some("a"), &[], false),
        (Some("a"), &["a"], true),
        (Some("a,b"), &["a"], false),
        (Some("a,b"), &["b", "a"], true),
        (Some("a,b;c"), &["c"], true),
        (Some("a"), &["system:kcp:admin"], true),
        (Some(""), &["a"], false),
    ] {
        let mut object = json!({"metadata": {"annotations": {}}});
        if let Some(required) = required {
            object["metadata"]["annotations"][annotation::REQUIRED_GROUPS] = json!(required);
        }
        let cluster = LogicalCluster::read(&object);
        assert_eq!(
            cluster.required_groups_met(&groups(held)),
            let_in,
            "{required:?} {held:?}"
        );
    }
}

#[test]
fn changes_by_users() {
    let of = |spec: Value, status: Value| json!({"spec": spec, "status": status});
    let filling = |left: &[&str]| {
        of(
            json!({"initializers": ["a", "b"]}),
            json!({"phase": "Initializing", "initializers": left}),
        )
    };
    for (old, new, expected) in [
        (filling(&["a", "b"]), filling(&["b"]), None),
        (
            filling(&["b"]),
            filling(&["a", "b"]),
            Some("status.initializers must not grow"),
        ),
        (
            filling(&["a"]),
            of(
                json!({"initializers": ["a", "b"]}),
                json!({"phase": "Ready", "initializers": ["a"]}),
            ),
            Some("status.initializers is not empty"),
        ),
        (
            filling(&[]),
            of(json!({"initializers": ["a", "b"]}), json!({"phase": "Ready"})),
            None,
        ),
        (
            of(json!({}), json!({"phase": "Ready"})),
            of(json!({}), json!({"phase": "Initializing"})),
            Some("cannot transition from \"Ready\" to \"Initializing\""),
        ),
        (
            of(json!({}), json!({"phase": "Ready"})),
            of(json!({}), json!({"phase": "Ready", "initializers": ["a"]})),
            Some("status.initializers is immutable after initialization"),
        ),
        (
            of(json!({"initializers": ["a"]}), json!({})),
            of(json!({"initializers": []}), json!({})),
            Some("spec.initializers is immutable"),
        ),
        (
            of(json!({"initializers": ["a"]}), json!({})),
            of(json!({"initializers": ["a"]}), json!({"phase": "Initializing"})),
            Some("status.initializers do not equal spec.initializers"),
        ),
        (
            of(json!({"createdBy": {"username": "ann"}}), json!({})),
            of(json!({"createdBy": {"username": "bob"}}), json!({})),
            Some("spec.createdBy: Invalid value: field is immutable"),
        ),
        (
            json!({"status": {"phase": "Initializing"}}),
            json!({"metadata": {"annotations": {"core.kcp.io/inactive": "true"}}, "status": {"phase": "Initializing"}}),
            Some(
                "LogicalCluster can only be marked inactive in phase \"Ready\", but is in phase \"Initializing\"",
            ),
        ),
    ] {
        assert_eq!(
            objection_to_update(&new, &old).as_deref(),
            expected,
            "{old} → {new}"
        );
    }
}
