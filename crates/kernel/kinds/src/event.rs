//! Event: one kind, two shapes. `v1` calls the object `involvedObject` and the text `message`; `events.k8s.io/v1` calls
//! them `regarding` and `note`, and is strict.

use serde_json::{Map, Value};

use crate::at::{At, Errors};
use crate::meta::{self, NameRule};
use crate::read::{self, int, part, text};
use crate::strategy::{Profile, Strategy, WriteContext};
use crate::validation;

/// Names in `v1` and what `events.k8s.io/v1` calls the same.
const RENAMED: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];
const SHORT_TEXT_MAX: usize = 128;
const NOTE_MAX: usize = 1024;

fn rename(event: &Value, api_version: &str, to: impl Fn(&str) -> Option<&'static str>) -> Value {
    let mut renamed = Map::new();
    for (key, value) in event.as_object().into_iter().flatten() {
        renamed.insert(to(key).map_or_else(|| key.clone(), str::to_owned), value.clone());
    }
    let mut event = Value::Object(renamed);
    if read::has(&event, "apiVersion") {
        read::set(&mut event, "apiVersion", api_version);
    }
    event
}

/// An event of `v1` as `events.k8s.io/v1` shows it.
pub fn core_to_events(event: &Value) -> Value {
    rename(event, "events.k8s.io/v1", |key| {
        RENAMED.iter().find(|(core, _)| *core == key).map(|(_, new)| *new)
    })
}

/// An event of `events.k8s.io/v1` as `v1` shows it.
pub fn events_to_core(event: &Value) -> Value {
    rename(event, "v1", |key| {
        RENAMED.iter().find(|(_, new)| *new == key).map(|(core, _)| *core)
    })
}

static PROFILE: Profile = Profile {
    name: NameRule::Own,
    create_on_update: true,
    ..Profile::NAMESPACED
};
static STRICT: Profile = Profile {
    create_on_update: true,
    ..Profile::NAMESPACED
};

/// Events as `v1` writes them.
pub(crate) struct CoreEvent;

impl Strategy for CoreEvent {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn default(&self, obj: &mut Value) {
        read::set_default(obj, "source", Value::Object(Map::new()));
        read::set_default(obj, "reportingComponent", "");
        read::set_default(obj, "reportingInstance", "");
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        validate_legacy(errs, obj, "reportingComponent");
    }

    fn selectable_fields(&self, obj: &Value) -> Vec<(&'static str, String)> {
        fields(obj)
    }
}

/// Events as `events.k8s.io/v1` writes them.
pub(crate) struct Event;

impl Strategy for Event {
    fn profile(&self) -> &'static Profile {
        &STRICT
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        let event = events_to_core(obj);
        validate_legacy(errs, &event, "reportingController");
        let series_changed = old.is_none_or(|old| !read::same(old.get("series"), obj.get("series")));
        if let Some(series) = obj.get("series").filter(|_| series_changed) {
            if int(series, "count").unwrap_or(0) < 2 {
                errs.invalid(&At::new("series.count"), "", "should be at least 2");
            }
            errs.require_text(&At::new("series"), series, "lastObservedTime");
        }
        if old.is_some() {
            return;
        }
        errs.require_text(&At::new(""), obj, "eventTime");
        let kind = text(obj, "type");
        if !matches!(kind, "Normal" | "Warning") {
            errs.invalid(&At::new("type"), "", format!("has invalid value: {kind}"));
        }
        for key in ["firstTimestamp", "lastTimestamp"] {
            if !text(&event, key).is_empty() {
                errs.invalid(&At::new(key), "", "needs to be unset");
            }
        }
        if int(&event, "count").unwrap_or(0) != 0 {
            errs.invalid(&At::new("count"), "", "needs to be unset");
        }
        let source = part(&event, "source");
        if !text(source, "component").is_empty() || !text(source, "host").is_empty() {
            errs.invalid(&At::new("source"), "", "needs to be unset");
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        let (new, old) = (events_to_core(obj), events_to_core(old));
        for key in [
            "involvedObject",
            "reason",
            "message",
            "source",
            "firstTimestamp",
            "lastTimestamp",
            "count",
            "type",
            "eventTime",
            "action",
            "related",
            "reportingInstance",
        ] {
            errs.immutable(&At::new(key), new.get(key), old.get(key));
        }
        let reporter = "reportingComponent";
        errs.immutable(
            &At::new("reportingController"),
            new.get(reporter),
            old.get(reporter),
        );
    }

    fn selectable_fields(&self, obj: &Value) -> Vec<(&'static str, String)> {
        fields(&events_to_core(obj))
    }
}

