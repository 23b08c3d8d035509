//! What may be done to a running machine, and when.

use std::net::IpAddr;

use serde_json::Value;

use super::{holds, is_running, name, phase};
use crate::refusal::{About, Refusal};

const VM_NOT_RUNNING: &str = "VM is not running";
const VMI_NOT_RUNNING: &str = "VMI is not running";

/// How much of a console is shown if nobody says how much.
const TAIL: usize = 8 << 10;
/// The most.
const MAX_TAIL: usize = 256 << 10;

type Allowed = Result<(), Refusal>;

fn conflict(vmi: &Value, why: &str) -> Refusal {
    Refusal::conflict(About::Instance, name(vmi), why)
}

fn running(vmi: &Value, why: &str) -> Allowed {
    match is_running(vmi) {
        true => Ok(()),
        false => Err(conflict(vmi, why)),
    }
}

/// Whether a device that a machine has by default was declined.
fn is_declined(vmi: &Value, field: &str) -> bool {
    vmi["spec"]["domain"]["devices"][field] == false
}

/// The node on which the machine can be reached.
pub fn reachable(vmi: &Value) -> Result<&str, Refusal> {
    if !matches!(phase(vmi), "Running" | "Scheduled") {
        return Err(Refusal::bad_request(format!(
            "Unable to connect to VirtualMachineInstance because phase is {} instead of Running or Scheduled",
            phase(vmi)
        )));
    }
    match vmi["status"]["nodeName"].as_str() {
        Some(node) if !node.is_empty() => Ok(node),
        _ => Err(Refusal::bad_request(
            "Unable to connect to VirtualMachineInstance because it is on no node",
        )),
    }
}

pub fn pause(vmi: &Value) -> Allowed {
    running(vmi, VM_NOT_RUNNING)?;
    if !vmi["spec"]["livenessProbe"].is_null() {
        let why = "Pausing VMIs with LivenessProbe is currently not supported";
        return Err(Refusal::forbidden(About::Instance, name(vmi), why));
    }
    if holds(vmi, "Paused") {
        return Err(conflict(vmi, "VMI is already paused"));
    }
    Ok(())
}

pub fn unpause(vmi: &Value) -> Allowed {
    running(vmi, VMI_NOT_RUNNING)?;
    match holds(vmi, "Paused") {
        true => Ok(()),
        false => Err(conflict(vmi, "VMI is not paused")),
    }
}

/// Where a machine that can be backed up is. One that moves has its disks at two places.
pub fn backup(vmi: &Value) -> Result<&str, Refusal> {
    running(vmi, VMI_NOT_RUNNING)?;
    let moves = &vmi["status"]["migrationState"];
    if moves.is_object() && moves["completed"] != true && moves["failed"] != true {
        return Err(conflict(
            vmi,
            "VMI is being migrated; back it up when it has arrived",
        ));
    }
    reachable(vmi)
}

/// From which byte on a file is read: `offset=N`.
pub fn offset(query: &str) -> Result<u64, Refusal> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    match pairs.find(|(name, _)| *name == "offset") {
        None => Ok(0),
        Some((_, text)) => (text.parse())
            .map_err(|_| Refusal::bad_request(format!("offset {text:?} is not a number of bytes"))),
    }
}

pub fn freeze(vmi: &Value) -> Allowed {
    running(vmi, VM_NOT_RUNNING)
}

pub fn unfreeze(vmi: &Value) -> Allowed {
    running(vmi, VMI_NOT_RUNNING)
}

pub fn soft_reboot(vmi: &Value) -> Allowed {
    running(vmi, VM_NOT_RUNNING)?;
    if holds(vmi, "Paused") {
        return Err(conflict(vmi, "VMI is paused"));
    }
    let acpi = &vmi["spec"]["domain"]["features"]["acpi"]["enabled"];
    if !holds(vmi, "AgentConnected") && *acpi == false {
        let why = "VMI neither have the agent connected nor the ACPI feature enabled";
        return Err(conflict(vmi, why));
    }
    Ok(())
}

/// A reset may come while the machine is starting: then that is why it failed.
pub fn reset_context(vmi: &Value, mut refusal: Refusal) -> Refusal {
    if !is_running(vmi) {
        refusal.message = format!(
            "Failed to reset non-running VMI with phase {}: {}",
            phase(vmi),
            refusal.message
        );
    }
    refusal
}

/// What the guest knows of itself is asked of its agent. Upstream answers with the code of a failure.
pub fn guest_data(vmi: &Value) -> Allowed {
    running(vmi, VMI_NOT_RUNNING).map_err(Refusal::into_failure)?;
    match holds(vmi, "AgentConnected") {
        true => Ok(()),
        false => Err(conflict(vmi, "VMI does not have guest agent connected").into_failure()),
    }
}

/// The node that knows what a machine uses, which it does while it runs.
pub fn usage(vmi: &Value) -> Result<&str, Refusal> {
    running(vmi, VMI_NOT_RUNNING)?;
    reachable(vmi)
}

pub fn console(vmi: &Value) -> Allowed {
    if is_declined(vmi, "autoattachSerialConsole") {
        return Err(Refusal::bad_request("No serial consoles are present."));
    }
    if phase(vmi) == "Failed" {
        return Err(conflict(vmi, "VMI is in failed status"));
    }
    match is_running(vmi) {
        true => Ok(()),
        false => Err(Refusal::bad_request(VMI_NOT_RUNNING)),
    }
}

