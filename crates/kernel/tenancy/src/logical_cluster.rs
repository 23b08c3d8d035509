//! The LogicalCluster: a workspace seen from inside, and the state that it is in.
//!
//! ```text
//! Scheduling ──► Initializing ──► Ready ◄──► Inactive
//!                  (initializers)   │
//!                                   ▼ deleted
//!                 Terminating ──► Deleting ──► gone
//!                  (terminators)    (content)
//! ```
//!
//! Deletion may begin in any state; what has not been initialized is not waited for.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::cluster::{ClusterId, WorkspacePath};
use crate::conditions::{Conditions, Severity};
use crate::encode;
use crate::meta::{Meta, part};
use crate::names::{LOGICAL_CLUSTER, annotation, finalizer, group, label};
use crate::workspace::Workspace;

/// Where a workspace is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Phase {
    /// Not there yet.
    #[default]
    Scheduling,
    /// There, and being filled.
    Initializing,
    /// In use.
    Ready,
    /// Something is wrong.
    Unavailable,
    /// Taken offline on purpose.
    Inactive,
    /// Being deleted, and somebody has work to do first.
    Terminating,
    /// Being emptied.
    Deleting,
}

impl Phase {
    /// As in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduling => "Scheduling",
            Self::Initializing => "Initializing",
            Self::Ready => "Ready",
            Self::Unavailable => "Unavailable",
            Self::Inactive => "Inactive",
            Self::Terminating => "Terminating",
            Self::Deleting => "Deleting",
        }
    }

    /// Whether requests for what is inside are let through to the authorizers. Inactive ones are stopped elsewhere,
    /// because their LogicalCluster has to be reachable.
    pub fn admits_requests(self) -> bool {
        !matches!(self, Self::Scheduling | Self::Unavailable)
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    directly_deletable: bool,
    initializers: Vec<String>,
    terminators: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: Phase,
    initializers: Vec<String>,
    terminators: Vec<String>,
    #[serde(rename = "URL")]
    url: String,
}

/// A LogicalCluster.
#[derive(Clone, Debug)]
pub struct LogicalCluster {
    /// Its metadata.
    pub meta: Meta,
    /// Its phase.
    pub phase: Phase,
    /// Initializers that are still at work.
    pub initializers: Vec<String>,
    /// Terminators that are still to do their work.
    pub terminators: Vec<String>,
    /// What it says of itself.
    pub conditions: Conditions,
    /// Whether users may delete it from within.
    pub directly_deletable: bool,
    spec_initializers: Vec<String>,
    spec_terminators: Vec<String>,
    url: String,
    owner: Value,
}

impl LogicalCluster {
    /// Reads the object.
    pub fn read(object: &Value) -> Self {
        let spec: Spec = part(object, "spec");
        let status: Status = part(object, "status");
        Self {
            meta: Meta::read(object),
            phase: status.phase,
            initializers: status.initializers,
            terminators: status.terminators,
            conditions: Conditions::read(object),
            directly_deletable: spec.directly_deletable,
            spec_initializers: spec.initializers,
            spec_terminators: spec.terminators,
            url: status.url,
            owner: object.pointer("/spec/owner").cloned().unwrap_or(Value::Null),
        }
    }

    /// Whether somebody took it offline.
    pub fn is_inactive(&self) -> bool {
        [annotation::INACTIVE, annotation::INACTIVE_LEGACY]
            .iter()
            .any(|key| self.meta.annotation(key) == Some("true"))
    }

    /// The initializers that have work to do, now or as soon as it is initialized.
    pub fn pending(&self) -> &[String] {
        match self.phase {
            Phase::Scheduling => &self.spec_initializers,
            Phase::Initializing => &self.initializers,
            _ => &[],
        }
    }

    /// Its address, as its status tells it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The Workspace that it belongs to: the workspace that lies in, and its name.
    pub fn owner(&self) -> Option<(ClusterId, &str)> {
        let text = |field: &str| self.owner.get(field).and_then(Value::as_str);
        Some((ClusterId::parse(text("cluster")?).ok()?, text("name")?))
    }

