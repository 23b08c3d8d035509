//! What a taste demands of machines.

use thiserror::Error;

use super::{Topology, counted};
use crate::view::{Amount, InstanceSpec, InstancetypeSpec, PreferenceSpec};
use fairway_kernel_scalar::quantity::Quantity;

/// A machine that is too small for its taste.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("failure checking preference requirements: {message}")]
pub struct RequirementError {
    /// The fields that are too small.
    pub fields: Vec<String>,
    message: String,
}

/// Whether a machine has what its taste demands. The spec is the expanded one.
pub fn check_requirements(
    instancetype: Option<&InstancetypeSpec>,
    preference: Option<&PreferenceSpec>,
    spec: &InstanceSpec,
) -> Result<(), RequirementError> {
    let Some(required) = preference.and_then(|it| it.requirements.as_ref()) else {
        return Ok(());
    };
    if let Some(cpu) = &required.cpu {
        check_cpu(cpu.guest, instancetype, preference, spec)?;
    }
    if let Some(memory) = required.memory.as_ref().and_then(|it| it.guest) {
        check_memory(memory, instancetype, spec)?;
    }
    Ok(())
}

fn check_cpu(
    needed: u32,
    instancetype: Option<&InstancetypeSpec>,
    preference: Option<&PreferenceSpec>,
    spec: &InstanceSpec,
) -> Result<(), RequirementError> {
    if let Some(size) = instancetype {
        if size.cpu.guest >= needed {
            return Ok(());
        }
        return Err(RequirementError {
            fields: vec!["spec.instancetype".to_owned()],
            message: format!(
                "insufficient CPU resources of {} vCPU provided by instance type, preference requires {needed} vCPU",
                size.cpu.guest
            ),
        });
    }
    let base = "spec.template.spec.domain.cpu";
    if spec.domain.cpu.is_none() {
        return Err(RequirementError {
            fields: vec![base.to_owned()],
            message: format!(
                "no CPU resources provided by VirtualMachine, preference requires {needed} vCPU"
            ),
        });
    }
    let (count, parts, named) = counted(Topology::preferred(preference), spec);
    if count >= needed {
        return Ok(());
    }
    Err(RequirementError {
        fields: parts.into_iter().map(|part| format!("{base}.{part}")).collect(),
        message: format!(
            "insufficient CPU resources of {count} vCPU provided by VirtualMachine, preference requires {needed} vCPU \
             provided as {named}"
        ),
    })
}

fn check_memory(
    needed: Amount,
    instancetype: Option<&InstancetypeSpec>,
    spec: &InstanceSpec,
) -> Result<(), RequirementError> {
    let of_size = instancetype.map(|it| it.memory.guest.unwrap_or(Amount(Quantity::ZERO)));
    let of_machine = spec.domain.memory.as_ref().and_then(|it| it.guest);
    let provided = of_machine.or(of_size).unwrap_or(Amount(Quantity::ZERO));
    if provided >= needed {
        return Ok(());
    }
    let (field, by) = if instancetype.is_some() {
        ("spec.instancetype", "instance type")
    } else {
        ("spec.template.spec.domain.memory", "VirtualMachine")
    };
    Err(RequirementError {
        fields: vec![field.to_owned()],
        message: format!(
            "insufficient Memory resources of {} provided by {by}, preference requires {}",
            provided.text(),
            needed.text()
        ),
    })
}
