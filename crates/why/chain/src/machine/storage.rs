//! The disks: the DataVolumes that fill them, the claims that hold them, and what they are filled from.

use serde_json::Value;

use super::Machine;
use crate::Facts;
use crate::cause::{is_limit, is_of_claims, is_of_disks};
use crate::disk::{failing, held_up, missing_source, phase, progress};
use crate::link::{Link, State};
use crate::object::{condition, field, items, name, title, told};

/// The DataVolumes, the claims, and what fills them, in this order: the first that is not well.
pub(super) fn disk(_facts: &Facts, machine: &Machine) -> Link {
    let link = |state, finding: String| Link::new("disk", state, finding);
    if machine.is_absent() {
        return link(State::Waiting, "there is no machine yet".to_owned());
    }
    let paused = machine.vmi.as_ref().and_then(|it| condition(it, "Paused"));
    if let Some(paused) = paused.filter(|it| it["status"] == "True" && it["reason"] == "PausedIOError") {
        return link(
            State::Broken,
            format!("writing fails, and it is paused: {}", field(paused, "/message")),
        )
        .shown_by([told(paused, "")])
        .shown_by(machine.warnings("VirtualMachineInstance", &machine.name))
        .advised("look at the disk of its node: a full or failing one stops a guest that writes");
    }
    let parts = [data_volumes(machine), claims(machine), image(machine)];
    let is_well = |it: &&Link| matches!(it.state, State::Good | State::Unused);
    if let Some(part) = parts.iter().find(|it| !is_well(it)) {
        // What keeps it from being placed says more than that it is not there.
        let unplaced = unplaced(machine);
        if let (State::Broken | State::Waiting, Some(said)) = (part.state, unplaced) {
            let advice = part.advice.clone();
            let advice =
                advice.unwrap_or_else(|| "`kubectl describe pvc` shows what the claim waits for".to_owned());
            return link(State::Broken, part.finding.clone())
                .shown_by([told(said, "")])
                .shown_by(part.evidence.iter().cloned())
                .shown_by(machine.warnings("VirtualMachineInstance", &machine.name))
                .advised(advice);
        }
        return match part.state {
            State::Waiting => uncreated(machine).unwrap_or_else(|| part.clone()),
            _ => part.clone(),
        };
    }
    if parts.iter().all(|it| it.state == State::Unused) {
        return link(
            State::Unused,
            "the machine has no disk that is filled or kept".to_owned(),
        );
    }
    let used: Vec<&str> = parts
        .iter()
        .filter(|it| it.state == State::Good)
        .map(|it| it.finding.as_str())
        .collect();
    let at = machine.data_volumes.iter().flatten();
    let at = at
        .filter(|it| named(machine).contains(&name(it)))
        .filter_map(|it| condition(it, "Ready"))
        .map(|it| field(it, "/lastTransitionTime"))
        .max();
    link(State::Good, used.join("; ")).since(at.unwrap_or_default())
}

/// What an instance says that is not placed because of a claim which nobody fills.
fn unplaced(machine: &Machine) -> Option<&Value> {
    let vmi = machine.vmi.as_ref()?;
    let said = condition(vmi, "PodScheduled").filter(|it| it["status"] == "False")?;
    let all = machine.data_volumes.as_deref().unwrap_or_default();
    let is_filling = |it: &&str| find(all, it).is_some_and(|it| !matches!(phase(it), "Succeeded" | "Failed"));
    let is_own = is_of_claims(field(said, "/message")) && !disks(machine).iter().any(is_filling);
    Some(said).filter(|_| is_own)
}

