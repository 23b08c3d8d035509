//! Which workspaces there are: from the path in a URL to the id in keys, and up to the parent.
//!
//! A workspace is a `Workspace` in its parent, which names it, and a `LogicalCluster` in itself, which holds it. Ids are
//! what keys and tokens carry; a path is looked up, step by step, for each request that brings one.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use fairway_kernel_tenancy::WorkspacePath;
use fairway_kernel_tenancy::names::{CORE, LOGICAL_CLUSTER, TENANCY, annotation};
use serde::Deserialize;
use tokio::sync::watch;

use crate::cache::{Cache, Change, ChangeKind};
use crate::key::{BUILTIN_IDENTITY, KindPrefix, ROOT_CLUSTER, SYSTEM_CLUSTER, split_suffix};

/// Stands for all workspaces in a URL.
pub const EVERY_CLUSTER: &str = "*";

/// How far a workspace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It is being made.
    Initializing,
    /// It can be used.
    Ready,
    /// It is going.
    Deleting,
}

/// What is known of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// The id of the workspace that it is in.
    pub parent: Box<str>,
    /// Its name there; of a home, which has no parent, its path.
    pub name: Box<str>,
    /// How far it is.
    pub phase: Phase,
    /// What it may hold.
    pub limits: Limits,
    /// Which groups a user must be in to be let in: `a,b;c` is (a and b) or c.
    pub required_groups: Option<Box<str>>,
    /// Whether somebody has taken it offline.
    pub is_inactive: bool,
}

/// What a workspace may hold; nothing: as much as it likes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Objects of all kinds.
    pub objects: Option<u64>,
    /// Their bytes.
    pub bytes: Option<u64>,
}

/// On a LogicalCluster: how many bytes of objects the workspace may hold.
const MAX_BYTES_ANNOTATION: &str = "core.kcp.io/max-total-bytes";

#[derive(Default)]
struct Tree {
    clusters: HashMap<Box<str>, Workspace>,
    /// By the parent's id and the name.
    children: HashMap<Box<str>, HashMap<Box<str>, Box<str>>>,
}

/// The tree of workspaces.
#[derive(Default)]
pub struct Workspaces {
    tree: RwLock<Tree>,
    /// How often one went offline.
    offline: watch::Sender<u64>,
}

impl Workspaces {
    /// Reads the workspaces that there are, and follows them from then on.
    pub fn follow(cache: &Cache) -> Arc<Self> {
        let workspaces = Arc::new(Self::default());
        let (clusters, names) = (Arc::clone(&workspaces), Arc::clone(&workspaces));
        cache
            .kind(KindPrefix::new(CORE, "logicalclusters", BUILTIN_IDENTITY).as_str())
            .observe(Box::new(move |change| clusters.take_cluster(change)));
        cache
            .kind(KindPrefix::new(TENANCY, "workspaces", BUILTIN_IDENTITY).as_str())
            .observe(Box::new(move |change| names.take_name(change)));
        workspaces
    }

    fn read(&self) -> RwLockReadGuard<'_, Tree> {
        self.tree.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_cluster(&self, change: &Change) {
        let (cluster, _, name) = split_suffix(&change.suffix);
        if name != LOGICAL_CLUSTER {
            return;
        }
        let mut tree = self.tree.write().unwrap_or_else(PoisonError::into_inner);
        let mut goes_offline = false;
        match serde_json::from_slice::<Cluster>(change.object.bytes()) {
            Ok(object) if change.kind != ChangeKind::Deleted => {
                let now = workspace(object);
                let is_offline = now.is_inactive;
                let before = tree.clusters.insert(cluster.into(), now);
                goes_offline = is_offline && !before.is_some_and(|it| it.is_inactive);
            }
            _ => drop(tree.clusters.remove(cluster)),
        }
        drop(tree);
        if goes_offline {
            self.offline.send_modify(|times| *times += 1);
        }
    }

