//! Conditions as kcp writes them: with a severity, sorted, and with times that only move when something changed.

use serde_json::{Map, Value, json};

/// How bad it is that a condition does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Somebody has to act.
    Error,
    /// It works, but not as intended.
    Warning,
    /// It will pass.
    Info,
}

impl Severity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Error => "Error",
            Self::Warning => "Warning",
            Self::Info => "Info",
        }
    }
}

/// The conditions of one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions(Vec<Map<String, Value>>);

impl Conditions {
    /// Those in an object's `status.conditions`.
    pub fn read(object: &Value) -> Self {
        let list = object.pointer("/status/conditions").and_then(Value::as_array);
        Self(
            list.into_iter()
                .flatten()
                .filter_map(Value::as_object)
                .cloned()
                .collect(),
        )
    }

    /// As they are written into an object.
    pub fn to_value(&self) -> Value {
        self.0.iter().cloned().map(Value::Object).collect()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn field(&self, kind: &str, field: &str) -> Option<&str> {
        self.get(kind)?.get(field)?.as_str()
    }

    /// One condition.
    pub fn get(&self, kind: &str) -> Option<&Map<String, Value>> {
        self.0
            .iter()
            .find(|it| it.get("type").and_then(Value::as_str) == Some(kind))
    }

    /// Whether a condition holds.
    pub fn is_true(&self, kind: &str) -> bool {
        self.field(kind, "status") == Some("True")
    }

    /// Whether a condition is known not to hold.
    pub fn is_false(&self, kind: &str) -> bool {
        self.field(kind, "status") == Some("False")
    }

    /// Why.
    pub fn reason(&self, kind: &str) -> Option<&str> {
        self.field(kind, "reason")
    }

    /// The kinds of conditions that are known not to hold.
    pub fn failing(&self) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(|it| it.get("status").and_then(Value::as_str) == Some("False"))
            .filter_map(|it| it.get("type")?.as_str())
    }

    /// It holds.
    pub fn mark_true(&mut self, kind: &str, now: &str) {
        self.set(json!({"type": kind, "status": "True"}), now);
    }

    /// It does not hold.
    pub fn mark_false(&mut self, kind: &str, reason: &str, severity: Severity, message: &str, now: &str) {
        self.set(
            json!({
                "type": kind,
                "status": "False",
                "severity": severity.as_str(),
                "reason": reason,
                "message": message,
            }),
            now,
        );
    }

    /// Takes over what another object says of a condition.
    pub fn copy_from(&mut self, other: &Self, kind: &str) {
        if let Some(condition) = other.get(kind) {
            let time = condition
                .get("lastTransitionTime")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            self.set(Value::Object(condition.clone()), &time);
        }
    }

    /// Forgets a condition.
    pub fn remove(&mut self, kind: &str) {
        self.0
            .retain(|it| it.get("type").and_then(Value::as_str) != Some(kind));
    }

    /// Sets `Ready` to what the given conditions say together: the worst of those that fail, else true.
    pub fn summarize(&mut self, kinds: &[&str], now: &str) {
        let rank = |severity: Option<&str>| match severity {
            Some("Error") => 0,
            Some("Warning") => 1,
            _ => 2,
        };
        let worst = kinds
            .iter()
            .filter(|kind| self.is_false(kind))
            .min_by_key(|kind| rank(self.field(kind, "severity")));
        let summary = match worst {
            Some(kind) => {
                let mut condition = self.get(kind).cloned().unwrap_or_default();
                condition.insert("type".to_owned(), json!("Ready"));
                Value::Object(condition)
            }
            None if kinds.iter().any(|kind| self.is_true(kind)) => json!({"type": "Ready", "status": "True"}),
            None => return,
        };
        self.set(summary, now);
    }

    /// Puts a condition in its place. The time stays if nothing else changed.
    fn set(&mut self, condition: Value, now: &str) {
        const SAID: [&str; 4] = ["status", "severity", "reason", "message"];
        let Value::Object(condition) = condition else {
            return;
        };
        let Some(kind) = condition.get("type").and_then(Value::as_str) else {
            return;
        };
        let same = self
            .get(kind)
            .filter(|old| SAID.iter().all(|field| old.get(*field) == condition.get(*field)));
        let time = same
            .and_then(|old| old.get("lastTransitionTime").cloned())
            .unwrap_or_else(|| json!(now));
        // One order of fields, however the condition came to be.
        let mut ordered = Map::new();
        ordered.insert("type".to_owned(), json!(kind));
        for field in SAID {
            if let Some(value) = condition.get(field) {
                ordered.insert(field.to_owned(), value.clone());
            }
        }
        ordered.insert("lastTransitionTime".to_owned(), time);
        self.remove(kind);
        self.0.push(ordered);
        self.0.sort_by(|a, b| {
            let key = |it: &Map<String, Value>| {
                let kind = it
                    .get("type")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned();
                (kind != "Ready", kind)
            };
            key(a).cmp(&key(b))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_move_with_content() {
        let mut conditions = Conditions::default();
        conditions.mark_false("B", "Missing", Severity::Error, "no b", "t1");
        conditions.mark_false("B", "Missing", Severity::Error, "no b", "t2");
        assert_eq!(conditions.get("B").unwrap()["lastTransitionTime"], "t1");
        conditions.mark_false("B", "Missing", Severity::Error, "still no b", "t3");
        assert_eq!(conditions.get("B").unwrap()["lastTransitionTime"], "t3");
        conditions.mark_true("B", "t4");
        assert_eq!(
            conditions.to_value(),
            json!([{"type": "B", "status": "True", "lastTransitionTime": "t4"}])
        );
    }

    #[test]
    fn ready_comes_first_and_tells_the_worst() {
        let mut conditions = Conditions::default();
        conditions.mark_false("C", "Soon", Severity::Info, "soon", "t");
        conditions.mark_false("B", "Bad", Severity::Error, "bad", "t");
        conditions.mark_true("A", "t");
        conditions.summarize(&["A", "B", "C"], "t");
        let order: Vec<_> = conditions.0.iter().map(|it| it["type"].clone()).collect();
        assert_eq!(order, ["Ready", "A", "B", "C"]);
        assert_eq!(conditions.reason("Ready"), Some("Bad"));
        conditions.mark_true("B", "t");
        conditions.mark_true("C", "t");
        conditions.summarize(&["A", "B", "C"], "t");
        assert!(conditions.is_true("Ready"));
        assert_eq!(conditions.failing().count(), 0);
    }

    #[test]
    fn what_others_wrote_is_kept() {
        let object = json!({"status": {"conditions": [{"type": "Theirs", "status": "Unknown"}, "rubbish"]}});
        let mut conditions = Conditions::read(&object);
        conditions.mark_true("Ours", "t");
        assert_eq!(conditions.to_value().as_array().unwrap().len(), 2);
        assert!(!conditions.is_true("Theirs") && !conditions.is_false("Theirs"));
    }
}
