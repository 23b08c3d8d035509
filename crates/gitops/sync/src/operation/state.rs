//! What is remembered of a sync, in the form of `status.operationState`.

use serde::{Deserialize, Serialize};

use crate::hook::Phase;
use crate::key::ResourceKey;

/// How far something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum OperationPhase {
    /// At work.
    #[default]
    Running,
    /// Somebody wants it to end.
    Terminating,
    /// Done, and not well.
    Failed,
    /// Could not be done.
    Error,
    /// Done.
    Succeeded,
}

impl OperationPhase {
    /// Whether it is over.
    pub fn is_completed(self) -> bool {
        matches!(self, Self::Failed | Self::Error | Self::Succeeded)
    }
}

/// What became of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ResultCode {
    /// Applied.
    Synced,
    /// Refused.
    SyncFailed,
    /// Deleted.
    Pruned,
    /// Not deleted, because nobody asked for it or somebody asked not to.
    PruneSkipped,
}

/// An object in one phase: the same hook may run in several.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    /// What.
    pub key: ResourceKey,
    /// When.
    pub phase: Phase,
}

/// What became of an object, as in `syncResult.resources`. Without `status`, it was about to be applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceResult {
    /// What.
    #[serde(flatten)]
    pub key: ResourceKey,
    /// The version in which it was written.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// What became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ResultCode>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The phase, if it is a hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_type: Option<Phase>,
    /// How far it is; for objects that are no hooks, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_phase: Option<OperationPhase>,
    /// The phase of the sync.
    pub sync_phase: Phase,
}

impl ResourceResult {
    /// Which task it is of.
    pub fn id(&self) -> TaskId {
        TaskId {
            key: self.key.clone(),
            phase: self.sync_phase,
        }
    }

    /// Whether it says only what was about to be done.
    pub fn is_intent(&self) -> bool {
        self.status.is_none() && self.hook_phase == Some(OperationPhase::Running)
    }
}

/// A sync so far.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// How far it is.
    pub phase: OperationPhase,
    /// What it waits for, or how it ended.
    #[serde(default)]
    pub message: String,
    /// What became of objects, in the order in which it happened.
    #[serde(default)]
    pub resources: Vec<ResourceResult>,
    /// Whether the dry run went well. Not kept: to repeat it does no harm.
    #[serde(skip)]
    pub checked: bool,
}

impl State {
    pub(super) fn set(&mut self, phase: OperationPhase, message: impl Into<String>) {
        self.phase = phase;
        self.message = message.into();
    }
}
