//! From a plan to a process: what the plan says of a machine, what this host adds, and what keeps hold of the process come
//! together here.
//!
//! Each argument has one owner. `plan::argv` says what the machine is; `qemu::Launch` adds how the process is held and locked in. They
//! share the names of sockets, which are `qemu::names`.

use std::path::Path;

use fairway_machines_plan::argv::{self, ArgvError, Host, Layout, Sockets};
use fairway_machines_plan::machine::MachinePlan;
use fairway_machines_qemu::{Launch, names};

use crate::supervise::Fencing;

/// Where a machine is reached, by the names that the driver of QEMU knows.
pub(crate) fn sockets() -> Sockets {
    Sockets {
        serial: names::SERIAL.to_owned(),
        agent: names::AGENT.to_owned(),
        vnc: names::VNC.to_owned(),
        tpm: names::TPM.to_owned(),
    }
}

/// The start of a machine.
pub(crate) fn launch(
    program: &Path,
    directory: &Path,
    plan: &MachinePlan,
    host: &Host,
    layout: &Layout,
) -> Result<Launch, ArgvError> {
    let arguments = argv::argv(plan, host, layout)?;
    Ok(Launch::new(program, directory, arguments))
}

/// Puts a machine under supervision, if there is any on this node.
pub(crate) fn supervised(launch: &mut Launch, fencing: Option<&Fencing>, node: &Path) {
    if let Some(fencing) = fencing {
        launch.starter = fencing.starter(node);
        launch.bound = true;
    }
}

#[cfg(test)]
mod tests;
