//! EndpointSlices for Services whose selectors match machines.
//!
//! Upstream's controller does this for pods, and KubeVirt's machines are in pods. Here they are not, so their endpoints are written from
//! instances, with the rules of upstream's: who is in, which ports, when ready. The slices have a manager of their own
//! (`endpointslice.kubernetes.io/managed-by`), so a kube-controller-manager beside this one keeps those of pods, and neither touches the
//! other's; whoever reads endpoints reads all slices of a Service.

mod decide;

use std::sync::Arc;
use std::time::Duration;

use fairway_controller::cache::Cache;
use fairway_controller::error::{is_namespace_terminating, is_not_found};
use fairway_controller::{
    Clients, Controller, Failure, Manager, ObjectKey, Outcome, Queue, Reconcile, Requests,
};
use fairway_kernel_kinds::selector;
use kube::runtime::watcher::Config;
use serde_json::Value;

use self::decide::{MANAGED_BY, MANAGER, decide};
use crate::USER;
use crate::kinds::{ENDPOINT_SLICE, SERVICE, collection};
use crate::view::{Instance, SERVICE_NAME, Service};
use crate::watches::{Change, Needed, follow};

const NAME: &str = "machine-endpoints";
const WORKERS: usize = 4;
/// How soon to look again after another writer was quicker.
const SOON: Duration = Duration::from_millis(50);

/// The controller.
struct Endpoints {
    clients: Clients,
    services: Arc<Cache<Service>>,
    instances: Arc<Cache<Instance>>,
    /// Our own.
    slices: Arc<Cache<Value>>,
}

/// What tells the controller of changes.
#[derive(Clone)]
pub(crate) struct News {
    queue: Queue<ObjectKey>,
    services: Arc<Cache<Service>>,
}

impl News {
    /// Looks again at the Services that select an instance, or selected it before.
    pub(crate) fn instance(&self, change: &Change<'_, Instance>) {
        let key = change.key;
        for (service, kept) in self.services.of_namespace(&key.workspace, &key.namespace) {
            let selects = |instance: &Instance| is_selected(&kept, instance);
            if change.before.is_some_and(selects) || change.now.is_some_and(selects) {
                self.queue.add(service);
            }
        }
    }
}

fn is_selected(service: &Service, instance: &Instance) -> bool {
    (service.selector.as_ref()).is_some_and(|wanted| selector::matches(wanted, &instance.labels))
}

fn service_of(slice: &Value) -> &str {
    let labels = slice.pointer("/metadata/labels");
    let service = labels.and_then(|labels| labels.get(SERVICE_NAME)?.as_str());
    service.unwrap_or_default()
}

/// Starts the controller. Its watches begin when `needed` says so: without machines there are no endpoints.
pub(crate) fn start(manager: &mut Manager, instances: &Arc<Cache<Instance>>, needed: &Needed) -> News {
    let clients = manager.clients(USER);
    let queue: Queue<ObjectKey> = Queue::default();
    let services: Arc<Cache<Service>> = Arc::new(Cache::new(clients.reach()));
    let slices: Arc<Cache<Value>> = Arc::new(Cache::new(clients.reach()));
    let sink = queue.clone();
    let follow_services = follow(
        clients.clone(),
        SERVICE,
        Config::default(),
        manager.shutdown(),
        Arc::clone(&services),
        |_, object| Service::read(object),
        move |change| sink.add(change.key.clone()),
    );
    manager.spawn(needed.then(manager.shutdown(), follow_services));
    let sink = queue.clone();
    let follow_slices = follow(
        clients.clone(),
        ENDPOINT_SLICE,
        Config::default().labels(&format!("{MANAGED_BY}={MANAGER}")),
        manager.shutdown(),
        Arc::clone(&slices),
        |_, object| object.clone(),
        move |change: Change<'_, Value>| {
            for slice in [change.before, change.now].into_iter().flatten() {
                let key = change.key;
                sink.add(ObjectKey::new(&key.workspace, &key.namespace, service_of(slice)));
            }
        },
    );
    manager.spawn(needed.then(manager.shutdown(), follow_slices));
    let reconciler = Endpoints {
        clients,
        services: Arc::clone(&services),
        instances: Arc::clone(instances),
        slices,
    };
    let controller = Controller::new(NAME, queue.clone(), reconciler).workers(WORKERS);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
    News { queue, services }
}

impl Reconcile<ObjectKey> for Endpoints {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        // Before everything was read, endpoints would vanish that are there.
        if !(self.services.is_synced() && self.instances.is_synced() && self.slices.is_synced()) {
            return Ok(Outcome::Again(SOON));
        }
        // Slices of a Service that is gone go with it, as their owner.
        let Some(service) = self.services.get(key) else {
            return Ok(Outcome::Done);
        };
        let instances = self.instances.of_namespace(&key.workspace, &key.namespace);
        let instances: Vec<_> = (instances.iter())
            .map(|(at, instance)| (at.clone(), instance.as_ref()))
            .collect();
        let slices = self.slices.of_namespace(&key.workspace, &key.namespace);
        let own: Vec<&Value> = (slices.iter())
            .map(|(_, slice)| slice.as_ref())
            .filter(|slice| service_of(slice) == key.name)
            .collect();
        let plan = decide(key, &service, &instances, &own);
        let requests = Requests::new(self.clients.of(&key.workspace));
        let all = collection(&ENDPOINT_SLICE, &key.namespace);
        let mut outcome = Outcome::Done;
        for slice in &plan.create {
            match requests.create(&all, slice).await {
                Ok(true) => {}
                // Another writer was quicker, and its slice will be seen.
                Ok(false) => outcome = Outcome::Again(SOON),
                Err(Failure::Api { source, .. })
                    if is_namespace_terminating(&source) || is_not_found(&source) =>
                {
                    return Ok(Outcome::Done);
                }
                Err(failure) => return Err(failure),
            }
        }
        for (name, patch) in &plan.patch {
            requests.merge(&format!("{all}/{name}"), patch).await?;
        }
        for slice in &plan.delete {
            let name = slice.pointer("/metadata/name").and_then(Value::as_str);
            let path = format!("{all}/{}", name.unwrap_or_default());
            requests.delete_version(&path, slice).await?;
        }
        Ok(outcome)
    }
}
