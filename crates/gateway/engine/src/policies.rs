//! Kuadrant's policies: seen, decided, made into guards, and told whether they are enforced.
//!
//! ```text
//! watches ─ Held ─ decide (pure) ─ Enforcer: guards by rule ─ DataPlane::serve ─ probe ─ conditions
//! ```
//!
//! Whatever goes wrong on the way closes: a rule with a policy that cannot be understood refuses every request, and says so
//! in the policy's condition.

mod cluster;
pub(crate) mod decide;
mod enforcer;
pub(crate) mod held;
pub(crate) mod objects;
mod probe;
pub(crate) mod prober;
mod queue;
pub(crate) mod told;

use std::collections::BTreeSet;
use std::sync::Arc;

use fairway_controller::{Clients, Json, Manager, ObjectKey, Shutdown, watch};
use fairway_gateway_policy::object::Kind;
use kube::api::Api;
use kube::runtime::watcher::{Config, Event};

use crate::kinds::{policy, resource, served};
use crate::world::World;

pub(crate) use enforcer::{Enforcer, SWEEP, sweep};
pub(crate) use held::{Held, SECRETS};

/// Who judges requests, in the API.
pub const USER: &str = "system:serviceaccount:kube-system:fairway-gateway-policies";

/// The kinds that are followed.
pub(crate) const KINDS: [Kind; 5] = [
    Kind::AuthPolicy,
    Kind::RateLimitPolicy,
    Kind::PlanPolicy,
    Kind::TlsPolicy,
    Kind::DnsPolicy,
];

/// Follows policies, and the Secrets with API keys once there is one.
pub(crate) fn start(manager: &mut Manager, clients: &Clients, world: &Arc<World>, held: &Arc<Held>) {
    for kind in KINDS {
        let (clients, world, held) = (clients.clone(), Arc::clone(world), Arc::clone(held));
        manager.spawn(follow(clients, kind, world, held, manager.shutdown()));
    }
    let (clients, world, held) = (clients.clone(), Arc::clone(world), Arc::clone(held));
    let mut shutdown = manager.shutdown();
    manager.spawn(async move {
        tokio::select! {
            () = shutdown.wait() => {}
            () = held.until_needed() => follow_secrets(clients, world, held, shutdown.clone()).await,
        }
    });
}

async fn follow(clients: Clients, kind: Kind, world: Arc<World>, held: Arc<Held>, shutdown: Shutdown) {
    let api: Api<Json> = Api::all_with(clients.every(), &resource(&policy(kind)));
    let mut brought = BTreeSet::new();
    watch::follow(api, Config::default(), shutdown, |event: Event<Json>| {
        let is_news = match event {
            Event::Init => {
                brought.clear();
                false
            }
            Event::InitApply(object) => {
                let key = ObjectKey::of(&world.reach, &object.metadata);
                brought.insert(key.clone());
                held.put(kind, key, object.value)
            }
            Event::InitDone => {
                held.listed(kind, &std::mem::take(&mut brought));
                true
            }
            Event::Apply(object) => {
                let key = ObjectKey::of(&world.reach, &object.metadata);
                held.put(kind, key, object.value)
            }
            Event::Delete(object) => held.remove(kind, &ObjectKey::of(&world.reach, &object.metadata)),
        };
        if is_news {
            world.changed.notify_one();
        }
    })
    .await;
}

async fn follow_secrets(clients: Clients, world: Arc<World>, held: Arc<Held>, shutdown: Shutdown) {
    let kind = served(fairway_gateway_routes::observed::Kind::Secret);
    let api: Api<Json> = Api::all_with(clients.every(), &resource(&kind));
    let config = Config::default().labels(SECRETS);
    let mut brought = BTreeSet::new();
    watch::follow(api, config, shutdown, |event: Event<Json>| {
        match event {
            Event::Init => brought.clear(),
            Event::InitApply(object) => {
                let key = ObjectKey::of(&world.reach, &object.metadata);
                brought.insert(key.clone());
                held.put_secret(key, object.value);
            }
            Event::InitDone => held.secrets_listed(&std::mem::take(&mut brought)),
            Event::Apply(object) => {
                let key = ObjectKey::of(&world.reach, &object.metadata);
                held.put_secret(key, object.value);
            }
            Event::Delete(object) => held.remove_secret(&ObjectKey::of(&world.reach, &object.metadata)),
        }
        world.changed.notify_one();
    })
    .await;
}
