//! Secrets are shown as masks. Equal values have equal masks, and different ones different, so that a difference can be
//! seen without being read.

use std::collections::BTreeSet;

use serde_json::Value;

use super::canonical::normalize_secret;
use super::last_applied;
use crate::annotation::{self, LAST_APPLIED};
use crate::key;

/// What a value is shown as, first.
const MASK: &str = "++++++++";
/// What another value of the same key is shown as, too.
const MORE: &str = "++++";

/// The target and the live object with everything masked that is secret; what is no Secret stays as it is.
pub fn mask(target: Option<&Value>, live: Option<&Value>) -> (Option<Value>, Option<Value>) {
    let is_secret = |object: Option<&Value>| object.is_some_and(|object| key::is(object, "", "Secret"));
    if !is_secret(target) && !is_secret(live) {
        return (target.cloned(), live.cloned());
    }
    let mut objects = [target.cloned(), live.cloned(), live.and_then(last_applied)];
    for object in objects.iter_mut().flatten() {
        normalize_secret(object);
    }
    let names = |object: &Value| {
        object["data"]
            .as_object()
            .map(|data| data.keys().cloned().collect::<Vec<_>>())
    };
    let names: BTreeSet<String> = objects.iter().flatten().filter_map(names).flatten().collect();
    for name in names {
        let mut seen: Vec<Value> = Vec::new();
        for object in objects.iter_mut().flatten() {
            let Some(value) = object.get_mut("data").and_then(|data| data.get_mut(&name)) else {
                continue;
            };
            let place = seen.iter().position(|known| known == value).unwrap_or_else(|| {
                seen.push(value.clone());
                seen.len() - 1
            });
            *value = format!("{MASK}{}", MORE.repeat(place)).into();
        }
    }
    let [target, mut live, before] = objects;
    if let Some(live) = &mut live {
        match before {
            Some(before) => annotation::set(live, LAST_APPLIED, &before.to_string()),
            // What cannot be read cannot be masked either.
            None if annotation::has(live, LAST_APPLIED) => annotation::set(live, LAST_APPLIED, MASK),
            None => {}
        }
    }
    (target, live)
}
