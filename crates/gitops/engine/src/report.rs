//! `status` of an Application, in Argo CD's form.

use std::collections::BTreeSet;

use fairway_gitops_health::Status;
use fairway_gitops_sync::compare::SyncStatus;
use fairway_gitops_sync::key;
use serde_json::{Map, Value, json};

use crate::application::Application;
use crate::conditions::{self, Condition};
use crate::desired::Rendered;
use crate::destination::control_plane;
use crate::observe::{Observation, Observed};

/// What a pass found out.
pub(crate) struct Report<'a> {
    pub(crate) application: &'a Application,
    /// None if there is nothing to compare with.
    pub(crate) observation: Option<&'a Observation>,
    /// The commits that were compared with; empty if they are not known.
    pub(crate) revisions: &'a [String],
    pub(crate) rendered: Option<&'a Rendered>,
    pub(crate) conditions: &'a [Condition],
    pub(crate) now: &'a str,
}

impl Report<'_> {
    /// The new status; what is not the comparison's stays.
    pub(crate) fn status(&self, before: &Value) -> Value {
        let mut status = match before {
            Value::Object(fields) => fields.clone(),
            _ => Map::new(),
        };
        let word = self.observation.map_or(SyncStatus::Unknown, |seen| seen.sync);
        let health = self.observation.map_or(Status::Unknown, |seen| seen.health);
        status.insert("sync".to_owned(), self.sync(word, &before["sync"]));
        status.insert(
            "health".to_owned(),
            with_time(json!({"status": health.as_str()}), &before["health"], self.now),
        );
        if let Some(seen) = self.observation {
            put(&mut status, "resources", resources(&seen.objects).into());
            let mut images = images(&seen.objects);
            images.extend(seen.child_images.iter().cloned());
            let summary = match images.is_empty() {
                true => json!({}),
                false => json!({"images": images}),
            };
            status.insert("summary".to_owned(), summary);
        }
        if let Some(rendered) = self.rendered.filter(|rendered| rendered.failure.is_none()) {
            match self.application.has_multiple_sources() {
                true => {
                    status.shift_remove("sourceType");
                    put(&mut status, "sourceTypes", json!(rendered.source_types));
                }
                false => {
                    status.shift_remove("sourceTypes");
                    put(&mut status, "sourceType", json!(rendered.source_types.first()));
                }
            }
        }
        let list = conditions::list(self.conditions, &before["conditions"], self.now);
        put(&mut status, "conditions", list.into());
        status.insert(
            "controllerNamespace".to_owned(),
            control_plane(self.application).into(),
        );
        Value::Object(status)
    }

    fn sync(&self, word: SyncStatus, before: &Value) -> Value {
        let spec = &self.application.object["spec"];
        let mut compared = Map::new();
        let several = self.application.has_multiple_sources();
        let which = if several { "sources" } else { "source" };
        compared.insert("destination".to_owned(), spec["destination"].clone());
        compared.insert(which.to_owned(), spec[which].clone());
        if !self.application.spec.ignore_differences.is_empty() {
            compared.insert("ignoreDifferences".to_owned(), spec["ignoreDifferences"].clone());
        }
        let word = match word {
            SyncStatus::Synced => "Synced",
            SyncStatus::OutOfSync => "OutOfSync",
            SyncStatus::Unknown => "Unknown",
        };
        let mut sync = json!({"comparedTo": compared, "status": word});
        match (self.revisions, several) {
            // What was compared with last stays known when nothing can be.
            ([], _) => {
                for field in ["revision", "revisions"] {
                    if let Some(value) = before.get(field) {
                        sync[field] = value.clone();
                    }
                }
            }
            (revisions, true) => sync["revisions"] = json!(revisions),
            ([revision, ..], false) => sync["revision"] = json!(revision),
        }
        sync
    }
}

/// Puts a list or a value in, or takes it away if there is nothing in it.
fn put(status: &mut Map<String, Value>, field: &str, value: Value) {
    let empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    match empty {
        true => {
            status.shift_remove(field);
        }
        false => {
            status.insert(field.to_owned(), value);
        }
    }
}

/// A value with the time since which it has been so.
fn with_time(mut value: Value, before: &Value, now: &str) -> Value {
    let since = match before["status"] == value["status"] && before["lastTransitionTime"].is_string() {
        true => before["lastTransitionTime"].clone(),
        false => now.into(),
    };
    value["lastTransitionTime"] = since;
    value
}

fn resources(objects: &[Observed]) -> Vec<Value> {
    objects.iter().map(resource).collect()
}

fn resource(observed: &Observed) -> Value {
    let object = observed.pair.live.as_ref().or(observed.pair.target.as_ref());
    let version = object.map_or("", |object| key::group_version(object).1);
    let named = &observed.pair.key;
    let mut entry = Map::new();
    let mut text = |field: &str, value: &str| {
        if !value.is_empty() {
            entry.insert(field.to_owned(), value.into());
        }
    };
    text("group", &named.group);
    text("version", version);
    text("kind", &named.kind);
    text("namespace", &named.namespace);
    text("name", &named.name);
    let state = &observed.state;
    match state.status {
        Some(SyncStatus::Synced) => text("status", "Synced"),
        Some(SyncStatus::OutOfSync) => text("status", "OutOfSync"),
        Some(SyncStatus::Unknown) => text("status", "Unknown"),
        None => {}
    }
    let health = match (&observed.health, &observed.pair.live) {
        (Some(health), Some(_)) => {
            let status = health.status_or_healthy();
            let mut shown = json!({"status": status.as_str()});
            // What something on its way says changes too often to be written each time.
            if !health.message.is_empty() && status != Status::Progressing {
                shown["message"] = health.message.as_str().into();
            }
            Some(shown)
        }
        (None, Some(_)) => None,
        (_, None) => Some(json!({"status": Status::Missing.as_str()})),
    };
    if let Some(health) = health {
        entry.insert("health".to_owned(), health);
    }
    for (field, holds) in [
        ("hook", state.hook),
        ("requiresPruning", state.requires_pruning),
        (
            "requiresDeletionConfirmation",
            state.requires_deletion_confirmation,
        ),
    ] {
        if holds {
            entry.insert(field.to_owned(), true.into());
        }
    }
    if state.wave != 0 {
        entry.insert("syncWave".to_owned(), state.wave.into());
    }
    Value::Object(entry)
}

/// The images of everything that runs containers.
fn images(objects: &[Observed]) -> BTreeSet<String> {
    let live = objects.iter().filter_map(|observed| observed.pair.live.as_ref());
    live.flat_map(images_of).collect()
}

/// The images of an object that runs containers.
pub(crate) fn images_of(object: &Value) -> BTreeSet<String> {
    let mut images = BTreeSet::new();
    let spec = &object["spec"];
    let pods = [
        spec,
        &spec["template"]["spec"],
        &spec["jobTemplate"]["spec"]["template"]["spec"],
    ];
    for list in pods
        .into_iter()
        .flat_map(|pod| [&pod["containers"], &pod["initContainers"]])
    {
        let named = list.as_array().into_iter().flatten();
        images.extend(named.filter_map(|container| container["image"].as_str().map(str::to_owned)));
    }
    images
}

/// The time as objects have it: whole seconds.
pub(crate) fn timestamp(now: jiff::Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
