//! A world: an API with the controllers of volumes, snapshots and claims on it, and machines that are played: they have disks, are frozen
//! and copied on order, and write when a test says so.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fairway_apiservice::{ApiService, Body, BoxError, Handler, RequestInfo, Resource, full};
use fairway_controller::clients::Within;
use fairway_controller::{
    ClientFactory, Metrics, ObjectKey, Reach, Requests, Shutdown, ShutdownTrigger, WorkspaceId,
};
use fairway_fabric::Connection;
use fairway_kernel_apiserver::authn::token::Tokens;
use fairway_kernel_apiserver::client::InProcess;
use fairway_kernel_apiserver::custom::ProvidedKind;
use fairway_kernel_apiserver::key::{KindPrefix, ObjectSuffix};
use fairway_kernel_apiserver::{Kernel, KernelOptions, bootstrap, object};
use fairway_kernel_authz::UserInfo;
use fairway_kernel_store::value::{self, KeyRing};
use fairway_kernel_store::{MemoryStore, Op, Txn};
use fairway_machines_guests::{Door, Guests, Order, Refusal};
use fairway_outbound::AllowedHosts;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tower::service_fn;

/// What nothing here should take, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const NODE: &str = "harbour";

/// What was asked of machines, in order: `freeze`, `copy NAME`, `unfreeze`, ...
#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) all: Mutex<Vec<String>>,
    /// Why nobody is frozen.
    pub(crate) no_freeze: Mutex<Option<&'static str>>,
    /// Why copies fail.
    pub(crate) no_copy: Mutex<Option<&'static str>>,
}

impl Asked {
    fn note(&self, what: String) {
        self.all.lock().unwrap().push(what);
    }
}

impl Guests for Asked {
    fn can_plug(&self) -> bool {
        false
    }

    fn open<'a>(
        &'a self,
        _: &'a str,
        key: &'a ObjectKey,
        _: Door,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, Refusal>> {
        Box::pin(async move { Err(Refusal::NotRunning(key.clone())) })
    }

