//! An original and its copy through their lives.

use super::*;
use crate::cluster::{ClusterId, WorkspacePath};
use crate::naming::{NAME_ANNOTATION, NAME_HASH_LABEL, NAMESPACE_ANNOTATION};

#[test]
fn steps() {
    let object = |deleting: bool, held: bool| {
        let mut object = json!({"metadata": {"name": "a"}});
        if deleting {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        if held {
            object["metadata"]["finalizers"] = json!([FINALIZER]);
        }
        object
    };
    let (lives, dies) = (object(false, false), object(true, false));
    for (deleting, held, copy, expected) in [
        (false, false, None, Step::Accept),
        (false, false, Some(&lives), Step::Accept),
        (false, true, None, Step::Place),
        (false, true, Some(&lives), Step::Place),
        (false, true, Some(&dies), Step::Await),
        (true, true, Some(&lives), Step::Remove),
        (true, true, Some(&dies), Step::Await),
        (true, true, None, Step::Release),
        (true, false, None, Step::Ignore),
        (true, false, Some(&lives), Step::Ignore),
    ] {
        assert_eq!(
            next(&object(deleting, held), copy),
            expected,
            "{deleting} {held} {copy:?}"
        );
    }
}

fn local() -> Served {
    Served {
        group: "inner.io".to_owned(),
        version: "v1".to_owned(),
        kind: "Inner".to_owned(),
        plural: "inners".to_owned(),
        namespaced: true,
        has_status: true,
    }
}

fn with<T>(object: &Value, then: impl FnOnce(&Original<'_>) -> T) -> T {
    let cluster = ClusterId::parse("c1").unwrap();
    let path = WorkspacePath::parse("root:acme").unwrap();
    then(&Original {
        cluster: &cluster,
        path: &path,
        object,
    })
}

fn copying<T>(spec: &Value, then: impl FnOnce(&Copying<'_>) -> T) -> T {
    let published = PublishedResource::read(&json!({"metadata": {"name": "p"}, "spec": spec}));
    let mutator = Mutator::compile(&published.mutation).unwrap();
    let local = local();
    then(&Copying {
        published: &published,
        mutator: &mutator,
        local: &local,
        agent: "agent",
    })
}

/// A consumer may write anything into his object; none of it decides where the copy goes and whose it is.
#[test]
fn a_hostile_original_changes_no_mark_of_its_copy() {
    let original = json!({
        "apiVersion": "outer.io/v1", "kind": "Outer",
        "metadata": {
            "name": "a", "namespace": "n", "uid": "1", "resourceVersion": "5", "generation": 3,
            "finalizers": [FINALIZER, "x"], "ownerReferences": [{"name": "o"}], "managedFields": [{}],
            "labels": {"app": "a", CLUSTER_LABEL: "victim", AGENT_LABEL: "other", NAME_HASH_LABEL: "0"},
            "annotations": {"note": "b", NAME_ANNOTATION: "victim", NAMESPACE_ANNOTATION: "victim", "kcp.io/cluster": "victim"},
        },
        "spec": {"size": 1}, "status": {"phase": "Mine"},
    });
    let rules = json!({"mutation": {"spec": [
        {"template": {"path": "metadata.namespace", "template": "kube-system"}},
        {"regex": {"path": "metadata.labels.syncagent\\.kcp\\.io/remote-object-cluster", "replacement": "victim"}},
    ]}});
    let copy = with(&original, |it| {
        copying(&rules, |rules| rules.desired(it, ("ws", "a-copy"), None).unwrap())
    });
    let name_hash = with(&original, |it| it.labels())[NAME_HASH_LABEL].clone();
    assert_eq!(copy["metadata"]["labels"][CLUSTER_LABEL], "c1");
    assert_eq!(copy["metadata"]["labels"][AGENT_LABEL], "agent");
    assert_eq!(copy["metadata"]["labels"][NAME_HASH_LABEL], name_hash.as_str());
    assert_eq!(copy["metadata"]["labels"]["app"], "a");
    assert_eq!(
        copy["metadata"]["annotations"],
        json!({"note": "b", NAME_ANNOTATION: "a", NAMESPACE_ANNOTATION: "n"})
    );
    assert_eq!(copy["metadata"]["namespace"], "ws");
    assert_eq!(copy["metadata"]["name"], "a-copy");
    assert_eq!(
        (&copy["apiVersion"], &copy["kind"]),
        (&json!("inner.io/v1"), &json!("Inner"))
    );
    assert_eq!(copy["spec"], json!({"size": 1}));
    for field in [
        "uid",
        "finalizers",
        "ownerReferences",
        "managedFields",
        "resourceVersion",
        "generation",
    ] {
        assert!(copy["metadata"].get(field).is_none(), "{field}");
    }
    assert!(copy.get("status").is_none());
}

#[test]
fn a_copy_is_changed_only_as_itself() {
    let original = json!({"metadata": {"name": "a"}, "spec": {"x": 1}});
    let existing = json!({"metadata": {"name": "b", "uid": "u"}});
    let copy = with(&original, |it| {
        copying(&json!({}), |rules| {
            rules.desired(it, ("ws", "b"), Some(&existing)).unwrap()
        })
    });
    assert_eq!(copy["metadata"]["uid"], "u");
}

#[test]
fn the_status_comes_up_when_it_differs() {
    let rules = json!({"mutation": {"status": [{"delete": {"path": "status.secret"}}]}});
    for (original, copy, expected) in [
        (json!({}), json!({}), None),
        (json!({"status": {}}), json!({}), None),
        (
            json!({}),
            json!({"status": {"phase": "Up", "secret": 1}}),
            Some(json!({"phase": "Up"})),
        ),
        (
            json!({"status": {"phase": "Up"}}),
            json!({"status": {"phase": "Up", "secret": 2}}),
            None,
        ),
        (json!({"status": {"phase": "Up"}}), json!({}), Some(json!({}))),
    ] {
        let status = copying(&rules, |rules| rules.status(&original, &copy).unwrap());
        assert_eq!(status, expected, "{original} {copy}");
    }
}

#[test]
fn whose_a_copy_is() {
    let original = json!({"metadata": {"name": "a", "namespace": "n"}});
    let own = with(
        &original,
        |it| json!({"metadata": {"labels": it.labels(), "annotations": it.annotations(false)}}),
    );
    let unlabelled = json!({"metadata": {"annotations": own["metadata"]["annotations"]}});
    let mut anothers = own.clone();
    anothers["metadata"]["labels"][CLUSTER_LABEL] = json!("c2");
    let other = |text: &str| Ownership::Other(text.to_owned());
    for (found, exclusive, expected) in [
        (&own, false, Ownership::Own),
        (&unlabelled, true, Ownership::Own),
        (&unlabelled, false, other("it is no copy of this agent's")),
        (&anothers, true, other("it is the copy of n/a in workspace c2")),
        (
            &json!({"metadata": {"labels": {CLUSTER_LABEL: "c1"}}}),
            true,
            other("it belongs to workspace c1"),
        ),
        (
            &json!({"metadata": {"name": "a"}}),
            true,
            other("it is no copy of this agent's"),
        ),
    ] {
        let found = with(&original, |it| ownership(found, it, exclusive));
        assert_eq!(found, expected);
    }
}