/// A DataVolume that the machine could not make.
fn uncreated(machine: &Machine) -> Option<Link> {
    let vm = machine.vm.as_ref().filter(|_| machine.vmi.is_none())?;
    let failure = condition(vm, "Failure").filter(|it| it["status"] == "True")?;
    let why = field(failure, "/message");
    if !is_of_disks(why) || is_limit(why) {
        return None;
    }
    let advice = "correct what the DataVolume is filled from: `fairway image list` and `kubectl get datasources -A` show what there is";
    Some(
        Link::new("disk", State::Broken, why)
            .shown_by([told(failure, &title(vm))])
            .shown_by(machine.warnings("VirtualMachine", name(vm)))
            .advised(advice),
    )
}

/// Names of the disks: DataVolumes and claims.
pub(super) fn disks(machine: &Machine) -> Vec<&str> {
    let own = volumes(machine)
        .iter()
        .map(|it| field(it, "/persistentVolumeClaim/claimName"))
        .filter(|it| !it.is_empty());
    own.chain(named(machine)).collect()
}

/// The condition of an instance whose container disk cannot be pulled.
pub(super) fn pulling(machine: &Machine) -> Option<&Value> {
    let pull = machine.vmi.as_ref().and_then(|it| condition(it, "Synchronized"));
    pull.filter(|it| {
        it["status"] == "False" && matches!(field(it, "/reason"), "ErrImagePull" | "ImagePullBackOff")
    })
}

/// The volumes of the machine: those of its instance, if there is one.
fn volumes(machine: &Machine) -> &[Value] {
    match (&machine.vmi, &machine.vm) {
        (Some(vmi), _) => items(vmi, "/spec/volumes"),
        (None, Some(vm)) => items(vm, "/spec/template/spec/volumes"),
        (None, None) => &[],
    }
}

/// The DataVolumes that the machine names.
fn named(machine: &Machine) -> Vec<&str> {
    volumes(machine)
        .iter()
        .map(|it| field(it, "/dataVolume/name"))
        .filter(|it| !it.is_empty())
        .collect()
}

fn find<'f>(all: &'f [Value], wanted: &str) -> Option<&'f Value> {
    all.iter().find(|it| name(it) == wanted)
}

fn is_template(machine: &Machine, wanted: &str) -> bool {
    let vm = machine.vm.as_ref();
    vm.is_some_and(|vm| {
        items(vm, "/spec/dataVolumeTemplates")
            .iter()
            .any(|it| name(it) == wanted)
    })
}

/// Whether they are there.
fn data_volumes(machine: &Machine) -> Link {
    let link = |state, finding: String| Link::new("disk", state, finding);
    let named = named(machine);
    if named.is_empty() {
        return link(State::Unused, "the machine uses none".to_owned());
    }
    let Some(all) = &machine.data_volumes else {
        return link(State::Unknown, "DataVolumes cannot be read".to_owned());
    };
    let mut said = Vec::new();
    for wanted in named {
        let claims = machine.claims.as_deref().unwrap_or_default();
        let Some(found) = find(all, wanted) else {
            // A disk that was filled long ago may have lost its DataVolume.
            if find(claims, wanted).is_some() {
                said.push(format!("{wanted} (its claim alone)"));
                continue;
            }
            if is_template(machine, wanted) {
                return link(State::Waiting, format!("{wanted} of a template is not there yet"))
                    .shown_by(machine.warnings("VirtualMachine", &machine.name));
            }
            return link(
                State::Broken,
                format!("the machine names the DataVolume {wanted:?}, which does not exist"),
            )
            .advised("create it, or correct the name in spec.template.spec.volumes");
        };
        said.push(format!("{wanted} {}", phase(found)));
    }
    link(State::Good, said.join(", "))
}

