//! The machine: where it is placed, what its disks are filled from, its process, its guest, and the Services that lead to it.
//!
//! A chain may have several machines: of each link the worst counts.

mod cloud_init;
mod guest;
mod process;
mod service;
mod storage;

use serde_json::Value;

use crate::Facts;
use crate::link::{Evidence, Link, State};
use crate::object;

pub use service::{guest_port, is_near, is_selected};

/// What is known of a machine. Objects as they were read; what could not be read is absent.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    pub namespace: String,
    pub name: String,
    /// The machine.
    pub vm: Option<Value>,
    /// Its instance.
    pub vmi: Option<Value>,
    /// DataVolumes of the namespace.
    pub data_volumes: Option<Vec<Value>>,
    /// Claims of the namespace.
    pub claims: Option<Vec<Value>>,
    /// DataSources that DataVolumes refer to, as far as they exist.
    pub data_sources: Option<Vec<Value>>,
    /// Nodes.
    pub nodes: Option<Vec<Value>>,
    /// Events about it, its instance and its disks.
    pub events: Vec<Value>,
    /// The end of what the guest printed on its console.
    pub console: Option<String>,
    /// What cloud-init keeps of itself in the guest, as its agent reads it: `status` (status.json) and `result` (result.json).
    pub cloud_init: Option<Value>,
    /// Seconds for which its process has run, if it does.
    pub running_for: Option<u64>,
    /// Ports of the guest that were tried.
    pub probes: Vec<Probe>,
}

/// A port of the guest that somebody tried to reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    pub port: u16,
    pub answer: Answer,
}

/// What became of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Somebody listens.
    Open,
    /// Nobody does; what was answered.
    Closed(String),
    /// It cannot be known; why.
    Unknown(String),
}

impl Machine {
    pub(crate) fn warnings(&self, kind: &str, name: &str) -> Vec<Evidence> {
        object::warnings(&self.events, kind, name)
    }

    /// Whether there is neither a machine nor an instance.
    pub(crate) fn is_absent(&self) -> bool {
        self.vm.is_none() && self.vmi.is_none()
    }

    /// Whether anything of the guest answers on the network.
    fn answers(&self) -> bool {
        self.probes.iter().any(|it| it.answer == Answer::Open)
    }
}

/// The worst of all machines.
fn worst(facts: &Facts, name: &'static str, judge: fn(&Facts, &Machine) -> Link) -> Link {
    let order = [
        State::Broken,
        State::Waiting,
        State::Off,
        State::Unknown,
        State::Good,
    ];
    let links: Vec<Link> = facts.machines.iter().map(|it| judge(facts, it)).collect();
    let found = order
        .iter()
        .find_map(|state| links.iter().find(|it| it.state == *state));
    let found = found.or(links.first()).cloned();
    found.unwrap_or_else(|| match facts.unreadable.get("virtualmachines") {
        Some(why) => Link::new(name, State::Unknown, "VirtualMachines cannot be read")
            .shown_by([Evidence::new("answer to reading VirtualMachines", "", why)]),
        None => Link::new(name, State::Unused, "there is no machine in it"),
    })
}

pub(crate) fn scheduling(facts: &Facts) -> Link {
    worst(facts, "scheduling", process::scheduling)
}

pub(crate) fn disk(facts: &Facts) -> Link {
    worst(facts, "disk", storage::disk)
}

pub(crate) fn boot(facts: &Facts) -> Link {
    worst(facts, "boot", |_, machine| match process::process(machine) {
        link if link.state == State::Good => guest::boot(machine),
        link => link,
    })
}

pub(crate) fn cloud_init(facts: &Facts) -> Link {
    worst(facts, "cloud-init", |_, machine| cloud_init::cloud_init(machine))
}

pub(crate) use service::service;

#[cfg(test)]
mod tests;
