//! Who may work where, and what it may change.

use super::*;

fn worker(stage: Stage) -> Worker {
    Worker {
        stage,
        cluster: ClusterId::root(),
        type_name: "slow".to_owned(),
    }
}

fn cluster(phase: &str, deleted: bool, initializers: &[&str], terminators: &[&str]) -> Value {
    let mut object = json!({
        "metadata": {"name": "cluster", "resourceVersion": "1", "annotations": {"kcp.io/cluster": "abc"}},
        "spec": {"initializers": initializers},
        "status": {"phase": phase, "initializers": initializers, "terminators": terminators},
    });
    if deleted {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    object
}

#[test]
fn workspaces_that_wait() {
    let mine = ["root:slow"];
    let other = ["root:other"];
    for (object, initializer, terminator) in [
        (cluster("Initializing", false, &mine, &mine), true, false),
        (
            cluster("Initializing", false, &["root:other", "root:slow"], &[]),
            true,
            false,
        ),
        (cluster("Initializing", false, &other, &[]), false, false),
        (cluster("Scheduling", false, &mine, &[]), false, false),
        (cluster("Ready", false, &mine, &mine), false, false),
        (cluster("Initializing", true, &mine, &mine), false, true),
        (cluster("Terminating", true, &[], &mine), false, true),
        (cluster("Terminating", true, &[], &other), false, false),
        (cluster("Deleting", true, &[], &[]), false, false),
    ] {
        let read = LogicalCluster::read(&object);
        assert_eq!(
            worker(Stage::Initializing).is_awaited_by(&read),
            initializer,
            "{object}"
        );
        assert_eq!(
            worker(Stage::Terminating).is_awaited_by(&read),
            terminator,
            "{object}"
        );
    }
}

#[test]
fn labels_say_when_it_is_time() {
    let (first, last) = (worker(Stage::Initializing), worker(Stage::Terminating));
    assert_ne!(first.label(), last.label());
    let phase = |worker: &Worker| worker.labels()[1].clone();
    assert_eq!(
        phase(&first),
        ("tenancy.kcp.io/phase".to_owned(), "Initializing".to_owned())
    );
    assert_eq!(
        phase(&last),
        ("tenancy.kcp.io/phase".to_owned(), "Terminating".to_owned())
    );
}

#[test]
fn a_worker_takes_its_name_off_and_nothing_else() {
    let old = cluster(
        "Initializing",
        false,
        &["root:other", "root:slow"],
        &["root:slow"],
    );
    let edited = |pointer: &str, value: Value| {
        let mut new = old.clone();
        *new.pointer_mut(pointer).unwrap() = value;
        new
    };
    for (new, allowed) in [
        (old.clone(), true),
        (edited("/status/initializers", json!(["root:other"])), true),
        (edited("/metadata/resourceVersion", json!("2")), true),
        (edited("/status/initializers", json!(["root:slow"])), false),
        (edited("/status/initializers", json!([])), false),
        (
            edited(
                "/status/initializers",
                json!(["root:other", "root:slow", "root:x"]),
            ),
            false,
        ),
        (edited("/status/terminators", json!([])), false),
        (edited("/status/phase", json!("Ready")), false),
        (edited("/spec/initializers", json!([])), false),
        (edited("/metadata/annotations", json!({})), false),
    ] {
        let objection = worker(Stage::Initializing).objection_to_update(&new, &old);
        assert_eq!(objection.is_none(), allowed, "{new}: {objection:?}");
    }
    let old = cluster("Terminating", true, &[], &["root:slow"]);
    let mut new = old.clone();
    new["status"].as_object_mut().unwrap().shift_remove("terminators");
    assert_eq!(worker(Stage::Terminating).objection_to_update(&new, &old), None);
    let objection = worker(Stage::Initializing).objection_to_update(&new, &old);
    assert!(objection.unwrap().contains("\"root:slow\" initializer"));
}

#[test]
fn a_type_says_where_its_workers_go() {
    let of = |spec: Value| {
        json!({
            "metadata": {"name": "slow", "annotations": {"kcp.io/cluster": "root", "kcp.io/path": "root"}},
            "spec": spec,
        })
    };
    let door = |service: &str| json!({"url": format!("https://h/services/{service}/root:slow")});
    for (spec, want) in [
        (json!({}), Value::Null),
        (
            json!({"initializer": true}),
            json!([door("initializingworkspaces")]),
        ),
        (
            json!({"terminator": true}),
            json!([door("terminatingworkspaces")]),
        ),
        (
            json!({"initializer": true, "terminator": true}),
            json!([door("initializingworkspaces"), door("terminatingworkspaces")]),
        ),
    ] {
        let mut object = of(spec.clone());
        let status = type_status(&object, "https://h", "2026-01-01T00:00:00Z").unwrap();
        assert_eq!(status["virtualWorkspaces"], want, "{spec}");
        object["status"] = status;
        assert_eq!(
            type_status(&object, "https://h", "2026-01-02T00:00:00Z"),
            None,
            "{spec}"
        );
        // Another address, or no work any more.
        let moved = type_status(&object, "https://i", "2026-01-02T00:00:00Z");
        assert_eq!(moved.is_some(), want.is_array(), "{spec}");
        object["spec"] = json!({});
        let left = type_status(&object, "https://h", "2026-01-02T00:00:00Z");
        assert!(left.is_none_or(|status| status["virtualWorkspaces"].is_null()));
    }
}
