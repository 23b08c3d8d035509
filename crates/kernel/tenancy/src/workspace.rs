//! The Workspace: what is to be done so that it exists, is ready, or is gone.
//!
//! A Workspace lies in its parent. The controller makes a LogicalCluster for it, follows how that one fares, and on
//! deletion waits until it is gone. The id follows from the Workspace's UID, and the finalizer is there before the
//! LogicalCluster is, so a crash at any point leaves nothing behind that a second pass would not find.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::cluster::{ClusterId, WorkspacePath};
use crate::conditions::{Conditions, Severity};
use crate::logical_cluster::{self, LogicalCluster, Phase};
use crate::meta::{Meta, part};
use crate::names::{annotation, finalizer, label};
use crate::types::{Resolved, TypeError, TypeReference};

/// How many ids are tried where one is taken. A second one is needed once in 10^24 workspaces, or when somebody tries.
const MAX_ATTEMPTS: u32 = 8;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    r#type: Option<TypeReference>,
    cluster: String,
    #[serde(rename = "URL")]
    url: String,
    mount: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: Phase,
    initializers: Vec<String>,
    terminators: Vec<String>,
}

/// A Workspace.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Its metadata.
    pub meta: Meta,
    /// Its type; empty if it has none yet.
    pub type_reference: TypeReference,
    /// The id that it was given.
    pub cluster: Option<ClusterId>,
    /// Its phase.
    pub phase: Phase,
    /// Whether it stands for another server: nothing is made for it here, and it says so.
    pub is_mount: bool,
    url: String,
    conditions: Conditions,
    initializers: Vec<String>,
    terminators: Vec<String>,
}

impl Workspace {
    /// Reads the object.
    pub fn read(object: &Value) -> Self {
        let spec: Spec = part(object, "spec");
        let status: Status = part(object, "status");
        Self {
            meta: Meta::read(object),
            type_reference: spec.r#type.unwrap_or_default(),
            cluster: ClusterId::parse(&spec.cluster).ok(),
            phase: status.phase,
            is_mount: spec.mount.is_some(),
            url: spec.url,
            conditions: Conditions::read(object),
            initializers: status.initializers,
            terminators: status.terminators,
        }
    }

    /// The id that it has, or will be given.
    pub fn id(&self) -> ClusterId {
        self.cluster.clone().unwrap_or_else(|| {
            let noted = self.meta.annotation(annotation::WORKSPACE_CLUSTER);
            // Only an id that follows from the UID is believed: users can write annotations.
            let mut candidates = self.candidates();
            let noted = candidates.find(|id| Some(id.as_str()) == noted);
            noted.unwrap_or_else(|| ClusterId::for_workspace(&self.meta.uid, 0))
        })
    }

    fn candidates(&self) -> impl Iterator<Item = ClusterId> {
        (0..MAX_ATTEMPTS).map(|attempt| ClusterId::for_workspace(&self.meta.uid, attempt))
    }
}

/// What was found.
pub struct Observed<'a> {
    /// The Workspace.
    pub workspace: &'a Workspace,
    /// The LogicalCluster under the Workspace's [`id`](Workspace::id), if there is one.
    pub cluster: Option<&'a LogicalCluster>,
    /// The workspace that it lies in.
    pub parent: &'a ClusterId,
    /// The path of that workspace.
    pub parent_path: &'a WorkspacePath,
    /// Its type, resolved.
    pub resolved: &'a Result<Resolved, TypeError>,
    /// The server's address, without a path.
    pub base_url: &'a str,
    /// The time.
    pub now: &'a str,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Write the Workspace's metadata. What is not given stays.
    WriteMeta {
        /// All labels.
        labels: Option<BTreeMap<String, String>>,
        /// All annotations.
        annotations: Option<BTreeMap<String, String>>,
        /// All finalizers.
        finalizers: Option<Vec<String>>,
    },
    /// Create the LogicalCluster in the workspace of this id. If it exists already, observe again.
    CreateCluster {
        /// The new workspace.
        id: ClusterId,
        /// Its LogicalCluster.
        object: Value,
    },
    /// Write `spec.cluster` and `spec.URL`.
    WriteSpec {
        /// The id.
        cluster: ClusterId,
        /// The address.
        url: String,
    },
    /// Replace the status.
    WriteStatus(Value),
    /// Delete the LogicalCluster.
    DeleteCluster(ClusterId),
}

