//! The ConfigMap `kube-system/extension-apiserver-authentication` of the root workspace tells servers that ask this one who a caller is (and
//! kube-controller-manager and kube-scheduler on their own ports) whose client certificates to trust.
//!
//! Only that key is ours. There are no front-proxy keys, because requests are not forwarded to other servers.

use fairway_controller::apply::Applier;
use fairway_controller::{
    Attempt as _, Controller, Failure, Manager, ObjectKey, Outcome, Queue, Reconcile, WorkspaceId, watch,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PartialObjectMeta};
use kube::runtime::watcher::{self, Event};
use serde_json::{Value, json};

use crate::trust::Certificates;
use crate::{Setup, trust, users};

const NAME: &str = "authentication-trust";
const APPLIER: Applier = Applier::new("fairway-authentication-trust");
const CONFIG_MAP: &str = "extension-apiserver-authentication";
const NAMESPACE: &str = "kube-system";

struct AuthenticationTrust {
    api: Api<ConfigMap>,
    client_ca: Certificates,
}

pub(crate) fn register(manager: &mut Manager, setup: &Setup) {
    let client = manager.clients(users::AUTHENTICATION_PUBLISHER).root();
    let queue = Queue::default();
    let key = ObjectKey::new(&WorkspaceId::root(), NAMESPACE, CONFIG_MAP);
    queue.add(key.clone());
    let (sink, this) = (queue.clone(), key.clone());
    manager.spawn(trust::follow(
        setup.options.client_ca.clone(),
        manager.shutdown(),
        move || sink.add(this.clone()),
    ));
    let sink = queue.clone();
    manager.spawn(watch::follow(
        Api::<PartialObjectMeta<ConfigMap>>::namespaced(client.clone(), NAMESPACE),
        watcher::Config::default().fields(&format!("metadata.name={CONFIG_MAP}")),
        manager.shutdown(),
        move |event| {
            if matches!(event, Event::Apply(_) | Event::Delete(_)) {
                sink.add(key.clone());
            }
        },
    ));
    let reconciler = AuthenticationTrust {
        api: Api::namespaced(client, NAMESPACE),
        client_ca: setup.options.client_ca.clone(),
    };
    manager.spawn(Controller::new(NAME, queue, reconciler).run(manager.metrics(), manager.shutdown()));
}

/// Applying what is there already changes nothing, so the watch comes to rest.
fn desired(client_ca: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE},
        "data": {"client-ca-file": client_ca},
    })
}

impl Reconcile<ObjectKey> for AuthenticationTrust {
    async fn reconcile(&self, _: &ObjectKey) -> Result<Outcome, Failure> {
        let desired = desired(&self.client_ca.borrow());
        APPLIER
            .apply(&self.api, CONFIG_MAP, &desired)
            .await
            .attempting("apply the ConfigMap with the authority of client certificates")?;
        Ok(Outcome::Done)
    }
}
