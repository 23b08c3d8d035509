//! Where the machine is placed, and its process.

use serde_json::Value;

use super::Machine;
use super::guest::lines;
use crate::Facts;
use crate::cause::{is_limit, is_of_claims, is_of_disks};
use crate::link::{Evidence, Link, State};
use crate::object::{condition, field, name, title, told};
use fairway_machines_plan::view::RunStrategy;

fn strategy(vm: &Value) -> RunStrategy {
    match (vm["spec"]["runStrategy"].as_str(), &vm["spec"]["running"]) {
        (Some(word), _) => RunStrategy::parse(word).unwrap_or_default(),
        (None, running) if *running == true => RunStrategy::Always,
        _ => RunStrategy::Halted,
    }
}

/// Why there is no instance because somebody wants it so.
pub(super) fn off(machine: &Machine) -> Option<&'static str> {
    let vm = machine.vm.as_ref()?;
    if !field(vm, "/metadata/deletionTimestamp").is_empty() {
        return Some("it is being deleted");
    }
    if machine.vmi.is_some() {
        return None;
    }
    let is_stopped = field(vm, "/status/printableStatus") == "Stopped";
    match strategy(vm) {
        RunStrategy::Halted => Some("it is stopped, because its runStrategy is Halted"),
        RunStrategy::Manual => {
            Some("it is stopped, because its runStrategy is Manual and nobody has started it")
        }
        RunStrategy::RerunOnFailure | RunStrategy::Once if is_stopped => {
            Some("it is stopped: its guest ended, and its runStrategy does not start it again")
        }
        RunStrategy::Always | RunStrategy::RerunOnFailure | RunStrategy::Once => None,
    }
}

/// The machine without an instance.
fn unstarted(facts: &Facts, machine: &Machine) -> Link {
    let link = |state, finding: String| Link::new("scheduling", state, finding);
    let Some(vm) = &machine.vm else {
        let named = format!("VirtualMachine {}/{}", machine.namespace, machine.name);
        // Whoever should have made it is to blame.
        return match facts.application.is_some() || facts.voyage.is_some() {
            true => link(State::Waiting, format!("there is no {named} yet")),
            false => link(State::Broken, format!("there is no {named}"))
                .advised("check name, namespace (-n) and workspace (-w): `fairway vm list -A` shows all"),
        };
    };
    let made = field(vm, "/metadata/creationTimestamp");
    if let Some(why) = off(machine) {
        return link(State::Off, why.to_owned()).since(made).advised(format!(
            "`fairway vm start {} -n {}` starts it",
            name(vm),
            machine.namespace
        ));
    }
    // A disk waits for a node that the machine could run on.
    let homeless = homeless(machine);
    if let Some(first) = homeless.first() {
        return link(State::Broken, format!("no node takes it: {}", first.message))
            .shown_by(homeless)
            .advised("`kubectl get nodes --show-labels` shows what nodes have; correct the nodeSelector, or label a node");
    }
    if vm["status"]["startFailure"].is_object() {
        return link(State::Waiting, "it is to be started again".to_owned());
    }
    let failed = condition(vm, "Failure").filter(|it| it["status"] == "True");
    if let Some(failure) = failed {
        let why = field(failure, "/message");
        if is_limit(why) || is_of_disks(why) {
            return link(State::Waiting, "there is no instance yet".to_owned());
        }
        return link(State::Broken, format!("no instance could be made: {why}"))
            .shown_by([told(failure, &title(vm))])
            .shown_by(machine.warnings("VirtualMachine", name(vm)))
            .advised("correct the machine as the message says");
    }
    link(State::Waiting, "there is no instance yet".to_owned())
        .since(made)
        .shown_by(machine.warnings("VirtualMachine", name(vm)))
        .advised("look again in a moment; if that does not change, at the server's log")
}

