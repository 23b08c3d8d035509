//! Somebody who writes what a node writes: its own object, and the status of the instances that are placed on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fairway_controller::{ClientFactory, Clients, Reach, Requests, WorkspaceId};
use serde_json::{Value, json};

use crate::harness::merge;

const USER: &str = "system:serviceaccount:kube-system:fairway-machines-node";
/// The finalizer by which a node keeps an instance until its guest is gone.
const FINALIZER: &str = "foregroundDeleteVirtualMachine";

/// What guests do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// They run, and end when they are asked to.
    Well,
    /// They end before they run.
    Crash,
    /// They do not start.
    Hang,
}

/// Hosts for machines, by name.
pub(crate) struct Host {
    root: Requests,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    nodes: BTreeSet<String>,
    manners: BTreeMap<String, Manner>,
    /// How often an instance was started, by machine.
    starts: BTreeMap<String, usize>,
}

impl Host {
    pub(crate) fn new(factory: &ClientFactory) -> Self {
        let clients = factory.clients(USER);
        let state: Arc<Mutex<State>> = Arc::default();
        tokio::spawn(work(clients.clone(), Arc::clone(&state)));
        Self {
            root: Requests::new(clients.root()),
            state,
        }
    }

    /// A node joins.
    pub(crate) async fn join(&self, name: &str, change: Value) {
        let mut node = json!({
            "metadata": {"name": name, "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
                "kubevirt.io/schedulable": "true",
            }},
        });
        let status = json!({"status": {
            "allocatable": {"cpu": "4", "memory": "8Gi"}, "capacity": {"cpu": "4", "memory": "8Gi"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}],
        }});
        merge(&mut node, &change);
        assert!(self.root.create("/api/v1/nodes", &node).await.unwrap());
        let path = format!("/api/v1/nodes/{name}/status");
        self.root.merge(&path, &status).await.unwrap();
        self.state.lock().unwrap().nodes.insert(name.to_owned());
    }

    /// Nobody works on a node any more.
    pub(crate) fn lose(&self, name: &str) {
        self.state.lock().unwrap().nodes.remove(name);
    }

    /// A node renews its lease, as long as somebody works on it.
    pub(crate) fn keep_renewing(&self, name: &str) {
        let (root, state, name) = (self.root.clone(), Arc::clone(&self.state), name.to_owned());
        tokio::spawn(async move {
            let path = format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}");
            for round in 0_u64.. {
                if state.lock().unwrap().nodes.contains(&name) {
                    let time = format!("2026-01-01T00:00:00.{:06}Z", round % 1_000_000);
                    let _ = root.merge(&path, &json!({"spec": {"renewTime": time}})).await;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
    }

    /// Somebody works on a node again.
    pub(crate) fn join_again(&self, name: &str) {
        self.state.lock().unwrap().nodes.insert(name.to_owned());
    }

    /// How the guest of a machine behaves.
    pub(crate) fn manner(&self, machine: &str, manner: Manner) {
        self.state
            .lock()
            .unwrap()
            .manners
            .insert(machine.to_owned(), manner);
    }

    /// How often a machine was started.
    pub(crate) fn starts(&self, machine: &str) -> usize {
        self.state
            .lock()
            .unwrap()
            .starts
            .get(machine)
            .copied()
            .unwrap_or(0)
    }
}

async fn work(clients: Clients, state: Arc<Mutex<State>>) {
    let every = Requests::new(clients.every());
    loop {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let Ok(all) = every.list("/apis/kubevirt.io/v1/virtualmachineinstances").await else {
            continue;
        };
        for vmi in all {
            let change = next(&vmi, &mut state.lock().unwrap());
            if let Some(change) = change {
                // Somebody may have been quicker; then it is seen next time.
                let _ = write(&clients, &vmi, &change).await;
            }
        }
    }
}

/// What a node writes next.
fn next(vmi: &Value, state: &mut State) -> Option<Value> {
    let node = vmi["status"]["nodeName"].as_str()?;
    if let Some(step) = moved(vmi, node, state) {
        return Some(step);
    }
    if !state.nodes.contains(node) {
        return None;
    }
    let name = vmi["metadata"]["name"].as_str().unwrap();
    let phase = vmi["status"]["phase"].as_str().unwrap_or_default();
    let manner = state.manners.get(name).copied().unwrap_or(Manner::Well);
    let finalizers = vmi["metadata"]["finalizers"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    if !vmi["metadata"]["deletionTimestamp"].is_null() {
        let kept = finalizers.iter().any(|it| it == FINALIZER);
        let left: Vec<&Value> = finalizers.iter().filter(|it| *it != FINALIZER).collect();
        let phase = match phase {
            "Running" => "Succeeded",
            "Succeeded" | "Failed" => phase,
            _ => "Failed",
        };
        return kept.then(|| ended(vmi, phase, json!({"finalizers": left})));
    }
    match (phase, manner) {
        ("Scheduled", Manner::Well) => {
            *state.starts.entry(name.to_owned()).or_default() += 1;
            Some(report(vmi, "Running", "True", json!({})))
        }
        ("Scheduled", Manner::Crash) => {
            *state.starts.entry(name.to_owned()).or_default() += 1;
            Some(ended(vmi, "Failed", json!({})))
        }
        ("Running", Manner::Crash) => Some(ended(vmi, "Failed", json!({}))),
        _ => None,
    }
}

/// What the nodes write next while an instance moves.
fn moved(vmi: &Value, source: &str, state: &State) -> Option<Value> {
    let moving = &vmi["status"]["migrationState"];
    let target = moving["targetNode"].as_str()?;
    let said = |field: &str| !moving[field].is_null();
    if said("endTimestamp") {
        return None;
    }
    let manner = state.manners.get(vmi["metadata"]["name"].as_str()?).copied();
    let version = vmi["metadata"]["resourceVersion"].clone();
    let says = |change: Value| {
        Some(json!({"metadata": {"resourceVersion": version}, "status": {"migrationState": change}}))
    };
    let time = "2026-01-01T00:00:01Z";
    let (at_source, at_target) = (state.nodes.contains(source), state.nodes.contains(target));
    // A target ends what nobody sends any more.
    if (at_source || at_target) && moving["abortRequested"] == true {
        return says(json!({
            "failed": true, "completed": true, "endTimestamp": time, "abortStatus": "Succeeded",
            "failureReason": "Live migration aborted",
        }));
    }
    match () {
        () if at_target && !said("targetNodeAddress") => says(json!({"targetNodeAddress": "192.0.2.1"})),
        () if at_source && said("targetNodeAddress") && !said("startTimestamp") => {
            says(json!({"startTimestamp": time}))
        }
        () if at_target && said("startTimestamp") && manner != Some(Manner::Hang) => Some(json!({
            "metadata": {"resourceVersion": version, "labels": {"kubevirt.io/nodeName": target}},
            "status": {
                "nodeName": target,
                "migrationState": {
                    "completed": true, "endTimestamp": time, "targetNodeDomainReadyTimestamp": time,
                },
            },
        })),
        () => None,
    }
}

fn ended(vmi: &Value, phase: &str, metadata: Value) -> Value {
    report(vmi, phase, "False", metadata)
}

fn report(vmi: &Value, phase: &str, ready: &str, mut metadata: Value) -> Value {
    let mut transitions = vmi["status"]["phaseTransitionTimestamps"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    if !transitions.iter().any(|it| it["phase"] == phase) {
        transitions.push(json!({"phase": phase, "phaseTransitionTimestamp": "2026-01-01T00:00:00Z"}));
    }
    metadata["resourceVersion"] = vmi["metadata"]["resourceVersion"].clone();
    json!({"metadata": metadata, "status": {
        "phase": phase,
        "phaseTransitionTimestamps": transitions,
        "conditions": [
            {"type": "LiveMigratable", "status": "True"},
            {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ],
    }})
}

async fn write(clients: &Clients, vmi: &Value, change: &Value) -> Result<(), fairway_controller::Failure> {
    let text = |pointer: &str| vmi.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let workspace = text("/metadata/annotations/kcp.io~1cluster");
    let workspace = WorkspaceId::parse(workspace).unwrap_or_else(|_| WorkspaceId::root());
    assert_eq!(*clients.reach(), Reach::Every);
    let path = format!(
        "/apis/kubevirt.io/v1/namespaces/{}/virtualmachineinstances/{}",
        text("/metadata/namespace"),
        text("/metadata/name")
    );
    Requests::new(clients.of(&workspace))
        .merge(&path, change)
        .await
        .map(drop)
}
