//! Every namespace has the ConfigMap `kube-root-ca.crt`, by which its workloads trust this server. What others change in
//! it is put right, and when the certificates change, all of them follow.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use fairway_controller::cache::Cache;
use fairway_controller::error::{is_already_exists, is_namespace_terminating, is_not_found};
use fairway_controller::glimpse::{self, Glimpse, Kept};
use fairway_controller::key::CLUSTER_ANNOTATION;
use fairway_controller::{
    Attempt as _, Clients, Controller, Failure, Manager, ObjectKey, Outcome, Queue, Reconcile, watch,
};
use fairway_kernel_scalar::borrowed::{Pairs, Text};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ApiResource, ObjectMeta, PostParams};
use kube::runtime::watcher;
use serde::Deserialize;

use crate::trust::Certificates;
use crate::{Setup, trust, users};

const NAME: &str = "root-ca-publisher";
const CONFIG_MAP: &str = "kube-root-ca.crt";
const KEY: &str = "ca.crt";
const DESCRIPTION: (&str, &str) = (
    "kubernetes.io/description",
    "The certificates by which the Kubernetes API can be trusted at its addresses inside the cluster, such as \
     kubernetes.default.svc. They are meant for nothing else.",
);
const WORKERS: usize = 4;

type Texts = BTreeMap<String, String>;

/// What is kept of a ConfigMap. There is one in every namespace of every workspace, and most are as they were made.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    /// Labels and annotations, if they are others than it was made with.
    theirs: Option<Box<(Texts, Texts)>>,
    /// The certificates for which it is right as it is.
    right_for: Option<Arc<str>>,
}

struct RootCa {
    clients: Clients,
    certificates: Certificates,
    /// Whether each namespace lives.
    namespaces: Arc<Cache<bool>>,
    config_maps: Arc<Cache<Seen>>,
}

pub(crate) fn register(manager: &mut Manager, setup: &Setup) {
    let informer = manager.clients(users::INFORMER).every();
    let queue = Queue::default();
    let namespaces = setup.namespaces.tell(&queue);
    let config_maps = Arc::new(Cache::new(manager.reach()));
    let sink = queue.clone();
    let certificates = setup.options.root_ca.clone();
    let expected = certificates.clone();
    manager.spawn(watch::follow_news_into(
        Api::<Glimpse<Found>>::all_with(informer, &ApiResource::erase::<ConfigMap>(&())),
        watcher::Config::default().fields(&format!("metadata.name={CONFIG_MAP}")),
        manager.shutdown(),
        Arc::clone(&config_maps),
        move |config_map: Glimpse<Found>| see(config_map.kept, &expected.borrow()),
        move |key| sink.add(key.to_namespace()),
    ));
    let (seen, made, sink) = (Arc::clone(&namespaces), Arc::clone(&config_maps), queue.clone());
    let (synced, wanted) = (
        (Arc::clone(&namespaces), Arc::clone(&config_maps)),
        certificates.clone(),
    );
    manager.spawn(watch::once(
        move || synced.0.is_synced() && synced.1.is_synced(),
        manager.shutdown(),
        move || {
            let wanted = Arc::clone(&wanted.borrow());
            let lacking = seen.keys_where(|key, lives| {
                let made = made.get(&config_map_in(key));
                decide(Some(*lives), made.as_deref(), &wanted) != Step::Nothing
            });
            lacking.into_iter().for_each(|key| sink.add(key));
        },
    ));
    let (sink, known) = (queue.clone(), Arc::clone(&namespaces));
    manager.spawn(trust::follow(
        certificates.clone(),
        manager.shutdown(),
        move || known.all().into_iter().for_each(|(key, _)| sink.add(key)),
    ));
    let reconciler = RootCa {
        clients: manager.clients(users::ROOT_CA_PUBLISHER),
        certificates,
        namespaces,
        config_maps,
    };
    let controller = Controller::new(NAME, queue, reconciler).workers(WORKERS);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

fn config_map_in(namespace: &ObjectKey) -> ObjectKey {
    ObjectKey::new(&namespace.workspace, &namespace.name, CONFIG_MAP)
}

/// A ConfigMap, as far as it is read.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound = "'de: 'a")]
struct Wire<'a> {
    metadata: WireMeta<'a>,
    data: Pairs<'a>,
    binary_data: Pairs<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound = "'de: 'a")]
