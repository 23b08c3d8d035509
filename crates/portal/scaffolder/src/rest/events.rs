//! What happened in a run as Backstage's events, all at once or as they come.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairway_controller::{Requests, WorkspaceId};
use futures::StreamExt as _;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::{Body, BoxError, Call, shapes};
use crate::ports::Person;
use crate::{World, who};

/// How often is looked whether something happened.
const TURN: Duration = Duration::from_millis(250);
/// The same for a run that goes slowly, as many do that wait for something.
const SLOW_TURN: Duration = Duration::from_secs(2);
/// After so many turns without an event a run goes slowly.
const QUIET: usize = 240;
/// How often whoever listens is told that the stream is alive, and found out again whether he may still.
const BREATH: Duration = Duration::from_secs(15);

/// All events of a run, by the numbers that they got when they happened, so that who comes again misses nothing and hears nothing
/// twice. What says how it ended has a number of its own each time that it ends.
fn all(voyage: &Value) -> Vec<Value> {
    let task = shapes::id(voyage);
    let mut found: Vec<(u64, Value)> = Vec::new();
    let mut add = |number: &Value, kind: &str, at: &Value, body: Value| {
        // What has no number has not happened yet.
        if let Some(id) = number.as_u64().filter(|id| *id > 0) {
            found.push((
                id,
                json!({"id": id, "taskId": task, "type": kind, "createdAt": at, "body": body}),
            ));
        }
    };
    let status = &voyage["status"];
    for step in status["steps"].as_array().into_iter().flatten() {
        let (id, name) = (&step["id"], step["name"].as_str().unwrap_or(""));
        add(
            &step["begunEvent"],
            "log",
            &step["startedAt"],
            json!({"stepId": id, "status": "processing", "message": format!("Beginning step {name}")}),
        );
        for line in step["log"].as_array().into_iter().flatten() {
            let body = json!({"stepId": id, "message": line["text"]});
            add(&line["event"], "log", &line["at"], body);
        }
        let (state, word) = match step["state"].as_str().unwrap_or("pending") {
            "completed" => ("completed", "Finished"),
            "skipped" => ("skipped", "Skipped"),
            "failed" => ("failed", "Failed"),
            "undone" => ("cancelled", "Undid"),
            _ => continue,
        };
        add(
            &step["endedEvent"],
            "log",
            &step["endedAt"],
            json!({"stepId": id, "status": state, "message": format!("{word} step {name}")}),
        );
    }
    let (end, number) = (&status["endedAt"], &status["endEvent"]);
    match shapes::status(voyage) {
        "completed" => {
            let body = json!({"message": "Run completed with status: completed", "output": status["output"]});
            add(number, "completion", end, body);
        }
        "failed" => {
            let message = status["message"].as_str().unwrap_or("");
            let body = json!({"message": "Run completed with status: failed", "error": {"name": "Error", "message": message}});
            add(number, "completion", end, body);
        }
        "cancelled" => {
            let before = json!(number.as_u64().unwrap_or(0).saturating_sub(1));
            add(&before, "cancelled", end, json!({"message": "Run was cancelled"}));
            // Clients follow a run until it says this.
            let body = json!({"message": "Run completed with status: cancelled"});
            add(number, "completion", end, body);
        }
        _ => {}
    }
    found.sort_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, event)| event).collect()
}

/// Those after one that is known.
pub(super) fn after(voyage: &Value, seen: Option<u64>) -> Vec<Value> {
    let mut events = all(voyage);
    events.retain(|event| event["id"].as_u64() > seen);
    events
}

/// Who listens to a run, and what was heard.
pub(super) struct Listener {
    world: Arc<World>,
    workspace: WorkspaceId,
    person: Person,
    requests: Requests,
    path: String,
    seen: Option<u64>,
    is_over: bool,
    /// Turns since the last event.
    quiet: usize,
    /// When something was last sent.
    told: Instant,
    is_first: bool,
    _permit: OwnedSemaphorePermit,
}

impl Listener {
    pub(super) fn of(call: Call, path: String, seen: Option<u64>, permit: OwnedSemaphorePermit) -> Self {
        Self {
            world: call.world,
            workspace: call.workspace,
            person: call.person,
            requests: call.requests,
            path,
            seen,
            is_over: false,
            quiet: 0,
            told: Instant::now(),
            is_first: true,
            _permit: permit,
        }
    }

