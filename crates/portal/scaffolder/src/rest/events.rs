//! What happened in a run as Backstage's events, all at once or as they come.

use std::time::Duration;

use bytes::Bytes;
use fairway_controller::Requests;
use futures::StreamExt as _;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, json};

use super::{Body, BoxError, shapes};

/// How often is looked whether something happened.
const TURN: Duration = Duration::from_millis(250);
/// How long a stream may be; clients come again with what they have seen.
const LONGEST: usize = 4 * 60 * 10;

/// All events of a run, numbered from 1. The last says how it ended.
fn all(voyage: &Value) -> Vec<Value> {
    let task = shapes::id(voyage);
    let mut found: Vec<Value> = Vec::new();
    let mut add = |kind: &str, at: &Value, body: Value| {
        let id = found.len() + 1;
        found.push(json!({"id": id, "taskId": task, "type": kind, "createdAt": at, "body": body}));
    };
    for step in voyage["status"]["steps"].as_array().into_iter().flatten() {
        let (id, name) = (&step["id"], step["name"].as_str().unwrap_or(""));
        let state = step["state"].as_str().unwrap_or("pending");
        if state == "pending" {
            continue;
        }
        add(
            "log",
            &step["startedAt"],
            json!({"stepId": id, "status": "processing", "message": format!("Beginning step {name}")}),
        );
        for line in step["log"].as_array().into_iter().flatten() {
            add("log", &line["at"], json!({"stepId": id, "message": line["text"]}));
        }
        let (status, word) = match state {
            "completed" => ("completed", "Finished"),
            "skipped" => ("skipped", "Skipped"),
            "failed" => ("failed", "Failed"),
            "undone" => ("cancelled", "Undid"),
            _ => continue,
        };
        add(
            "log",
            &step["endedAt"],
            json!({"stepId": id, "status": status, "message": format!("{word} step {name}")}),
        );
    }
    let end = &voyage["status"]["endedAt"];
    match shapes::status(voyage) {
        "completed" => {
            let body = json!({"message": "Run completed with status: completed", "output": voyage["status"]["output"]});
            add("completion", end, body);
        }
        "failed" => {
            let message = voyage["status"]["message"].as_str().unwrap_or("");
            let body = json!({"message": format!("Run completed with status: failed"), "error": {"name": "Error", "message": message}});
            add("completion", end, body);
        }
        "cancelled" => {
            add("cancelled", end, json!({"message": "Run was cancelled"}));
            // Clients follow a run until it says this.
            add(
                "completion",
                end,
                json!({"message": "Run completed with status: cancelled"}),
            );
        }
        _ => {}
    }
    found
}

/// Those after one that is known.
pub(super) fn after(voyage: &Value, seen: Option<u64>) -> Vec<Value> {
    let mut events = all(voyage);
    events.retain(|event| event["id"].as_u64() > seen);
    events
}

/// Server-sent events until the run is over.
pub(super) fn stream(requests: Requests, path: String, seen: Option<u64>) -> Response<Body> {
    let state = (requests, path, seen, false, 0_usize);
    let chunks = futures::stream::unfold(state, |(requests, path, mut seen, is_over, turns)| async move {
        if is_over || turns > LONGEST {
            return None;
        }
        if turns > 0 {
            tokio::time::sleep(TURN).await;
        }
        let voyage = requests.get(&path).await.ok().flatten()?;
        let mut text = String::new();
        let mut is_over = false;
        for event in after(&voyage, seen) {
            seen = event["id"].as_u64();
            let kind = event["type"].as_str().unwrap_or("log");
            is_over |= kind == "completion";
            text.push_str(&format!("event: {kind}\ndata: {event}\n\n"));
        }
        // So that whoever is gone is noticed.
        if text.is_empty() && turns % 60 == 59 {
            text.push_str(": still here\n\n");
        }
        let frame = Ok::<_, BoxError>(Frame::data(Bytes::from(text)));
        Some((frame, (requests, path, seen, is_over, turns + 1)))
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

    #[test]
    fn events_are_numbered_and_end() {
        let voyage = json!({
            "metadata": {"name": "v", "namespace": "default"},
            "status": {"phase": "Failed", "message": "no", "endedAt": "t", "steps": [
                {"id": "a", "name": "A", "state": "completed", "log": [{"at": "t", "text": "x"}]},
                {"id": "b", "name": "B", "state": "failed"}, {"id": "c", "name": "C", "state": "pending"},
            ]},
        });
        let events = all(&voyage);
        let ids: Vec<u64> = events.iter().filter_map(|event| event["id"].as_u64()).collect();
        assert_eq!(ids, (1..=6).collect::<Vec<u64>>());
        assert_eq!(events[5]["type"], "completion");
        assert_eq!(events[5]["body"]["error"]["message"], "no");
        assert_eq!(after(&voyage, Some(5)).len(), 1);
        assert_eq!(after(&voyage, None).len(), 6);
    }
}
