//! A world: an API with its controllers, a node on it, disks for its machines, and an administrator's view of a workspace.

use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fairway_controller::clients::Within;
use fairway_controller::{
    ClientFactory, Metrics, ObjectKey, Reach, Requests, Shutdown, ShutdownTrigger, WorkspaceId,
};
use fairway_fabric::{Fabric, PlainTcp};
use fairway_kernel_apiserver::authn::token::Tokens;
use fairway_kernel_apiserver::client::InProcess;
use fairway_kernel_apiserver::custom::ProvidedKind;
use fairway_kernel_apiserver::key::{KindPrefix, ObjectSuffix};
use fairway_kernel_apiserver::{Kernel, KernelOptions, bootstrap, object};
use fairway_kernel_authz::UserInfo;
use fairway_kernel_store::value::{self, KeyRing};
use fairway_kernel_store::{MemoryStore, Op, Txn};
use fairway_machines_image::{Cache, Image, ImageError, build, overlay};
use fairway_machines_node::ports::{Cables, Disks};
use fairway_machines_node::{Node, Options, QEMU, run};
use fairway_machines_volumes::{ContainerDisk, ContainerDiskError};
use fairway_machines_wiring::Card;
use futures::future::BoxFuture;
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::gate::{Gate, Gated};

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);
/// The workspace in which machines are.
pub(crate) const TEAM: &str = "2a8f0a9b1c3d4e5f";
/// Who places instances.
const ENGINE: &str = "system:serviceaccount:kube-system:fairway-machines-engine";
pub(crate) const NODE: &str = "here";
pub(crate) const INSTANCES: &str = "/apis/kubevirt.io/v1/namespaces/shop/virtualmachineinstances";
pub(crate) const CLAIMS: &str = "/api/v1/namespaces/shop/persistentvolumeclaims";

/// Two guests at a time would take each other's processor.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Remembers what was plugged in, and connects nothing. What machines would serve is served by the test itself.
#[derive(Debug, Default)]
pub(crate) struct Plugs(pub(crate) Mutex<Vec<(String, Vec<Card>)>>);

impl Cables for Plugs {
    fn plug(&self, key: &ObjectKey, _: &str, cards: Vec<Card>) {
        let mut all = self.0.lock().unwrap();
        all.retain(|(known, _)| *known != key.to_string());
        all.push((key.to_string(), cards));
    }

    fn unplug(&self, key: &ObjectKey) {
        self.0
            .lock()
            .unwrap()
            .retain(|(known, _)| *known != key.to_string());
    }

    fn address(&self, _: &ObjectKey) -> Option<Ipv4Addr> {
        Some(Ipv4Addr::LOCALHOST)
    }

    fn fabric(&self) -> Arc<dyn Fabric> {
        Arc::new(PlainTcp::default())
    }
}

/// A registry that has nothing.
pub(crate) struct NoImages;

impl Disks for NoImages {
    fn fetch<'a>(&'a self, wanted: ContainerDisk<'a>) -> BoxFuture<'a, Result<Image, ContainerDiskError>> {
        Box::pin(async move { Err(ContainerDiskError::NeverPull(wanted.image.to_owned())) })
    }
}

pub(crate) struct World {
    kernel: Arc<Kernel>,
    factory: ClientFactory,
    /// Before the API, as nodes and controllers see it.
    pub(crate) gate: Gate,
    pub(crate) admin: Requests,
    engine: Requests,
    pub(crate) plugs: Arc<Plugs>,
    pub(crate) node: Node,
    running: Option<(ShutdownTrigger, JoinHandle<()>)>,
    _controllers: ShutdownTrigger,
    pub(crate) folder: tempfile::TempDir,
    _turn: tokio::sync::MutexGuard<'static, ()>,
}

/// Another node.
pub(crate) struct Neighbour {
    pub(crate) node: Node,
    pub(crate) directory: PathBuf,
    pub(crate) plugs: Arc<Plugs>,
    running: Option<(ShutdownTrigger, JoinHandle<()>)>,
}

impl Neighbour {
    pub(crate) async fn stop(&mut self) {
        let (end, task) = self.running.take().unwrap();
        end.shut_down();
        tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap();
    }

