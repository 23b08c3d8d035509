//! What to do about the Applications that a set has, given those that it stands for.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use fairway_gitops_health::Customizations;
use fairway_gitops_sync::diff::ignore::{IgnoreStatus, Ignored, ResourceIgnoreDifferences};
use serde_json::{Value, json};

use crate::Error;
use crate::application::{name, normalized};

/// Annotations that others write on Applications and that stay.
const KEPT_ANNOTATIONS: &[&str] = &[
    "notified.notifications.argoproj.io",
    "argocd.argoproj.io/refresh",
    "argocd.argoproj.io/hydrate",
    // Answers to what the engine asks, which are meant for the one sync that waits for them.
    "argocd.argoproj.io/deletion-approved",
    "fairway.dev/approve-sync",
    // Where an object is, which the API says.
    "kcp.io/cluster",
];
/// Finalizers that the engine writes for hooks.
const KEPT_FINALIZERS: &[&str] = &[
    "pre-delete-finalizer.argocd.argoproj.io",
    "post-delete-finalizer.argocd.argoproj.io",
];

/// Something to do about an Application.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Make it.
    Create(Value),
    /// Write it over the one that is there.
    Update(Value),
    /// Delete the one of that name.
    Delete(String),
}

/// What to do, and what is not done although it differs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Changes {
    /// To do.
    pub changes: Vec<Change>,
    /// Applications that would be deleted, had the generators not suddenly yielded nothing at all.
    pub held: Vec<String>,
    /// Applications that are somebody else's, and why they are not touched.
    pub refused: Vec<(String, String)>,
}

/// What a set may do to Applications that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Change them.
    pub updates: bool,
    /// Delete them.
    pub deletes: bool,
}

impl Policy {
    /// `syncPolicy.applicationsSync`.
    pub fn of(set: &Value) -> Result<Self, Error> {
        let policy = set["spec"]["syncPolicy"]["applicationsSync"].as_str();
        let (updates, deletes) = match policy.unwrap_or_default() {
            "" | "sync" => (true, true),
            "create-only" => (false, false),
            "create-update" => (true, false),
            "create-delete" => (false, true),
            other => {
                return Err(Error::Generator(format!(
                    "unknown syncPolicy.applicationsSync {other:?}; use sync, create-only, create-update or create-delete"
                )));
            }
        };
        Ok(Self { updates, deletes })
    }
}

/// What a set stands for.
#[derive(Debug, Clone, Copy)]
pub struct Desired<'a> {
    /// The Applications, each name once.
    pub applications: &'a [Value],
    /// Names of which nothing is known but that they are meant: they are neither written nor deleted.
    pub unsure: &'a BTreeSet<String>,
    /// Whether no Applications at all is an answer. Mostly it is a fault of what the generators look at.
    pub may_be_empty: bool,
}

/// Compares the Applications that a set stands for with those that it has.
pub fn changes(set: &Value, desired: Desired<'_>, existing: &[Value]) -> Result<Changes, Error> {
    let policy = Policy::of(set)?;
    let ignored = ignored(set)?;
    let by_name: BTreeMap<&str, &Value> = existing
        .iter()
        .map(|application| (name(application), application))
        .collect();
    let mut out = Changes::default();
    for application in desired.applications {
        match by_name.get(name(application)) {
            None => out.changes.push(Change::Create(owned(set, application))),
            // Once it is gone, it is made again.
            Some(live) if is_deleting(live) => {}
            Some(live) if policy.updates => match updated(set, application, live, ignored.as_ref()) {
                Ok(updated) if updated == **live => {}
                Ok(updated) => out.changes.push(Change::Update(updated)),
                Err(why) => out.refused.push((name(application).to_owned(), why)),
            },
            Some(_) => {}
        }
    }
    let wanted: BTreeSet<&str> = desired.applications.iter().map(name).collect();
    let extra = by_name
        .iter()
        .filter(|(name, live)| {
            policy.deletes
                && !wanted.contains(**name)
                && !desired.unsure.contains(**name)
                && !is_deleting(live)
        })
        .map(|(name, _)| (*name).to_owned());
    let is_empty = desired.applications.is_empty() && desired.unsure.is_empty();
    match is_empty && !desired.may_be_empty {
        true => out.held = extra.collect(),
        false => out.changes.extend(extra.map(Change::Delete)),
    }
    Ok(out)
}

fn is_deleting(application: &Value) -> bool {
    !application["metadata"]["deletionTimestamp"].is_null()
}

/// An Application that is there, as a set wants it; the inner error says whose it is instead.
pub fn adopted(set: &Value, desired: &Value, live: &Value) -> Result<Result<Value, String>, Error> {
    Ok(updated(set, desired, live, ignored(set)?.as_ref()))
}

