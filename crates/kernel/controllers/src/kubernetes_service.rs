//! The Service `default/kubernetes` of the root workspace and its endpoints lead to this server.
//!
//! An address of the loopback means something else on every machine, and the API refuses it as an endpoint; a server that
//! listens there alone has a Service without endpoints.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use fairway_controller::apply::Applier;
use fairway_controller::{
    Attempt as _, Controller, Failure, Manager, ObjectKey, Outcome, Queue, Reconcile, WorkspaceId, watch,
};
use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Client;
use kube::api::{Api, DynamicObject, PartialObjectMeta};
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Event};
use serde_json::{Value, json};

use crate::{Setup, users};

const NAME: &str = "kubernetes-service";
const APPLIER: Applier = Applier::new("fairway-kubernetes-service");
const SERVICE: &str = "kubernetes";
const NAMESPACE: &str = "default";

struct KubernetesService {
    client: Client,
    desired: [(ApiResource, Value); 3],
}

pub(crate) fn register(manager: &mut Manager, setup: &Setup) {
    let client = manager.clients(users::SERVICE_PUBLISHER).root();
    let queue = Queue::default();
    let key = ObjectKey::new(&WorkspaceId::root(), NAMESPACE, SERVICE);
    queue.add(key);
    follow::<Service>(manager, &client, &queue);
    follow::<Endpoints>(manager, &client, &queue);
    follow::<EndpointSlice>(manager, &client, &queue);
    let desired = decide(setup.options.service_ip, setup.options.advertise);
    let controller = Controller::new(NAME, queue, KubernetesService { client, desired });
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

/// Looks again when somebody changes one of the objects.
fn follow<K>(manager: &mut Manager, client: &Client, queue: &Queue<ObjectKey>)
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + Send
        + Sync
        + 'static,
    PartialObjectMeta<K>: std::fmt::Debug,
{
    let api: Api<PartialObjectMeta<K>> = Api::namespaced(client.clone(), NAMESPACE);
    let config = watcher::Config::default().fields(&format!("metadata.name={SERVICE}"));
    let (sink, key) = (
        queue.clone(),
        ObjectKey::new(&WorkspaceId::root(), NAMESPACE, SERVICE),
    );
    manager.spawn(watch::follow(api, config, manager.shutdown(), move |event| {
        if matches!(event, Event::Apply(_) | Event::Delete(_)) {
            sink.add(key.clone());
        }
    }));
}

/// The three objects. Applying what is there already changes nothing, so the watches come to rest.
fn decide(service_ip: Ipv4Addr, advertise: SocketAddr) -> [(ApiResource, Value); 3] {
    let (ip, port) = (advertise.ip(), advertise.port());
    let reachable = !ip.is_loopback() && !ip.is_unspecified();
    let family = match ip {
        IpAddr::V4(_) => "IPv4",
        IpAddr::V6(_) => "IPv6",
    };
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": SERVICE, "namespace": NAMESPACE,
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP", "clusterIP": service_ip, "clusterIPs": [service_ip],
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}],
            "sessionAffinity": "None",
        },
    });
    let subsets = if reachable {
        json!([{
            "addresses": [{"ip": ip}],
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        }])
    } else {
        json!([])
    };
    let endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {
            "name": SERVICE, "namespace": NAMESPACE,
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": subsets,
    });
    let members = if reachable {
        json!([{"addresses": [ip], "conditions": {"ready": true}}])
    } else {
        json!([])
    };
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": SERVICE, "namespace": NAMESPACE,
            "labels": {"kubernetes.io/service-name": SERVICE},
        },
        "addressType": family,
        "endpoints": members,
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    });
    [
        (ApiResource::erase::<Service>(&()), service),
        (ApiResource::erase::<Endpoints>(&()), endpoints),
        (ApiResource::erase::<EndpointSlice>(&()), slice),
    ]
}

impl Reconcile<ObjectKey> for KubernetesService {
    async fn reconcile(&self, _: &ObjectKey) -> Result<Outcome, Failure> {
        for (resource, object) in &self.desired {
            let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), NAMESPACE, resource);
            APPLIER
                .apply(&api, SERVICE, object)
                .await
                .attempting(format!("apply the {}", resource.kind))?;
        }
        Ok(Outcome::Done)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::decide;

    #[test]
    fn the_objects_lead_to_the_server() {
        let [service, endpoints, slice] =
            decide(Ipv4Addr::new(10, 96, 0, 1), "192.0.2.7:6443".parse().unwrap()).map(|(_, object)| object);
        assert_eq!(service["spec"]["clusterIP"], "10.96.0.1");
        assert_eq!(service["spec"]["ports"][0]["targetPort"], 6443);
        assert_eq!(endpoints["subsets"][0]["addresses"][0]["ip"], "192.0.2.7");
        assert_eq!(slice["endpoints"][0]["addresses"][0], "192.0.2.7");
        assert_eq!(slice["ports"][0]["port"], 6443);
        assert_eq!(
            slice["metadata"]["labels"]["kubernetes.io/service-name"],
            "kubernetes"
        );
    }

    #[test]
    fn the_loopback_is_no_endpoint() {
        for address in ["127.0.0.1:6443", "[::1]:6443", "0.0.0.0:6443"] {
            let [_, endpoints, slice] =
                decide(Ipv4Addr::new(10, 96, 0, 1), address.parse().unwrap()).map(|(_, object)| object);
            assert_eq!(
                endpoints["subsets"].as_array().map(Vec::len),
                Some(0),
                "{address}"
            );
            assert_eq!(slice["endpoints"].as_array().map(Vec::len), Some(0), "{address}");
        }
    }
}
