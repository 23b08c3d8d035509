//! How healthy an object is, as Argo CD judges it.
//!
//! [`Judge`] asks three sources in this order: the users' Lua scripts ([`Customizations`], in the forms of Argo CD's
//! ConfigMap), which override everything; the judgements of this crate ([`kinds`]), one file per family of kinds; and
//! nobody, for kinds that have no health. [`aggregate`] makes one health of an application's many.
//!
//! Scripts run in a sandbox without files, processes or modules, within limits of instructions and memory ([`lua`]).
//! The crate must not know clients, controllers or the time of day: who runs scripts says what time it is.

#![cfg_attr(
    test,
    allow(
        clippy::needless_pass_by_value,
        reason = "test tables hand over JSON literals; borrowing them would only add noise"
    )
)]

pub mod aggregate;
mod customization;
pub mod kinds;
pub mod lua;
mod view;

pub use customization::{Customization, CustomizationError, Customizations, IgnoreDiff, KnownTypeField};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The health of an object in one word, from best to worst: an application is as healthy as the worst of its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub enum Status {
    /// All is well.
    Healthy,
    /// Not at work, because somebody said so.
    Suspended,
    /// Not yet healthy, but may become so.
    Progressing,
    /// Declared, and not there.
    Missing,
    /// Failed, or did not get healthy in time.
    Degraded,
    /// Could not be found out.
    #[default]
    Unknown,
}

impl Status {
    /// Argo CD's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::Suspended => "Suspended",
            Self::Progressing => "Progressing",
            Self::Missing => "Missing",
            Self::Degraded => "Degraded",
            Self::Unknown => "Unknown",
        }
    }

    /// The status that a word stands for.
    pub fn parse(word: &str) -> Option<Self> {
        [
            Self::Healthy,
            Self::Suspended,
            Self::Progressing,
            Self::Missing,
            Self::Degraded,
            Self::Unknown,
        ]
        .into_iter()
        .find(|status| status.as_str() == word)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The health of an object, with a reason for people.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Health {
    /// In one word; none if a script had no opinion, which counts as healthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Health {
    /// A health with a reason.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self {
            status: Some(status),
            message: message.into(),
        }
    }

    /// A health that needs no words.
    pub fn plain(status: Status) -> Self {
        Self::new(status, "")
    }

    /// For the aggregate: no opinion does not make anything worse.
    pub fn status_or_healthy(&self) -> Status {
        self.status.unwrap_or(Status::Healthy)
    }
}

/// Judges objects.
#[derive(Clone, Default)]
pub struct Judge {
    /// What the users have changed.
    pub customizations: Customizations,
    /// How much a script may use.
    pub limits: lua::Limits,
    /// What the time of scripts is measured with; without it only their instructions are counted.
    pub stopwatch: Option<lua::Stopwatch>,
}

impl Judge {
    /// The health of an object, or none for a kind that has none. `now` is what scripts are told of the time.
    pub fn health(&self, object: &Value, now: jiff::Timestamp) -> Option<Health> {
        if !object["metadata"]["deletionTimestamp"].is_null() {
            return Some(Health::new(Status::Progressing, "Pending deletion"));
        }
        let (group, kind) = view::group_kind(object);
        if let Some((script, open_libs)) = self.customizations.health_script(group, kind) {
            let host = lua::Host {
                now,
                open_libs,
                limits: self.limits,
                stopwatch: self.stopwatch.clone(),
            };
            return Some(match host.health(script, object) {
                Ok(health) => health,
                Err(error) => Health::new(Status::Unknown, error.to_string()),
            });
        }
        kinds::health(object)
    }
}
