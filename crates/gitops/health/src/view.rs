//! Short ways into JSON objects of which nothing is certain.

use serde_json::Value;

/// The group and kind of an object.
pub(crate) fn group_kind(object: &Value) -> (&str, &str) {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    (group, object["kind"].as_str().unwrap_or_default())
}

/// The version of an object without its group.
pub(crate) fn version(object: &Value) -> &str {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    version.split_once('/').map_or(version, |(_, version)| version)
}

/// A text, or an empty one.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A number, or zero.
pub(crate) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

/// The members of a list; none if it is no list.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// One of `status.conditions`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Condition<'a> {
    pub(crate) kind: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: Option<&'a str>,
    pub(crate) observed_generation: Option<i64>,
}

impl<'a> Condition<'a> {
    fn read(value: &'a Value) -> Self {
        Self {
            kind: text(&value["type"]),
            status: text(&value["status"]),
            reason: text(&value["reason"]),
            message: value["message"].as_str(),
            observed_generation: value["observedGeneration"].as_i64(),
        }
    }

    /// Whether it has this type and this status.
    pub(crate) fn is(&self, kind: &str, status: &str) -> bool {
        self.kind == kind && self.status == status
    }

    /// Its message; empty if there is none.
    pub(crate) fn words(&self) -> &'a str {
        self.message.unwrap_or_default()
    }
}

/// The conditions in a list of them.
pub(crate) fn conditions(list: &Value) -> impl Iterator<Item = Condition<'_>> {
    items(list).iter().map(Condition::read)
}
