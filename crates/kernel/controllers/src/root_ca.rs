//! Every namespace has the ConfigMap `kube-root-ca.crt`, by which its workloads trust this server. What others change in
//! it is put right, and when the certificates change, all of them follow.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_controller::cache::Cache;
use fairway_controller::error::{is_already_exists, is_namespace_terminating, is_not_found};
use fairway_controller::{
    Attempt as _, Controller, Failure, Manager, ObjectKey, Outcome, Queue, Reconcile, watch,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::runtime::watcher;

use crate::trust::Certificates;
use crate::{Setup, living_namespaces, trust, users};

const NAME: &str = "root-ca-publisher";
const CONFIG_MAP: &str = "kube-root-ca.crt";
const KEY: &str = "ca.crt";
const DESCRIPTION: (&str, &str) = (
    "kubernetes.io/description",
    "The certificates by which the Kubernetes API can be trusted at its addresses inside the cluster, such as \
     kubernetes.default.svc. They are meant for nothing else.",
);
const WORKERS: usize = 4;

/// What is kept of a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    /// The certificates for which it is right as it is.
    right_for: Option<Arc<str>>,
}

struct RootCa {
    client: Client,
    certificates: Certificates,
    /// Whether each namespace lives.
    namespaces: Arc<Cache<bool>>,
    config_maps: Arc<Cache<Seen>>,
}

pub(crate) fn register(manager: &mut Manager, setup: &Setup) {
    let informer = manager.client(&setup.workspace, users::INFORMER);
    let queue = Queue::default();
    let namespaces = living_namespaces::follow(manager, setup, &queue);
    let config_maps = Arc::new(Cache::new(&setup.workspace));
    let (sink, workspace) = (queue.clone(), setup.workspace.clone());
    let certificates = setup.options.root_ca.clone();
    let expected = certificates.clone();
    manager.spawn(watch::follow_into(
        Api::<ConfigMap>::all(informer),
        watcher::Config::default().fields(&format!("metadata.name={CONFIG_MAP}")),
        manager.shutdown(),
        Arc::clone(&config_maps),
        move |config_map| see(config_map, &expected.borrow()),
        move |key| sink.add(ObjectKey::new(&workspace, "", &key.namespace)),
    ));
    let (sink, known) = (queue.clone(), Arc::clone(&namespaces));
    manager.spawn(trust::follow(
        certificates.clone(),
        manager.shutdown(),
        move || known.all().into_iter().for_each(|(key, _)| sink.add(key)),
    ));
    let reconciler = RootCa {
        client: manager.client(&setup.workspace, users::ROOT_CA_PUBLISHER),
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
    Seen {
        labels: config_map.metadata.labels.clone(),
        annotations: annotations.cloned(),
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
    let before = seen.cloned().unwrap_or_default();
    let mut annotations = before.annotations.unwrap_or_default();
    annotations
        .entry(DESCRIPTION.0.to_owned())
        .or_insert_with(|| DESCRIPTION.1.to_owned());
    let config_map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(CONFIG_MAP.to_owned()),
            labels: before.labels,
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
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &key.name);
        let params = PostParams::default();
        let certificates = Arc::clone(&self.certificates.borrow());
        let (answer, doing) = match decide(lives, seen.as_deref(), &certificates) {
            Step::Nothing => return Ok(Outcome::Done),
            Step::Create(config_map) => (
                api.create(&params, &config_map).await,
                "create the root CA ConfigMap",
            ),
            Step::Replace(config_map) => (
                api.replace(CONFIG_MAP, &params, &config_map).await,
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
