//! A Workspace from its creation to its end, and what goes wrong on the way.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::types::WorkspaceType;

const UID: &str = "7d1a0b52-3c7e-4a7e-9d2f-1a2b3c4d5e6f";
const BASE: &str = "https://127.0.0.1:6443/";

fn id() -> ClusterId {
    ClusterId::for_workspace(UID, 0)
}

fn types(spec: Value) -> Result<Resolved, TypeError> {
    let object =
        json!({"metadata": {"name": "universal", "annotations": {"kcp.io/cluster": "root"}}, "spec": spec});
    let own = Arc::new(WorkspaceType::read(&object).unwrap());
    Resolved::of(&own, &|_, _| None)
}

fn workspace(over: Value) -> Value {
    let mut object = json!({
        "metadata": {
            "name": "acme",
            "uid": UID,
            "finalizers": ["core.kcp.io/logicalcluster"],
            "labels": {"tenancy.kcp.io/phase": "Scheduling"},
            "annotations": {"experimental.tenancy.kcp.io/owner": "{\"username\":\"ann\",\"groups\":[\"a\"]}"},
        },
        "spec": {"type": {"name": "universal", "path": "root"}},
        "status": {"phase": "Scheduling"},
    });
    merge(&mut object, &over);
    object
}

fn merge(into: &mut Value, over: &Value) {
    match (into, over) {
        (Value::Object(into), Value::Object(over)) => {
            for (key, value) in over {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, over) => into.clone_from(over),
    }
}

fn cluster(over: Value) -> Value {
    let mut object = json!({
        "metadata": {"name": "cluster"},
        "spec": {"owner": {"uid": UID}},
        "status": {"phase": "Ready"},
    });
    merge(&mut object, &over);
    object
}

fn run(workspace: &Value, cluster: Option<&Value>, resolved: &Result<Resolved, TypeError>) -> Vec<Action> {
    let cluster = cluster.map(LogicalCluster::read);
    decide(&Observed {
        workspace: &Workspace::read(workspace),
        cluster: cluster.as_ref(),
        parent: &ClusterId::root(),
        parent_path: &WorkspacePath::root(),
        resolved,
        base_url: BASE,
        now: "2026-01-01T00:00:00Z",
    })
}

/// Carries actions out on the Workspace, as the controller would.
fn apply(workspace: &mut Value, actions: &[Action]) {
    for action in actions {
        match action {
            Action::WriteMeta {
                labels,
                annotations,
                finalizers,
            } => {
                let meta = &mut workspace["metadata"];
                if let Some(labels) = labels {
                    meta["labels"] = json!(labels);
                }
                if let Some(annotations) = annotations {
                    meta["annotations"] = json!(annotations);
                }
                if let Some(finalizers) = finalizers {
                    meta["finalizers"] = json!(finalizers);
                }
            }
            Action::WriteSpec { cluster, url } => {
                workspace["spec"]["cluster"] = json!(cluster.as_str());
                workspace["spec"]["URL"] = json!(url);
            }
            Action::WriteStatus(status) => workspace["status"] = status.clone(),
            Action::CreateCluster { .. } | Action::DeleteCluster(_) => {}
        }
    }
}

fn condition<'a>(workspace: &'a Value, kind: &str) -> Option<&'a Value> {
    let list = workspace["status"]["conditions"].as_array()?;
    list.iter().find(|it| it["type"] == kind)
}