/// What disks of the machine say that wait for a node.
pub(super) fn homeless(machine: &Machine) -> Vec<Evidence> {
    let of_disks = super::storage::disks(machine).into_iter().flat_map(|it| {
        let mut all = machine.warnings("DataVolume", it);
        all.extend(machine.warnings("PersistentVolumeClaim", it));
        all
    });
    of_disks
        .filter(|it| {
            it.seen_in.starts_with("event WaitingForNode ")
                || it.seen_in.starts_with("event FailedScheduling ")
        })
        .collect()
}

/// The instance and its node.
pub(super) fn scheduling(facts: &Facts, machine: &Machine) -> Link {
    let link = |state, finding: String| Link::new("scheduling", state, finding);
    let Some(vmi) = &machine.vmi else {
        return unstarted(facts, machine);
    };
    if let Some(why) = off(machine) {
        return link(State::Off, why.to_owned());
    }
    let owner = title(vmi);
    let node = field(vmi, "/status/nodeName");
    if node.is_empty() {
        let said = condition(vmi, "PodScheduled").filter(|it| it["status"] == "False");
        return match said {
            Some(said) if is_of_claims(field(said, "/message")) => link(
                State::Waiting,
                format!("it waits for a disk: {}", field(said, "/message")),
            ),
            Some(said) => link(
                State::Broken,
                format!("no node takes it: {}", field(said, "/message")),
            )
            .shown_by([told(said, &owner)])
            .shown_by(machine.warnings("VirtualMachineInstance", name(vmi)))
            .advised("`kubectl describe nodes` shows what nodes have left, their labels and their taints"),
            None => link(
                State::Waiting,
                format!("it has no node yet; phase {}", phase(vmi)),
            ),
        };
    }
    let placed = entered(vmi, "Scheduled");
    let Some(nodes) = &machine.nodes else {
        return link(State::Good, format!("on node {node}")).since(placed);
    };
    let Some(found) = nodes.iter().find(|it| name(it) == node) else {
        return link(State::Broken, format!("its node {node} does not exist any more")).advised(
            "when the node is lost for good, its machines start elsewhere after its lease has expired",
        );
    };
    let ready = condition(found, "Ready");
    match ready {
        Some(ready) if ready["status"] != "True" => link(
            State::Broken,
            format!("its node {node} is not ready: {}", field(ready, "/message")),
        )
        .shown_by([told(ready, &format!("Node {node}"))])
        .advised("see why the node does not report: is its process running, does it reach the API?"),
        _ => link(State::Good, format!("on node {node}")).since(placed),
    }
}

/// When an instance came to a phase.
pub(super) fn entered<'v>(vmi: &'v Value, phase: &str) -> &'v str {
    let all = crate::object::items(vmi, "/status/phaseTransitionTimestamps").iter();
    let found = all.rev().find(|it| it["phase"] == phase);
    found.map_or("", |it| field(it, "/phaseTransitionTimestamp"))
}

fn phase(vmi: &Value) -> &str {
    match field(vmi, "/status/phase") {
        "" => "unset",
        phase => phase,
    }
}

