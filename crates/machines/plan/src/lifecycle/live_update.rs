//! What changed in a machine's template since its instance was started, and whether that can be done while it runs.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::status::is_migrating;
use super::template_metadata;
use crate::memory_hotplug;
use crate::settings::Settings;
use crate::view::{self, Condition, InstanceSpec, VirtualMachineInstance};

/// A machine's template, then and now; its `spec` is expanded by size and taste.
#[derive(Clone, Copy, Debug)]
pub struct Revision<'r> {
    /// What the instance was started from.
    pub started: &'r Value,
    /// What the machine says now.
    pub current: &'r Value,
    /// The `metadata` of the template that the instance was started from.
    pub started_metadata: &'r Value,
    /// The `metadata` of the template now, which instances take over while they run.
    pub metadata: &'r Value,
}

impl Revision<'_> {
    fn is_unchanged(&self) -> bool {
        self.started == self.current
    }
}

/// A change that is made while the guest runs.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveChange {
    /// Sockets.
    Sockets(u32),
    /// Memory, as the API writes it.
    Memory(String),
    /// Disks and volumes: the new lists.
    Volumes {
        /// `spec.volumes`.
        volumes: Value,
        /// `spec.domain.devices.disks`.
        disks: Value,
    },
    /// Network cards and networks: the new lists.
    Interfaces {
        /// `spec.domain.devices.interfaces`.
        interfaces: Value,
        /// `spec.networks`.
        networks: Value,
    },
    /// Where it may run: a field of the spec and its value.
    Placement {
        /// The field.
        field: &'static str,
        /// Its value; null for none.
        value: Value,
    },
    /// Labels and annotations of the instance: a merge patch of its metadata.
    Metadata(Value),
}

/// What is to be done about changes.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// Nothing.
    Nothing,
    /// These changes, while it runs.
    Live(Vec<LiveChange>),
    /// Something needs a restart, and what.
    Restart(String),
    /// Something must end first.
    Wait(String),
}

/// Something else was changed than what can be changed while the guest runs.
pub(crate) const TEMPLATE: &str = "a non-live-updatable field was changed in the template spec";
/// Condition of an instance: a device cannot come or go before the machine starts anew. It is the node's word for what upstream's
/// conditions about processors and memory do not say.
pub const HOTPLUG_FAILED: &str = "fairway.dev/HotplugFailed";
/// Fields of the spec that say where a machine may run.
const PLACEMENT: [&str; 3] = ["nodeSelector", "affinity", "tolerations"];

/// What is to be done about what changed.
pub(crate) fn update(revision: &Revision<'_>, vmi: &VirtualMachineInstance, settings: &Settings) -> Update {
    let mut changes = Vec::new();
    let metadata = template_metadata::change(&vmi.metadata, revision.started_metadata, revision.metadata);
    changes.extend(metadata.map(LiveChange::Metadata));
    // What can be changed is taken out on both sides; what is left must be the same.
    if !revision.is_unchanged() && fixed(revision, settings) != fixed_of(revision.current, revision, settings)
    {
        return Update::Restart(TEMPLATE.to_owned());
    }
    // The node could not make a change that reached the instance.
    if let Some(failed) = vmi
        .status
        .conditions
        .iter()
        .find(|it| it.kind == HOTPLUG_FAILED && it.status == "True")
    {
        return Update::Restart(failed.message.clone());
    }
    // A change that was taken back may have reached the instance before, so that it is the instance that counts.
    if settings.live_update {
        match resources(revision, vmi) {
            Ok(found) => changes.extend(found),
            Err(update) => return update,
        }
        changes.extend(placement(revision, vmi));
    }
    changes.extend(volumes(revision, vmi));
    changes.extend(interfaces(revision, vmi));
    if changes.is_empty() {
        return Update::Nothing;
    }
    if is_migrating(vmi) {
        return Update::Wait("changes wait for the migration that is under way".to_owned());
    }
    Update::Live(changes)
}

/// What an instance was started from, without what can be changed.
fn fixed(revision: &Revision<'_>, settings: &Settings) -> Value {
    fixed_of(revision.started, revision, settings)
}

/// A template without what can be changed while the guest runs, given both.
pub(crate) fn fixed_of(template: &Value, revision: &Revision<'_>, settings: &Settings) -> Value {
    let mut fixed = template.clone();
    let Some(spec) = fixed.as_object_mut() else {
        return fixed;
    };
    if settings.live_update {
        remove(spec, &["domain", "cpu", "sockets"]);
        remove(spec, &["domain", "memory", "guest"]);
        for field in PLACEMENT {
            spec.shift_remove(field);
        }
        if volumes_can_change(revision) {
            spec.shift_remove("volumes");
            remove(spec, &["domain", "devices", "disks"]);
        }
    }
    if settings.live_update && interfaces_can_change(revision) {
        spec.shift_remove("networks");
        remove(spec, &["domain", "devices", "interfaces"]);
    }
    tidy(&mut fixed);
    fixed
}

