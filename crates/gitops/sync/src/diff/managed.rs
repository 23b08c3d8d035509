//! Differences by owner: what fields a manager owns, and what others changed on the way.

use fairway_kernel_apply::fieldpath::{Path, PathElement, Set};
use fairway_kernel_apply::typed::Typed;
use fairway_kernel_schema::shape::{ShapeId, Shapes};
use serde_json::Value;

use super::jq::Step;

/// The type of an object.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    /// Where it is.
    pub shapes: &'a Shapes,
    /// Which it is.
    pub id: ShapeId,
}

/// The result of a dry run, in which only what `manager` owns differs from the live object. What it owned before and does
/// not any more is gone; what webhooks added or changed is as it was.
pub(super) fn without_foreign_changes(
    dry_run: &Value,
    live: &Value,
    manager: &str,
    shape: Shape<'_>,
) -> Value {
    let (is, will_be) = (owned(live, manager), owned(dry_run, manager));
    let before = Typed::new(shape.shapes, shape.id, live);
    let after = Typed::new(shape.shapes, shape.id, dry_run);
    let given_up = is.difference(&will_be);
    let without = before.remove(&given_up);
    match without.merge(&after.extract_with_keys(&will_be)) {
        Ok(merged) => {
            // Whether something that was given up lives on, because another owns it, only the server knows.
            let mut merged = merged.value.into_owned();
            restore_shared(&mut merged, dry_run, &given_up);
            merged
        }
        // Objects that do not fit their type are compared as they are.
        Err(_) => dry_run.clone(),
    }
}

fn restore_shared(merged: &mut Value, dry_run: &Value, given_up: &Set) {
    for path in given_up.paths() {
        let Some(steps) = locate(dry_run, &path) else {
            continue;
        };
        let Some(Step::Field(name)) = steps.last() else {
            continue;
        };
        let value = at(dry_run, &steps).cloned();
        let parent = locate(merged, &Path(path.0[..path.0.len() - 1].to_vec()));
        let Some((parent, value)) = parent.zip(value) else {
            continue;
        };
        if let Some(Value::Object(fields)) = at_mut(merged, &parent) {
            fields.insert(name.clone(), value);
        }
    }
}

/// The fields that a manager owns in an object.
fn owned(object: &Value, manager: &str) -> Set {
    entries(object, |name| name == manager)
}

fn entries(object: &Value, wanted: impl Fn(&str) -> bool) -> Set {
    let mut all = Set::new();
    for entry in object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let is_wanted = entry["manager"].as_str().is_some_and(&wanted)
            && entry["subresource"].as_str().unwrap_or_default().is_empty();
        if let Ok(set) = Set::from_fields_v1(&entry["fieldsV1"])
            && is_wanted
        {
            all = all.union(&set);
        }
    }
    all
}

/// Takes out of both objects the fields that differ and that one of `managers` owns in the live one.
pub(super) fn ignore_owned(target: &mut Value, live: &mut Value, managers: &[String]) {
    if managers.is_empty() {
        return;
    }
    let set = entries(live, |name| managers.iter().any(|manager| manager == name));
    let differing: Vec<(Vec<Step>, Vec<Step>)> = set
        .paths()
        .iter()
        .filter_map(|path| locate(live, path).zip(locate(target, path)))
        .filter(|(in_live, in_target)| {
            let (is, wanted) = (at(live, in_live), at(target, in_target));
            let scalar =
                |value: Option<&Value>| value.is_some_and(|value| !value.is_object() && !value.is_array());
            is != wanted && (scalar(is) || scalar(wanted))
        })
        .collect();
    // From the back, so that places in front stay what they are.
    let (mut in_live, mut in_target): (Vec<_>, Vec<_>) = differing.into_iter().unzip();
    in_live.sort_unstable();
    in_target.sort_unstable();
    in_live
        .iter()
        .rev()
        .for_each(|path| super::jq::remove(live, path));
    in_target
        .iter()
        .rev()
        .for_each(|path| super::jq::remove(target, path));
}

/// Where in a value a path leads; none if it leads nowhere.
fn locate(value: &Value, path: &Path) -> Option<Vec<Step>> {
    let (mut place, mut steps) = (value, Vec::with_capacity(path.0.len()));
    for element in &path.0 {
        let index = match element {
            PathElement::Field(name) => {
                place = place.get(name.as_str())?;
                steps.push(Step::Field(name.as_str().to_owned()));
                continue;
            }
            PathElement::Index(index) => usize::try_from(*index).ok()?,
            PathElement::Value(wanted) => place.as_array()?.iter().position(|item| *item == **wanted)?,
            PathElement::Key(fields) => {
                let fits = |item: &Value| {
                    fields
                        .iter()
                        .all(|field| item.get(field.name.as_str()) == Some(&field.value))
                };
                place.as_array()?.iter().position(fits)?
            }
        };
        place = place.get(index)?;
        steps.push(Step::Index(index));
    }
    Some(steps)
}

fn at<'a>(value: &'a Value, steps: &[Step]) -> Option<&'a Value> {
    steps.iter().try_fold(value, |place, step| match step {
        Step::Field(name) => place.get(name),
        Step::Index(index) => place.get(*index),
    })
}

fn at_mut<'a>(value: &'a mut Value, steps: &[Step]) -> Option<&'a mut Value> {
    steps.iter().try_fold(value, |place, step| match step {
        Step::Field(name) => place.get_mut(name),
        Step::Index(index) => place.get_mut(*index),
    })
}