    /// Returns when the workspace is offline. `from` was taken before whatever must not go on then was begun.
    pub(crate) async fn gone_offline(&self, cluster: &str, mut from: watch::Receiver<u64>) {
        loop {
            if from.changed().await.is_err() {
                return std::future::pending().await;
            }
            if self.is_inactive(cluster) {
                return;
            }
        }
    }

    /// Tells when a workspace goes offline.
    pub(crate) fn follow_offline(&self) -> watch::Receiver<u64> {
        self.offline.subscribe()
    }

    fn take_name(&self, change: &Change) {
        let (parent, _, name) = split_suffix(&change.suffix);
        let id = match serde_json::from_slice::<Named>(change.object.bytes()) {
            Ok(object) if change.kind != ChangeKind::Deleted => object.spec.and_then(|spec| spec.cluster),
            _ => None,
        };
        let mut tree = self.tree.write().unwrap_or_else(PoisonError::into_inner);
        match id {
            Some(id) => {
                let names = tree.children.entry(parent.into()).or_default();
                names.insert(name.into(), id);
            }
            None => {
                if let Some(names) = tree.children.get_mut(parent) {
                    names.remove(name);
                    if names.is_empty() {
                        tree.children.remove(parent);
                    }
                }
            }
        }
    }

    /// The id of the workspace that a URL names by its path or its id.
    pub fn resolve(&self, named: &str) -> Option<Box<str>> {
        if named == ROOT_CLUSTER || named == SYSTEM_CLUSTER {
            return Some(named.into());
        }
        let home = named
            .starts_with("user:")
            .then(|| WorkspacePath::parse(named).ok())
            .flatten()
            .map(|path| path.with_home_resolved());
        let named = home.as_ref().map_or(named, WorkspacePath::as_str);
        let tree = self.read();
        let mut steps = named.split(':');
        let first = steps.next()?;
        let mut at: &str = match tree.clusters.get_key_value(first) {
            Some((id, _)) => id,
            None if first == ROOT_CLUSTER => ROOT_CLUSTER,
            None => return None,
        };
        for step in steps {
            at = tree.children.get(at)?.get(step)?;
        }
        // A workspace that has been named but not made yet is nowhere.
        tree.clusters.contains_key(at).then(|| at.into())
    }

    /// What is known of a workspace that has a parent.
    pub fn get(&self, id: &str) -> Option<Workspace> {
        self.read().clusters.get(id).cloned()
    }

    /// Whether somebody has taken a workspace offline.
    pub fn is_inactive(&self, id: &str) -> bool {
        self.read().clusters.get(id).is_some_and(|it| it.is_inactive)
    }

    /// The path of a workspace, from the root down.
    pub fn path(&self, id: &str) -> String {
        let tree = self.read();
        let mut steps = Vec::new();
        let mut at = id;
        while let Some(workspace) = tree.clusters.get(at) {
            if workspace.parent.is_empty() {
                // A home is at no other's top, and says its path itself.
                if !workspace.name.is_empty() {
                    at = &workspace.name;
                }
                break;
            }
            // A ring cannot be made through the API; a damaged store must not hang the server all the same.
            if steps.len() > MAX_DEPTH {
                break;
            }
            steps.push(&*workspace.name);
            at = &workspace.parent;
        }
        steps.push(at);
        steps.reverse();
        steps.join(":")
    }

    /// Whether a workspace is another one, or is somewhere below it.
    pub fn is_within(&self, id: &str, top: &str) -> bool {
        let tree = self.read();
        let mut at = id;
        for _ in 0..=MAX_DEPTH {
            if at == top {
                return true;
            }
            match tree.clusters.get(at) {
                Some(workspace) if !workspace.parent.is_empty() => at = &workspace.parent,
                _ => return false,
            }
        }
        false
    }

