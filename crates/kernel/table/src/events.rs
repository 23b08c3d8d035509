//! Events, in the words of the core group and in those of `events.k8s.io`: the same objects, under other names.

use serde_json::Value;

use crate::Printer;
use crate::column::{Column, NAME, text as column, wide};
use crate::field::{at, filled_or, name, number, since, text};

pub(crate) fn events(resource: &str) -> Option<&'static Printer> {
    (resource == "events").then_some(&EVENT)
}

pub(crate) static EVENT: Printer = Printer {
    columns: &[
        column("Last Seen", "The time since the event happened last"),
        column("Type", "Normal or Warning"),
        column("Reason", "Why the event was sent, in one word"),
        column("Object", "The object that the event is about"),
        wide("Subobject", "The part of the object that the event is about"),
        wide("Source", "Who sent the event"),
        column("Message", "What happened"),
        wide("First Seen", "The time since the event happened first"),
        wide("Count", "How often the event happened"),
        Column { priority: 1, ..NAME },
    ],
    cells: |event, now| {
        let first = match either(event, "firstTimestamp", "deprecatedFirstTimestamp") {
            Some(path) => since(event, path, now),
            None => since(event, "eventTime", now),
        };
        let (last, count) = match at(event, "series") {
            Some(series) => (since(series, "lastObservedTime", now), number(series, "count")),
            None => {
                let last = either(event, "lastTimestamp", "deprecatedLastTimestamp");
                let last = last.map_or_else(|| first.clone(), |path| since(event, path, now));
                let count = either(event, "count", "deprecatedCount").map_or(0, |path| number(event, path));
                // The newer API counts only from the second time on.
                (last, count.max(1))
            }
        };
        let target = either(event, "involvedObject", "regarding").and_then(|path| at(event, path));
        vec![
            last.into(),
            text(event, "type").into(),
            text(event, "reason").into(),
            target.map_or(String::new(), object).into(),
            target.map_or("", |target| text(target, "fieldPath")).into(),
            source(event).into(),
            either(event, "message", "note")
                .map_or("", |path| text(event, path).trim())
                .into(),
            first.into(),
            count.into(),
            name(event),
        ]
    },
};

/// The path of the field that is there.
fn either<'p>(event: &Value, core: &'p str, newer: &'p str) -> Option<&'p str> {
    [core, newer].into_iter().find(|path| at(event, path).is_some())
}

fn object(target: &Value) -> String {
    let kind = text(target, "kind").to_lowercase();
    match text(target, "name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(event: &Value) -> String {
    let source = either(event, "source", "deprecatedSource")
        .and_then(|path| at(event, path))
        .unwrap_or(&Value::Null);
    let controller = filled_or(event, "reportingComponent", text(event, "reportingController"));
    let component = filled_or(source, "component", controller);
    match filled_or(source, "host", text(event, "reportingInstance")) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}
