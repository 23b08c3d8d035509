//! Looking into objects as they were read.

use serde_json::Value;

use crate::link::Evidence;

pub(crate) fn field<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    field(object, "/metadata/name")
}

pub(crate) fn items<'v>(object: &'v Value, pointer: &str) -> &'v [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// `Kind namespace/name`.
pub(crate) fn title(object: &Value) -> String {
    let kind = field(object, "/kind");
    match field(object, "/metadata/namespace") {
        "" => format!("{kind} {}", name(object)).trim_start().to_owned(),
        namespace => format!("{kind} {namespace}/{}", name(object))
            .trim_start()
            .to_owned(),
    }
}

/// One of conditions, whatever it says.
pub(crate) fn among<'v>(conditions: &'v [Value], kind: &str) -> Option<&'v Value> {
    conditions.iter().find(|it| it["type"] == kind)
}

/// A condition of an object, whatever it says.
pub(crate) fn condition<'v>(object: &'v Value, kind: &str) -> Option<&'v Value> {
    among(items(object, "/status/conditions"), kind)
}

/// A condition as evidence.
pub(crate) fn told(condition: &Value, owner: &str) -> Evidence {
    let mut place = format!("condition {}", field(condition, "/type"));
    if !field(condition, "/status").is_empty() {
        place += &format!("={}", field(condition, "/status"));
    }
    if !field(condition, "/reason").is_empty() {
        place += &format!(" ({})", field(condition, "/reason"));
    }
    if !owner.is_empty() {
        place += &format!(" of {owner}");
    }
    Evidence::new(
        place,
        field(condition, "/lastTransitionTime"),
        field(condition, "/message"),
    )
}

/// Warnings about an object, the last first, one of each reason, and no more than three.
pub(crate) fn warnings(events: &[Value], kind: &str, name: &str) -> Vec<Evidence> {
    let is_about = |it: &&Value| {
        it["involvedObject"]["kind"] == kind
            && it["involvedObject"]["name"] == name
            && it["type"] == "Warning"
    };
    let mut found: Vec<&Value> = events.iter().filter(is_about).collect();
    found.sort_by_key(|it| std::cmp::Reverse(moment(it).to_owned()));
    let mut told: Vec<&str> = Vec::new();
    found.retain(|it| {
        let reason = field(it, "/reason");
        let is_news = !told.contains(&reason);
        told.push(reason);
        is_news
    });
    let line = |it: &&Value| {
        let place = format!("event {} of {kind} {name}", field(it, "/reason"));
        Evidence::new(place, moment(it), field(it, "/message"))
    };
    found.iter().take(3).map(line).collect()
}

/// When something was last seen.
fn moment(event: &Value) -> &str {
    let times = [
        "/lastTimestamp",
        "/eventTime",
        "/firstTimestamp",
        "/metadata/creationTimestamp",
    ];
    let mut times = times.into_iter().map(|pointer| field(event, pointer));
    times.find(|it| !it.is_empty()).unwrap_or_default()
}

/// Labels or a selector as people write them.
pub(crate) fn labels(all: &Value) -> String {
    let pairs = all.as_object().into_iter().flatten();
    let pairs: Vec<String> = pairs
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    match pairs.is_empty() {
        true => "(none)".to_owned(),
        false => pairs.join(","),
    }
}
