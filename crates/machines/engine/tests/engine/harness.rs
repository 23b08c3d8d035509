//! A world: an API with the engine on it, a host for machines, and an administrator's view of one workspace.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fairway_controller::clients::Within;
use fairway_controller::served::Served;
use fairway_controller::{ClientFactory, Metrics, Reach, Requests, Shutdown, ShutdownTrigger, WorkspaceId};
use fairway_kernel_apiserver::authn::token::Tokens;
use fairway_kernel_apiserver::client::InProcess;
use fairway_kernel_apiserver::custom::ProvidedKind;
use fairway_kernel_apiserver::key::{KindPrefix, ObjectSuffix};
use fairway_kernel_apiserver::{Kernel, KernelOptions, bootstrap, object};
use fairway_kernel_authz::UserInfo;
use fairway_kernel_store::value::{self, KeyRing};
use fairway_kernel_store::{MemoryStore, Op, Txn};
use fairway_machines_engine::{Foresight, Options, Patience, run_with};
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::host::Host;

/// What nothing here should take, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// Who follows what is served.
const INFORMER: &str = "system:serviceaccount:kube-system:fairway-informer";

pub(crate) const MACHINES: &str = "/apis/kubevirt.io/v1/namespaces/vms/virtualmachines";
pub(crate) const INSTANCES: &str = "/apis/kubevirt.io/v1/namespaces/vms/virtualmachineinstances";
pub(crate) const DATA_VOLUMES: &str = "/apis/cdi.kubevirt.io/v1beta1/namespaces/vms/datavolumes";
pub(crate) const REVISIONS: &str = "/apis/apps/v1/namespaces/vms/controllerrevisions";

/// Where a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Root,
    Workspace,
}

impl At {
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Workspace => "2a8f0a9b1c3d4e5f",
        }
    }
}

/// Runs a scenario in every place that there is.
pub(crate) async fn everywhere<F: Future<Output = ()>>(scenario: impl Fn(World) -> F) {
    for at in [At::Root, At::Workspace] {
        println!("in {at:?}");
        scenario(World::start(at).await).await;
    }
}

pub(crate) struct World {
    /// The workspace of the scenario, as its administrator sees it.
    pub(crate) api: Requests,
    /// The root workspace, which has the nodes.
    pub(crate) root: Requests,
    pub(crate) host: Host,
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) patience: Patience,
    /// Where the scenario runs.
    pub(crate) at: At,
    /// What the engine that runs foresees.
    pub(crate) foresight: Foresight,
    factory: ClientFactory,
    metrics: Arc<Metrics>,
    running: Option<(ShutdownTrigger, JoinHandle<()>)>,
    _kept: (ShutdownTrigger, tempfile::TempDir),
}

impl World {
    /// A world with one node, `n1`.
    pub(crate) async fn start(at: At) -> Self {
        let world = Self::without_nodes(at).await;
        world.host.join("n1", json!({})).await;
        world
    }

