//! Watches: every kind over all workspaces, into the [`World`].

use std::collections::BTreeSet;
use std::sync::Arc;

use fairway_controller::{Clients, Json, Manager, ObjectKey, Shutdown, watch};
use fairway_gateway_routes::observed::Kind;
use kube::api::Api;
use kube::runtime::watcher::{Config, Event};
use serde_json::Value;

use crate::kinds::{is_large, resource, served};
use crate::world::World;

/// Neither certificates nor keys of clients are in these.
const SECRETS: &str =
    "type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token,type!=kubernetes.io/dockerconfigjson";

/// Follows every kind; those of which there are many once they are needed.
pub(crate) fn start(manager: &mut Manager, clients: &Clients, world: &Arc<World>) {
    for kind in Kind::ALL {
        let (clients, world, mut shutdown) = (clients.clone(), Arc::clone(world), manager.shutdown());
        manager.spawn(async move {
            if is_large(kind) {
                tokio::select! {
                    () = shutdown.wait() => return,
                    () = world.until_needed() => {}
                }
            }
            follow(clients, kind, world, shutdown).await;
        });
    }
}

async fn follow(clients: Clients, kind: Kind, world: Arc<World>, shutdown: Shutdown) {
    let api: Api<Json> = Api::all_with(clients.every(), &resource(&served(kind)));
    let config = match kind {
        Kind::Secret => Config::default().fields(SECRETS),
        _ => Config::default(),
    };
    let mut brought = BTreeSet::new();
    watch::follow(api, config, shutdown, |event: Event<Json>| match event {
        Event::Init => brought.clear(),
        Event::InitApply(object) => {
            let key = ObjectKey::of(&world.reach, &object.metadata);
            brought.insert(key.clone());
            take(&world, kind, key, object.value);
        }
        Event::InitDone => world.listed(kind, &std::mem::take(&mut brought)),
        Event::Apply(object) => {
            let key = ObjectKey::of(&world.reach, &object.metadata);
            take(&world, kind, key, object.value);
        }
        Event::Delete(object) => world.remove(kind, &ObjectKey::of(&world.reach, &object.metadata)),
    })
    .await;
}

fn take(world: &World, kind: Kind, key: ObjectKey, mut object: Value) {
    // Nothing refers to them, and there may be very many.
    let is_wanted = match kind {
        Kind::ConfigMap => object.pointer("/data/ca.crt").is_some(),
        Kind::Secret => object.get("data").is_some(),
        _ => true,
    };
    match is_wanted {
        true => world.put(kind, key, &mut object),
        false => world.remove(kind, &key),
    }
}
