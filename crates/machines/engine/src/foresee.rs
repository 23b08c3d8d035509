//! Where machines would run that are only asked about: the scheduler's own choice, over the ground that it stands on. Nothing is written,
//! and no room is held.
//!
//! Before the scheduler chooses, a new disk has a node: that of its original, else the control plane's own, as
//! `fairway-machines-volumes` chooses it. What cannot be known before the machine exists is said to be unknown.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fairway_api::kubevirt::{DATA_VOLUME, VIRTUAL_MACHINE};
use fairway_controller::{Clients, ObjectKey, Requests, WorkspaceId};
use fairway_machines_plan::node::SCHEDULABLE_LABEL;
use fairway_machines_plan::{defaults, instance};
use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use serde_json::Value;

use crate::machine::size;
use crate::objects::{is_name, items, text};
use crate::schedule::ground::{Ground, Placed};
use crate::schedule::instance::Instance;
use crate::schedule::needs::Needs;
use crate::schedule::node::{NOT_READY, Node, UNREACHABLE};
use crate::schedule::place::Placement;
use crate::schedule::scheduler::disks;
use crate::schedule::unplaced::Disk;
use crate::settings::SettingsOf;

const HOSTNAME: &str = "kubernetes.io/hostname";
/// Where a disk lies.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// How often, and how far apart, the lists of a server that has just started are waited for.
const LOOKS: usize = 100;
const PAUSE: Duration = Duration::from_millis(20);
/// A DataSource may stand for another.
const REFERENCES: usize = 3;

/// Where a machine would run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreseen {
    /// On this node.
    Node(String),
    /// Nowhere, and why not.
    None(String),
    /// No node runs machines.
    NoNodes,
    /// It is known only when the machine is there, and why.
    Unknown(String),
}

/// Knows what the scheduler knows, once the engine runs.
#[derive(Clone, Default)]
pub struct Foresight {
    own: Option<String>,
    known: Arc<OnceLock<Known>>,
}

struct Known {
    clients: Clients,
    settings: Arc<SettingsOf>,
    ground: Arc<Ground>,
}

impl Foresight {
    /// `own`: the node of the control plane, if machines run there.
    pub fn new(own: Option<String>) -> Self {
        Self {
            own,
            known: Arc::default(),
        }
    }

    pub(crate) fn learn(&self, clients: Clients, settings: Arc<SettingsOf>, ground: Arc<Ground>) {
        let known = Known {
            clients,
            settings,
            ground,
        };
        // There is one engine in a process; the first goes on knowing.
        let _ = self.known.set(known);
    }

    /// Where the machines among the objects would run, which all come at once, by namespace and name. `asker` may read what it says
    /// about the originals of disks.
    pub async fn places(
        &self,
        workspace: &WorkspaceId,
        asker: &Requests,
        objects: &[Value],
    ) -> Vec<(ObjectKey, Foreseen)> {
        let is = |it: &&Value, kind: &fairway_api::Kind| {
            it["kind"] == kind.kind && text(it, "/apiVersion").starts_with(kind.group)
        };
        let machines: Vec<&Value> = objects.iter().filter(|it| is(it, &VIRTUAL_MACHINE)).collect();
        if machines.is_empty() {
            return Vec::new();
        }
        let disks = objects
            .iter()
            .filter(|it| is(it, &DATA_VOLUME) || it["kind"] == "PersistentVolumeClaim");
        let disks: BTreeSet<(&str, &str)> = disks
            .map(|it| (text(it, "/metadata/namespace"), text(it, "/metadata/name")))
            .collect();
        // Waited for once, however many machines there are.
        let engine = self.engine().await;
        let (mut found, mut planned) = (Vec::new(), Vec::new());
        for machine in machines {
            let namespace = text(machine, "/metadata/namespace");
            let key = ObjectKey::new(workspace, namespace, text(machine, "/metadata/name"));
            let foreseen = match &engine {
                Err(why) => Foreseen::Unknown((*why).to_owned()),
                Ok(known) => {
                    let question = Question {
                        known,
                        own: self.own.as_deref(),
                        asker,
                        key: &key,
                        machine,
                        disks: &disks,
                    };
                    question
                        .answer(&mut planned)
                        .await
                        .unwrap_or_else(|answer| answer)
                }
            };
            found.push((key, foreseen));
        }
        found
    }
}

impl Foresight {
    /// What the engine knows, or why it knows nothing yet.
    async fn engine(&self) -> Result<&Known, &'static str> {
        for _ in 0..LOOKS {
            if let Some(known) = self.known.get().filter(|known| known.ground.is_synced()) {
                return Ok(known);
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(match self.known.get() {
            None => "machines are not worked on yet",
            Some(_) => "the nodes are not all known yet",
        })
    }
}

/// One machine that is asked about.
struct Question<'q> {
    known: &'q Known,
    own: Option<&'q str>,
    asker: &'q Requests,
    key: &'q ObjectKey,
    machine: &'q Value,
    /// Disks that come along, by namespace and name.
    disks: &'q BTreeSet<(&'q str, &'q str)>,
}

