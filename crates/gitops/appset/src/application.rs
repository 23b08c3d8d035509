//! Applications from templates, and what to do about those that are there.

use std::collections::{BTreeMap, BTreeSet};

use fairway_gitops_health::Customizations;
use fairway_gitops_sync::diff::ignore::{IgnoreStatus, Ignored, ResourceIgnoreDifferences};
use fairway_kernel_apply::patch::merge_patch;
use serde_json::{Map, Value, json};

use crate::generator::{self, Sources};
use crate::{Error, Params, Renderer};

/// Deletes an Application's objects with it.
const RESOURCES_FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";
/// Annotations that others write on Applications and that stay.
const KEPT_ANNOTATIONS: &[&str] = &[
    "notified.notifications.argoproj.io",
    "argocd.argoproj.io/refresh",
    "argocd.argoproj.io/hydrate",
];
/// Finalizers that the engine writes for hooks.
const KEPT_FINALIZERS: &[&str] = &[
    "pre-delete-finalizer.argocd.argoproj.io",
    "post-delete-finalizer.argocd.argoproj.io",
];

/// The Applications that an ApplicationSet stands for.
pub fn applications(set: &Value, sources: &dyn Sources) -> Result<Vec<Value>, Error> {
    let spec = &set["spec"];
    let renderer = Renderer::of(spec)?;
    let mut all: Vec<Value> = Vec::new();
    let mut names = BTreeSet::new();
    for generated in generator::generate(spec, sources)? {
        let template = merge_templates(&spec["template"], &generated.template);
        for params in &generated.params {
            let application = render(set, &template, params, renderer)?;
            let name = application["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            if name.is_empty() {
                return Err(Error::Generator(
                    "the template yields an Application without a name".to_owned(),
                ));
            }
            if !names.insert(name.clone()) {
                let set = set["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                return Err(Error::Duplicate { set, name });
            }
            all.push(application);
        }
    }
    Ok(all)
}

/// A generator's own template goes over the set's, where it says something.
fn merge_templates(base: &Value, over: &Value) -> Value {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            let mut out = base.clone();
            for (name, value) in over {
                let merged = merge_templates(base.get(name).unwrap_or(&Value::Null), value);
                out.insert(name.clone(), merged);
            }
            Value::Object(out)
        }
        (base, Value::Null) => base.clone(),
        (base, Value::String(text)) if text.is_empty() => base.clone(),
        (_, over) => over.clone(),
    }
}

fn render(set: &Value, template: &Value, params: &Params, renderer: Renderer) -> Result<Value, Error> {
    let filled = match params.is_empty() {
        true => template.clone(),
        false => renderer.value(template, params)?,
    };
    let mut application = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": filled["metadata"].clone(), "spec": filled["spec"].clone(),
    });
    if let Some(patch) = set["spec"]["templatePatch"].as_str() {
        application = patched(application, patch, params, renderer)?;
    }
    let metadata = &mut application["metadata"];
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    metadata["namespace"] = set["metadata"]["namespace"].clone();
    let keeps = set["spec"]["syncPolicy"]["preserveResourcesOnDeletion"] == true;
    let has_finalizers = metadata["finalizers"]
        .as_array()
        .is_some_and(|list| !list.is_empty());
    if !params.is_empty() && !keeps && !has_finalizers {
        metadata["finalizers"] = json!([RESOURCES_FINALIZER]);
    }
    Ok(application)
}

/// The Application with `templatePatch`, which may change all but what makes it an Application of its project.
fn patched(application: Value, patch: &str, params: &Params, renderer: Renderer) -> Result<Value, Error> {
    let bad = |reason: String| Error::Generator(format!("templatePatch: {reason}"));
    let text = renderer.text(patch, params)?;
    let value = fairway_text_yaml::from_str(&text, fairway_text_yaml::Limits::default())
        .map_err(|error| bad(error.to_string()))?;
    if value.is_null() {
        return Ok(application);
    }
    if !value.is_object() {
        return Err(bad("it yields no map".to_owned()));
    }
    let before = application.clone();
    let after = merge_patch(application, value).map_err(|error| bad(error.to_string()))?;
    for path in ["/apiVersion", "/kind", "/metadata/name", "/metadata/namespace"] {
        if before.pointer(path) != after.pointer(path) {
            return Err(bad(format!("it may not change {}", &path[1..])));
        }
    }
    if before.pointer("/spec/project") != after.pointer("/spec/project") {
        return Err(bad("it may not change spec/project".to_owned()));
    }
    Ok(after)
}

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
}

/// Compares the Applications that a set stands for with those that it has. That generators yield nothing is mostly a fault
/// of what they look at, so it deletes nothing unless `allow_empty`.
pub fn changes(
    set: &Value,
    desired: &[Value],
    existing: &[Value],
    allow_empty: bool,
) -> Result<Changes, Error> {
    let policy = set["spec"]["syncPolicy"]["applicationsSync"]
        .as_str()
        .unwrap_or("sync");
    let (updates, deletes) = match policy {
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
    let ignored = ignored(set)?;
    let by_name: BTreeMap<&str, &Value> = existing
        .iter()
        .map(|application| (name(application), application))
        .collect();
    let mut out = Changes::default();
    for application in desired {
        match by_name.get(name(application)) {
            None => out.changes.push(Change::Create(application.clone())),
            Some(live) if updates => {
                let updated = updated(set, application, live, &ignored);
                if updated != **live {
                    out.changes.push(Change::Update(updated));
                }
            }
            Some(_) => {}
        }
    }
    let wanted: BTreeSet<&str> = desired.iter().map(name).collect();
    let extra = by_name
        .keys()
        .filter(|name| deletes && !wanted.contains(**name))
        .map(|name| (*name).to_owned());
    match desired.is_empty() && !allow_empty {
        true => out.held = extra.collect(),
        false => out.changes.extend(extra.map(Change::Delete)),
    }
    Ok(out)
}

fn name(application: &Value) -> &str {
    application["metadata"]["name"].as_str().unwrap_or_default()
}

fn ignored(set: &Value) -> Result<Ignored, Error> {
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
    Ignored::new(&entries, &Customizations::default(), IgnoreStatus::None)
        .map_err(|error| Error::Generator(error.to_string()))
}

/// The live Application as the set wants it. What others write on it stays.
fn updated(set: &Value, desired: &Value, live: &Value, ignored: &Ignored) -> Value {
    let respected = ignored.respect(desired, live);
    let mut out = live.clone();
    out["spec"] = respected["spec"].clone();
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
    let mut finalizers = list(&respected);
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
    out
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
