//! The controller of nodes: says which are lost, and lets the machines of those go when that is safe.

use std::sync::Arc;
use std::time::Duration;

use fairway_api::kubevirt::VIRTUAL_MACHINE_INSTANCE;
use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::{Attempt as _, Clients, Failure, ObjectKey, Outcome, Reconcile, Requests};
use fairway_machines_plan::node::{FENCE_ANNOTATION, LEASES};
use fairway_machines_plan::phase;
use fairway_machines_plan::view::Condition;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, ObjectReference, Taint};
use kube::api::Api;
use serde_json::{Value, json};

use super::decide::{Decision, OUT_OF_SERVICE, Observed, decide, is_given_up};
use super::{Heard, Patience};
use crate::conditions::written;
use crate::objects::{about, items, locked, moment, ours, path, text};
use crate::schedule::ground::Ground;
use crate::schedule::node::{NOT_READY, UNREACHABLE};

/// Upstream's word for a node that is not heard of.
const UNRESPONSIVE: &str = "NodeUnresponsive";

/// How soon a node is looked at again of which there was news after all.
const SOON: Duration = Duration::from_millis(100);
/// Conditions of which nobody knows any more whether they hold.
const SAID_BY_NODES: [&str; 4] = ["DiskPressure", "MemoryPressure", "PIDPressure", "Ready"];

/// Looks after nodes.
pub(crate) struct Keeper {
    clients: Clients,
    recorder: Recorder,
    ground: Arc<Ground>,
    heard: Arc<Heard>,
    patience: Patience,
}

impl Keeper {
    pub(crate) fn new(
        clients: Clients,
        recorder: Recorder,
        ground: Arc<Ground>,
        heard: Arc<Heard>,
        patience: Patience,
    ) -> Self {
        Self {
            clients,
            recorder,
            ground,
            heard,
            patience,
        }
    }

    /// The instances that a node has, or is to get.
    fn machines(&self, node: &str) -> Vec<ObjectKey> {
        let instances = &self.ground.instances;
        instances.keys_where(|_, it| !it.ended && &*it.node == node)
    }

    async fn pass(&self, name: &str, node: Option<Node>) -> Result<Outcome, Failure> {
        let machines = self.machines(name);
        if node.is_none() && machines.is_empty() {
            self.heard.forget(name);
            return Ok(Outcome::Done);
        }
        let decision = self.decide(name, node.as_ref(), !machines.is_empty());
        if (decision.unknown || decision.release) && self.is_heard_after_all(name).await? {
            // The watch of leases is behind; nobody is lost.
            return Ok(Outcome::Again(SOON));
        }
        if let Some(node) = &node {
            self.tell(name, node, &decision).await?;
        }
        if decision.lost {
            for key in &machines {
                self.lose(name, key, node.is_some(), decision.release).await?;
            }
            let left = |key: &&ObjectKey| {
                self.ground
                    .instances
                    .get(key)
                    .is_some_and(|it| !it.target.is_empty())
            };
            if decision.release && machines.iter().any(|key| left(&key)) {
                return Ok(Outcome::Again(self.patience.margin));
            }
        }
        Ok(decision.look_again.map_or(Outcome::Done, Outcome::Again))
    }

    fn decide(&self, name: &str, node: Option<&Node>, has_machines: bool) -> Decision {
        let silence = self.heard.silence(name);
        let annotations = node.and_then(|it| it.metadata.annotations.as_ref());
        let fence = match node {
            Some(_) => annotations
                .and_then(|it| it.get(FENCE_ANNOTATION))
                .and_then(|it| it.parse().ok()),
            // Who took the object away did not take the promise back.
            None => self.heard.promised(name),
        };
        let conditions = node.and_then(|it| it.status.as_ref()?.conditions.as_ref());
        let taints = node.and_then(|it| it.spec.as_ref()?.taints.as_deref());
        let told = match node {
            Some(_) => is_given_up(taints.unwrap_or_default()),
            None => self.heard.told(name),
        };
        let observed = Observed {
            told,
            ready: conditions.and_then(|it| it.iter().find(|it| it.type_ == "Ready")),
            taints: taints.unwrap_or_default(),
            fence,
            silence,
            has_machines,
        };
        let decision = decide(&observed, self.patience);
        self.heard.remember(name, fence, decision.lost, told);
        decision
    }