/// Whether no Applications at all can be meant: what the set itself lists, and pull requests, which come to an end. That
/// all directories, files or clusters are gone is mostly an accident.
pub fn may_be_empty(spec: &Value) -> bool {
    let mut pending: Vec<&Value> = spec["generators"].as_array().into_iter().flatten().collect();
    let mut outside = false;
    while let Some(generator) = pending.pop() {
        let has = |kind: &str| !generator[kind].is_null();
        if has("pullRequest") {
            return true;
        }
        outside |= [
            "git",
            "clusters",
            "scmProvider",
            "clusterDecisionResource",
            "plugin",
        ]
        .into_iter()
        .any(has);
        for nested in ["matrix", "merge"] {
            pending.extend(generator[nested]["generators"].as_array().into_iter().flatten());
        }
    }
    !outside
}

/// That a set is the controller of what it made: what it made goes with it.
fn owner(set: &Value) -> Option<Value> {
    let uid = set["metadata"]["uid"].as_str().filter(|uid| !uid.is_empty())?;
    Some(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": name(set), "uid": uid,
        "controller": true, "blockOwnerDeletion": true,
    }))
}

fn owned(set: &Value, application: &Value) -> Value {
    let mut out = application.clone();
    if let Some(owner) = owner(set) {
        out["metadata"]["ownerReferences"] = json!([owner]);
    }
    out
}

/// The owners of a live Application, the set among them; the error says who else controls it.
fn owners(set: &Value, live: &Value) -> Result<Option<Value>, String> {
    let Some(owner) = owner(set) else {
        return Ok(live["metadata"].get("ownerReferences").cloned());
    };
    let mut all = live["metadata"]["ownerReferences"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    if let Some(other) = all
        .iter()
        .find(|it| it["controller"] == true && it["uid"] != owner["uid"])
    {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        return Err(format!(
            "Object {}/{} is already owned by another {} controller {}",
            text(&live["metadata"]["namespace"]),
            name(live),
            text(&other["kind"]),
            text(&other["name"])
        ));
    }
    match all.iter_mut().find(|it| it["uid"] == owner["uid"]) {
        Some(own) => *own = owner,
        None => all.push(owner),
    }
    Ok(Some(Value::Array(all)))
}

/// What of Applications is not the set's; none if all is.
fn ignored(set: &Value) -> Result<Option<Ignored>, Error> {
    let mut entries = Vec::new();
    for entry in set["spec"]["ignoreApplicationDifferences"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let mut entry: ResourceIgnoreDifferences = serde_json::from_value(entry.clone())
            .map_err(|error| Error::Generator(format!("ignoreApplicationDifferences: {error}")))?;
        entry.group = "argoproj.io".to_owned();
        entry.kind = "Application".to_owned();
        entries.push(entry);
    }
    if entries.is_empty() {
        return Ok(None);
    }
    Ignored::new(&entries, &Customizations::default(), IgnoreStatus::None)
        .map(Some)
        .map_err(|error| Error::Generator(error.to_string()))
}

/// The live Application as the set wants it. What others write on it stays.
fn updated(set: &Value, desired: &Value, live: &Value, ignored: Option<&Ignored>) -> Result<Value, String> {
    let owners = owners(set, live)?;
    // Most sets ignore nothing, and most Applications are as they should be.
    let respected = match ignored {
        Some(ignored) => Cow::Owned(ignored.respect(desired, live)),
        None => Cow::Borrowed(desired),
    };
    let mut out = live.clone();
    // What Argo CD would leave out is no difference.
    let (spec, own) = (&respected["spec"], &live["spec"]);
    if spec != own && *spec != normalized(own) {
        out["spec"] = spec.clone();
    }
    replace(&mut out["metadata"], "ownerReferences", owners);
    for (field, always) in [("annotations", KEPT_ANNOTATIONS), ("labels", &[][..])] {
        let mut map = respected["metadata"][field]
            .as_object()
            .cloned()
            .unwrap_or_default();
        let asked = set["spec"]["preservedFields"][field].as_array();
        let asked = asked.into_iter().flatten().filter_map(Value::as_str);
        for key in asked.chain(always.iter().copied()) {
            if let Some(value) = live["metadata"][field].get(key) {
                map.insert(key.to_owned(), value.clone());
            }
        }
        replace(
            &mut out["metadata"],
            field,
            (!map.is_empty()).then_some(Value::Object(map)),
        );
    }
    let list = |application: &Value| {
        application["metadata"]["finalizers"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let mut finalizers = list(respected.as_ref());
    let is_kept = |name: &&Value| {
        let name = name.as_str().unwrap_or_default();
        KEPT_FINALIZERS
            .iter()
            .any(|kept| name == *kept || name.starts_with(&format!("{kept}/")))
    };
    for kept in list(live).iter().filter(is_kept) {
        if !finalizers.contains(kept) {
            finalizers.push(kept.clone());
        }
    }
    replace(
        &mut out["metadata"],
        "finalizers",
        (!finalizers.is_empty()).then_some(Value::Array(finalizers)),
    );
    Ok(out)
}

fn replace(object: &mut Value, field: &str, value: Option<Value>) {
    if let Some(fields) = object.as_object_mut() {
        match value {
            Some(value) => {
                fields.insert(field.to_owned(), value);
            }
            None => {
                fields.shift_remove(field);
            }
        }
    }
}

#[cfg(test)]
mod tests;
