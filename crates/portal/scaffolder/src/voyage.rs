//! A Voyage, read from its object, and written back.

use fairway_api::fairway::VOYAGE;
use fairway_controller::{Failure, Requests, WorkspaceId};
use fairway_portal_template::run::{Run, Wish};
use fairway_portal_template::secrets::Secrets;
use fairway_portal_template::template::Template;
use serde_json::{Map, Value, json};

use crate::ports::Person;
use crate::who::{collection, is_name};

/// By which a Voyage stays until what it had begun is taken back.
pub(crate) const FINALIZER: &str = "fairway.dev/voyage";
/// How often something is written, if others write at the same time.
const TURNS: usize = 20;

/// A Voyage.
#[derive(Clone, Debug)]
pub(crate) struct Voyage {
    pub(crate) workspace: WorkspaceId,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// `template:default/virtual-machine`.
    pub(crate) template: String,
    pub(crate) values: Map<String, Value>,
    pub(crate) secret: Option<String>,
    pub(crate) person: Person,
    pub(crate) decommissioned_by: Option<Person>,
    pub(crate) wish: Wish,
    /// As it was written down.
    pub(crate) run: Run,
    /// The template as it was when the run began, and beside it whatever else the status holds.
    pub(crate) frozen: Option<Value>,
    pub(crate) notices: Vec<Value>,
    pub(crate) reservations: Vec<Value>,
    /// Who started it, as the catalog knows him, once somebody has asked.
    pub(crate) user: Option<Value>,
    /// Somebody has deleted it, and it is there until what it had begun is taken back.
    pub(crate) is_going: bool,
    /// The generation of wishes that was written down as heard.
    observed: u64,
    /// The object, for writing.
    object: Value,
}