fn none(why: &(impl ToString + ?Sized)) -> Foreseen {
    Foreseen::None(why.to_string())
}

impl Question<'_> {
    /// What follows from what is known; an error is an answer, too.
    async fn answer(&self, planned: &mut Vec<Placed>) -> Result<Foreseen, Foreseen> {
        if let Some(word) = resting(self.machine) {
            return Err(none(&format!("it is not started ({word})")));
        }
        let Known {
            clients,
            settings,
            ground,
        } = self.known;
        let nodes: Vec<Arc<Node>> = ground.nodes.all().into_iter().map(|(_, node)| node).collect();
        if nodes.is_empty() {
            return Err(Foreseen::NoNodes);
        }
        let requests = Requests::new(clients.of(&self.key.workspace));
        let settings = settings.of(&self.key.workspace).await;
        let settings = settings.map_err(|failure| Foreseen::Unknown(failure.sentence()))?;
        let sizes = size::glimpsed(self.machine, &requests)
            .await
            .map_err(|error| none(&error))?;
        let made = instance::of_machine(
            self.machine,
            sizes.size.as_ref(),
            sizes.taste.as_ref(),
            &settings,
            false,
        );
        let mut vmi = made.map_err(|error| none(&error))?;
        vmi["metadata"]["namespace"] = self.key.namespace.as_str().into();
        defaults::instance(&mut vmi, &settings).map_err(|error| none(&error))?;
        let (found, mut volumes) = disks(&vmi, &requests)
            .await
            .map_err(|failure| Foreseen::Unknown(failure.sentence()))?;
        let new = self.new_disks(&found, !volumes.is_empty(), &nodes).await?;
        volumes.extend(new);
        let unreadable = |error| none(&format!("where the machine wants to run cannot be read: {error}"));
        let needs = Needs::of(&vmi, volumes).map_err(unreadable)?;
        let namespaces = ground.namespaces(self.key, &needs, &requests).await;
        let namespaces = namespaces.map_err(|failure| Foreseen::Unknown(failure.sentence()))?;
        match ground.choose_beside(self.key, &needs, &namespaces, planned.clone()) {
            Placement::None(why) => Ok(Foreseen::None(why)),
            Placement::Node(node) => {
                // Who comes with it finds it there.
                let far = needs.affinity.pod_anti_affinity.as_ref();
                let avoids =
                    far.and_then(|it| it.required_during_scheduling_ignored_during_execution.clone());
                let there = Instance {
                    labels: needs.labels,
                    amounts: needs.amounts,
                    avoids: avoids.unwrap_or_default(),
                    ..Instance::default()
                };
                planned.push((self.key.clone(), Arc::new(there), vec![node.clone()]));
                Ok(Foreseen::Node(node))
            }
        }
    }

    /// Where disks will be that are made for the machine. Beside others that have a place already, it is theirs.
    async fn new_disks(
        &self,
        found: &[Disk],
        are_beside: bool,
        nodes: &[Arc<Node>],
    ) -> Result<Option<NodeSelector>, Foreseen> {
        let templates: Vec<&Value> = items(self.machine, "/spec/dataVolumeTemplates").collect();
        let mut is_new = false;
        let mut original = None;
        for disk in found {
            match disk {
                Disk::Missing(name) => {
                    let template = templates.iter().find(|it| text(it, "/metadata/name") == name);
                    let namespace = &self.key.namespace;
                    if template.is_none() && !self.disks.contains(&(&**namespace, name.as_str())) {
                        return Err(none(&format!("failed to find PVC {namespace}/{name}")));
                    }
                    is_new = true;
                    if let (Some(template), None) = (template, &original) {
                        original = self.original(&template["spec"]).await?;
                    }
                }
                Disk::Failed(why) => return Err(none(why)),
                Disk::Filling | Disk::Unbound | Disk::Ready => {}
            }
        }
        if !is_new || (original.is_none() && are_beside) {
            return Ok(None);
        }
        let selector = &self.machine["spec"]["template"]["spec"]["nodeSelector"];
        chosen(nodes, original, self.own, selector).map(|node| node.map(|node| on(&node)))
    }

    /// The node of what a disk is to be a copy of, as far as whoever asks may know.
    async fn original(&self, spec: &Value) -> Result<Option<String>, Foreseen> {
        let unknown = |failure: fairway_controller::Failure| {
            let why = failure.sentence();
            Foreseen::Unknown(format!("what its disk is copied from cannot be read: {why}"))
        };
        let mut source = spec["source"].clone();
        if text(spec, "/sourceRef/kind") == "DataSource" {
            source = serde_json::json!({"dataSource": spec["sourceRef"]});
        }
        let mut namespace = self.key.namespace.clone();
        for _ in 0..REFERENCES {
            let kind = ["dataSource", "pvc", "snapshot"]
                .into_iter()
                .find(|it| source[*it].is_object());
            let Some(kind) = kind else { return Ok(None) };
            let named = source[kind].take();
            if !text(&named, "/namespace").is_empty() {
                text(&named, "/namespace").clone_into(&mut namespace);
            }
            let name = text(&named, "/name");
            if !is_name(&namespace) || !is_name(name) {
                return Ok(None);
            }
            let path = match kind {
                "dataSource" => {
                    format!("/apis/cdi.kubevirt.io/v1beta1/namespaces/{namespace}/datasources/{name}")
                }
                "pvc" => format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"),
                _ => return Err(Foreseen::Unknown("its disk is copied from a snapshot".to_owned())),
            };
            let Some(mut object) = self.asker.get(&path).await.map_err(unknown)? else {
                return Ok(None);
            };
            if kind == "pvc" {
                let node = object["metadata"]["annotations"][SELECTED_NODE].as_str();
                return Ok(node.filter(|it| !it.is_empty()).map(str::to_owned));
            }
            source = object["spec"]["source"].take();
        }
        Ok(None)
    }
}