#[test]
fn from_creation_to_ready() {
    let resolved = types(json!({"initializer": true}));
    let mut ws = workspace(json!({}));
    let actions = run(&ws, None, &resolved);
    let Some(Action::CreateCluster { id: made, object }) = actions
        .iter()
        .find(|it| matches!(it, Action::CreateCluster { .. }))
    else {
        panic!("{actions:?}")
    };
    assert_eq!(*made, id());
    assert_eq!(object["spec"]["initializers"], json!(["root:universal"]));
    assert_eq!(object["spec"]["owner"]["name"], "acme");
    assert_eq!(object["spec"]["createdBy"]["groups"], json!(["a"]));
    assert_eq!(object["metadata"]["annotations"]["kcp.io/path"], "root:acme");
    assert_eq!(
        object["metadata"]["annotations"]["internal.tenancy.kcp.io/type"],
        "root:universal"
    );
    apply(&mut ws, &actions);
    assert_eq!(ws["spec"]["URL"], "https://127.0.0.1:6443/clusters/root:acme");
    assert_eq!(ws["spec"]["cluster"], id().as_str());
    assert_eq!(ws["status"]["phase"], "Initializing");

    // The LogicalCluster is being filled.
    let filling = cluster(json!({"status": {"phase": "Initializing", "initializers": ["root:universal"]}}));
    let actions = run(&ws, Some(&filling), &resolved);
    apply(&mut ws, &actions);
    assert_eq!(ws["status"]["initializers"], json!(["root:universal"]));
    assert_eq!(
        condition(&ws, "WorkspaceInitialized").unwrap()["message"],
        "Initializers still exist: [root:universal]"
    );
    assert_eq!(
        run(&ws, Some(&filling), &resolved),
        [],
        "nothing new, nothing to do"
    );

    // And is ready.
    let actions = run(&ws, Some(&cluster(json!({}))), &resolved);
    apply(&mut ws, &actions);
    assert_eq!(ws["status"]["phase"], "Ready");
    assert_eq!(ws["metadata"]["labels"]["tenancy.kcp.io/phase"], "Ready");
    assert_eq!(
        ws["metadata"]["annotations"]["experimental.tenancy.kcp.io/owner"],
        "{\"username\":\"ann\"}"
    );
    assert!(ws["status"].get("initializers").is_none());
    assert_eq!(
        run(&ws, Some(&cluster(json!({}))), &resolved),
        [],
        "nothing new, nothing to do"
    );
}

#[test]
fn the_finalizer_comes_before_the_cluster() {
    let bare = workspace(json!({"metadata": {"finalizers": []}}));
    let actions = run(&bare, None, &types(json!({})));
    let position = |wanted: fn(&Action) -> bool| actions.iter().position(wanted).unwrap();
    let written =
        position(|it| matches!(it, Action::WriteMeta { finalizers: Some(list), .. } if !list.is_empty()));
    assert!(written < position(|it| matches!(it, Action::CreateCluster { .. })));
}

#[test]
fn ids_that_are_taken() {
    let foreign = cluster(json!({"spec": {"owner": {"uid": "another"}}}));
    let resolved = types(json!({}));
    let mut ws = workspace(json!({}));
    for attempt in 1..3 {
        let actions = run(&ws, Some(&foreign), &resolved);
        let expected = ClusterId::for_workspace(UID, attempt);
        assert!(
            actions
                .iter()
                .any(|it| matches!(it, Action::CreateCluster { id, .. } if *id == expected)),
            "{actions:?}"
        );
        // The server refuses: that id is taken, too. Only what was written before counts.
        apply(&mut ws, &actions[..1]);
        assert_eq!(Workspace::read(&ws).id(), expected);
    }
    // An id that a user wished for is not given.
    for wish in ["root", "system:fairway", "0000000000000000"] {
        let ws = workspace(json!({"metadata": {"annotations": {"internal.tenancy.kcp.io/cluster": wish}}}));
        assert_eq!(Workspace::read(&ws).id(), id());
    }
}

