//! Who owns whom, as far as collecting garbage needs it.
//!
//! The graph is pure: it takes in what watches report and returns the work that follows. A node is kept only for objects
//! that have owners, have dependents, or wait for the collector; everything else costs nothing.
//!
//! An owner is *observed* once a watch or a look at the API has confirmed that an object with that UID exists under that
//! name; until then the reference is only a claim, and whoever makes it is looked at.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use fairway_controller::kinds::Kind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;

pub(super) const FOREGROUND: &str = "foregroundDeletion";
pub(super) const ORPHAN: &str = "orphan";

/// Owners known to be absent that are remembered.
const ABSENT: usize = 1000;

pub(super) type Uid = String;

/// Where an object is. The UID is that of the object, not of whoever has its name now.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// Empty for objects of the cluster.
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: Uid,
}

impl Identity {
    /// What a reference claims, seen from a namespace.
    pub(super) fn claimed(reference: &OwnerReference, namespace: &str) -> Self {
        Self {
            api_version: reference.api_version.clone(),
            kind: reference.kind.clone(),
            namespace: namespace.to_owned(),
            name: reference.name.clone(),
            uid: reference.uid.clone(),
        }
    }

    pub(super) fn observed(kind: &Kind, meta: &ObjectMeta) -> Self {
        Self {
            api_version: kind.resource.api_version.clone(),
            kind: kind.resource.kind.clone(),
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
        }
    }

    fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// Whether a reference from that namespace means this object. Versions of a group name the same objects.
    pub(super) fn answers(&self, reference: &OwnerReference, namespace: &str) -> bool {
        let group = reference
            .api_version
            .split_once('/')
            .map_or("", |(group, _)| group);
        self.uid == reference.uid
            && self.name == reference.name
            && self.kind == reference.kind
            && self.group() == group
            && (self.namespace.is_empty() || self.namespace == namespace)
    }
}

#[derive(Clone, Debug)]
struct Node {
    identity: Identity,
    /// The kind, once observed.
    kind: Option<Arc<Kind>>,
    owners: Vec<OwnerReference>,
    dependents: BTreeSet<Uid>,
    deleting: bool,
    /// Being deleted, and its dependents first.
    deleting_dependents: bool,
    orphaning: bool,
    /// The list in which it was seen last.
    round: u64,
}

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

#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<Uid, Node>,
    absent: HashSet<Identity>,
    absent_order: VecDeque<Identity>,
    rounds: HashMap<(String, String), u64>,
}

fn has(meta: &ObjectMeta, finalizer: &str) -> bool {
    meta.finalizers.iter().flatten().any(|f| f == finalizer)
}

fn blocks(reference: &OwnerReference) -> bool {
    reference.block_owner_deletion == Some(true)
}

impl Graph {
    /// A watch reports that an object exists, in this state.
    pub(super) fn observe(&mut self, kind: &Arc<Kind>, meta: &ObjectMeta) -> Consequences {
        let mut out = Consequences::default();
        let identity = Identity::observed(kind, meta);
        let uid = identity.uid.clone();
        let owners = meta.owner_references.clone().unwrap_or_default();
        let deleting = meta.deletion_timestamp.is_some();
        let (foreground, orphan) = (deleting && has(meta, FOREGROUND), deleting && has(meta, ORPHAN));
        let needed = !owners.is_empty() || foreground || orphan;
        if !needed && !self.nodes.contains_key(&uid) {
            return out;
        }
        let round = self.rounds.get(&name_of(kind)).copied().unwrap_or_default();
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
            let claim = Identity::claimed(reference, &identity.namespace);
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

    /// A watch reports that an object is gone.
    pub(super) fn remove(&mut self, uid: &str) -> Vec<Work> {
        let Some(node) = self.nodes.remove(uid) else {
            return Vec::new();
        };
        let mut work: Vec<Work> = node.dependents.iter().cloned().map(Work::Delete).collect();
        if !work.is_empty() {
            self.add_absent(node.identity.clone());
        }
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
        work
    }

    /// A list of the kind begins.
    pub(super) fn list_begins(&mut self, kind: &Kind) {
        *self.rounds.entry(name_of(kind)).or_default() += 1;
    }

    /// The list is complete: what was not in it is gone.
    pub(super) fn list_ends(&mut self, kind: &Kind) -> Vec<Work> {
        let name = name_of(kind);
        let round = self.rounds.get(&name).copied().unwrap_or_default();
        let gone: Vec<Uid> = self
            .nodes
            .iter()
            .filter(|(_, node)| node.round < round && node.kind.as_ref().is_some_and(|k| name_of(k) == name))
            .map(|(uid, _)| uid.clone())
            .collect();
        gone.iter().flat_map(|uid| self.remove(uid)).collect()
    }

    /// The kind is served no more. Its objects become claims again, and who depends on them is looked at.
    pub(super) fn kind_gone(&mut self, kind: &Kind) -> Vec<Work> {
        let name = name_of(kind);
        let ours = |node: &Node| node.kind.as_ref().is_some_and(|k| name_of(k) == name);
        let uids: Vec<Uid> = self
            .nodes
            .iter()
            .filter(|(_, n)| ours(n))
            .map(|(uid, _)| uid.clone())
            .collect();
        let mut work = Vec::new();
        for uid in uids {
            if let Some(node) = self.nodes.get_mut(&uid) {
                work.extend(node.dependents.iter().cloned().map(Work::Delete));
                let owners = std::mem::take(&mut node.owners);
                (node.kind, node.deleting_dependents, node.orphaning) = (None, false, false);
                for reference in owners {
                    if let Some(owner) = self.nodes.get_mut(&reference.uid) {
                        owner.dependents.remove(&uid);
                        if owner.deleting_dependents {
                            work.push(Work::Delete(reference.uid.clone()));
                        }
                    }
                    self.prune(&reference.uid);
                }
            }
            self.prune(&uid);
        }
        work
    }

    /// A look at the API found the owner that was claimed. A watch may have reported its end since, and is right then.
    pub(super) fn confirm(&mut self, kind: &Arc<Kind>, meta: &ObjectMeta) {
        if let Some(node) = meta.uid.as_ref().and_then(|uid| self.nodes.get_mut(uid))
            && node.kind.is_none()
            && !self.absent.contains(&node.identity)
        {
            node.kind = Some(Arc::clone(kind));
            node.identity = Identity::observed(kind, meta);
            node.deleting = meta.deletion_timestamp.is_some();
            node.round = self.rounds.get(&name_of(kind)).copied().unwrap_or_default();
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
    pub(super) fn is_absent(&self, reference: &OwnerReference, namespace: &str) -> bool {
        self.absent.contains(&Identity::claimed(reference, namespace))
            || self.absent.contains(&Identity::claimed(reference, ""))
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

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
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

fn name_of(kind: &Kind) -> (String, String) {
    (kind.resource.group.clone(), kind.resource.plural.clone())
}

#[cfg(test)]
mod tests;