/// Decides: the things to do, in this order. Nothing to do means waiting for a change of the Workspace, its
/// LogicalCluster or its type.
pub fn decide(observed: &Observed<'_>) -> Vec<Action> {
    let workspace = observed.workspace;
    let mut next = Next::of(workspace);
    if workspace.is_mount {
        return refuse_mount(workspace, next, observed.now);
    }
    let mut actions = Vec::new();
    // An id that another Workspace holds is none of ours.
    let own = observed.cluster.filter(|it| it.belongs_to(workspace));
    if workspace.meta.is_deleting() {
        let removed = delete(observed, own, &mut next, &mut actions);
        actions.extend(next.write(workspace));
        if removed {
            let mut finalizers = workspace.meta.finalizers.clone();
            finalizers.retain(|it| it != finalizer::LOGICAL_CLUSTER);
            actions.push(Action::WriteMeta {
                labels: None,
                annotations: None,
                finalizers: Some(finalizers),
            });
        }
        return actions;
    }
    let id = free_id(observed);
    if own.is_none() {
        match (workspace.cluster.as_ref(), observed.resolved) {
            // It had one, and it is gone: making another would hand out an empty workspace in its name.
            (Some(cluster), _) => next.conditions.mark_false(
                "WorkspaceInitialized",
                "WorkspaceDisappeared",
                Severity::Error,
                &format!("LogicalCluster {cluster} not found"),
                observed.now,
            ),
            (None, Err(error)) => next.conditions.mark_false(
                "WorkspaceScheduled",
                "Unschedulable",
                Severity::Error,
                &error.to_string(),
                observed.now,
            ),
            (None, Ok(resolved)) => create(observed, &id, resolved, &mut next, &mut actions),
        }
    }
    if let Some(cluster) = own {
        schedule(observed, &id, &mut next, &mut actions);
        next.follow(cluster, observed.now);
    }
    next.settle();
    actions.extend(next.write(workspace));
    actions
}

/// Other servers are not mounted: says so, instead of leaving the user to wait.
fn refuse_mount(workspace: &Workspace, mut next: Next, now: &str) -> Vec<Action> {
    if workspace.meta.is_deleting() {
        return Vec::new();
    }
    next.conditions.mark_false(
        "WorkspaceMountReady",
        "MountsNotSupported",
        Severity::Error,
        "workspaces of other servers are not mounted here: delete this Workspace, and use that server's address",
        now,
    );
    next.phase = Phase::Unavailable;
    next.write(workspace)
}

/// The first id that is free or ours.
fn free_id(observed: &Observed<'_>) -> ClusterId {
    let workspace = observed.workspace;
    match observed.cluster {
        Some(other) if !other.belongs_to(workspace) && workspace.cluster.is_none() => {
            let taken = workspace.id();
            let later = workspace.candidates().skip_while(|id| *id != taken).nth(1);
            later.unwrap_or(taken)
        }
        _ => workspace.id(),
    }
}

fn create(
    observed: &Observed<'_>,
    id: &ClusterId,
    resolved: &Resolved,
    next: &mut Next,
    actions: &mut Vec<Action>,
) {
    let workspace = observed.workspace;
    let path = match observed.parent_path.join(&workspace.meta.name) {
        Ok(path) => path,
        Err(error) => {
            next.conditions.mark_false(
                "WorkspaceScheduled",
                "Unschedulable",
                Severity::Error,
                &error.to_string(),
                observed.now,
            );
            return;
        }
    };
    if !workspace.meta.has_finalizer(finalizer::LOGICAL_CLUSTER) {
        next.finalizers.push(finalizer::LOGICAL_CLUSTER.to_owned());
    }
    next.annotations
        .insert(annotation::WORKSPACE_CLUSTER.to_owned(), id.to_string());
    actions.extend(next.write_meta(workspace));
    actions.push(Action::CreateCluster {
        id: id.clone(),
        object: logical_cluster::for_workspace(
            workspace,
            observed.parent,
            &path,
            &resolved.initializers(),
            &resolved.terminators(),
        ),
    });
    schedule(observed, id, next, actions);
}

/// Writes down where the workspace is.
fn schedule(observed: &Observed<'_>, id: &ClusterId, next: &mut Next, actions: &mut Vec<Action>) {
    let workspace = observed.workspace;
    let Ok(path) = observed.parent_path.join(&workspace.meta.name) else {
        return;
    };
    let url = format!(
        "{}{}",
        observed.base_url.trim_end_matches('/'),
        path.request_path()
    );
    if workspace.cluster.as_ref() != Some(id) || workspace.url != url {
        actions.push(Action::WriteSpec {
            cluster: id.clone(),
            url,
        });
    }
    next.conditions.mark_true("WorkspaceScheduled", observed.now);
    if next.phase == Phase::Scheduling {
        next.phase = Phase::Initializing;
    }
}

