//! What is known for placement: nodes, instances of all workspaces, and what was decided and not yet seen.
//!
//! A choice that was written counts at once, before the watch has seen it, so that no room is given away twice.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairway_controller::cache::Cache;
use fairway_controller::{Failure, ObjectKey, Requests};
use k8s_openapi::api::core::v1::PodAffinityTerm;
use serde_json::Value;

use super::instance::Instance;
use super::labels::Labels;
use super::needs::{Amounts, Needs, taken};
use super::neighbours::Neighbour;
use super::node::Node;
use super::place::{Placement, World, place};
use crate::objects::text;

/// What placement knows of all workspaces.
pub(crate) struct Ground {
    /// Nodes.
    pub(crate) nodes: Cache<Node>,
    /// Instances.
    pub(crate) instances: Cache<Instance>,
    assumed: Mutex<HashMap<ObjectKey, Assumed>>,
    targets: Mutex<HashMap<ObjectKey, Target>>,
    waiting: Mutex<BTreeSet<ObjectKey>>,
}

/// An instance, and the nodes that it takes something of.
pub(crate) type Placed = (ObjectKey, Arc<Instance>, Vec<String>);

/// A node that an instance was given, which the watch of instances may not have seen.
struct Assumed {
    uid: Box<str>,
    node: String,
}

