//! Keeps what is made for Gateways: classes that they name, and Services that lead to their listeners.

mod tries;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairway_api::Kind;
use fairway_api::gateway::{GATEWAY_CLASS, RATE_LIMIT_POLICY};
use fairway_controller::{Clients, Failure, ObjectKey, Requests, Shutdown, WorkspaceId};
use fairway_gateway_routes::observed::Kind as Seen;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::classes;
use crate::kinds::{ENDPOINT_SLICE, SERVICE, collection, path};
use crate::policies::Held;
use crate::policies::objects;
use crate::services::{self, GatewayService};
use crate::statuses::MANAGER;
use crate::world::World;
use tries::{News, Tries};

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
    let mut tries = Tries::default();
    let mut again = None;
    loop {
        let later = async {
            match again {
                None => std::future::pending().await,
                Some(at) => tokio::time::sleep_until(at).await,
            }
        };
        tokio::select! {
            () = shutdown.wait() => return,
            changed = wanted.changed() => if changed.is_err() { return },
            () = later => {}
        }
        let now = wanted.borrow_and_update().clone();
        tries.begin();
        let mut pass = Pass {
            clients: &clients,
            tries: &mut tries,
        };
        pass.classes(&now).await;
        pass.services(&world, &now).await;
        let mut of_plans = Pass {
            clients: &of_policies,
            tries: &mut tries,
        };
        of_plans.limits(&held, &now).await;
        again = tries.end();
    }
}

/// One look at everything. Each object is tried, whatever became of the others.
struct Pass<'a> {
    clients: &'a Clients,
    tries: &'a mut Tries,
}

impl Pass<'_> {
    /// Tries something, if it is due.
    async fn attempt(
        &mut self,
        (kind, key): (&Kind, &ObjectKey),
        wanted: &Value,
        act: impl AsyncFnOnce(Requests) -> Result<(), Failure>,
    ) {
        let path = path(kind, key);
        // Workspaces have the same paths.
        let id = format!("{}{path}", key.workspace);
        if !self.tries.is_due(&id, wanted, Instant::now()) {
            return;
        }
        let outcome = act(Requests::new(self.clients.of(&key.workspace))).await;
        let outcome = outcome.map_err(|failure| failure.sentence());
        let why = outcome.as_ref().err().cloned().unwrap_or_default();
        match self.tries.take(&id, wanted, outcome, Instant::now()) {
            News::Nothing if why.is_empty() => {}
            News::Nothing => debug!(%path, %key, why, "what a Gateway needs is not there yet"),
            News::Fails => warn!(%path, %key, why, "what a Gateway needs cannot be made; it is tried again"),
            News::Works => info!(%path, %key, "what a Gateway needs is there again"),
        }
    }

    async fn classes(&mut self, wanted: &Wanted) {
        for (workspace, class) in &wanted.classes {
            let key = ObjectKey::new(workspace, "", class);
            let object = classes::object(class);
            self.attempt((&GATEWAY_CLASS, &key), &object, async |requests| {
                let all = collection(&GATEWAY_CLASS, "");
                requests.create(&all, &object).await.map(drop)
            })
            .await;
        }
    }

    async fn services(&mut self, world: &World, wanted: &Wanted) {
        for made in wanted.services.iter() {
            for (kind, of, object) in [
                (Seen::Service, SERVICE, &made.service),
                (Seen::EndpointSlice, ENDPOINT_SLICE, &made.slice),
            ] {
                let there = world.seen().own.get(&(kind, made.key.clone())).cloned();
                self.attempt((&of, &made.key), object, async |requests| {
                    put(&requests, &of, &made.key, there.as_ref(), object).await
                })
                .await;
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
            self.attempt((&of, &key), &Value::Null, async |requests| {
                requests.delete_read(&path(&of, &key), &object).await
            })
            .await;
        }
    }

    /// The RateLimitPolicies of PlanPolicies. Those of policies that are gone go with their owner.
    async fn limits(&mut self, held: &Held, wanted: &Wanted) {
        let writes = objects::limits_to_write(&held.seen(), &wanted.limits);
        for (key, object, is_new) in writes {
            self.attempt((&RATE_LIMIT_POLICY, &key), &object, async |requests| {
                if is_new {
                    let all = collection(&RATE_LIMIT_POLICY, &key.namespace);
                    return requests.create(&all, &object).await.map(drop);
                }
                let path = format!("{}?fieldManager={MANAGER}", path(&RATE_LIMIT_POLICY, &key));
                let patch = json!({"spec": object["spec"]});
                requests.merge(&path, &patch).await.map(drop)
            })
            .await;
        }
    }
}

async fn put(
    requests: &Requests,
    kind: &Kind,
    key: &ObjectKey,
    there: Option<&Value>,
    wanted: &Value,
) -> Result<(), Failure> {
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

#[cfg(test)]
mod tests {
    use fairway_controller::fake::Script;

    use super::*;

    #[tokio::test]
    async fn what_one_is_refused_others_get() {
        let all = "/apis/gateway.networking.k8s.io/v1/gatewayclasses";
        let script = Script::new()
            .refuse("POST", all, 403, "Forbidden")
            .expect("POST", all, 201, json!({}));
        let mut wanted = Wanted {
            classes: [(WorkspaceId::root(), "fairway"), (WorkspaceId::root(), "istio")].into(),
            ..Wanted::default()
        };
        let mut tries = Tries::default();
        let clients = script.clients();
        let mut pass = Pass {
            clients: &clients,
            tries: &mut tries,
        };
        pass.classes(&wanted).await;
        // The one that is there is no longer wanted; the other waits for its turn.
        wanted.classes.pop_last();
        pass.classes(&wanted).await;
        assert_eq!(script.finish().len(), 2);
        assert!(tries.end().is_some_and(|again| again > Instant::now()));
    }
}
