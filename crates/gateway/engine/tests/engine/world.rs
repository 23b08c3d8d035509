//! An API with the controllers of gateways on it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fairway_controller::{ClientFactory, Requests, Shutdown, ShutdownTrigger};
use fairway_gateway_engine::{DataPlane, Issuer, Options, Realms, Settings};
use fairway_gateway_routes::table::Certificate;
use fairway_kernel_apiserver::authn::token::Tokens;
use fairway_kernel_apiserver::client::InProcess;
use fairway_kernel_apiserver::custom::ProvidedKind;
use fairway_kernel_apiserver::{Kernel, KernelOptions, bootstrap};
use fairway_kernel_authz::UserInfo;
use fairway_kernel_store::MemoryStore;
use fairway_kernel_store::value::KeyRing;
use fairway_outbound::{AllowedHosts, Outbound};
use kube::Client;
use serde_json::Value;

use crate::plane::Remembering;

/// What nothing here should take, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct World {
    pub(crate) api: Requests,
    pub(crate) plane: Arc<Remembering>,
    pub(crate) people: Arc<People>,
    _end: ShutdownTrigger,
    _folder: tempfile::TempDir,
}

/// Nobody asks for certificates here.
struct Nobody;

impl Issuer for Nobody {
    fn issue(&self, _: &[String], _: i64) -> Result<Certificate, String> {
        Err("there is no authority here".to_owned())
    }
}

/// A realm of which is known who may not sign in.
#[derive(Default)]
pub(crate) struct People {
    out: Mutex<Vec<String>>,
    changes: tokio::sync::watch::Sender<u64>,
}

impl People {
    pub(crate) fn set_out(&self, users: &[&str]) {
        *self.out.lock().unwrap() = users.iter().map(ToString::to_string).collect();
        self.changes.send_modify(|times| *times += 1);
    }
}

impl Realms for People {
    fn document(&self, _: &str) -> Option<Value> {
        None
    }

    fn lapsed(&self, _: &Value, _: i64) -> Option<&'static str> {
        None
    }

    fn is_out(&self, user: &str) -> bool {
        self.out.lock().unwrap().iter().any(|it| it == user)
    }

    fn comings_and_goings(&self) -> Option<tokio::sync::watch::Receiver<u64>> {
        Some(self.changes.subscribe())
    }
}

/// Whether a condition of an object has a status.
pub(crate) fn has(object: &Value, kind: &str, status: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == kind && it["status"] == status)
}

impl World {
    pub(crate) async fn start() -> Self {
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
        let clients = ClientFactory::across_workspaces(move |user: &str| {
            let groups = fairway_kernel_controllers::groups(user);
            InProcess::new(Arc::clone(&for_users), UserInfo::new(user, groups))
        });
        let plane = Arc::new(Remembering::default());
        let people = Arc::new(People::default());
        let (end, shutdown) = Shutdown::new();
        let options = Options {
            clients,
            plane: Arc::clone(&plane) as Arc<dyn DataPlane>,
            outbound: Arc::new(Outbound::new(AllowedHosts::parse("loopback").unwrap())),
            realms: Arc::clone(&people) as Arc<dyn Realms>,
            issuer: Arc::new(Nobody),
            names: tokio::sync::watch::channel(Arc::default()).0,
            settings: Settings::default(),
        };
        let (running, _) = fairway_gateway_engine::start(options, Arc::default(), shutdown);
        tokio::spawn(running);
        let administrator = UserInfo::new("admin", ["system:masters"]);
        let api = Requests::new(Client::new(InProcess::new(kernel, administrator), "default"));
        Self {
            api,
            plane,
            people,
            _end: end,
            _folder: folder,
        }
    }

    pub(crate) async fn create(&self, path: &str, object: &Value) {
        assert!(
            self.api.create(path, object).await.unwrap(),
            "{object} is there already"
        );
    }

    /// Waits until something is there.
    pub(crate) async fn until<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = look().await {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn until_condition(&self, path: &str, kind: &str, status: &str) -> Value {
        let what = format!("{path} to be {kind}={status}");
        self.until(&what, async || {
            let object = self.api.get(path).await.unwrap()?;
            let generation = &object["metadata"]["generation"];
            let conditions = object["status"]["conditions"].as_array()?.iter();
            let of_now = conditions
                .clone()
                .all(|it| it["observedGeneration"] == *generation);
            (of_now && has(&object, kind, status)).then_some(object)
        })
        .await
    }
}

fn provided() -> Vec<ProvidedKind> {
    let served = |definition: fairway_api::Definition| {
        let definition = Arc::new(definition);
        let (schema, whole) = (Arc::clone(&definition), Arc::clone(&definition));
        ProvidedKind {
            head: definition.head(),
            schema: Arc::new(move || schema.schema()),
            definition: Arc::new(move || whole.crd()),
            fingerprint: definition.fingerprint(),
            sealed: definition.kind().sealed,
            domain: fairway_gateway_engine::admission::of(&definition),
        }
    };
    fairway_api::gateway_definitions()
        .into_iter()
        .map(served)
        .collect()
}
