//! A world: an API with the subresources, an administrator, and people of a workspace.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use fairway_controller::clients::Within;
use fairway_controller::{ClientFactory, Reach, Requests, WorkspaceId};
use fairway_kernel_apiserver::authn::token::Tokens;
use fairway_kernel_apiserver::client::InProcess;
use fairway_kernel_apiserver::custom::ProvidedKind;
use fairway_kernel_apiserver::http::listener;
use fairway_kernel_apiserver::key::{KindPrefix, ObjectSuffix};
use fairway_kernel_apiserver::{Kernel, KernelOptions, bootstrap, object, pki};
use fairway_kernel_authz::UserInfo;
use fairway_kernel_store::value::{self, KeyRing};
use fairway_kernel_store::{MemoryStore, Op, Txn};
use fairway_machines_subresources::Service;
use http::{HeaderValue, Request};
use kube::Client;
use kube::client::Body;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::stand_in::StandIn;

pub(crate) const MASTERS: &[&str] = &["system:masters", "system:authenticated"];
pub(crate) const SUBRESOURCES: &str = "/apis/subresources.kubevirt.io/v1/namespaces/vms";
const NODE_USER: &str = "system:serviceaccount:kube-system:fairway-machines-node";

pub(crate) type Socket = WebSocketStream<TlsStream<TcpStream>>;

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) kind: String,
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    /// The code, and the message of a `Status`.
    pub(crate) fn line(&self) -> String {
        let said = self.json();
        match said["message"].as_str() {
            Some(message) => format!("{} {}", self.code, message),
            None => format!("{} {}", self.code, String::from_utf8_lossy(&self.bytes)),
        }
    }
}

pub(crate) struct World {
    pub(crate) machines: Arc<StandIn>,
    pub(crate) id: &'static str,
    /// The administrator.
    pub(crate) api: Requests,
    /// Who says how instances are.
    pub(crate) node: Requests,
    kernel: Arc<Kernel>,
    address: SocketAddr,
    authority: pki::Pair,
    folder: tempfile::TempDir,
}

/// Runs a scenario in the root workspace and in another one.
pub(crate) async fn everywhere<F: Future<Output = ()>>(scenario: impl Fn(Arc<World>) -> F) {
    for id in ["root", "2a8f0a9b1c3d4e5f"] {
        println!("in {id}");
        let world = Arc::new(World::start(id).await);
        tokio::time::timeout(Duration::from_secs(120), scenario(world))
            .await
            .expect("the scenario takes too long");
    }
}

impl World {
    pub(crate) async fn start(id: &'static str) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
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
        if id != "root" {
            make_workspace(&kernel, id).await;
        }
        let for_users = Arc::clone(&kernel);
        let factory = ClientFactory::across_workspaces(move |user: &str| {
            let groups = fairway_kernel_controllers::groups(user)
                .into_iter()
                .chain(["system:authenticated"]);
            InProcess::new(Arc::clone(&for_users), UserInfo::new(user, groups))
        });
        let machines = Arc::new(StandIn::default());
        for service in Service::versions(&factory, machines.clone(), machines.clone()) {
            kernel.serve_api(&service).unwrap();
        }
        let workspace = WorkspaceId::parse(id).unwrap();
        let (address, authority) = listen(&kernel).await;
        let world = Self {
            machines,
            id,
            api: Requests::new(client(&kernel, id, "admin", MASTERS)),
            node: Requests::new(factory.clients(NODE_USER).of(&workspace)),
            kernel,
            address,
            authority,
            folder,
        };
        world
            .create("/api/v1/namespaces", json!({"metadata": {"name": "vms"}}))
            .await;
        world
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) async fn create(&self, path: &str, object: Value) {
        assert!(self.api.create(path, &object).await.unwrap(), "{path}");
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.api
            .get(path)
            .await
            .unwrap()
            .unwrap_or_else(|| panic!("{path} is not there"))
    }

