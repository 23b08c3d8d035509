//! A kernel in this process with its controllers, and an administrator's client.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use fairway_controller::clients::Within;
use fairway_controller::{ClientFactory, Metrics, Reach, Shutdown, ShutdownTrigger, WorkspaceId};
use fairway_kernel_apiserver::authn::Peer;
use fairway_kernel_apiserver::authn::token::Tokens;
use fairway_kernel_apiserver::client::InProcess;
use fairway_kernel_apiserver::key::{KindPrefix, ObjectSuffix};
use fairway_kernel_apiserver::{Kernel, KernelOptions, bootstrap, object, service};
use fairway_kernel_authz::UserInfo;
use fairway_kernel_controllers::{CertificateSigner, Options, SigningJob, groups, run};
use fairway_kernel_store::value::{self, KeyRing};
use fairway_kernel_store::{KeyRange, MemoryStore, Op, Range, Txn};
use http::Request;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::client::Body;
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tower::Service;

/// What nothing here should take, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const ROOT_CA: &str = "-----BEGIN CERTIFICATE-----\n";

/// Signs with any key at hand, and remembers what was asked for.
#[derive(Default)]
pub(crate) struct FakeSigner {
    pub(crate) jobs: Mutex<Vec<SigningJob>>,
    pub(crate) broken: Mutex<bool>,
}

impl CertificateSigner for FakeSigner {
    fn sign(&self, job: &SigningJob) -> Result<String, String> {
        self.jobs.lock().unwrap().push(job.clone());
        if *self.broken.lock().unwrap() {
            return Err("the authority is on holiday".to_owned());
        }
        let key = rcgen::KeyPair::generate().unwrap();
        Ok(rcgen::CertificateParams::default()
            .self_signed(&key)
            .unwrap()
            .pem())
    }
}

/// A workspace as its administrator sees it.
pub(crate) struct View {
    pub(crate) client: Client,
}

