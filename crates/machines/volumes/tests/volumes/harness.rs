//! A world: an API with the controllers of volumes on it, a directory, and an administrator's view of one workspace.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairway_controller::clients::Within;
use fairway_controller::{ClientFactory, Metrics, Reach, Requests, Shutdown, ShutdownTrigger, WorkspaceId};
use fairway_kernel_apiserver::authn::token::Tokens;
use fairway_kernel_apiserver::client::InProcess;
use fairway_kernel_apiserver::custom::ProvidedKind;
use fairway_kernel_apiserver::key::{KindPrefix, ObjectSuffix};
use fairway_kernel_apiserver::{Kernel, KernelOptions, bootstrap, object};
use fairway_kernel_authz::UserInfo;
use fairway_kernel_store::value::{self, KeyRing};
use fairway_kernel_store::{MemoryStore, Op, Txn};
use fairway_machines_guests::Guests;
use fairway_machines_image::import::{self, Request};
use fairway_machines_image::{Cache, Image};
use fairway_machines_volumes::{ImageService, Options, Uploads, run, volume_directory};
use fairway_outbound::AllowedHosts;
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::copying::Copying;

/// What nothing here should take, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The node of all scenarios.
pub(crate) const NODE: &str = "harbour";
/// A node that joins.
pub(crate) const FAR: &str = "island";

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
    pub(crate) api: Requests,
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) factory: ClientFactory,
    pub(crate) uploads: Uploads,
    pub(crate) guests: Arc<Copying>,
    /// Whether machines run beside the control plane.
    has_machines: bool,
    id: &'static str,
    running: Option<(ShutdownTrigger, JoinHandle<()>)>,
    _end: ShutdownTrigger,
    folder: tempfile::TempDir,
}

/// A host that joined.
pub(crate) struct Joined {
    pub(crate) clients: ClientFactory,
    folder: PathBuf,
    workspace: WorkspaceId,
    _running: (ShutdownTrigger, JoinHandle<()>),
}

impl Joined {
    pub(crate) fn images(&self) -> PathBuf {
        self.folder.join("images")
    }

    /// The directory of the volume of a claim, which must be there.
    pub(crate) fn directory_of(&self, claim: &Value) -> PathBuf {
        let volume = claim["spec"]["volumeName"].as_str().unwrap();
        let directory = volume_directory(&self.folder.join("machines"), &self.workspace, volume);
        assert!(directory.exists(), "{}", directory.display());
        directory
    }

    /// What a snapshot kept.
    pub(crate) fn snapshot(&self, content: &str) -> PathBuf {
        let all = self.folder.join("machines/snapshots");
        all.join(self.workspace.as_str()).join(content)
    }
}

impl World {
    pub(crate) async fn start(at: At) -> Self {
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
        let uploads = Uploads::new("https://uploads.example.com").unwrap();
        kernel.serve_api(&uploads).unwrap();
        bootstrap::run(&kernel).await.unwrap();
        let for_users = Arc::clone(&kernel);
        let factory = ClientFactory::across_workspaces(move |user: &str| {
            let groups = fairway_kernel_controllers::groups(user)
                .into_iter()
                .chain(["system:authenticated"]);
            InProcess::new(Arc::clone(&for_users), UserInfo::new(user, groups))
        });
        kernel
            .serve_api(&ImageService::new(&factory, folder.path().join("images")))
            .unwrap();
        let end = start_controllers(factory.clone());
        let id = at.id();
        if at == At::Workspace {
            make_workspace(&kernel, id).await;
        }
        let mut world = Self {
            api: administrator(&kernel, id),
            kernel,
            factory,
            uploads,
            guests: Arc::default(),
            has_machines: true,
            id,
            running: None,
            _end: end,
            folder,
        };
        world.namespace("shop").await;
        world.begin();
        world
    }

    /// Starts the controllers.
    pub(crate) fn begin(&mut self) {
        let options = Options {
            clients: self.factory.clone(),
            node: self.has_machines.then(|| NODE.to_owned()),
            directory: self.machines(),
            images: self.images(),
            allowed_hosts: AllowedHosts::parse("loopback").unwrap(),
            keep_disks: None,
            is_control_plane: true,
            uploads: Some(self.uploads.clone()),
            guests: Some(Arc::clone(&self.guests) as Arc<dyn Guests>),
            served: None,
        };
        let (end, shutdown) = Shutdown::new();
        let task = tokio::spawn(run(options, Arc::new(Metrics::default()), shutdown));
        self.running = Some((end, task));
    }

    /// Goes on as a control plane on whose host no machines run.
    pub(crate) async fn without_machines(&mut self) {
        self.stop().await;
        self.has_machines = false;
        self.begin();
    }

