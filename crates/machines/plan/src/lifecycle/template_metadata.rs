//! Labels and annotations that an instance has of its machine's template, which follow the template while the guest runs.
//!
//! An instance has others, too: those that Fairway sets, and those that people put there. So it remembers which are the template's,
//! from the first change on; before that they are those that it was started with.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::instance::GENERATION_ANNOTATION;
use crate::view::Metadata;

/// What an instance has of its template: lists of keys.
pub const FROM_TEMPLATE: &str = "fairway.dev/from-template";

/// What Fairway sets, in which a template has no say.
const OWN: [&str; 6] = [
    FROM_TEMPLATE,
    GENERATION_ANNOTATION,
    "kubevirt.io/cluster-instancetype-name",
    "kubevirt.io/instancetype-name",
    "kubevirt.io/migrationTargetNodeName",
    "kubevirt.io/nodeName",
];

/// What changes in the metadata of an instance, as a merge patch. `started` and `current` are the `metadata` of the template.
pub(super) fn change(there: &Metadata, started: &Value, current: &Value) -> Option<Value> {
    let recorded = there.annotations.get(FROM_TEMPLATE);
    let recorded: Option<BTreeMap<String, BTreeSet<String>>> =
        recorded.and_then(|text| serde_json::from_str(text).ok());
    let (mut patch, mut record) = (json!({}), json!({}));
    for (field, present) in [("labels", &there.labels), ("annotations", &there.annotations)] {
        let wanted = entries(current, field);
        let before = match &recorded {
            Some(recorded) => recorded.get(field).cloned().unwrap_or_default(),
            None => entries(started, field).into_keys().map(str::to_owned).collect(),
        };
        for (key, value) in &wanted {
            if present.get(*key).is_none_or(|it| it != value) {
                patch[field][*key] = json!(value);
            }
        }
        let lost = before.iter().filter(|key| !wanted.contains_key(key.as_str()));
        for key in lost.filter(|key| present.contains_key(*key) && !OWN.contains(&key.as_str())) {
            patch[field][key] = Value::Null;
        }
        record[field] = wanted.into_keys().collect();
    }
    if patch == json!({}) {
        return None;
    }
    patch["annotations"][FROM_TEMPLATE] = record.to_string().into();
    Some(patch)
}

fn entries<'m>(metadata: &'m Value, field: &str) -> BTreeMap<&'m str, &'m str> {
    let all = metadata[field].as_object().into_iter().flatten();
    let all = all.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
    all.filter(|(key, _)| !OWN.contains(key)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_template_has_lost_goes_and_what_others_set_stays() {
        let labels = |labels: Value| json!({ "labels": labels });
        let record = |labels: &[&str]| json!({"labels": labels, "annotations": []}).to_string();
        let started = labels(json!({"app": "web", "tier": "front"}));
        // What the instance has; what it remembers; what the template says; what changes, and what it then remembers.
        for (there, remembered, current, changes, remembers) in [
            (
                json!({"app": "web", "tier": "front", "by": "hand"}),
                None,
                started.clone(),
                None,
                None,
            ),
            (
                json!({"app": "web", "tier": "front", "by": "hand", "kubevirt.io/nodeName": "n1"}),
                None,
                labels(json!({"app": "shop", "kubevirt.io/nodeName": "n2"})),
                Some(json!({"app": "shop", "tier": null})),
                Some(record(&["app"])),
            ),
            (
                json!({"app": "shop", "tier": "by hand"}),
                Some(record(&["app"])),
                labels(json!({"app": "shop"})),
                None,
                None,
            ),
            (
                json!({"app": "shop", "tier": "by hand"}),
                Some(record(&["app"])),
                Value::Null,
                Some(json!({"app": null})),
                Some(record(&[])),
            ),
        ] {
            let mut object = labels(there.clone());
            if let Some(text) = remembered {
                object["annotations"] = json!({ FROM_TEMPLATE: text });
            }
            let metadata: Metadata = serde_json::from_value(object).unwrap();
            let found = change(&metadata, &started, &current);
            let found_labels = found.as_ref().map(|it| it["labels"].clone());
            assert_eq!(found_labels, changes, "{there} {current}");
            let told = found.and_then(|it| it["annotations"][FROM_TEMPLATE].as_str().map(str::to_owned));
            assert_eq!(told, remembers, "{there} {current}");
        }
    }

    #[test]
    fn annotations_follow_likewise() {
        let annotations = |it: Value| json!({ "annotations": it });
        let there = annotations(json!({"note": "a", "old": "b", GENERATION_ANNOTATION: "7"}));
        let metadata: Metadata = serde_json::from_value(there).unwrap();
        let started = annotations(json!({"note": "a", "old": "b"}));
        let found = change(&metadata, &started, &annotations(json!({"note": "z"}))).unwrap();
        let record = r#"{"labels":[],"annotations":["note"]}"#;
        assert_eq!(
            found,
            json!({"annotations": {"note": "z", "old": null, FROM_TEMPLATE: record}})
        );
    }
}
