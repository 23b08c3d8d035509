//! Volumes, claims, classes, and the state of CSI drivers.

use serde_json::Value;

use crate::Printer;
use crate::column::{AGE, Column, NAME, boolean, integer, text as column, wide};
use crate::field::{
    NONE, UNSET, age, annotation, at, count, flag, is_deleted, items, joined, name, scalar, text, text_or,
};

pub(crate) fn storage(resource: &str) -> Option<&'static Printer> {
    Some(match resource {
        "storageclasses" => &STORAGE_CLASS,
        "volumeattributesclasses" => &VOLUME_ATTRIBUTES_CLASS,
        "volumeattachments" => &VOLUME_ATTACHMENT,
        "csinodes" => &CSI_NODE,
        "csidrivers" => &CSI_DRIVER,
        "csistoragecapacities" => &CSI_STORAGE_CAPACITY,
        _ => return None,
    })
}

pub(crate) static PERSISTENT_VOLUME: Printer = Printer {
    columns: &[
        NAME,
        column("Capacity", "The size of the volume"),
        column("Access Modes", "How the volume can be mounted"),
        column(
            "Reclaim Policy",
            "What happens to the volume when its claim is deleted",
        ),
        column("Status", "Whether the volume is bound, free or released"),
        column("Claim", "The claim that the volume is bound to"),
        column("StorageClass", "The class of the volume"),
        column("VolumeAttributesClass", "The class of the volume's attributes"),
        column("Reason", "Why the volume is in its state"),
        AGE,
        wide(
            "VolumeMode",
            "Whether the volume is a file system or a block device",
        ),
    ],
    cells: |object, now| {
        let claim = at(object, "spec.claimRef").map_or(String::new(), |claim| {
            format!("{}/{}", text(claim, "namespace"), text(claim, "name"))
        });
        vec![
            name(object),
            storage_quantity(object, "spec.capacity").into(),
            access_modes(object, "spec.accessModes").into(),
            text(object, "spec.persistentVolumeReclaimPolicy").into(),
            phase(object).into(),
            claim.into(),
            storage_class(object).into(),
            text_or(object, "spec.volumeAttributesClassName", UNSET).into(),
            text(object, "status.reason").into(),
            age(object, now),
            text_or(object, "spec.volumeMode", UNSET).into(),
        ]
    },
};

pub(crate) static PERSISTENT_VOLUME_CLAIM: Printer = Printer {
    columns: &[
        NAME,
        column("Status", "Whether the claim is bound"),
        column("Volume", "The volume that the claim is bound to"),
        column("Capacity", "The size of that volume"),
        column("Access Modes", "How the volume can be mounted"),
        column("StorageClass", "The class of the claim"),
        column("VolumeAttributesClass", "The class of the volume's attributes"),
        AGE,
        wide(
            "VolumeMode",
            "Whether the volume is a file system or a block device",
        ),
    ],
    cells: |object, now| {
        let volume = text(object, "spec.volumeName");
        let (capacity, modes) = match volume {
            "" => (String::new(), String::new()),
            _ => (
                storage_quantity(object, "status.capacity"),
                access_modes(object, "status.accessModes"),
            ),
        };
        vec![
            name(object),
            phase(object).into(),
            volume.into(),
            capacity.into(),
            modes.into(),
            storage_class(object).into(),
            text_or(object, "spec.volumeAttributesClassName", UNSET).into(),
            age(object, now),
            text_or(object, "spec.volumeMode", UNSET).into(),
        ]
    },
};

fn phase(object: &Value) -> &str {
    if is_deleted(object) {
        "Terminating"
    } else {
        text(object, "status.phase")
    }
}

fn storage_quantity(object: &Value, path: &str) -> String {
    at(object, path).map_or("0".to_owned(), |quantities| scalar(quantities, "storage", "0"))
}

fn storage_class(object: &Value) -> &str {
    annotation(object, "volume.beta.kubernetes.io/storage-class")
        .unwrap_or_else(|| text(object, "spec.storageClassName"))
}

/// Short forms, in a fixed order and each once.
fn access_modes(object: &Value, path: &str) -> String {
    let has = |mode: &str| items(object, path).any(|item| item.as_str() == Some(mode));
    [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ]
    .into_iter()
    .filter(|(mode, _)| has(mode))
    .map(|(_, short)| short)
    .collect::<Vec<_>>()
    .join(",")
}

