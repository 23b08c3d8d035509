//! The classes of claims. The one of this host is made in a workspace when the first claim needs it, so that workspaces without
//! volumes hold nothing.

use fairway_controller::{Failure, Requests};
use serde_json::{Value, json};

use super::Claims;
use crate::view::{self, Class};
use crate::{PROVISIONER, STORAGE_CLASS, names};

const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const PROFILES: &str = "/apis/cdi.kubevirt.io/v1beta1/storageprofiles";

/// The name of the class of claims that name none: one for machines, else one for everything, else ours. Of several the last by name,
/// so that it is always the same.
pub(super) fn default_class(classes: &[Class]) -> &str {
    let marked = |annotation: &str| {
        let all = classes.iter().filter(|class| class.is_default(annotation));
        all.map(|class| class.metadata.name.as_str()).max()
    };
    marked(names::DEFAULT_VIRT_CLASS)
        .or_else(|| marked(names::DEFAULT_CLASS))
        .unwrap_or(STORAGE_CLASS)
}

impl Claims {
    /// The name of the class of claims that name none.
    pub(super) async fn default_class(&self, requests: &Requests) -> Result<String, Failure> {
        let found = requests.list(CLASSES).await?;
        let classes: Vec<Class> = found.iter().map(view::glance).collect();
        Ok(default_class(&classes).to_owned())
    }

    /// A class. Ours is made if it is not there.
    pub(super) async fn class(&self, requests: &Requests, name: &str) -> Result<Option<Class>, Failure> {
        let path = format!("{CLASSES}/{name}");
        if let Some(found) = requests.get(&path).await? {
            return view::read("storageclass", &found).map(Some);
        }
        if name != STORAGE_CLASS {
            return Ok(None);
        }
        let classes = requests.list(CLASSES).await?;
        let has_default = classes
            .iter()
            .any(|class| view::glance::<Class>(class).is_default(names::DEFAULT_CLASS));
        let class = ours(!has_default);
        requests.create(CLASSES, &class).await?;
        // What CDI says of a class: how claims of it are best made.
        if requests.get(PROFILES).await?.is_some() {
            requests.create(PROFILES, &profile()).await?;
        }
        view::read("storageclass", &class).map(Some)
    }
}

fn ours(is_default: bool) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": STORAGE_CLASS, "annotations": {names::DEFAULT_CLASS: is_default.to_string()}},
        "provisioner": PROVISIONER,
        "allowVolumeExpansion": true,
        "volumeBindingMode": "Immediate",
        "reclaimPolicy": "Delete",
    })
}

fn profile() -> Value {
    json!({
        "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "StorageProfile",
        "metadata": {"name": STORAGE_CLASS},
        "spec": {},
        "status": {
            "storageClass": STORAGE_CLASS,
            "provisioner": PROVISIONER,
            "cloneStrategy": "copy",
            "claimPropertySets": [{"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"}],
        },
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;

    use super::*;

    #[test]
    fn claims_that_name_no_class_have_one() {
        let class = |name: &str, annotation: &str| {
            Class::deserialize(json!({"metadata": {"name": name, "annotations": {annotation: "true"}}}))
                .unwrap()
        };
        let plain = Class::deserialize(json!({"metadata": {"name": "x"}})).unwrap();
        assert_eq!(default_class(&[]), STORAGE_CLASS);
        assert_eq!(default_class(&[plain]), STORAGE_CLASS);
        let fast = class("fast", names::DEFAULT_CLASS);
        assert_eq!(
            default_class(&[fast.clone(), class("slow", names::DEFAULT_CLASS)]),
            "slow"
        );
        assert_eq!(default_class(&[fast, class("a", names::DEFAULT_VIRT_CLASS)]), "a");
    }
}