    fn order<'a>(
        &'a self,
        _: &'a str,
        _: &'a ObjectKey,
        order: Order,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        let answer = match order {
            Order::BeginCopy { disk, to } => match *self.no_copy.lock().unwrap() {
                Some(why) => Err(Refusal::Failed(why.to_owned())),
                None => {
                    std::fs::copy(disk, to).unwrap();
                    self.note("copy".to_owned());
                    Ok(Value::Null)
                }
            },
            Order::CopyDone { .. } => Ok(json!({"done": true})),
            _ => Ok(Value::Null),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// The subresources that are asked for.
struct Doors(Arc<Asked>, &'static str);

impl ApiService for Doors {
    fn group_version(&self) -> (&str, &str) {
        ("subresources.kubevirt.io", self.1)
    }

    fn resources(&self) -> Vec<Resource> {
        let put = |name: &str| Resource::new(name, "Options").verbs(&["update"]);
        [
            "virtualmachineinstances/freeze",
            "virtualmachineinstances/unfreeze",
            "virtualmachineinstances/pause",
            "virtualmachineinstances/unpause",
            "virtualmachines/stop",
        ]
        .into_iter()
        .map(put)
        .collect()
    }

    fn handler(&self) -> Handler {
        let asked = Arc::clone(&self.0);
        Handler::new(service_fn(move |request: Request<Body>| {
            let asked = Arc::clone(&asked);
            async move {
                let info = request.extensions().get::<RequestInfo>().cloned().unwrap();
                let refused = match info.subresource.as_str() {
                    "freeze" => *asked.no_freeze.lock().unwrap(),
                    _ => None,
                };
                asked.note(info.subresource);
                let mut response = Response::new(full(refused.unwrap_or_default()));
                if refused.is_some() {
                    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                }
                Ok::<_, BoxError>(response)
            }
        }))
    }
}

pub(crate) struct World {
    pub(crate) api: Requests,
    pub(crate) asked: Arc<Asked>,
    kernel: Arc<Kernel>,
    factory: ClientFactory,
    id: &'static str,
    _end: Vec<ShutdownTrigger>,
    running: Vec<JoinHandle<()>>,
    folder: tempfile::TempDir,
}

/// Runs a scenario in every place that there is.
pub(crate) async fn everywhere<F: Future<Output = ()>>(scenario: impl Fn(World) -> F) {
    for id in ["root", "2a8f0a9b1c3d4e5f"] {
        println!("in {id}");
        scenario(World::start(id).await).await;
    }
}

impl World {
    async fn start(id: &'static str) -> Self {
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
        let asked = Arc::new(Asked::default());
        kernel.serve_api(&Doors(Arc::clone(&asked), "v1")).unwrap();
        bootstrap::run(&kernel).await.unwrap();
        let for_users = Arc::clone(&kernel);
        let factory = ClientFactory::across_workspaces(move |user: &str| {
            let groups = fairway_kernel_controllers::groups(user)
                .into_iter()
                .chain(["system:authenticated"]);
            InProcess::new(Arc::clone(&for_users), UserInfo::new(user, groups))
        });
        if id != "root" {
            make_workspace(&kernel, id).await;
        }
        let mut world = Self {
            api: Requests::new(administrator(&kernel, id)),
            asked,
            kernel,
            factory,
            id,
            _end: Vec::new(),
            running: Vec::new(),
            folder,
        };
        world.controllers();
        let namespace = json!({"metadata": {"name": "shop"}});
        world.create("/api/v1/namespaces", namespace).await;
        world
    }

    fn controllers(&mut self) {
        let address = "192.0.2.7:6443".parse().unwrap();
        let service = std::net::Ipv4Addr::new(10, 96, 0, 1);
        let kernel = fairway_kernel_controllers::Options::new(self.factory.clone(), "", service, address);
        let volumes = fairway_machines_volumes::Options {
            clients: self.factory.clone(),
            node: Some(NODE.to_owned()),
            directory: self.folder.path().join("machines"),
            images: self.folder.path().join("images"),
            allowed_hosts: AllowedHosts::parse("loopback").unwrap(),
            keep_disks: None,
            is_control_plane: true,
            uploads: None,
            guests: Some(Arc::clone(&self.asked) as Arc<dyn Guests>),
            served: None,
        };
        let snapshots = fairway_machines_snapshots::Options {
            clients: self.factory.clone(),
            served: None,
        };
        let (end, shutdown) = Shutdown::new();
        self._end.push(end);
        let metrics = || Arc::new(Metrics::default());
        self.running.extend([
            tokio::spawn(fairway_kernel_controllers::run(
                kernel,
                Arc::default(),
                shutdown.clone(),
            )),
            tokio::spawn(fairway_machines_volumes::run(
                volumes,
                metrics(),
                shutdown.clone(),
            )),
            tokio::spawn(fairway_machines_snapshots::run(snapshots, metrics(), shutdown)),
        ]);
    }

    /// Ends the controllers at once, as a crash does, and starts them anew.
    pub(crate) fn crash(&mut self) {
        for task in self.running.drain(..) {
            task.abort();
        }
        self.controllers();
    }

    pub(crate) async fn create(&self, path: &str, object: Value) {
        assert!(
            self.api.create(path, &object).await.unwrap(),
            "{object} is there already"
        );
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.api.get(path).await.unwrap().unwrap_or_default()
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
                "{path}: not {what}: {}\nasked: {:?}",
                serde_json::to_string_pretty(&found).unwrap(),
                self.asked.all.lock().unwrap()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn gone(&self, path: &str) {
        self.until(path, "gone", Value::is_null).await;
    }

    /// A machine with a disk of its own that comes with it (`root`), one that is there already (`data`), and a seed.
    pub(crate) async fn machine(&self, name: &str, strategy: &str) {
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": format!("{name}-data")},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "4Mi"}}},
        });
        self.create(&all("persistentvolumeclaims"), claim).await;
        let template = json!({
            "metadata": {"name": format!("{name}-root")},
            "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "8Mi"}}}},
        });
        let machine = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
            "metadata": {"name": name, "labels": {"app": name, "team": "a"}, "annotations": {"note": "x"}},
            "spec": {
                "runStrategy": strategy, "dataVolumeTemplates": [template],
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {
                        "domain": {
                            "firmware": {"serial": "s1"},
                            "devices": {
                                "disks": [
                                    {"name": "root", "disk": {"bus": "virtio"}}, {"name": "data", "disk": {"bus": "virtio"}},
                                    {"name": "seed", "disk": {"bus": "virtio"}},
                                ],
                                "interfaces": [{"name": "default", "masquerade": {}, "macAddress": "02:00:00:00:00:01"}],
                            },
                            "memory": {"guest": "64Mi"},
                        },
                        "networks": [{"name": "default", "pod": {}}],
                        "volumes": [
                            {"name": "root", "dataVolume": {"name": format!("{name}-root")}},
                            {"name": "data", "persistentVolumeClaim": {"claimName": format!("{name}-data")}},
                            {"name": "seed", "cloudInitNoCloud": {"userData": "#cloud-config"}},
                        ],
                    },
                },
            },
        });
        self.create(&all("virtualmachines"), machine).await;
        self.disk_of_template(name).await;
    }

    /// What the engine does for a machine that is made.
    pub(crate) async fn disk_of_template(&self, name: &str) {
        let machine = self.get(&one("virtualmachines", name)).await;
        for template in machine["spec"]["dataVolumeTemplates"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let name = template["metadata"]["name"].as_str().unwrap();
            if self.get(&one("datavolumes", name)).await.is_null() {
                let mut made = template.clone();
                made["apiVersion"] = json!("cdi.kubevirt.io/v1beta1");
                made["kind"] = json!("DataVolume");
                self.create(&all("datavolumes"), made).await;
            }
            self.until(&one("datavolumes", name), "made", |it| {
                it["status"]["phase"] == "Succeeded"
            })
            .await;
        }
    }

    /// The machine runs; with an agent or without.
    pub(crate) async fn run(&self, name: &str, has_agent: bool) {
        let machine = self.get(&one("virtualmachines", name)).await;
        let mut spec = machine["spec"]["template"]["spec"].clone();
        spec["domain"]["machine"] = json!({"type": "q35"});
        let instance = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name}, "spec": spec,
        });
        self.create(&all("virtualmachineinstances"), instance).await;
        let mut status = json!({"phase": "Running", "nodeName": NODE});
        if has_agent {
            status["conditions"] = json!([{"type": "AgentConnected", "status": "True"}]);
        }
        let node = self
            .factory
            .clients("system:serviceaccount:kube-system:fairway-machines-node");
        let node = Requests::new(node.of(&WorkspaceId::parse(self.id).unwrap()));
        let path = one("virtualmachineinstances", name);
        node.merge(&path, &json!({"status": status}))
            .await
            .unwrap()
            .unwrap();
    }

    pub(crate) async fn stop(&self, name: &str) {
        let path = one("virtualmachineinstances", name);
        let found = self.get(&path).await;
        if !found["metadata"]["finalizers"].is_null() {
            let none = json!({"metadata": {"finalizers": null}});
            self.api.merge(&path, &none).await.unwrap();
        }
        self.api.delete(&path).await.unwrap();
        self.gone(&path).await;
    }

    pub(crate) async fn snapshot(&self, name: &str, of: &str) {
        let snapshot = json!({
            "apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineSnapshot", "metadata": {"name": name},
            "spec": {"source": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": of}},
        });
        self.create(&all("virtualmachinesnapshots"), snapshot).await;
    }

    pub(crate) async fn taken(&self, name: &str) -> Value {
        let path = one("virtualmachinesnapshots", name);
        self.until(&path, "taken", |it| it["status"]["phase"] == "Succeeded")
            .await
    }

    pub(crate) async fn restore(&self, name: &str, of: &str, to: &str, more: Value) {
        let mut spec = json!({
            "target": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": to},
            "virtualMachineSnapshotName": of,
        });
        for (field, value) in more.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        let restore = json!({
            "apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineRestore", "metadata": {"name": name},
            "spec": spec,
        });
        self.create(&all("virtualmachinerestores"), restore).await;
    }

    pub(crate) async fn restored(&self, name: &str) -> Value {
        let path = one("virtualmachinerestores", name);
        self.until(&path, "complete", |it| it["status"]["complete"] == true)
            .await
    }

    /// The directory of the disk behind a volume of a machine.
    pub(crate) async fn disk(&self, machine: &str, volume: &str) -> PathBuf {
        let machine = self.get(&one("virtualmachines", machine)).await;
        let volumes = machine["spec"]["template"]["spec"]["volumes"].as_array().unwrap();
        let found = volumes.iter().find(|it| it["name"] == volume).unwrap();
        let claim = found["dataVolume"]["name"]
            .as_str()
            .or(found["persistentVolumeClaim"]["claimName"].as_str());
        let path = one("persistentvolumeclaims", claim.unwrap());
        let bound = self
            .until(&path, "bound", |it| it["status"]["phase"] == "Bound")
            .await;
        let volume = bound["spec"]["volumeName"].as_str().unwrap();
        let volume = self.get(&format!("/api/v1/persistentvolumes/{volume}")).await;
        PathBuf::from(volume["spec"]["local"]["path"].as_str().unwrap())
    }

    /// What conditions say, as `TYPE=STATUS REASON`.
    pub(crate) fn conditions(object: &Value) -> Vec<String> {
        let all = object["status"]["conditions"].as_array();
        all.into_iter()
            .flatten()
            .map(|it| {
                let text = |field: &str| it[field].as_str().unwrap_or_default().to_owned();
                format!("{}={} {}", text("type"), text("status"), text("reason"))
            })
            .collect()
    }

    pub(crate) async fn end(self) {
        for task in &self.running {
            task.abort();
        }
        drop(self.kernel);
    }
}

