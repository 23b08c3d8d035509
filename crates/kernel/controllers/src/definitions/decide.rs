//! What a CRD needs, from the little that is kept of it.

use fairway_kernel_schema::crd::conditions::{Condition, Removal, Status, established, terminating};
use fairway_kernel_schema::crd::{CLEANUP_FINALIZER, naming};
use kube::api::ObjectMeta;
use kube::core::ApiResource;
use serde_json::{Value, json};

/// What to do with a CRD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    /// It waits for names.
    SettleNames,
    /// Say that its objects are being deleted.
    Announce,
    /// Delete its objects.
    Empty {
        resource: ApiResource,
        namespaced: bool,
    },
    /// It may go.
    Release(Removal),
}

/// What the decisions need of a CRD: its schemas may be large, and are not among it.
pub(super) fn summary(meta: &ObjectMeta, crd: &Value) -> Value {
    let reached = crd
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .and_then(|versions| {
            // While a CRD that serves nothing is deleted, the server offers its stored version for this.
            let is = |mark: &'static str| move |v: &&Value| v[mark] == true;
            let found = versions.iter().find(is("served"));
            found
                .or_else(|| versions.iter().find(is("storage")))?
                .get("name")
                .cloned()
        });
    let field = |pointer: &str| crd.pointer(pointer).cloned().unwrap_or(Value::Null);
    json!({
        "metadata": {
            "name": meta.name, "deleting": meta.deletion_timestamp.is_some(),
            "cleanup": meta.finalizers.iter().flatten().any(|f| f == CLEANUP_FINALIZER),
        },
        "spec": {
            "group": field("/spec/group"), "names": field("/spec/names"), "scope": field("/spec/scope"), "reached": reached,
        },
        "status": {"acceptedNames": field("/status/acceptedNames"), "conditions": field("/status/conditions")},
    })
}

/// Decides on a [`summary`].
pub(super) fn decide(crd: &Value) -> Step {
    let is = |pointer: &str| crd.pointer(pointer).is_some_and(|v| v == true);
    if !is("/metadata/deleting") {
        let waits = !Condition::holds(crd, "NamesAccepted");
        return if waits { Step::SettleNames } else { Step::Nothing };
    }
    if !is("/metadata/cleanup") {
        return Step::Nothing;
    }
    if !Condition::holds(crd, "Established") {
        return Step::Release(Removal::NeverEstablished);
    }
    let told = Condition::find(crd, "Terminating").is_some_and(|c| c.status == Status::True)
        || Condition::find(crd, "Terminating") == Some(terminating(&Removal::Completed));
    if !told {
        return Step::Announce;
    }
    let text = |pointer: &str| {
        crd.pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (group, version) = (text("/spec/group"), text("/spec/reached"));
    if version.is_empty() {
        // No version at all: there never was an object.
        return Step::Release(Removal::Completed);
    }
    let resource = ApiResource {
        api_version: format!("{group}/{version}"),
        kind: text("/status/acceptedNames/kind"),
        plural: text("/status/acceptedNames/plural"),
        group,
        version,
    };
    Step::Empty {
        resource,
        namespaced: text("/spec/scope") == "Namespaced",
    }
}

/// Gives a CRD the names that have become free.
pub(super) fn settle(crd: &mut Value, others: &[&Value], now: &str) {
    let this = crd.clone();
    let decision = naming::decide(&this, others.iter().copied().chain([&this]));
    crd["status"]["acceptedNames"] = decision.names.to_value();
    decision.names_accepted.set(crd, now);
    decision.established.set(crd, now);
    if let Some(established) = established(crd) {
        established.set(crd, now);
    }
}

#[cfg(test)]
mod tests {
    use kube::api::ObjectMeta;
    use serde_json::{Value, json};

    use super::{Condition, Step, decide, settle, summary};

    fn crd(meta: Value, served: bool, conditions: &[(&str, &str)]) -> Value {
        let meta: ObjectMeta = serde_json::from_value(meta).unwrap();
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(t, s)| json!({"type": t, "status": s}))
            .collect();
        let names =
            json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"});
        let object = json!({
            "spec": {
                "group": "e.x", "scope": "Namespaced", "names": names,
                "versions": [{"name": "v2", "served": false, "storage": true}, {"name": "v1", "served": served, "schema": {"large": true}}],
            },
            "status": {"acceptedNames": names, "conditions": conditions},
        });
        summary(&meta, &object)
    }

    #[test]
    fn steps() {
        let live = json!({"name": "widgets.e.x"});
        let going = json!({
            "name": "widgets.e.x", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["customresourcecleanup.apiextensions.k8s.io"],
        });
        let held = json!({"name": "widgets.e.x", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["other"]});
        let up = [("NamesAccepted", "True"), ("Established", "True")];
        let told = [
            ("NamesAccepted", "True"),
            ("Established", "True"),
            ("Terminating", "True"),
        ];
        for (name, crd, want) in [
            ("served", crd(live.clone(), true, &up), "Nothing"),
            (
                "waits for names",
                crd(live, true, &[("NamesAccepted", "False")]),
                "SettleNames",
            ),
            ("deleted", crd(going.clone(), true, &up), "Announce"),
            ("deleted and told", crd(going.clone(), true, &told), "Empty"),
            (
                "never served",
                crd(going.clone(), true, &[("NamesAccepted", "False")]),
                "Release(NeverEstablished)",
            ),
            ("not served now", crd(going, false, &told), "Empty"),
            ("held by others", crd(held, true, &told), "Nothing"),
        ] {
            let step = format!("{:?}", decide(&crd));
            assert!(step.starts_with(want), "{name}: {step}");
            assert!(
                crd.pointer("/spec/versions").is_none(),
                "{name}: schemas are not kept"
            );
        }
    }

    #[test]
    fn objects_are_reached_through_a_served_version_or_the_stored_one() {
        let going = json!({
            "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["customresourcecleanup.apiextensions.k8s.io"],
        });
        let told = [
            ("NamesAccepted", "True"),
            ("Established", "True"),
            ("Terminating", "True"),
        ];
        for (served, version) in [(true, "e.x/v1"), (false, "e.x/v2")] {
            let Step::Empty { resource, namespaced } = decide(&crd(going.clone(), served, &told)) else {
                panic!("not emptied")
            };
            assert_eq!(
                (resource.api_version.as_str(), resource.plural.as_str()),
                (version, "widgets")
            );
            assert!(namespaced);
        }
    }

    #[test]
    fn names_are_given_when_they_are_free() {
        let waiting = || {
            json!({
                "spec": {"group": "e.x", "names": {"plural": "gadgets", "singular": "gadget", "kind": "Widget", "listKind": "WidgetList"}},
                "status": {"conditions": [{"type": "NamesAccepted", "status": "False"}]},
            })
        };
        let holder = crd(json!({}), true, &[("NamesAccepted", "True")]);
        let mut refused = waiting();
        settle(&mut refused, &[&holder], "t");
        assert!(!Condition::holds(&refused, "NamesAccepted"));
        let mut given = waiting();
        settle(&mut given, &[], "t");
        assert!(Condition::holds(&given, "NamesAccepted") && Condition::holds(&given, "Established"));
        assert_eq!(given["status"]["acceptedNames"]["kind"], "Widget");
    }
}