/// A node that an instance moves to, which the watch of instances has not seen.
struct Target {
    /// The version of the instance that says so.
    version: u64,
    node: String,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ground {
    pub(crate) fn new(nodes: Cache<Node>, instances: Cache<Instance>) -> Self {
        Self {
            nodes,
            instances,
            assumed: Mutex::default(),
            targets: Mutex::default(),
            waiting: Mutex::default(),
        }
    }

    /// Instances that wait, of which `whom` are wanted.
    pub(crate) fn waiting(&self, whom: impl Fn(&ObjectKey) -> bool) -> Vec<ObjectKey> {
        lock(&self.waiting)
            .iter()
            .filter(|it| whom(it))
            .cloned()
            .collect()
    }

    /// Whether absence means anything yet.
    pub(crate) fn is_synced(&self) -> bool {
        self.nodes.is_synced() && self.instances.is_synced()
    }

    /// An instance was written so that it moves.
    pub(crate) fn assume_target(&self, key: &ObjectKey, written: &Value, node: &str) {
        let version = text(written, "/metadata/resourceVersion").parse().unwrap_or(0);
        let node = node.to_owned();
        lock(&self.targets).insert(key.clone(), Target { version, node });
    }

    /// The watch has seen a version of an instance, and with it all that was written before.
    pub(crate) fn seen(&self, key: &ObjectKey, version: Option<&str>) {
        let mut targets = lock(&self.targets);
        let version = version.and_then(|it| it.parse().ok()).unwrap_or(u64::MAX);
        if targets.get(key).is_some_and(|it| it.version <= version) {
            targets.remove(key);
        }
    }

    /// How many instances move, and how many of those away from a node.
    pub(crate) fn moving(&self, source: &str) -> (usize, usize) {
        let targets = lock(&self.targets);
        let moves = |key: &ObjectKey, it: &Instance| {
            !it.ended && (!it.target.is_empty() || targets.contains_key(key))
        };
        let all = self.instances.keys_where(moves).len();
        let away = |key: &ObjectKey, it: &Instance| moves(key, it) && &*it.node == source;
        (all, self.instances.keys_where(away).len())
    }

    /// All instances and the nodes that they take something of.
    fn placed(&self) -> Vec<Placed> {
        let (mut assumed, targets) = (lock(&self.assumed), lock(&self.targets));
        let mut placed = Vec::new();
        for (key, instance) in self.instances.all() {
            let mut nodes = Vec::new();
            if !instance.node.is_empty() {
                assumed.remove(&key);
                nodes.push(instance.node.to_string());
            } else if let Some(given) = assumed.get(&key).filter(|it| it.uid == instance.uid) {
                nodes.push(given.node.clone());
            }
            let target = match instance.target.is_empty() {
                true => targets.get(&key).map(|it| it.node.clone()),
                false => Some(instance.target.to_string()),
            };
            nodes.extend(target.filter(|it| **it != *instance.node));
            if !instance.ended && !nodes.is_empty() {
                placed.push((key, instance, nodes));
            }
        }
        placed
    }

    /// Chooses a node for an instance.
    pub(crate) fn choose(
        &self,
        key: &ObjectKey,
        needs: &Needs,
        namespaces: &BTreeMap<String, Labels>,
    ) -> Placement {
        self.choose_beside(key, needs, namespaces, Vec::new())
    }

    /// The same as if these were there, too.
    pub(crate) fn choose_beside(
        &self,
        key: &ObjectKey,
        needs: &Needs,
        namespaces: &BTreeMap<String, Labels>,
        others: Vec<Placed>,
    ) -> Placement {
        let nodes: Vec<Arc<Node>> = self.nodes.all().into_iter().map(|(_, node)| node).collect();
        let mut used: BTreeMap<String, Amounts> = BTreeMap::new();
        let mut neighbours = Vec::new();
        for (other, instance, places) in self.placed().into_iter().chain(others) {
            // Who moves is no neighbour of itself, but what it has it has.
            let is_itself = other == *key;
            for node in places {
                let used = used.entry(node.clone()).or_default();
                let there = nodes.iter().find(|it| it.name == node);
                let amounts = match there {
                    Some(there) => taken(&instance.amounts, &there.allocatable),
                    None => Cow::Borrowed(&instance.amounts),
                };
                for (resource, amount) in amounts.iter() {
                    *used.entry(resource.clone()).or_default() += amount;
                }
                if other.workspace == key.workspace && !is_itself {
                    neighbours.push(Neighbour {
                        namespace: other.namespace.clone(),
                        labels: instance.labels.clone(),
                        node,
                        leaving: instance.leaving,
                        avoids: instance.avoids.clone(),
                    });
                }
            }
        }
        place(
            needs,
            &World {
                nodes: &nodes,
                used: &used,
                neighbours: &neighbours,
                namespaces,
            },
        )
    }

    /// The labels of namespaces, if anybody asks for them.
    pub(crate) async fn namespaces(
        &self,
        key: &ObjectKey,
        needs: &Needs,
        requests: &Requests,
    ) -> Result<BTreeMap<String, Labels>, Failure> {
        let asks = |term: &PodAffinityTerm| term.namespace_selector.is_some();
        let neighbours = self.instances.of_workspace(&key.workspace);
        let asked = needs.terms().any(asks) || neighbours.iter().any(|(_, it)| it.avoids.iter().any(asks));
        if !asked {
            return Ok(BTreeMap::new());
        }
        let all = requests.list("/api/v1/namespaces").await?;
        let labels =
            |it: &Value| serde_json::from_value(it["metadata"]["labels"].clone()).unwrap_or_default();
        Ok(all
            .iter()
            .map(|it| (text(it, "/metadata/name").to_owned(), labels(it)))
            .collect())
    }

    /// An instance was given a node.
    pub(super) fn assume(&self, key: &ObjectKey, vmi: &Value, node: &str) {
        let uid = Box::from(text(vmi, "/metadata/uid"));
        let node = node.to_owned();
        lock(&self.assumed).insert(key.clone(), Assumed { uid, node });
    }

    /// Whether an instance waits for a node.
    pub(super) fn set_waiting(&self, key: &ObjectKey, waits: bool) {
        let mut waiting = lock(&self.waiting);
        match waits {
            true => waiting.insert(key.clone()),
            false => waiting.remove(key),
        };
    }
}

#[cfg(test)]
mod tests {
    use fairway_controller::glimpse::{Glimpse, meta};
    use fairway_controller::{Reach, WorkspaceId};
    use kube::runtime::watcher::Event;
    use serde_json::json;

    use super::*;
    use crate::schedule::node::tests::node;

