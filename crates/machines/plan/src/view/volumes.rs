//! `spec.volumes`: where the content of disks comes from.

use serde::Deserialize;
use serde_json::Value;

use super::{Amount, Present};

/// A volume. Exactly one of its sources is set.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Volume {
    /// Its disk's name.
    pub name: String,
    /// A file of the host.
    pub host_disk: Option<HostDisk>,
    /// A claim.
    pub persistent_volume_claim: Option<PersistentVolumeClaimRef>,
    /// A NoCloud seed.
    pub cloud_init_no_cloud: Option<CloudInit>,
    /// A ConfigDrive seed.
    pub cloud_init_config_drive: Option<CloudInit>,
    /// Answers for Windows' installer.
    pub sysprep: Option<Sysprep>,
    /// A disk out of a container image.
    pub container_disk: Option<ContainerDisk>,
    /// A claim whose changes are thrown away.
    pub ephemeral: Option<Ephemeral>,
    /// An empty disk.
    pub empty_disk: Option<EmptyDisk>,
    /// A disk that CDI fills.
    pub data_volume: Option<DataVolumeRef>,
    /// Files of a ConfigMap.
    pub config_map: Option<ConfigMapVolume>,
    /// Files of a Secret.
    pub secret: Option<SecretVolume>,
    /// Facts about the machine's object.
    #[serde(rename = "downwardAPI")]
    pub downward_api: Option<DownwardApiVolume>,
    /// A token.
    pub service_account: Option<ServiceAccountVolume>,
    /// Metrics of the host.
    pub downward_metrics: Option<Present>,
    /// Where a memory dump goes.
    pub memory_dump: Option<MemoryDump>,
}

impl Volume {
    /// How many sources are set.
    pub fn sources(&self) -> usize {
        [
            self.host_disk.is_some(),
            self.persistent_volume_claim.is_some(),
            self.cloud_init_no_cloud.is_some(),
            self.cloud_init_config_drive.is_some(),
            self.sysprep.is_some(),
            self.container_disk.is_some(),
            self.ephemeral.is_some(),
            self.empty_disk.is_some(),
            self.data_volume.is_some(),
            self.config_map.is_some(),
            self.secret.is_some(),
            self.downward_api.is_some(),
            self.service_account.is_some(),
            self.downward_metrics.is_some(),
            self.memory_dump.is_some(),
        ]
        .into_iter()
        .filter(|set| *set)
        .count()
    }

    /// It may come and go while the guest runs.
    pub fn is_hotpluggable(&self) -> bool {
        let claim = self
            .persistent_volume_claim
            .as_ref()
            .is_some_and(|it| it.hotpluggable);
        claim || self.data_volume.as_ref().is_some_and(|it| it.hotpluggable) || self.memory_dump.is_some()
    }
}

/// A file of the host.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct HostDisk {
    /// Where it is.
    pub path: String,
    /// `Disk` or `DiskOrCreate`.
    #[serde(rename = "type")]
    pub kind: String,
    /// How large it is made.
    pub capacity: Option<Amount>,
    /// Several machines have it.
    pub shared: Option<bool>,
}

/// A claim.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct PersistentVolumeClaimRef {
    /// Its name.
    pub claim_name: String,
    /// Nothing is written.
    pub read_only: bool,
    /// It may come and go.
    pub hotpluggable: bool,
}

/// Where a memory dump goes.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct MemoryDump {
    /// Its claim.
    pub claim_name: String,
}

/// An object of the namespace.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Reference {
    /// Its name.
    pub name: String,
}

/// A seed, of either kind.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct CloudInit {
    /// User data in a Secret.
    pub secret_ref: Option<Reference>,
    /// User data.
    pub user_data_base64: String,
    /// User data.
    pub user_data: String,
    /// Network configuration in a Secret.
    pub network_data_secret_ref: Option<Reference>,
    /// Network configuration.
    pub network_data_base64: String,
    /// Network configuration.
    pub network_data: String,
}

/// Answers for Windows' installer.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Sysprep {
    /// In a Secret.
    pub secret: Option<Reference>,
    /// In a ConfigMap.
    pub config_map: Option<Reference>,
}

/// A disk out of a container image.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerDisk {
    /// The image.
    pub image: String,
    /// A Secret for its registry.
    pub image_pull_secret: String,
    /// The disk in it.
    pub path: String,
    /// When to ask the registry.
    pub image_pull_policy: String,
}

/// A claim whose changes are thrown away.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Ephemeral {
    /// The claim.
    pub persistent_volume_claim: Option<PersistentVolumeClaimRef>,
}

/// An empty disk.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct EmptyDisk {
    /// How large.
    pub capacity: Option<Amount>,
}

/// A disk that CDI fills.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct DataVolumeRef {
    /// Its name.
    pub name: String,
    /// It may come and go.
    pub hotpluggable: bool,
}

/// Files of a ConfigMap.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ConfigMapVolume {
    /// Its name.
    pub name: String,
    /// It need not exist.
    pub optional: bool,
    /// What the guest sees as label.
    pub volume_label: String,
}

/// Files of a Secret.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct SecretVolume {
    /// Its name.
    pub secret_name: String,
    /// It need not exist.
    pub optional: bool,
    /// What the guest sees as label.
    pub volume_label: String,
}

/// Facts about the machine's object.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct DownwardApiVolume {
    /// A file each.
    pub fields: Vec<DownwardApiField>,
    /// What the guest sees as label.
    pub volume_label: String,
}

/// A file with a fact.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct DownwardApiField {
    /// The file.
    pub path: String,
    /// The fact.
    pub field_ref: Option<FieldRef>,
    /// A fact of its container, which it does not have.
    pub resource_field_ref: Option<Value>,
    /// Permissions of the file.
    pub mode: Option<i64>,
}

/// A field of the object.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct FieldRef {
    /// `metadata.labels`, ...
    pub field_path: String,
}

/// A token.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceAccountVolume {
    /// Whose.
    pub service_account_name: String,
}
