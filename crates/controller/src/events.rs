//! Events: what happened to an object, for people who ask `kubectl describe`.
//!
//! They are core `v1` Events, which every client reads. The same event about the same object within ten minutes is
//! counted up instead of written again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;
use tracing::debug;

use crate::clients::Clients;
use crate::error::{is_not_found, sentence};
use crate::key::WorkspaceId;

/// How long a repetition is counted to the same event.
const WINDOW: SignedDuration = SignedDuration::from_mins(10);
/// How much of the object's name goes into the name of the event: what is left of 253 beside a dot and the time.
const MAX_NAME: usize = 253 - 1 - 17;
/// How many events are remembered.
const MOST: usize = 1024;

/// Whether an event is a reason to worry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// As it should be.
    Normal,
    /// Somebody should look.
    Warning,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Happening {
    /// Whether to worry.
    pub severity: Severity,
    /// In one word.
    pub reason: &'static str,
    /// In a sentence.
    pub message: String,
}

#[derive(Clone, Debug)]
struct Known {
    name: String,
    count: i32,
    last: Timestamp,
}

/// Where, about which object (by namespace, name and UID, of which any may be missing), and what.
type Key = (WorkspaceId, [String; 3], Happening);

type Memory = HashMap<Key, Known>;

/// Writes events in the name of one controller.
#[derive(Clone)]
pub struct Recorder {
    clients: Clients,
    component: &'static str,
    memory: Arc<Mutex<Memory>>,
}

/// How an event is written.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    Create,
    Count { name: String, count: i32 },
}

impl Recorder {
    /// A recorder for the controller of that name.
    pub fn new(clients: Clients, component: &'static str) -> Self {
        Self {
            clients,
            component,
            memory: Arc::default(),
        }
    }

    /// Writes an event about an object of a workspace. An event that cannot be written is only logged: nothing may depend
    /// on it.
    pub async fn record(&self, workspace: &WorkspaceId, about: &ObjectReference, happening: Happening) {
        let now = Timestamp::now();
        let object = [&about.namespace, &about.name, &about.uid].map(|it| it.clone().unwrap_or_default());
        let key = (workspace.clone(), object, happening);
        let plan = {
            let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
            plan(&memory, &key, now)
        };
        let namespace = about
            .namespace
            .as_deref()
            .filter(|n| !n.is_empty())
            .unwrap_or("default");
        let api: Api<Event> = Api::namespaced(self.clients.of(workspace), namespace);
        let mut known = None;
        if let Plan::Count { name, count } = plan {
            let patch = json!({"count": count, "lastTimestamp": Time(now)});
            match api
                .patch(&name, &PatchParams::default(), &Patch::Merge(patch))
                .await
            {
                Ok(_) => {
                    let last = now;
                    known = Some(Known { name, count, last });
                }
                // It has expired meanwhile.
                Err(error) if is_not_found(&error) => {}
                Err(error) => return debug!(reason = sentence(&error), "an event could not be counted"),
            }
        }
        let known = match known {
            Some(known) => known,
            None => {
                let event = event(self.component, about, &key.2, namespace, now);
                let name = event.metadata.name.clone().unwrap_or_default();
                if let Err(error) = api.create(&PostParams::default(), &event).await {
                    return debug!(reason = sentence(&error), "an event could not be written");
                }
                Known {
                    name,
                    count: 1,
                    last: now,
                }
            }
        };
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        remember(&mut memory, key, known);
    }
}

/// Remembers an event. When there are too many, the older half goes: whoever writes many events in one workspace must not
/// keep those of others from being remembered.
fn remember(memory: &mut Memory, key: Key, known: Known) {
    if memory.len() >= MOST && !memory.contains_key(&key) {
        let mut times: Vec<Timestamp> = memory.values().map(|known| known.last).collect();
        let (_, middle, _) = times.select_nth_unstable(MOST / 2);
        let middle = *middle;
        memory.retain(|_, known| known.last > middle);
    }
    memory.insert(key, known);
}

fn plan(memory: &Memory, key: &Key, now: Timestamp) -> Plan {
    match memory.get(key) {
        Some(known) if known.last + WINDOW > now => Plan::Count {
            name: known.name.clone(),
            count: known.count.saturating_add(1),
        },
        _ => Plan::Create,
    }
}