static STORAGE_CLASS: Printer = Printer {
    columns: &[
        NAME,
        column("Provisioner", "What makes volumes of the class"),
        column(
            "ReclaimPolicy",
            "What happens to a volume when its claim is deleted",
        ),
        column("VolumeBindingMode", "When volumes are made and bound"),
        column("AllowVolumeExpansion", "Whether volumes can grow"),
        AGE,
    ],
    cells: |object, now| {
        let default = [
            "storageclass.kubernetes.io/is-default-class",
            "storageclass.beta.kubernetes.io/is-default-class",
        ]
        .into_iter()
        .any(|key| annotation(object, key) == Some("true"));
        let suffix = if default { " (default)" } else { "" };
        vec![
            format!("{}{suffix}", text(object, "metadata.name")).into(),
            text(object, "provisioner").into(),
            text_or(object, "reclaimPolicy", "Delete").into(),
            text_or(object, "volumeBindingMode", "Immediate").into(),
            flag(object, "allowVolumeExpansion", false).into(),
            age(object, now),
        ]
    },
};

static VOLUME_ATTRIBUTES_CLASS: Printer = Printer {
    columns: &[
        NAME,
        column("DriverName", "The CSI driver that knows the attributes"),
        AGE,
    ],
    cells: |object, now| vec![name(object), text(object, "driverName").into(), age(object, now)],
};

static VOLUME_ATTACHMENT: Printer = Printer {
    columns: &[
        NAME,
        Column {
            format: "name",
            ..column("Attacher", "The driver that attaches the volume")
        },
        column("PV", "The volume"),
        column("Node", "The node that it is attached to"),
        boolean("Attached", "Whether it is attached"),
        AGE,
    ],
    cells: |object, now| {
        vec![
            name(object),
            text(object, "spec.attacher").into(),
            text(object, "spec.source.persistentVolumeName").into(),
            text(object, "spec.nodeName").into(),
            flag(object, "status.attached", false).into(),
            age(object, now),
        ]
    },
};

static CSI_NODE: Printer = Printer {
    columns: &[NAME, integer("Drivers", "How many CSI drivers the node has"), AGE],
    cells: |object, now| {
        vec![
            name(object),
            count(object, "spec.drivers").into(),
            age(object, now),
        ]
    },
};

static CSI_DRIVER: Printer = Printer {
    columns: &[
        NAME,
        boolean(
            "AttachRequired",
            "Whether volumes are attached before they are mounted",
        ),
        boolean(
            "PodInfoOnMount",
            "Whether the driver is told of the pod that mounts",
        ),
        boolean(
            "StorageCapacity",
            "Whether the scheduler looks at the driver's free capacity",
        ),
        column(
            "TokenRequests",
            "The audiences of the service account tokens that the driver is given",
        ),
        boolean(
            "RequiresRepublish",
            "Whether the driver is called again from time to time",
        ),
        column("Modes", "The kinds of volumes that the driver supports"),
        AGE,
    ],
    cells: |object, now| {
        let tokens = match at(object, "spec.tokenRequests") {
            Some(_) => items(object, "spec.tokenRequests")
                .map(|t| text(t, "audience"))
                .collect::<Vec<_>>()
                .join(","),
            None => UNSET.to_owned(),
        };
        let modes = joined(object, "spec.volumeLifecycleModes", ",");
        vec![
            name(object),
            flag(object, "spec.attachRequired", true).into(),
            flag(object, "spec.podInfoOnMount", false).into(),
            flag(object, "spec.storageCapacity", false).into(),
            tokens.into(),
            flag(object, "spec.requiresRepublish", false).into(),
            if modes.is_empty() {
                NONE.into()
            } else {
                modes.into()
            },
            age(object, now),
        ]
    },
};

static CSI_STORAGE_CAPACITY: Printer = Printer {
    columns: &[
        NAME,
        column("StorageClassName", "The class that the capacity is for"),
        column("Capacity", "How much space is left"),
    ],
    cells: |object, _| {
        vec![
            name(object),
            text(object, "storageClassName").into(),
            scalar(object, "capacity", UNSET).into(),
        ]
    },
};