#[test]
fn faults() {
    let scheduled =
        json!({"spec": {"cluster": id().as_str(), "URL": "https://127.0.0.1:6443/clusters/root:acme"}});
    let ready = |phase: &str| {
        let mut ws = workspace(scheduled.clone());
        merge(&mut ws, &json!({"status": {"phase": phase}}));
        ws
    };
    let long = workspace(json!({"metadata": {"name": "x".repeat(64)}}));
    let unknown = Err(TypeError::Unresolved("root:gone".to_owned()));
    for (ws, seen, resolved, phase, kind, reason) in [
        (
            ready("Ready"),
            None,
            types(json!({})),
            "Unavailable",
            "WorkspaceInitialized",
            "WorkspaceDisappeared",
        ),
        (
            ready("Initializing"),
            None,
            types(json!({})),
            "Initializing",
            "WorkspaceInitialized",
            "WorkspaceDisappeared",
        ),
        (
            workspace(json!({})),
            None,
            unknown,
            "Scheduling",
            "WorkspaceScheduled",
            "Unschedulable",
        ),
        (
            long,
            None,
            types(json!({})),
            "Scheduling",
            "WorkspaceScheduled",
            "Unschedulable",
        ),
        (
            ready("Initializing"),
            Some(cluster(json!({"status": {"phase": "Scheduling"}}))),
            types(json!({})),
            "Initializing",
            "WorkspaceInitialized",
            "InitializerExists",
        ),
        // Somebody else's LogicalCluster under our id is as good as none.
        (
            ready("Ready"),
            Some(cluster(json!({"spec": {"owner": {"uid": "another"}}}))),
            types(json!({})),
            "Unavailable",
            "WorkspaceInitialized",
            "WorkspaceDisappeared",
        ),
    ] {
        let mut after = ws.clone();
        let actions = run(&ws, seen.as_ref(), &resolved);
        assert!(
            !actions
                .iter()
                .any(|it| matches!(it, Action::CreateCluster { .. })),
            "{actions:?}"
        );
        apply(&mut after, &actions);
        assert_eq!(after["status"]["phase"], phase, "{ws}");
        assert_eq!(condition(&after, kind).unwrap()["reason"], reason, "{ws}");
    }
    // What disappeared and came back is available again.
    let mut ws = ready("Ready");
    let lost = run(&ws, None, &types(json!({})));
    apply(&mut ws, &lost);
    let found = run(&ws, Some(&cluster(json!({}))), &types(json!({})));
    apply(&mut ws, &found);
    assert_eq!(ws["status"]["phase"], "Ready");
}

#[test]
fn deletion() {
    let deleting = |over: Value| {
        let mut ws = workspace(json!({
            "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"cluster": id().as_str(), "URL": "u"},
            "status": {"phase": "Ready"},
        }));
        merge(&mut ws, &over);
        ws
    };
    let names = |actions: &[Action]| {
        actions
            .iter()
            .map(|it| match it {
                Action::WriteMeta {
                    finalizers: Some(list),
                    ..
                } if list.is_empty() => "release",
                Action::WriteMeta { .. } => "meta",
                Action::CreateCluster { .. } => "create",
                Action::WriteSpec { .. } => "spec",
                Action::WriteStatus(_) => "status",
                Action::DeleteCluster(_) => "delete",
            })
            .collect::<Vec<_>>()
            .join(" ")
    };
    let gone = cluster(json!({"metadata": {"deletionTimestamp": "t"}, "status": {"phase": "Deleting"}}));
    let terminating = cluster(
        json!({"metadata": {"deletionTimestamp": "t"}, "status": {"phase": "Terminating", "terminators": ["root:x"]}}),
    );
    let others = json!({"metadata": {"finalizers": ["core.kcp.io/logicalcluster", "example.com/mine"]}});
    let foreign = cluster(json!({"spec": {"owner": {"uid": "another"}}}));
    for (what, ws, seen, expected, phase) in [
        (
            "begins",
            deleting(json!({})),
            Some(cluster(json!({}))),
            "delete meta status",
            "Deleting",
        ),
        (
            "waits for terminators",
            deleting(json!({})),
            Some(terminating),
            "meta status",
            "Terminating",
        ),
        (
            "waits for content",
            deleting(json!({})),
            Some(gone),
            "meta status",
            "Deleting",
        ),
        ("ends", deleting(json!({})), None, "meta status release", "Ready"),
        (
            "lets others go first",
            deleting(others.clone()),
            Some(cluster(json!({}))),
            "meta",
            "Ready",
        ),
        (
            "lets others go first, cluster gone",
            deleting(others),
            None,
            "meta status",
            "Ready",
        ),
        (
            "never touches another's",
            deleting(json!({})),
            Some(foreign),
            "meta status release",
            "Ready",
        ),
        (
            "never scheduled",
            workspace(json!({"metadata": {"deletionTimestamp": "t"}})),
            None,
            "release",
            "Scheduling",
        ),
        (
            "in the middle of initialization",
            deleting(json!({"status": {"phase": "Initializing"}})),
            Some(cluster(
                json!({"status": {"phase": "Initializing", "initializers": ["a:b"]}}),
            )),
            "delete meta status",
            "Deleting",
        ),
        (
            "between creation and the note of it",
            workspace(json!({"metadata": {"deletionTimestamp": "t"}})),
            Some(cluster(json!({}))),
            "delete meta status",
            "Deleting",
        ),
    ] {
        let actions = run(&ws, seen.as_ref(), &types(json!({})));
        assert_eq!(names(&actions), expected, "{what}");
        let mut after = ws.clone();
        apply(&mut after, &actions);
        assert_eq!(after["status"]["phase"], phase, "{what}");
    }
}

