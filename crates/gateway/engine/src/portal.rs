//! The developer portal's controllers: APIProducts learn what their routes offer, APIKeys become Secrets once they are
//! approved.
//!
//! ```text
//! watches ─ caches ─ queue of products, keys, approvals ─ policy::portal decides ─ requests, approvals, Secrets, statuses
//! ```
//!
//! Until there is a product, a key or a request, only those three kinds are watched. Keys are read where they are needed and
//! never kept: the watch of Secrets tells that one has changed, and forgets it.

mod documents;
mod keys;
mod products;
mod seen;

use std::fmt;
use std::sync::Arc;

use fairway_controller::queue::WorkKey;
use fairway_controller::{
    Clients, Controller, Failure, Manager, ObjectKey, Outcome, Queue, Reconcile, Requests, Shutdown,
    WorkspaceId,
};
use fairway_gateway_gatekeeper::Realms;
use fairway_gateway_policy::status::Condition;
use fairway_outbound::Outbound;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use crate::statuses::{MANAGER, now};
use documents::Documents;
use seen::Seen;

/// Who gives keys to developers, in the API.
pub const USER: &str = "system:serviceaccount:kube-system:fairway-gateway-portal";

/// Where the Secrets are that authentication reads, as Kuadrant has it.
const SYSTEM_NAMESPACE: &str = "kuadrant-system";
/// Objects that are looked at at the same time.
const WORKERS: usize = 4;

/// What there is to look at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Work {
    Product(ObjectKey),
    Key(ObjectKey),
    Approval(ObjectKey),
}

impl Work {
    fn key(&self) -> &ObjectKey {
        match self {
            Self::Product(key) | Self::Key(key) | Self::Approval(key) => key,
        }
    }
}

impl WorkKey for Work {
    fn workspace(&self) -> &WorkspaceId {
        &self.key().workspace
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Product(_) => "APIProduct",
            Self::Key(_) => "APIKey",
            Self::Approval(_) => "APIKeyApproval",
        };
        write!(f, "{kind} {}", self.key())
    }
}

/// Starts them.
pub(crate) fn start(manager: &mut Manager, outbound: Arc<Outbound>, realms: Arc<dyn Realms>) {
    let clients = manager.clients(USER);
    let queue = Queue::<Work>::default();
    let seen = Arc::new(Seen::new(clients.reach()));
    seen::watch(manager, &clients, &seen, &queue);
    if let Some(changes) = realms.comings_and_goings() {
        manager.spawn(follow_people(
            changes,
            Arc::clone(&seen),
            queue.clone(),
            manager.shutdown(),
        ));
    }
    let portal = Portal {
        clients,
        seen,
        realms,
        documents: Documents::new(outbound),
    };
    let controller = Controller::new("gateway-portal", queue, portal).workers(WORKERS);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

/// Has keys looked at that users of realms asked for, when one of them comes or goes.
async fn follow_people(
    mut changes: watch::Receiver<u64>,
    seen: Arc<Seen>,
    queue: Queue<Work>,
    mut shutdown: Shutdown,
) {
    loop {
        tokio::select! {
            changed = changes.changed() => if changed.is_err() {
                return;
            },
            () = shutdown.wait() => return,
        }
        for key in seen.keys.keys_where(|_, key| keys::requester(key).is_some()) {
            queue.add(Work::Key(key));
        }
    }
}

struct Portal {
    clients: Clients,
    seen: Arc<Seen>,
    realms: Arc<dyn Realms>,
    documents: Documents,
}

impl Reconcile<Work> for Portal {
    async fn reconcile(&self, work: &Work) -> Result<Outcome, Failure> {
        if !self.seen.is_synced() {
            return Ok(Outcome::Poll);
        }
        match work {
            Work::Product(key) => self.product(key).await,
            Work::Key(key) => self.key(key).await,
            Work::Approval(key) => self.approval(key).await,
        }
    }
}

impl Portal {
    fn requests(&self, workspace: &WorkspaceId) -> Requests {
        Requests::new(self.clients.of(workspace))
    }
}

/// Writes a status where it differs; fails if the object has changed since it was seen.
async fn tell(requests: &Requests, path: &str, object: &Value, status: Value) -> Result<(), Failure> {
    let before = object.get("status").cloned().unwrap_or_else(|| json!({}));
    let Some(difference) = fairway_controller::commit::difference(&before, &status) else {
        return Ok(());
    };
    let patch = json!({
        "metadata": {
            "uid": object["metadata"]["uid"], "resourceVersion": object["metadata"]["resourceVersion"],
        },
        "status": difference,
    });
    let path = format!("{path}/status?fieldManager={MANAGER}");
    requests.merge(&path, &patch).await.map(drop)
}

/// A status with these conditions; those that say what they said keep their times.
fn status(object: &Value, conditions: &[Condition], mut rest: Map<String, Value>) -> Value {
    let (now, generation) = (now(), &object["metadata"]["generation"]);
    let old = object["status"]["conditions"].as_array();
    let written = conditions.iter().map(|condition| {
        let mut old = old.into_iter().flatten();
        let since = old
            .find(|it| it["type"] == condition.r#type && it["status"] == condition.status())
            .and_then(|it| it["lastTransitionTime"].as_str());
        json!({
            "type": condition.r#type, "status": condition.status(), "reason": condition.reason,
            "message": condition.message, "observedGeneration": generation,
            "lastTransitionTime": since.unwrap_or(&now),
        })
    });
    rest.insert("conditions".to_owned(), written.collect());
    Value::Object(rest)
}