    /// Its Fairway is killed; its machines are not.
    pub(crate) async fn crash(&mut self) {
        let (_end, task) = self.running.take().unwrap();
        task.abort();
        let _ = task.await;
    }

    /// Processes of its machines.
    pub(crate) fn processes(&self) -> Vec<u32> {
        processes_below(&self.directory)
    }
}

/// Processes that work in the directory of a machine.
fn processes_below(directory: &Path) -> Vec<u32> {
    let run = directory.join("run");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let works_in = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        if let (true, Some(Ok(pid))) = (
            works_in.starts_with(&run),
            entry.file_name().to_str().map(str::parse),
        ) {
            found.push(pid);
        }
    }
    found
}

pub(crate) fn has(program: &str) -> bool {
    let run = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    run.is_ok()
}

impl Drop for World {
    /// Machines outlive whoever started them, also a test that failed: those that work in the test's directory are ended.
    fn drop(&mut self) {
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let works_in = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            if works_in.starts_with(self.folder.path()) {
                let _ = Command::new("kill").arg("-9").arg(entry.file_name()).status();
            }
        }
    }
}

impl World {
    /// An API with the namespace `shop`, and a node on it; nothing where there is no QEMU.
    pub(crate) async fn start(test: &str) -> Option<Self> {
        for program in [QEMU, "qemu-img"] {
            if !has(program) {
                fairway_machines_required::skipped(format_args!(
                    "{test}: {program} is not installed (scripts/tools.sh qemu)"
                ));
                return None;
            }
        }
        // `RUST_LOG=debug` shows what the node thinks; a second subscriber is refused, which is fine.
        let _ = tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .with_test_writer()
            .try_init();
        let turn = TURN.lock().await;
        // On the same file system as the image, as disks are linked to it.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        // As data directories are.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
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
        let (for_users, gate) = (Arc::clone(&kernel), Gate::default());
        let behind = gate.clone();
        let factory = ClientFactory::across_workspaces(move |user: &str| {
            let groups = fairway_kernel_controllers::groups(user)
                .into_iter()
                .chain(["system:authenticated"]);
            Gated {
                api: InProcess::new(Arc::clone(&for_users), UserInfo::new(user, groups)),
                gate: behind.clone(),
            }
        });
        let service = Ipv4Addr::new(10, 96, 0, 1);
        let address = "192.0.2.7:6443".parse().unwrap();
        let options = fairway_kernel_controllers::Options::new(factory.clone(), "", service, address);
        let (controllers, shutdown) = Shutdown::new();
        tokio::spawn(fairway_kernel_controllers::run(options, Arc::default(), shutdown));
        make_workspace(&kernel, TEAM).await;
        let team = WorkspaceId::parse(TEAM).unwrap();
        let engine = factory.clients(ENGINE).of(&team);
        let mut world = Self {
            admin: admin(&kernel, TEAM),
            engine: Requests::new(engine),
            kernel,
            factory,
            gate,
            plugs: Arc::default(),
            node: Node::new(NODE, &folder.path().join("machines")),
            running: None,
            _controllers: controllers,
            folder,
            _turn: turn,
        };
        let namespace = json!({"metadata": {"name": "shop"}});
        world.create("/api/v1/namespaces", namespace).await;
        world.begin();
        Some(world)
    }

    /// The image `tiny`; nothing where its packages cannot be had.
    pub(crate) fn tiny(&self, test: &str) -> Option<Image> {
        if !has("apt-get") {
            fairway_machines_required::skipped(format_args!("{test}: apt-get is not installed"));
            return None;
        }
        // Built once for every version of the packages and of the guest's scripts, and shared with the tests of QEMU.
        let cache = Cache::open(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("images")).unwrap();
        match build::tiny(&cache, false, |text| eprintln!("tiny: {text}")) {
            Ok(image) => Some(image),
            Err(ImageError::Program { program, why }) if program.starts_with("apt") => {
                fairway_machines_required::skipped(format_args!(
                    "{test}: the packages of the image tiny cannot be had: {why}"
                ));
                None
            }
            Err(error) => panic!("the image tiny cannot be built: {error}"),
        }
    }

    /// Starts the node.
    pub(crate) fn begin(&mut self) {
        self.running = Some(self.run_node(&self.node, &self.plugs, None));
    }