/// The kernel with its controllers. By itself it is seen as its root workspace.
pub(crate) struct Cluster {
    root: View,
    pub(crate) signer: Arc<FakeSigner>,
    pub(crate) root_ca: watch::Sender<Arc<str>>,
    kernel: Arc<Kernel>,
    metrics: Arc<Metrics>,
    watches: Watches,
    event_ttl: Duration,
    running: Option<(ShutdownTrigger, JoinHandle<()>)>,
    _keys: tempfile::TempDir,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        Self::with_event_ttl(Duration::from_secs(3600)).await
    }

    pub(crate) async fn with_event_ttl(event_ttl: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys = KeyRing::load_or_create(&folder.path().join("keys")).unwrap();
        let kernel = Kernel::start(KernelOptions {
            store: Arc::new(MemoryStore::new()),
            keys: Arc::new(keys),
            token_key: Tokens::generate_key().unwrap(),
            issuer: "https://test".to_owned(),
            jwks_uri: "https://issuer/jwks".to_owned(),
            audit_log: None,
            kinds: Vec::new(),
        })
        .await
        .unwrap();
        bootstrap::run(&kernel).await.unwrap();
        let admin = UserInfo::new("admin", ["system:masters", "system:authenticated"]);
        let client = Client::new(InProcess::new(Arc::clone(&kernel), admin), "default");
        let mut cluster = Self {
            root: View { client },
            watches: Watches::default(),
            signer: Arc::default(),
            root_ca: watch::channel(ROOT_CA.into()).0,
            kernel,
            metrics: Arc::default(),
            event_ttl,
            running: None,
            _keys: folder,
        };
        cluster.start_controllers();
        cluster
    }

    /// Clients of users of the process.
    pub(crate) fn clients(&self) -> ClientFactory {
        let kernel = Arc::clone(&self.kernel);
        let watches = Arc::clone(&self.watches);
        ClientFactory::across_workspaces(move |user: &str| {
            let groups = groups(user).into_iter().chain(["system:authenticated"]);
            Counting {
                service: InProcess::new(Arc::clone(&kernel), UserInfo::new(user, groups)),
                watches: Arc::clone(&watches),
            }
        })
    }

    /// The whole API as a user of the process reaches it, paths from the root.
    pub(crate) fn inside(&self, user: &str) -> Client {
        let groups = groups(user).into_iter().chain(["system:authenticated"]);
        let service = Counting {
            service: InProcess::new(Arc::clone(&self.kernel), UserInfo::new(user, groups)),
            watches: Arc::clone(&self.watches),
        };
        Client::new(service, "default")
    }

    pub(crate) fn start_controllers(&mut self) {
        let clients = self.clients();
        let address = "192.0.2.7:6443".parse().unwrap();
        let options = Options {
            event_ttl: self.event_ttl,
            signer: Some(Arc::clone(&self.signer) as _),
            root_ca: self.root_ca.subscribe(),
            ..Options::new(clients, ROOT_CA, Ipv4Addr::new(10, 96, 0, 1), address)
        };
        let (end, shutdown) = Shutdown::new();
        self.running = Some((
            end,
            tokio::spawn(run(options, Arc::clone(&self.metrics), shutdown)),
        ));
    }

    /// Ends the controllers; they must do so by themselves.
    pub(crate) async fn stop_controllers(&mut self) {
        let Some((end, running)) = self.running.take() else {
            return;
        };
        end.shut_down();
        tokio::time::timeout(PATIENCE, running)
            .await
            .expect("the controllers do not end")
            .unwrap();
    }

    /// The end of a test: no reconcile may have failed.
    pub(crate) async fn stop(mut self) {
        self.stop_controllers().await;
        let figures = self.metrics.render();
        let failed = figures
            .lines()
            .filter(|l| l.contains("result=\"error\"") && !l.ends_with(" 0"));
        assert_eq!(failed.collect::<Vec<_>>(), [""; 0], "reconciles failed");
    }

    /// Makes a workspace below the root, as its administrator sees it.
    pub(crate) async fn workspace(&self, id: &str) -> View {
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
        self.kernel.storage.store.txn(txn).await.unwrap();
        eventually("the workspace is known", || async {
            self.kernel.workspaces.resolve(id).is_some()
        })
        .await;
        let admin = UserInfo::new("admin", ["system:masters", "system:authenticated"]);
        let service = InProcess::new(Arc::clone(&self.kernel), admin);
        let reach = Reach::One(WorkspaceId::parse(id).unwrap());
        View {
            client: Client::new(Within::new(service, &reach), "default"),
        }
    }

    /// How often each watch of the controllers was begun, by its path.
    pub(crate) fn watches(&self) -> BTreeMap<String, usize> {
        self.watches.lock().unwrap().clone()
    }

    /// The same, when no more are begun.
    pub(crate) async fn settled_watches(&self) -> BTreeMap<String, usize> {
        let mut before = self.watches();
        loop {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let now = self.watches();
            if now == before && now.len() > 40 {
                return now;
            }
            before = now;
        }
    }

    /// Who a token of the root workspace stands for, if it is accepted.
    pub(crate) fn user_of(&self, token: &str) -> Option<String> {
        self.user_in("root", token)
    }

    /// Who a token stands for in a workspace, if it is accepted.
    pub(crate) fn user_in(&self, workspace: &str, token: &str) -> Option<String> {
        let verified = self
            .kernel
            .tokens
            .authenticate(&self.kernel, workspace, token, &[])
            .ok()?;
        Some(verified.user.name)
    }

    /// How many keys the store has below this prefix.
    pub(crate) async fn stored_below(&self, prefix: &str) -> usize {
        let range = Range {
            keys: KeyRange::prefix(prefix.as_bytes()),
            revision: None,
            limit: 0,
            keys_only: true,
            count_only: true,
        };
        self.kernel.storage.store.range(range).await.unwrap().count
    }

    /// Requests for certificates as somebody else sees them.
    pub(crate) fn as_user(&self, name: &str, groups: &[&str]) -> Api<DynamicObject> {
        let user = UserInfo::new(name, groups.iter().map(|g| (*g).to_owned()));
        let client = Client::new(InProcess::new(Arc::clone(&self.kernel), user), "default");
        let names = GroupVersionKind::gvk("certificates.k8s.io", "v1", "CertificateSigningRequest");
        Api::all_with(client, &ApiResource::from_gvk(&names))
    }
}

impl View {
    pub(crate) fn api(
        &self,
        api_version: &str,
        kind: &str,
        plural: &str,
        namespace: &str,
    ) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let names = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&names, plural);
        if namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        }
    }

    pub(crate) fn requests(&self) -> Api<DynamicObject> {
        self.api(
            "certificates.k8s.io/v1",
            "CertificateSigningRequest",
            "certificatesigningrequests",
            "",
        )
    }

    pub(crate) fn namespaces(&self) -> Api<DynamicObject> {
        self.api("v1", "Namespace", "namespaces", "")
    }

    pub(crate) fn config_maps(&self, namespace: &str) -> Api<DynamicObject> {
        self.api("v1", "ConfigMap", "configmaps", namespace)
    }

    pub(crate) async fn namespace(&self, name: &str) {
        create(&self.namespaces(), json!({"metadata": {"name": name}})).await;
    }
}

