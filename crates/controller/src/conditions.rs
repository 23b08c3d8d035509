//! Conditions: the part of a status that people read.
//!
//! The list is sorted by type, the time of the last transition moves only when the status does, and writing what is
//! already there changes nothing. So two passes over the same world give the same bytes.

use serde_json::{Map, Value};

/// `status` of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody knows.
    Unknown,
}

impl Truth {
    /// As objects spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// A condition, without its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its name.
    pub kind: String,
    /// Whether it holds.
    pub status: Truth,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence that names the object and the next step.
    pub message: String,
    /// The generation that it is about, where the kind has such a field.
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// A condition.
    pub fn new(
        kind: impl Into<String>,
        status: impl Into<Truth>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind: kind.into(),
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            observed_generation: None,
        }
    }

    /// The same, for a generation.
    #[must_use]
    pub fn observed(self, generation: Option<i64>) -> Self {
        Self {
            observed_generation: generation,
            ..self
        }
    }
}

fn kind_of(condition: &Value) -> &str {
    condition.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// Writes conditions into `object.status.conditions`. `now` (RFC 3339) counts only for those whose status changes.
/// Returns whether anything changed; fields that others have put into a condition stay.
pub fn set(object: &mut Value, conditions: &[Condition], now: &str) -> bool {
    let Some(object) = object.as_object_mut() else {
        return false;
    };
    let status = object
        .entry("status")
        .or_insert_with(|| Value::Object(Map::new()));
    let Some(status) = status.as_object_mut() else {
        return false;
    };
    let before = match status.get("conditions") {
        Some(Value::Array(list)) => list.clone(),
        _ => Vec::new(),
    };
    let mut list = before.clone();
    for condition in conditions {
        let written = written(list.iter().find(|c| kind_of(c) == condition.kind), condition, now);
        match list.iter_mut().find(|c| kind_of(c) == condition.kind) {
            Some(place) => *place = written,
            None => list.push(written),
        }
    }
    list.sort_by(|a, b| kind_of(a).cmp(kind_of(b)));
    let changed = list != before;
    if changed {
        status.insert("conditions".to_owned(), list.into());
    }
    changed
}

fn written(before: Option<&Value>, condition: &Condition, now: &str) -> Value {
    let mut fields = before.and_then(Value::as_object).cloned().unwrap_or_default();
    let moved = fields.get("status").and_then(Value::as_str) != Some(condition.status.as_str());
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("type", condition.kind.as_str().into());
    put("status", condition.status.as_str().into());
    if let Some(generation) = condition.observed_generation {
        put("observedGeneration", generation.into());
    }
    put("reason", condition.reason.as_str().into());
    put("message", condition.message.as_str().into());
    if moved || !fields.contains_key("lastTransitionTime") {
        fields.insert("lastTransitionTime".to_owned(), now.into());
    }
    Value::Object(fields)
}

/// Whether a condition holds.
pub fn holds(object: &Value, kind: &str) -> bool {
    let list = object.pointer("/status/conditions").and_then(Value::as_array);
    list.is_some_and(|list| list.iter().any(|c| kind_of(c) == kind && c["status"] == "True"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Condition, Truth, holds, set};

    #[test]
    fn conditions_are_written_once() {
        let ready = |status: bool, message: &str| Condition::new("Ready", status, "Because", message);
        let old = json!({"status": {"conditions": [
            {"type": "Ready", "status": "True", "reason": "Because", "message": "m", "lastTransitionTime": "t0"},
        ]}});
        let time = |object: &Value| object["status"]["conditions"][0]["lastTransitionTime"].clone();
        for (name, condition, changed, want) in [
            ("nothing new", ready(true, "m"), false, "t0"),
            ("another message keeps the time", ready(true, "n"), true, "t0"),
            ("another status takes the time", ready(false, "m"), true, "t1"),
        ] {
            let mut object = old.clone();
            assert_eq!(set(&mut object, &[condition], "t1"), changed, "{name}");
            assert_eq!(time(&object), want, "{name}");
        }
    }

    #[test]
    fn conditions_are_sorted_and_start_without_a_status() {
        let mut object = json!({});
        let list = ["B", "A"].map(|kind| Condition::new(kind, Truth::Unknown, "R", "m").observed(Some(3)));
        assert!(set(&mut object, &list, "t"));
        let kinds: Vec<_> = object["status"]["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["type"].clone())
            .collect();
        assert_eq!(kinds, ["A", "B"]);
        assert_eq!(object["status"]["conditions"][0]["observedGeneration"], 3);
        assert!(!holds(&object, "A"));
        assert!(!set(&mut object, &list, "later"));
    }
}
