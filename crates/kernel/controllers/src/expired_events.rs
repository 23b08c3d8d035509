//! Events last an hour after their last change.
//!
//! Upstream leaves this to leases in etcd. Here the metadata is watched: a change that is seen happening is fresh; for what
//! was there before, the newest time in the metadata counts.

use std::sync::Arc;
use std::time::Duration;

use fairway_controller::cache::Cache;
use fairway_controller::error::{is_conflict, is_not_found};
use fairway_controller::{
    Attempt as _, Clients, Controller, Failure, Manager, ObjectKey, Outcome, Queue, Reconcile, watch,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, DeleteParams, ObjectMeta, PartialObjectMeta, Preconditions};
use kube::runtime::watcher::{self, Event as Change};

use crate::{Setup, users};

const NAME: &str = "event-ttl";
const WORKERS: usize = 4;

/// What is kept of an event.
#[derive(Clone, Debug)]
struct Seen {
    changed: Timestamp,
    resource_version: Option<String>,
}

struct ExpiredEvents {
    clients: Clients,
    cache: Arc<Cache<Seen>>,
    ttl: Duration,
}

pub(crate) fn register(manager: &mut Manager, setup: &Setup) {
    let clients = manager.clients(users::EVENT_TTL_CONTROLLER);
    let (queue, cache) = (Queue::default(), Arc::new(Cache::new(manager.reach())));
    let ttl = setup.options.event_ttl;
    let api: Api<PartialObjectMeta<Event>> = Api::all(clients.every());
    let (sink, seen) = (queue.clone(), Arc::clone(&cache));
    manager.spawn(watch::follow(
        api,
        watcher::Config::default(),
        manager.shutdown(),
        move |change| {
            let live = matches!(change, Change::Apply(_));
            let gone = matches!(change, Change::Delete(_));
            let keys = seen.take(change, |event: PartialObjectMeta<Event>| Seen {
                changed: if live {
                    Timestamp::now()
                } else {
                    last_change(&event.metadata)
                },
                resource_version: event.metadata.resource_version,
            });
            for key in keys.into_iter().filter(|_| !gone) {
                // A fresh event is looked at when its time has come; one from an earlier life perhaps at once.
                sink.add_after(key, if live { ttl } else { Duration::ZERO });
            }
        },
    ));
    let controller = Controller::new(NAME, queue, ExpiredEvents { clients, cache, ttl }).workers(WORKERS);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

/// The newest time that the metadata tells.
fn last_change(meta: &ObjectMeta) -> Timestamp {
    let managed = meta
        .managed_fields
        .iter()
        .flatten()
        .filter_map(|entry| entry.time.as_ref());
    let times = managed.chain(meta.creation_timestamp.as_ref()).map(|time| time.0);
    times.max().unwrap_or(Timestamp::UNIX_EPOCH)
}

/// How long the event may stay; `None`: its time is over.
fn decide(changed: Timestamp, ttl: Duration, now: Timestamp) -> Option<Duration> {
    let age = Duration::try_from(now.duration_since(changed)).unwrap_or_default();
    ttl.checked_sub(age).filter(|left| !left.is_zero())
}

impl Reconcile<ObjectKey> for ExpiredEvents {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let Some(seen) = self.cache.get(key) else {
            return Ok(Outcome::Done);
        };
        if let Some(left) = decide(seen.changed, self.ttl, Timestamp::now()) {
            return Ok(Outcome::Again(left));
        }
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                resource_version: seen.resource_version.clone(),
                uid: None,
            }),
            ..DeleteParams::default()
        };
        let api: Api<PartialObjectMeta<Event>> =
            Api::namespaced(self.clients.of(&key.workspace), &key.namespace);
        match api.delete(&key.name, &params).await {
            // It is gone already, or has changed: the watch will tell.
            Err(error) if is_not_found(&error) || is_conflict(&error) => Ok(Outcome::Done),
            answer => answer
                .attempting("delete an expired event")
                .map(|_| Outcome::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use kube::api::ObjectMeta;
    use serde_json::json;

    use super::{decide, last_change};

    #[test]
    fn an_event_lasts_its_time() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let hour = Duration::from_secs(3600);
        for (changed, now, want) in [
            (0, 0, Some(3600)),
            (0, 3599, Some(1)),
            (0, 3600, None),
            (0, 9999, None),
            (50, 0, Some(3600)),
        ] {
            let want = want.map(Duration::from_secs);
            assert_eq!(decide(at(changed), hour, at(now)), want, "{changed} {now}");
        }
    }

    #[test]
    fn the_newest_time_counts() {
        let meta: ObjectMeta = serde_json::from_value(json!({
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [{"time": "2026-01-01T00:05:00Z"}, {"time": "2026-01-01T00:03:00Z"}],
        }))
        .unwrap();
        assert_eq!(last_change(&meta).to_string(), "2026-01-01T00:05:00Z");
        assert_eq!(last_change(&ObjectMeta::default()), Timestamp::UNIX_EPOCH);
    }
}
