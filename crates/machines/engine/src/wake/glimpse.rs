//! What is kept of machines: who is to be woken when a disk or a size changes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fairway_controller::glimpse::{Kept, meta};
use kube::api::ObjectMeta;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// What is kept of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Its disks, by their claims.
    pub(crate) disks: Box<[Box<str>]>,
    /// It names a size or a taste.
    pub(crate) is_sized: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wire<'a> {
    #[serde(borrow)]
    metadata: WireMeta<'a>,
    #[serde(borrow)]
    spec: WireSpec<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct WireMeta<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) namespace: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) resource_version: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) uid: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) deletion_timestamp: Option<Cow<'a, str>>,
    pub(crate) labels: Option<BTreeMap<String, String>>,
    #[serde(borrow)]
    pub(crate) annotations: Option<Home<'a>>,
}

/// The one annotation that is read.
#[derive(Default, Deserialize)]
pub(crate) struct Home<'a> {
    #[serde(borrow, default, rename = "kcp.io/cluster")]
    cluster: Option<Cow<'a, str>>,
}

impl WireMeta<'_> {
    /// What a watch needs.
    pub(crate) fn meta(&self) -> ObjectMeta {
        let home = self.annotations.as_ref().and_then(|it| it.cluster.as_deref());
        meta(&self.name, &self.namespace, &self.resource_version, home)
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireSpec<'a> {
    #[serde(borrow)]
    data_volume_templates: Option<Vec<WireNamed<'a>>>,
    #[serde(borrow)]
    template: Option<WireTemplate<'a>>,
    instancetype: Option<IgnoredAny>,
    preference: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireNamed<'a> {
    #[serde(borrow)]
    metadata: WireMeta<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireTemplate<'a> {
    #[serde(borrow)]
    spec: WireInstance<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireInstance<'a> {
    #[serde(borrow)]
    volumes: Option<Vec<WireVolume<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct WireVolume<'a> {
    #[serde(borrow)]
    data_volume: Option<WireSource<'a>>,
    #[serde(borrow)]
    persistent_volume_claim: Option<WireSource<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireSource<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    claim_name: Cow<'a, str>,
}

/// The claims of volumes.
pub(crate) fn claims<'w, 'a: 'w>(volumes: impl Iterator<Item = &'w WireVolume<'a>>) -> Box<[Box<str>]> {
    let mut found: Vec<Box<str>> = Vec::new();
    for volume in volumes {
        let filled = volume.data_volume.iter().map(|it| Box::from(&*it.name));
        let claimed = volume.persistent_volume_claim.iter();
        found.extend(filled.chain(claimed.map(|it| Box::from(&*it.claim_name))));
    }
    found.into()
}

impl Kept for Machine {
    type Wire<'a> = Wire<'a>;

    fn keep(wire: &Wire<'_>) -> (ObjectMeta, Self) {
        let templates = wire.spec.data_volume_templates.iter().flatten();
        let made = templates.map(|it| Box::from(&*it.metadata.name));
        let volumes = wire
            .spec
            .template
            .iter()
            .filter_map(|it| it.spec.volumes.as_ref());
        let mut disks: Vec<Box<str>> = claims(volumes.flatten()).into();
        disks.extend(made);
        disks.sort();
        disks.dedup();
        let machine = Self {
            disks: disks.into(),
            is_sized: wire.spec.instancetype.is_some() || wire.spec.preference.is_some(),
        };
        (wire.metadata.meta(), machine)
    }
}

#[cfg(test)]
mod tests {
    use fairway_controller::glimpse::Glimpse;
    use fairway_controller::{ObjectKey, Reach};

    use super::*;

    #[test]
    fn a_machine_is_known_by_its_disks() {
        let text = r#"{
            "metadata": {"name": "web", "namespace": "vms", "resourceVersion": "7", "labels": {"a": "b"},
                "annotations": {"kcp.io/cluster": "team", "other": "o"}},
            "spec": {
                "dataVolumeTemplates": [{"metadata": {"name": "root"}, "spec": {}}],
                "preference": {"name": "linux"},
                "template": {"spec": {"volumes": [
                    {"name": "a", "dataVolume": {"name": "root"}},
                    {"name": "b", "persistentVolumeClaim": {"claimName": "data"}},
                    {"name": "c", "containerDisk": {"image": "i"}}
                ]}}
            },
            "status": {"created": true}
        }"#;
        let seen: Glimpse<Machine> = serde_json::from_str(text).unwrap();
        let expected = Machine {
            disks: [Box::from("data"), Box::from("root")].into(),
            is_sized: true,
        };
        assert_eq!(seen.kept, expected);
        assert_eq!(
            ObjectKey::of(&Reach::Every, &seen.metadata).to_string(),
            "team|vms/web"
        );
        let bare: Glimpse<Machine> =
            serde_json::from_str(r#"{"metadata": {"name": "x"}, "spec": {}}"#).unwrap();
        assert_eq!(bare.kept, Machine::default());
    }
}
