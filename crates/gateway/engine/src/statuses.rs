//! Writes what is said of objects, where it is not what they say already.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::commit::difference;
use fairway_controller::{Clients, Failure, ObjectKey, Requests, Shutdown, WorkspaceId};
use fairway_gateway_policy::object::PolicyKey;
use fairway_gateway_policy::status::Condition;
use fairway_gateway_routes::status::Status;
use futures::StreamExt as _;
use jiff::{Timestamp, Unit};
use serde_json::{Value, json};
use tokio::sync::watch;
use tracing::{debug, warn};

use crate::classes::CONTROLLERS;
use crate::kinds::{path, policy, served};
use crate::policies::{self, Held};
use crate::world::{Current, Id, Seen, World};

/// In whose name fields are written.
pub(crate) const MANAGER: &str = "fairway-gateway";
/// Writes at the same time.
const WRITERS: usize = 8;
/// Statuses that are laid out at a time, while nobody else can look at the world.
const AT_A_TIME: usize = 256;
/// Before what somebody else overtook is written again; it grows up to the last.
const RETRY: [Duration; 4] = [
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::from_secs(1),
    Duration::from_secs(10),
];

/// What the latest table means for objects.
pub(crate) type Told = Arc<Vec<Arc<Status>>>;

/// What the latest guards mean for policies.
pub(crate) type PoliciesTold = Arc<BTreeMap<PolicyKey, Vec<Condition>>>;

/// A patch, the path that it goes to, and whose it is.
type Write = (String, ObjectKey, Value);

/// Writes statuses of Gateways and routes until the end.
pub(crate) async fn write(
    clients: Clients,
    world: Arc<World>,
    told: watch::Receiver<Told>,
    shutdown: Shutdown,
) {
    let mut said = Said::default();
    let patches = move |statuses: &Told, now: &str| {
        let before = std::mem::take(&mut said);
        let mut patches = Vec::new();
        for some in statuses.chunks(AT_A_TIME) {
            let seen = world.seen();
            for status in some {
                patches.extend(write_of(status, &seen, (&before, &mut said), now));
            }
        }
        patches
    };
    follow(clients, told, shutdown, patches).await;
}

/// Objects that say what they are to say: which status that is, and the version that says it. There may be thousands, and mostly
/// one has changed.
type Said = HashMap<Id, (Arc<Status>, String)>;

fn write_of(
    status: &Arc<Status>,
    seen: &Seen,
    (before, said): (&Said, &mut Said),
    now: &str,
) -> Option<Write> {
    let key = ObjectKey::new(
        &WorkspaceId::parse(&status.workspace).ok()?,
        &status.name.namespace,
        &status.name.name,
    );
    let id = (status.kind, key);
    let current = seen.current.get(&id)?;
    let is_said = (before.get(&id))
        .is_some_and(|(known, version)| Arc::ptr_eq(known, status) && *version == current.version);
    let patch = match is_said {
        true => None,
        false => patch(status, current, now),
    };
    match patch {
        Some(patch) => Some((path(&served(status.kind), &id.1), id.1, patch)),
        None => {
            said.insert(id, (Arc::clone(status), current.version.clone()));
            None
        }
    }
}

/// Writes statuses of policies until the end.
pub(crate) async fn write_policies(
    clients: Clients,
    held: Arc<Held>,
    told: watch::Receiver<PoliciesTold>,
    shutdown: Shutdown,
) {
    let patches = move |conditions: &PoliciesTold, now: &str| {
        let seen = held.seen();
        let patches = conditions.iter().filter_map(|(key, conditions)| {
            let one = seen.policies.get(key)?;
            let patch = policies::told::patch(one, conditions, now)?;
            Some((path(&policy(key.kind), &one.key), one.key.clone(), patch))
        });
        patches.collect()
    };
    follow(clients, told, shutdown, patches).await;
}

/// Writes what follows from the latest that was told; again, if somebody else was quicker.
async fn follow<T: Clone>(
    clients: Clients,
    mut told: watch::Receiver<T>,
    mut shutdown: Shutdown,
    mut patches: impl FnMut(&T, &str) -> Vec<Write>,
) {
    let mut failures = 0;
    loop {
        let retry = RETRY.get(failures.min(RETRY.len()).wrapping_sub(1));
        let later = async {
            match retry {
                Some(pause) => tokio::time::sleep(*pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = shutdown.wait() => return,
            changed = told.changed() => if changed.is_err() { return },
            () = later => {}
        }
        let latest = told.borrow_and_update().clone();
        let writes = patches(&latest, &now()).into_iter().map(|(path, key, patch)| {
            let requests = Requests::new(clients.of(&key.workspace));
            async move { (send(&requests, &path, &patch).await, path, key) }
        });
        let mut writes = futures::stream::iter(writes).buffer_unordered(WRITERS);
        let mut failed = false;
        while let Some((outcome, path, key)) = writes.next().await {
            if let Err(failure) = outcome {
                failed = true;
                // Mostly somebody else was quicker, and the watch has not told yet.
                match failures < RETRY.len() {
                    true => debug!(%path, %key, failure = failure.sentence(), "a status is written again"),
                    false => warn!(%path, %key, failure = failure.sentence(), "a status cannot be written"),
                }
            }
        }
        failures = if failed { failures + 1 } else { 0 };
    }
}

async fn send(requests: &Requests, path: &str, patch: &Value) -> Result<(), Failure> {
    let path = format!("{path}/status?fieldManager={MANAGER}");
    requests.merge(&path, patch).await.map(drop)
}

/// The patch of an object's status; nothing if it says all of this already. It fails if the object has changed since it was
/// seen.
fn patch(status: &Status, current: &Current, now: &str) -> Option<Value> {
    let controllers: BTreeSet<String> = CONTROLLERS.iter().map(|&name| name.to_owned()).collect();
    let wanted = status.over(&current.status, &controllers, now);
    let before = match &current.status {
        Value::Null => json!({}),
        status => status.clone(),
    };
    let difference = difference(&before, &wanted)?;
    Some(json!({
        "metadata": {"uid": current.uid, "resourceVersion": current.version},
        "status": difference,
    }))
}

/// As conditions write it.
pub(crate) fn now() -> String {
    let now = Timestamp::now();
    now.round(Unit::Second).unwrap_or(now).to_string()
}