fn event(
    component: &str,
    about: &ObjectReference,
    happening: &Happening,
    namespace: &str,
    now: Timestamp,
) -> Event {
    let about_name = about.name.as_deref().unwrap_or(component);
    // Names of objects are ASCII; one that is not is no name of ours to shorten.
    let kept = about_name.get(..MAX_NAME).unwrap_or(about_name);
    let name = format!("{}.{:x}", kept.trim_end_matches(['.', '-']), now.as_nanosecond());
    Event {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: about.clone(),
        reason: Some(happening.reason.to_owned()),
        message: Some(happening.message.clone()),
        type_: Some(match happening.severity {
            Severity::Normal => "Normal".to_owned(),
            Severity::Warning => "Warning".to_owned(),
        }),
        count: Some(1),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        source: Some(EventSource {
            component: Some(component.to_owned()),
            host: None,
        }),
        reporting_component: Some(component.to_owned()),
        reporting_instance: None,
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use k8s_openapi::api::core::v1::ObjectReference;
    use serde_json::json;

    use super::{Happening, Key, Known, MOST, Memory, Plan, Recorder, Severity, plan, remember};
    use crate::fake::Script;
    use crate::key::WorkspaceId;

    fn about(workspace: &str, uid: &str) -> Key {
        let workspace = WorkspaceId::parse(workspace).unwrap();
        (workspace, ["n", "x", uid].map(str::to_owned), happening())
    }

    fn happening() -> Happening {
        Happening {
            severity: Severity::Warning,
            reason: "Broken",
            message: "it broke".to_owned(),
        }
    }

    #[test]
    fn repetitions_are_counted_for_a_while() {
        let now = Timestamp::from_second(100_000).unwrap();
        let key = about("root", "a");
        let remembered = |minutes: i64| {
            let last = now - SignedDuration::from_mins(minutes);
            [(
                key.clone(),
                Known {
                    name: "e".to_owned(),
                    count: 2,
                    last,
                },
            )]
            .into()
        };
        let count = Plan::Count {
            name: "e".to_owned(),
            count: 3,
        };
        for (minutes, want) in [(1, count), (10, Plan::Create)] {
            assert_eq!(plan(&remembered(minutes), &key, now), want, "{minutes}");
        }
        for other in [about("root", "b"), about("team", "a")] {
            assert_eq!(plan(&remembered(1), &other, now), Plan::Create, "{other:?}");
        }
    }

    #[test]
    fn many_events_of_one_workspace_do_not_keep_others_from_being_remembered() {
        let mut memory = Memory::default();
        let at = |second: usize| Known {
            name: "e".to_owned(),
            count: 1,
            last: Timestamp::from_second(i64::try_from(second).unwrap()).unwrap(),
        };
        for number in 0..MOST {
            remember(&mut memory, about("loud", &number.to_string()), at(number));
        }
        assert_eq!(memory.len(), MOST);
        remember(&mut memory, about("quiet", "a"), at(MOST));
        assert!(memory.contains_key(&about("quiet", "a")));
        assert!(
            memory.contains_key(&about("loud", &(MOST - 1).to_string())),
            "the newer half stays"
        );
        assert!(memory.len() <= MOST / 2 + 1, "{}", memory.len());
    }

    #[test]
    fn an_event_about_a_long_name_has_a_name() {
        let now = Timestamp::from_second(4_000_000_000).unwrap();
        for (length, name_length) in [(10, 27), (253, 252)] {
            let about = ObjectReference {
                name: Some("x".repeat(length)),
                ..ObjectReference::default()
            };
            let event = super::event("test", &about, &happening(), "n", now);
            assert_eq!(event.metadata.name.unwrap().len(), name_length, "{length}");
        }
    }

    #[tokio::test]
    async fn an_event_is_created_then_counted() {
        let script = Script::new()
            .expect(
                "POST",
                "/api/v1/namespaces/n/events?",
                201,
                json!({"metadata": {}, "involvedObject": {}}),
            )
            .expect_prefix(
                "PATCH",
                "/api/v1/namespaces/n/events/pod-a.",
                200,
                json!({"metadata": {}, "involvedObject": {}}),
            );
        let recorder = Recorder::new(script.clients(), "test");
        let about = ObjectReference {
            name: Some("pod-a".to_owned()),
            namespace: Some("n".to_owned()),
            uid: Some("u".to_owned()),
            ..ObjectReference::default()
        };
        recorder.record(&WorkspaceId::root(), &about, happening()).await;
        recorder.record(&WorkspaceId::root(), &about, happening()).await;
        let calls = script.finish();
        assert_eq!(calls[0].body["type"], "Warning");
        assert_eq!(calls[0].body["source"]["component"], "test");
        assert_eq!(calls[1].body["count"], 2);
    }

    #[tokio::test]
    async fn a_server_that_refuses_stops_nobody() {
        let recorder = Recorder::new(crate::fake::Failing::with(500, "InternalError").clients(), "test");
        recorder
            .record(&WorkspaceId::root(), &ObjectReference::default(), happening())
            .await;
        assert!(recorder.memory.lock().unwrap().is_empty());
    }
}
