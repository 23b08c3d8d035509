//! What is wrong with a machine, in the words of KubeVirt's validating webhooks.
//!
//! The checks run in upstream's order over a spec with its defaults filled in. A [`Cause`] is an entry of
//! `details.causes` of the `Status` that answers the request; [`message`] is the sentence above them.

use crate::settings::Settings;
use crate::view::{InstanceSpec, Metadata, VirtualMachineSpec};

mod access;
mod cpu;
mod devices;
mod disks;
mod firmware;
mod machine;
mod network;
mod resources;
mod volumes;

pub(crate) use machine::RESERVED_LABELS;

/// Upstream's kinds of causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CauseType {
    /// The value cannot be.
    Invalid,
    /// A value is missing.
    Required,
    /// The value is of a set that is not served.
    NotSupported,
    /// The value is there twice.
    Duplicate,
    /// What the value names is not there.
    NotFound,
}

impl CauseType {
    /// `reason` of a cause.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::Required => "FieldValueRequired",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotFound => "FieldValueNotFound",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// What kind of wrong.
    pub kind: CauseType,
    /// What is wrong.
    pub message: String,
    /// Where.
    pub field: String,
}

/// Things that are wrong, as they are found.
#[derive(Debug, Default)]
struct Causes(Vec<Cause>);

impl Causes {
    fn add(&mut self, kind: CauseType, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(Cause {
            kind,
            message: message.into(),
            field: field.into(),
        });
    }

    fn invalid(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.add(CauseType::Invalid, field, message);
    }

    fn required(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.add(CauseType::Required, field, message);
    }
}

/// So many causes are told.
pub const MAX_CAUSES: usize = 10;

/// The sentence that sums up what is wrong. Of more than [`MAX_CAUSES`] only those are told, here and in the details.
pub fn message(causes: &[Cause]) -> String {
    let told: Vec<&str> = causes
        .iter()
        .take(MAX_CAUSES)
        .map(|it| it.message.as_str())
        .collect();
    let told = told.join(", ");
    match causes.len().checked_sub(MAX_CAUSES) {
        Some(more) if more > 0 => format!("{told}, and {more} more validation errors"),
        _ => told,
    }
}

/// What is wrong with a VirtualMachineInstance that is to be made. The spec has its defaults.
pub fn instance(spec: &InstanceSpec, metadata: &Metadata, settings: &Settings, by_us: bool) -> Vec<Cause> {
    let mut causes = Causes::default();
    instance_spec("spec", spec, settings, &mut causes);
    disks::every_volume_is_used("spec", spec, &mut causes);
    resources::memory_is_given("spec", spec, &mut causes);
    machine::metadata("metadata", metadata, settings, by_us, &mut causes);
    machine::architecture_is_known("spec", spec, &mut causes);
    causes.0
}

/// What is wrong with a VirtualMachine. The template is expanded and has its defaults; `by_us` says that one of
/// Fairway's own controllers writes it.
pub fn virtual_machine(spec: &VirtualMachineSpec, settings: &Settings, by_us: bool) -> Vec<Cause> {
    let mut causes = Causes::default();
    let Some(template) = &spec.template else {
        causes.required("spec.template", "missing virtual machine template.");
        return causes.0;
    };
    machine::metadata(
        "spec.template.metadata",
        &template.metadata,
        settings,
        by_us,
        &mut causes,
    );
    instance_spec("spec.template.spec", &template.spec, settings, &mut causes);
    machine::data_volume_templates("spec", spec, &template.spec, &mut causes);
    machine::run_strategy("spec", spec, &mut causes);
    machine::live_update("spec", &template.spec, settings, &mut causes);
    causes.0
}

/// What is wrong with the spec of an instance in itself; `path` is where it stands.
pub fn spec(path: &str, spec: &InstanceSpec, settings: &Settings) -> Vec<Cause> {
    let mut causes = Causes::default();
    instance_spec(path, spec, settings, &mut causes);
    causes.0
}

/// Warnings that go along with a VirtualMachine that is accepted.
pub fn warnings(spec: &VirtualMachineSpec) -> Vec<String> {
    let running = spec
        .running
        .map(|_| "spec.running is deprecated, please use spec.runStrategy instead.");
    running.into_iter().map(str::to_owned).collect()
}

fn instance_spec(path: &str, spec: &InstanceSpec, settings: &Settings, causes: &mut Causes) {
    machine::names(path, spec, causes);
    resources::memory(path, spec, settings, causes);
    firmware::machine_type(path, spec, settings, causes);
    firmware::serial(path, spec, causes);
    firmware::acpi(path, spec, causes);
    resources::cpu(path, spec, causes);
    cpu::placement(path, spec, causes);
    cpu::numa(path, spec, settings, causes);
    cpu::features(path, spec, causes);
    cpu::hotplug(path, spec, causes);
    machine::start_strategy(path, spec, causes);
    cpu::realtime(path, spec, causes);
    machine::placement(path, spec, causes);
    machine::architecture_is_ours(path, spec, settings, causes);
    network::check(path, spec, settings, causes);
    disks::boot_order(path, spec, causes);
    devices::inputs(path, spec, causes);
    devices::io_threads(path, spec, causes);
    devices::probes(path, spec, causes);
    disks::check(&format!("{path}.domain.devices.disks"), spec, causes);
    firmware::check(path, spec, causes);
    volumes::check(&format!("{path}.volumes"), spec, settings, causes);
    volumes::container_disks(path, spec, causes);
    access::check(path, spec, causes);
    machine::dns(path, spec, causes);
    devices::gated(path, spec, settings, causes);
}

#[cfg(test)]
mod tests;
