//! The PersistentVolume of a claim, and how the two become bound.

use std::path::Path;

use serde_json::{Value, json};

use crate::view::{Claim, Class, Volume};
use crate::{PROVISIONER, names};

/// The name of the volume that is made for a claim.
pub(crate) fn name(claim_uid: &str) -> String {
    format!("pvc-{claim_uid}")
}

/// What is known when a volume is made.
pub(crate) struct Made<'a> {
    pub(crate) claim: &'a Claim,
    pub(crate) class: &'a Class,
    pub(crate) node: &'a str,
    pub(crate) path: &'a Path,
    /// Bytes of the disk.
    pub(crate) size: u64,
    /// The machine for which it was made.
    pub(crate) machine: Option<&'a str>,
}

/// The volume of a claim.
pub(crate) fn render(made: &Made<'_>) -> Value {
    let (metadata, spec) = (&made.claim.metadata, &made.claim.spec);
    let mut annotations = json!({names::PROVISIONED_BY: PROVISIONER});
    if let Some(machine) = made.machine {
        annotations[names::MACHINE] = json!(machine);
    }
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {
            "name": name(&metadata.uid),
            "annotations": annotations,
            "finalizers": [names::PV_PROTECTION, names::FILES_FINALIZER],
        },
        "spec": {
            "capacity": {"storage": capacity(made.claim, made.size)},
            "accessModes": spec.access_modes,
            "volumeMode": spec.volume_mode.as_deref().unwrap_or("Filesystem"),
            "storageClassName": made.class.metadata.name,
            "persistentVolumeReclaimPolicy": made.class.reclaim_policy.as_deref().unwrap_or("Delete"),
            "claimRef": claim_ref(made.claim),
            "local": {"path": made.path},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": names::HOSTNAME, "operator": "In", "values": [made.node]},
            ]}]}},
        },
    })
}

/// A reference to a claim.
pub(crate) fn claim_ref(claim: &Claim) -> Value {
    let metadata = &claim.metadata;
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "namespace": metadata.namespace, "name": metadata.name, "uid": metadata.uid,
    })
}

/// How many bytes there are, in the claim's own words if they mean the same.
pub(crate) fn capacity(claim: &Claim, size: u64) -> String {
    let asked = &claim.spec.resources.requests;
    match asked.storage {
        Some(amount) if asked.bytes().map(|bytes| bytes.next_multiple_of(512)) == Some(size) => {
            amount.canonical()
        }
        _ => super::fitting::shown(size),
    }
}

/// The patch that binds a claim to a volume.
pub(crate) fn binding(claim: &Claim, volume: &str) -> Option<Value> {
    let is_done =
        claim.spec.volume_name == volume && claim.metadata.annotation(names::BIND_COMPLETED).is_some();
    (!is_done).then(|| {
        json!({
            "metadata": {"annotations": {names::BIND_COMPLETED: "yes", names::BOUND_BY_CONTROLLER: "yes"}},
            "spec": {"volumeName": volume},
        })
    })
}

/// Whether a volume was made here, for a claim, and on which node.
pub(crate) fn node(volume: &Volume) -> Option<&str> {
    let terms = volume
        .spec
        .node_affinity
        .as_ref()?
        .pointer("/required/nodeSelectorTerms")?
        .as_array()?;
    let [term] = terms.as_slice() else { return None };
    let [expression] = term.get("matchExpressions")?.as_array()?.as_slice() else {
        return None;
    };
    let is_host =
        expression.get("key")?.as_str()? == names::HOSTNAME && expression.get("operator")?.as_str()? == "In";
    let [node] = expression.get("values")?.as_array()?.as_slice() else {
        return None;
    };
    node.as_str().filter(|_| is_host)
}

/// Whether the files behind a volume are this node's to remove: it says so, and its directory is the one that is its own.
pub(crate) fn is_of(volume: &Volume, own_node: &str, directory: &Path) -> bool {
    let is_here = node(volume) == Some(own_node);
    let path = volume.spec.local.as_ref().map(|local| Path::new(&local.path));
    // One that moved here says where it was made: `volumes/WORKSPACE/NAME` of a node whose directory may be another.
    is_here && path.is_some_and(|path| path.iter().rev().take(3).eq(directory.iter().rev().take(3)))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;

    use super::*;

    fn claim(storage: &str) -> Claim {
        Claim::deserialize(json!({
            "metadata": {"name": "d", "namespace": "shop", "uid": "u1"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}},
        }))
        .unwrap()
    }

    fn made(claim: &Claim) -> Volume {
        let class = Class::deserialize(json!({"metadata": {"name": "local"}})).unwrap();
        let volume = render(&Made {
            claim,
            class: &class,
            node: "n1",
            path: Path::new("/d/volumes/root/pvc-u1"),
            size: 1 << 30,
            machine: Some("web"),
        });
        Volume::deserialize(volume).unwrap()
    }

    #[test]
    fn a_volume_says_where_it_is_and_whose() {
        let volume = made(&claim("1Gi"));
        assert_eq!(volume.metadata.name, "pvc-u1");
        assert_eq!(volume.spec.claim_ref.as_ref().unwrap().uid, "u1");
        assert_eq!(volume.metadata.annotation(names::MACHINE), Some("web"));
        assert_eq!(node(&volume), Some("n1"));
        for (node, path, expected) in [
            ("n1", "/d/volumes/root/pvc-u1", true),
            ("n1", "/elsewhere/volumes/root/pvc-u1", true),
            ("n2", "/d/volumes/root/pvc-u1", false),
            ("n1", "/d/volumes/other/pvc-u1", false),
        ] {
            assert_eq!(is_of(&volume, node, Path::new(path)), expected, "{node} {path}");
        }
    }

    #[test]
    fn sizes_are_shown_as_they_were_asked_for() {
        for (asked, size, expected) in [
            ("1Gi", 1 << 30, "1Gi"),
            ("1000", 1024, "1k"),
            ("1Gi", 2 << 30, "2Gi"),
        ] {
            assert_eq!(capacity(&claim(asked), size), expected, "{asked}");
        }
    }

    #[test]
    fn binding_is_done_once() {
        let mut it = claim("1Gi");
        assert!(binding(&it, "pvc-u1").is_some());
        it.spec.volume_name = "pvc-u1".to_owned();
        assert!(binding(&it, "pvc-u1").is_some());
        it.metadata
            .annotations
            .insert(names::BIND_COMPLETED.to_owned(), "yes".to_owned());
        assert_eq!(binding(&it, "pvc-u1"), None);
    }
}
