//! A world: an API with its controllers, the wiring on it, and administrators' views of two workspaces.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fairway_controller::clients::Within;
use fairway_controller::served::Served;
use fairway_controller::{
    ClientFactory, Metrics, ObjectKey, Reach, Requests, Shutdown, ShutdownTrigger, WorkspaceId,
};
use fairway_kernel_apiserver::authn::token::Tokens;
use fairway_kernel_apiserver::client::InProcess;
use fairway_kernel_apiserver::custom::ProvidedKind;
use fairway_kernel_apiserver::key::{KindPrefix, ObjectSuffix};
use fairway_kernel_apiserver::{Kernel, KernelOptions, bootstrap, object};
use fairway_kernel_authz::UserInfo;
use fairway_kernel_store::value::{self, KeyRing};
use fairway_kernel_store::{MemoryStore, Op, Txn};
use fairway_machines_wiring::{NodeOptions, Options, Settings, Tunnel, Wiring, run};
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// What nothing here should take, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// The id of the workspace that is not the root.
pub(crate) const TEAM: &str = "2a8f0a9b1c3d4e5f";
pub(crate) const BOTH: [&str; 2] = ["root", TEAM];

pub(crate) struct World {
    kernel: Arc<Kernel>,
    pub(crate) factory: ClientFactory,
    running: Vec<(ShutdownTrigger, JoinHandle<()>)>,
    served: Served,
    _controllers: ShutdownTrigger,
    _folder: tempfile::TempDir,
}

impl World {
    /// An API with the namespace `shop` in both workspaces, and nothing of ours on it.
    pub(crate) async fn new() -> Self {
        // `RUST_LOG=debug` shows what the controllers think; a second subscriber is refused, which is fine.
        let _ = tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .with_test_writer()
            .try_init();
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
        let service = std::net::Ipv4Addr::new(10, 96, 0, 1);
        let address = "192.0.2.7:6443".parse().unwrap();
        let options = fairway_kernel_controllers::Options::new(factory.clone(), "", service, address);
        let (controllers, shutdown) = Shutdown::new();
        let (served, follow) = fairway_kernel_controllers::follow_served(&factory, shutdown.clone());
        tokio::spawn(follow);
        tokio::spawn(fairway_kernel_controllers::run(options, Arc::default(), shutdown));
        make_workspace(&kernel, TEAM).await;
        let world = Self {
            kernel,
            factory,
            running: Vec::new(),
            served,
            _controllers: controllers,
            _folder: folder,
        };
        for workspace in BOTH {
            world
                .create(
                    workspace,
                    "/api/v1/namespaces",
                    json!({"metadata": {"name": "shop"}}),
                )
                .await;
        }
        world
    }

    /// The same, with the cluster's side running.
    pub(crate) async fn start() -> Self {
        let mut world = Self::new().await;
        world.run(Settings::default());
        world
    }

    /// Starts another replica of the cluster's side.
    pub(crate) fn run(&mut self, settings: Settings) {
        let options = Options {
            clients: self.factory.clone(),
            served: Some(self.served.clone()),
            settings,
        };
        let (end, shutdown) = Shutdown::new();
        let task = tokio::spawn(run(options, Arc::new(Metrics::default()), shutdown));
        self.running.push((end, task));
    }

    /// Starts a node's side. It ends when the trigger is dropped.
    pub(crate) fn node(&self, settings: Settings) -> (Wiring, ShutdownTrigger) {
        self.one_of_nodes("n1", None, settings)
    }

    /// The same, for one of several nodes.
    pub(crate) fn one_of_nodes(
        &self,
        name: &str,
        tunnel: Option<Tunnel>,
        settings: Settings,
    ) -> (Wiring, ShutdownTrigger) {
        let (end, shutdown) = Shutdown::new();
        // A host that joined speaks as itself, whoever asks.
        let kernel = Arc::clone(&self.kernel);
        let user = UserInfo::new(
            format!("system:node:{name}"),
            ["system:nodes", "system:authenticated"],
        );
        let joined =
            ClientFactory::across_workspaces(move |_| InProcess::new(Arc::clone(&kernel), user.clone()));
        let options = NodeOptions {
            clients: if tunnel.is_some() {
                joined
            } else {
                self.factory.clone()
            },
            served: Some(self.served.clone()),
            space: None,
            node: name.to_owned(),
            tunnel,
            settings,
        };
        (Wiring::start(options, &shutdown), end)
    }

    /// Ends every replica at once, as a crash does.
    pub(crate) fn crash(&mut self) {
        for (_end, task) in self.running.drain(..) {
            task.abort();
        }
    }

    /// Ends every replica; each must do so by itself.
    pub(crate) async fn stop(&mut self) {
        for (end, task) in self.running.drain(..) {
            end.shut_down();
            tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap();
        }
    }

    /// An administrator of a workspace.
    pub(crate) fn admin(&self, workspace: &str) -> Requests {
        let admin = UserInfo::new("admin", ["system:masters", "system:authenticated"]);
        let reach = Reach::One(WorkspaceId::parse(workspace).unwrap());
        let service = Within::new(InProcess::new(Arc::clone(&self.kernel), admin), &reach);
        Requests::new(Client::new(service, "default"))
    }

    pub(crate) async fn create(&self, workspace: &str, path: &str, object: Value) {
        assert!(
            self.admin(workspace).create(path, &object).await.unwrap(),
            "{path}: is there already"
        );
    }

