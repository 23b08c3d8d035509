//! What is written into the status of a machine: one patch of the fields that are decided here, and of no others.

use fairway_controller::commit::difference;
use fairway_machines_plan::lifecycle::{Decision, Status};
use fairway_machines_plan::view::{Condition, RunStrategy};
use serde_json::{Map, Value, json};

use crate::conditions::written;
use crate::objects::locked;

/// What the status says beside what was decided.
#[derive(Clone, Debug, Default)]
pub(crate) struct More {
    /// Something that did not succeed.
    pub(crate) failure: Option<Condition>,
    /// `instancetypeRef`; nothing leaves it as it is.
    pub(crate) size: Option<Value>,
    /// `preferenceRef`; nothing leaves it as it is.
    pub(crate) taste: Option<Value>,
    /// Volumes that are to come or go.
    pub(crate) volume_requests: Vec<Value>,
    /// Of which volumes a snapshot can be taken.
    pub(crate) volume_snapshots: Vec<Value>,
    /// The generation that the instance has.
    pub(crate) observed_generation: Option<i64>,
    /// Nothing was started, although that was decided.
    pub(crate) not_started: bool,
}

/// The patch of a machine's status; nothing if it says all of this already.
pub(crate) fn patch(
    vm: &Value,
    vmi: Option<&Value>,
    decision: &Decision,
    more: &More,
    now: &str,
) -> Option<Value> {
    let decided = &decision.status;
    let before = vm["status"].as_object().cloned().unwrap_or_default();
    let mut after = before.clone();
    let set = |after: &mut Map<String, Value>, field: &str, value: Value| {
        let is_empty = match &value {
            Value::Null | Value::Bool(false) => true,
            Value::Array(all) => all.is_empty(),
            _ => false,
        };
        match is_empty {
            true => drop(after.shift_remove(field)),
            false => drop(after.insert(field.to_owned(), value)),
        }
    };
    set(&mut after, "created", json!(decided.created));
    set(&mut after, "ready", json!(decided.ready));
    set(&mut after, "printableStatus", json!(word(decided, more)));
    set(
        &mut after,
        "conditions",
        json!(conditions(vm, vmi, decided, more, now)),
    );
    set(
        &mut after,
        "stateChangeRequests",
        json!(decided.state_change_requests),
    );
    set(&mut after, "startFailure", json!(decided.start_failure));
    set(&mut after, "volumeRequests", json!(more.volume_requests));
    set(&mut after, "volumeSnapshotStatuses", json!(more.volume_snapshots));
    if let Some(strategy) = decided.run_strategy {
        set(&mut after, "runStrategy", json!(RunStrategy::word(strategy)));
    }
    for (field, value) in [("instancetypeRef", &more.size), ("preferenceRef", &more.taste)] {
        if let Some(value) = value {
            set(&mut after, field, value.clone());
        }
    }
    if let (true, Some(generation)) = (decided.created, more.observed_generation) {
        set(&mut after, "observedGeneration", json!(generation));
        set(&mut after, "desiredGeneration", json!(decided.desired_generation));
    }
    let status = difference(&Value::Object(before), &Value::Object(after))?;
    Some(json!({"metadata": locked(vm, json!({})), "status": status}))
}

/// The word that people see.
fn word(decided: &Status, more: &More) -> &'static str {
    match decided.printable_status {
        "Starting" if more.not_started && decided.start_failure.is_some() => "CrashLoopBackOff",
        "Starting" if more.not_started => "Stopped",
        word => word,
    }
}

fn conditions(vm: &Value, vmi: Option<&Value>, decided: &Status, more: &More, now: &str) -> Vec<Value> {
    let mut all = decided.conditions.clone();
    if let Some(failure) = &more.failure {
        all.retain(|it| it.kind != failure.kind);
        all.push(failure.clone());
        all.sort_by(|a, b| a.kind.cmp(&b.kind));
    }
    // What an instance says is as old as it says.
    let known: Vec<&Value> = vmi.into_iter().chain([vm]).collect();
    all.iter().map(|it| written(it, &known, now)).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn decided(status: Status) -> Decision {
        Decision {
            actions: Vec::new(),
            status,
            events: Vec::new(),
            look_again: None,
        }
    }

    fn check(status: &Value, vmi: Option<&Value>, decided_status: Status, more: &More, expected: &Expect) {
        let vm = json!({"metadata": {"uid": "u", "resourceVersion": "7"}, "status": status});
        let patch = patch(&vm, vmi, &decided(decided_status), more, "t1");
        expected.assert_eq(&patch.map_or("nothing".to_owned(), |it| it["status"].to_string()));
    }

    fn ready(status: &str) -> Condition {
        Condition {
            kind: "Ready".to_owned(),
            status: status.to_owned(),
            ..Condition::default()
        }
    }

    #[test]
    fn only_what_changed_is_written() {
        let running = Status {
            created: true,
            ready: true,
            printable_status: "Running",
            conditions: vec![ready("True")],
            run_strategy: Some(RunStrategy::Always),
            desired_generation: 3,
            ..Status::default()
        };
        let vmi = json!({"status": {"conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "t0"},
        ]}});
        let more = More {
            observed_generation: Some(2),
            ..More::default()
        };
        check(
            &json!({"printableStatus": "Starting", "snapshotInProgress": "s", "stateChangeRequests": [{"action": "Start"}]}),
            Some(&vmi),
            running.clone(),
            &more,
            &expect![[
                r#"{"printableStatus":"Running","created":true,"ready":true,"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"t0"}],"runStrategy":"Always","observedGeneration":2,"desiredGeneration":3,"stateChangeRequests":null}"#
            ]],
        );
        let after = json!({
            "printableStatus": "Running", "created": true, "ready": true, "runStrategy": "Always",
            "observedGeneration": 2, "desiredGeneration": 3,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "t0"}],
        });
        check(&after, Some(&vmi), running, &more, &expect!["nothing"]);
    }

    #[test]
    fn what_did_not_succeed_is_told() {
        let starting = Status {
            printable_status: "Starting",
            conditions: vec![ready("False")],
            ..Status::default()
        };
        let before = json!({"conditions": [
            {"type": "Failure", "status": "True", "reason": "FailedCreate", "message": "old", "lastTransitionTime": "t0"},
        ]});
        let more = More {
            failure: Some(Condition::holds("Failure", "FailedCreate", "new")),
            not_started: true,
            ..More::default()
        };
        check(
            &before,
            None,
            starting,
            &more,
            &expect![[
                r#"{"conditions":[{"type":"Failure","status":"True","reason":"FailedCreate","message":"new","lastTransitionTime":"t0"},{"type":"Ready","status":"False","lastTransitionTime":"t1"}],"printableStatus":"Stopped"}"#
            ]],
        );
    }

    #[test]
    fn sizes_and_requests() {
        let stopped = Status {
            printable_status: "Stopped",
            ..Status::default()
        };
        let before = json!({"printableStatus": "Stopped", "instancetypeRef": {"name": "small"}, "preferenceRef": {"name": "linux"}});
        let more = More {
            size: Some(Value::Null),
            taste: None,
            volume_requests: vec![json!({"removeVolumeOptions": {"name": "x"}})],
            ..More::default()
        };
        check(
            &before,
            None,
            stopped,
            &more,
            &expect![[r#"{"volumeRequests":[{"removeVolumeOptions":{"name":"x"}}],"instancetypeRef":null}"#]],
        );
    }
}