    fn ground() -> Ground {
        let root = Reach::One(WorkspaceId::root());
        let ground = Ground::new(Cache::new(&root), Cache::new(&root));
        let object = |name: &str| {
            let object = json!({
                "metadata": {"name": name, "labels": {"kubevirt.io/schedulable": "true"}},
                "status": {
                    "allocatable": {"cpu": "1", "memory": "1Gi"}, "conditions": [{"type": "Ready", "status": "True"}],
                },
            });
            serde_json::from_value::<k8s_openapi::api::core::v1::Node>(object).unwrap()
        };
        assert_eq!(node(json!(object("n1"))).name, "n1");
        for name in ["n1", "n2"] {
            ground.nodes.take(Event::Apply(object(name)), Node::from);
        }
        ground
    }

    fn instance(ground: &Ground, name: &str, node: &str, target: &str) -> ObjectKey {
        let kept = Instance {
            uid: name.into(),
            node: node.into(),
            target: target.into(),
            amounts: [("memory".into(), 1 << 30)].into(),
            ..Instance::default()
        };
        let metadata = meta(name, "vms", "7", None);
        let key = ground.instances.key_of(&metadata);
        ground
            .instances
            .take(Event::Apply(Glimpse { metadata, kept }), |seen| seen.kept);
        key
    }

    fn choose(ground: &Ground, key: &ObjectKey) -> Placement {
        let vmi = json!({
            "metadata": {"namespace": "vms"},
            "spec": {"domain": {"resources": {"requests": {"memory": "1Gi", "cpu": "1m"}, "overcommitGuestOverhead": true}}},
        });
        let needs = Needs::of(&vmi, Vec::new()).unwrap();
        ground.choose(key, &needs, &BTreeMap::new())
    }

    #[test]
    fn what_was_given_away_is_taken_before_it_is_seen() {
        let ground = ground();
        let (a, b) = (instance(&ground, "a", "", ""), instance(&ground, "b", "", ""));
        let c = instance(&ground, "c", "", "");
        assert_eq!(choose(&ground, &a), Placement::Node("n1".to_owned()));
        ground.assume(&a, &json!({"metadata": {"uid": "a"}}), "n1");
        assert_eq!(choose(&ground, &b), Placement::Node("n2".to_owned()));
        ground.assume(&b, &json!({"metadata": {"uid": "b"}}), "n2");
        assert!(matches!(choose(&ground, &c), Placement::None(_)));
        // Seen at last, and gone: there is room again.
        instance(&ground, "a", "n1", "");
        assert!(matches!(choose(&ground, &c), Placement::None(_)));
        let gone = Glimpse {
            metadata: meta("a", "vms", "8", None),
            kept: Instance::default(),
        };
        ground.instances.take(Event::Delete(gone), |seen| seen.kept);
        assert_eq!(choose(&ground, &c), Placement::Node("n1".to_owned()));
        // Another one of the same name was given nothing.
        let other = Glimpse {
            metadata: meta("b", "vms", "9", None),
            kept: Instance {
                uid: "b2".into(),
                ..Instance::default()
            },
        };
        ground.instances.take(Event::Apply(other), |seen| seen.kept);
        ground.assume(&c, &json!({"metadata": {"uid": "c"}}), "n1");
        assert_eq!(choose(&ground, &b), Placement::Node("n2".to_owned()));
    }

    #[test]
    fn who_moves_takes_room_twice_and_is_counted() {
        let ground = ground();
        let (a, b) = (instance(&ground, "a", "n1", ""), instance(&ground, "b", "", ""));
        assert_eq!(ground.moving("n1"), (0, 0));
        ground.assume_target(&a, &json!({"metadata": {"resourceVersion": "12"}}), "n2");
        assert_eq!(ground.moving("n1"), (1, 1));
        assert_eq!(ground.moving("n2"), (1, 0));
        assert!(matches!(choose(&ground, &b), Placement::None(_)));
        ground.seen(&a, Some("11"));
        assert_eq!(ground.moving("n1"), (1, 1), "that was before");
        ground.seen(&a, Some("13"));
        assert_eq!(ground.moving("n1"), (0, 0), "it is over already");
        instance(&ground, "a", "n1", "n2");
        assert_eq!(ground.moving("n1"), (1, 1));
    }
}