    /// Asks once more, of who knows, before something is done that cannot be undone.
    async fn is_heard_after_all(&self, name: &str) -> Result<bool, Failure> {
        let leases: Api<Lease> = Api::namespaced(self.clients.root(), LEASES);
        let lease = leases.get_opt(name).await;
        let lease = lease.attempting(format!("read the lease of node {name}"))?;
        let before = self.heard.silence(name);
        if let Some(lease) = &lease {
            self.heard.lease(lease);
        }
        Ok(self.heard.silence(name) < before)
    }

    /// Says of a node what was found out.
    async fn tell(&self, name: &str, node: &Node, decision: &Decision) -> Result<(), Failure> {
        let requests = Requests::new(self.clients.root());
        let now = moment(Timestamp::now());
        let version = json!({"resourceVersion": node.metadata.resource_version});
        let place = format!("/api/v1/nodes/{name}");
        if let Some(signs) = &decision.taints {
            let taints = with_signs(node, signs, &now);
            let patch = json!({"metadata": version, "spec": {"taints": taints}});
            requests.merge(&ours(&place), &patch).await?;
        }
        match decision.unknown {
            true => self.say_unknown(name, node, &now, &requests).await,
            false => Ok(()),
        }
    }

    async fn say_unknown(
        &self,
        name: &str,
        node: &Node,
        now: &str,
        requests: &Requests,
    ) -> Result<(), Failure> {
        let conditions = node.status.as_ref().and_then(|it| it.conditions.clone());
        let mut all: Vec<Value> = conditions.iter().flatten().map(|it| json!(it)).collect();
        if !all.iter().any(|it| it["type"] == "Ready") {
            all.push(json!({"type": "Ready"}));
        }
        let known = |it: &&mut Value| SAID_BY_NODES.contains(&text(it, "/type"));
        for condition in all.iter_mut().filter(known) {
            condition["status"] = json!("Unknown");
            condition["reason"] = json!("NodeStatusUnknown");
            condition["message"] = json!("Kubelet stopped posting node status.");
            condition["lastTransitionTime"] = json!(now);
        }
        let place = format!("/api/v1/nodes/{name}/status");
        requests
            .merge(&ours(&place), &json!({"status": {"conditions": all}}))
            .await?;
        let about = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Node".to_owned()),
            name: Some(name.to_owned()),
            uid: node.metadata.uid.clone(),
            ..ObjectReference::default()
        };
        let happening = Happening {
            severity: Severity::Normal,
            reason: "NodeNotReady",
            message: format!("Node {name} status is now: NodeNotReady"),
        };
        let root = fairway_controller::WorkspaceId::root();
        self.recorder.record(&root, &about, happening).await;
        Ok(())
    }

    /// Says of an instance that its node is lost, or lets it go from there.
    async fn lose(&self, node: &str, key: &ObjectKey, exists: bool, release: bool) -> Result<(), Failure> {
        let requests = Requests::new(self.clients.of(&key.workspace));
        let place = path(&VIRTUAL_MACHINE_INSTANCE, &key.namespace, &key.name);
        let Some(vmi) = requests.get(&place).await? else {
            return Ok(());
        };
        let ended = phase::Phase::parse(text(&vmi, "/status/phase")).is_final();
        if text(&vmi, "/status/nodeName") != node || ended {
            return Ok(());
        }
        // The guest may have arrived where it was sent to: who is there knows, or must have ended as well.
        let elsewhere = on_its_way(&vmi).filter(|it| !self.heard.has_ended(it, self.patience));
        let release = release && elsewhere.is_none();
        let now = moment(Timestamp::now());
        let patch = match release {
            true => Some(released(&vmi, node, &now)),
            false => {
                let next = next_step(node, self.heard.promised(node).is_some(), exists);
                unreachable(&vmi, next, &now)
            }
        };
        let Some(patch) = patch else {
            return Ok(());
        };
        if requests.merge(&ours(&place), &patch).await?.is_some() && release {
            let happening = Happening {
                severity: Severity::Warning,
                reason: UNRESPONSIVE,
                message: format!("virt-handler on node {node} is not responsive, marking VMI as failed"),
            };
            let about = about(&VIRTUAL_MACHINE_INSTANCE, &vmi);
            self.recorder.record(&key.workspace, &about, happening).await;
        }
        Ok(())
    }
}