/// Follows a deletion; true once nothing is left and the Workspace may go.
fn delete(
    observed: &Observed<'_>,
    own: Option<&LogicalCluster>,
    next: &mut Next,
    actions: &mut Vec<Action>,
) -> bool {
    let workspace = observed.workspace;
    let meta = &workspace.meta;
    if !meta.has_finalizer(finalizer::LOGICAL_CLUSTER) {
        return false;
    }
    let Some(cluster) = own else {
        if workspace.cluster.is_some() {
            next.conditions.mark_true("WorkspaceContentDeleted", observed.now);
        }
        // Ours goes last: others may still want to see what is inside.
        return meta.finalizers.len() == 1;
    };
    if meta.finalizers.len() > 1 {
        return false;
    }
    if !cluster.meta.is_deleting() {
        actions.push(Action::DeleteCluster(workspace.id()));
    }
    next.terminators.clone_from(&cluster.terminators);
    next.phase = if cluster.terminators.is_empty() {
        Phase::Deleting
    } else {
        Phase::Terminating
    };
    next.conditions
        .copy_from(&cluster.conditions, "WorkspaceContentDeleted");
    false
}

/// The Workspace as it shall be.
struct Next {
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    finalizers: Vec<String>,
    phase: Phase,
    conditions: Conditions,
    initializers: Vec<String>,
    terminators: Vec<String>,
}

impl Next {
    fn of(workspace: &Workspace) -> Self {
        Self {
            labels: workspace.meta.labels.clone(),
            annotations: workspace.meta.annotations.clone(),
            finalizers: workspace.meta.finalizers.clone(),
            phase: workspace.phase,
            conditions: workspace.conditions.clone(),
            initializers: workspace.initializers.clone(),
            terminators: workspace.terminators.clone(),
        }
    }

    /// Takes over how the LogicalCluster fares.
    fn follow(&mut self, cluster: &LogicalCluster, now: &str) {
        self.terminators.clone_from(&cluster.terminators);
        if self.conditions.reason("WorkspaceInitialized") == Some("WorkspaceDisappeared") {
            self.conditions.mark_true("WorkspaceInitialized", now);
        }
        if self.phase != Phase::Initializing {
            return;
        }
        self.initializers.clone_from(&cluster.initializers);
        if cluster.phase == Phase::Scheduling {
            // Its initializers are not known yet; "none" would look like readiness.
            self.conditions.mark_false(
                "WorkspaceInitialized",
                "InitializerExists",
                Severity::Info,
                "LogicalCluster is not initializing yet",
                now,
            );
        } else if cluster.initializers.is_empty() {
            self.phase = Phase::Ready;
            self.conditions.mark_true("WorkspaceInitialized", now);
        } else {
            logical_cluster::mark_uninitialized(&mut self.conditions, &cluster.initializers, now);
        }
    }

    /// A workspace that was ready is unavailable while one of its conditions fails.
    fn settle(&mut self) {
        let failing = self.conditions.failing().any(|it| it.starts_with("Workspace"));
        match self.phase {
            Phase::Ready if failing => self.phase = Phase::Unavailable,
            Phase::Unavailable if !failing => self.phase = Phase::Ready,
            _ => {}
        }
    }

    fn write_meta(&self, workspace: &Workspace) -> Option<Action> {
        let meta = &workspace.meta;
        let changed = self.labels != meta.labels
            || self.annotations != meta.annotations
            || self.finalizers != meta.finalizers;
        changed.then(|| Action::WriteMeta {
            labels: (self.labels != meta.labels).then(|| self.labels.clone()),
            annotations: (self.annotations != meta.annotations).then(|| self.annotations.clone()),
            finalizers: (self.finalizers != meta.finalizers).then(|| self.finalizers.clone()),
        })
    }

