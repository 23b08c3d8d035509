//! Words by which a node and the rest of the control plane understand each other.

/// Label of a node: machines may run on it.
pub const SCHEDULABLE_LABEL: &str = "kubevirt.io/schedulable";
/// Label of a node: it has processors that it can give to one machine alone.
pub const CPU_MANAGER_LABEL: &str = "cpumanager";
/// Label of a node: how guests run on it, `kvm` or `tcg`; absent until the first machine needed to know.
pub const ACCELERATOR_LABEL: &str = "fairway.dev/accelerator";
/// Label of a node: its processor, as [`crate::compatibility::processor`] names it.
pub const PROCESSOR_LABEL: &str = "fairway.dev/processor";
/// The beginning of a label of a node: who made its processor. Upstream's.
pub const VENDOR_LABEL: &str = "cpu-vendor.node.kubevirt.io/";
/// Annotation of an instance: what its guest has run on since it started ([`crate::compatibility::RunsOn`]).
pub const RUNS_ON_ANNOTATION: &str = "fairway.dev/runs-on";
/// Resource of a node: how many of its processors it can give to one machine alone.
pub const DEDICATED_CPUS: &str = "fairway.dev/dedicated-cpus";
/// Label of an instance: the node that it runs on.
pub const NODE_LABEL: &str = "kubevirt.io/nodeName";
/// Label of an instance: the node that it moves to.
pub const TARGET_NODE_LABEL: &str = "kubevirt.io/migrationTargetNodeName";
/// Annotation of a node: after so many seconds without a renewed lease its machines have ended, whatever became of the
/// node. A node without it cannot promise that.
pub const FENCE_ANNOTATION: &str = "fairway.dev/fence-seconds";
/// Where nodes have their leases, in the root workspace.
pub const LEASES: &str = "kube-node-lease";
/// Taint of a node that is to be emptied, if the settings name no other.
pub const DRAIN_TAINT: &str = "kubevirt.io/drain";
/// Annotation of an instance that moves: the machine as its source has it, as JSON.
pub const MIGRATION_SOURCE_ANNOTATION: &str = "fairway.dev/migration-source";
/// Condition of an instance that moves, and of its migration: how far it is.
pub const MIGRATION_PROGRESS: &str = "MigrationProgress";
/// Annotation of an instance that moves: where its target waits for it, as JSON.
pub const MIGRATION_TARGET_ANNOTATION: &str = "fairway.dev/migration-target";