/// Whether claims are bound that nobody is filling.
fn claims(machine: &Machine) -> Link {
    let link = |state, finding: String| Link::new("disk", state, finding);
    let is_named = |it: &&str| !it.is_empty();
    let own = volumes(machine)
        .iter()
        .map(|it| field(it, "/persistentVolumeClaim/claimName"))
        .filter(is_named);
    let wanted: Vec<&str> = own.chain(named(machine)).collect();
    if wanted.is_empty() {
        return link(State::Unused, "the machine uses none".to_owned());
    }
    let Some(all) = &machine.claims else {
        return link(State::Unknown, "claims cannot be read".to_owned());
    };
    let volumes = machine.data_volumes.as_deref().unwrap_or_default();
    let mut said = Vec::new();
    for name in wanted {
        let filling = find(volumes, name).is_some_and(|it| phase(it) != "Succeeded");
        let events = machine.warnings("PersistentVolumeClaim", name);
        match find(all, name) {
            None if filling => said.push(format!("{name} is not there yet")),
            None => {
                return link(
                    State::Broken,
                    format!("the machine needs the claim {name:?}, which does not exist"),
                )
                .advised("create it, or correct the name in spec.template.spec.volumes");
            }
            Some(claim) => match field(claim, "/status/phase") {
                "Bound" => said.push(format!("{name} Bound")),
                "Lost" => {
                    return link(State::Broken, format!("the claim {name} has lost its volume"))
                        .shown_by(events);
                }
                _ if filling => said.push(format!("{name} is being filled")),
                phase => {
                    let state = if events.is_empty() {
                        State::Waiting
                    } else {
                        State::Broken
                    };
                    let phase = if phase.is_empty() { "Pending" } else { phase };
                    return link(state, format!("the claim {name} is {phase}")).shown_by(events);
                }
            },
        }
    }
    link(State::Good, said.join(", "))
}

/// Whether disks have, or get, their content.
fn image(machine: &Machine) -> Link {
    let link = |state, finding: String| Link::new("disk", state, finding);
    if machine.data_volumes.is_none() && !named(machine).is_empty() {
        return link(State::Unknown, "DataVolumes cannot be read".to_owned());
    }
    let all = machine.data_volumes.as_deref().unwrap_or_default();
    let unfinished = named(machine)
        .into_iter()
        .filter_map(|it| find(all, it))
        .find(|it| phase(it) != "Succeeded");
    if let Some(dv) = unfinished {
        return filling(machine, dv);
    }
    let containers: Vec<&str> = volumes(machine)
        .iter()
        .map(|it| field(it, "/containerDisk/image"))
        .filter(|it| !it.is_empty())
        .collect();
    if let Some(pull) = pulling(machine) {
        return link(
            State::Broken,
            format!("a container disk cannot be pulled: {}", field(pull, "/message")),
        )
        .shown_by([told(pull, "")])
        .shown_by(machine.warnings("VirtualMachineInstance", &machine.name));
    }
    match (containers.as_slice(), named(machine).is_empty()) {
        ([], true) => link(State::Unused, "no disk is filled from an image".to_owned()),
        ([], false) => link(State::Good, "disks have their content".to_owned()),
        (some, _) => link(State::Good, some.join(", ")),
    }
}

/// A DataVolume that is not done.
fn filling(machine: &Machine, dv: &Value) -> Link {
    let link = |state, finding: String| Link::new("disk", state, finding);
    let wanted = name(dv);
    let events = machine.warnings("DataVolume", wanted);
    if !super::process::homeless(machine).is_empty() {
        return link(State::Waiting, format!("{wanted} waits for a node"));
    }
    if let Some(source) = missing_source(machine.data_sources.as_deref(), dv) {
        return link(
            State::Broken,
            format!("the DataVolume {wanted} is to be filled from {source}"),
        )
        .shown_by(events)
        .advised("`fairway image list` and `kubectl get datasources -A` show what there is");
    }
    if let Some(failed) = failing("disk", dv, &events) {
        return failed;
    }
    let finding = progress(dv);
    match events.is_empty() {
        true => link(State::Waiting, finding),
        false => link(State::Broken, format!("{finding}: {}", events[0].message))
            .advised("do as the message says; filling goes on by itself")
            .shown_by(held_up(dv).map(|it| told(it, &format!("DataVolume {wanted}"))))
            .shown_by(events),
    }
}