    /// The writes that are left: metadata that follows from the status, and the status.
    fn write(self, workspace: &Workspace) -> Vec<Action> {
        let mut actions = Vec::new();
        let status_changed = self.phase != workspace.phase
            || self.conditions != workspace.conditions
            || self.initializers != workspace.initializers
            || self.terminators != workspace.terminators;
        let annotations = owner_shortened(&self.annotations, self.phase);
        let mut labels = self.labels;
        labels.insert(label::PHASE.to_owned(), self.phase.as_str().to_owned());
        let labels_changed = labels != workspace.meta.labels;
        let annotations_changed = annotations != self.annotations;
        if labels_changed || annotations_changed {
            actions.push(Action::WriteMeta {
                labels: labels_changed.then_some(labels),
                annotations: annotations_changed.then_some(annotations),
                finalizers: None,
            });
        }
        if status_changed {
            let mut status = json!({"phase": self.phase.as_str()});
            if !self.conditions.is_empty() {
                status["conditions"] = self.conditions.to_value();
            }
            for (field, list) in [
                ("initializers", &self.initializers),
                ("terminators", &self.terminators),
            ] {
                if !list.is_empty() {
                    status[field] = json!(list);
                }
            }
            actions.push(Action::WriteStatus(status));
        }
        actions
    }
}

/// Once a workspace is ready, its owner's groups are nobody's business any more.
fn owner_shortened(annotations: &BTreeMap<String, String>, phase: Phase) -> BTreeMap<String, String> {
    let mut annotations = annotations.clone();
    if phase == Phase::Ready
        && let Some(owner) = annotations.get_mut(annotation::OWNER)
    {
        let user = serde_json::from_str::<Value>(owner).ok();
        let name = user.as_ref().and_then(|it| it.get("username")).cloned();
        *owner = match name {
            Some(name) => json!({ "username": name }).to_string(),
            None => "{}".to_owned(),
        };
    }
    annotations
}

/// What the creation of a Workspace adds to the object: who made it, what its parent requires, and what the controller
/// would otherwise have to write first.
pub fn prepare_create(object: &mut Value, creator: Option<&Value>, parent: &LogicalCluster) {
    let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let annotations = meta.entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        if let Some(creator) = creator {
            annotations.insert(annotation::OWNER.to_owned(), json!(creator.to_string()));
            annotations.shift_remove(annotation::WORKSPACE_CLUSTER);
        }
        match parent.meta.annotation(annotation::REQUIRED_GROUPS) {
            Some(groups) => {
                annotations.insert(annotation::REQUIRED_GROUPS.to_owned(), json!(groups));
            }
            None if creator.is_some() => {
                annotations.shift_remove(annotation::REQUIRED_GROUPS);
            }
            None => {}
        }
        if annotations.is_empty() {
            meta.shift_remove("annotations");
        }
    }
    let is_mount = object.pointer("/spec/mount").is_some_and(|it| !it.is_null());
    if is_mount {
        return;
    }
    let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    if let Some(finalizers) = meta
        .entry("finalizers")
        .or_insert_with(|| json!([]))
        .as_array_mut()
        && !finalizers.iter().any(|it| it == finalizer::LOGICAL_CLUSTER)
    {
        finalizers.push(json!(finalizer::LOGICAL_CLUSTER));
    }
    if let Some(labels) = meta.entry("labels").or_insert_with(|| json!({})).as_object_mut() {
        labels.insert(label::PHASE.to_owned(), json!(Phase::Scheduling.as_str()));
    }
}

/// What speaks against a new or changed Workspace, beyond schema and type. `privileged`: the user is the system.
pub fn objection_to(new: &Value, old: Option<&Value>, privileged: bool) -> Option<&'static str> {
    let text =
        |object: &Value, pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let mount = new.pointer("/spec/mount").is_some_and(|it| !it.is_null());
    let Some(old) = old else {
        return match () {
            () if privileged => None,
            () if text(new, "/spec/cluster").is_some_and(|it| !it.is_empty()) => {
                Some("spec.Cluster can only be set by system privileged users")
            }
            () if text(new, "/spec/URL").is_some_and(|it| !it.is_empty()) => {
                Some("spec.URL can only be set by system privileged users")
            }
            () if mount && new.pointer("/spec/type").is_some() => {
                Some("spec.type cannot be set for mounted workspaces")
            }
            () => None,
        };
    };
    if new.pointer("/spec/type") != old.pointer("/spec/type") {
        return Some("spec.type is immutable");
    }
    if privileged {
        return None;
    }
    if text(new, "/spec/cluster") != text(old, "/spec/cluster") {
        return Some("spec.cluster can only be changed by system privileged users");
    }
    if text(new, "/spec/URL") != text(old, "/spec/URL") {
        return Some("spec.URL can only be changed by system privileged users");
    }
    None
}

#[cfg(test)]
mod tests;
