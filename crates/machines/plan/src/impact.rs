//! What a change of a VirtualMachine will cost, said before it is made.

use std::fmt;

use serde_json::{Value, json};

use crate::lifecycle::live_update::{self, fixed_of};
use crate::lifecycle::{LiveChange, Revision, Update, to_be_moved};
use crate::settings::Settings;
use crate::view::{
    Amount, RunStrategy, VirtualMachine, VirtualMachineInstance, VirtualMachineSpec, Volume, read,
};
use crate::{defaults, instance};

/// What a change costs, the worse the later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Impact {
    /// Nothing that runs notices.
    #[default]
    None,
    /// It is made while the guest runs.
    Live,
    /// The guest moves, and goes on running.
    Migration,
    /// The guest restarts, or stops.
    Restart,
    /// Something must be deleted and made again.
    Recreation,
    /// What a guest wrote is gone.
    DataLoss,
}

impl fmt::Display for Impact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::None => "none",
            Self::Live => "live change",
            Self::Migration => "migration",
            Self::Restart => "restart",
            Self::Recreation => "re-creation",
            Self::DataLoss => "data loss",
        })
    }
}

/// What a change costs, and why, the worst first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The worst of it.
    pub impact: Impact,
    /// Each part, with its reason.
    pub reasons: Vec<(Impact, String)>,
}

impl Verdict {
    fn add(&mut self, impact: Impact, reason: impl Into<String>) {
        self.impact = self.impact.max(impact);
        self.reasons.push((impact, reason.into()));
    }

    fn sorted(mut self) -> Self {
        self.reasons
            .sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        self.reasons.dedup();
        self
    }
}

/// A change of a machine. Templates are expanded by size and taste where the caller can.
#[derive(Clone, Copy, Debug)]
pub struct Change<'c> {
    /// The object as it is; nothing if there is none.
    pub before: Option<&'c Value>,
    /// The object as it will be; nothing if it will be deleted.
    pub after: Option<&'c Value>,
    /// There is an instance.
    pub running: bool,
}

/// What a change costs.
pub fn of(change: Change<'_>, settings: &Settings) -> Verdict {
    let mut verdict = Verdict::default();
    match (change.before, change.after) {
        (None, _) => {}
        (Some(before), None) => deletion(before, change.running, &mut verdict),
        (Some(before), Some(after)) => update(before, after, change.running, settings, &mut verdict),
    }
    verdict.sorted()
}

fn spec_of(object: &Value) -> VirtualMachineSpec {
    let vm: Option<VirtualMachine> = read("VirtualMachine", object).ok();
    vm.map(|it| it.spec).unwrap_or_default()
}

fn deletion(before: &Value, running: bool, verdict: &mut Verdict) {
    let spec = spec_of(before);
    for template in &spec.data_volume_templates {
        let name = &template.metadata.name;
        verdict.add(
            Impact::DataLoss,
            format!("DataVolume {name} belongs to the machine and is deleted with it"),
        );
    }
    let volumes = spec.template.iter().flat_map(|it| &it.spec.volumes);
    for volume in volumes.filter(|it| running && is_ephemeral(it)) {
        verdict.add(
            Impact::DataLoss,
            format!("what the guest wrote to volume {} is thrown away", volume.name),
        );
    }
    verdict.add(Impact::Recreation, "the machine is deleted");
}

/// Content that is thrown away when the guest ends.
fn is_ephemeral(volume: &Volume) -> bool {
    volume.container_disk.is_some() || volume.ephemeral.is_some() || volume.empty_disk.is_some()
}

fn update(before: &Value, after: &Value, running: bool, settings: &Settings, verdict: &mut Verdict) {
    let (old, new) = (spec_of(before), spec_of(after));
    data_volumes(before, after, verdict);
    strategy(&old, &new, running, verdict);
    if !running {
        return;
    }
    let (was, is) = (&before["spec"], &after["spec"]);
    for matcher in ["instancetype", "preference"] {
        // An expanded template says more than the name that it came from.
        if was[matcher] != is[matcher] && was["template"] == is["template"] {
            verdict.add(
                Impact::Restart,
                format!("spec.{matcher} takes effect at the next start"),
            );
        }
    }
    template(before, after, settings, verdict);
    if verdict.impact == Impact::Restart {
        let volumes = old.template.iter().flat_map(|it| &it.spec.volumes);
        for volume in volumes.filter(|it| is_ephemeral(it)) {
            let reason = format!(
                "what the guest wrote to volume {} is thrown away by the restart",
                volume.name
            );
            verdict.add(Impact::DataLoss, reason);
        }
    }
}

fn strategy(old: &VirtualMachineSpec, new: &VirtualMachineSpec, running: bool, verdict: &mut Verdict) {
    let (old, new) = (old.strategy(), new.strategy());
    if old == new {
        return;
    }
    match (running, new) {
        (true, RunStrategy::Halted) => verdict.add(Impact::Restart, "the machine is stopped"),
        (false, RunStrategy::Always | RunStrategy::RerunOnFailure | RunStrategy::Once) => {
            verdict.add(Impact::None, "the machine is started");
        }
        _ => verdict.add(
            Impact::None,
            format!("run strategy {} takes the place of {}", new.word(), old.word()),
        ),
    }
}

