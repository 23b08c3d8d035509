//! What PersistentVolumeClaims use: numbers and storage, in all and by storage class.

use std::collections::BTreeSet;

use fairway_kernel_kinds::quantity::Quantity;
use fairway_kernel_kinds::read::{part, text};
use serde_json::Value;

use crate::Amounts;
use crate::scope::Scope;

const COUNT: &str = "count/persistentvolumeclaims";
const CLAIMS: &str = "persistentvolumeclaims";
const STORAGE: &str = "requests.storage";
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";
/// Where the class stood before there was a field for it.
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

pub(crate) fn measures(name: &str) -> bool {
    let of_class = || {
        name.rsplit_once('/').is_some_and(|(class, rest)| {
            class.ends_with(&OF_CLASS[..OF_CLASS.len() - 1]) && matches!(rest, CLAIMS | STORAGE)
        })
    };
    matches!(name, COUNT | CLAIMS | STORAGE) || of_class()
}

pub(crate) fn in_scope(scope: &Scope, claim: &Value) -> bool {
    if scope.name != "VolumeAttributesClass" {
        return false;
    }
    let names: Vec<&str> = attribute_classes(claim).into_iter().collect();
    scope.matches_any(&names)
}

/// The classes that a claim has, wants, or is being moved to.
fn attribute_classes(claim: &Value) -> BTreeSet<&str> {
    let status = part(claim, "status");
    [
        text(part(claim, "spec"), "volumeAttributesClassName"),
        text(status, "currentVolumeAttributesClassName"),
        text(
            part(status, "modifyVolumeStatus"),
            "targetVolumeAttributesClassName",
        ),
    ]
    .into_iter()
    .filter(|name| !name.is_empty())
    .collect()
}

/// Whether a change of status may change what the claim uses.
pub(crate) fn usage_may_have_changed(old: &Value, new: &Value) -> bool {
    allocated(old) != allocated(new) || attribute_classes(old) != attribute_classes(new)
}

fn allocated(claim: &Value) -> Option<Quantity> {
    Amounts::read(part(claim, "status"), "allocatedResources").get("storage")
}

pub(crate) fn usage(claim: &Value) -> Amounts {
    let spec = part(claim, "spec");
    let old_class = text(part(part(claim, "metadata"), "annotations"), OLD_CLASS);
    let class = if old_class.is_empty() {
        text(spec, "storageClassName")
    } else {
        old_class
    };
    let mut used = Amounts::default();
    used.one(CLAIMS);
    used.one(COUNT);
    if !class.is_empty() {
        used.one(format!("{class}{OF_CLASS}{CLAIMS}"));
    }
    let requested = Amounts::read(part(spec, "resources"), "requests").get("storage");
    if let Some(requested) = requested {
        // While a claim grows, what it has been given may be more than what it asks for now. Bytes are whole.
        let storage = allocated(claim)
            .filter(|allocated| *allocated > requested)
            .unwrap_or(requested)
            .round_up();
        used.set(STORAGE, storage);
        if !class.is_empty() {
            used.set(format!("{class}{OF_CLASS}{STORAGE}"), storage);
        }
    }
    used
}
