//! Keeps what is made for Gateways: classes that they name, and Services that lead to their listeners.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fairway_api::Kind;
use fairway_api::gateway::{GATEWAY_CLASS, RATE_LIMIT_POLICY};
use fairway_controller::{Clients, Failure, ObjectKey, Requests, Shutdown, WorkspaceId};
use fairway_gateway_routes::observed::Kind as Seen;
use serde_json::{Value, json};
use tokio::sync::watch;
use tracing::{debug, warn};

use crate::classes;
use crate::kinds::{ENDPOINT_SLICE, SERVICE, collection, path};
use crate::policies::Held;
use crate::policies::objects;
use crate::services::{self, GatewayService};
use crate::statuses::MANAGER;
use crate::world::World;

/// Before what failed is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// Failures in a row that are worth a line.
const WORTH_TELLING: u32 = 3;

/// What there should be.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) classes: BTreeSet<(WorkspaceId, &'static str)>,
    pub(crate) services: Arc<Vec<GatewayService>>,
    /// RateLimitPolicies that stand for PlanPolicies.
    pub(crate) limits: Arc<BTreeMap<ObjectKey, Value>>,
}

/// Keeps it until the end.
pub(crate) async fn keep(
    (clients, of_policies): (Clients, Clients),
    (world, held): (Arc<World>, Arc<Held>),
    mut wanted: watch::Receiver<Wanted>,
    mut shutdown: Shutdown,
) {
    let mut failures = 0_u32;
    loop {
        let later = async {
            match failures {
                0 => std::future::pending().await,
                _ => tokio::time::sleep(RETRY).await,
            }
        };
        tokio::select! {
            () = shutdown.wait() => return,
            changed = wanted.changed() => if changed.is_err() { return },
            () = later => {}
        }
        let now = wanted.borrow_and_update().clone();
        let outcome = pass(&clients, &world, &now).await;
        let of_plans = limits(&of_policies, &held, &now).await;
        match outcome.and(of_plans) {
            Ok(()) => failures = 0,
            Err(failure) => {
                failures = failures.saturating_add(1);
                match failures < WORTH_TELLING {
                    true => debug!(
                        failure = failure.sentence(),
                        "what Gateways need is not all there yet"
                    ),
                    false => warn!(failure = failure.sentence(), "what Gateways need cannot be made"),
                }
            }
        }
    }
}

async fn pass(clients: &Clients, world: &World, wanted: &Wanted) -> Result<(), Failure> {
    for (workspace, class) in &wanted.classes {
        let requests = Requests::new(clients.of(workspace));
        let all = collection(&GATEWAY_CLASS, "");
        requests.create(&all, &classes::object(class)).await?;
    }
    // Each is tried, whatever became of the others.
    let mut outcome = Ok(());
    for made in wanted.services.iter() {
        for (kind, of, object) in [
            (Seen::Service, SERVICE, &made.service),
            (Seen::EndpointSlice, ENDPOINT_SLICE, &made.slice),
        ] {
            let there = world.seen().own.get(&(kind, made.key.clone())).cloned();
            let kept = put(clients, &of, &made.key, there.as_ref(), object).await;
            outcome = outcome.and(kept);
        }
    }
    let surplus: Vec<(Seen, ObjectKey, Value)> = {
        let seen = world.seen();
        let unwanted = seen.own.iter().filter(|((_, key), _)| {
            // A name may have changed its class.
            !wanted.services.iter().any(|made| made.key == *key)
        });
        unwanted
            .map(|((kind, key), object)| (*kind, key.clone(), object.clone()))
            .collect()
    };
    for (kind, key, object) in surplus {
        let of = if kind == Seen::Service {
            SERVICE
        } else {
            ENDPOINT_SLICE
        };
        let requests = Requests::new(clients.of(&key.workspace));
        outcome = outcome.and(requests.delete_read(&path(&of, &key), &object).await);
    }
    outcome
}

/// The RateLimitPolicies of PlanPolicies. Those of policies that are gone go with their owner.
async fn limits(clients: &Clients, held: &Held, wanted: &Wanted) -> Result<(), Failure> {
    let writes = objects::limits_to_write(&held.seen(), &wanted.limits);
    for (key, object, is_new) in writes {
        let requests = Requests::new(clients.of(&key.workspace));
        let all = collection(&RATE_LIMIT_POLICY, &key.namespace);
        match is_new {
            true => drop(requests.create(&all, &object).await?),
            false => {
                let path = format!("{}?fieldManager={MANAGER}", path(&RATE_LIMIT_POLICY, &key));
                requests.merge(&path, &json!({"spec": object["spec"]})).await?;
            }
        }
    }
    Ok(())
}

async fn put(
    clients: &Clients,
    kind: &Kind,
    key: &ObjectKey,
    there: Option<&Value>,
    wanted: &Value,
) -> Result<(), Failure> {
    let requests = Requests::new(clients.of(&key.workspace));
    let Some(there) = there else {
        let all = format!("{}?fieldManager={MANAGER}", collection(kind, &key.namespace));
        // One of that name which is not ours stays as it is.
        return requests.create(&all, wanted).await.map(drop);
    };
    if there.get("addressType") != wanted.get("addressType") {
        // It cannot be changed; the next pass makes another one.
        return requests.delete_read(&path(kind, key), there).await;
    }
    match services::correction(there, wanted) {
        Some(patch) => {
            let path = format!("{}?fieldManager={MANAGER}", path(kind, key));
            requests.merge(&path, &patch).await.map(drop)
        }
        None => Ok(()),
    }
}