/// Why a machine is not started when it comes.
fn resting(machine: &Value) -> Option<String> {
    let strategy = text(machine, "/spec/runStrategy");
    match strategy {
        "Halted" | "Manual" | "WaitAsReceiver" => Some(format!("runStrategy {strategy}")),
        "" if machine["spec"]["running"] != true => Some("running is not true".to_owned()),
        _ => None,
    }
}

/// On which node a new disk is made; nothing if no node takes one, which the scheduler says better.
fn chosen(
    nodes: &[Arc<Node>],
    original: Option<String>,
    own: Option<&str>,
    selector: &Value,
) -> Result<Option<String>, Foreseen> {
    if original.is_some() {
        return Ok(original);
    }
    let fits = |node: &&Arc<Node>| {
        let mut wanted = selector.as_object().into_iter().flatten();
        let is_away =
            |it: &k8s_openapi::api::core::v1::Taint| [NOT_READY, UNREACHABLE].contains(&it.key.as_str());
        node.labels.get(SCHEDULABLE_LABEL).is_some_and(|it| it == "true")
            && !node.cordoned
            && !node.taints.iter().any(is_away)
            && wanted.all(|(key, value)| node.labels.get(key).map(String::as_str) == value.as_str())
    };
    let fitting: Vec<&str> = nodes.iter().filter(fits).map(|node| node.name.as_str()).collect();
    if let Some(own) = own.filter(|own| fitting.contains(own)) {
        return Ok(Some(own.to_owned()));
    }
    match fitting[..] {
        [] => Ok(None),
        [one] => Ok(Some(one.to_owned())),
        // Its turn comes from an identifier that it does not have yet.
        _ => Err(Foreseen::Unknown(format!(
            "its disk is made on one of {}, which take turns",
            fitting.join(", ")
        ))),
    }
}

fn on(node: &str) -> NodeSelector {
    let hostname = NodeSelectorRequirement {
        key: HOSTNAME.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    NodeSelector {
        node_selector_terms: vec![NodeSelectorTerm {
            match_expressions: Some(vec![hostname]),
            match_fields: None,
        }],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schedule::node::tests::node;

    #[test]
    fn where_a_new_disk_is_made() {
        let at = |name: &str, zone: &str, cordoned: bool, ready: &str| {
            Arc::new(node(json!({
                "metadata": {"name": name, "labels": {"zone": zone, SCHEDULABLE_LABEL: "true"}},
                "spec": {"unschedulable": cordoned},
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            })))
        };
        let nodes = [
            at("own", "a", false, "True"),
            at("b", "b", false, "True"),
            at("c", "c", false, "True"),
            at("d", "c", false, "True"),
            at("e", "b", true, "True"),
            at("f", "b", false, "Unknown"),
        ];
        let turns = || Foreseen::Unknown("its disk is made on one of c, d, which take turns".to_owned());
        for (original, own, selector, expected, why) in [
            (None, Some("own"), json!(null), Ok(Some("own")), "nothing is said"),
            (
                Some("c"),
                Some("own"),
                json!(null),
                Ok(Some("c")),
                "a copy is where its original is",
            ),
            (
                None,
                Some("own"),
                json!({"zone": "b"}),
                Ok(Some("b")),
                "the only one that is open",
            ),
            (
                None,
                Some("own"),
                json!({"zone": "c"}),
                Err(turns()),
                "they take turns",
            ),
            (
                None,
                Some("own"),
                json!({"zone": "x"}),
                Ok(None),
                "the scheduler says why not",
            ),
        ] {
            let found = chosen(&nodes, original.map(str::to_owned), own, &selector);
            assert_eq!(found, expected.map(|it| it.map(str::to_owned)), "{why}");
        }
    }

    #[test]
    fn machines_that_rest_have_no_node() {
        for (spec, expected) in [
            (json!({"runStrategy": "Always"}), None),
            (json!({"runStrategy": "RerunOnFailure"}), None),
            (json!({"running": true}), None),
            (json!({"running": false}), Some("running is not true")),
            (json!({"runStrategy": "Halted"}), Some("runStrategy Halted")),
            (json!({"runStrategy": "Manual"}), Some("runStrategy Manual")),
        ] {
            let found = resting(&json!({"spec": spec}));
            assert_eq!(found.as_deref(), expected, "{spec}");
        }
    }
}
