//! What a change of a VirtualMachine will cost, said before it is made.

use std::fmt;

use serde_json::Value;

use crate::lifecycle::Revision;
use crate::lifecycle::live_update::{PLACEMENT, fixed_of};
use crate::settings::Settings;
use crate::view::{RunStrategy, VirtualMachine, VirtualMachineSpec, Volume, read};

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

fn template(before: &Value, after: &Value, settings: &Settings, verdict: &mut Verdict) {
    let (old, new) = (&before["spec"]["template"], &after["spec"]["template"]);
    if old["metadata"] != new["metadata"] {
        verdict.add(Impact::Live, "labels and annotations of the instance change");
    }
    let (started, current) = (&old["spec"], &new["spec"]);
    if started == current {
        return;
    }
    let revision = Revision {
        started,
        current,
        labels: None,
        migrate_volumes: after["spec"]["updateVolumesStrategy"] == "Migration",
    };
    let fixed = (
        fixed_of(started, &revision, settings),
        fixed_of(current, &revision, settings),
    );
    if fixed.0 != fixed.1 {
        for path in differences(&fixed.0, &fixed.1) {
            verdict.add(
                Impact::Restart,
                format!("spec.template.spec.{path} takes effect at the next start"),
            );
        }
        return;
    }
    for field in PLACEMENT {
        if started.get(field) != current.get(field) {
            verdict.add(
                Impact::Migration,
                format!("spec.template.spec.{field}: the machine moves if its node does not suit"),
            );
        }
    }
    let sockets = |spec: &Value| spec["domain"]["cpu"]["sockets"].as_u64().unwrap_or(1);
    let most = started["domain"]["cpu"]["maxSockets"].as_u64();
    let (was, is) = (sockets(started), sockets(current));
    if is < was {
        verdict.add(
            Impact::Restart,
            "sockets cannot be taken away while the guest runs",
        );
    } else if most.is_some_and(|most| is > most) {
        verdict.add(
            Impact::Restart,
            "there are more sockets than the machine can grow to",
        );
    } else if is > was {
        verdict.add(Impact::Live, format!("sockets grow from {was} to {is}"));
    }
    memory(started, current, verdict);
    if started["volumes"] != current["volumes"] {
        if revision.migrate_volumes {
            verdict.add(Impact::Migration, "volumes are moved");
        } else {
            verdict.add(Impact::Live, "volumes come or go");
        }
    }
    if started["domain"]["devices"]["interfaces"] != current["domain"]["devices"]["interfaces"] {
        verdict.add(Impact::Live, "network cards come or go");
    }
}

fn memory(started: &Value, current: &Value, verdict: &mut Verdict) {
    let guest = |spec: &Value, field: &str| {
        fairway_kernel_scalar::quantity::Quantity::from_value(&spec["domain"]["memory"][field])
    };
    let (Some(was), Some(is)) = (guest(started, "guest"), guest(current, "guest")) else {
        return;
    };
    if is < was {
        verdict.add(
            Impact::Restart,
            "memory cannot shrink below what the guest started with",
        );
    } else if guest(started, "maxGuest").is_some_and(|most| is > most) {
        verdict.add(
            Impact::Restart,
            "there is more memory than the machine can grow to",
        );
    } else if is > was {
        verdict.add(
            Impact::Live,
            format!("memory grows from {} to {}", was.canonical(), is.canonical()),
        );
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