#[test]
fn mounts_say_that_they_are_not_made() {
    let mut ws =
        workspace(json!({"spec": {"mount": {"ref": {"apiVersion": "v1", "kind": "A", "name": "b"}}}}));
    let actions = run(&ws, None, &types(json!({})));
    apply(&mut ws, &actions);
    assert_eq!(ws["status"]["phase"], "Unavailable");
    let told = condition(&ws, "WorkspaceMountReady").unwrap();
    assert_eq!(told["reason"], "MountsNotSupported");
    assert_eq!(run(&ws, None, &types(json!({}))), [], "once");
    ws["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(run(&ws, None, &types(json!({}))), []);
}

#[test]
fn creation_by_users() {
    let parent = LogicalCluster::read(
        &json!({"metadata": {"annotations": {"authorization.kcp.io/required-groups": "a,b"}}}),
    );
    let open = LogicalCluster::read(&json!({}));
    let ann = json!({"username": "ann"});
    let mut object = json!({"metadata": {"name": "x", "annotations": {
        "experimental.tenancy.kcp.io/owner": "{\"username\":\"somebody else\"}",
        "internal.tenancy.kcp.io/cluster": "root",
    }}});
    prepare_create(&mut object, Some(&ann), &parent);
    assert_eq!(
        object["metadata"]["annotations"],
        json!({
            "experimental.tenancy.kcp.io/owner": "{\"username\":\"ann\"}",
            "authorization.kcp.io/required-groups": "a,b",
        })
    );
    assert_eq!(
        object["metadata"]["finalizers"],
        json!(["core.kcp.io/logicalcluster"])
    );
    let mut object =
        json!({"metadata": {"name": "x", "annotations": {"authorization.kcp.io/required-groups": "mine"}}});
    prepare_create(&mut object, Some(&ann), &open);
    assert!(
        object["metadata"]["annotations"]
            .get("authorization.kcp.io/required-groups")
            .is_none()
    );
    let mut object = json!({"metadata": {"name": "x"}, "spec": {"mount": {}}});
    prepare_create(&mut object, None, &open);
    assert_eq!(object, json!({"metadata": {"name": "x"}, "spec": {"mount": {}}}));
}

#[test]
fn changes_by_users() {
    let ws = |spec: Value| json!({"spec": spec});
    for (new, old, privileged, expected) in [
        (ws(json!({})), None, false, None),
        (
            ws(json!({"cluster": "root"})),
            None,
            false,
            Some("spec.Cluster can only be set by system privileged users"),
        ),
        (ws(json!({"cluster": "root"})), None, true, None),
        (
            ws(json!({"URL": "u"})),
            None,
            false,
            Some("spec.URL can only be set by system privileged users"),
        ),
        (
            ws(json!({"mount": {}, "type": {"name": "a"}})),
            None,
            false,
            Some("spec.type cannot be set for mounted workspaces"),
        ),
        (
            ws(json!({"type": {"name": "b"}})),
            Some(ws(json!({"type": {"name": "a"}}))),
            true,
            Some("spec.type is immutable"),
        ),
        (
            ws(json!({"cluster": "b"})),
            Some(ws(json!({"cluster": "a"}))),
            false,
            Some("spec.cluster can only be changed by system privileged users"),
        ),
        (
            ws(json!({"URL": "b"})),
            Some(ws(json!({}))),
            false,
            Some("spec.URL can only be changed by system privileged users"),
        ),
        (
            ws(json!({"URL": "b", "cluster": "c"})),
            Some(ws(json!({}))),
            true,
            None,
        ),
    ] {
        assert_eq!(objection_to(&new, old.as_ref(), privileged), expected, "{new}");
    }
}
