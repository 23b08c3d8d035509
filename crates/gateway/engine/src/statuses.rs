//! Writes what is said of objects, where it is not what they say already.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::commit::difference;
use fairway_controller::{Clients, Failure, ObjectKey, Requests, Shutdown, WorkspaceId};
use fairway_gateway_routes::status::Status;
use futures::StreamExt as _;
use jiff::{Timestamp, Unit};
use serde_json::{Value, json};
use tokio::sync::watch;
use tracing::{debug, warn};

use crate::classes::CONTROLLERS;
use crate::kinds::{path, served};
use crate::world::{Current, World};

/// In whose name fields are written.
pub(crate) const MANAGER: &str = "fairway-gateway";
/// Writes at the same time.
const WRITERS: usize = 8;
/// Before what somebody else overtook is written again; it grows up to the last.
const RETRY: [Duration; 4] = [
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::from_secs(1),
    Duration::from_secs(10),
];

/// What the latest table means for objects.
pub(crate) type Told = Arc<Vec<Status>>;

/// Writes until the end.
pub(crate) async fn write(
    clients: Clients,
    world: Arc<World>,
    mut told: watch::Receiver<Told>,
    mut shutdown: Shutdown,
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
        let statuses = Arc::clone(&told.borrow_and_update());
        let now = now();
        let patches = {
            let seen = world.seen();
            let patches = statuses.iter().filter_map(|status| {
                let key = ObjectKey::new(
                    &WorkspaceId::parse(&status.workspace).ok()?,
                    &status.name.namespace,
                    &status.name.name,
                );
                let current = seen.current.get(&(status.kind, key.clone()))?;
                let patch = patch(status, current, &now)?;
                Some((format!("{}/status", path(&served(status.kind), &key)), key, patch))
            });
            patches.collect::<Vec<_>>()
        };
        let writes = patches.into_iter().map(|(path, key, patch)| {
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
                    true => debug!(%path, %key, %failure, "a status is written again"),
                    false => warn!(%path, %key, %failure, "a status cannot be written"),
                }
            }
        }
        failures = if failed { failures + 1 } else { 0 };
    }
}

async fn send(requests: &Requests, path: &str, patch: &Value) -> Result<(), Failure> {
    let path = format!("{path}?fieldManager={MANAGER}");
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
fn now() -> String {
    let now = Timestamp::now();
    now.round(Unit::Second).unwrap_or(now).to_string()
}
