//! Every namespace has the ConfigMap `kube-root-ca.crt`, by which its workloads trust this server. What others change in
//! it is put right, and when the certificates change, all of them follow.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_controller::cache::Cache;
use fairway_controller::error::{is_already_exists, is_namespace_terminating, is_not_found};
use fairway_controller::key::CLUSTER_ANNOTATION;
use fairway_controller::{
    Attempt as _, Clients, Controller, Failure, Manager, ObjectKey, Outcome, Queue, Reconcile, watch,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::runtime::watcher;

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
    manager.spawn(watch::follow_into(
        Api::<ConfigMap>::all(informer),
        watcher::Config::default().fields(&format!("metadata.name={CONFIG_MAP}")),
        manager.shutdown(),
        Arc::clone(&config_maps),
        move |config_map| see(config_map, &expected.borrow()),
        move |key| sink.add(key.to_namespace()),
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

fn see(config_map: &ConfigMap, certificates: &Arc<str>) -> Seen {
    let data = config_map.data.as_ref();
    let annotations = config_map.metadata.annotations.as_ref();
    let right = data
        .is_some_and(|data| data.len() == 1 && data.get(KEY).is_some_and(|v| **v == **certificates))
        && config_map.binary_data.as_ref().is_none_or(BTreeMap::is_empty)
        && annotations.is_some_and(|a| a.contains_key(DESCRIPTION.0));
    let labels = config_map.metadata.labels.clone().unwrap_or_default();
    let mut annotations = annotations.cloned().unwrap_or_default();
    annotations.remove(CLUSTER_ANNOTATION);
    let made = labels.is_empty()
        && annotations.len() == 1
        && annotations
            .get(DESCRIPTION.0)
            .is_some_and(|text| text == DESCRIPTION.1);
    Seen {
        theirs: (!made).then(|| Box::new((labels, annotations))),
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
        let seen = self
            .config_maps
            .get(&ObjectKey::new(&key.workspace, &key.name, CONFIG_MAP));
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
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::{Step, decide, see};

    fn written(data: &serde_json::Value) -> ConfigMap {
        serde_json::from_value(json!({
            "metadata": {"labels": {"mine": "yes"}, "annotations": {"kubernetes.io/description": "d"}}, "data": data,
        }))
        .unwrap()
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
        let undescribed = ConfigMap {
            metadata: kube::api::ObjectMeta::default(),
            ..written(&json!({"ca.crt": "PEM"}))
        };
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