    /// The ids of the workspaces directly below one.
    pub fn children(&self, id: &str) -> Vec<Box<str>> {
        let tree = self.read();
        tree.children
            .get(id)
            .map(|names| names.values().cloned().collect())
            .unwrap_or_default()
    }
}

/// The deepest nesting of workspaces.
const MAX_DEPTH: usize = 32;

// Of both kinds only these fields are read: at a start there are thousands of them.

/// A LogicalCluster.
#[derive(Deserialize)]
struct Cluster {
    metadata: ClusterMeta,
    spec: Option<ClusterSpec>,
    status: Option<ClusterStatus>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClusterMeta {
    deletion_timestamp: Option<Box<str>>,
    annotations: Option<HashMap<Box<str>, Box<str>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClusterSpec {
    owner: Option<Owner>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Owner {
    cluster: Option<Box<str>>,
    name: Option<Box<str>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClusterStatus {
    phase: Option<Box<str>>,
}

/// A Workspace.
#[derive(Deserialize)]
struct Named {
    spec: Option<NamedSpec>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NamedSpec {
    cluster: Option<Box<str>>,
}

fn workspace(cluster: Cluster) -> Workspace {
    let phase = match cluster.status.unwrap_or_default().phase.as_deref() {
        _ if cluster.metadata.deletion_timestamp.is_some() => Phase::Deleting,
        Some("Ready") => Phase::Ready,
        _ => Phase::Initializing,
    };
    let annotations = cluster.metadata.annotations.unwrap_or_default();
    let annotated = |name: &str| annotations.get(name).map(|text| &**text);
    // Zero and less mean no limit, as in kcp.
    let limit = |name: &str| annotated(name)?.parse::<u64>().ok().filter(|limit| *limit > 0);
    let owner = cluster.spec.and_then(|spec| spec.owner);
    let has_owner = owner.is_some();
    let owner = owner.unwrap_or_default();
    Workspace {
        limits: Limits {
            objects: limit(annotation::MAX_OBJECTS),
            bytes: limit(MAX_BYTES_ANNOTATION),
        },
        required_groups: annotated(annotation::REQUIRED_GROUPS).map(Box::from),
        is_inactive: [annotation::INACTIVE, annotation::INACTIVE_LEGACY]
            .iter()
            .any(|name| annotated(name) == Some("true")),
        parent: owner.cluster.unwrap_or_default(),
        name: match annotated(annotation::PATH) {
            Some(path) if !has_owner && path.starts_with("user:") => path.into(),
            _ => owner.name.unwrap_or_default(),
        },
        phase,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Limits, Phase, workspace};

    #[test]
    fn a_logical_cluster_is_read_leniently() {
        let whole = json!({
            "metadata": {"annotations": {"core.kcp.io/max-total-objects": "5", "core.kcp.io/max-total-bytes": "0", "x": "y"},
                "managedFields": [{"manager": "m"}]},
            "spec": {"owner": {"cluster": "root", "name": "a", "uid": "u"}, "initializers": []},
            "status": {"phase": "Ready", "conditions": []},
        });
        let read = |object: &Value| workspace(serde_json::from_value(object.clone()).unwrap());
        let found = read(&whole);
        assert_eq!(
            (&*found.parent, &*found.name, found.phase),
            ("root", "a", Phase::Ready)
        );
        let limits = Limits {
            objects: Some(5),
            bytes: None,
        };
        assert_eq!(found.limits, limits, "zero is no limit");
        let mut going = whole;
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(read(&going).phase, Phase::Deleting);
        for empty in [
            json!({"metadata": {}}),
            json!({"metadata": {"annotations": null}, "spec": null, "status": null}),
            json!({"metadata": {}, "spec": {"owner": null}, "status": {"phase": null}}),
        ] {
            let found = read(&empty);
            assert_eq!(
                (&*found.parent, found.phase, found.limits),
                ("", Phase::Initializing, Limits::default())
            );
        }
    }
}
