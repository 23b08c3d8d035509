//! Policies, owners, and what stays on Applications.

use serde_json::json;

use super::*;

const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";

fn set(more: Value) -> Value {
    json!({"metadata": {"name": "s", "namespace": "argocd", "uid": "u1"}, "spec": more})
}

fn application(name: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "finalizers": [FINALIZER]},
        "spec": {"project": "default", "source": {"repoURL": "r", "path": format!("apps/{name}")}},
    })
}

fn live(name: &str) -> Value {
    owned(&set(json!({})), &application(name))
}

fn none() -> &'static BTreeSet<String> {
    static NONE: BTreeSet<String> = BTreeSet::new();
    &NONE
}

fn meant(applications: &[Value]) -> Desired<'_> {
    Desired {
        applications,
        unsure: none(),
        may_be_empty: false,
    }
}

fn shown(changes: &Changes) -> Vec<String> {
    let show = |change: &Change| match change {
        Change::Create(application) => format!("create {}", name(application)),
        Change::Update(application) => format!("update {}", name(application)),
        Change::Delete(name) => format!("delete {name}"),
    };
    changes.changes.iter().map(show).collect()
}

#[test]
fn policies_say_what_may_change() {
    let desired = [application("a"), application("b")];
    let mut changed = live("a");
    changed["spec"]["source"]["path"] = json!("elsewhere");
    let existing = [changed, live("extra")];
    let kinds = |policy: &str| {
        let set = set(json!({"syncPolicy": {"applicationsSync": policy}}));
        shown(&changes(&set, meant(&desired), &existing).unwrap())
    };
    assert_eq!(kinds("sync"), ["update a", "create b", "delete extra"]);
    assert_eq!(kinds("create-only"), ["create b"]);
    assert_eq!(kinds("create-update"), ["update a", "create b"]);
    assert_eq!(kinds("create-delete"), ["create b", "delete extra"]);
    let wrong = set(json!({"syncPolicy": {"applicationsSync": "never"}}));
    assert!(changes(&wrong, meant(&desired), &existing).is_err());
}

#[test]
fn what_is_as_it_should_be_is_left_alone() {
    let mut same = live("a");
    same["status"] = json!({"health": {"status": "Healthy"}});
    same["spec"]["syncPolicy"] = json!({});
    let found = changes(&set(json!({})), meant(&[application("a")]), &[same]).unwrap();
    assert_eq!(found, Changes::default());
}

#[test]
fn what_nobody_is_sure_of_is_neither_written_nor_deleted() {
    let unsure = ["b".to_owned()].into();
    let desired = Desired {
        applications: &[application("a")],
        unsure: &unsure,
        may_be_empty: false,
    };
    let found = changes(&set(json!({})), desired, &[live("b"), live("c")]).unwrap();
    assert_eq!(shown(&found), ["create a", "delete c"]);
}

#[test]
fn what_is_being_deleted_is_waited_for() {
    let going = |name: &str| {
        let mut going = live(name);
        going["metadata"]["deletionTimestamp"] = json!("2026-11-16T10:00:00Z");
        going["spec"]["project"] = json!("other");
        going
    };
    let found = changes(
        &set(json!({})),
        meant(&[application("a")]),
        &[going("a"), going("b")],
    )
    .unwrap();
    assert_eq!(found, Changes::default());
}

#[test]
fn generators_that_suddenly_yield_nothing_delete_nothing() {
    let existing = [live("a"), live("b")];
    let held = changes(&set(json!({})), meant(&[]), &existing).unwrap();
    assert_eq!(
        (held.changes.len(), held.held),
        (0, vec!["a".to_owned(), "b".to_owned()])
    );
    let desired = Desired {
        may_be_empty: true,
        ..meant(&[])
    };
    let found = changes(&set(json!({})), desired, &existing).unwrap();
    assert_eq!(shown(&found), ["delete a", "delete b"]);
    for (generators, expected) in [
        (json!([{"list": {"elements": []}}]), true),
        (json!([{"list": {}}, {"git": {}}]), false),
        (json!([{"clusters": {}}]), false),
        (
            json!([{"matrix": {"generators": [{"list": {}}, {"git": {}}]}}]),
            false,
        ),
        (
            json!([{"matrix": {"generators": [{"clusters": {}}, {"pullRequest": {}}]}}]),
            true,
        ),
    ] {
        let spec = json!({"generators": generators});
        assert_eq!(may_be_empty(&spec), expected, "{spec}");
    }
}

#[test]
fn sets_control_what_is_theirs_or_nobodys() {
    let set = set(json!({}));
    let owners = |live: &Value| adopted(&set, &application("a"), live).unwrap();
    let ours = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "s", "uid": "u1",
        "controller": true, "blockOwnerDeletion": true});
    let mut nobodys = application("a");
    nobodys["metadata"]["ownerReferences"] = json!([{"kind": "Other", "name": "o", "uid": "u2"}]);
    let found = owners(&nobodys).unwrap();
    assert_eq!(found["metadata"]["ownerReferences"][1], ours);
    nobodys["metadata"]["ownerReferences"][0]["controller"] = json!(true);
    assert_eq!(
        owners(&nobodys).unwrap_err(),
        "Object argocd/a is already owned by another Other controller o"
    );
    let made = changes(&set, meant(&[application("a")]), &[]).unwrap();
    let [Change::Create(made)] = made.changes.as_slice() else {
        panic!("{made:?}");
    };
    assert_eq!(made["metadata"]["ownerReferences"], json!([ours]));
}

#[test]
fn what_others_write_on_applications_stays() {
    let set = set(json!({
        "preservedFields": {"annotations": ["mine"], "labels": ["team"]},
        "ignoreApplicationDifferences": [{"jsonPointers": ["/spec/source/targetRevision"]}],
    }));
    let mut live = live("a");
    live["metadata"]["annotations"] =
        json!({"mine": "1", "other": "2", "argocd.argoproj.io/refresh": "hard"});
    live["metadata"]["labels"] = json!({"team": "red"});
    live["metadata"]["finalizers"] = json!([FINALIZER, "post-delete-finalizer.argocd.argoproj.io/cleanup"]);
    live["metadata"]["uid"] = json!("u");
    live["spec"]["source"]["targetRevision"] = json!("v2");
    live["status"] = json!({"health": {}});
    let changes = changes(&set, meant(&[application("a")]), &[live.clone()]).unwrap();
    let [Change::Update(updated)] = changes.changes.as_slice() else {
        panic!("{changes:?}");
    };
    let mut expected = live;
    expected["metadata"]["annotations"]
        .as_object_mut()
        .unwrap()
        .shift_remove("other");
    assert_eq!(
        *updated, expected,
        "only the annotation that nobody preserves goes"
    );
}
