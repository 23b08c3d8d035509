//! Who owns whom, as far as collecting garbage needs it.
//!
//! The graph is pure: it takes in what watches report and returns the work that follows. A node is kept only for objects
//! that have owners, have dependents, or wait for the collector; everything else costs nothing.
//!
//! An owner is *observed* once a watch or a look at the API has confirmed that an object with that UID exists under that
//! name; until then the reference is only a claim, and whoever makes it is looked at.
//!
//! Each workspace has its own [`Nodes`]: a reference never leads out of one, whatever UID it names. What is shared is what
//! the watches share, the rounds of their lists, and the memory of what is absent, which has one bound for all.

mod identity;
mod nodes;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use fairway_controller::WorkspaceId;
use fairway_controller::kinds::{GroupResource, Kind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;

pub(super) use self::identity::{Identity, Uid};
use self::nodes::Nodes;

pub(super) const FOREGROUND: &str = "foregroundDeletion";
pub(super) const ORPHAN: &str = "orphan";

/// Owners known to be absent that are remembered.
const ABSENT: usize = 1000;

/// What is to be done about an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Work {
    /// Find out whether it must go, or whether its dependents have gone.
    Delete(Uid),
    /// Let its dependents go free.
    Orphan(Uid),
}

/// A dependent, as seen from an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dependent {
    pub(super) identity: Identity,
    pub(super) deleting_dependents: bool,
    /// Whether the owner must wait for it.
    pub(super) blocking: bool,
}

/// What the graph knows of an object.
#[derive(Clone, Debug)]
pub(super) struct Glance {
    pub(super) identity: Identity,
    pub(super) kind: Option<Arc<Kind>>,
    pub(super) deleting: bool,
    pub(super) deleting_dependents: bool,
    pub(super) dependents: Vec<Dependent>,
    /// Whether every owner is observed and stays: nothing to find out.
    pub(super) settled: bool,
}

/// What followed from a report.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Consequences {
    pub(super) work: Vec<Work>,
    /// Objects that name an owner in another namespace.
    pub(super) misplaced: Vec<(Identity, OwnerReference)>,
}

/// Work in a workspace.
pub(super) type WorkAt = (WorkspaceId, Work);

#[derive(Debug, Default)]
pub(super) struct Graph {
    workspaces: HashMap<WorkspaceId, Nodes>,
    absent: HashSet<Identity>,
    absent_order: VecDeque<Identity>,
    rounds: HashMap<GroupResource, u64>,
}

impl Graph {
    fn round(&self, kind: &Kind) -> u64 {
        self.rounds.get(&kind.name()).copied().unwrap_or_default()
    }

    /// A watch reports that an object exists, in this state.
    pub(super) fn observe(
        &mut self,
        workspace: &WorkspaceId,
        kind: &Arc<Kind>,
        meta: &ObjectMeta,
    ) -> Consequences {
        let ties = meta
            .owner_references
            .as_ref()
            .is_some_and(|owners| !owners.is_empty())
            || (meta.deletion_timestamp.is_some() && (has(meta, FOREGROUND) || has(meta, ORPHAN)));
        let known = |nodes: &Nodes| meta.uid.as_deref().is_some_and(|uid| nodes.get(uid).is_some());
        // Most objects of most servers end here, so nothing may be made before.
        if !ties && !self.workspaces.get(workspace).is_some_and(known) {
            return Consequences::default();
        }
        let round = self.round(kind);
        let nodes = self.workspaces.entry(workspace.clone()).or_default();
        let out = nodes.observe(workspace, kind, meta, round);
        self.leave(workspace);
        out
    }

    /// A watch reports that an object is gone.
    pub(super) fn remove(&mut self, workspace: &WorkspaceId, uid: &str) -> Vec<Work> {
        let Some(nodes) = self.workspaces.get_mut(workspace) else {
            return Vec::new();
        };
        let (work, absent) = nodes.remove(uid);
        self.leave(workspace);
        if let Some(absent) = absent {
            self.add_absent(absent);
        }
        work
    }

