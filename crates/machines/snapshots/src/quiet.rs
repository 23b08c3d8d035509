//! A guest that runs is quieted while the moment of a snapshot comes: it brings everything to disk and writes no more. Without an agent
//! the snapshot is what the disk would be after a loss of power; if there are several disks, the machine stands still for the moment, so
//! that they are of the same one. If its memory is kept, too, it always stands still. What was asked for is noted on what is being made, so that it is taken back whatever happens.

use fairway_controller::{Failure, ObjectKey, Requests};
use kube::Client;
use serde_json::{Value, json};
use tracing::debug;

use crate::api::{self, At, text};
use crate::decide::{condition_holds, snapshot};

/// On a content: what was asked of the machine.
pub(crate) const QUIETED: &str = "fairway.dev/quieted";
/// How long a guest stays frozen if nobody thaws it.
const FREEZE_SECONDS: u32 = 300;

/// What is asked of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Nothing,
    Freeze,
    Pause,
}

/// `memory`: it is kept, too. A guest that was frozen then would be frozen when it comes back.
fn ask(instance: &Value, disks: usize, memory: bool) -> Ask {
    if condition_holds(instance, "Paused") {
        return Ask::Nothing;
    }
    match condition_holds(instance, "AgentConnected") {
        _ if memory => Ask::Pause,
        true if text(instance, "/status/fsFreezeStatus") == "frozen" => Ask::Nothing,
        true => Ask::Freeze,
        false if disks > 1 => Ask::Pause,
        false => Ask::Nothing,
    }
}

/// Quiets a machine for a content; else why that could not be.
pub(crate) async fn quiet(
    client: &Client,
    api: &Requests,
    key: &ObjectKey,
    instance: &Value,
    content: &Value,
) -> Result<Result<(), String>, Failure> {
    let disks = content.pointer("/spec/volumeBackups").and_then(Value::as_array);
    let memory = snapshot::memory(content) == "true";
    let asked = ask(instance, disks.map_or(0, Vec::len), memory);
    let noted = match asked {
        Ask::Nothing => return Ok(Ok(())),
        Ask::Freeze => "frozen",
        Ask::Pause => "paused",
    };
    let note = json!({"metadata": {"annotations": {QUIETED: noted}}});
    let path = At::Contents.one(&key.namespace, text(content, "/metadata/name"));
    api.merge(&path, &note).await?;
    if asked == Ask::Freeze {
        let timeout = json!({"unfreezeTimeout": format!("{FREEZE_SECONDS}s")});
        return Ok(match api::order(client, key, "freeze", &timeout).await {
            Ok(()) => Ok(()),
            Err(failure) => Err(format!(
                "{} {}: {}",
                snapshot::FAILED_FREEZE,
                key.name,
                failure.sentence()
            )),
        });
    }
    // Some machines may not stand still: then their disks are of moments that are a little apart.
    if let Err(failure) = api::order(client, key, "pause", &json!({})).await {
        if memory {
            let why = failure.sentence();
            return Ok(Err(format!(
                "Failed pausing vm {} to keep its memory: {why}",
                key.name
            )));
        }
        debug!(%key, reason = failure.sentence(), "the machine could not be paused");
    }
    Ok(Ok(()))
}

/// Takes back what was asked for.
pub(crate) async fn wake(
    client: &Client,
    api: &Requests,
    key: &ObjectKey,
    content: &Value,
) -> Result<(), Failure> {
    // It may have been noted since the content was read.
    let path = At::Contents.one(&key.namespace, text(content, "/metadata/name"));
    let content = api.get(&path).await?.unwrap_or_default();
    let noted = content
        .pointer("/metadata/annotations")
        .and_then(|it| it.get(QUIETED));
    let order = match noted.and_then(Value::as_str) {
        Some("frozen") => "unfreeze",
        Some("paused") => "unpause",
        _ => return Ok(()),
    };
    let instance = At::Instances.one(&key.namespace, &key.name);
    if api.get(&instance).await?.is_some()
        && let Err(failure) = api::order(client, key, order, &json!({})).await
    {
        // A guest thaws by itself, too; a machine that goes on does not care.
        debug!(%key, order, reason = failure.sentence(), "the machine could not be woken");
    }
    let note = json!({"metadata": {"annotations": {QUIETED: null}}});
    api.merge(&path, &note).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_with_an_agent_is_frozen() {
        let with = |kinds: &[&str], frozen: &str| {
            let all: Vec<Value> = kinds
                .iter()
                .map(|kind| json!({"type": kind, "status": "True"}))
                .collect();
            json!({"status": {"conditions": all, "fsFreezeStatus": frozen}})
        };
        for (instance, expected) in [
            (with(&["AgentConnected"], ""), Ask::Pause),
            (with(&[], ""), Ask::Pause),
            (with(&["Paused"], ""), Ask::Nothing),
        ] {
            assert_eq!(ask(&instance, 1, true), expected, "{instance} with memory");
        }
        for (instance, disks, expected) in [
            (with(&["AgentConnected"], ""), 1, Ask::Freeze),
            (with(&["AgentConnected"], ""), 2, Ask::Freeze),
            (with(&["AgentConnected"], "frozen"), 2, Ask::Nothing),
            (with(&["AgentConnected", "Paused"], ""), 2, Ask::Nothing),
            (with(&[], ""), 1, Ask::Nothing),
            (with(&[], ""), 2, Ask::Pause),
            (with(&["Paused"], ""), 2, Ask::Nothing),
        ] {
            assert_eq!(ask(&instance, disks, false), expected, "{instance} with {disks}");
        }
    }
}