    /// Lets a host join: its volumes, with nothing but the rights of a node.
    pub(crate) async fn join(&self, name: &str) -> Joined {
        let node = json!({
            "metadata": {"name": name, "labels": {"kubevirt.io/schedulable": "true", "kubernetes.io/hostname": name}},
        });
        assert!(self.root().create("/api/v1/nodes", &node).await.unwrap());
        let (kernel, user) = (Arc::clone(&self.kernel), format!("system:node:{name}"));
        let clients = ClientFactory::across_workspaces(move |_: &str| {
            let user = UserInfo::new(&user, ["system:nodes", "system:authenticated"]);
            InProcess::new(Arc::clone(&kernel), user)
        });
        let folder = self.folder.path().join(name);
        let options = Options {
            clients: clients.clone(),
            node: Some(name.to_owned()),
            directory: folder.join("machines"),
            images: folder.join("images"),
            allowed_hosts: AllowedHosts::parse("loopback").unwrap(),
            keep_disks: None,
            is_control_plane: false,
            uploads: None,
            guests: None,
            served: None,
        };
        let (end, shutdown) = Shutdown::new();
        let task = tokio::spawn(run(options, Arc::new(Metrics::default()), shutdown));
        Joined {
            clients,
            folder,
            workspace: self.workspace(),
            _running: (end, task),
        }
    }

    /// Ends the controllers at once, as a crash does.
    pub(crate) fn kill(&mut self) {
        if let Some((_end, task)) = self.running.take() {
            task.abort();
        }
    }

    /// Ends the controllers; they must do so by themselves.
    pub(crate) async fn stop(&mut self) {
        let Some((end, running)) = self.running.take() else {
            return;
        };
        end.shut_down();
        tokio::time::timeout(PATIENCE, running)
            .await
            .expect("the controllers do not end")
            .unwrap();
    }

    pub(crate) async fn end(mut self) {
        self.stop().await;
    }

