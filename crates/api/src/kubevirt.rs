//! The kinds of virtual machines: KubeVirt's, those of its data importer, networks of Multus, and the operator's settings.

use crate::Kind;
use crate::definition::Source;

/// KubeVirt's own group.
pub const GROUP: &str = "kubevirt.io";
/// Sizes and tastes.
pub const INSTANCETYPE_GROUP: &str = "instancetype.kubevirt.io";
/// Snapshots.
pub const SNAPSHOT_GROUP: &str = "snapshot.kubevirt.io";
/// Clones.
pub const CLONE_GROUP: &str = "clone.kubevirt.io";
/// Disks that are filled.
pub const CDI_GROUP: &str = "cdi.kubevirt.io";
/// Networks beside the one that everything has.
pub const CNI_GROUP: &str = "k8s.cni.cncf.io";
/// Snapshots of volumes.
pub const VOLUME_SNAPSHOT_GROUP: &str = "snapshot.storage.k8s.io";
/// Where that group, which is one of Kubernetes', was approved: definitions of such groups have to say so.
const APPROVED_SNAPSHOTS: &str = "https://github.com/kubernetes-csi/external-snapshotter/pull/814";
/// The operator's settings.
pub const HCO_GROUP: &str = "hco.kubevirt.io";

/// A machine, running or not.
pub const VIRTUAL_MACHINE: Kind = Kind {
    group: GROUP,
    version: "v1",
    kind: "VirtualMachine",
    plural: "virtualmachines",
};

/// A machine that runs, or is about to.
pub const VIRTUAL_MACHINE_INSTANCE: Kind = Kind {
    group: GROUP,
    version: "v1",
    kind: "VirtualMachineInstance",
    plural: "virtualmachineinstances",
};

/// A machine that moves.
pub const VIRTUAL_MACHINE_INSTANCE_MIGRATION: Kind = Kind {
    group: GROUP,
    version: "v1",
    kind: "VirtualMachineInstanceMigration",
    plural: "virtualmachineinstancemigrations",
};

/// Settings of all machines.
pub const KUBE_VIRT: Kind = Kind {
    group: GROUP,
    version: "v1",
    kind: "KubeVirt",
    plural: "kubevirts",
};

/// A disk that is filled.
pub const DATA_VOLUME: Kind = Kind {
    group: CDI_GROUP,
    version: "v1beta1",
    kind: "DataVolume",
    plural: "datavolumes",
};

/// Where the content of disks comes from, by name.
pub const DATA_SOURCE: Kind = Kind {
    group: CDI_GROUP,
    version: "v1beta1",
    kind: "DataSource",
    plural: "datasources",
};

/// A network beside the one that everything has.
pub const NETWORK_ATTACHMENT_DEFINITION: Kind = Kind {
    group: CNI_GROUP,
    version: "v1",
    kind: "NetworkAttachmentDefinition",
    plural: "network-attachment-definitions",
};

/// The operator's settings.
pub const HYPER_CONVERGED: Kind = Kind {
    group: HCO_GROUP,
    version: "v1beta1",
    kind: "HyperConverged",
    plural: "hyperconvergeds",
};

const WORDS: &str = include_str!("../data/machines.words");

pub(crate) static SOURCES: [Source; 8] = [
    source(GROUP, include_str!("../data/kubevirt.facts")),
    source(
        INSTANCETYPE_GROUP,
        include_str!("../data/kubevirt_instancetype.facts"),
    ),
    source(SNAPSHOT_GROUP, include_str!("../data/kubevirt_snapshot.facts")),
    source(CLONE_GROUP, include_str!("../data/kubevirt_clone.facts")),
    source(CDI_GROUP, include_str!("../data/kubevirt_cdi.facts")),
    source(CNI_GROUP, include_str!("../data/multus.facts")),
    source(HCO_GROUP, include_str!("../data/kubevirt_hco.facts")),
    Source {
        annotations: &[("api-approved.kubernetes.io", APPROVED_SNAPSHOTS)],
        ..source(
            VOLUME_SNAPSHOT_GROUP,
            include_str!("../data/volume_snapshot.facts"),
        )
    },
];

/// Facts of a group; all groups share their words.
const fn source(group: &'static str, facts: &'static str) -> Source {
    Source {
        group,
        facts,
        words: WORDS,
        annotations: &[],
    }
}