    /// Its type, as `<path>:<name>`.
    pub fn type_name(&self) -> Option<&str> {
        self.meta.annotation(annotation::TYPE)
    }

    /// Whether it was made for this Workspace and not for another one that had the same name or id.
    pub fn belongs_to(&self, workspace: &Workspace) -> bool {
        self.owner.get("uid").and_then(Value::as_str) == Some(workspace.meta.uid.as_str())
    }

    /// Whether a user of these groups is let into the workspace, as far as its required groups go.
    pub fn required_groups_met(&self, groups: &[String]) -> bool {
        let required = self.meta.annotation(annotation::REQUIRED_GROUPS);
        required.is_none_or(|required| required_groups_met(required, groups))
    }
}

/// Whether a user of these groups has what a workspace requires: `a,b;c` is (a and b) or c. Those who keep the platform
/// always have.
pub fn required_groups_met(required: &str, groups: &[String]) -> bool {
    required
        .split(';')
        .chain([group::ADMIN, group::WORKSPACE_BOOTSTRAPPER])
        .any(|all| all.split(',').all(|one| groups.iter().any(|it| it == one)))
}

/// The LogicalCluster for a Workspace that has been given an id.
pub fn for_workspace(
    workspace: &Workspace,
    parent: &ClusterId,
    path: &WorkspacePath,
    initializers: &[String],
    terminators: &[String],
) -> Value {
    let mut annotations = BTreeMap::from([
        (annotation::TYPE, workspace.type_reference.to_string()),
        (annotation::PATH, path.to_string()),
    ]);
    for key in [annotation::OWNER, annotation::REQUIRED_GROUPS] {
        if let Some(value) = workspace.meta.annotation(key) {
            annotations.insert(key, value.to_owned());
        }
    }
    let mut spec = json!({
        "owner": {
            "apiVersion": "tenancy.kcp.io/v1alpha1",
            "resource": "workspaces",
            "name": workspace.meta.name,
            "cluster": parent.as_str(),
            "uid": workspace.meta.uid,
        },
    });
    let creator = workspace.meta.annotation(annotation::OWNER);
    if let Some(creator) = creator.and_then(|text| serde_json::from_str::<Value>(text).ok()) {
        spec["createdBy"] = creator;
    }
    for (field, list) in [("initializers", initializers), ("terminators", terminators)] {
        if !list.is_empty() {
            spec[field] = json!(list);
        }
    }
    json!({
        "apiVersion": "core.kcp.io/v1alpha1",
        "kind": "LogicalCluster",
        "metadata": {
            "name": LOGICAL_CLUSTER,
            "annotations": annotations,
            "finalizers": [finalizer::LOGICAL_CLUSTER_CONTENT],
        },
        "spec": spec,
    })
}

/// What is to be done about a LogicalCluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Labels, if they are to change. All of them.
    pub labels: Option<BTreeMap<String, String>>,
    /// Finalizers, if they are to change. All of them.
    pub finalizers: Option<Vec<String>>,
    /// The status, if it is to change.
    pub status: Option<Value>,
    /// Whether everything in the workspace is to be deleted now; then the finalizer for content is removed.
    pub delete_content: bool,
}

/// Something that is waited for, as a condition tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The condition's reason.
    pub reason: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// For whom it may concern.
    pub message: String,
}

/// How far the system's own work on a LogicalCluster is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Initializers whose work is done.
    pub finished: Vec<String>,
    /// Of the APIs that its type binds: what is waited for, if anything. Nothing at all: its type binds none.
    pub apis: Option<Result<(), Waiting>>,
    /// Of the deletion of its content: what is waited for.
    pub content: Option<Waiting>,
}