    fn run_node(
        &self,
        node: &Node,
        plugs: &Arc<Plugs>,
        host: Option<&str>,
    ) -> (ShutdownTrigger, JoinHandle<()>) {
        let options = Options {
            clients: self.factory.clone(),
            address: Some(Ipv4Addr::LOCALHOST.into()),
            host: host.map(str::to_owned),
            fencing: None,
            users: Some(fairway_machines_plan::confinement::users::Range::default()),
            program: PathBuf::from(QEMU),
            data_path: fairway_machines_node::DataPath::Switch,
            cables: Arc::clone(plugs) as Arc<dyn Cables>,
            disks: Arc::new(NoImages),
        };
        let (end, shutdown) = Shutdown::new();
        let task = tokio::spawn(run(node.clone(), options, Arc::new(Metrics::default()), shutdown));
        (end, task)
    }

    /// What whoever asks for figures reads, of instances and of the machines of this node.
    pub(crate) async fn figures(&self) -> String {
        use fairway_machines_guests::Guests as _;
        let instances = fairway_machines_node::figures_of_instances(&self.factory).await;
        instances + &self.node.figures().await
    }

    /// Another node beside this one, with a directory of its own; `host` makes it look like one of another host.
    pub(crate) fn neighbour(&self, name: &str, host: Option<&str>) -> Neighbour {
        let directory = self.folder.path().join(name);
        let (node, plugs) = (Node::new(name, &directory), Arc::default());
        let running = self.run_node(&node, &plugs, host);
        Neighbour {
            node,
            directory,
            plugs,
            running: Some(running),
        }
    }

    /// Lets a neighbour begin anew.
    pub(crate) async fn restart(&self, neighbour: &mut Neighbour, host: Option<&str>) {
        neighbour.stop().await;
        neighbour.running = Some(self.run_node(&neighbour.node, &neighbour.plugs, host));
    }

    /// Ends the node; it must do so by itself.
    pub(crate) async fn stop(&mut self) {
        let (end, task) = self.running.take().unwrap();
        end.shut_down();
        tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap();
    }

    /// Ends the node at once, as a crash does.
    pub(crate) async fn crash(&mut self) {
        let (_end, task) = self.running.take().unwrap();
        task.abort();
        let _ = task.await;
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.folder.path().join("machines")
    }

    /// An administrator of another workspace.
    pub(crate) fn admin_of(&self, workspace: &str) -> Requests {
        admin(&self.kernel, workspace)
    }

    pub(crate) async fn create(&self, path: &str, object: Value) {
        assert!(
            self.admin.create(path, &object).await.unwrap(),
            "{path}: is there already"
        );
    }

    /// A claim with its volume; the disk is over the image, or empty.
    pub(crate) async fn claim(&self, name: &str, image: Option<&Image>) {
        self.unbound_claim(name, image).await;
        self.bind(name).await;
    }

