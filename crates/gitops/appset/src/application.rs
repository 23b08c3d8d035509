//! Applications from templates and parameters.

use std::collections::BTreeSet;

use fairway_kernel_apply::patch::merge_patch;
use serde_json::{Map, Value, json};

use crate::generator::{self, Sources};
use crate::{Error, Params, Renderer};

/// Deletes an Application's objects with it.
const RESOURCES_FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";

/// The Applications that an ApplicationSet stands for. Two of them may have the same name ([`duplicates`]).
pub fn applications(set: &Value, sources: &dyn Sources) -> Result<Vec<Value>, Error> {
    let spec = &set["spec"];
    let renderer = Renderer::of(spec)?;
    let mut all: Vec<Value> = Vec::new();
    for generated in generator::generate(spec, sources)? {
        let template = merge_templates(&spec["template"], &generated.template);
        for params in &generated.params {
            let application = render(set, &template, params, renderer)?;
            if name(&application).is_empty() {
                return Err(Error::Generator(
                    "the template yields an Application without a name".to_owned(),
                ));
            }
            all.push(application);
        }
    }
    Ok(all)
}

/// The names that several of these Applications have: which of them would be meant?
pub fn duplicates(applications: &[Value]) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let twice = applications.iter().filter(|it| !seen.insert(name(it)));
    twice.map(|it| name(it).to_owned()).collect()
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
    let metadata = &mut application["metadata"];
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    let keeps = set["spec"]["syncPolicy"]["preserveResourcesOnDeletion"] == true;
    let has_finalizers = metadata["finalizers"]
        .as_array()
        .is_some_and(|list| !list.is_empty());
    if !params.is_empty() && !keeps && !has_finalizers {
        metadata["finalizers"] = json!([RESOURCES_FINALIZER]);
    }
    if let Some(patch) = set["spec"]["templatePatch"].as_str() {
        application = patched(application, patch, params, renderer)?;
    }
    // Whoever may write sets in a namespace may not thereby write Applications in another one.
    application["metadata"]["namespace"] = set["metadata"]["namespace"].clone();
    application["spec"] = normalized(&application["spec"]);
    Ok(application)
}

/// The Application with `templatePatch`, which may change all but what it is and its project. Finalizers are added to those
/// that are there.
fn patched(application: Value, patch: &str, params: &Params, renderer: Renderer) -> Result<Value, Error> {
    let bad = |reason: String| Error::Template {
        text: patch.to_owned(),
        reason: format!("error while applying templatePatch: {reason}"),
    };
    let text = renderer.text(patch, params)?;
    let mut value = fairway_text_yaml::from_str(&text, fairway_text_yaml::Limits::default())
        .map_err(|error| bad(error.to_string()))?;
    if value.is_null() {
        return Ok(application);
    }
    if !value.is_object() {
        return Err(bad("it yields no map".to_owned()));
    }
    if let Some(Value::Array(added)) = value.pointer_mut("/metadata/finalizers") {
        let own = application["metadata"]["finalizers"].as_array();
        let mut all = own.cloned().unwrap_or_default();
        for finalizer in std::mem::take(added) {
            if !all.contains(&finalizer) {
                all.push(finalizer);
            }
        }
        *added = all;
    }
    let fixed: Vec<(&str, Value)> = ["apiVersion", "kind"]
        .into_iter()
        .map(|field| (field, application[field].clone()))
        .collect();
    let project = application["spec"]["project"].clone();
    let mut after = merge_patch(application, value).map_err(|error| bad(error.to_string()))?;
    for (field, value) in fixed {
        after[field] = value;
    }
    for field in ["metadata", "spec"] {
        if !after[field].is_object() {
            return Err(bad(format!("it leaves no {field}")));
        }
    }
    after["spec"]["project"] = project;
    Ok(after)
}

/// A spec as Argo CD writes it back: a project, and nothing that says nothing.
pub(crate) fn normalized(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let Some(fields) = spec.as_object_mut() else {
        return spec;
    };
    if fields.get("project").is_none_or(is_zero) {
        fields.insert("project".to_owned(), "default".into());
    }
    // `automated: {}` says something.
    let says_nothing = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    let policy = fields.get("syncPolicy").and_then(Value::as_object);
    if policy.is_some_and(|policy| policy.values().all(says_nothing)) {
        fields.shift_remove("syncPolicy");
    }
    if let Some(Value::Object(source)) = fields.get_mut("source") {
        for kind in ["kustomize", "helm", "directory"] {
            if source.get(kind).is_some_and(is_zero) {
                source.shift_remove(kind);
            }
        }
    }
    spec
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_zero),
        _ => false,
    }
}

/// The name of an object.
pub(crate) fn name(application: &Value) -> &str {
    application["metadata"]["name"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