    /// Asks for something as somebody.
    pub(crate) async fn ask_as(
        &self,
        (user, groups): (&str, &[&str]),
        method: &str,
        path: &str,
        body: &str,
    ) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(Body::from(body.as_bytes().to_vec()))
            .unwrap();
        let response = client(&self.kernel, self.id, user, groups)
            .send(request)
            .await
            .unwrap();
        let kind = response.headers().get("content-type");
        Answer {
            code: response.status().as_u16(),
            kind: kind.map(|it| it.to_str().unwrap().to_owned()).unwrap_or_default(),
            bytes: response.into_body().collect_bytes().await.unwrap().to_vec(),
        }
    }

    /// Asks for a subresource as the administrator.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        let path = format!("{SUBRESOURCES}/{path}");
        self.ask_as(("admin", MASTERS), method, &path, body).await
    }

    /// Lets somebody do what a role says in the namespace.
    pub(crate) async fn bind(&self, user: &str, role: &str) {
        let group = "rbac.authorization.k8s.io";
        self.create(
            &format!("/apis/{group}/v1/namespaces/vms/rolebindings"),
            json!({
                "metadata": {"name": format!("{user}-{}", role.replace(':', "-"))},
                "subjects": [{"kind": "User", "name": user, "apiGroup": group}],
                "roleRef": {"kind": "ClusterRole", "name": role, "apiGroup": group},
            }),
        )
        .await;
    }

    fn prefix(&self) -> String {
        match self.id {
            "root" => String::new(),
            id => format!("/clusters/{id}"),
        }
    }

    fn identity(&self, user: &str, groups: &[&str]) -> pki::Pair {
        let authority = pki::Authority::load(&self.authority).unwrap();
        authority
            .client(user, groups, 3_600, self.kernel.clock.unix())
            .unwrap()
    }

    /// Opens a WebSocket over TLS; else the answer.
    pub(crate) async fn open_as(
        &self,
        (user, groups): (&str, &[&str]),
        path: &str,
    ) -> Result<Socket, Answer> {
        let pair = self.identity(user, groups);
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.authority.certificate.as_bytes()).unwrap())
            .unwrap();
        let config = rustls::ClientConfig::builder()
            .with_root_certificates(roots)
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap(),
            )
            .unwrap();
        let stream = TcpStream::connect(self.address).await.unwrap();
        let stream = tokio_rustls::TlsConnector::from(Arc::new(config))
            .connect(ServerName::try_from("localhost").unwrap(), stream)
            .await
            .unwrap();
        let url = format!(
            "wss://localhost:{}{}{SUBRESOURCES}/{path}",
            self.address.port(),
            self.prefix()
        );
        let mut request = url.into_client_request().unwrap();
        request.headers_mut().insert(
            "sec-websocket-protocol",
            HeaderValue::from_static("plain.kubevirt.io"),
        );
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((socket, response)) => {
                assert_eq!(response.headers()["sec-websocket-protocol"], "plain.kubevirt.io");
                Ok(socket)
            }
            Err(Error::Http(response)) => Err(Answer {
                code: response.status().as_u16(),
                kind: response.headers()["content-type"].to_str().unwrap().to_owned(),
                bytes: response.into_body().unwrap_or_default(),
            }),
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn open(&self, path: &str) -> Result<Socket, Answer> {
        self.open_as(("admin", MASTERS), path).await
    }

    /// A kubeconfig of the administrator for this workspace.
    pub(crate) fn kubeconfig(&self) -> std::path::PathBuf {
        let pair = self.identity("admin", &["system:masters"]);
        let write = |name: &str, content: &str| {
            let path = self.folder().join(name);
            std::fs::write(&path, content).unwrap();
            path
        };
        let authority = write("ca.crt", &self.authority.certificate);
        let (certificate, key) = (
            write("admin.crt", &pair.certificate),
            write("admin.key", &pair.key),
        );
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": format!("https://localhost:{}{}", self.address.port(), self.prefix()),
                "certificate-authority": authority,
            }}],
            "users": [{"name": "admin", "user": {"client-certificate": certificate, "client-key": key}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin", "namespace": "vms"}}],
        });
        write("kubeconfig", &config.to_string())
    }
}

fn client(kernel: &Arc<Kernel>, id: &str, user: &str, groups: &[&str]) -> Client {
    let user = UserInfo::new(user, groups.iter().copied());
    let reach = Reach::One(WorkspaceId::parse(id).unwrap());
    let service = Within::new(InProcess::new(Arc::clone(kernel), user), &reach);
    Client::new(service, "default")
}

async fn listen(kernel: &Arc<Kernel>) -> (SocketAddr, pki::Pair) {
    let now = kernel.clock.unix();
    let authority = pki::new_authority(now).unwrap();
    let serving = pki::Authority::load(&authority)
        .unwrap()
        .serving(&["127.0.0.1".parse().unwrap()], &["localhost"], 3_600, now)
        .unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let tls = listener::tls(&serving, &authority.certificate).unwrap();
    tokio::spawn(listener::serve(
        Arc::clone(kernel),
        socket,
        Arc::new(ArcSwap::from(tls)),
    ));
    (address, authority)
}

fn provided() -> Vec<ProvidedKind> {
    let all = fairway_api::machine_definitions().into_iter().map(Arc::new);
    all.map(|definition| {
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
    while kernel.workspaces.resolve(id).is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

impl World {
    /// Lets somebody into the workspace.
    pub(crate) async fn let_in(&self, user: &str) {
        let group = "rbac.authorization.k8s.io";
        let name = format!("enter-{user}");
        self.create(
            &format!("/apis/{group}/v1/clusterroles"),
            json!({"metadata": {"name": name}, "rules": [{"verbs": ["access"], "nonResourceURLs": ["/"]}]}),
        )
        .await;
        self.create(
            &format!("/apis/{group}/v1/clusterrolebindings"),
            json!({
                "metadata": {"name": name},
                "subjects": [{"kind": "User", "name": user, "apiGroup": group}],
                "roleRef": {"kind": "ClusterRole", "name": name, "apiGroup": group},
            }),
        )
        .await;
    }
}
