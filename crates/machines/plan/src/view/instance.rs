//! VirtualMachineInstance.

use serde::Deserialize;
use serde_json::Value;

use super::{AccessCredential, Condition, Domain, Metadata, Present, Volume};

/// A machine that runs, or is about to.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct VirtualMachineInstance {
    /// `metadata`.
    pub metadata: Metadata,
    /// `spec`.
    pub spec: InstanceSpec,
    /// `status`.
    pub status: InstanceStatus,
}

/// `spec` of an instance.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct InstanceSpec {
    /// The machine.
    pub domain: Domain,
    /// Where the content of disks comes from.
    pub volumes: Vec<Volume>,
    /// What network cards are connected to.
    pub networks: Vec<Network>,
    /// What the guest is called.
    pub hostname: String,
    /// The domain under which it is found.
    pub subdomain: String,
    /// Kind of processor.
    pub architecture: String,
    /// `LiveMigrate`, ...
    pub eviction_strategy: Option<String>,
    /// `Paused`, or nothing.
    pub start_strategy: Option<String>,
    /// How long a guest may take to shut down.
    pub termination_grace_period_seconds: Option<i64>,
    /// Keys and passwords.
    pub access_credentials: Vec<AccessCredential>,
    /// Whether the guest answers.
    pub readiness_probe: Option<Probe>,
    /// Whether it should be restarted.
    pub liveness_probe: Option<Probe>,
    /// Whose name server.
    pub dns_policy: String,
    /// Which name servers.
    pub dns_config: Option<Value>,
    /// Labels that its node must have.
    pub node_selector: Option<Value>,
    /// What it wants to be near to, or far from.
    pub affinity: Option<Value>,
    /// What it bears.
    pub tolerations: Option<Value>,
    /// How it spreads.
    pub topology_spread_constraints: Option<Value>,
    /// Whose scheduler.
    pub scheduler_name: String,
    /// How important.
    pub priority_class_name: String,
}

/// What a network card is connected to.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Network {
    /// Its card's name.
    pub name: String,
    /// The network that everything has.
    pub pod: Option<PodNetwork>,
    /// One that a NetworkAttachmentDefinition describes.
    pub multus: Option<MultusNetwork>,
}

/// The network that everything has.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct PodNetwork {
    /// The guest's own addresses behind an address translation.
    #[serde(rename = "vmNetworkCIDR")]
    pub vm_network_cidr: String,
    /// The same for IPv6.
    #[serde(rename = "vmIPv6NetworkCIDR")]
    pub vm_ipv6_network_cidr: String,
}

/// A network that a NetworkAttachmentDefinition describes.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct MultusNetwork {
    /// `NAME` or `NAMESPACE/NAME`.
    pub network_name: String,
    /// It takes the place of the network that everything has.
    pub default: bool,
}

/// How to find out whether a guest is well.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Probe {
    /// A request.
    pub http_get: Option<Value>,
    /// A connection.
    pub tcp_socket: Option<Value>,
    /// A command in the guest.
    pub exec: Option<Value>,
    /// The agent answers.
    pub guest_agent_ping: Option<Present>,
    /// Seconds before the first.
    pub initial_delay_seconds: i64,
    /// Seconds between two.
    pub period_seconds: i64,
    /// Seconds that an answer may take.
    pub timeout_seconds: i64,
    /// How many in a row make it well.
    pub success_threshold: i64,
    /// How many in a row make it ill.
    pub failure_threshold: i64,
}

/// `status` of an instance.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct InstanceStatus {
    /// `Pending`, `Scheduling`, `Scheduled`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
    /// Where it runs.
    pub node_name: String,
    /// What is to be said about it.
    pub conditions: Vec<Condition>,
    /// When it came into each phase.
    pub phase_transition_timestamps: Vec<PhaseTransition>,
    /// Its own life, if it came from a VirtualMachine.
    pub virtual_machine_revision_name: String,
    /// A migration that is under way.
    pub migration_state: Option<Value>,
    /// Disks.
    pub volume_status: Vec<Value>,
}

/// When an instance came into a phase.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct PhaseTransition {
    /// The phase.
    pub phase: String,
    /// The moment.
    pub phase_transition_timestamp: String,
}