/// Objects and lists with nothing in them are as good as absent, as they are to Go.
fn tidy(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.values_mut().for_each(tidy);
        let empty: Vec<String> = fields
            .iter()
            .filter(|(_, value)| value.is_null() || value.as_array().is_some_and(Vec::is_empty))
            .map(|(key, _)| key.clone())
            .collect();
        for key in empty {
            fields.shift_remove(&key);
        }
        for holder in ["cpu", "memory"] {
            if fields
                .get(holder)
                .and_then(Value::as_object)
                .is_some_and(Map::is_empty)
            {
                fields.shift_remove(holder);
            }
        }
    }
}

fn remove(spec: &mut Map<String, Value>, path: &[&str]) {
    match path {
        [] => {}
        [last] => {
            spec.shift_remove(*last);
        }
        [first, rest @ ..] => {
            if let Some(Value::Object(inner)) = spec.get_mut(*first) {
                remove(inner, rest);
            }
        }
    }
}

fn by_name<'v>(spec: &'v Value, path: &[&str]) -> BTreeMap<&'v str, &'v Value> {
    let list = path
        .iter()
        .try_fold(spec, |value, name| value.get(name))
        .and_then(Value::as_array);
    let items = list.into_iter().flatten();
    items.filter_map(|it| Some((it["name"].as_str()?, it))).collect()
}

fn is_hotplug(volume: &Value) -> bool {
    let sources = ["persistentVolumeClaim", "dataVolume"];
    volume["memoryDump"].is_object()
        || sources
            .iter()
            .any(|it| volume[*it]["hotpluggable"] == Value::Bool(true))
}

/// Only volumes that may come and go came or went.
fn volumes_can_change(revision: &Revision<'_>) -> bool {
    let (old, new) = (
        by_name(revision.started, &["volumes"]),
        by_name(revision.current, &["volumes"]),
    );
    let disks = ["domain", "devices", "disks"];
    let (old_disks, new_disks) = (
        by_name(revision.started, &disks),
        by_name(revision.current, &disks),
    );
    let volumes = new
        .iter()
        .all(|(name, volume)| is_hotplug(volume) || old.get(name) == Some(volume));
    let gone = old
        .iter()
        .all(|(name, volume)| new.contains_key(name) || is_hotplug(volume));
    let may_go = |name: &str| {
        let volume = new.get(name).or_else(|| old.get(name));
        volume.is_some_and(|it| is_hotplug(it))
    };
    let disks = new_disks
        .iter()
        .all(|(name, disk)| may_go(name) || old_disks.get(name) == Some(disk));
    let disks_gone = old_disks
        .keys()
        .all(|name| new_disks.contains_key(name) || may_go(name));
    volumes && gone && disks && disks_gone
}

/// Cards came with a network of their own, went by `state: absent`, or had their cable pulled; nothing else.
fn interfaces_can_change(revision: &Revision<'_>) -> bool {
    let cards = ["domain", "devices", "interfaces"];
    let (old, new) = (
        by_name(revision.started, &cards),
        by_name(revision.current, &cards),
    );
    let (old_networks, new_networks) = (
        by_name(revision.started, &["networks"]),
        by_name(revision.current, &["networks"]),
    );
    let without_state = |card: &Value| {
        let mut card = card.clone();
        if let Some(fields) = card.as_object_mut() {
            fields.shift_remove("state");
        }
        card
    };
    let bridged = |name: &str, card: &Value| {
        let secondary = new_networks.get(name).is_some_and(|it| it["multus"].is_object());
        card["bridge"].is_object() && secondary
    };
    let kept = new.iter().all(|(name, card)| match old.get(name) {
        Some(before) => {
            without_state(before) == without_state(card) && old_networks.get(name) == new_networks.get(name)
        }
        None => bridged(name, card),
    });
    // One that is no longer listed must have been taken out before.
    let gone = old
        .iter()
        .all(|(name, card)| new.contains_key(name) || card["state"] == "absent");
    kept && gone
}

