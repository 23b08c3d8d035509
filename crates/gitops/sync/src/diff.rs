//! Whether a live object is what was declared.
//!
//! Two ways, as in Argo CD. [`three_way`] asks what applying the declared object would make of the live one, with the
//! configuration that was applied last telling what is to be removed; defaults of built-in kinds are filled in on both
//! sides. [`server_side`] is told by the API server, from a dry run, and leaves out what webhooks changed. Either way
//! both sides are brought into one form first ([`canonical`]), and what users ignore is taken out of both
//! ([`ignore`]), so that what remains is a difference that somebody made.

mod canonical;
pub mod ignore;
pub mod jq;
mod managed;
mod merge;
pub mod secret;

use serde_json::Value;

use crate::annotation::{self, LAST_APPLIED};
pub use managed::Shape;

/// What the comparison leaves out.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Rules of roles that are aggregated from others do not count.
    pub ignore_aggregated_roles: bool,
    /// What users ignore.
    pub ignore: ignore::Ignored,
}

/// Two forms of an object; they are equal unless somebody made a difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// What is there. Null if nothing is.
    pub live: Value,
    /// What would be there after a sync. Null if nothing is declared.
    pub predicted: Value,
}

impl Difference {
    /// Whether a sync would change the object. What is not declared is not modified: it is extra.
    pub fn is_modified(&self) -> bool {
        !self.predicted.is_null() && self.live != self.predicted
    }
}

/// Compares a declared with a live object.
pub fn three_way(target: Option<&Value>, live: Option<&Value>, options: &Options) -> Difference {
    let (mut target, mut live) = (target.cloned(), live.cloned());
    options.ignore.apply(target.as_mut(), live.as_mut());
    let mut live = live.map(|live| canonical::canonical(live, options.ignore_aggregated_roles));
    let Some(target) = target else {
        return Difference {
            live: live.unwrap_or(Value::Null),
            predicted: Value::Null,
        };
    };
    let target = canonical::canonical(target, options.ignore_aggregated_roles);
    let Some(there) = live.as_mut() else {
        return Difference {
            live: Value::Null,
            predicted: target,
        };
    };
    let before = last_applied(there).map(|mut before| {
        options.ignore.apply(Some(&mut before), None);
        canonical::canonical(before, options.ignore_aggregated_roles)
    });
    let [target, before] = [Some(target), before].map(|object| object.map(without_place));
    let target = target.unwrap_or(Value::Null);
    let mut predicted = merge::three_way(there, before.as_ref().unwrap_or(&target), &target);
    canonical::fill_defaults(there);
    canonical::fill_defaults(&mut predicted);
    Difference {
        live: live.unwrap_or(Value::Null),
        predicted,
    }
}

/// Compares a live object with what a dry run of the sync by `manager` made of it. With a shape, fields that somebody else
/// changed on the way (webhooks) are left out, unless `include_webhooks`.
pub fn server_side(
    dry_run: &Value,
    live: &Value,
    manager: &str,
    shape: Option<Shape<'_>>,
    include_webhooks: bool,
    options: &Options,
) -> Difference {
    let mut predicted = match shape {
        Some(shape) if !include_webhooks => managed::without_foreign_changes(dry_run, live, manager, shape),
        _ => dry_run.clone(),
    };
    let mut live = live.clone();
    options.ignore.apply(Some(&mut predicted), Some(&mut live));
    let [live, predicted] = [live, predicted].map(|object| {
        let mut object = canonical::canonical(object, options.ignore_aggregated_roles);
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.shift_remove("managedFields");
        }
        object
    });
    Difference { live, predicted }
}

/// What `kubectl apply` would write over a live object: the declared fields, without those that were declared before and are
/// no longer, and with the configuration remembered for the next time.
pub fn applied(target: &Value, live: Option<&Value>) -> Value {
    let mut target = target.clone();
    annotation::remove(&mut target, LAST_APPLIED);
    let memory = format!("{target}\n");
    annotation::set(&mut target, LAST_APPLIED, &memory);
    match live {
        None => target,
        Some(live) => {
            let before = last_applied(live);
            merge::three_way(live, before.as_ref().unwrap_or(&target), &target)
        }
    }
}

/// The configuration that was applied last, if the object remembers one.
pub fn last_applied(live: &Value) -> Option<Value> {
    let text = annotation::get(live, LAST_APPLIED);
    serde_json::from_str::<Value>(text).ok().filter(Value::is_object)
}

/// Without what a declared object may leave to its destination.
fn without_place(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("namespace");
        let empty = metadata.get("annotations").is_some_and(|map| match map {
            Value::Null => true,
            Value::Object(map) => map.is_empty(),
            _ => false,
        });
        if empty {
            metadata.shift_remove("annotations");
        }
    }
    object
}

#[cfg(test)]
mod tests;
