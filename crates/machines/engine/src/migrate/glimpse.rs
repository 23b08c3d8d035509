//! What is kept of migrations: whose they are, and whether they are over.

use std::borrow::Cow;

use fairway_controller::glimpse::Kept;
use kube::api::ObjectMeta;
use serde::Deserialize;

use crate::wake::glimpse::WireMeta;

/// What is kept of a migration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Migration {
    /// The instance that moves.
    pub(crate) instance: Box<str>,
    /// It is over.
    pub(crate) over: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wire<'a> {
    #[serde(borrow)]
    metadata: WireMeta<'a>,
    #[serde(borrow)]
    spec: WireSpec<'a>,
    #[serde(borrow)]
    status: WireStatus<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireSpec<'a> {
    #[serde(borrow)]
    vmi_name: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireStatus<'a> {
    #[serde(borrow)]
    phase: Cow<'a, str>,
}

impl Kept for Migration {
    type Wire<'a> = Wire<'a>;

    fn keep(wire: &Wire<'_>) -> (ObjectMeta, Self) {
        let migration = Self {
            instance: Box::from(&*wire.spec.vmi_name),
            over: matches!(&*wire.status.phase, "Succeeded" | "Failed"),
        };
        (wire.metadata.meta(), migration)
    }
}
