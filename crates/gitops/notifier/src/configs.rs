//! The configurations of all workspaces, read when they change, and the Applications that wait for them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_api::argoproj::{CONTROL_PLANES, GROUP};
use fairway_controller::dynamic::{Change, follow_all};
use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::kinds::{Kind, Kinds};
use fairway_controller::watch::follow;
use fairway_controller::{
    Clients, Failure, ObjectKey, Outcome, Queue, Reconcile, Requests, Shutdown, WorkspaceId,
};
use fairway_gitops_notifications::Config;
use fairway_gitops_notifications::config::{CONFIG_MAP, SECRET};
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference, Secret};
use kube::api::{Api, PartialObjectMeta};
use kube::runtime::watcher::{self, Event};
use serde_json::Value;
use tokio::sync::watch;
use tracing::warn;

use crate::COMPONENT;

/// A workspace and the namespace of a control plane in it.
type Place = (WorkspaceId, String);

pub(crate) struct Configs {
    clients: Clients,
    recorder: Recorder,
    kinds: watch::Receiver<Arc<Kinds>>,
    /// Places whose configuration may have changed; names are of no account.
    changed: Queue<ObjectKey>,
    applications: Queue<ObjectKey>,
    read: Mutex<HashMap<Place, Arc<Config>>>,
    known: Mutex<BTreeSet<ObjectKey>>,
    follows_more: AtomicBool,
    shutdown: Shutdown,
}

/// Where the configuration and the project of an Application are looked for.
pub(crate) fn planes(namespace: &str) -> Vec<&str> {
    match CONTROL_PLANES.contains(&namespace) {
        true => vec![namespace],
        false => CONTROL_PLANES.to_vec(),
    }
}