/// The node that knows what the guest printed: also of one that has ended.
pub fn tail(vmi: &Value) -> Result<&str, Refusal> {
    if is_declined(vmi, "autoattachSerialConsole") {
        return Err(Refusal::bad_request("No serial consoles are present."));
    }
    match vmi["status"]["nodeName"].as_str() {
        Some(node) if !node.is_empty() => Ok(node),
        _ => Err(Refusal::bad_request(VMI_NOT_RUNNING)),
    }
}

/// How much of it is wanted: `bytes=N`.
pub fn tail_length(query: &str) -> Result<usize, Refusal> {
    let wanted = query.split('&').find_map(|it| it.strip_prefix("bytes="));
    match wanted.map(str::parse) {
        None => Ok(TAIL),
        Some(Ok(bytes)) if bytes <= MAX_TAIL => Ok(bytes),
        Some(_) => Err(Refusal::bad_request(format!(
            "bytes must be a number of at most {MAX_TAIL}"
        ))),
    }
}

pub fn vnc(vmi: &Value) -> Allowed {
    if is_declined(vmi, "autoattachGraphicsDevice") {
        return Err(Refusal::bad_request("No graphics devices are present."));
    }
    match is_running(vmi) {
        true => Ok(()),
        false => Err(Refusal::bad_request(VMI_NOT_RUNNING)),
    }
}

pub fn port_forward(vmi: &Value) -> Allowed {
    match holds(vmi, "Paused") {
        true => Err(conflict(vmi, "VMI is paused")),
        false => Ok(()),
    }
}

/// A port of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port(pub u16);

/// Reads what follows `portforward/`: the port, and maybe a protocol.
pub fn port(rest: &str) -> Result<Port, Refusal> {
    let (port, protocol) = rest.split_once('/').unwrap_or((rest, "tcp"));
    if port.is_empty() {
        return Err(Refusal::bad_request("port must not be empty"));
    }
    match protocol {
        "tcp" => {}
        "udp" => {
            return Err(Refusal::bad_request(
                "UDP ports are not forwarded: Fairway carries TCP into guests",
            ));
        }
        other => return Err(Refusal::bad_request(format!("unknown network {other}"))),
    }
    match port.parse() {
        Ok(port) if port != 0 => Ok(Port(port)),
        _ => Err(Refusal::bad_request(format!(
            "{port:?} is not a port: 1 to 65535"
        ))),
    }
}

/// Where the guest's ports are: the first of its addresses. They are the node's word, not the guest's.
pub fn address(vmi: &Value) -> Result<IpAddr, Refusal> {
    let interfaces = vmi["status"]["interfaces"].as_array();
    let mut all = interfaces.into_iter().flatten().peekable();
    if all.peek().is_none() {
        return Err(Refusal::bad_request("no network interfaces are present"));
    }
    all.find_map(|it| it["ipAddress"].as_str()?.parse().ok())
        .ok_or_else(|| {
            let why = format!("the interfaces of {:?} have no address yet: try again", name(vmi));
            Refusal::bad_request(why)
        })
}

pub fn usb_redirection(vmi: &Value) -> Allowed {
    if vmi["spec"]["architecture"] == "s390x" {
        return Err(conflict(vmi, "No USB support on s390x"));
    }
    if vmi["spec"]["domain"]["devices"]["clientPassthrough"].is_null() {
        return Err(conflict(vmi, "Not configured with USB Redirection"));
    }
    if !is_running(vmi) {
        return Err(Refusal::bad_request(VMI_NOT_RUNNING));
    }
    Err(Refusal::bad_request(
        "USB redirection is not supported by Fairway",
    ))
}

pub fn vsock(vmi: &Value) -> Allowed {
    match vmi["spec"]["domain"]["devices"]["autoattachVSOCK"] == true {
        true => Err(Refusal::bad_request("VSOCK is not supported by Fairway")),
        false => Err(Refusal::bad_request("VSOCK is not attached.")),
    }
}

/// Attestation: upstream's words for a cluster that does not have it.
pub fn sev() -> Refusal {
    Refusal::bad_request("'WorkloadEncryptionSEV' feature gate is not enabled")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_machine_is_backed_up_where_it_runs() {
        let vmi = |phase: &str, moves: Value| json!({"metadata": {"name": "vm"}, "status": {"phase": phase, "nodeName": "n1", "migrationState": moves}});
        for (vmi, expected, why) in [
            (vmi("Running", Value::Null), Some("n1"), "it runs"),
            (vmi("Scheduled", Value::Null), None, "it does not run yet"),
            (vmi("Succeeded", Value::Null), None, "it has ended"),
            (vmi("Running", json!({"targetNode": "n2"})), None, "it moves"),
            (
                vmi("Running", json!({"targetNode": "n1", "completed": true})),
                Some("n1"),
                "it has arrived",
            ),
        ] {
            assert_eq!(backup(&vmi).ok(), expected, "{why}");
        }
    }

    #[test]
    fn a_file_is_read_from_a_place_on() {
        for (query, expected) in [
            ("", Some(0)),
            ("offset=0", Some(0)),
            ("a=b&offset=1048576", Some(1 << 20)),
            ("offset=-1", None),
            ("offset=x", None),
        ] {
            assert_eq!(offset(query).ok(), expected, "{query}");
        }
    }
}