/// Where kinds of the namespace are.
pub(crate) fn all(plural: &str) -> String {
    let group = match plural {
        "persistentvolumeclaims" => "api/v1",
        "datavolumes" => "apis/cdi.kubevirt.io/v1beta1",
        "volumesnapshots" => "apis/snapshot.storage.k8s.io/v1",
        "virtualmachineclones" => "apis/clone.kubevirt.io/v1beta1",
        "virtualmachines" | "virtualmachineinstances" => "apis/kubevirt.io/v1",
        _ => "apis/snapshot.kubevirt.io/v1beta1",
    };
    format!("/{group}/namespaces/shop/{plural}")
}

/// One of them.
pub(crate) fn one(plural: &str, name: &str) -> String {
    format!("{}/{name}", all(plural))
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
    let begun = Instant::now();
    while kernel.workspaces.resolve(id).is_none() {
        assert!(begun.elapsed() < PATIENCE, "the workspace is not known");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn administrator(kernel: &Arc<Kernel>, id: &str) -> Client {
    let admin = UserInfo::new("admin", ["system:masters", "system:authenticated"]);
    let reach = Reach::One(WorkspaceId::parse(id).unwrap());
    let service = Within::new(InProcess::new(Arc::clone(kernel), admin), &reach);
    Client::new(service, "default")
}