struct WireMeta<'a> {
    name: Text<'a>,
    namespace: Text<'a>,
    resource_version: Text<'a>,
    labels: Pairs<'a>,
    annotations: Pairs<'a>,
}

/// What was found in a ConfigMap.
#[derive(Clone, Debug)]
struct Found {
    /// The certificates, if it has nothing else.
    certificates: Option<Arc<str>>,
    theirs: Option<Box<(Texts, Texts)>>,
}

impl Kept for Found {
    type Wire<'a> = Wire<'a>;

    fn keep(wire: &Wire<'_>) -> (ObjectMeta, Self) {
        let Wire {
            metadata,
            data,
            binary_data,
        } = wire;
        let described = metadata.annotations.get(DESCRIPTION.0);
        let only = data.len() == 1 && binary_data.is_empty() && described.is_some();
        let mut theirs = metadata
            .annotations
            .iter()
            .filter(|(key, _)| *key != CLUSTER_ANNOTATION)
            .peekable();
        let made = metadata.labels.is_empty()
            && theirs.next_if_eq(&DESCRIPTION).is_some()
            && theirs.peek().is_none();
        let texts = |pairs: &Pairs<'_>| -> Texts {
            let pairs = pairs.iter().filter(|(key, _)| *key != CLUSTER_ANNOTATION);
            pairs
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect()
        };
        let found = Self {
            certificates: data.get(KEY).filter(|_| only).map(shared),
            theirs: (!made).then(|| Box::new((texts(&metadata.labels), texts(&metadata.annotations)))),
        };
        let meta = glimpse::meta(
            metadata.name.as_str(),
            metadata.namespace.as_str(),
            metadata.resource_version.as_str(),
            metadata.annotations.get(CLUSTER_ANNOTATION),
        );
        (meta, found)
    }
}

/// A text that most ConfigMaps have, once for all of them.
fn shared(text: &str) -> Arc<str> {
    static LAST: Mutex<Option<Arc<str>>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match &*last {
        Some(same) if **same == *text => Arc::clone(same),
        _ => Arc::clone(last.insert(Arc::from(text))),
    }
}

fn see(found: Found, certificates: &Arc<str>) -> Seen {
    let right = found.certificates.is_some_and(|it| *it == **certificates);
    Seen {
        theirs: found.theirs,
        right_for: right.then(|| Arc::clone(certificates)),
    }
}

/// What to write.
#[derive(Debug, PartialEq)]
enum Step {
    Nothing,
    Create(ConfigMap),
    Replace(ConfigMap),
}

fn decide(namespace_lives: Option<bool>, seen: Option<&Seen>, certificates: &str) -> Step {
    if namespace_lives != Some(true)
        || seen.is_some_and(|seen| seen.right_for.as_deref() == Some(certificates))
    {
        return Step::Nothing;
    }
    let theirs = seen.and_then(|seen| seen.theirs.as_deref().cloned());
    let (labels, mut annotations) = theirs.unwrap_or_default();
    annotations
        .entry(DESCRIPTION.0.to_owned())
        .or_insert_with(|| DESCRIPTION.1.to_owned());
    let config_map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(CONFIG_MAP.to_owned()),
            labels: (!labels.is_empty()).then_some(labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        data: Some([(KEY.to_owned(), certificates.to_owned())].into()),
        ..ConfigMap::default()
    };
    if seen.is_some() {
        Step::Replace(config_map)
    } else {
        Step::Create(config_map)
    }
}