impl Deref for Cluster {
    type Target = View;

    fn deref(&self) -> &View {
        &self.root
    }
}

type Watches = Arc<Mutex<BTreeMap<String, usize>>>;

/// A service that counts the watches that go through it.
#[derive(Clone)]
struct Counting {
    service: InProcess,
    watches: Watches,
}

impl Service<Request<Body>> for Counting {
    type Response = <InProcess as Service<Request<Body>>>::Response;
    type Error = Infallible;
    type Future = <InProcess as Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request<Body>>::poll_ready(&mut self.service, context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch=true"))
        {
            let path = request.uri().path().to_owned();
            *self.watches.lock().unwrap().entry(path).or_default() += 1;
        }
        self.service.call(request)
    }
}

pub(crate) async fn create(api: &Api<DynamicObject>, object: Value) -> DynamicObject {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap()
}

/// A ConfigMap that names owners; `!` in front of an owner's name makes the reference block.
pub(crate) fn owned(name: &str, owners: &[(&DynamicObject, bool)]) -> Value {
    let references: Vec<Value> = owners
        .iter()
        .map(|(owner, blocking)| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "name": owner.metadata.name, "uid": owner.metadata.uid,
                "blockOwnerDeletion": blocking,
            })
        })
        .collect();
    json!({"metadata": {"name": name, "ownerReferences": references}})
}

/// Waits until the condition holds, and says how long it took.
pub(crate) async fn eventually<F: Future<Output = bool>>(
    what: &str,
    mut holds: impl FnMut() -> F,
) -> Duration {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    begun.elapsed()
}

pub(crate) async fn gone(api: &Api<DynamicObject>, name: &str) -> Duration {
    eventually(&format!("{name} goes"), || async {
        api.get_opt(name).await.unwrap().is_none()
    })
    .await
}

pub(crate) async fn there(api: &Api<DynamicObject>, name: &str) -> Duration {
    eventually(&format!("{name} comes"), || async {
        api.get_opt(name).await.unwrap().is_some()
    })
    .await
}

/// Long enough for the controllers to do what they should not.
pub(crate) async fn a_while() {
    tokio::time::sleep(Duration::from_millis(300)).await;
}

/// The kernel as somebody outside the process reaches it: nobody is let in because he is part of it.
#[derive(Clone)]
struct Outside {
    kernel: Arc<Kernel>,
    peer: Arc<Peer>,
}

impl Service<Request<Body>> for Outside {
    type Response = <InProcess as Service<Request<Body>>>::Response;
    type Error = Infallible;
    type Future = <InProcess as Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { kernel, peer } = self.clone();
        Box::pin(async move {
            let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
            Ok(service::serve(&kernel, request, &peer).await)
        })
    }
}

impl Cluster {
    /// A workspace that exists, as a user sees it from outside.
    pub(crate) fn seen_by(&self, user: &str, groups: &[&str], workspace: &str) -> View {
        let user = UserInfo::new(user, groups.iter().map(|g| (*g).to_owned()));
        let service = Outside {
            kernel: Arc::clone(&self.kernel),
            peer: Arc::new(Peer::known(user)),
        };
        let reach = Reach::One(WorkspaceId::parse(workspace).unwrap());
        View {
            client: Client::new(Within::new(service, &reach), "default"),
        }
    }

    /// The whole server from outside: paths are whole, with their workspaces and services.
    pub(crate) fn everything(&self, user: &str, groups: &[&str]) -> Client {
        let user = UserInfo::new(user, groups.iter().map(|g| (*g).to_owned()));
        let service = Outside {
            kernel: Arc::clone(&self.kernel),
            peer: Arc::new(Peer::known(user)),
        };
        Client::new(service, "default")
    }

    /// A workspace that exists, as an administrator of everything sees it.
    pub(crate) fn at(&self, workspace: &str) -> View {
        self.seen_by("admin", &["system:masters"], workspace)
    }
}

impl Cluster {
    /// The keys that the store has in a workspace.
    pub(crate) async fn stored_in(&self, workspace: &str) -> Vec<String> {
        let range = Range {
            keys: KeyRange::prefix(b"/"),
            revision: None,
            limit: 0,
            keys_only: true,
            count_only: false,
        };
        let all = self.kernel.storage.store.range(range).await.unwrap();
        let keys = all
            .kvs
            .iter()
            .map(|item| String::from_utf8_lossy(&item.key).into_owned());
        keys.filter(|key| key.contains(&format!("/{workspace}/")))
            .collect()
    }
}
