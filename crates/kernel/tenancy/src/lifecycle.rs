//! Whoever has work to do in a workspace before it is ready, or before it goes: initializers and terminators.
//!
//! Each belongs to a WorkspaceType and bears its name. It reaches the workspaces that wait for it, and no others, through a
//! door of its own (`/services/initializingworkspaces/<name>/…`, `/services/terminatingworkspaces/<name>/…`), and leaves
//! by taking its name off the LogicalCluster.

use serde_json::{Value, json};

use crate::cluster::ClusterId;
use crate::conditions::Conditions;
use crate::logical_cluster::{LogicalCluster, Phase, lifecycle_label};
use crate::names::label;
use crate::types::WorkspaceType;

/// When the work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before a workspace is ready.
    Initializing,
    /// Before it is emptied.
    Terminating,
}

impl Stage {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Initializing, Self::Terminating];

    /// The part of a URL after `/services/`.
    pub fn service(self) -> &'static str {
        match self {
            Self::Initializing => "initializingworkspaces",
            Self::Terminating => "terminatingworkspaces",
        }
    }

    /// The verb on the WorkspaceType that opens the door.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Initializing => "initialize",
            Self::Terminating => "terminate",
        }
    }

    /// What it is called.
    pub fn worker(self) -> &'static str {
        match self {
            Self::Initializing => "initializer",
            Self::Terminating => "terminator",
        }
    }

    fn field(self) -> &'static str {
        match self {
            Self::Initializing => "initializers",
            Self::Terminating => "terminators",
        }
    }

    fn of_cluster(self, cluster: &LogicalCluster) -> &[String] {
        match self {
            Self::Initializing => &cluster.initializers,
            Self::Terminating => &cluster.terminators,
        }
    }

    /// What the type lets its worker do inside; empty: whatever the workspace's creator may.
    pub fn permissions(self, kind: &WorkspaceType) -> &[Value] {
        match self {
            Self::Initializing => &kind.spec.initializer_permissions,
            Self::Terminating => &kind.spec.terminator_permissions,
        }
    }
}

/// An initializer or a terminator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Which of the two.
    pub stage: Stage,
    /// The workspace of its type.
    pub cluster: ClusterId,
    /// The name of its type.
    pub type_name: String,
}

impl Worker {
    /// Its name: `<id of the type's workspace>:<name of the type>`.
    pub fn name(&self) -> String {
        format!("{}:{}", self.cluster, self.type_name)
    }

    /// The labels of the LogicalClusters that wait for it now: a terminator's name is on a workspace from its beginning.
    pub fn labels(&self) -> Vec<(String, String)> {
        let phase = match self.stage {
            Stage::Initializing => Phase::Initializing,
            Stage::Terminating => Phase::Terminating,
        };
        let phase = (label::PHASE.to_owned(), phase.as_str().to_owned());
        vec![self.label(), phase]
    }

    /// The label of the LogicalClusters that bear its name.
    pub fn label(&self) -> (String, String) {
        let prefix = match self.stage {
            Stage::Initializing => label::INITIALIZER_PREFIX,
            Stage::Terminating => label::TERMINATOR_PREFIX,
        };
        lifecycle_label(prefix, &self.name())
    }

    /// Whether a workspace waits for it now.
    pub fn is_awaited_by(&self, cluster: &LogicalCluster) -> bool {
        let its_time = match self.stage {
            Stage::Initializing => cluster.phase == Phase::Initializing && !cluster.meta.is_deleting(),
            Stage::Terminating => cluster.meta.is_deleting(),
        };
        its_time && self.stage.of_cluster(cluster).contains(&self.name())
    }

    /// What speaks against a change that it makes of a LogicalCluster: it may take its own name off, and nothing else.
    pub fn objection_to_update(&self, new: &Value, old: &Value) -> Option<String> {
        let field = self.stage.field();
        let list = |object: &Value| -> Vec<String> {
            let all = object["status"][field].as_array();
            all.into_iter()
                .flatten()
                .filter_map(|it| it.as_str().map(str::to_owned))
                .collect()
        };
        let name = self.name();
        let left: Vec<String> = list(old).into_iter().filter(|it| *it != name).collect();
        let rest = |object: &Value| {
            let mut rest = object.clone();
            if let Some(status) = rest["status"].as_object_mut() {
                status.shift_remove(field);
            }
            if let Some(metadata) = rest["metadata"].as_object_mut() {
                for bookkeeping in ["managedFields", "resourceVersion", "generation"] {
                    metadata.shift_remove(bookkeeping);
                }
            }
            rest
        };
        let now = list(new);
        if (now == left || now == list(old)) && rest(new) == rest(old) {
            return None;
        }
        Some(format!(
            "only removing the {name:?} {} from status.{field} is supported",
            self.stage.worker()
        ))
    }
}

/// The status that a WorkspaceType shall have, if it is to change: where its initializer and its terminator find their
/// workspaces.
pub fn type_status(object: &Value, server: &str, now: &str) -> Option<Value> {
    let kind = WorkspaceType::read(object)?;
    let name = kind.initializer_name();
    let urls = |stage: Stage| json!({"url": format!("{server}/services/{}/{name}", stage.service())});
    let mut doors = Vec::new();
    if kind.spec.initializer {
        doors.push(urls(Stage::Initializing));
    }
    if kind.spec.terminator {
        doors.push(urls(Stage::Terminating));
    }
    let mut conditions = Conditions::read(object);
    conditions.mark_true("VirtualWorkspaceURLsReady", now);
    let mut status = match &object["status"] {
        Value::Object(status) => status.clone(),
        _ => serde_json::Map::new(),
    };
    status.insert("conditions".to_owned(), conditions.to_value());
    if doors.is_empty() {
        status.shift_remove("virtualWorkspaces");
    } else {
        status.insert("virtualWorkspaces".to_owned(), json!(doors));
    }
    let status = Value::Object(status);
    (status != object["status"]).then_some(status)
}

#[cfg(test)]
mod tests;