    /// What happened since the last turn, as text; nothing when it is over, gone, or not to be seen any more.
    async fn turn(&mut self) -> Option<String> {
        if self.is_over {
            return None;
        }
        if !std::mem::take(&mut self.is_first) {
            tokio::time::sleep(if self.quiet < QUIET { TURN } else { SLOW_TURN }).await;
        }
        let voyage = self.requests.get(&self.path).await.ok().flatten()?;
        let (text, seen, is_over) = told(&voyage, self.seen);
        (self.seen, self.is_over) = (seen, is_over);
        if !text.is_empty() {
            (self.quiet, self.told) = (0, Instant::now());
            return Some(text);
        }
        self.quiet += 1;
        if self.told.elapsed() < BREATH {
            return Some(text);
        }
        // A stream may outlive the token that it was asked for with: whoever is disabled meanwhile hears no more.
        let person = who::now(&self.world, &self.workspace, &self.person).await;
        match person {
            Ok(person) => {
                let client = self.world.options.actors.client(&self.workspace, &person);
                self.requests = Requests::new(client);
            }
            Err(setback) if !setback.may_pass => return None,
            Err(_) => {}
        }
        self.told = Instant::now();
        // So that whoever is gone is noticed.
        Some(": still here\n\n".to_owned())
    }
}

/// What is new in a run as server-sent events, the last number of them, and whether that was the end.
fn told(voyage: &Value, mut seen: Option<u64>) -> (String, Option<u64>, bool) {
    let mut text = String::new();
    let mut is_over = false;
    for event in after(voyage, seen) {
        seen = event["id"].as_u64();
        let kind = event["type"].as_str().unwrap_or("log");
        is_over |= kind == "completion";
        text.push_str(&format!("event: {kind}\ndata: {event}\n\n"));
    }
    (text, seen, is_over)
}

/// Server-sent events until the run is over, however long that takes.
pub(super) fn stream(listener: Listener) -> Response<Body> {
    let chunks = futures::stream::unfold(listener, |mut listener| async move {
        let text = listener.turn().await?;
        let frame = Ok::<_, BoxError>(Frame::data(Bytes::from(text)));
        Some((frame, listener))
    });
    let chunks = chunks.filter(|chunk| {
        let is_empty = chunk
            .as_ref()
            .is_ok_and(|frame| frame.data_ref().is_some_and(Bytes::is_empty));
        std::future::ready(!is_empty)
    });
    let mut answer = Response::new(BodyExt::boxed_unsync(StreamBody::new(chunks)));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(events: &[Value]) -> Vec<u64> {
        events.iter().filter_map(|event| event["id"].as_u64()).collect()
    }

    #[test]
    fn a_stream_tells_each_event_once_and_knows_the_end() {
        let mut voyage = json!({
            "metadata": {"name": "v", "namespace": "default"},
            "status": {"phase": "Running", "steps": [{"id": "a", "name": "A", "state": "running", "begunEvent": 1}]},
        });
        let (text, seen, is_over) = told(&voyage, None);
        assert!(text.starts_with("event: log\ndata: {"), "{text}");
        assert_eq!((seen, is_over), (Some(1), false));
        // Nothing new is nothing told, and what was heard stays heard.
        assert_eq!(told(&voyage, seen), (String::new(), Some(1), false));
        voyage["status"]["phase"] = "Succeeded".into();
        voyage["status"]["endEvent"] = 2.into();
        let (text, seen, is_over) = told(&voyage, seen);
        assert!(text.starts_with("event: completion\n"), "{text}");
        assert_eq!((seen, is_over), (Some(2), true));
    }

    #[test]
    fn events_keep_their_numbers_and_the_end_is_heard_again_after_a_retry() {
        let mut voyage = json!({
            "metadata": {"name": "v", "namespace": "default"},
            "status": {"phase": "Failed", "message": "no", "endedAt": "t", "endEvent": 7, "steps": [
                // A line that came when a later step had failed already.
                {"id": "a", "name": "A", "state": "undone", "begunEvent": 1, "endedEvent": 6, "log": [{"at": "t", "text": "x", "event": 5}]},
                {"id": "b", "name": "B", "state": "failed", "begunEvent": 3, "endedEvent": 4},
                {"id": "c", "name": "C", "state": "pending"},
            ]},
        });
        let events = all(&voyage);
        assert_eq!(ids(&events), [1, 3, 4, 5, 6, 7]);
        assert_eq!(events[5]["type"], "completion");
        assert_eq!(events[5]["body"]["error"]["message"], "no");
        assert_eq!(ids(&after(&voyage, Some(6))), [7]);
        assert_eq!(after(&voyage, None).len(), 6);
        // Tried again: who has heard the end hears what came after it.
        voyage["status"]["steps"][0] = json!({"id": "a", "name": "A", "state": "running", "begunEvent": 8});
        voyage["status"]["phase"] = "Running".into();
        let events = after(&voyage, Some(7));
        assert_eq!((ids(&events), &events[0]["type"]), (vec![8], &json!("log")));
        voyage["status"]["phase"] = "Cancelled".into();
        voyage["status"]["endEvent"] = 11.into();
        let events = after(&voyage, Some(8));
        assert_eq!(ids(&events), [10, 11]);
        assert_eq!(events[1]["type"], "completion");
    }
}