impl Voyage {
    pub(crate) fn read(workspace: &WorkspaceId, object: Value) -> Self {
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned()
        };
        let flag = |pointer: &str| object.pointer(pointer) == Some(&Value::Bool(true));
        let person = |pointer: &str| {
            let value = object.pointer(pointer)?;
            serde_json::from_value::<Person>(value.clone()).ok()
        };
        let items = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default()
        };
        let attempt = object
            .pointer("/spec/attempt")
            .and_then(Value::as_u64)
            .unwrap_or(0);
        let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        let is_going = object
            .pointer("/metadata/deletionTimestamp")
            .is_some_and(|it| !it.is_null());
        let status = object.get("status").cloned().unwrap_or_default();
        Self {
            workspace: workspace.clone(),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
            template: text("/spec/template"),
            values: object
                .pointer("/spec/values")
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default(),
            secret: Some(text("/spec/secretRef/name")).filter(|name| !name.is_empty()),
            person: person("/spec/requestedBy").unwrap_or_default(),
            decommissioned_by: person("/spec/decommissionedBy"),
            wish: Wish {
                // Whoever deletes a run that is under way stops it, and it is not tried again.
                cancel: flag("/spec/cancel") || is_going,
                keep: flag("/spec/keepOnFailure"),
                decommission: flag("/spec/decommission"),
                attempt: match is_going {
                    true => 0,
                    false => u32::try_from(attempt).unwrap_or(u32::MAX),
                },
                generation: number("/metadata/generation"),
            },
            // What cannot be read was never begun.
            run: serde_json::from_value(status.clone()).unwrap_or_default(),
            frozen: status.get("template").cloned(),
            notices: items("/status/notices"),
            reservations: items("/status/reservations"),
            user: None,
            is_going,
            observed: number("/status/observedGeneration"),
            object,
        }
    }

    /// Where the object is.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", collection(VOYAGE, &self.namespace), self.name)
    }

    /// The template that the run has, read again.
    pub(crate) fn template(&self) -> Option<Template> {
        Template::read(self.frozen.as_ref()?).ok()
    }

    /// Whether somebody wished something that nobody has written down as heard.
    pub(crate) fn is_news(&self) -> bool {
        self.wish.generation > self.observed
    }

    /// What is written down, and up to which generation wishes have been acted on.
    fn status(&self, generation: u64) -> Value {
        let mut status = serde_json::to_value(&self.run).unwrap_or_default();
        status["observedGeneration"] = json!(generation);
        if let Some(frozen) = &self.frozen {
            status["template"] = frozen.clone();
        }
        if !self.notices.is_empty() {
            status["notices"] = Value::Array(self.notices.clone());
        }
        if !self.reservations.is_empty() {
            status["reservations"] = Value::Array(self.reservations.clone());
        }
        status
    }

    /// Writes down where the run is. Wishes and messages that others have written in between are taken in; only who has written where
    /// the run is drives it, too, and must be heard first: that is a conflict.
    pub(crate) async fn write(&mut self, requests: &Requests) -> Result<(), Failure> {
        let gone =
            |name: &str| Failure::NotYet(format!("Voyage {name} is gone, and nothing more is done for it"));
        // Wishes that come meanwhile have led to nothing yet: an end that is written now is not their end.
        let acted_on = self.wish.generation;
        let mut turn = 0;
        loop {
            let written = requests
                .replace_status(&self.path(), &self.object, &self.status(acted_on))
                .await;
            match written {
                Ok(Some(written)) => {
                    self.observed = acted_on;
                    self.hear(written);
                    return Ok(());
                }
                Ok(None) => return Err(gone(&self.name)),
                Err(failure) if failure.is_conflict() && turn < TURNS => {
                    turn += 1;
                    let found = requests.get(&self.path()).await?;
                    let found = found.ok_or_else(|| gone(&self.name))?;
                    let is_same = found["metadata"]["uid"] == self.uid.as_str()
                        && driven(&found["status"]) == driven(&self.object["status"]);
                    if !is_same {
                        return Err(failure);
                    }
                    take_in(&mut self.notices, &found["status"]["notices"]);
                    self.hear(found);
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Writes down what became of messages, and nothing else.
    pub(crate) async fn write_notices(&self, requests: &Requests) -> Result<(), Failure> {
        let mut status = self.object["status"].clone();
        status["notices"] = Value::Array(self.notices.clone());
        let written = requests.replace_status(&self.path(), &self.object, &status).await;
        written.map(drop)
    }

    /// Lets go of one that was deleted.
    pub(crate) async fn let_go(&self, requests: &Requests) -> Result<(), Failure> {
        let all = self.object["metadata"]["finalizers"].as_array();
        let others: Vec<&Value> = all.into_iter().flatten().filter(|it| *it != FINALIZER).collect();
        if all.is_none_or(|all| all.len() == others.len()) {
            return Ok(());
        }
        let version = &self.object["metadata"]["resourceVersion"];
        let patch = json!({"metadata": {"finalizers": others, "resourceVersion": version}});
        requests.merge(&self.path(), &patch).await.map(drop)
    }

    /// People's wishes come with every answer, so that stopping does not wait for a watch.
    fn hear(&mut self, object: Value) {
        let seen = Self::read(&self.workspace, object);
        self.wish = seen.wish;
        self.person = seen.person;
        self.decommissioned_by = seen.decommissioned_by;
        self.is_going = seen.is_going;
        self.object = seen.object;
    }

    /// Its secrets, read as whoever these requests are.
    pub(crate) async fn secrets(&self, requests: &Requests) -> Result<Secrets, String> {
        let Some(name) = &self.secret else {
            return Ok(Secrets::default());
        };
        if !is_name(name) {
            return Err(format!("{name:?} is not the name of a Secret"));
        }
        let path = format!("/api/v1/namespaces/{}/secrets/{name}", self.namespace);
        let found = requests.get(&path).await.map_err(|failure| failure.sentence())?;
        let found = found.ok_or_else(|| format!("there is no Secret {name} in {}", self.namespace))?;
        Ok(Secrets::new(crate::submit::decoded(&found)))
    }

    /// Who takes back what was made: who asked for it, else who made it.
    pub(crate) fn undoer(&self) -> &Person {
        match (&self.decommissioned_by, self.wish.decommission) {
            (Some(person), true) => person,
            _ => &self.person,
        }
    }
}

/// What only who drives a run writes.
fn driven(status: &Value) -> Value {
    let mut status = status.clone();
    if let Some(fields) = status.as_object_mut() {
        fields.shift_remove("notices");
    }
    status
}

/// What became of messages meanwhile, into those that are known here.
fn take_in(known: &mut [Value], found: &Value) {
    for one in known {
        let same = |other: &&Value| other["id"] == one["id"];
        if let Some(other) = found.as_array().into_iter().flatten().find(same) {
            *one = other.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_messages_is_taken_in_and_new_ones_stay() {
        let mut known = vec![
            json!({"id": "a", "state": "waiting"}),
            json!({"id": "b", "state": "waiting"}),
        ];
        take_in(&mut known, &json!([{"id": "a", "state": "sent", "attempts": 1}]));
        assert_eq!(known[0], json!({"id": "a", "state": "sent", "attempts": 1}));
        assert_eq!(known[1]["state"], "waiting");
        let (one, other) = (
            json!({"phase": "Running", "notices": [1]}),
            json!({"phase": "Running"}),
        );
        assert_eq!(driven(&one), driven(&other));
        assert_ne!(driven(&one), driven(&json!({"phase": "Failed"})));
    }

    /// Who follows a run takes its end for the answer to his wish once the wish has been heard.
    #[tokio::test]
    async fn a_wish_that_comes_while_an_end_is_written_is_not_heard_by_it() {
        const PATH: &str = "/apis/fairway.dev/v1alpha1/namespaces/default/voyages/run";
        let fake = std::sync::Arc::new(crate::fake::Fake::default());
        let run = |generation: u64| {
            json!({
                "apiVersion": "fairway.dev/v1alpha1", "kind": "Voyage",
                "metadata": {"name": "run", "namespace": "default", "uid": "u", "generation": generation},
                "spec": {"template": "t", "decommission": generation > 1},
                "status": {"phase": "Failed", "observedGeneration": 0},
            })
        };
        fake.put(PATH, run(1));
        let mut voyage = Voyage::read(&WorkspaceId::root(), fake.get(PATH).unwrap());
        fake.put(PATH, run(2));
        let requests = Requests::new(crate::fake::process(&fake).own.of(&WorkspaceId::root()));
        voyage.write(&requests).await.unwrap();
        assert_eq!(fake.get(PATH).unwrap()["status"]["observedGeneration"], 1);
        assert!(voyage.wish.decommission && voyage.is_news(), "it is heard next");
    }

    #[test]
    fn deleting_is_stopping() {
        let mut object = json!({"metadata": {"name": "v", "generation": 3}, "spec": {"attempt": 2}, "status": {"observedGeneration": 2}});
        let read = |object: &Value| Voyage::read(&WorkspaceId::root(), object.clone());
        let voyage = read(&object);
        assert!(!voyage.wish.cancel && voyage.wish.attempt == 2 && voyage.is_news());
        object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        let voyage = read(&object);
        assert!(voyage.wish.cancel && voyage.wish.attempt == 0 && voyage.is_going);
    }
}