fn tell(conditions: &mut Conditions, kind: &str, state: Result<(), &Waiting>, now: &str) {
    match state {
        Ok(()) => conditions.mark_true(kind, now),
        Err(it) => conditions.mark_false(kind, it.reason, it.severity, &it.message, now),
    }
}

/// Decides. `url` is the workspace's own; `now` a time.
pub fn decide(cluster: &LogicalCluster, progress: &Progress, url: &str, now: &str) -> Plan {
    let mut conditions = cluster.conditions.clone();
    let mut initializers = cluster.initializers.clone();
    let mut terminators = cluster.terminators.clone();
    let mut phase = cluster.phase;
    if cluster.meta.is_deleting() {
        // A workspace that never began to be filled has nothing for terminators to do.
        phase = if terminators.is_empty() {
            Phase::Deleting
        } else {
            Phase::Terminating
        };
        if let Some(waiting) = &progress.content {
            tell(&mut conditions, "WorkspaceContentDeleted", Err(waiting), now);
        }
    } else {
        if let Some(apis) = &progress.apis {
            let state = apis.as_ref().copied();
            tell(&mut conditions, "APIBindingsInitialized", state, now);
        }
        if phase == Phase::Scheduling {
            phase = Phase::Initializing;
            initializers.clone_from(&cluster.spec_initializers);
            terminators.clone_from(&cluster.spec_terminators);
        }
        if phase == Phase::Initializing {
            initializers.retain(|it| !progress.finished.contains(it));
            if initializers.is_empty() {
                phase = Phase::Ready;
                conditions.mark_true("WorkspaceInitialized", now);
            } else {
                mark_uninitialized(&mut conditions, &initializers, now);
            }
        }
        if phase == Phase::Ready && cluster.is_inactive() {
            phase = Phase::Inactive;
        } else if phase == Phase::Inactive && !cluster.is_inactive() {
            phase = Phase::Ready;
        }
    }
    let status = (phase != cluster.phase
        || conditions != cluster.conditions
        || initializers != cluster.initializers
        || terminators != cluster.terminators
        || url != cluster.url)
        .then(|| status(url, phase, &conditions, &initializers, &terminators));
    let labels = labels(&cluster.meta.labels, phase, &initializers, &terminators);
    let finalizers = finalizers(&cluster.meta, &terminators);
    Plan {
        labels: (labels != cluster.meta.labels).then_some(labels),
        finalizers: (finalizers != cluster.meta.finalizers).then_some(finalizers),
        status,
        delete_content: phase == Phase::Deleting,
    }
}

/// Says that initializers are still at work.
pub(crate) fn mark_uninitialized(conditions: &mut Conditions, initializers: &[String], now: &str) {
    conditions.mark_false(
        "WorkspaceInitialized",
        "InitializerExists",
        Severity::Info,
        &format!("Initializers still exist: [{}]", initializers.join(" ")),
        now,
    );
}

fn status(
    url: &str,
    phase: Phase,
    conditions: &Conditions,
    initializers: &[String],
    terminators: &[String],
) -> Value {
    let mut status = json!({"URL": url, "phase": phase.as_str()});
    if !conditions.is_empty() {
        status["conditions"] = conditions.to_value();
    }
    for (field, list) in [("initializers", initializers), ("terminators", terminators)] {
        if !list.is_empty() {
            status[field] = json!(list);
        }
    }
    status
}

/// The label by which clusters with an initializer (or terminator) are found: key and value.
pub fn lifecycle_label(prefix: &str, name: &str) -> (String, String) {
    let hash = encode::hex(&encode::sha224(name.as_bytes()));
    // kcp cuts the key, prefix included, to the length of a label value.
    let kept = 63_usize.saturating_sub(prefix.len()).min(hash.len());
    (format!("{prefix}{}", &hash[..kept]), hash)
}

