//! Voyages as Backstage shows tasks.

use serde_json::{Value, json};

/// The id of the task that a Voyage is.
pub(super) fn id(voyage: &Value) -> String {
    let text = |key: &str| voyage["metadata"][key].as_str().unwrap_or("");
    format!("{}.{}", text("namespace"), text("name"))
}

/// The state in Backstage's words.
pub(super) fn status(voyage: &Value) -> &'static str {
    match voyage["status"]["phase"].as_str() {
        None | Some("Pending") => "open",
        Some("Running" | "Undoing") => "processing",
        Some("Failed") => "failed",
        Some("Cancelled") => "cancelled",
        Some(_) => "completed",
    }
}

/// A reference to who started it.
pub(super) fn created_by(voyage: &Value) -> String {
    let name = voyage["spec"]["requestedBy"]["username"].as_str().unwrap_or("");
    format!("user:default/{}", name.rsplit([':', '/']).next().unwrap_or(name))
}

/// When something was last heard of it.
pub(super) fn last_heartbeat(voyage: &Value) -> Option<&str> {
    let ended = voyage["status"]["endedAt"].as_str();
    ended.or(voyage["status"]["startedAt"].as_str())
}

/// A task.
pub(super) fn task(voyage: &Value) -> Value {
    let template = &voyage["status"]["template"];
    let reference = &voyage["spec"]["template"];
    json!({
        "id": id(voyage),
        "spec": {
            "apiVersion": "scaffolder.backstage.io/v1beta3", "parameters": voyage["spec"]["values"],
            "steps": template["spec"]["steps"], "output": template["spec"]["output"],
            "templateInfo": {"entityRef": reference, "entity": {"metadata": template["metadata"]}},
            "user": {"ref": created_by(voyage)},
        },
        "status": status(voyage), "createdAt": voyage["metadata"]["creationTimestamp"], "lastHeartbeatAt": last_heartbeat(voyage),
        "createdBy": created_by(voyage), "output": voyage["status"]["output"],
    })
}
