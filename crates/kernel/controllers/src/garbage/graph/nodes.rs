//! The objects of one workspace and their ties.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use fairway_controller::WorkspaceId;
use fairway_controller::kinds::Kind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;

use super::{Consequences, Dependent, FOREGROUND, Glance, Identity, ORPHAN, Uid, Work, blocks, has};

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) identity: Identity,
    /// The kind, once observed.
    pub(super) kind: Option<Arc<Kind>>,
    owners: Vec<OwnerReference>,
    dependents: BTreeSet<Uid>,
    pub(super) deleting: bool,
    /// Being deleted, and its dependents first.
    deleting_dependents: bool,
    orphaning: bool,
    /// The list in which it was seen last.
    pub(super) round: u64,
}

/// Nodes by UID.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    nodes: HashMap<Uid, Node>,
}

impl Nodes {
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn get(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    pub(super) fn get_mut(&mut self, uid: &str) -> Option<&mut Node> {
        self.nodes.get_mut(uid)
    }

    /// Those that were observed as being of a kind.
    pub(super) fn of_kind<'a>(&'a self, kind: &'a Kind) -> impl Iterator<Item = (&'a Uid, &'a Node)> {
        let same = move |known: &Kind| {
            known.resource.plural == kind.resource.plural
                && known.resource.group == kind.resource.group
                && known.identity == kind.identity
        };
        self.nodes
            .iter()
            .filter(move |(_, node)| node.kind.as_ref().is_some_and(|known| same(known)))
    }

    /// Takes in the state of an object that has ties, or had some.
    pub(super) fn observe(
        &mut self,
        workspace: &WorkspaceId,
        kind: &Arc<Kind>,
        meta: &ObjectMeta,
        round: u64,
    ) -> Consequences {
        let mut out = Consequences::default();
        let identity = Identity::observed(workspace, kind, meta);
        let uid = identity.uid.clone();
        let owners = meta.owner_references.clone().unwrap_or_default();
        let deleting = meta.deletion_timestamp.is_some();
        let (foreground, orphan) = (deleting && has(meta, FOREGROUND), deleting && has(meta, ORPHAN));
        let node = self
            .nodes
            .entry(uid.clone())
            .or_insert_with(|| Node::claimed(identity.clone()));
        let claimed = node.kind.is_none();
        node.kind = Some(Arc::clone(kind));
        node.identity = identity.clone();
        node.deleting = deleting;
        node.round = round;
        let starts_foreground = foreground && !node.deleting_dependents;
        let starts_orphaning = orphan && !node.orphaning;
        node.deleting_dependents = foreground;
        node.orphaning = orphan;
        let dependents = node.dependents.clone();
        let before = std::mem::replace(&mut node.owners, owners.clone());
        if claimed {
            self.doubt_claims(&identity, &dependents, &mut out);
        }
        self.relink(&identity, &before, &owners, &mut out);
        if starts_orphaning {
            out.work.push(Work::Orphan(uid.clone()));
        } else if starts_foreground {
            out.work.extend(dependents.into_iter().map(Work::Delete));
            out.work.push(Work::Delete(uid.clone()));
        }
        self.prune(&uid);
        out
    }

    /// The object turned out to be another than some of its dependents claim.
    fn doubt_claims(&self, identity: &Identity, dependents: &BTreeSet<Uid>, out: &mut Consequences) {
        for dependent in dependents.iter().filter_map(|uid| self.nodes.get(uid)) {
            let from = &dependent.identity.namespace;
            for reference in dependent.owners.iter().filter(|r| r.uid == identity.uid) {
                if identity.answers(reference, from) {
                    continue;
                }
                if !identity.namespace.is_empty() && identity.namespace != *from {
                    out.misplaced
                        .push((dependent.identity.clone(), reference.clone()));
                }
                out.work.push(Work::Delete(dependent.identity.uid.clone()));
            }
        }
    }

