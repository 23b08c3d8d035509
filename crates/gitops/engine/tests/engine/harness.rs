//! A world: an API with the engine on it, a repository, and an administrator's view of one workspace.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairway_controller::clients::Within;
use fairway_controller::{ClientFactory, Metrics, Reach, Requests, Shutdown, ShutdownTrigger, WorkspaceId};
use fairway_gitops_engine::sources::git::GitSources;
use fairway_gitops_engine::sources::plugins::Plugins;
use fairway_gitops_engine::sources::{AllSources, Repository};
use fairway_gitops_engine::{Answers, Options, Plans, run};
use fairway_gitops_git::Git;
use fairway_kernel_apiserver::authn::token::Tokens;
use fairway_kernel_apiserver::client::InProcess;
use fairway_kernel_apiserver::custom::ProvidedKind;
use fairway_kernel_apiserver::key::{KindPrefix, ObjectSuffix};
use fairway_kernel_apiserver::{Kernel, KernelOptions, bootstrap, object};
use fairway_kernel_authz::UserInfo;
use fairway_kernel_store::value::{self, KeyRing};
use fairway_kernel_store::{MemoryStore, Op, Txn};
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::domain::answering;
use crate::sources::{HostOfPulls, Memory};

/// What nothing here should take, even on a busy machine. On a cluster, upstream's garbage collector looks only every half a
/// minute for kinds that are new, and before that it lets none of their objects go that waits for its dependents.
fn patience() -> Duration {
    match std::env::var_os(KUBECONFIG) {
        None => Duration::from_secs(30),
        Some(_) => Duration::from_secs(90),
    }
}

const KUBECONFIG: &str = "FAIRWAY_ENGINE_KUBECONFIG";
pub(crate) const REPO: &str = "https://git.example.com/shop/web.git";

/// Where a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Root,
    Workspace,
}

impl At {
    /// The id of the workspace.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Workspace => "2a8f0a9b1c3d4e5f",
        }
    }
}

/// Runs a scenario in every place that there is.
pub(crate) async fn everywhere<F: Future<Output = ()>>(scenario: impl Fn(World) -> F) {
    if let Ok(path) = std::env::var(KUBECONFIG) {
        scenario(World::on_cluster(&path).await).await;
        return;
    }
    for at in [At::Root, At::Workspace] {
        println!("in {at:?}");
        scenario(World::start(at).await).await;
    }
}

