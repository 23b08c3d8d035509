//! Addresses of Services of type LoadBalancer, written into their status. Nodes open the ports there.

mod decide;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use fairway_controller::cache::Cache;
use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::requests::version;
use fairway_controller::served::Served;
use fairway_controller::{
    Clients, Controller, Failure, Manager, ObjectKey, Outcome, Queue, Reconcile, Requests,
};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::watcher::Config;
use serde_json::{Value, json};

use self::decide::{Decision, decide, is_ours};
use crate::USER;
use crate::kinds::{SERVICE, path};
use crate::pools::{self, Pools};
use crate::settings::Settings;
use crate::view::Service;
use crate::watches::follow;

const NAME: &str = "machine-load-balancers";

/// The controller.
struct Balancers {
    clients: Clients,
    services: Arc<Cache<Service>>,
    pools: Arc<Pools>,
    listeners: Vec<SocketAddr>,
    /// What was written, until it is seen.
    written: Mutex<BTreeMap<ObjectKey, Ipv4Addr>>,
    recorder: Recorder,
}

/// Starts the controller.
pub(crate) fn start(manager: &mut Manager, settings: &Settings, served: Option<Served>) {
    let clients = manager.clients(USER);
    let queue: Queue<ObjectKey> = Queue::default();
    let services: Arc<Cache<Service>> = Arc::new(Cache::new(clients.reach()));
    let pools = Arc::new(Pools::new(settings));
    // One that changes may give something back that others wait for.
    let (sink, all) = (queue.clone(), Arc::clone(&services));
    let look_at_all = move || {
        for key in all.keys_where(|_, _| true) {
            sink.add(key);
        }
    };
    let (sink, look) = (queue.clone(), look_at_all.clone());
    manager.spawn(follow(
        clients.clone(),
        SERVICE,
        Config::default().fields("spec.type=LoadBalancer"),
        manager.shutdown(),
        Arc::clone(&services),
        |_, object| Service::read(object),
        move |change| {
            sink.add(change.key.clone());
            look();
        },
    ));
    if let Some(served) = served {
        manager.spawn(pools::follow(
            Arc::clone(&pools),
            clients.clone(),
            served,
            manager.shutdown(),
            look_at_all,
        ));
    }
    let reconciler = Balancers {
        recorder: Recorder::new(clients.clone(), NAME),
        clients,
        services,
        pools,
        listeners: settings.listeners.clone(),
        written: Mutex::default(),
    };
    // One at a time: each decides about all.
    let controller = Controller::new(NAME, queue, reconciler);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

impl Balancers {
    /// What a Service should have; nothing if it is not ours to decide.
    fn decide(&self, key: &ObjectKey) -> Option<Decision> {
        let mut all = self.services.all();
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, service) in &mut all {
            if service.balancer.addresses.is_empty()
                && let Some(address) = written.get(key)
            {
                Arc::make_mut(service).balancer.addresses = vec![*address];
            } else {
                written.remove(key);
            }
        }
        let services: Vec<(ObjectKey, &Service)> = all
            .iter()
            .map(|(key, service)| (key.clone(), service.as_ref()))
            .collect();
        decide(&services, &self.pools.all(), &self.listeners).remove(key)
    }

    fn note(&self, key: &ObjectKey, address: Ipv4Addr) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.insert(key.clone(), address);
    }

    async fn record(
        &self,
        key: &ObjectKey,
        service: &Service,
        severity: Severity,
        reason: &'static str,
        message: String,
    ) {
        let about = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some(SERVICE.kind.to_owned()),
            namespace: Some(key.namespace.clone()),
            name: Some(key.name.clone()),
            uid: Some(service.uid.clone()),
            ..ObjectReference::default()
        };
        let happening = Happening {
            severity,
            reason,
            message,
        };
        self.recorder.record(&key.workspace, &about, happening).await;
    }

    /// Writes the addresses of a Service that was read.
    async fn write(
        &self,
        requests: &Requests,
        key: &ObjectKey,
        read: &Value,
        addresses: &[Ipv4Addr],
    ) -> Result<(), Failure> {
        let ingress: Vec<Value> = addresses
            .iter()
            .map(|address| json!({"ip": address.to_string()}))
            .collect();
        let ingress = if ingress.is_empty() {
            Value::Null
        } else {
            ingress.into()
        };
        let patch = json!({
            "metadata": {"resourceVersion": version(read)},
            "status": {"loadBalancer": {"ingress": ingress}},
        });
        let path = format!("{}/status", path(&SERVICE, key));
        requests.merge(&path, &patch).await?;
        Ok(())
    }
}

impl Reconcile<ObjectKey> for Balancers {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let known = self.services.get(key);
        let decision = self.decide(key);
        // Mostly all is as it should be.
        if let (Some(known), Some(Decision::Has(address))) = (&known, &decision)
            && known.balancer.addresses == [*address]
        {
            return Ok(Outcome::Done);
        }
        let requests = Requests::new(self.clients.of(&key.workspace));
        let Some(object) = requests.get(&path(&SERVICE, key)).await? else {
            return Ok(Outcome::Done);
        };
        let service = Service::read(&object);
        match decision.filter(|_| is_ours(&service)) {
            Some(Decision::Has(address)) if service.balancer.addresses != [address] => {
                self.write(&requests, key, &object, &[address]).await?;
                self.note(key, address);
                let message = format!("Assigned IP [{:?}]", address.to_string());
                self.record(key, &service, Severity::Normal, "IPAllocated", message)
                    .await;
            }
            Some(Decision::Has(_)) => {}
            Some(Decision::None(why)) => {
                if !service.balancer.addresses.is_empty() {
                    self.write(&requests, key, &object, &[]).await?;
                }
                self.record(key, &service, Severity::Warning, "AllocationFailed", why)
                    .await;
            }
            // No load balancer any more: what we gave it goes. With a class it is somebody else's.
            None => {
                let is_left = !service.balancer.addresses.is_empty();
                let is_nobodys =
                    !service.is_deleting && service.balancer.class.is_none() && !is_ours(&service);
                if is_left && is_nobodys {
                    self.write(&requests, key, &object, &[]).await?;
                }
            }
        }
        Ok(Outcome::Done)
    }
}
