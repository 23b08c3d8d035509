//! Kinds that Argo CD has no cases for, or that are judged otherwise here.

use serde_json::json;

use super::*;
use crate::Status;

/// Cases of our own; those of Argo CD run by `cargo xtask conformance health`.
fn check(cases: &[(&str, Value, Status, &str)]) {
    for (reason, object, status, message) in cases {
        let health = health(object).unwrap_or_default();
        assert_eq!(
            (health.status, health.message.as_str()),
            (Some(*status), *message),
            "{reason}"
        );
    }
}

fn object(version: &str, kind: &str, spec: Value, status: Value) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x", "generation": 2}, "spec": spec, "status": status})
}

#[test]
fn machines() {
    let machine = |spec, status| object("kubevirt.io/v1", "VirtualMachine", spec, status);
    let stopped = json!({"conditions": [{"type": "Ready", "status": "False"}], "printableStatus": "Stopped"});
    let running = json!({"created": true, "conditions": [{"type": "Ready", "status": "True"}]});
    check(&[
        (
            "declared stopped, before any status",
            machine(json!({"running": false}), Value::Null),
            Status::Healthy,
            "Stopped as declared",
        ),
        (
            "declared stopped",
            machine(json!({"runStrategy": "Halted"}), stopped.clone()),
            Status::Healthy,
            "Stopped as declared",
        ),
        (
            "stopped by itself",
            machine(json!({"runStrategy": "RerunOnFailure"}), stopped),
            Status::Suspended,
            "Stopped",
        ),
        (
            "still shutting down",
            machine(json!({"running": false}), running.clone()),
            Status::Healthy,
            "Running",
        ),
        (
            "running",
            machine(json!({"running": true}), running),
            Status::Healthy,
            "Running",
        ),
        (
            "no status yet",
            machine(json!({"running": true}), Value::Null),
            Status::Progressing,
            "No status available",
        ),
    ]);
}

#[test]
fn machines_that_a_change_restarts_are_on_their_way() {
    const NOT_SEEN: &str = "The last change has not been looked at yet";
    let always = json!({"runStrategy": "Always"});
    let machine = |spec: &Value, status| object("kubevirt.io/v1", "VirtualMachine", spec.clone(), status);
    // The object is of generation 2.
    let running = |acted_on: i64| {
        json!({"created": true, "desiredGeneration": acted_on, "observedGeneration": 1, "printableStatus": "Running",
            "conditions": [{"type": "Ready", "status": "True"}]})
    };
    let ready_and = |printed: &str| {
        let mut status = running(2);
        status["printableStatus"] = printed.into();
        status
    };
    let without = |printed: &str| {
        json!({"printableStatus": printed, "desiredGeneration": 1,
            "conditions": [{"type": "Ready", "status": "False"}]})
    };
    let and_also = |mut status: Value, kind: &str| {
        let conditions = status["conditions"].as_array_mut();
        conditions
            .into_iter()
            .for_each(|all| all.push(json!({"type": kind, "status": "True"})));
        status
    };
    let halted = json!({"running": false});
    let manual = json!({"runStrategy": "Manual"});
    check(&[
        (
            "not seen yet",
            machine(&always, running(1)),
            Status::Progressing,
            NOT_SEEN,
        ),
        (
            "a stop, not seen yet",
            machine(&halted, running(1)),
            Status::Progressing,
            NOT_SEEN,
        ),
        (
            "paused",
            machine(&always, and_also(running(1), "Paused")),
            Status::Suspended,
            "Paused",
        ),
        (
            "waits for a restart by hand",
            machine(&manual, running(2)),
            Status::Healthy,
            "Running",
        ),
        (
            "stops, and still answers",
            machine(&always, ready_and("Stopping")),
            Status::Progressing,
            "Stopping",
        ),
        (
            "moves",
            machine(&always, ready_and("Migrating")),
            Status::Healthy,
            "Migrating",
        ),
        (
            "comes back",
            machine(&always, without("Starting")),
            Status::Progressing,
            "Starting",
        ),
        (
            "started by hand",
            machine(&manual, without("Starting")),
            Status::Progressing,
            "Starting",
        ),
        (
            "its disk is filled",
            machine(&manual, without("Provisioning")),
            Status::Progressing,
            "Provisioning",
        ),
        (
            "to run from now on",
            machine(&always, without("Stopped")),
            Status::Progressing,
            "Stopped",
        ),
        (
            "in the older words",
            machine(&json!({"running": true}), without("WaitingForVolumeBinding")),
            Status::Progressing,
            "WaitingForVolumeBinding",
        ),
        (
            "fails again and again",
            machine(&always, without("CrashLoopBackOff")),
            Status::Suspended,
            "CrashLoopBackOff",
        ),
        (
            "its disk failed",
            machine(&always, without("DataVolumeError")),
            Status::Suspended,
            "DataVolumeError",
        ),
        (
            "refused",
            machine(&always, and_also(without("Stopped"), "Failure")),
            Status::Suspended,
            "Stopped",
        ),
        (
            "stopped by hand",
            machine(&manual, without("Stopped")),
            Status::Suspended,
            "Stopped",
        ),
    ]);
}