fn labels(
    old: &BTreeMap<String, String>,
    phase: Phase,
    initializers: &[String],
    terminators: &[String],
) -> BTreeMap<String, String> {
    let mut labels: BTreeMap<_, _> = old
        .iter()
        .filter(|(key, _)| {
            !key.starts_with(label::INITIALIZER_PREFIX) && !key.starts_with(label::TERMINATOR_PREFIX)
        })
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    labels.insert(label::PHASE.to_owned(), phase.as_str().to_owned());
    for (prefix, names) in [
        (label::INITIALIZER_PREFIX, initializers),
        (label::TERMINATOR_PREFIX, terminators),
    ] {
        labels.extend(names.iter().map(|name| lifecycle_label(prefix, name)));
    }
    labels
}

fn finalizers(meta: &Meta, terminators: &[String]) -> Vec<String> {
    let mut finalizers = meta.finalizers.clone();
    finalizers.retain(|it| it != finalizer::HAS_TERMINATORS);
    if !terminators.is_empty() {
        finalizers.push(finalizer::HAS_TERMINATORS.to_owned());
    }
    // An order that does not depend on who came last; nothing to add once it is being deleted.
    if !meta.is_deleting() && !meta.has_finalizer(finalizer::LOGICAL_CLUSTER_CONTENT) {
        finalizers.insert(0, finalizer::LOGICAL_CLUSTER_CONTENT.to_owned());
    }
    if finalizers.len() == meta.finalizers.len() && meta.finalizers.iter().all(|it| finalizers.contains(it)) {
        return meta.finalizers.clone();
    }
    finalizers
}

/// Whether a user may do with LogicalClusters as he likes.
pub fn is_privileged(groups: &[String]) -> bool {
    groups.iter().any(|it| {
        [
            "system:masters",
            group::LOGICAL_CLUSTER_ADMIN,
            group::EXTERNAL_LOGICAL_CLUSTER_ADMIN,
            group::WORKSPACE_BOOTSTRAPPER,
        ]
        .contains(&it.as_str())
    })
}

/// What speaks against a change by somebody without privileges.
pub fn objection_to_update(new: &Value, old: &Value) -> Option<String> {
    let (now, before) = (LogicalCluster::read(new), LogicalCluster::read(old));
    let sorted = |list: &[String]| {
        let mut list = list.to_vec();
        list.sort();
        list.dedup();
        list
    };
    let spec = |it: &LogicalCluster| sorted(&it.spec_initializers);
    let status = |it: &LogicalCluster| sorted(&it.initializers);
    let starting = before.phase != Phase::Initializing && now.phase == Phase::Initializing;
    if new.pointer("/spec/createdBy") != old.pointer("/spec/createdBy") {
        return Some("spec.createdBy: Invalid value: field is immutable".to_owned());
    }
    if spec(&now) != spec(&before) {
        return Some("spec.initializers is immutable".to_owned());
    }
    if starting && spec(&now) != status(&now) {
        return Some("status.initializers do not equal spec.initializers".to_owned());
    }
    let grown = status(&now).iter().any(|it| !before.initializers.contains(it));
    if !starting && now.phase == Phase::Initializing && grown {
        return Some("status.initializers must not grow".to_owned());
    }
    if now.phase != Phase::Initializing
        && before.phase != Phase::Initializing
        && status(&now) != status(&before)
    {
        return Some("status.initializers is immutable after initialization".to_owned());
    }
    if before.phase == Phase::Initializing && now.phase != Phase::Initializing && !now.initializers.is_empty()
    {
        return Some("status.initializers is not empty".to_owned());
    }
    if before.phase <= Phase::Ready && now.phase < before.phase {
        return Some(format!(
            "cannot transition from {:?} to {:?}",
            before.phase.as_str(),
            now.phase.as_str()
        ));
    }
    if now.phase != Phase::Ready && !before.is_inactive() && now.is_inactive() {
        return Some(format!(
            "LogicalCluster can only be marked inactive in phase \"Ready\", but is in phase {:?}",
            now.phase.as_str()
        ));
    }
    None
}

#[cfg(test)]
mod tests;