fn data_volumes(before: &Value, after: &Value, verdict: &mut Verdict) {
    let templates = |object: &Value| -> Vec<Value> {
        object["spec"]["dataVolumeTemplates"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let new = templates(after);
    for template in templates(before) {
        let name = template["metadata"]["name"].as_str().unwrap_or_default();
        let Some(now) = new
            .iter()
            .find(|it| it["metadata"]["name"] == template["metadata"]["name"])
        else {
            verdict.add(
                Impact::None,
                format!("DataVolume {name} stays, but no longer comes with the machine"),
            );
            continue;
        };
        if template["spec"] == now["spec"] {
            continue;
        }
        let sizes = |spec: &Value| {
            let mut spec = spec.clone();
            for part in ["pvc", "storage"] {
                if let Some(resources) = spec[part].as_object_mut() {
                    resources.shift_remove("resources");
                }
            }
            spec
        };
        if sizes(&template["spec"]) == sizes(&now["spec"]) {
            verdict.add(Impact::Live, format!("DataVolume {name} is resized"));
        } else {
            let reason =
                format!("DataVolume {name} has its content already; delete it to have it made again");
            verdict.add(Impact::Recreation, reason);
        }
    }
}

/// What becomes of a template that changed: the very decision that is made about the instance afterwards.
fn template(before: &Value, after: &Value, settings: &Settings, verdict: &mut Verdict) {
    let (old, new) = (&before["spec"]["template"], &after["spec"]["template"]);
    if old == new {
        return;
    }
    let Some(vmi) = started_from(before, settings) else {
        verdict.add(Impact::Restart, "spec.template takes effect at the next start");
        return;
    };
    let (started, current) = (&old["spec"], &new["spec"]);
    let revision = Revision {
        started,
        current,
        started_metadata: &old["metadata"],
        metadata: &new["metadata"],
    };
    match live_update::update(&revision, &vmi, settings) {
        Update::Nothing => {}
        Update::Restart(why) | Update::Wait(why) if why != live_update::TEMPLATE => {
            verdict.add(Impact::Restart, why);
        }
        Update::Restart(_) | Update::Wait(_) => {
            let [started, current] = [started, current].map(|it| fixed_of(it, &revision, settings));
            for path in differences(&started, &current) {
                let reason = format!("spec.template.spec.{path} takes effect at the next start");
                verdict.add(Impact::Restart, reason);
            }
        }
        Update::Live(changes) => {
            for change in &changes {
                let (impact, reason) = live(change, &vmi);
                verdict.add(impact, reason);
            }
        }
    }
    for name in to_be_moved(after, started) {
        let reason = format!(
            "the content of volume {name} is not copied, and the next start takes the new volume as it is"
        );
        verdict.add(Impact::Restart, reason);
    }
}

/// The instance that a machine has, as it was when it started.
fn started_from(vm: &Value, settings: &Settings) -> Option<VirtualMachineInstance> {
    let mut vmi = instance::of_machine(vm, None, None, settings, false).ok()?;
    let metadata = vm["spec"]["template"]["metadata"].as_object();
    vmi["metadata"] = json!(metadata.cloned().unwrap_or_default());
    defaults::instance(&mut vmi, settings).ok()?;
    read("VirtualMachineInstance", &vmi).ok()
}

fn live(change: &LiveChange, vmi: &VirtualMachineInstance) -> (Impact, String) {
    let domain = &vmi.spec.domain;
    match change {
        LiveChange::Sockets(count) => {
            let was = domain.cpu.as_ref().map_or(1, |it| it.sockets);
            (Impact::Live, format!("sockets grow from {was} to {count}"))
        }
        LiveChange::Memory(guest) => {
            let was = domain.memory.as_ref().and_then(|it| it.guest);
            let was = was.map(Amount::text).unwrap_or_default();
            (Impact::Live, format!("memory grows from {was} to {guest}"))
        }
        LiveChange::Volumes { .. } => (Impact::Live, "volumes come or go".to_owned()),
        LiveChange::Interfaces { .. } => (Impact::Live, "network cards come or go".to_owned()),
        LiveChange::Placement { field, .. } => (
            Impact::Migration,
            format!("spec.template.spec.{field}: the machine moves if its node does not suit"),
        ),
        LiveChange::Metadata(_) => (
            Impact::Live,
            "labels and annotations of the instance change".to_owned(),
        ),
    }
}

/// Paths of fields in which two objects differ, as deep as they are objects.
fn differences(a: &Value, b: &Value) -> Vec<String> {
    let (Value::Object(left), Value::Object(right)) = (a, b) else {
        return vec![String::new()];
    };
    let mut keys: Vec<&String> = left.keys().chain(right.keys()).collect();
    keys.sort();
    keys.dedup();
    let mut found = Vec::new();
    for key in keys {
        let (one, other) = (
            left.get(key).unwrap_or(&Value::Null),
            right.get(key).unwrap_or(&Value::Null),
        );
        if one == other {
            continue;
        }
        for below in differences(one, other) {
            found.push(if below.is_empty() {
                key.clone()
            } else {
                format!("{key}.{below}")
            });
        }
    }
    found
}

#[cfg(test)]
mod tests;
