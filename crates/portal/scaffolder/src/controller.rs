//! The controllers: one that drives Voyages, one that sends their messages.

use std::sync::Arc;

use fairway_api::fairway::VOYAGE;
use fairway_controller::{
    Controller, Failure, Json, Manager, Metrics, ObjectKey, Outcome, Queue, Reconcile, Requests, Shutdown,
    watch,
};
use kube::api::Api;
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Event};

use crate::World;
use crate::drive::Pass;
use crate::outbox::Outbox;
use crate::voyage::Voyage;
use crate::who::collection;

/// How many Voyages are driven at once; one that waits gives its place back.
const WORKERS: usize = 16;
/// How many messages are sent at once.
const SENDERS: usize = 4;

struct Voyages {
    world: Arc<World>,
    shutdown: Shutdown,
    outbox: Queue<ObjectKey>,
}

impl Reconcile<ObjectKey> for Voyages {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let own = Requests::new(self.world.own.of(&key.workspace));
        let path = format!("{}/{}", collection(VOYAGE, &key.namespace), key.name);
        let Some(object) = own.get(&path).await? else {
            return Ok(Outcome::Done);
        };
        let voyage = Voyage::read(&key.workspace, object);
        if voyage.notices.iter().any(|notice| notice["state"] == "waiting") {
            self.outbox.add(key.clone());
        }
        Pass::new(Arc::clone(&self.world), voyage, self.shutdown.clone())
            .run()
            .await
    }
}

/// Runs both until the end.
pub(crate) async fn run(world: Arc<World>, metrics: Arc<Metrics>, shutdown: Shutdown) {
    let mut manager = Manager::new(world.options.clients.clone(), metrics, shutdown.clone());
    let (queue, outbox): (Queue<ObjectKey>, Queue<ObjectKey>) = (Queue::default(), Queue::default());
    let resource = ApiResource {
        group: VOYAGE.group.to_owned(),
        version: VOYAGE.version.to_owned(),
        api_version: VOYAGE.api_version(),
        kind: VOYAGE.kind.to_owned(),
        plural: VOYAGE.plural.to_owned(),
    };
    let api: Api<Json> = Api::all_with(world.own.every(), &resource);
    let (sink, reach) = (queue.clone(), world.own.reach().clone());
    manager.spawn(watch::follow(
        api,
        watcher::Config::default(),
        shutdown.clone(),
        move |event: Event<Json>| {
            if let Event::Apply(object) | Event::InitApply(object) = event {
                sink.add(ObjectKey::of(&reach, &object.metadata));
            }
        },
    ));
    let voyages = Voyages {
        world: Arc::clone(&world),
        shutdown: shutdown.clone(),
        outbox: outbox.clone(),
    };
    let driving = Controller::new("voyages", queue, voyages).workers(WORKERS);
    manager.spawn(driving.run(manager.metrics(), shutdown.clone()));
    let sending = Controller::new("voyage-messages", outbox, Outbox { world }).workers(SENDERS);
    manager.spawn(sending.run(manager.metrics(), shutdown));
    manager.run().await;
}
