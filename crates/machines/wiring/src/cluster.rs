//! The cluster's side: what needs no host.

use std::sync::Arc;

use fairway_api::kubevirt::VIRTUAL_MACHINE_INSTANCE;
use fairway_controller::cache::Cache;
use fairway_controller::{Manager, Metrics, Shutdown};
use kube::runtime::watcher::Config;

use crate::settings::Options;
use crate::view::Instance;
use crate::watches::{Needed, follow};
use crate::{USER, address, balancer, endpoints};

/// Gives machines their addresses, and Services their endpoints and addresses, until the end.
pub async fn run(options: Options, metrics: Arc<Metrics>, shutdown: Shutdown) {
    let mut manager = Manager::new(options.clients.clone(), metrics, shutdown);
    let clients = manager.clients(USER);
    let instances: Arc<Cache<Instance>> = Arc::new(Cache::new(clients.reach()));
    let needed = Needed::new();
    let addresses = address::start(&mut manager, &options.settings, &instances);
    let endpoints = endpoints::start(&mut manager, &instances, &needed);
    balancer::start(&mut manager, &options.settings, options.served);
    manager.spawn(follow(
        clients,
        VIRTUAL_MACHINE_INSTANCE,
        Config::default(),
        manager.shutdown(),
        instances,
        Instance::read,
        move |change| {
            needed.now();
            addresses.add(change.key.clone());
            endpoints.instance(&change);
        },
    ));
    manager.run().await;
}