pub(crate) struct World {
    pub(crate) api: Requests,
    pub(crate) sources: Arc<Memory>,
    pub(crate) pulls: Arc<HostOfPulls>,
    pub(crate) answers: Answers,
    pub(crate) plans: Plans,
    id: &'static str,
    factory: ClientFactory,
    metrics: Arc<Metrics>,
    running: Option<(ShutdownTrigger, JoinHandle<()>)>,
    kept: Option<(ShutdownTrigger, tempfile::TempDir)>,
    /// Sources that fetch, where a scenario wants them, and where they keep what they fetched.
    real: Option<(Arc<AllSources>, tempfile::TempDir)>,
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
        bootstrap::run(&kernel).await.unwrap();
        let for_users = Arc::clone(&kernel);
        let factory = ClientFactory::across_workspaces(move |user: &str| {
            let groups = fairway_kernel_controllers::groups(user)
                .into_iter()
                .chain(["system:authenticated"]);
            answering(InProcess::new(
                Arc::clone(&for_users),
                UserInfo::new(user, groups),
            ))
        });
        let end = start_controllers(factory.clone());
        let id = at.id();
        if at == At::Workspace {
            make_workspace(&kernel, id).await;
        }
        let mut world = Self {
            api: administrator(&kernel, id),
            sources: Memory::new(),
            pulls: Arc::default(),
            answers: Answers::default(),
            plans: Plans::default(),
            id,
            factory,
            metrics: Arc::default(),
            running: None,
            kept: Some((end, folder)),
            real: None,
        };
        world.prepare(false).await;
        world.start_engine();
        world
    }

    /// The world of a kubeconfig, whose cluster has Argo CD's definitions or lets us make ours.
    pub(crate) async fn on_cluster(path: &str) -> Self {
        let kubeconfig = kube::config::Kubeconfig::read_from(path).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default())
            .await
            .unwrap();
        let client = Client::try_from(config).unwrap();
        let for_users = client.clone();
        let mut world = Self {
            api: Requests::new(client),
            sources: Memory::new(),
            pulls: Arc::default(),
            answers: Answers::default(),
            plans: Plans::default(),
            id: "root",
            factory: ClientFactory::plain(move |_| for_users.clone()),
            metrics: Arc::default(),
            running: None,
            kept: None,
            real: None,
        };
        world.clean().await;
        world.prepare(true).await;
        world.start_engine();
        world
    }

    /// Removes what an earlier scenario left, and waits until it is gone: what carries the mark of an application is that of
    /// the next one with its name.
    async fn clean(&self) {
        // Who would bring the rest back goes first; and namespaces before their kinds go.
        for all in [
            "/apis/argoproj.io/v1alpha1/namespaces/argocd/applicationsets",
            "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications",
            "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects",
            "/api/v1/namespaces/argocd/configmaps",
            "/api/v1/namespaces/argocd/secrets",
            "/api/v1/namespaces/argocd/events",
            "/api/v1/namespaces/shop/configmaps",
            "/api/v1/namespaces/shop/services",
            "/api/v1/namespaces/shop/serviceaccounts",
            "/apis/apps/v1/namespaces/shop/deployments",
            "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/roles",
            "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings",
            "/apis/example.com/v1alpha1/namespaces/shop/tasks",
            "/api/v1/namespaces",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        ] {
            self.remove_all(all).await;
        }
    }

    /// Removes all objects of a collection that scenarios make. What is not served has none.
    async fn remove_all(&self, all: &str) {
        let left = || async {
            let listed = self.api.list(all).await.unwrap_or_default();
            let names = listed
                .iter()
                .filter_map(|object| object["metadata"]["name"].as_str());
            names
                .filter(|name| !is_standing(name))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        for name in left().await {
            let path = format!("{all}/{name}");
            let _ = self
                .api
                .merge(&path, &json!({"metadata": {"finalizers": null}}))
                .await;
            let _ = self.api.delete(&path).await;
        }
        eventually(&format!("{all} are removed"), || async {
            left().await.is_empty()
        })
        .await;
    }

    /// A cluster of a kubeconfig may lack what a kernel here is handed.
    async fn prepare(&mut self, defines: bool) {
        if defines {
            for (plural, kind) in [
                ("applications", "Application"),
                ("applicationsets", "ApplicationSet"),
                ("appprojects", "AppProject"),
            ] {
                self.define("argoproj.io", plural, kind).await;
            }
        }
        for namespace in ["argocd", "shop"] {
            self.create("/api/v1/namespaces", json!({"metadata": {"name": namespace}}))
                .await;
        }
    }

    /// Defines a kind whose objects may have any fields.
    pub(crate) async fn define(&self, group: &str, plural: &str, kind: &str) {
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
                "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": any}}],
            },
        });
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        self.api.create(path, &crd).await.unwrap();
        let objects = format!("/apis/{group}/v1alpha1/{plural}");
        eventually(&format!("{plural} are served"), || async {
            self.api.list(&objects).await.is_ok()
        })
        .await;
    }

    pub(crate) fn start_engine(&mut self) {
        let options = Options {
            clients: self.factory.clone(),
            sources: match &self.real {
                Some((real, _)) => real.clone(),
                None => self.sources.clone(),
            },
            urls: vec!["https://fairway.example.com:6443".to_owned()],
            pulls: Some(self.pulls.clone()),
            pull_followers: Default::default(),
            workers: 4,
            served: None,
            answers: self.answers.clone(),
            plans: self.plans.clone(),
        };
        let (end, shutdown) = Shutdown::new();
        let task = tokio::spawn(run(options, Arc::clone(&self.metrics), shutdown));
        self.running = Some((end, task));
    }

    /// The workspace of the scenario.
    pub(crate) fn workspace(&self) -> WorkspaceId {
        WorkspaceId::parse(self.id).unwrap()
    }

    /// From now on sources are those of a server, except that repositories of `hosted` are read where they are.
    pub(crate) async fn use_real_sources(
        &mut self,
        hosted: impl Fn(&Repository) -> Option<PathBuf> + Send + Sync + 'static,
    ) {
        self.use_sources_with_plugins(None, hosted).await;
    }

    /// Looks at repositories elsewhere, before it is time to.
    pub(crate) async fn look_elsewhere(&self) {
        self.real.as_ref().unwrap().0.look().await;
    }

    /// The same, with plugins.
    pub(crate) async fn use_sources_with_plugins(
        &mut self,
        plugins: Option<Plugins>,
        hosted: impl Fn(&Repository) -> Option<PathBuf> + Send + Sync + 'static,
    ) {
        self.stop_engine().await;
        let place = tempfile::tempdir().unwrap();
        let git = Git::new(fairway_gitops_git::Options::new(place.path().join("home"))).unwrap();
        let clients = self.factory.clients(fairway_gitops_engine::USER);
        let copies = place.path().join("copies");
        let git = GitSources::new(git, copies, Box::new(hosted), None, clients.clone());
        let all = AllSources::new(git, place.path().join("charts"), plugins, clients);
        self.real = Some((all, place));
        self.start_engine();
    }

    /// Ends the engine at once, as a crash does.
    pub(crate) fn kill_engine(&mut self) {
        if let Some((_end, task)) = self.running.take() {
            task.abort();
        }
    }

    /// Ends the engine; it must do so by itself.
    pub(crate) async fn stop_engine(&mut self) {
        let Some((end, running)) = self.running.take() else {
            return;
        };
        end.shut_down();
        tokio::time::timeout(patience(), running)
            .await
            .expect("the engine does not end")
            .unwrap();
    }

    /// The end of a scenario.
    pub(crate) async fn end(mut self) {
        self.stop_engine().await;
        drop(self.kept.take());
    }

    pub(crate) async fn create(&self, path: &str, object: Value) {
        self.api.create(path, &object).await.unwrap();
    }

    /// Makes an application of the directory `web` of the repository.
    pub(crate) async fn application(&self, name: &str, change: Value) {
        let mut object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "namespace": "argocd"},
            "spec": {
                "project": "default",
                "source": {"repoURL": REPO, "path": "web", "targetRevision": "main"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
            },
        });
        merge(&mut object, &change);
        let path = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";
        assert!(
            self.api.create(path, &object).await.unwrap(),
            "{name} is there already"
        );
    }

    pub(crate) async fn get_application(&self, name: &str) -> Value {
        self.api.get(&path_of(name)).await.unwrap().unwrap_or_default()
    }

    pub(crate) async fn patch_application(&self, name: &str, patch: Value) {
        self.api.merge(&path_of(name), &patch).await.unwrap();
    }

    /// Waits until an application is as wanted, and returns it.
    pub(crate) async fn until(&self, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let found = self.get_application(name).await;
            if holds(&found) {
                return found;
            }
            assert!(
                begun.elapsed() < patience(),
                "{name}: not {what} within {:?}: {}",
                patience(),
                serde_json::to_string_pretty(&found["status"]).unwrap()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until an application is synced to a commit and healthy.
    pub(crate) async fn synced(&self, name: &str, commit: &str) -> Value {
        self.until(name, &format!("synced to {commit}"), |found| {
            let status = &found["status"];
            status["sync"]["status"] == "Synced"
                && status["sync"]["revision"] == commit
                && status["health"]["status"] == "Healthy"
        })
        .await
    }

    pub(crate) async fn config_map(&self, name: &str) -> Option<Value> {
        self.api
            .get(&format!("/api/v1/namespaces/shop/configmaps/{name}"))
            .await
            .unwrap()
    }

    /// The messages of events about an application, with their reasons.
    pub(crate) async fn events(&self, name: &str) -> Vec<String> {
        let all = self.api.list("/api/v1/namespaces/argocd/events").await.unwrap();
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
}

/// Argo CD's kinds, Fairway's own, and those of machines, which say what a change does.
fn provided() -> Vec<ProvidedKind> {
    let definitions = fairway_api::definitions().into_iter();
    definitions
        .chain(fairway_api::machine_definitions())
        .map(Arc::new)
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

/// Whether something stays from one scenario to the next, or comes back by itself.
fn is_standing(name: &str) -> bool {
    ["argocd", "shop", "default", "kube-root-ca.crt"].contains(&name)
        || name.starts_with("kube-")
        || name.ends_with(".argoproj.io")
        // It would take the garbage collector half a minute to find it again.
        || name == "tasks.example.com"
}

fn path_of(name: &str) -> String {
    format!("/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/{name}")
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

fn administrator(kernel: &Arc<Kernel>, id: &str) -> Requests {
    let admin = UserInfo::new("admin", ["system:masters", "system:authenticated"]);
    let reach = Reach::One(WorkspaceId::parse(id).unwrap());
    let service = Within::new(InProcess::new(Arc::clone(kernel), admin), &reach);
    Requests::new(Client::new(service, "default"))
}

/// Waits until the condition holds, and says how long it took.
pub(crate) async fn eventually<F: Future<Output = bool>>(
    what: &str,
    mut holds: impl FnMut() -> F,
) -> Duration {
    let begun = Instant::now();
    while !holds().await {
        assert!(
            begun.elapsed() < patience(),
            "{what}: not within {:?}",
            patience()
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    begun.elapsed()
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

/// A ConfigMap as a manifest, with one value and annotations.
pub(crate) fn map(name: &str, value: &str, annotations: &[(&str, &str)]) -> String {
    let lines: String = annotations
        .iter()
        .map(|(name, value)| format!("    {name}: {value:?}\n"))
        .collect();
    let annotations = match lines.is_empty() {
        true => String::new(),
        false => format!("  annotations:\n{lines}"),
    };
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n{annotations}data:\n  value: {value:?}\n"
    )
}

/// What syncs by itself.
pub(crate) fn automated() -> Value {
    json!({"spec": {"syncPolicy": {"automated": {"prune": true, "selfHeal": true}}}})
}