    pub(crate) async fn without_nodes(at: At) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys = KeyRing::load_or_create(&folder.path().join("keys")).unwrap();
        let kernel = Kernel::start(KernelOptions {
            store: Arc::new(MemoryStore::new()),
            keys: Arc::new(keys),
            token_key: Tokens::generate_key().unwrap(),
            issuer: "https://test".to_owned(),
            jwks_uri: "https://issuer/jwks".to_owned(),
            audit_log: None,
            kinds: provided(),
        })
        .await
        .unwrap();
        bootstrap::run(&kernel).await.unwrap();
        let for_users = Arc::clone(&kernel);
        let factory = ClientFactory::across_workspaces(move |user: &str| {
            let groups = fairway_kernel_controllers::groups(user)
                .into_iter()
                .chain(["system:authenticated"]);
            InProcess::new(Arc::clone(&for_users), UserInfo::new(user, groups))
        });
        let end = start_controllers(factory.clone());
        let id = at.id();
        if at == At::Workspace {
            make_workspace(&kernel, id).await;
        }
        let api = administrator(&kernel, id);
        let mut world = Self {
            host: Host::new(&factory),
            root: administrator(&kernel, "root"),
            api,
            kernel,

            at,
            foresight: Foresight::default(),
            factory,
            metrics: Arc::default(),
            // Most scenarios have nodes without leases.
            patience: Patience {
                grace: Duration::from_secs(3600),
                ..Patience::default()
            },
            running: None,
            _kept: (end, folder),
        };
        world
            .create("/api/v1/namespaces", json!({"metadata": {"name": "vms"}}))
            .await;
        world.start_engine();
        world
    }

    pub(crate) fn start_engine(&mut self) {
        let (end, shutdown) = Shutdown::new();
        let (served, keeping) = Served::follow(self.factory.clients(INFORMER), shutdown.clone());
        self.foresight = Foresight::default();
        let options = Options {
            clients: self.factory.clone(),
            served: Some(served),
            nodes_plug: true,
            foresight: self.foresight.clone(),
        };
        let engine = run_with(options, self.patience, Arc::clone(&self.metrics), shutdown);
        let task = tokio::spawn(async move {
            tokio::join!(keeping, engine);
        });
        self.running = Some((end, task));
    }

    /// Ends the engine at once, as a crash does.
    pub(crate) fn kill_engine(&mut self) {
        if let Some((_end, task)) = self.running.take() {
            task.abort();
        }
    }

    /// The end of a scenario: the engine must end by itself.
    pub(crate) async fn end(mut self) {
        if let Some((end, running)) = self.running.take() {
            end.shut_down();
            tokio::time::timeout(PATIENCE, running)
                .await
                .expect("the engine does not end")
                .unwrap();
        }
    }

    /// How often passes of a controller came to a result.
    pub(crate) fn passes(&self, controller: &str, result: &str) -> u64 {
        let line =
            format!("controller_runtime_reconcile_total{{controller=\"{controller}\",result=\"{result}\"}} ");
        let figures = self.metrics.render();
        let found = figures.lines().find_map(|it| it.strip_prefix(&line));
        found.map_or(0, |it| it.parse().unwrap())
    }

    pub(crate) async fn create(&self, path: &str, object: Value) {
        assert!(
            self.api.create(path, &object).await.unwrap(),
            "{path}: it is there already"
        );
    }

    /// Makes a machine whose disk needs nothing, changed as wanted.
    pub(crate) async fn machine(&self, name: &str, change: Value) {
        self.create(MACHINES, machine(name, &change)).await;
    }

    pub(crate) async fn vm(&self, name: &str) -> Value {
        let found = self.api.get(&format!("{MACHINES}/{name}")).await.unwrap();
        found.unwrap_or_default()
    }

    pub(crate) async fn vmi(&self, name: &str) -> Value {
        let found = self.api.get(&format!("{INSTANCES}/{name}")).await.unwrap();
        found.unwrap_or_default()
    }

    pub(crate) async fn patch(&self, name: &str, patch: Value) {
        let path = format!("{MACHINES}/{name}");
        assert!(self.api.merge(&path, &patch).await.unwrap().is_some());
    }

    /// Changes the status of a machine, as somebody does who asks for something.
    pub(crate) async fn patch_status(&self, name: &str, status: Value) {
        let path = format!("{MACHINES}/{name}/status");
        let patch = json!({"status": status});
        assert!(self.api.merge(&path, &patch).await.unwrap().is_some());
    }

    /// Waits until a machine is as wanted, and returns it.
    pub(crate) async fn until(&self, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let path = format!("{MACHINES}/{name}");
        until(&self.api, &path, what, holds).await
    }

    /// Waits until people see this word of a machine.
    pub(crate) async fn shows(&self, name: &str, word: &str) -> Value {
        let shown = |it: &Value| it["status"]["printableStatus"] == word;
        self.until(name, word, shown).await
    }

    /// Waits until people see this word of a machine, and nothing that was asked for is left.
    pub(crate) async fn settles(&self, name: &str, word: &str) -> Value {
        let settled = |it: &Value| {
            it["status"]["printableStatus"] == word && it["status"]["stateChangeRequests"].is_null()
        };
        self.until(name, word, settled).await
    }

    /// Waits until an instance is as wanted, and returns it.
    pub(crate) async fn until_instance(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Value {
        let path = format!("{INSTANCES}/{name}");
        until(&self.api, &path, what, holds).await
    }

    /// Waits until an instance other than the one given runs, and returns it.
    pub(crate) async fn runs_anew(&self, name: &str, before: &Value) -> Value {
        let other = |it: &Value| {
            it["metadata"]["uid"] != before["metadata"]["uid"] && it["status"]["phase"] == "Running"
        };
        self.until_instance(name, "another, and running", other).await
    }

    /// The messages of events about an object, with their reasons.
    pub(crate) async fn events(&self, name: &str) -> Vec<String> {
        let all = self.api.list("/api/v1/namespaces/vms/events").await.unwrap();
        let about = |event: &&Value| event["involvedObject"]["name"] == name;
        let shown = |event: &Value| {
            format!(
                "{} {}",
                event["reason"].as_str().unwrap(),
                event["message"].as_str().unwrap()
            )
        };
        all.iter().filter(about).map(shown).collect()
    }

    /// Waits until there is an event with these words.
    pub(crate) async fn event(&self, name: &str, words: &str) {
        eventually(&format!("{name} has an event: {words}"), || async {
            self.events(name).await.iter().any(|it| it.contains(words))
        })
        .await;
    }
}

