//! How a machine names its size and its taste: by name, or by a volume that knows it.

use serde_json::Value;

use super::super::{cause, same, text};
use crate::validate::{Cause, CauseType};

const MATCHERS: [(&str, &str); 2] = [
    ("instancetype", "InstancetypeMatcher"),
    ("preference", "PreferenceMatcher"),
];

/// What is wrong with both, in themselves and as a change.
pub(super) fn check(vm: &Value, old: Option<&Value>) -> Vec<Cause> {
    for (field, _) in MATCHERS {
        let change = old.and_then(|old| changed(&old["spec"][field], &vm["spec"][field]));
        if let Some(message) = change {
            let field = format!("spec.{field}.revisionName");
            return vec![cause(CauseType::Invalid, field, message)];
        }
    }
    for (field, word) in MATCHERS {
        let causes = named(field, word, &vm["spec"][field]);
        if !causes.is_empty() {
            return causes;
        }
    }
    Vec::new()
}

/// A machine that remembers what its size was must not go on remembering it when it gets another.
fn changed(old: &Value, new: &Value) -> Option<&'static str> {
    if !old.is_object() || !new.is_object() || same(old, new) {
        return None;
    }
    let (before, now) = (text(old, "/revisionName"), text(new, "/revisionName"));
    // Upstream looks whether the new one has a revision: the controller is the one that adds it.
    let is_stale = !now.is_empty() && before == now && text(old, "/name") != text(new, "/name");
    is_stale.then_some("the Matcher Name has been updated without updating the RevisionName")
}

fn named(field: &str, word: &str, matcher: &Value) -> Vec<Cause> {
    if !matcher.is_object() {
        return Vec::new();
    }
    let (name, volume) = (text(matcher, "/name"), text(matcher, "/inferFromVolume"));
    let mut causes = Vec::new();
    if name.is_empty() && volume.is_empty() {
        let message = format!("Either Name or InferFromVolume should be provided within the {word}");
        causes.push(cause(CauseType::NotFound, format!("spec.{field}"), message));
    }
    if !volume.is_empty() {
        for (part, said) in [("Name", name), ("Kind", text(matcher, "/kind"))] {
            if !said.is_empty() {
                let message =
                    format!("{part} should not be provided when InferFromVolume is used within the {word}");
                let field = format!("spec.{field}.{}", part.to_lowercase());
                causes.push(cause(CauseType::NotFound, field, message));
            }
        }
    }
    let policy = &matcher["inferFromVolumeFailurePolicy"];
    if let Some(policy) = policy.as_str()
        && !["Ignore", "Reject"].contains(&policy)
    {
        let message = format!("Invalid value '{policy}' for InferFromVolumeFailurePolicy");
        let field = format!("spec.{field}.inferFromVolumeFailurePolicy");
        causes.push(cause(CauseType::Invalid, field, message));
    }
    causes
}
