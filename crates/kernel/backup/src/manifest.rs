//! What a backup says of itself, in JSON, so that a later format can add to it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The first chunk: known before anything has been read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// The store's revision that this is a picture of.
    pub revision: u64,
    /// When it was taken, RFC 3339.
    pub created: String,
    /// Version of the program that took it.
    pub fairway: String,
}

/// The last chunk: what must have been read by now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Entries.
    pub entries: u64,
    /// Entries whose value is encrypted under a key of the installation.
    pub sealed: u64,
    /// Keys that were left out because they live only as long as somebody renews their lease.
    pub leased: u64,
    /// Objects by kind (`deployments.apps`).
    pub kinds: BTreeMap<String, u64>,
    /// Files beside the store.
    #[serde(default)]
    pub files: u64,
    /// Bytes in these files.
    #[serde(default)]
    pub file_bytes: u64,
}
