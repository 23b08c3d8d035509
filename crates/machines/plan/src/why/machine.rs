//! The machine itself, where it is placed, and its process.

use serde_json::Value;

use super::{Facts, Link, State, condition, field, name, told, warnings};
use crate::view::RunStrategy;

fn strategy(vm: &Value) -> RunStrategy {
    match (vm["spec"]["runStrategy"].as_str(), &vm["spec"]["running"]) {
        (Some(word), _) => RunStrategy::parse(word).unwrap_or_default(),
        (None, running) if *running == true => RunStrategy::Always,
        _ => RunStrategy::Halted,
    }
}

/// The object, and whether anybody wants it to run.
pub(super) fn machine(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("VirtualMachine", state, finding);
    let Some(vm) = &facts.vm else {
        return match &facts.vmi {
            // An instance may be nobody's.
            Some(_) => link(
                State::Unused,
                "the instance was made without a machine".to_owned(),
            ),
            None => link(
                State::Broken,
                format!(
                    "there is no VirtualMachine {:?} in namespace {:?}",
                    facts.name, facts.namespace
                ),
            )
            .advised("check name, namespace (-n) and workspace (-w): `fairway vm list -A` shows all"),
        };
    };
    let printable = field(vm, "/status/printableStatus");
    if !field(vm, "/metadata/deletionTimestamp").is_empty() {
        return link(State::Off, "it is being deleted".to_owned());
    }
    let strategy = strategy(vm);
    if facts.vmi.is_none() {
        let failed = condition(vm, "Failure").filter(|it| it["status"] == "True");
        if let Some(failure) = failed {
            let finding = format!("no instance could be started: {}", field(failure, "/message"));
            return link(State::Broken, finding)
                .shown_by([told(failure)])
                .shown_by(warnings(facts, "VirtualMachine", name(vm)));
        }
        if let Some(failure) = vm["status"]["startFailure"].as_object() {
            let again = failure.get("retryAfterTimestamp").and_then(Value::as_str);
            let finding = format!(
                "it failed to start {} times in a row, and is tried again after {}",
                failure
                    .get("consecutiveFailCount")
                    .and_then(Value::as_i64)
                    .unwrap_or(1),
                again.unwrap_or("a while")
            );
            return link(State::Broken, finding)
                .shown_by(warnings(facts, "VirtualMachineInstance", name(vm)))
                .shown_by(warnings(facts, "VirtualMachine", name(vm)))
                .advised(format!("`fairway vm start {}` tries at once", name(vm)));
        }
        let off = match strategy {
            RunStrategy::Halted => Some("it is stopped, because its runStrategy is Halted"),
            RunStrategy::Manual => {
                Some("it is stopped, because its runStrategy is Manual and nobody has started it")
            }
            RunStrategy::RerunOnFailure | RunStrategy::Once if printable == "Stopped" => {
                Some("it is stopped: its guest ended, and its runStrategy does not start it again")
            }
            RunStrategy::Always | RunStrategy::RerunOnFailure | RunStrategy::Once => None,
        };
        if let Some(finding) = off {
            return link(State::Off, finding.to_owned())
                .advised(format!("`fairway vm start {}` starts it", name(vm)));
        }
    }
    let restart = condition(vm, "RestartRequired").filter(|it| it["status"] == "True");
    let mut finding = format!("{printable}, runStrategy {}", strategy.word());
    if restart.is_some() {
        finding += "; a change waits for a restart";
    }
    link(State::Good, finding).shown_by(restart.map(told))
}

/// The instance and its node.
pub(super) fn scheduling(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("scheduling", state, finding);
    let Some(vmi) = &facts.vmi else {
        return link(State::Waiting, "there is no instance yet".to_owned())
            .shown_by(warnings(facts, "VirtualMachine", &facts.name))
            .advised("look again in a moment; if that does not change, at the server's log");
    };
    let node = field(vmi, "/status/nodeName");
    if node.is_empty() {
        let said = condition(vmi, "PodScheduled").filter(|it| it["status"] == "False");
        return match said {
            Some(said) => link(
                State::Broken,
                format!("no node takes it: {}", field(said, "/message")),
            )
            .shown_by([told(said)])
            .shown_by(warnings(facts, "VirtualMachineInstance", name(vmi)))
            .advised("`kubectl describe nodes` shows what nodes have left, their labels and their taints"),
            None => link(
                State::Waiting,
                format!("it has no node yet; phase {}", phase(vmi)),
            ),
        };
    }
    let Some(nodes) = &facts.nodes else {
        return link(State::Good, format!("on node {node}"));
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
        .shown_by([told(ready)]),
        _ => link(State::Good, format!("on node {node}")),
    }
}

fn phase(vmi: &Value) -> &str {
    match field(vmi, "/status/phase") {
        "" => "unset",
        phase => phase,
    }
}

/// The process.
pub(super) fn process(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("QEMU", state, finding);
    let Some(vmi) = &facts.vmi else {
        return link(State::Unknown, "there is no instance".to_owned());
    };
    let events = warnings(facts, "VirtualMachineInstance", name(vmi));
    let synchronized = condition(vmi, "Synchronized").filter(|it| it["status"] == "False");
    match phase(vmi) {
        "Running" => {
            if let Some(paused) = condition(vmi, "Paused").filter(|it| it["status"] == "True") {
                let is_wanted = paused["reason"] == "PausedByUser";
                let finding = format!("it is paused: {}", field(paused, "/message"));
                let (state, advice) = match is_wanted {
                    true => (
                        State::Off,
                        format!("`fairway vm unpause {}` lets it run", name(vmi)),
                    ),
                    false => (
                        State::Broken,
                        "look at the disk of its node: a full or failing one stops a guest that writes"
                            .to_owned(),
                    ),
                };
                return link(state, finding)
                    .shown_by([told(paused)])
                    .shown_by(events)
                    .advised(advice);
            }
            link(State::Good, "running".to_owned()).shown_by(synchronized.map(told))
        }
        "Failed" => link(State::Broken, "its process failed".to_owned())
            .shown_by(synchronized.map(told))
            .shown_by(events)
            .shown_by(last_lines(facts, 5)),
        "Succeeded" => link(State::Off, "its guest shut itself down".to_owned())
            .shown_by(last_lines(facts, 5))
            .advised(format!("`fairway vm start {}` starts it again", name(vmi))),
        phase => match synchronized {
            Some(said) => link(
                State::Broken,
                format!("it cannot be started: {}", field(said, "/message")),
            )
            .shown_by([told(said)])
            .shown_by(events),
            None if !events.is_empty() => {
                link(State::Broken, format!("it does not start; phase {phase}")).shown_by(events)
            }
            None => link(State::Waiting, format!("it is being started; phase {phase}")),
        },
    }
}

/// The end of the console.
pub(super) fn last_lines(facts: &Facts, count: usize) -> Vec<String> {
    let Some(console) = &facts.console else {
        return Vec::new();
    };
    let lines: Vec<String> = super::guest::lines(console)
        .map(|it| format!("console: {it}"))
        .collect();
    lines[lines.len().saturating_sub(count)..].to_vec()
}
