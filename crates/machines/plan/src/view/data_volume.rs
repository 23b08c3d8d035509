//! `dataVolumeTemplates`: disks that a machine brings along.

use serde::Deserialize;
use serde_json::Value;

use super::Metadata;

/// A template.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct DataVolumeTemplate {
    /// Name and labels of the DataVolume.
    pub metadata: Metadata,
    /// What it is made of.
    pub spec: DataVolumeSpec,
}

/// What a DataVolume is made of.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct DataVolumeSpec {
    /// The claim, as a claim is written.
    pub pvc: Option<Value>,
    /// The claim, with what is missing worked out.
    pub storage: Option<Value>,
    /// Where the content comes from.
    pub source: Option<Value>,
    /// Where the content comes from, by name.
    pub source_ref: Option<Value>,
    /// `kubevirt` or `archive`.
    pub content_type: String,
}