    /// Moves an object from its former owners to its present ones.
    fn relink(
        &mut self,
        identity: &Identity,
        before: &[OwnerReference],
        after: &[OwnerReference],
        out: &mut Consequences,
    ) {
        let mut doubtful = false;
        for reference in after.iter().filter(|r| !before.contains(r)) {
            let claim = Identity::claimed(&identity.workspace, reference, &identity.namespace);
            let owner = self
                .nodes
                .entry(reference.uid.clone())
                .or_insert_with(|| Node::claimed(claim));
            owner.dependents.insert(identity.uid.clone());
            let observed = owner.kind.is_some();
            if observed
                && !owner.identity.namespace.is_empty()
                && owner.identity.namespace != identity.namespace
            {
                out.misplaced.push((identity.clone(), reference.clone()));
            }
            // An owner that waits for its dependents must hear of a new one, too.
            doubtful |= !observed
                || owner.deleting_dependents
                || !owner.identity.answers(reference, &identity.namespace);
        }
        if doubtful {
            out.work.push(Work::Delete(identity.uid.clone()));
        }
        for reference in before.iter().filter(|r| !after.contains(r)) {
            let still = after.iter().find(|r| r.uid == reference.uid);
            let Some(owner) = self.nodes.get_mut(&reference.uid) else {
                continue;
            };
            if blocks(reference) && !still.is_some_and(blocks) && owner.deleting_dependents {
                out.work.push(Work::Delete(reference.uid.clone()));
            }
            if still.is_none() {
                owner.dependents.remove(&identity.uid);
                self.prune(&reference.uid);
            }
        }
    }

    /// Takes an object out that is gone. If it leaves dependents, its absence is worth remembering.
    pub(super) fn remove(&mut self, uid: &str) -> (Vec<Work>, Option<Identity>) {
        let Some(node) = self.nodes.remove(uid) else {
            return (Vec::new(), None);
        };
        let mut work: Vec<Work> = node.dependents.iter().cloned().map(Work::Delete).collect();
        let absent = (!work.is_empty()).then(|| node.identity.clone());
        for reference in &node.owners {
            let Some(owner) = self.nodes.get_mut(&reference.uid) else {
                continue;
            };
            owner.dependents.remove(uid);
            if owner.deleting_dependents {
                work.push(Work::Delete(reference.uid.clone()));
            }
            self.prune(&reference.uid);
        }
        // Dependents still point here by their references; what they need is found out when they are looked at.
        if !node.dependents.is_empty() {
            self.nodes.insert(
                uid.to_owned(),
                Node {
                    dependents: node.dependents,
                    ..Node::claimed(node.identity)
                },
            );
        }
        (work, absent)
    }

    /// Makes a claim of an observed object again.
    pub(super) fn unobserve(&mut self, uid: &str) -> Vec<Work> {
        let mut work = Vec::new();
        if let Some(node) = self.nodes.get_mut(uid) {
            work.extend(node.dependents.iter().cloned().map(Work::Delete));
            let owners = std::mem::take(&mut node.owners);
            (node.kind, node.deleting_dependents, node.orphaning) = (None, false, false);
            for reference in owners {
                if let Some(owner) = self.nodes.get_mut(&reference.uid) {
                    owner.dependents.remove(uid);
                    if owner.deleting_dependents {
                        work.push(Work::Delete(reference.uid.clone()));
                    }
                }
                self.prune(&reference.uid);
            }
        }
        self.prune(uid);
        work
    }

    /// What is known of an object.
    pub(super) fn glance(&self, uid: &str) -> Option<Glance> {
        let node = self.nodes.get(uid)?;
        let dependents = node
            .dependents
            .iter()
            .filter_map(|uid| self.nodes.get(uid))
            .map(|dependent| Dependent {
                identity: dependent.identity.clone(),
                deleting_dependents: dependent.deleting_dependents,
                blocking: dependent.owners.iter().any(|r| r.uid == uid && blocks(r)),
            });
        let settled = node.owners.iter().all(|reference| {
            self.nodes.get(&reference.uid).is_some_and(|owner| {
                owner.kind.is_some()
                    && !owner.deleting
                    && owner.identity.answers(reference, &node.identity.namespace)
            })
        });
        Some(Glance {
            identity: node.identity.clone(),
            kind: node.kind.clone(),
            deleting: node.deleting,
            deleting_dependents: node.deleting_dependents,
            dependents: dependents.collect(),
            settled,
        })
    }

    /// Forgets a node that nobody needs.
    fn prune(&mut self, uid: &str) {
        let idle = self.nodes.get(uid).is_some_and(|node| {
            node.dependents.is_empty()
                && node.owners.is_empty()
                && !node.deleting_dependents
                && !node.orphaning
        });
        if idle {
            self.nodes.remove(uid);
        }
    }
}

impl Node {
    fn claimed(identity: Identity) -> Self {
        Self {
            identity,
            kind: None,
            owners: Vec::new(),
            dependents: BTreeSet::new(),
            deleting: false,
            deleting_dependents: false,
            orphaning: false,
            round: 0,
        }
    }
}
