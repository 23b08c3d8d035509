//! Keeps what is made for Gateways: classes that they name, and Services that lead to their listeners.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fairway_api::Kind;
use fairway_api::gateway::GATEWAY_CLASS;
use fairway_controller::{Clients, Failure, ObjectKey, Requests, Shutdown, WorkspaceId};
use fairway_gateway_routes::observed::Kind as Seen;
use serde_json::Value;
use tokio::sync::watch;
use tracing::{debug, warn};

use crate::classes;
use crate::kinds::{ENDPOINT_SLICE, SERVICE, collection, path};
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
}

/// Keeps it until the end.
pub(crate) async fn keep(
    clients: Clients,
    world: Arc<World>,
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
        match pass(&clients, &world, &now).await {
            Ok(()) => failures = 0,
            Err(failure) => {
                failures = failures.saturating_add(1);
                match failures < WORTH_TELLING {
                    true => debug!(%failure, "what Gateways need is not all there yet"),
                    false => warn!(%failure, "what Gateways need cannot be made"),
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
    match services::correction(there, wanted) {
        Some(patch) => {
            let path = format!("{}?fieldManager={MANAGER}", path(kind, key));
            requests.merge(&path, &patch).await.map(drop)
        }
        None => Ok(()),
    }
}
