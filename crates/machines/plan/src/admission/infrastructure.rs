//! Settings of virtualization as a whole, and kinds that the control plane keeps for itself.

use fairway_admission::{Admission, Impact, Operation, Place, Refusal, Request, Verdict};
use serde_json::Value;

use super::{DATA_VOLUMES, INSTANCES, KUBEVIRTS, MACHINES, name, same, text};
use crate::impact;
use crate::settings::HYPERCONVERGED_NAME;

/// KubeVirt.
pub(super) struct KubeVirts;
/// CDI.
pub(super) struct DataImporters;
/// HyperConverged.
pub(super) struct HyperConvergeds;
/// What nothing is said about.
pub(super) struct Passive;

/// `spec.configuration` of a KubeVirt, as far as something here follows it.
const KUBEVIRT_SETTINGS: [&str; 12] = [
    "architectureConfiguration",
    "cpuModel",
    "cpuRequest",
    "developerConfiguration",
    "emulatedMachines",
    "evictionStrategy",
    "liveUpdateConfiguration",
    "machineType",
    "migrations",
    "network",
    "virtualMachineOptions",
    "vmRolloutStrategy",
];
const HYPERCONVERGED_SETTINGS: [&str; 6] = [
    "configuration",
    "defaultCPUModel",
    "evictionStrategy",
    "higherWorkloadDensity",
    "liveMigrationConfig",
    "virtualMachineOptions",
];

/// How machines are moved, in both kinds.
const MIGRATIONS: [&str; 8] = [
    "allowAutoConverge",
    "bandwidthPerMigration",
    "completionTimeoutPerGiB",
    "disableTLS",
    "nodeDrainTaintKey",
    "parallelMigrationsPerCluster",
    "parallelOutboundMigrationsPerNode",
    "progressTimeout",
];
const OPTIONS: [&str; 2] = ["disableFreePageReporting", "disableSerialConsoleLog"];

/// Below `spec.configuration` of a KubeVirt.
const KUBEVIRT_NESTED: [(&str, &[&str]); 7] = [
    ("architectureConfiguration", &["amd64"]),
    (
        "architectureConfiguration.amd64",
        &["emulatedMachines", "machineType"],
    ),
    ("developerConfiguration", &["featureGates", "memoryOvercommit"]),
    (
        "liveUpdateConfiguration",
        &["maxCpuSockets", "maxGuest", "maxHotplugRatio"],
    ),
    ("migrations", &MIGRATIONS),
    (
        "network",
        &["defaultNetworkInterface", "permitBridgeInterfaceOnPodNetwork"],
    ),
    ("virtualMachineOptions", &OPTIONS),
];
/// Below `spec` of a HyperConverged.
const HYPERCONVERGED_NESTED: [(&str, &[&str]); 3] = [
    ("higherWorkloadDensity", &["memoryOvercommitPercentage"]),
    ("liveMigrationConfig", &MIGRATIONS),
    ("virtualMachineOptions", &OPTIONS),
];

impl Admission for KubeVirts {
    fn judge(&self, request: &Request<'_>, object: &Value) -> Verdict {
        match request.operation {
            Operation::Create => {
                let others = request.world.list(Place::Here, KUBEVIRTS, None, 1);
                if !others.is_empty() {
                    let webhook = "kubevirt-create-validator.kubevirt.io";
                    return Err(Refusal::failed(webhook, "Kubevirt is already created"));
                }
            }
            Operation::Delete => {
                let blocks = object["spec"]["uninstallStrategy"] == "BlockUninstallIfWorkloadsExist";
                for (resource, what) in [
                    (INSTANCES, "Virtual Machine Instances"),
                    (MACHINES, "Virtual Machines"),
                ] {
                    if blocks && !request.world.list(Place::Here, resource, None, 1).is_empty() {
                        let message = format!(
                            "Rejecting the uninstall request, since there are still {what} present. Either delete all \
                             KubeVirt related workloads or change the uninstall strategy before uninstalling KubeVirt."
                        );
                        return Err(Refusal::failed("kubevirt-validator.kubevirt.io", message));
                    }
                }
                return Ok(Vec::new());
            }
            Operation::Update => {}
        }
        if !is_new(request, object) {
            return Ok(Vec::new());
        }
        let mut warnings = idle("spec", &object["spec"], &["configuration", "uninstallStrategy"]);
        let path = "spec.configuration";
        let configuration = &object["spec"]["configuration"];
        warnings.extend(idle(path, configuration, &KUBEVIRT_SETTINGS));
        warnings.extend(idle_below(path, configuration, &KUBEVIRT_NESTED));
        Ok(warnings)
    }