/// A workspace whose own definition has taken the kind over has controllers of its own for it.
fn is_followed(kind: &Kind) -> bool {
    let name = kind.resource.kind.as_str();
    kind.is_common() && kind.resource.group == GROUP && ["Application", "AppProject"].contains(&name)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Configs {
    pub(crate) fn new(
        clients: Clients,
        kinds: watch::Receiver<Arc<Kinds>>,
        changed: Queue<ObjectKey>,
        applications: Queue<ObjectKey>,
        shutdown: Shutdown,
    ) -> Self {
        Self {
            recorder: Recorder::new(clients.clone(), COMPONENT),
            clients,
            kinds,
            changed,
            applications,
            read: Mutex::default(),
            known: Mutex::default(),
            follows_more: AtomicBool::new(false),
            shutdown,
        }
    }

    /// The configuration for an Application.
    pub(crate) fn of(&self, key: &ObjectKey) -> Option<Arc<Config>> {
        let read = lock(&self.read);
        let mut planes = planes(&key.namespace).into_iter();
        planes.find_map(|plane| read.get(&(key.workspace.clone(), plane.to_owned())).cloned())
    }

    /// Follows ConfigMaps. The rest is followed when there is one.
    pub(crate) async fn follow(self: Arc<Self>) {
        let maps: Api<PartialObjectMeta<ConfigMap>> = Api::all(self.clients.every());
        self.follow_named(maps, CONFIG_MAP).await;
    }

    async fn follow_named<K>(self: Arc<Self>, api: Api<PartialObjectMeta<K>>, name: &'static str)
    where
        PartialObjectMeta<K>: kube::Resource + Clone + serde::de::DeserializeOwned + Debug + Send + 'static,
    {
        let only = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let shutdown = self.shutdown.clone();
        follow(api, only, shutdown, move |event| {
            if let Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) = event {
                self.hear(&ObjectKey::of(
                    self.clients.reach(),
                    kube::Resource::meta(&object),
                ));
            }
        })
        .await;
    }

    fn hear(self: &Arc<Self>, about: &ObjectKey) {
        if !CONTROL_PLANES.contains(&about.namespace.as_str()) {
            return;
        }
        self.changed
            .add(ObjectKey::new(&about.workspace, &about.namespace, CONFIG_MAP));
        if self.follows_more.swap(true, Ordering::Relaxed) {
            return;
        }
        let secrets: Api<PartialObjectMeta<Secret>> = Api::all(self.clients.every());
        tokio::spawn(Arc::clone(self).follow_named(secrets, SECRET));
        let (heard, clients, shutdown) = (Arc::clone(self), self.clients.every(), self.shutdown.clone());
        tokio::spawn(follow_all(
            clients,
            self.kinds.clone(),
            is_followed,
            shutdown,
            move |change| {
                heard.take(change);
            },
        ));
    }

    fn take(&self, change: Change) {
        let Change::Event(kind, event) = change else {
            return;
        };
        let (object, is_gone) = match *event {
            Event::Apply(object) | Event::InitApply(object) => (object, false),
            Event::Delete(object) => (object, true),
            Event::Init | Event::InitDone => return,
        };
        let key = ObjectKey::of(self.clients.reach(), &object.metadata);
        if kind.resource.kind != "Application" {
            self.wake(&key.workspace);
            return;
        }
        let is_new = {
            let mut known = lock(&self.known);
            match is_gone {
                true => known.remove(&key),
                false => known.insert(key.clone()),
            }
        };
        // One that is gone has something to forget.
        if is_new && is_gone || self.of(&key).is_some() {
            self.applications.add(key);
        }
    }

    /// Has all Applications of a workspace looked at.
    fn wake(&self, workspace: &WorkspaceId) {
        let known = lock(&self.known);
        for key in known.iter().filter(|key| key.workspace == *workspace) {
            if self.of(key).is_some() {
                self.applications.add(key.clone());
            }
        }
    }

    /// Reads the configuration of a place anew.
    async fn renew(&self, workspace: &WorkspaceId, namespace: &str) -> Result<(), Failure> {
        let requests = Requests::new(self.clients.of(workspace));
        let map = requests
            .get(&format!("/api/v1/namespaces/{namespace}/configmaps/{CONFIG_MAP}"))
            .await?;
        let place = (workspace.clone(), namespace.to_owned());
        let Some(map) = map else {
            lock(&self.read).remove(&place);
            return Ok(());
        };
        let secret = requests
            .get(&format!("/api/v1/namespaces/{namespace}/secrets/{SECRET}"))
            .await?;
        let config = Config::read(&entries(&map), &secrets(&secret.unwrap_or_default()));
        for problem in &config.problems {
            warn!(%workspace, namespace, problem, "{CONFIG_MAP} is wrong in part");
            self.complain(workspace, &map, problem).await;
        }
        lock(&self.read).insert(place, Arc::new(config));
        self.wake(workspace);
        Ok(())
    }
}

impl Configs {
    /// Tells whoever looks at the ConfigMap: he need not be the one who sees the log.
    async fn complain(&self, workspace: &WorkspaceId, map: &Value, problem: &str) {
        let text = |field: &str| map["metadata"][field].as_str().map(str::to_owned);
        let about = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("ConfigMap".to_owned()),
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            ..ObjectReference::default()
        };
        let happening = Happening {
            severity: Severity::Warning,
            reason: "InvalidEntry",
            message: format!("{problem}; the entry is left out"),
        };
        self.recorder.record(workspace, &about, happening).await;
    }
}

/// Texts by their names.
fn entries(object: &Value) -> BTreeMap<String, String> {
    let data = object["data"].as_object().into_iter().flatten();
    data.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned())))
        .collect()
}

/// The same of a Secret. What is no text is of no use in a configuration.
fn secrets(object: &Value) -> BTreeMap<String, String> {
    let plain = |text: String| String::from_utf8(STANDARD.decode(text).ok()?).ok();
    entries(object)
        .into_iter()
        .filter_map(|(name, text)| Some((name, plain(text)?)))
        .collect()
}

/// Reads configurations that have changed.
pub(crate) struct Reader(pub(crate) Arc<Configs>);

impl Reconcile<ObjectKey> for Reader {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        self.0.renew(&key.workspace, &key.namespace).await?;
        Ok(Outcome::Done)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_of_secrets_are_read() {
        let secret =
            json!({"data": {"a": STANDARD.encode("text"), "b": STANDARD.encode([0xff]), "c": "?", "d": 1}});
        assert_eq!(secrets(&secret), [("a".to_owned(), "text".to_owned())].into());
        assert!(secrets(&Value::Null).is_empty());
    }

    #[test]
    fn applications_elsewhere_look_in_both_planes() {
        assert_eq!(planes("openshift-gitops"), ["openshift-gitops"]);
        assert_eq!(planes("team"), ["argocd", "openshift-gitops"]);
    }
}