/// The process.
pub(super) fn process(machine: &Machine) -> Link {
    let link = |state, finding: String| Link::new("boot", state, finding);
    if let (Some(vm), Some(failure)) = (&machine.vm, machine.vm.as_ref().and_then(start_failure)) {
        let ended = machine.vmi.as_ref().is_none_or(|it| phase(it) != "Running");
        if ended {
            return failing(machine, vm, failure);
        }
    }
    let Some(vmi) = &machine.vmi else {
        return match off(machine) {
            Some(_) => link(State::Unused, "the machine is off".to_owned()),
            None => link(State::Waiting, "there is no instance yet".to_owned()),
        };
    };
    let owner = title(vmi);
    let events = machine.warnings("VirtualMachineInstance", name(vmi));
    let events: Vec<Evidence> = events
        .into_iter()
        .filter(|it| !it.seen_in.starts_with("event FailedScheduling "))
        .collect();
    if field(vmi, "/status/nodeName").is_empty() && phase(vmi) != "Failed" {
        return link(State::Waiting, "it has no node yet".to_owned());
    }
    let synchronized = condition(vmi, "Synchronized").filter(|it| it["status"] == "False");
    match phase(vmi) {
        "Running" => {
            if let Some(paused) = condition(vmi, "Paused").filter(|it| it["status"] == "True") {
                let finding = format!("it is paused: {}", field(paused, "/message"));
                let paused_by = |state| link(state, finding.clone()).shown_by([told(paused, &owner)]);
                return match field(paused, "/reason") {
                    "PausedByUser" => paused_by(State::Off)
                        .advised(format!("`fairway vm unpause {}` lets it run", name(vmi))),
                    "PausedIOError" => paused_by(State::Waiting),
                    _ => paused_by(State::Broken)
                        .shown_by(events)
                        .advised(format!("`fairway vm unpause {}` lets it run", name(vmi))),
                };
            }
            link(State::Good, "running".to_owned()).since(entered(vmi, "Running"))
        }
        "Failed" => link(State::Broken, "its process failed".to_owned())
            .shown_by(synchronized.map(|it| told(it, &owner)))
            .shown_by(events)
            .shown_by(last_lines(machine, 5))
            .advised(format!("`fairway vm restart {}` tries again", name(vmi))),
        "Succeeded" => link(State::Off, "its guest shut itself down".to_owned())
            .shown_by(last_lines(machine, 5))
            .advised(format!("`fairway vm start {}` starts it again", name(vmi))),
        phase => match synchronized {
            Some(_) if super::cloud_init::missing_seed(machine).is_some() => link(
                State::Waiting,
                "it cannot be started without its cloud-init data".to_owned(),
            ),
            Some(said) if super::storage::pulling(machine).is_some() => {
                link(State::Waiting, "it waits for a disk".to_owned()).shown_by([told(said, &owner)])
            }
            Some(said) => link(
                State::Broken,
                format!("it cannot be started: {}", field(said, "/message")),
            )
            .shown_by([told(said, &owner)])
            .shown_by(events)
            .advised(advice(field(said, "/message"))),
            None if !events.is_empty() => {
                let why = events[0].message.clone();
                link(State::Broken, format!("it does not start; phase {phase}: {why}"))
                    .shown_by(events)
                    .advised(advice(&why))
            }
            None => link(State::Waiting, format!("it is being started; phase {phase}")),
        },
    }
}

fn advice(message: &str) -> &'static str {
    if message.contains("KVM") || message.contains("kvm") {
        "the user of the machine cannot open /dev/kvm: give its group the right (`ls -l /dev/kvm`), or start the server with --machine-users none"
    } else if message.contains("Secret") || message.contains("ConfigMap") {
        "create what is missing, or correct its name in the machine"
    } else {
        "correct the machine as the message says; it is tried again by itself"
    }
}

/// What a machine says of starts that failed one after the other.
fn start_failure(vm: &Value) -> Option<&Value> {
    vm["status"].get("startFailure").filter(|it| it.is_object())
}

/// A machine that fails to start again and again.
fn failing(machine: &Machine, vm: &Value, failure: &Value) -> Link {
    let finding = format!(
        "it failed to start {} times in a row, and is tried again after {}",
        failure["consecutiveFailCount"].as_i64().unwrap_or(1),
        failure["retryAfterTimestamp"].as_str().unwrap_or("a while")
    );
    Link::new("boot", State::Broken, finding)
        .shown_by(machine.warnings("VirtualMachineInstance", name(vm)))
        .shown_by(machine.warnings("VirtualMachine", name(vm)))
        .shown_by(last_lines(machine, 5))
        .advised(format!("`fairway vm start {}` tries at once", name(vm)))
}

/// The end of the console.
pub(super) fn last_lines(machine: &Machine, count: usize) -> Vec<Evidence> {
    let Some(console) = &machine.console else {
        return Vec::new();
    };
    let lines: Vec<Evidence> = lines(console)
        .map(|it| Evidence::new("console", "", &it))
        .collect();
    lines[lines.len().saturating_sub(count)..].to_vec()
}