    pub(crate) async fn get(&self, workspace: &str, path: &str) -> Option<Value> {
        self.admin(workspace).get(path).await.unwrap()
    }

    pub(crate) async fn list(&self, workspace: &str, path: &str) -> Vec<Value> {
        self.admin(workspace).list(path).await.unwrap()
    }

    pub(crate) async fn merge(&self, workspace: &str, path: &str, patch: Value) {
        assert!(
            self.admin(workspace).merge(path, &patch).await.unwrap().is_some(),
            "{path} is not there"
        );
    }

    pub(crate) async fn delete(&self, workspace: &str, path: &str) {
        self.admin(workspace).delete(path).await.unwrap();
    }

    /// A VirtualMachine that nobody acts on.
    pub(crate) async fn machine(&self, workspace: &str, name: &str) {
        let object = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name},
            "spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}}}}},
        });
        let path = "/apis/kubevirt.io/v1/namespaces/shop/virtualmachines";
        self.create(workspace, path, object).await;
    }

    /// An instance with a card on the network that every machine has.
    pub(crate) async fn instance(&self, workspace: &str, name: &str, more: Value) {
        let mut object = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {
                "domain": {"devices": {"interfaces": [{"name": "default", "masquerade": {}}]}},
                "networks": [{"name": "default", "pod": {}}],
            },
        });
        overlay(&mut object, &more);
        self.create(workspace, INSTANCES, object).await;
    }

    /// The address of an instance, as soon as it has one.
    pub(crate) async fn address(&self, workspace: &str, name: &str) -> String {
        let path = instance_path(name);
        self.until(workspace, &path, "has an address", |object| {
            let address = object["metadata"]["annotations"]["fairway.dev/address"].as_str()?;
            Some(address.to_owned())
        })
        .await
    }

    /// Says that an instance runs, as its node would.
    pub(crate) async fn set_ready(&self, workspace: &str, name: &str, is_ready: bool) {
        let patch = json!({"status": {
            "phase": "Running", "nodeName": "n1",
            "conditions": [{"type": "Ready", "status": if is_ready { "True" } else { "False" }}],
        }});
        self.merge(workspace, &instance_path(name), patch).await;
    }

    /// Waits until an object is as wanted.
    pub(crate) async fn until<T>(
        &self,
        workspace: &str,
        path: &str,
        what: &str,
        wanted: impl Fn(&Value) -> Option<T>,
    ) -> T {
        let begun = Instant::now();
        loop {
            let found = self.get(workspace, path).await.unwrap_or_default();
            if let Some(found) = wanted(&found) {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "{path} never {what}: {found:#}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Every reserved address, with the machine that it belongs to.
    pub(crate) async fn reservations(&self) -> Vec<(String, String)> {
        let all = self
            .list("system:fairway", "/apis/networking.k8s.io/v1/ipaddresses")
            .await;
        let mut found: Vec<_> = all
            .iter()
            .map(|object| {
                let parent = &object["spec"]["parentRef"];
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                let machine = format!(
                    "{}|{}/{}",
                    text(&object["metadata"]["annotations"]["fairway.dev/workspace"]),
                    text(&parent["namespace"]),
                    text(&parent["name"]),
                );
                (machine, text(&object["metadata"]["name"]))
            })
            .collect();
        found.sort();
        found
    }

    /// Reasons and messages of events in the namespace.
    pub(crate) async fn events(&self, workspace: &str) -> Vec<String> {
        let all = self.list(workspace, "/api/v1/namespaces/shop/events").await;
        let shown = |event: &Value| {
            format!(
                "{} {}: {}",
                event["involvedObject"]["name"].as_str().unwrap(),
                event["reason"].as_str().unwrap(),
                event["message"].as_str().unwrap()
            )
        };
        all.iter().map(shown).collect()
    }
}

pub(crate) const INSTANCES: &str = "/apis/kubevirt.io/v1/namespaces/shop/virtualmachineinstances";

pub(crate) fn instance_path(name: &str) -> String {
    format!("{INSTANCES}/{name}")
}

pub(crate) fn machine_path(name: &str) -> String {
    format!("/apis/kubevirt.io/v1/namespaces/shop/virtualmachines/{name}")
}

pub(crate) fn key(workspace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(&WorkspaceId::parse(workspace).unwrap(), "shop", name)
}

/// The kinds of all domains, without what they do on a write.
fn provided() -> Vec<ProvidedKind> {
    let all = fairway_api::definitions()
        .into_iter()
        .chain(fairway_api::machine_definitions());
    all.map(|definition| {
        let definition = Arc::new(definition);
        let (schema, whole) = (Arc::clone(&definition), Arc::clone(&definition));
        ProvidedKind {
            head: definition.head(),
            schema: Arc::new(move || schema.schema()),
            definition: Arc::new(move || whole.crd()),
            fingerprint: definition.fingerprint(),
            sealed: definition.kind().sealed,
            domain: None,
        }
    })
    .collect()
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

/// Waits until a condition holds.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A merge patch, applied.
pub(crate) fn overlay(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (name, value) in patch {
                match value.is_null() {
                    true => {
                        into.shift_remove(name);
                    }
                    false => overlay(into.entry(name).or_insert(Value::Null), value),
                }
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}
