//! What instances and DataVolumes name: the Secrets, ConfigMaps, accounts and claims that their node must read.

use serde_json::Value;

use super::{Objects, is_bound, is_selected};

/// The kind of what a disk is asked for by.
pub(super) const CLAIMS: &str = "persistentvolumeclaims";

/// Where a volume of an instance names something.
const OF_VOLUME: &[(&str, &str)] = &[
    ("secrets", "/secret/secretName"),
    ("secrets", "/cloudInitNoCloud/secretRef/name"),
    ("secrets", "/cloudInitNoCloud/networkDataSecretRef/name"),
    ("secrets", "/cloudInitConfigDrive/secretRef/name"),
    ("secrets", "/cloudInitConfigDrive/networkDataSecretRef/name"),
    ("secrets", "/sysprep/secret/name"),
    ("secrets", "/containerDisk/imagePullSecret"),
    ("configmaps", "/configMap/name"),
    ("configmaps", "/sysprep/configMap/name"),
    ("serviceaccounts", "/serviceAccount/serviceAccountName"),
    ("persistentvolumeclaims", "/persistentVolumeClaim/claimName"),
    (
        "persistentvolumeclaims",
        "/ephemeral/persistentVolumeClaim/claimName",
    ),
    ("persistentvolumeclaims", "/dataVolume/name"),
    ("persistentvolumeclaims", "/memoryDump/claimName"),
];

/// Where an access credential does.
const OF_CREDENTIAL: &[&str] = &[
    "/sshPublicKey/source/secret/secretName",
    "/userPassword/source/secret/secretName",
];

/// Where a DataVolume does.
const OF_DATA_VOLUME: &[(&str, &str)] = &[
    ("secrets", "/spec/source/http/secretRef"),
    ("secrets", "/spec/source/http/secretExtraHeaders"),
    ("secrets", "/spec/source/registry/secretRef"),
    ("configmaps", "/spec/source/http/certConfigMap"),
    ("configmaps", "/spec/source/registry/certConfigMap"),
];

fn list<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.into_iter().flatten()
}

/// Whether the text there is the name, or one of several.
fn is_at(value: &Value, pointer: &str, name: &str) -> bool {
    match value.pointer(pointer) {
        Some(Value::String(text)) => text == name,
        Some(Value::Array(all)) => all.iter().any(|it| it == name),
        _ => false,
    }
}

/// Whether an instance that is on a node, or on its way from or to it, names an object of its namespace.
pub(super) fn of_instances(
    node: &str,
    resource: &str,
    namespace: &str,
    name: &str,
    objects: &dyn Objects,
) -> bool {
    let instances = objects.instances(namespace);
    let mut bound = instances.iter().filter(|it| is_bound(it, node));
    bound.any(|it| of_instance(it, resource, name))
}

/// Whether an instance names an object of its namespace: by its spec, which its node cannot write. The status says nothing here.
fn of_instance(instance: &Value, resource: &str, name: &str) -> bool {
    let by_volume = list(instance, "/spec/volumes").any(|volume| {
        let mut places = OF_VOLUME.iter().filter(|(of, _)| *of == resource);
        places.any(|(_, place)| is_at(volume, place, name))
    });
    let by_credential = resource == "secrets"
        && list(instance, "/spec/accessCredentials").any(|credential| {
            let mut places = OF_CREDENTIAL.iter();
            places.any(|place| is_at(credential, place, name))
        });
    let by_kernel = resource == "secrets"
        && is_at(
            instance,
            "/spec/domain/firmware/kernelBoot/container/imagePullSecret",
            name,
        );
    by_volume || by_credential || by_kernel
}

/// Whether the DataVolume of a disk of the node names an object of its namespace.
pub(super) fn of_volumes(
    node: &str,
    resource: &str,
    namespace: &str,
    name: &str,
    objects: &dyn Objects,
) -> bool {
    objects.data_volumes(namespace).iter().any(|volume| {
        let mut places = OF_DATA_VOLUME.iter().filter(|(of, _)| *of == resource);
        let is_named = places.any(|(_, place)| is_at(volume, place, name));
        is_named && has_node(node, namespace, volume, objects)
    })
}

/// Whether a claim is to be on a node. What does not exist is nobody's.
pub(super) fn is_claim_of(node: &str, namespace: &str, name: &str, objects: &dyn Objects) -> bool {
    let claim = objects.get("", CLAIMS, namespace, name);
    claim.is_some_and(|claim| is_selected(&claim, node))
}

/// Whether a machine has a DataVolume that is to be on a node.
pub(super) fn has_disk_of(node: &str, namespace: &str, machine: &str, objects: &dyn Objects) -> bool {
    objects.data_volumes(namespace).iter().any(|volume| {
        let is_its = list(volume, "/metadata/ownerReferences").any(|owner| {
            owner["kind"] == "VirtualMachine" && owner["controller"] == true && owner["name"] == machine
        });
        is_its && has_node(node, namespace, volume, objects)
    })
}

fn has_node(node: &str, namespace: &str, volume: &Value, objects: &dyn Objects) -> bool {
    let name = volume["metadata"]["name"].as_str().unwrap_or_default();
    let claim = objects.get("", "persistentvolumeclaims", namespace, name);
    is_selected(volume, node)
        || claim.is_some_and(|claim| is_selected(&claim, node))
        || of_instances(node, CLAIMS, namespace, name, objects)
}

/// Whether a volume is the disk of such an instance. A machine that moves brings its disks along: where it goes to must know them.
pub(super) fn holds_disk(node: &str, volume: &Value, objects: &dyn Objects) -> bool {
    let (namespace, name) = claim_ref(volume);
    // What a volume says of its claim holds if the claim says the same.
    let claim = objects.get("", "persistentvolumeclaims", namespace, name);
    let is_bound = claim.is_some_and(|it| it["spec"]["volumeName"] == volume["metadata"]["name"]);
    is_bound && of_instances(node, CLAIMS, namespace, name, objects)
}

/// The claim that a volume says it is of.
pub(super) fn claim_ref(volume: &Value) -> (&str, &str) {
    let text = |field: &str| volume["spec"]["claimRef"][field].as_str().unwrap_or_default();
    (text("namespace"), text("name"))
}
