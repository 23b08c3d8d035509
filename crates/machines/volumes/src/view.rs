//! What is read of objects. They are written by patches, so that what is not read here is not lost either.

use std::collections::BTreeMap;

use fairway_controller::Failure;
use fairway_kernel_scalar::quantity::Quantity;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Metadata.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) owner_references: Vec<Owner>,
    pub(crate) deletion_timestamp: Option<String>,
    pub(crate) creation_timestamp: String,
}

impl Metadata {
    /// An annotation that is there and says something.
    pub(crate) fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations
            .get(name)
            .map(String::as_str)
            .filter(|it| !it.is_empty())
    }

    /// Who controls the object.
    pub(crate) fn controller(&self) -> Option<&Owner> {
        self.owner_references.iter().find(|owner| owner.controller)
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

/// An owner.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Owner {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) controller: bool,
}

/// A DataVolume.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DataVolume {
    pub(crate) metadata: Metadata,
    pub(crate) spec: DataVolumeSpec,
    pub(crate) status: DataVolumeStatus,
}

/// What a DataVolume is to be.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DataVolumeSpec {
    pub(crate) source: Option<Value>,
    pub(crate) source_ref: Option<SourceRef>,
    pub(crate) pvc: Option<Value>,
    pub(crate) storage: Option<Value>,
    pub(crate) content_type: String,
    pub(crate) preallocation: bool,
    pub(crate) checkpoints: Vec<Value>,
}

/// Where content comes from, by name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SourceRef {
    pub(crate) kind: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

/// What is known of a DataVolume.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DataVolumeStatus {
    pub(crate) phase: String,
    pub(crate) progress: String,
    pub(crate) restart_count: u32,
    pub(crate) claim_name: String,
    pub(crate) conditions: Vec<Value>,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Claim {
    pub(crate) metadata: Metadata,
    pub(crate) spec: ClaimSpec,
    pub(crate) status: ClaimStatus,
}

/// What is claimed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ClaimSpec {
    pub(crate) access_modes: Vec<String>,
    pub(crate) resources: Resources,
    pub(crate) storage_class_name: Option<String>,
    pub(crate) volume_mode: Option<String>,
    pub(crate) volume_name: String,
    pub(crate) selector: Option<Value>,
    pub(crate) data_source_ref: Option<TypedReference>,
    pub(crate) volume_attributes_class_name: Option<String>,
}

/// An object of any kind, in the namespace of who refers to it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct TypedReference {
    pub(crate) api_group: Option<String>,
    pub(crate) kind: String,
    pub(crate) name: String,
}

/// How much.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Resources {
    pub(crate) requests: Storage,
}

/// Bytes, as they are written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Storage {
    #[serde(deserialize_with = "quantity")]
    pub(crate) storage: Option<Quantity>,
}

impl Storage {
    /// Bytes; what is not written, or makes no sense, is none.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.storage
            .and_then(|amount| u64::try_from(amount.value()).ok())
            .filter(|bytes| *bytes > 0)
    }
}

fn quantity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Quantity>, D::Error> {
    Ok(Quantity::from_value(&Value::deserialize(deserializer)?))
}

/// What became of a claim.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ClaimStatus {
    pub(crate) phase: String,
    pub(crate) capacity: Storage,
    pub(crate) conditions: Vec<Value>,
    pub(crate) current_volume_attributes_class_name: Option<String>,
    pub(crate) modify_volume_status: Option<Value>,
}

/// A PersistentVolume.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Volume {
    pub(crate) metadata: Metadata,
    pub(crate) spec: VolumeSpec,
    pub(crate) status: VolumeStatus,
}

/// What a volume is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct VolumeSpec {
    pub(crate) capacity: Storage,
    pub(crate) access_modes: Vec<String>,
    pub(crate) claim_ref: Option<ClaimReference>,
    pub(crate) persistent_volume_reclaim_policy: String,
    pub(crate) storage_class_name: String,
    pub(crate) volume_mode: Option<String>,
    pub(crate) local: Option<LocalPath>,
    pub(crate) node_affinity: Option<Value>,
}

/// A directory of a host.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct LocalPath {
    pub(crate) path: String,
}

/// Whose a volume is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct ClaimReference {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// What became of a volume.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct VolumeStatus {
    pub(crate) phase: String,
    pub(crate) message: String,
}

/// A VolumeAttributesClass.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct AttributesClass {
    pub(crate) driver_name: String,
    pub(crate) parameters: BTreeMap<String, String>,
}

/// A StorageClass.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Class {
    pub(crate) metadata: Metadata,
    pub(crate) provisioner: String,
    pub(crate) reclaim_policy: Option<String>,
    pub(crate) allow_volume_expansion: bool,
}

impl Class {
    /// Whether claims that name no class are of this one.
    pub(crate) fn is_default(&self, annotation: &str) -> bool {
        self.metadata.annotation(annotation) == Some("true")
    }
}

/// A DataSource.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct DataSource {
    pub(crate) metadata: Metadata,
    pub(crate) spec: DataSourceSpec,
}

/// Where content comes from.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct DataSourceSpec {
    pub(crate) source: DataSourceSource,
}

/// One of these.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DataSourceSource {
    pub(crate) pvc: Option<Named>,
    pub(crate) snapshot: Option<Named>,
    pub(crate) data_source: Option<Named>,
}

/// An object of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub(crate) struct Named {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Named {
    /// In its own namespace, or in that of who refers to it.
    pub(crate) fn within(&self, namespace: &str) -> Self {
        Self {
            namespace: match self.namespace.as_str() {
                "" => namespace.to_owned(),
                own => own.to_owned(),
            },
            name: self.name.clone(),
        }
    }
}

/// A view of an object.
pub(crate) fn read<T: for<'de> Deserialize<'de>>(what: &str, object: &Value) -> Result<T, Failure> {
    T::deserialize(object).map_err(|error| {
        Failure::NotYet(format!(
            "the {what} does not have the form of its kind ({error}); compare it with `kubectl explain {what}`"
        ))
    })
}

/// A view of an object for a list of many: one that does not have the form of its kind says nothing there.
pub(crate) fn glance<T: Default + for<'de> Deserialize<'de>>(object: &Value) -> T {
    T::deserialize(object).unwrap_or_default()
}
