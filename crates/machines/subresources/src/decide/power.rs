//! Start, stop, restart, migrate: what each run strategy makes of them.
//!
//! | strategy | start | stop | restart |
//! |---|---|---|---|
//! | Halted | the spec says that it runs; paused: a request | a request, if the guest gets less time than before | no |
//! | Manual | a request | a request | a request |
//! | Always | no | the spec says that it does not run | a request |
//! | RerunOnFailure | a request | a request | a request |
//! | Once | no | the spec says that it does not run | no |

use fairway_machines_plan::view::RunStrategy;
use serde_json::{Value, json};

use super::{Step, Verdict, holds, is_final, name, phase, strategy};
use crate::options::{Restart, Start, Stop};
use crate::refusal::{About, Refusal};

const NOT_RUNNING: &str = "VM is not running";
const RECOVERY: &str = "VM recovery required: Volume migration failed, leaving some volumes pointing to non-consistent \
                        targets; manual intervention is needed to reassign them to their original volumes.";
/// Seconds that a guest gets where it is to get none: upstream's shortest safe time.
const AT_ONCE: i64 = 1;

fn conflict(vm: &Value, why: &str) -> Refusal {
    Refusal::conflict(About::Machine, name(vm), why)
}

/// Asks that a machine be started.
pub fn start(vm: &Value, vmi: Option<&Value>, options: &Start) -> Verdict {
    if vmi.is_some_and(|vmi| !is_final(vmi) && !matches!(phase(vmi), "Unknown" | "")) {
        return Err(conflict(vm, "VM is already running"));
    }
    if holds(vm, "ManualRecoveryRequired") {
        return Err(conflict(vm, RECOVERY));
    }
    let mut request = json!({"action": "Start"});
    if options.paused {
        request["data"] = json!({"paused": "true"});
    }
    let strategy = strategy(vm)?;
    match strategy {
        RunStrategy::Halted if options.paused => Ok(vec![requests(vm, &[request])?]),
        RunStrategy::Halted => Ok(vec![running(vm, true)]),
        RunStrategy::RerunOnFailure if vmi.is_some_and(|vmi| phase(vmi) == "Failed") => {
            let why = "RerunOnFailure does not support starting VM from failed state";
            Err(conflict(vm, why))
        }
        RunStrategy::RerunOnFailure | RunStrategy::Manual => {
            // One that ended is still there: it must go first.
            let ended = vmi.filter(|vmi| is_final(vmi)).map(stop_request);
            let all: Vec<Value> = ended.into_iter().chain([request]).collect();
            Ok(vec![requests(vm, &all)?])
        }
        RunStrategy::Always | RunStrategy::Once => {
            let why = format!("{} does not support manual start requests", strategy.word());
            Err(conflict(vm, &why))
        }
    }
}

/// Asks that a machine be stopped.
pub fn stop(vm: &Value, vmi: Option<&Value>, options: &Stop) -> Verdict {
    let alive = vmi.filter(|vmi| !is_final(vmi));
    let request = match strategy(vm)? {
        RunStrategy::Always | RunStrategy::Once => running(vm, false),
        strategy => {
            let Some(vmi) = alive else {
                return Err(conflict(vm, NOT_RUNNING));
            };
            let before = vmi["spec"]["terminationGracePeriodSeconds"].as_i64();
            let is_shorter = |new: i64| before.is_none_or(|before| new < before);
            if strategy == RunStrategy::Halted && !options.grace_period.is_some_and(is_shorter) {
                let why = "Halted only supports manual stop requests with a shorter graceperiod";
                return Err(conflict(vm, why));
            }
            requests(vm, &[stop_request(vmi)])?
        }
    };
    // The time first: who ends the guest must not see the old one.
    let time = options.grace_period.filter(|_| alive.is_some()).map(grace);
    Ok(time.into_iter().chain([request]).collect())
}

/// Asks that a machine be stopped and started again.
pub fn restart(vm: &Value, vmi: Option<&Value>, options: &Restart) -> Verdict {
    match options.grace_period_seconds {
        Some(1..) => {
            let why = "For force restart, only gracePeriod=0 is supported for now";
            return Err(Refusal::bad_request(why));
        }
        Some(..0) => {
            return Err(Refusal::bad_request(
                "gracePeriod has to be greater or equal to 0",
            ));
        }
        Some(0) | None => {}
    }
    if holds(vm, "VolumesChange") {
        return Err(conflict(vm, RECOVERY));
    }
    let strategy = strategy(vm)?;
    if matches!(strategy, RunStrategy::Halted | RunStrategy::Once) {
        let why = format!(
            "RunStategy {} does not support manual restart requests",
            strategy.word()
        );
        return Err(conflict(vm, &why));
    }
    let Some(vmi) = vmi else {
        return Err(conflict(vm, "VM is not running: Halted"));
    };
    let request = requests(vm, &[stop_request(vmi), json!({"action": "Start"})])?;
    let time = options.grace_period_seconds.map(|_| grace(AT_ONCE));
    Ok(time.into_iter().chain([request]).collect())
}

/// Asks that a machine be moved to another node.
pub fn migrate(vm: &Value, vmi: Option<&Value>) -> Verdict {
    let Some(vmi) = vmi else {
        return Err(Refusal::not_found(About::Instance, name(vm)));
    };
    if phase(vmi) != "Running" {
        return Err(conflict(vm, NOT_RUNNING));
    }
    Ok(vec![Step::CreateMigration(json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
        "metadata": {"generateName": "kubevirt-migrate-vm-"},
        "spec": {"vmiName": name(vm)},
    }))])
}

fn stop_request(vmi: &Value) -> Value {
    json!({"action": "Stop", "uid": vmi["metadata"]["uid"]})
}

fn grace(seconds: i64) -> Step {
    Step::MergeInstance(json!({"spec": {"terminationGracePeriodSeconds": seconds}}))
}

/// Says in the spec whether the machine runs, in the field that the spec uses.
fn running(vm: &Value, is_to_run: bool) -> Step {
    let spec = match vm["spec"]["runStrategy"].is_string() {
        true => json!({"runStrategy": if is_to_run { "Always" } else { "Halted" }}),
        false => json!({"running": is_to_run}),
    };
    Step::MergeMachine(json!({"spec": spec}))
}

/// Leaves requests in the status for whoever runs machines. A stop takes the place of whatever was asked for before; anything
/// else waits its turn.
fn requests(vm: &Value, new: &[Value]) -> Result<Step, Refusal> {
    let status = &vm["status"];
    if status.as_object().is_none_or(serde_json::Map::is_empty) {
        let steps = json!([{"op": "add", "path": "/status", "value": {"stateChangeRequests": new}}]);
        return Ok(Step::PatchMachineStatus(steps));
    }
    let path = "/status/stateChangeRequests";
    let before = &status["stateChangeRequests"];
    let is_stop = matches!(new, [only] if only["action"] == "Stop");
    let op = match before.as_array().is_none_or(Vec::is_empty) {
        true => "add",
        false if is_stop => "replace",
        false => {
            let why = "unable to complete request: stop/start already underway";
            return Err(Refusal::internal(why));
        }
    };
    let mut steps = vec![
        json!({"op": "test", "path": path, "value": before}),
        json!({"op": op, "path": path, "value": new}),
    ];
    // Somebody asked: there is no reason to wait any longer because earlier starts failed.
    if !status["startFailure"].is_null() {
        steps.push(json!({"op": "remove", "path": "/status/startFailure"}));
    }
    Ok(Step::PatchMachineStatus(Value::Array(steps)))
}