    /// A claim that is not bound yet.
    pub(crate) async fn unbound_claim(&self, name: &str, image: Option<&Image>) {
        let directory = self.volume(name, image);
        let volume = json!({
            "metadata": {"name": format!("pv-{name}")},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
                "local": {"path": directory},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}]},
                ]}},
                "claimRef": {"namespace": "shop", "name": name},
            },
        });
        self.create("/api/v1/persistentvolumes", volume).await;
        let claim = json!({
            "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "local", "volumeName": format!("pv-{name}"),
            },
        });
        self.create(CLAIMS, claim).await;
    }

    /// Binds a claim to its volume.
    pub(crate) async fn bind(&self, name: &str) {
        let bound = json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}});
        let path = format!("{CLAIMS}/{name}/status");
        self.admin.merge(&path, &bound).await.unwrap().unwrap();
    }

    fn volume(&self, name: &str, image: Option<&Image>) -> PathBuf {
        let team = WorkspaceId::parse(TEAM).unwrap();
        let directory =
            fairway_machines_volumes::volume_directory(&self.directory(), &team, &format!("pv-{name}"));
        std::fs::create_dir_all(&directory).unwrap();
        match image {
            Some(image) => drop(overlay::over(image, &directory, "disk", Some(1 << 30)).unwrap()),
            None => overlay::blank(&directory, "disk", 1 << 30).unwrap(),
        }
        directory
    }

    /// Makes an instance, and places it on the node as the scheduler would.
    pub(crate) async fn instance(&self, name: &str, spec: Value) {
        let object = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": spec,
        });
        self.create(INSTANCES, object).await;
        let placed = json!({
            "metadata": {"labels": {"kubevirt.io/nodeName": NODE}},
            "status": {"nodeName": NODE, "phase": "Scheduled"},
        });
        self.patch(name, placed).await;
    }

    /// Changes an instance as the engine does, which may do more than people.
    pub(crate) async fn patch(&self, name: &str, patch: Value) {
        let path = format!("{INSTANCES}/{name}");
        self.engine.merge(&path, &patch).await.unwrap().unwrap();
    }

    /// Gives an instance its address, as whoever wires machines does.
    pub(crate) async fn address(&self, name: &str, address: &str) {
        let team = WorkspaceId::parse(TEAM).unwrap();
        let wiring = Requests::new(self.factory.clients(fairway_machines_wiring::USER).of(&team));
        let patch = json!({"metadata": {"annotations": {"fairway.dev/address": address}}});
        let path = format!("{INSTANCES}/{name}");
        wiring.merge(&path, &patch).await.unwrap().unwrap();
    }

    pub(crate) async fn get(&self, name: &str) -> Option<Value> {
        self.admin.get(&format!("{INSTANCES}/{name}")).await.unwrap()
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.admin.delete(&format!("{INSTANCES}/{name}")).await.unwrap();
    }

    /// Waits until an instance is as wanted, and returns it.
    pub(crate) async fn until(&self, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let found = self.get(name).await.unwrap_or_default();
            if holds(&found) {
                return found;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "{name}: not {what}: {}",
                serde_json::to_string_pretty(&found).unwrap()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn until_gone(&self, name: &str) {
        self.until(name, "gone", Value::is_null).await;
    }

    pub(crate) async fn until_running(&self, name: &str) -> Value {
        self.until(name, "running", |it| it["status"]["phase"] == "Running")
            .await
    }

    /// Reasons of events about an instance, in order, with their messages.
    pub(crate) async fn events(&self, name: &str) -> Vec<String> {
        let mut all = self.admin.list("/api/v1/namespaces/shop/events").await.unwrap();
        all.retain(|it| it["involvedObject"]["name"] == name);
        all.sort_by_key(|it| it["metadata"]["name"].to_string());
        let shown = |it: &Value| {
            format!(
                "{} {}",
                it["reason"].as_str().unwrap(),
                it["message"].as_str().unwrap()
            )
        };
        all.iter().map(shown).collect()
    }

    /// Waits for an event that begins like this.
    pub(crate) async fn until_told(&self, name: &str, wanted: &str) {
        let begun = Instant::now();
        while !self.events(name).await.iter().any(|it| it.starts_with(wanted)) {
            assert!(
                begun.elapsed() < PATIENCE,
                "{name}: {wanted}: {:?}",
                self.events(name).await
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Processes that work in the directory of a machine.
    pub(crate) fn processes(&self) -> Vec<u32> {
        processes_below(&self.directory())
    }

    /// Directories of machines.
    pub(crate) fn homes(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.directory().join("run"))
            .into_iter()
            .flatten()
            .flatten();
        entries.map(|it| it.path()).collect()
    }
}

pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether a condition of an instance holds.
pub(crate) fn condition(object: &Value, kind: &str) -> Option<(String, String, String)> {
    let all = object["status"]["conditions"].as_array()?;
    let found = all.iter().find(|it| it["type"] == kind)?;
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("reason"), text("message")))
}

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

fn admin(kernel: &Arc<Kernel>, workspace: &str) -> Requests {
    let admin = UserInfo::new("admin", ["system:masters", "system:authenticated"]);
    let reach = Reach::One(WorkspaceId::parse(workspace).unwrap());
    let service = Within::new(InProcess::new(Arc::clone(kernel), admin), &reach);
    Requests::new(Client::new(service, "default"))
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
    eventually("the workspace is known", || {
        kernel.workspaces.resolve(id).is_some()
    })
    .await;
}
