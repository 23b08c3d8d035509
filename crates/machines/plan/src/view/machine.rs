//! VirtualMachine.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Condition, DataVolumeTemplate, InstanceSpec, Metadata};

/// A machine, running or not.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct VirtualMachine {
    /// `metadata`.
    pub metadata: Metadata,
    /// `spec`.
    pub spec: VirtualMachineSpec,
    /// `status`.
    pub status: VirtualMachineStatus,
}

/// `spec` of a machine.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct VirtualMachineSpec {
    /// The old way to say `Always` or `Halted`.
    pub running: Option<bool>,
    /// When it runs.
    pub run_strategy: Option<String>,
    /// Size, by name.
    pub instancetype: Option<Matcher>,
    /// Taste, by name.
    pub preference: Option<Matcher>,
    /// What instances are made of.
    pub template: Option<Template>,
    /// Disks that it brings along.
    pub data_volume_templates: Vec<DataVolumeTemplate>,
}

/// A size or a taste, by name.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Matcher {
    /// Its name.
    pub name: String,
    /// Of the namespace, or of everybody.
    pub kind: String,
    /// What it said when the machine first used it.
    pub revision_name: String,
    /// The volume that knows it.
    pub infer_from_volume: String,
}

/// What instances are made of.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Template {
    /// Labels and annotations of instances.
    pub metadata: Metadata,
    /// Their spec.
    pub spec: InstanceSpec,
}

/// When a machine runs.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
pub enum RunStrategy {
    /// Always; a guest that ends is started again.
    Always,
    /// Until the guest ends well.
    RerunOnFailure,
    /// As people ask for.
    Manual,
    /// Never.
    #[default]
    Halted,
    /// Once.
    Once,
}

impl RunStrategy {
    /// All, in upstream's order.
    pub const ALL: [Self; 5] = [
        Self::Halted,
        Self::Manual,
        Self::Always,
        Self::RerunOnFailure,
        Self::Once,
    ];

    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::RerunOnFailure => "RerunOnFailure",
            Self::Manual => "Manual",
            Self::Halted => "Halted",
            Self::Once => "Once",
        }
    }

    /// By its word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }
}

impl VirtualMachineSpec {
    /// When the machine runs. `running` and `runStrategy` exclude each other, which validation saw to.
    pub fn strategy(&self) -> RunStrategy {
        match (self.running, &self.run_strategy) {
            (_, Some(word)) => RunStrategy::parse(word).unwrap_or_default(),
            (Some(true), None) => RunStrategy::Always,
            (_, None) => RunStrategy::Halted,
        }
    }
}

/// `status` of a machine.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct VirtualMachineStatus {
    /// There is an instance.
    pub created: bool,
    /// The instance is ready.
    pub ready: bool,
    /// What people see.
    pub printable_status: String,
    /// What is to be said about it.
    pub conditions: Vec<Condition>,
    /// What people asked for and was not done yet.
    pub state_change_requests: Vec<StateChangeRequest>,
    /// Starts that failed in a row.
    pub start_failure: Option<StartFailure>,
    /// The generation that instances are to have.
    pub desired_generation: i64,
    /// The generation that was last acted on.
    pub observed_generation: i64,
    /// The strategy that was last in force.
    pub run_strategy: String,
    /// Volumes that are to come or go.
    pub volume_requests: Vec<Value>,
}

/// What somebody asked for.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct StateChangeRequest {
    /// `Start`, `Stop` or `Restart`; upstream writes restarts as a stop and a start.
    pub action: String,
    /// Which instance to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// How: `paused`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// Starts that failed in a row.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct StartFailure {
    /// How many.
    pub consecutive_fail_count: i64,
    /// The last instance that failed.
    #[serde(rename = "lastFailedVMIUID")]
    pub last_failed_vmi_uid: String,
    /// Not before.
    pub retry_after_timestamp: Option<String>,
}
