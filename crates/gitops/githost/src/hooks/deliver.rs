//! Sends what is due: a controller whose objects are the files of the outbox.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairway_controller::{
    Attempt as _, Controller, Failure, Manager, ObjectKey, Outcome, Reconcile, WorkspaceId,
};
use fairway_gitops_git::Repository;
use fairway_outbound::{Reply, SendError};
use serde_json::{Value, json};
use tracing::{debug, info};

use super::hook::Hook;
use super::message::message;
use super::outbox::{self, Task};
use super::store;
use crate::gitea::records;
use crate::host::Host;

const NAME: &str = "git-hooks";
/// How many are sent at once, and of these for one workspace: its receivers may all be asleep.
const WORKERS: usize = 16;
const OF_ONE: usize = 4;
/// How soon a delivery looks again for a place.
const CROWDED: Duration = Duration::from_millis(250);
/// The time before each further attempt. When there is none left, the delivery is given up.
const PAUSES: [u64; 5] = [5, 30, 120, 600, 3600];
/// The most deliveries that are remembered of a hook, and the largest payload that is: without it nothing can be sent again.
const MAX_HISTORY: usize = 20;
const MAX_PAYLOAD: usize = 128 << 10;

/// What follows from an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// It has arrived.
    Arrived,
    /// It is tried again after this time.
    Again(Duration),
    /// It is of no use.
    GivenUp,
}

/// What follows from the outcome of the attempt that comes after `earlier` others.
pub(crate) fn after(earlier: u32, outcome: &Result<Reply, SendError>) -> After {
    let is_passing = match outcome {
        Ok(reply) if (200..300).contains(&reply.status) => return After::Arrived,
        // Who answers that the request is wrong will say so again.
        Ok(reply) => matches!(reply.status, 408 | 425 | 429) || reply.status >= 500,
        Err(error) => !error.is_final(),
    };
    let pause = usize::try_from(earlier).ok().and_then(|place| PAUSES.get(place));
    match (is_passing, pause) {
        (true, Some(seconds)) => After::Again(Duration::from_secs(*seconds)),
        _ => After::GivenUp,
    }
}

struct Deliveries {
    host: Arc<Host>,
    busy: Mutex<HashMap<WorkspaceId, usize>>,
}

/// A place among those that are sent for a workspace.
struct Place<'a>(&'a Deliveries, WorkspaceId);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut busy = self.0.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = busy.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                busy.remove(&self.1);
            }
        }
    }
}

/// Sends until the end. What an earlier process has left comes first.
pub fn start(manager: &mut Manager, host: &Arc<Host>) {
    let queue = host.hooks().queue.clone();
    let left = Arc::clone(host);
    manager.spawn(async move {
        let looked = tokio::task::spawn_blocking(move || {
            for found in left.place().list() {
                let Ok(workspace) = WorkspaceId::parse(&found.workspace) else {
                    continue;
                };
                for id in outbox::waiting(&left.place().path(&found.workspace, &found.name)) {
                    left.hooks().queue.add(ObjectKey {
                        workspace: workspace.clone(),
                        namespace: found.name.clone(),
                        name: id,
                    });
                }
            }
        });
        let _ = looked.await;
    });
    let deliveries = Deliveries {
        host: Arc::clone(host),
        busy: Mutex::default(),
    };
    let controller = Controller::new(NAME, queue, deliveries).workers(WORKERS);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

impl Deliveries {
    fn place(&self, workspace: &WorkspaceId) -> Option<Place<'_>> {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        let count = busy.entry(workspace.clone()).or_default();
        if *count >= OF_ONE {
            return None;
        }
        *count += 1;
        Some(Place(self, workspace.clone()))
    }

    /// The hook that a delivery is for; nothing if it is gone or asleep.
    async fn hook(&self, key: &ObjectKey, task: &Task) -> Result<Option<Hook>, Failure> {
        let slug = &key.namespace;
        let client = self.host.client_at(key.workspace.as_str());
        let object = crate::catalog::api(client.clone()).get_opt(slug).await;
        let Some(object) = object.attempting("look at a Repository")? else {
            return Ok(None);
        };
        let wanted = crate::catalog::Wanted::read(key.workspace.as_str(), &object.value);
        let hooks = store::list(client, &wanted).await.attempting("read webhooks")?;
        Ok(hooks.into_iter().find(|hook| hook.id == task.hook && hook.active))
    }
}

