//! Which workspaces there are: from the path in a URL to the id in keys, and up to the parent.
//!
//! A workspace is a `Workspace` in its parent, which names it, and a `LogicalCluster` in itself, which holds it. Ids are
//! what keys and tokens carry; a path is looked up, step by step, for each request that brings one.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use fairway_kernel_tenancy::WorkspacePath;
use fairway_kernel_tenancy::names::{CORE, LOGICAL_CLUSTER, TENANCY, annotation};
use serde_json::Value;
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
        match change.object.value() {
            Ok(object) if change.kind != ChangeKind::Deleted => {
                let now = workspace(&object);
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
            if self.read().clusters.get(cluster).is_some_and(|it| it.is_inactive) {
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
        let id = match change.object.value() {
            Ok(object) if change.kind != ChangeKind::Deleted => {
                object["spec"]["cluster"].as_str().map(Box::<str>::from)
            }
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

fn workspace(cluster: &Value) -> Workspace {
    let owner = &cluster["spec"]["owner"];
    let text = |value: &Value| Box::<str>::from(value.as_str().unwrap_or(""));
    let phase = match cluster["status"]["phase"].as_str() {
        _ if cluster["metadata"]["deletionTimestamp"].is_string() => Phase::Deleting,
        Some("Ready") => Phase::Ready,
        _ => Phase::Initializing,
    };
    let annotations = &cluster["metadata"]["annotations"];
    let limit = |annotation: &str| {
        let text = annotations[annotation].as_str()?;
        // Zero and less mean no limit, as in kcp.
        text.parse::<u64>().ok().filter(|limit| *limit > 0)
    };
    Workspace {
        limits: Limits {
            objects: limit(annotation::MAX_OBJECTS),
            bytes: limit(MAX_BYTES_ANNOTATION),
        },
        required_groups: annotations[annotation::REQUIRED_GROUPS].as_str().map(Box::from),
        is_inactive: [annotation::INACTIVE, annotation::INACTIVE_LEGACY]
            .iter()
            .any(|key| annotations[*key] == "true"),
        parent: text(&owner["cluster"]),
        name: match annotations[annotation::PATH].as_str() {
            Some(path) if owner.is_null() && path.starts_with("user:") => path.into(),
            _ => text(&owner["name"]),
        },
        phase,
    }
}
