//! Conditions as they are written: with the times that the list before them knows.

use fairway_machines_plan::view::Condition;
use serde_json::{Value, json};

use crate::objects::{items, text};

/// A condition, with the time of its last change. Of `known` objects the first that has the same condition knows it.
pub(crate) fn written(decided: &Condition, known: &[&Value], now: &str) -> Value {
    let same = |it: &&Value| {
        it["type"] == decided.kind.as_str()
            && it["status"] == decided.status.as_str()
            && text(it, "/reason") == decided.reason
    };
    let known = known
        .iter()
        .filter_map(|object| items(object, "/status/conditions").find(same));
    let known: Vec<&Value> = known.collect();
    let time = |field: &str| known.iter().map(|it| &it[field]).find(|it| it.is_string());
    let mut written = json!(decided);
    if let Some(probed) = known
        .first()
        .map(|it| &it["lastProbeTime"])
        .filter(|it| it.is_string())
    {
        written["lastProbeTime"] = probed.clone();
    }
    // One that nobody knows the time of is as old as its first sight.
    written["lastTransitionTime"] = time("lastTransitionTime").cloned().unwrap_or_else(|| json!(now));
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_last_change() {
        let ready = |status: &str, reason: &str| Condition {
            kind: "Ready".to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: String::new(),
        };
        let object = |time: Value| {
            json!({"status": {"conditions": [
                {"type": "Ready", "status": "True", "reason": "R", "lastTransitionTime": time, "lastProbeTime": null},
            ]}})
        };
        let (early, silent) = (object(json!("t0")), object(json!(null)));
        for (name, decided, known, expected) in [
            ("known", ready("True", "R"), vec![&early], "t0"),
            ("changed", ready("False", "R"), vec![&early], "now"),
            ("for another reason", ready("True", "S"), vec![&early], "now"),
            ("nobody knows", ready("True", "R"), vec![&silent], "now"),
            ("another knows", ready("True", "R"), vec![&silent, &early], "t0"),
        ] {
            let written = written(&decided, &known, "now");
            assert_eq!(written["lastTransitionTime"], expected, "{name}");
            assert!(written.get("lastProbeTime").is_none(), "{name}");
        }
    }
}