fn resources(revision: &Revision<'_>, vmi: &VirtualMachineInstance) -> Result<Vec<LiveChange>, Update> {
    let mut changes = Vec::new();
    let Ok(wanted) = view::read::<InstanceSpec>("VirtualMachineInstance", revision.current) else {
        return Ok(changes);
    };
    let restart = |why: &str| Err(Update::Restart(why.to_owned()));
    let conditions = &vmi.status.conditions;
    let failed = |kind: &str| {
        conditions
            .iter()
            .find(|it| it.kind == kind && it.status == "False")
    };
    if let Some(failed) = failed("HotVCPUChange") {
        return restart(&format!(
            "CPU sockets updated in template spec. {}",
            failed.message
        ));
    }
    let (new, now) = (
        wanted.domain.cpu.unwrap_or_default(),
        vmi.spec.domain.cpu.clone().unwrap_or_default(),
    );
    if new.sockets != 0 && new.sockets != now.sockets {
        if Condition::is_true(&vmi.status.conditions, "HotVCPUChange") {
            return Err(Update::Wait("another CPU hotplug is in progress".to_owned()));
        }
        if new.sockets > now.max_sockets {
            return restart("CPU sockets updated in template spec to a value higher than what's available");
        }
        if new.sockets < now.sockets {
            return restart("Reduction of CPU socket count requires a restart");
        }
        changes.push(LiveChange::Sockets(new.sockets));
    }
    if failed("HotMemoryChange").is_some() {
        let why = "memory updated in template spec. Memory-hotplug failed and is not available for this VM configuration";
        return restart(why);
    }
    let guest = wanted.domain.memory.as_ref().and_then(|it| it.guest);
    let memory = vmi.spec.domain.memory.clone().unwrap_or_default();
    let (Some(guest), Some(current)) = (guest, memory.guest) else {
        return Ok(changes);
    };
    if guest == current {
        return Ok(changes);
    }
    let Some(most) = memory.max_guest else {
        return restart(
            "memory updated in template spec. Memory-hotplug is not available for this VM configuration",
        );
    };
    if Condition::is_true(conditions, "HotMemoryChange") {
        return Err(Update::Wait("another memory hotplug is in progress".to_owned()));
    }
    let at_start = view::read::<InstanceSpec>("VirtualMachineInstance", revision.started).ok();
    let at_start = at_start
        .and_then(|it| it.domain.memory)
        .and_then(|it| it.guest)
        .unwrap_or(current);
    if guest < at_start {
        return restart("memory updated in template spec to a value lower than what the VM started with");
    }
    if guest > most {
        return restart("memory updated in template spec to a value higher than what's available");
    }
    let mut spec: InstanceSpec = vmi.spec.clone();
    if let Some(memory) = spec.domain.memory.as_mut() {
        memory.guest = Some(guest);
    }
    if let Err(error) = memory_hotplug::check(&spec, Some(most)) {
        return restart(&format!("memory hotplug not supported, {error}"));
    }
    changes.push(LiveChange::Memory(guest.text()));
    Ok(changes)
}

fn same(revision: &Revision<'_>, path: &[&str]) -> bool {
    by_name(revision.started, path) == by_name(revision.current, path)
}

fn names<'n>(items: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let mut names: Vec<&str> = items.collect();
    names.sort_unstable();
    names
}

fn volumes(revision: &Revision<'_>, vmi: &VirtualMachineInstance) -> Option<LiveChange> {
    let changed = !same(revision, &["volumes"]) || !same(revision, &["domain", "devices", "disks"]);
    let wanted = names(by_name(revision.current, &["volumes"]).keys().copied());
    let there = names(vmi.spec.volumes.iter().map(|it| it.name.as_str()));
    (changed && wanted != there).then(|| LiveChange::Volumes {
        volumes: revision.current["volumes"].clone(),
        disks: revision.current["domain"]["devices"]["disks"].clone(),
    })
}

fn interfaces(revision: &Revision<'_>, vmi: &VirtualMachineInstance) -> Option<LiveChange> {
    let cards = ["domain", "devices", "interfaces"];
    if same(revision, &cards) {
        return None;
    }
    let wanted = by_name(revision.current, &cards);
    let state = |card: &Value| card["state"].as_str().unwrap_or_default().to_owned();
    let there: BTreeMap<&str, String> = vmi
        .spec
        .domain
        .devices
        .interfaces
        .iter()
        .map(|it| (it.name.as_str(), it.state.clone()))
        .collect();
    let wanted: BTreeMap<&str, String> = wanted
        .into_iter()
        .map(|(name, card)| (name, state(card)))
        .collect();
    (wanted != there).then(|| LiveChange::Interfaces {
        interfaces: revision.current["domain"]["devices"]["interfaces"].clone(),
        networks: revision.current["networks"].clone(),
    })
}

fn placement(revision: &Revision<'_>, vmi: &VirtualMachineInstance) -> Vec<LiveChange> {
    let there = [&vmi.spec.node_selector, &vmi.spec.affinity, &vmi.spec.tolerations];
    let mut changes = Vec::new();
    for (field, there) in PLACEMENT.into_iter().zip(there) {
        let wanted = revision.current.get(field).filter(|it| !it.is_null());
        if there.as_ref() != wanted {
            changes.push(LiveChange::Placement {
                field,
                value: wanted.cloned().unwrap_or_default(),
            });
        }
    }
    changes
}

#[cfg(test)]
mod tests;