    pub(crate) fn workspace(&self) -> WorkspaceId {
        WorkspaceId::parse(self.id).unwrap()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn machines(&self) -> PathBuf {
        self.folder.path().join("machines")
    }

    pub(crate) fn images(&self) -> PathBuf {
        self.folder.path().join("images")
    }

    /// Publishes an image of some megabytes, full of a number.
    pub(crate) fn image(&self, name: &str, megabytes: usize, byte: u8) -> Image {
        let cache = Cache::open(&self.images()).unwrap();
        let content = vec![byte; megabytes << 20];
        import::stream(&cache, &content[..], &Request::new(name, "test"), |_| {}).unwrap()
    }

    /// An administrator's client.
    pub(crate) fn client(&self) -> Client {
        administrators_client(&self.kernel, self.id)
    }

    /// What an administrator of the root workspace sees.
    pub(crate) fn root(&self) -> Requests {
        administrator(&self.kernel, "root")
    }

    pub(crate) async fn create(&self, path: &str, object: Value) {
        assert!(
            self.api.create(path, &object).await.unwrap(),
            "{object} is there already"
        );
    }

    pub(crate) async fn namespace(&self, name: &str) {
        self.create("/api/v1/namespaces", json!({"metadata": {"name": name}}))
            .await;
    }

    /// Makes a claim in `shop`.
    pub(crate) async fn claim(&self, name: &str, size: &str, more: Value) {
        let mut claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
        });
        merge(&mut claim, &more);
        self.create("/api/v1/namespaces/shop/persistentvolumeclaims", claim)
            .await;
    }

    /// Makes a DataVolume in `shop`, of `storage` and a source.
    pub(crate) async fn data_volume(&self, name: &str, source: Value, size: &str, more: Value) {
        let mut volume = json!({
            "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"source": source, "storage": {"resources": {"requests": {"storage": size}}}},
        });
        merge(&mut volume, &more);
        self.create(
            "/apis/cdi.kubevirt.io/v1beta1/namespaces/shop/datavolumes",
            volume,
        )
        .await;
    }

    /// A machine that runs here and has these claims as disks.
    pub(crate) async fn instance(&self, name: &str, claims: &[&str]) {
        let volumes: Vec<Value> = claims
            .iter()
            .map(|claim| json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}))
            .collect();
        let disks: Vec<Value> = claims
            .iter()
            .map(|claim| json!({"name": claim, "disk": {}}))
            .collect();
        let path = "/apis/kubevirt.io/v1/namespaces/shop/virtualmachineinstances";
        let spec = json!({"domain": {"devices": {"disks": disks}, "resources": {"requests": {"memory": "64Mi"}}}, "volumes": volumes});
        let instance = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
            "metadata": {"name": name, "namespace": "shop"}, "spec": spec,
        });
        self.create(path, instance).await;
        self.instance_phase(name, "Running").await;
    }

    pub(crate) async fn instance_phase(&self, name: &str, phase: &str) {
        self.instance_status(name, json!({"phase": phase, "nodeName": NODE}))
            .await;
    }

    async fn instance_status(&self, name: &str, status: Value) {
        let path = format!("/apis/kubevirt.io/v1/namespaces/shop/virtualmachineinstances/{name}");
        let status = json!({"status": status});
        // Only the control plane writes it.
        let node = self
            .factory
            .clients("system:serviceaccount:kube-system:fairway-machines-node");
        let node = Requests::new(node.of(&self.workspace()));
        node.merge(&path, &status).await.unwrap().unwrap();
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.api.get(path).await.unwrap().unwrap_or_default()
    }

    pub(crate) async fn get_claim(&self, name: &str) -> Value {
        self.get(&claim_path(name)).await
    }

    pub(crate) async fn get_data_volume(&self, name: &str) -> Value {
        self.get(&data_volume_path(name)).await
    }

    /// Waits until an object is as wanted, and returns it.
    pub(crate) async fn until(&self, path: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let found = self.get(path).await;
            if holds(&found) {
                return found;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "{path}: not {what}: {}\nevents: {:#?}",
                serde_json::to_string_pretty(&found).unwrap(),
                self.all_events().await
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn bound(&self, name: &str) -> Value {
        self.until(&claim_path(name), "bound", |it| it["status"]["phase"] == "Bound")
            .await
    }

    pub(crate) async fn phase(&self, name: &str, phase: &str) -> Value {
        self.until(&data_volume_path(name), phase, |it| {
            it["status"]["phase"] == phase
        })
        .await
    }

    /// The directory of the volume of a claim.
    pub(crate) async fn directory_of(&self, claim: &str) -> PathBuf {
        let claim = self.bound(claim).await;
        let name = claim["spec"]["volumeName"].as_str().unwrap();
        let volume = self.get(&format!("/api/v1/persistentvolumes/{name}")).await;
        let path = PathBuf::from(volume["spec"]["local"]["path"].as_str().unwrap());
        assert_eq!(path, volume_directory(&self.machines(), &self.workspace(), name));
        path
    }

    async fn all_events(&self) -> Vec<String> {
        let all = self.api.list("/api/v1/namespaces/shop/events").await.unwrap();
        all.iter()
            .map(|it| {
                let text = |pointer: &str| {
                    it.pointer(pointer)
                        .and_then(Value::as_str)
                        .unwrap_or_default()
                        .to_owned()
                };
                format!(
                    "{}/{}: {} {}",
                    text("/involvedObject/kind"),
                    text("/involvedObject/name"),
                    text("/reason"),
                    text("/message")
                )
            })
            .collect()
    }

    /// The events about an object, as `REASON MESSAGE`.
    pub(crate) async fn events(&self, kind: &str, name: &str) -> Vec<String> {
        let prefix = format!("{kind}/{name}: ");
        let all = self.all_events().await;
        all.iter()
            .filter_map(|it| it.strip_prefix(&prefix))
            .map(str::to_owned)
            .collect()
    }
}

pub(crate) fn claim_path(name: &str) -> String {
    format!("/api/v1/namespaces/shop/persistentvolumeclaims/{name}")
}

pub(crate) fn data_volume_path(name: &str) -> String {
    format!("/apis/cdi.kubevirt.io/v1beta1/namespaces/shop/datavolumes/{name}")
}

/// What a condition of an object says: status, reason, message.
pub(crate) fn condition(object: &Value, kind: &str) -> (String, String, String) {
    let all = object["status"]["conditions"].as_array().into_iter().flatten();
    let found = all
        .into_iter()
        .find(|it| it["type"] == kind)
        .cloned()
        .unwrap_or_default();
    let word = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (word("status"), word("reason"), word("message"))
}

/// What `qemu-io` says of a disk; it must succeed.
pub(crate) fn qemu_io(directory: &Path, command: &str) {
    let output = Command::new("qemu-io")
        .current_dir(directory)
        .args(["-f", "qcow2", "-c", command, "disk.qcow2"])
        .output()
        .expect("qemu-io is needed for this test: apt-get install qemu-utils");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && !said.contains("failed"),
        "{command}: {said}"
    );
}

/// Waits until the condition holds.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The kinds of machines, and Fairway's own.
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

fn administrators_client(kernel: &Arc<Kernel>, id: &str) -> Client {
    let admin = UserInfo::new("admin", ["system:masters", "system:authenticated"]);
    let reach = Reach::One(WorkspaceId::parse(id).unwrap());
    let service = Within::new(InProcess::new(Arc::clone(kernel), admin), &reach);
    Client::new(service, "default")
}

fn administrator(kernel: &Arc<Kernel>, id: &str) -> Requests {
    Requests::new(administrators_client(kernel, id))
}

/// A merge patch, applied.
fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (name, value) in patch {
                match value.is_null() {
                    true => {
                        into.shift_remove(name);
                    }
                    false => merge(into.entry(name).or_insert(Value::Null), value),
                }
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}