impl Reconcile<ObjectKey> for RootCa {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let seen = self.config_maps.get(&config_map_in(key));
        let lives = self.namespaces.get(key).as_deref().copied();
        let api = || Api::<ConfigMap>::namespaced(self.clients.of(&key.workspace), &key.name);
        let params = PostParams::default();
        let certificates = Arc::clone(&self.certificates.borrow());
        let (answer, doing) = match decide(lives, seen.as_deref(), &certificates) {
            Step::Nothing => return Ok(Outcome::Done),
            Step::Create(config_map) => (
                api().create(&params, &config_map).await,
                "create the root CA ConfigMap",
            ),
            Step::Replace(config_map) => (
                api().replace(CONFIG_MAP, &params, &config_map).await,
                "put the root CA ConfigMap right",
            ),
        };
        match answer {
            // It is there, or gone, or its namespace is going: the watches will tell.
            Err(e) if is_already_exists(&e) || is_namespace_terminating(&e) || is_not_found(&e) => {
                Ok(Outcome::Done)
            }
            answer => answer.attempting(doing).map(|_| Outcome::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::{DESCRIPTION, Found, Kept as _, Seen, Step, decide};

    fn see(object: &Value, certificates: &Arc<str>) -> Seen {
        let text = object.to_string();
        super::see(Found::keep(&serde_json::from_str(&text).unwrap()).1, certificates)
    }

    fn written(data: &Value) -> Value {
        json!({
            "metadata": {"labels": {"mine": "yes"}, "annotations": {"kubernetes.io/description": "d"}}, "data": data,
        })
    }

    #[test]
    fn what_others_wrote_is_remembered() {
        for (labels, annotations, theirs) in [
            (
                json!(null),
                json!({DESCRIPTION.0: DESCRIPTION.1, "kcp.io/cluster": "a"}),
                false,
            ),
            (json!({}), json!({DESCRIPTION.0: DESCRIPTION.1}), false),
            (json!({"a": "b"}), json!({DESCRIPTION.0: DESCRIPTION.1}), true),
            (json!({}), json!({DESCRIPTION.0: "other"}), true),
            (json!({}), json!({DESCRIPTION.0: DESCRIPTION.1, "a": "b"}), true),
            (json!({}), json!({"a": "b"}), true),
        ] {
            let object = json!({"metadata": {"labels": labels, "annotations": annotations}, "data": {"ca.crt": "PEM"}});
            let seen = see(&object, &"PEM".into());
            assert_eq!(seen.theirs.is_some(), theirs, "{object}");
            if let Some(theirs) = seen.theirs {
                assert!(!theirs.1.contains_key("kcp.io/cluster"));
            }
        }
    }

    #[test]
    fn only_the_right_content_is_right() {
        for (data, want) in [
            (json!({"ca.crt": "PEM"}), true),
            (json!({"ca.crt": "OTHER"}), false),
            (json!({"ca.crt": "PEM", "more": ""}), false),
            (json!({}), false),
        ] {
            assert_eq!(
                see(&written(&data), &"PEM".into()).right_for.is_some(),
                want,
                "{data}"
            );
        }
        let mut undescribed = written(&json!({"ca.crt": "PEM"}));
        undescribed["metadata"] = json!({});
        assert!(see(&undescribed, &"PEM".into()).right_for.is_none());
    }

    #[test]
    fn steps() {
        let right = see(&written(&json!({"ca.crt": "PEM"})), &"PEM".into());
        let wrong = see(&written(&json!({"ca.crt": "X"})), &"PEM".into());
        assert_eq!(decide(Some(true), Some(&right), "PEM"), Step::Nothing);
        assert!(
            matches!(decide(Some(true), Some(&right), "NEW"), Step::Replace(_)),
            "certificates change"
        );
        assert_eq!(decide(Some(false), None, "PEM"), Step::Nothing);
        assert_eq!(decide(None, Some(&wrong), "PEM"), Step::Nothing);
        let Step::Create(new) = decide(Some(true), None, "PEM") else {
            panic!("nothing is created")
        };
        assert_eq!(new.data.unwrap()["ca.crt"], "PEM");
        let Step::Replace(put_right) = decide(Some(true), Some(&wrong), "PEM") else {
            panic!("nothing is put right")
        };
        assert_eq!(put_right.data.unwrap()["ca.crt"], "PEM");
        assert_eq!(
            put_right.metadata.labels.unwrap()["mine"],
            "yes",
            "labels of others stay"
        );
        assert_eq!(
            put_right.metadata.annotations.unwrap()["kubernetes.io/description"],
            "d"
        );
    }
}