#[test]
fn what_belongs_to_machines() {
    let volume = |phase| {
        object(
            "cdi.kubevirt.io/v1beta1",
            "DataVolume",
            json!({}),
            json!({"phase": phase}),
        )
    };
    let migration = |status| {
        object(
            "kubevirt.io/v1",
            "VirtualMachineInstanceMigration",
            json!({}),
            status,
        )
    };
    let snapshot = |status| {
        object(
            "snapshot.kubevirt.io/v1beta1",
            "VirtualMachineSnapshot",
            json!({}),
            status,
        )
    };
    let restore = |status| {
        object(
            "snapshot.kubevirt.io/v1beta1",
            "VirtualMachineRestore",
            json!({}),
            status,
        )
    };
    check(&[
        ("imported", volume("Succeeded"), Status::Healthy, "Succeeded"),
        (
            "importing",
            volume("ImportInProgress"),
            Status::Progressing,
            "ImportInProgress",
        ),
        (
            "moving",
            migration(json!({"phase": "Running"})),
            Status::Progressing,
            "Running",
        ),
        (
            "could not move",
            migration(json!({"phase": "Failed", "migrationState": {"failureReason": "no room"}})),
            Status::Degraded,
            "no room",
        ),
        (
            "snapshot ready",
            snapshot(json!({"phase": "Succeeded", "readyToUse": true})),
            Status::Healthy,
            "Ready to use",
        ),
        (
            "snapshot failed",
            snapshot(json!({"phase": "Failed", "error": {"message": "frozen"}})),
            Status::Degraded,
            "frozen",
        ),
        (
            "restored",
            restore(json!({"complete": true})),
            Status::Healthy,
            "Complete",
        ),
        ("restoring", restore(json!({})), Status::Progressing, "Restoring"),
    ]);
}

#[test]
fn policies_of_kuadrant() {
    let policy = |status| object("kuadrant.io/v1", "AuthPolicy", json!({}), status);
    let status = |accepted: &str, enforced: &str, reason: &str| {
        json!({"observedGeneration": 2, "conditions": [
            {"type": "Accepted", "status": accepted, "message": "target"},
            {"type": "Enforced", "status": enforced, "reason": reason, "message": "words"},
        ]})
    };
    check(&[
        (
            "nothing yet",
            policy(json!({})),
            Status::Progressing,
            "Waiting for AuthPolicy status",
        ),
        (
            "old news",
            policy(json!({"observedGeneration": 1, "conditions": [{"type": "Accepted", "status": "False"}]})),
            Status::Progressing,
            "Waiting for AuthPolicy status",
        ),
        (
            "no such target",
            policy(status("False", "False", "")),
            Status::Degraded,
            "target",
        ),
        (
            "in force",
            policy(status("True", "True", "Enforced")),
            Status::Healthy,
            "words",
        ),
        (
            "overridden",
            policy(status("True", "False", "Overridden")),
            Status::Suspended,
            "words",
        ),
        (
            "not in force",
            policy(status("True", "False", "Unknown")),
            Status::Degraded,
            "words",
        ),
    ]);
}

#[test]
fn child_applications() {
    let child = |status| object("argoproj.io/v1alpha1", "Application", json!({}), status);
    check(&[
        (
            "new",
            child(json!({})),
            Status::Progressing,
            "Waiting for the application to be compared",
        ),
        (
            "well",
            child(json!({"health": {"status": "Healthy"}})),
            Status::Healthy,
            "",
        ),
        (
            "not well",
            child(json!({"health": {"status": "Degraded", "message": "m"}})),
            Status::Degraded,
            "m",
        ),
    ]);
}

#[test]
fn workloads_of_old_versions_are_not_guessed_at() {
    let old = object("apps/v1beta1", "Deployment", json!({}), json!({}));
    check(&[(
        "too old",
        old,
        Status::Unknown,
        "unsupported Deployment version: apps/v1beta1; write it as apps/v1",
    )]);
    assert_eq!(health(&json!({"apiVersion": "v1", "kind": "ConfigMap"})), None);
    assert_eq!(health(&json!({})), None);
}

#[test]
fn the_table_is_sorted_and_without_doubles() {
    let keys: Vec<(&str, &str)> = RULES.iter().map(|(group, kind, _)| (*group, *kind)).collect();
    assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
}