    fn impact(&self, _: &Request<'_>, _: &Value) -> Option<Impact> {
        Some(of_settings())
    }
}

impl Admission for DataImporters {
    fn judge(&self, request: &Request<'_>, object: &Value) -> Verdict {
        let blocks = object["spec"]["uninstallStrategy"] == "BlockUninstallIfWorkloadsExist";
        let phase = text(object, "/status/phase");
        if request.operation == Operation::Delete
            && blocks
            && !["", "Error"].contains(&phase)
            && !request.world.list(Place::Here, DATA_VOLUMES, None, 1).is_empty()
        {
            let message = "Rejecting the uninstall request, since there are still DataVolumes present. Either delete all \
                           DataVolumes or change the uninstall strategy before uninstalling CDI.";
            return Err(Refusal::failed("cdi-validate.cdi.kubevirt.io", message));
        }
        Ok(Vec::new())
    }

    fn impact(&self, _: &Request<'_>, _: &Value) -> Option<Impact> {
        Some(of_settings())
    }
}

impl Admission for HyperConvergeds {
    fn judge(&self, request: &Request<'_>, object: &Value) -> Verdict {
        if request.operation == Operation::Delete || !is_new(request, object) {
            return Ok(Vec::new());
        }
        let mut warnings = Vec::new();
        if name(object) != HYPERCONVERGED_NAME {
            warnings.push(format!(
                "metadata.name: no effect: only the HyperConverged named {HYPERCONVERGED_NAME} counts"
            ));
        }
        let spec = &object["spec"];
        warnings.extend(idle("spec", spec, &HYPERCONVERGED_SETTINGS));
        warnings.extend(idle_below("spec", spec, &HYPERCONVERGED_NESTED));
        let older = &object["spec"]["configuration"];
        if older.is_object() {
            warnings.push(
                "spec.configuration: HyperConverged has no such field; its virtualMachineOptions are followed here all the \
                 same, and belong directly into spec"
                    .to_owned(),
            );
            warnings.extend(idle("spec.configuration", older, &["virtualMachineOptions"]));
        }
        Ok(warnings)
    }

    fn impact(&self, _: &Request<'_>, _: &Value) -> Option<Impact> {
        Some(of_settings())
    }
}

impl Admission for Passive {
    fn impact(&self, _: &Request<'_>, _: &Value) -> Option<Impact> {
        Some(Impact {
            class: impact::Impact::None.to_string(),
            ..Impact::default()
        })
    }
}

fn of_settings() -> Impact {
    Impact {
        class: impact::Impact::None.to_string(),
        reason: "machines that run keep the settings that they started with".to_owned(),
    }
}

/// Whether somebody brings something that was not there; only then there is something to say.
fn is_new(request: &Request<'_>, object: &Value) -> bool {
    request.subresource.is_none() && request.old.is_none_or(|old| !same(&old["spec"], &object["spec"]))
}

/// Fields that nothing here follows. What is switched off is as it is without.
fn idle(path: &str, object: &Value, known: &[&str]) -> Vec<String> {
    let fields = object.as_object().into_iter().flat_map(|map| map.iter());
    let idle = fields.filter(|(key, value)| {
        !known.contains(&key.as_str()) && !super::is_empty(value) && **value != Value::Bool(false)
    });
    idle.map(|(key, _)| format!("{path}.{key}: no effect: Fairway has nothing that follows it"))
        .collect()
}

/// The same within fields that something follows in part.
fn idle_below(path: &str, object: &Value, known: &[(&str, &[&str])]) -> Vec<String> {
    let below = known.iter().flat_map(|(field, known)| {
        let found = object.pointer(&format!("/{}", field.replace('.', "/")));
        idle(&format!("{path}.{field}"), found.unwrap_or(&Value::Null), known)
    });
    below.collect()
}