impl Reconcile<ObjectKey> for Deliveries {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let path = self.host.place().path(key.workspace.as_str(), &key.namespace);
        let Some(_place) = self.place(&key.workspace) else {
            return Ok(Outcome::Again(CROWDED));
        };
        let task = outbox::get(path.clone(), key.name.clone()).await;
        let Some(mut task) = on_disk(task, "read a delivery")? else {
            return Ok(Outcome::Done);
        };
        let Ok(repository) = Repository::open(self.host.place().git(), path.clone()) else {
            return Ok(Outcome::Done);
        };
        let Some(hook) = self.hook(key, &task).await? else {
            on_disk(outbox::remove(path, task.id).await, "forget a delivery")?;
            return Ok(Outcome::Done);
        };
        let outcome = self.host.hooks().outbound().send(message(&hook, &task)).await;
        let next = after(task.attempts, &outcome);
        task.attempts = task.attempts.saturating_add(1);
        debug!(%key, hook = hook.id, attempt = task.attempts, ?next, "a webhook was called");
        remember(&repository, &hook, &task, &outcome, next).await;
        match next {
            After::Again(pause) => {
                on_disk(outbox::put(&repository, task).await, "note an attempt")?;
                Ok(Outcome::Again(pause))
            }
            After::Arrived | After::GivenUp => {
                if next == After::GivenUp {
                    info!(%key, hook = hook.id, attempts = task.attempts, "a webhook was not delivered and is given up");
                }
                on_disk(outbox::remove(path, task.id).await, "forget a delivery")?;
                Ok(Outcome::Done)
            }
        }
    }
}

fn on_disk<T>(outcome: std::io::Result<T>, doing: &str) -> Result<T, Failure> {
    outcome.map_err(|error| Failure::NotYet(format!("could not {doing}: {error}")))
}

/// The file of a hook's deliveries.
pub(crate) fn history(hook: u64) -> String {
    format!("deliveries-{hook}")
}

/// Notes how an attempt went, for people.
async fn remember(
    repository: &Repository,
    hook: &Hook,
    task: &Task,
    outcome: &Result<Reply, SendError>,
    next: After,
) {
    let entry = entry(hook, task, outcome, next);
    let noted = records::change(repository, history(hook.id), move |all| {
        note(all, entry);
        Ok(())
    });
    if let Err(problem) = noted.await {
        debug!(reason = problem.message, "a delivery is not in the history");
    }
}

/// One entry for each delivery, with its last attempt; the oldest go.
fn note(all: &mut Vec<Value>, mut entry: Value) {
    match all.iter_mut().find(|known| known["guid"] == entry["guid"]) {
        Some(known) => {
            entry["id"] = known["id"].clone();
            *known = entry;
        }
        None => {
            let last = all
                .iter()
                .filter_map(|known| known["id"].as_u64())
                .max()
                .unwrap_or(0);
            entry["id"] = (last + 1).into();
            all.push(entry);
        }
    }
    let surplus = all.len().saturating_sub(MAX_HISTORY);
    all.drain(..surplus);
}

fn entry(hook: &Hook, task: &Task, outcome: &Result<Reply, SendError>, next: After) -> Value {
    let (code, answer) = match outcome {
        Ok(reply) => (reply.status, String::from_utf8_lossy(&reply.body).into_owned()),
        Err(error) => (0, error.to_string()),
    };
    let status = match next {
        After::Arrived => "OK".to_owned(),
        After::Again(pause) => format!("failed; tried again after {} s", pause.as_secs()),
        After::GivenUp => "failed".to_owned(),
    };
    let payload = (task.payload.len() <= MAX_PAYLOAD).then_some(&task.payload);
    json!({
        "id": 0, "guid": task.uuid, "event": task.kind.event(), "event_type": task.kind.name(), "status": status,
        "status_code": code, "attempts": task.attempts,
        "delivered_at": jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "url": hook.url, "response": answer, "payload": payload,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_from_an_attempt() {
        let reply = |status: u16| {
            Ok(Reply {
                status,
                body: bytes::Bytes::new(),
            })
        };
        let seconds = |seconds: u64| After::Again(Duration::from_secs(seconds));
        let cases = [
            (0, reply(200), After::Arrived),
            (5, reply(204), After::Arrived),
            (0, reply(302), After::GivenUp),
            (0, reply(404), After::GivenUp),
            (0, reply(429), seconds(5)),
            (0, reply(500), seconds(5)),
            (1, reply(503), seconds(30)),
            (4, reply(503), seconds(3600)),
            (5, reply(503), After::GivenUp),
            (2, Err(SendError::Timeout(Duration::from_secs(1))), seconds(120)),
            (
                0,
                Err(SendError::Forbidden {
                    host: "localhost".to_owned(),
                    setting: "--webhook-allowed-hosts",
                }),
                After::GivenUp,
            ),
            (u32::MAX, reply(500), After::GivenUp),
        ];
        for (earlier, outcome, expected) in cases {
            assert_eq!(after(earlier, &outcome), expected, "{earlier} {outcome:?}");
        }
    }

    #[test]
    fn history_is_bounded_and_has_each_delivery_once() {
        let mut all = Vec::new();
        for number in 0..30 {
            note(
                &mut all,
                json!({"id": 0, "guid": format!("{}", number / 2), "status": number}),
            );
        }
        assert_eq!(all.len(), 15);
        assert_eq!((&all[14]["id"], &all[14]["status"]), (&json!(15), &json!(29)));
        for number in 100..130 {
            note(&mut all, json!({"id": 0, "guid": format!("{number}")}));
        }
        assert_eq!((all.len(), &all[19]["id"]), (MAX_HISTORY, &json!(45)));
    }
}
