//! `status.conditions` of an Application, in Argo CD's form: only those that hold are there.

use serde_json::{Value, json};

/// What a condition is about. The words are Argo CD's, and the last is Fairway's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Type {
    ComparisonError,
    DeletionError,
    ExcludedResourceWarning,
    InvalidSpecError,
    OrphanedResourceWarning,
    RepeatedResourceWarning,
    SharedResourceWarning,
    SyncError,
    UnknownError,
    /// A field is not acted on.
    UnsupportedFieldWarning,
}

impl Type {
    fn as_str(self) -> &'static str {
        match self {
            Self::ComparisonError => "ComparisonError",
            Self::DeletionError => "DeletionError",
            Self::ExcludedResourceWarning => "ExcludedResourceWarning",
            Self::InvalidSpecError => "InvalidSpecError",
            Self::OrphanedResourceWarning => "OrphanedResourceWarning",
            Self::RepeatedResourceWarning => "RepeatedResourceWarning",
            Self::SharedResourceWarning => "SharedResourceWarning",
            Self::SyncError => "SyncError",
            Self::UnknownError => "UnknownError",
            Self::UnsupportedFieldWarning => "UnsupportedFieldWarning",
        }
    }

    /// Whether nothing can be synced while it holds.
    pub(crate) fn forbids_sync(self) -> bool {
        matches!(self, Self::ComparisonError | Self::InvalidSpecError)
    }
}

/// Something that people should know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Condition {
    pub(crate) kind: Type,
    pub(crate) message: String,
}

impl Condition {
    pub(crate) fn new(kind: Type, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// The list, in one order; a condition that held before keeps its time.
pub(crate) fn list(conditions: &[Condition], before: &Value, now: &str) -> Vec<Value> {
    let mut sorted = conditions.to_vec();
    sorted.sort();
    sorted.dedup();
    let since = |condition: &Condition| -> Value {
        let same =
            |old: &&Value| old["type"] == condition.kind.as_str() && old["message"] == condition.message;
        let old = before.as_array().into_iter().flatten().find(same);
        match old.map(|old| &old["lastTransitionTime"]) {
            Some(time) if time.is_string() => time.clone(),
            _ => now.into(),
        }
    };
    sorted
        .iter()
        .map(|condition| {
            json!({
                "type": condition.kind.as_str(),
                "message": condition.message,
                "lastTransitionTime": since(condition),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_keep_their_time_and_their_order() {
        let sync = Condition::new(Type::SyncError, "no");
        let spec = Condition::new(Type::InvalidSpecError, "bad");
        let first = Value::from(list(std::slice::from_ref(&sync), &Value::Null, "1"));
        let second = list(&[sync.clone(), spec, sync], &first, "2");
        let shown: Vec<String> = second
            .iter()
            .map(|c| {
                format!(
                    "{} {}",
                    c["type"].as_str().unwrap(),
                    c["lastTransitionTime"].as_str().unwrap()
                )
            })
            .collect();
        assert_eq!(shown, ["InvalidSpecError 2", "SyncError 1"]);
    }
}
