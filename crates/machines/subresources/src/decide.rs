//! What is to be written because somebody asked, or why it is refused. Values in, values out.
//!
//! The conditions, their order and their words are those of KubeVirt's virt-api; so are the writes, because the
//! controllers of machines act on them as KubeVirt's do.

mod instance;
mod power;
mod volumes;

use fairway_machines_plan::view::RunStrategy;
use serde_json::Value;

pub use instance::{
    address, console, freeze, guest_data, pause, port, port_forward, reachable, reset_context,
};
pub use instance::{backup, offset};
pub use instance::{
    sev, soft_reboot, tail, tail_length, unfreeze, unpause, usage, usb_redirection, vnc, vsock,
};
pub use power::{migrate, restart, start, stop};
pub use volumes::{Change as VolumeChange, instance as instance_volume, machine as machine_volume};

use crate::refusal::Refusal;

/// What is to be written, in order.
pub type Verdict = Result<Vec<Step>, Refusal>;

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A merge patch of the machine.
    MergeMachine(Value),
    /// A JSON patch of the machine's status. It tests what it was decided on.
    PatchMachineStatus(Value),
    /// A merge patch of the instance.
    MergeInstance(Value),
    /// A JSON patch of the instance. It tests what it was decided on.
    PatchInstance(Value),
    /// A new migration.
    CreateMigration(Value),
}

/// The name of an object.
fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The phase of an instance.
fn phase(vmi: &Value) -> &str {
    vmi["status"]["phase"].as_str().unwrap_or_default()
}

fn is_running(vmi: &Value) -> bool {
    phase(vmi) == "Running"
}

fn is_final(vmi: &Value) -> bool {
    matches!(phase(vmi), "Succeeded" | "Failed")
}

/// Whether a condition holds.
fn holds(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|it| it["type"] == kind && it["status"] == "True")
}

/// When a machine is to run.
fn strategy(vm: &Value) -> Result<RunStrategy, Refusal> {
    let spec = &vm["spec"];
    match (spec["running"].as_bool(), spec["runStrategy"].as_str()) {
        (Some(_), Some(_)) => Err(Refusal::internal(
            "running and runstrategy are mutually exclusive",
        )),
        (Some(true), None) => Ok(RunStrategy::Always),
        (_, None) => Ok(RunStrategy::Halted),
        (None, Some(word)) => RunStrategy::parse(word)
            .ok_or_else(|| Refusal::internal(&format!("{word:?} is not a run strategy"))),
    }
}

#[cfg(test)]
mod tests;
