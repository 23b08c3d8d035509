//! Manifests with one part replaced by something else, as a careless or hostile hand would: whatever it is, reading and building
//! end, twice with the same outcome, and nothing of another workspace is reached.

use fairway_text_yaml::{Limits, documents};
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use serde_json::{Value, json};

use super::{configure, fill};
use crate::build::build;
use crate::observed::{Kind, Observed};
use crate::settings::Settings;
use crate::table::{Action, Door, Endpoint, Target, TlsListener};

const CASES: [&str; 6] = [
    include_str!("../../../testdata/listeners.yaml"),
    include_str!("../../../testdata/backends.yaml"),
    include_str!("../../../testdata/filters.yaml"),
    include_str!("../../../testdata/policies.yaml"),
    include_str!("../../../testdata/openshift.yaml"),
    include_str!("../../../testdata/streams.yaml"),
];

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop_oneof![
            Just(""),
            Just("*"),
            Just("*."),
            Just("/"),
            Just("\u{0}"),
            Just("a\r\nb: c"),
            Just("%2f"),
            Just("("),
            Just("127.0.0.1")
        ]
        .prop_map(Value::from),
        "\\PC{0,40}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{"name": "x", "value": "y", "port": 65535, "kind": "Service"}])),
    ]
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum::<usize>(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// The `at`th part, counted in the order of the document.
fn part(value: &mut Value, at: usize) -> Option<&mut Value> {
    if at == 0 {
        return Some(value);
    }
    let mut left = at - 1;
    let parts: Vec<&mut Value> = match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(fields) => fields.values_mut().collect(),
        _ => return None,
    };
    for one in parts {
        let size = count(one);
        if left < size {
            return part(one, left);
        }
        left -= size;
    }
    None
}

proptest! {
    #[test]
    fn whatever_is_written_building_ends(case in 0..CASES.len(), changes in proptest::collection::vec((any::<usize>(), any_value()), 1..4)) {
        let mut objects: Vec<Value> = documents(CASES[case], Limits::default()).unwrap();
        let mut settings = Settings::default();
        objects.retain(|object| object["kind"] != "Settings");
        configure(&mut settings, &json!({}));
        objects.iter_mut().for_each(fill);
        let kinds: Vec<Kind> = objects.iter().map(|object| Kind::ALL.into_iter().find(|kind| object["kind"] == kind.name()).unwrap()).collect();
        for (at, change) in changes {
            let chosen = at % objects.len();
            let object = &mut objects[chosen];
            let size = count(object);
            if let Some(part) = part(object, (at / 7) % size) {
                *part = change;
            }
        }
        let mut observed = Observed::default();
        for (kind, object) in kinds.iter().zip(&objects) {
            // The same twice: nothing of one may be told to the other.
            for workspace in ["one", "two"] {
                observed.put(workspace, *kind, object);
            }
        }
        let built = build(&observed, &settings);
        prop_assert_eq!(&built, &build(&observed, &settings));
        for status in &built.statuses {
            let written = status.over(&Value::Null, &settings.controllers, "now");
            prop_assert!(written.is_object());
        }
        for cluster in built.table.clusters.values() {
            for endpoint in &cluster.endpoints {
                if let Endpoint::Listener(key) = endpoint {
                    prop_assert_eq!(&key.workspace, &cluster.key.workspace);
                }
            }
        }
        for door in built.table.doors.values() {
            let listeners: Vec<_> = match door {
                Door::Http(names) => names.iter().map(|(_, listener)| listener.clone()).collect(),
                Door::Tls(names) => names.iter().filter_map(|(_, listener)| match &**listener {
                    TlsListener::Terminate { http, certificates, .. } => {
                        let own = |workspace: &str| workspace.is_empty() || workspace == http.key.workspace;
                        assert!(certificates.iter().all(|key| own(&key.workspace)));
                        assert!(certificates.iter().all(|key| built.table.certificates.contains_key(key)));
                        Some(http.clone())
                    }
                    TlsListener::Passthrough(_) => None,
                }).collect(),
                Door::Tcp(_) => Vec::new(),
            };
            for listener in listeners {
                for (_, entries) in listener.routes.iter() {
                    for entry in entries.iter() {
                        let Action::Forward(backends) = &entry.rule.action else { continue };
                        for backend in backends {
                            if let Target::Cluster(key) = &backend.target {
                                prop_assert_eq!(&key.workspace, &listener.key.workspace);
                                prop_assert!(built.table.clusters.contains_key(key));
                            }
                        }
                    }
                }
            }
        }
    }
}
