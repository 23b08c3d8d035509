//! What snapshots, restores and clones do next, decided without looking anything up.

pub(crate) mod clone;
pub(crate) mod machine;
pub(crate) mod restore;
pub(crate) mod snapshot;

use serde_json::{Value, json};

/// Puts conditions into a status; the time of one moves when its status or its reason does. Upstream's text is the reason.
pub(crate) fn set_conditions(status: &mut Value, wanted: &[(&str, &str, &str)], now: &str) {
    let mut all = status["conditions"].as_array().cloned().unwrap_or_default();
    for (kind, truth, reason) in wanted {
        let new = json!({"type": kind, "status": truth, "reason": reason, "lastTransitionTime": now});
        match all.iter_mut().find(|it| it["type"] == *kind) {
            Some(old) if old["status"] == *truth && old["reason"] == *reason => {}
            Some(old) => *old = new,
            None => all.push(new),
        }
    }
    status["conditions"] = json!(all);
}

/// Whether a condition of an object is true.
pub(crate) fn condition_holds(object: &Value, kind: &str) -> bool {
    let all = object.pointer("/status/conditions").and_then(Value::as_array);
    all.into_iter()
        .flatten()
        .any(|it| it["type"] == kind && it["status"] == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_move_with_what_is_said() {
        let mut status = json!({});
        set_conditions(
            &mut status,
            &[("Ready", "False", "Not ready"), ("Progressing", "True", "a")],
            "t1",
        );
        set_conditions(
            &mut status,
            &[("Ready", "False", "Not ready"), ("Progressing", "True", "b")],
            "t2",
        );
        assert_eq!(status["conditions"][0]["lastTransitionTime"], "t1");
        assert_eq!(status["conditions"][1]["lastTransitionTime"], "t2");
        assert_eq!(status["conditions"].as_array().unwrap().len(), 2);
    }
}