/// The node to which an instance is being sent.
fn on_its_way(vmi: &Value) -> Option<&str> {
    let state = &vmi["status"]["migrationState"];
    let sent = !state["startTimestamp"].is_null() && state["endTimestamp"].is_null();
    let target = text(state, "/targetNode");
    (sent && !target.is_empty()).then_some(target)
}

/// The taints of a node with other signs of how it is.
fn with_signs(node: &Node, signs: &[(String, String)], now: &str) -> Vec<Value> {
    let taints = node.spec.as_ref().and_then(|it| it.taints.as_deref());
    let others = taints.unwrap_or_default().iter();
    let others = others.filter(|it: &&Taint| ![NOT_READY, UNREACHABLE].contains(&it.key.as_str()));
    let signs = signs
        .iter()
        .map(|(key, effect)| json!({"key": key, "effect": effect, "timeAdded": now}));
    others.map(|it| json!(it)).chain(signs).collect()
}

/// The conditions of an instance, with this one about whether it is ready.
fn conditions(vmi: &Value, ready: &Condition, now: &str) -> Vec<Value> {
    let others = items(vmi, "/status/conditions").filter(|it| it["type"] != "Ready");
    others.cloned().chain([written(ready, &[vmi], now)]).collect()
}

/// What happens to an instance of a lost node, or what an operator has to do first.
fn next_step(node: &str, promised: bool, exists: bool) -> String {
    match (promised, exists) {
        (true, _) => {
            format!("node {node} is not heard of; the machine starts elsewhere when it has ended there")
        }
        (false, true) => format!(
            "node {node} is not heard of, and the machine may still run there; when the host is off, taint the node \
             {OUT_OF_SERVICE}=nodeshutdown:NoExecute"
        ),
        (false, false) => format!(
            "node {node} is not heard of and not known any more, and the machine may still run there; when the host is off, create a \
             Node of that name with the taint {OUT_OF_SERVICE}=nodeshutdown:NoExecute"
        ),
    }
}

/// Nobody knows how an instance is, so that nobody should be sent there. Nothing if it says so already.
fn unreachable(vmi: &Value, message: String, now: &str) -> Option<Value> {
    let ready = Condition::fails("Ready", "NodeUnreachable", message);
    let conditions = conditions(vmi, &ready, now);
    let says =
        items(vmi, "/status/conditions").any(|it| it["type"] == "Ready" && it["reason"] == "NodeUnreachable");
    (!says).then(|| json!({"metadata": locked(vmi, json!({})), "status": {"conditions": conditions}}))
}

/// An instance that has ended with its node.
fn released(vmi: &Value, node: &str, now: &str) -> Value {
    let mut transitions: Vec<Value> = items(vmi, "/status/phaseTransitionTimestamps").cloned().collect();
    transitions.push(json!({"phase": "Failed", "phaseTransitionTimestamp": now}));
    let finalizers = items(vmi, "/metadata/finalizers").filter(|it| *it != phase::FINALIZER);
    let message = format!("node {node} was lost");
    let ready = Condition::fails("Ready", "PodTerminating", message);
    json!({
        "metadata": locked(vmi, json!({"finalizers": finalizers.collect::<Vec<_>>()})),
        "status": {
            "phase": "Failed",
            "reason": UNRESPONSIVE,
            "phaseTransitionTimestamps": transitions,
            "conditions": conditions(vmi, &ready, now),
        },
    })
}

/// Keys are names of nodes.
impl Reconcile<String> for Keeper {
    async fn reconcile(&self, name: &String) -> Result<Outcome, Failure> {
        let nodes: Api<Node> = Api::all(self.clients.root());
        let node = nodes.get_opt(name).await;
        let node = node.attempting(format!("read node {name}"))?;
        self.pass(name, node).await
    }
}
