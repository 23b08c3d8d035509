//! Conditions: ours are written anew, those of others stay.

use fairway_machines_plan::view::Condition;
use serde_json::{Map, Value};

/// The conditions that the node of an instance is the one to write.
const OURS: [&str; 12] = [
    "AccessCredentialsSynchronized",
    "AgentConnected",
    "AgentVersionNotSupported",
    "HotMemoryChange",
    "HotVCPUChange",
    "LiveMigratable",
    "MemoryRestored",
    "Paused",
    "PodScheduled",
    "Ready",
    "StorageLiveMigratable",
    "Synchronized",
];

fn is_ours(kind: &str) -> bool {
    let more = [
        fairway_machines_plan::unsupported::CONDITION,
        fairway_machines_plan::lifecycle::HOTPLUG_FAILED,
        crate::instance::network::CONDITION,
        fairway_machines_plan::node::MIGRATION_PROGRESS,
    ];
    OURS.contains(&kind) || more.contains(&kind)
}

/// All conditions, sorted. The time of a transition moves only when the status does.
pub(super) fn merged<'c>(before: &Value, ours: impl Iterator<Item = &'c Condition>, now: &str) -> Vec<Value> {
    let before = before.as_array().map_or(&[][..], Vec::as_slice);
    let kind_of = |it: &Value| it["type"].as_str().unwrap_or_default().to_owned();
    let mut all: Vec<Value> = before
        .iter()
        .filter(|it| !is_ours(&kind_of(it)))
        .cloned()
        .collect();
    for condition in ours {
        let known = before.iter().find(|it| kind_of(it) == condition.kind);
        let moment = known
            .filter(|it| it["status"] == condition.status.as_str())
            .and_then(|it| it["lastTransitionTime"].as_str())
            .unwrap_or(now);
        let mut written = Map::new();
        for (field, value) in [
            ("type", condition.kind.as_str()),
            ("status", &condition.status),
            ("lastTransitionTime", moment),
            ("reason", &condition.reason),
            ("message", &condition.message),
        ] {
            if !value.is_empty() {
                written.insert(field.to_owned(), value.into());
            }
        }
        all.retain(|it| kind_of(it) != condition.kind);
        all.push(Value::Object(written));
    }
    all.sort_by_key(kind_of);
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn others_stay_and_ours_keep_their_time() {
        let before = json!([
            {"type": "Ready", "status": "True", "lastTransitionTime": "t0"},
            {"type": "Paused", "status": "True", "lastTransitionTime": "t0"},
            {"type": "EvictionRequested", "status": "True", "lastTransitionTime": "t0"},
            {"type": "AgentConnected", "status": "True", "lastTransitionTime": "t0"},
        ]);
        let ours = [
            Condition::holds("AgentConnected", "", ""),
            Condition::fails("Ready", "GuestNotRunning", "no"),
        ];
        let merged = merged(&before, ours.iter(), "t1");
        assert_eq!(
            json!(merged),
            json!([
                {"type": "AgentConnected", "status": "True", "lastTransitionTime": "t0"},
                {"type": "EvictionRequested", "status": "True", "lastTransitionTime": "t0"},
                {"type": "Ready", "status": "False", "lastTransitionTime": "t1", "reason": "GuestNotRunning", "message": "no"},
            ])
        );
    }
}
