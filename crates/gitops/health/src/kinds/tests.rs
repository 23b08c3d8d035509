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
            machine(json!({"runStrategy": "Always"}), stopped),
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