/// Fields of both shapes, so that selectors written for either work.
fn fields(event: &Value) -> Vec<(&'static str, String)> {
    let object = part(event, "involvedObject");
    let source = match text(part(event, "source"), "component") {
        "" => text(event, "reportingComponent"),
        component => component,
    };
    let of = |key: &str| text(object, key).to_owned();
    vec![
        ("involvedObject.kind", of("kind")),
        ("involvedObject.namespace", of("namespace")),
        ("involvedObject.name", of("name")),
        ("involvedObject.uid", of("uid")),
        ("involvedObject.apiVersion", of("apiVersion")),
        ("involvedObject.resourceVersion", of("resourceVersion")),
        ("involvedObject.fieldPath", of("fieldPath")),
        ("regarding.kind", of("kind")),
        ("regarding.namespace", of("namespace")),
        ("regarding.name", of("name")),
        ("regarding.uid", of("uid")),
        ("regarding.apiVersion", of("apiVersion")),
        ("regarding.resourceVersion", of("resourceVersion")),
        ("regarding.fieldPath", of("fieldPath")),
        ("reason", text(event, "reason").to_owned()),
        ("reportingComponent", text(event, "reportingComponent").to_owned()),
        ("reportingController", source.to_owned()),
        ("source", source.to_owned()),
        ("type", text(event, "type").to_owned()),
    ]
}

fn validate_legacy(errs: &mut Errors, event: &Value, reporter_name: &str) {
    let namespace = text(part(event, "metadata"), "namespace");
    let object = text(part(event, "involvedObject"), "namespace");
    let timed = !text(event, "eventTime").is_empty();
    let matches = if timed {
        !object.is_empty() || matches!(namespace, "default" | "kube-system")
    } else if object.is_empty() {
        matches!(namespace, "" | "default")
    } else {
        namespace == object
    };
    if !matches {
        errs.invalid(
            &At::new("involvedObject.namespace"),
            object,
            "does not match event.namespace",
        );
    }
    if timed {
        let reporter = text(event, "reportingComponent");
        if reporter.is_empty() {
            errs.required(&At::new(reporter_name), "");
        }
        errs.all_invalid(
            &At::new(reporter_name),
            reporter,
            validation::is_qualified_name(reporter),
        );
        for key in ["reportingInstance", "action", "reason"] {
            let value = text(event, key);
            if value.is_empty() {
                errs.required(&At::new(key), "");
            }
            if value.len() > SHORT_TEXT_MAX {
                errs.invalid(
                    &At::new(key),
                    "",
                    format!("can have at most {SHORT_TEXT_MAX} characters"),
                );
            }
        }
        if text(event, "message").len() > NOTE_MAX {
            errs.invalid(
                &At::new("message"),
                "",
                format!("can have at most {NOTE_MAX} characters"),
            );
        }
    }
    if meta::name(event).is_empty() {
        return;
    }
    errs.all_invalid(
        &At::new("namespace"),
        namespace,
        validation::is_dns1123_subdomain(namespace),
    );
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{core_to_events, events_to_core};
    use crate::check::{create, stored, update};

    fn core() -> Value {
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "ns"},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "ns"}, "reason": "R", "message": "m", "type": "Normal",
            "source": {"component": "c"}, "firstTimestamp": "2026-01-01T00:00:00Z", "count": 2, "reportingComponent": "x"})
    }

    #[test]
    fn shapes_convert_both_ways() {
        let event = core_to_events(&core());
        assert_eq!(event["apiVersion"], "events.k8s.io/v1");
        assert_eq!(event["regarding"]["name"], "p");
        assert_eq!(event["note"], "m");
        assert_eq!(event["deprecatedCount"], 2);
        assert_eq!(event["reportingController"], "x");
        assert_eq!(events_to_core(&event), core());
    }

    #[test]
    fn core_events() {
        create("", "events", core()).ok();
        let mut other = core();
        other["involvedObject"]["namespace"] = json!("elsewhere");
        create("", "events", other).fails(&[
            "involvedObject.namespace: Invalid value: \"elsewhere\": does not match event.namespace",
        ]);
    }

    #[test]
    fn new_events_are_strict() {
        let event = json!({"metadata": {"name": "e", "namespace": "ns"}, "regarding": {"kind": "Pod", "name": "p", "namespace": "ns"},
            "reason": "R", "type": "Normal", "eventTime": "2026-01-01T00:00:00.000000Z", "action": "A",
            "reportingController": "x.io/c", "reportingInstance": "i"});
        let old = stored("events.k8s.io", "events", event);
        update("events.k8s.io", "events", &old, |o| {
            o["series"] = json!({"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"});
        })
        .ok();
        update("events.k8s.io", "events", &old, |o| o["note"] = json!("other"))
            .fails(&["message: Invalid value: \"other\": field is immutable"]);
        create("events.k8s.io", "events", core_to_events(&core())).fails(&[
            "eventTime: Required value",
            "firstTimestamp: Invalid value: \"\": needs to be unset",
            "count: Invalid value: \"\": needs to be unset",
            "source: Invalid value: \"\": needs to be unset",
        ]);
    }
}