/// Waits until an object is as wanted, and returns it; one that is gone is null.
pub(crate) async fn until(api: &Requests, path: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let found = api.get(path).await.unwrap().unwrap_or_default();
        if holds(&found) {
            return found;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "{path}: not {what} within {PATIENCE:?}: {}",
            serde_json::to_string_pretty(&json!({"spec": found["spec"], "status": found["status"], "metadata": found["metadata"]["deletionTimestamp"]})).unwrap()
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until the condition holds.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Long enough for the engine to do what it should not.
pub(crate) async fn a_while() {
    tokio::time::sleep(Duration::from_millis(300)).await;
}

/// The condition of an object: its status, reason and message.
pub(crate) fn condition(object: &Value, kind: &str) -> Option<(String, String, String)> {
    let all = object["status"]["conditions"].as_array()?;
    let found = all.iter().find(|it| it["type"] == kind)?;
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("reason"), text("message")))
}

pub(crate) fn machine(name: &str, change: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": "vms"},
        "spec": {
            "runStrategy": "Always",
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "domain": {
                        "cpu": {"cores": 1, "sockets": 1, "threads": 1},
                        "memory": {"guest": "1Gi"},
                        "devices": {
                            "disks": [{"name": "root", "disk": {"bus": "virtio"}}],
                            "interfaces": [{"name": "default", "masquerade": {}}],
                        },
                    },
                    "networks": [{"name": "default", "pod": {}}],
                    "volumes": [{"name": "root", "containerDisk": {"image": "example.com/tiny:1"}}],
                },
            },
        },
    });
    merge(&mut object, change);
    object
}

/// A merge patch, applied.
pub(crate) fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (name, value) in patch {
                match value.is_null() {
                    true => drop(into.shift_remove(name)),
                    false => merge(into.entry(name).or_insert(Value::Null), value),
                }
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}

/// The kinds of machines, with what completes and judges them.
fn provided() -> Vec<ProvidedKind> {
    let definitions = fairway_api::machine_definitions().into_iter().map(Arc::new);
    definitions
        .map(|definition| {
            let (schema, whole) = (Arc::clone(&definition), Arc::clone(&definition));
            ProvidedKind {
                head: definition.head(),
                schema: Arc::new(move || schema.schema()),
                definition: Arc::new(move || whole.crd()),
                fingerprint: definition.fingerprint(),
                sealed: definition.kind().sealed,
                domain: fairway_machines_plan::admission::of(definition.group(), definition.kind().plural),
            }
        })
        .collect()
}

/// The controllers without which an API is none.
fn start_controllers(clients: ClientFactory) -> ShutdownTrigger {
    let address = "192.0.2.7:6443".parse().unwrap();
    let service = std::net::Ipv4Addr::new(10, 96, 0, 1);
    let options = fairway_kernel_controllers::Options::new(clients, "", service, address);
    let (end, shutdown) = Shutdown::new();
    tokio::spawn(fairway_kernel_controllers::run(options, Arc::default(), shutdown));
    end
}

async fn make_workspace(kernel: &Arc<Kernel>, id: &str) {
    let cluster = json!({
        "apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster",
        "metadata": {"name": "cluster", "annotations": {"kcp.io/cluster": id}},
        "spec": {"owner": {"cluster": "root", "name": id}}, "status": {"phase": "Ready"},
    });
    let key = KindPrefix::new("core.kcp.io", "logicalclusters", "builtin")
        .object(&ObjectSuffix::new(id, "", "cluster"));
    let put = Op::Put {
        key,
        value: value::plain(&object::encode(&cluster).unwrap()),
        lease: None,
    };
    let txn = Txn {
        compare: Vec::new(),
        success: vec![put],
        failure: Vec::new(),
    };
    kernel.storage.store.txn(txn).await.unwrap();
    eventually("the workspace is known", || async {
        kernel.workspaces.resolve(id).is_some()
    })
    .await;
}

pub(crate) fn administrator(kernel: &Arc<Kernel>, id: &str) -> Requests {
    let admin = UserInfo::new("admin", ["system:masters", "system:authenticated"]);
    let reach = Reach::One(WorkspaceId::parse(id).unwrap());
    let service = Within::new(InProcess::new(Arc::clone(kernel), admin), &reach);
    Requests::new(Client::new(service, "default"))
}