    /// Forgets a workspace without nodes.
    fn leave(&mut self, workspace: &WorkspaceId) {
        if self.workspaces.get(workspace).is_some_and(Nodes::is_empty) {
            self.workspaces.remove(workspace);
        }
    }

    /// A list of the kind begins.
    pub(super) fn list_begins(&mut self, kind: &Kind) {
        *self.rounds.entry(kind.name()).or_default() += 1;
    }

    /// The list is complete: what was not in it is gone.
    pub(super) fn list_ends(&mut self, kind: &Kind) -> Vec<WorkAt> {
        let round = self.round(kind);
        let mut gone: Vec<(WorkspaceId, Uid)> = Vec::new();
        for (workspace, nodes) in &self.workspaces {
            let missed = nodes.of_kind(kind).filter(|(_, node)| node.round < round);
            gone.extend(missed.map(|(uid, _)| (workspace.clone(), uid.clone())));
        }
        let mut work = Vec::new();
        for (workspace, uid) in gone {
            let more = self.remove(&workspace, &uid);
            work.extend(more.into_iter().map(|work| (workspace.clone(), work)));
        }
        work
    }

    /// The kind is served no more. Its objects become claims again, and who depends on them is looked at. Also says where
    /// it was known.
    pub(super) fn kind_gone(&mut self, kind: &Kind) -> (Vec<WorkAt>, Vec<WorkspaceId>) {
        self.rounds.remove(&kind.name());
        let (mut work, mut places) = (Vec::new(), Vec::new());
        for (workspace, nodes) in &mut self.workspaces {
            let uids: Vec<Uid> = nodes.of_kind(kind).map(|(uid, _)| uid.clone()).collect();
            if uids.is_empty() {
                continue;
            }
            places.push(workspace.clone());
            for uid in uids {
                let more = nodes.unobserve(&uid);
                work.extend(more.into_iter().map(|work| (workspace.clone(), work)));
            }
        }
        for workspace in &places {
            self.leave(workspace);
        }
        (work, places)
    }

    /// A look at the API found the owner that was claimed. A watch may have reported its end since, and is right then.
    pub(super) fn confirm(&mut self, workspace: &WorkspaceId, kind: &Arc<Kind>, meta: &ObjectMeta) {
        let round = self.round(kind);
        let nodes = self.workspaces.get_mut(workspace);
        if let Some(node) = nodes.and_then(|nodes| nodes.get_mut(meta.uid.as_deref()?))
            && node.kind.is_none()
            && !self.absent.contains(&node.identity)
        {
            node.kind = Some(Arc::clone(kind));
            node.identity = Identity::observed(workspace, kind, meta);
            node.deleting = meta.deletion_timestamp.is_some();
            node.round = round;
        }
    }

    /// A look at the API did not find the object.
    pub(super) fn add_absent(&mut self, identity: Identity) {
        if self.absent.insert(identity.clone()) {
            self.absent_order.push_back(identity);
            if self.absent_order.len() > ABSENT
                && let Some(oldest) = self.absent_order.pop_front()
            {
                self.absent.remove(&oldest);
            }
        }
    }

    /// Whether the owner is known to be absent.
    pub(super) fn is_absent(
        &self,
        workspace: &WorkspaceId,
        reference: &OwnerReference,
        namespace: &str,
    ) -> bool {
        let absent = |namespace| {
            self.absent
                .contains(&Identity::claimed(workspace, reference, namespace))
        };
        absent(namespace) || absent("")
    }

    /// What is known of an object.
    pub(super) fn glance(&self, workspace: &WorkspaceId, uid: &str) -> Option<Glance> {
        self.workspaces.get(workspace)?.glance(uid)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.workspaces.values().map(Nodes::len).sum()
    }
}

fn has(meta: &ObjectMeta, finalizer: &str) -> bool {
    meta.finalizers.iter().flatten().any(|f| f == finalizer)
}

fn blocks(reference: &OwnerReference) -> bool {
    reference.block_owner_deletion == Some(true)
}

#[cfg(test)]
mod tests;
