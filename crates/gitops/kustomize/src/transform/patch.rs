//! Patches: strategic merge and JSON (RFC 6902).

use fairway_kernel_apply::patch::json_patch;
use serde_json::Value;

use super::Context;
use crate::error::{Error, Result, Within};
use crate::kustomization;
use crate::limits::Limits;
use crate::merge::merge_resource;
use crate::read;
use crate::resmap::ResMap;
use crate::resource::Resource;
use crate::selector::Selector;

/// An entry of `patches`.
#[derive(Debug)]
pub(crate) struct Patch {
    form: Form,
    /// The length of its text.
    bytes: usize,
    target: Option<Selector>,
    /// What the patch is called in messages.
    source: String,
}

#[derive(Debug)]
enum Form {
    Strategic(Vec<Resource>),
    Json(Value),
}

impl Patch {
    /// Reads a patch, whose text tells which form it has.
    pub(crate) fn new(
        args: &kustomization::Patch,
        load: impl FnOnce(&str) -> Result<std::sync::Arc<[u8]>>,
        limits: &Limits,
    ) -> Result<Self> {
        let inline = args.patch.trim();
        let loaded;
        let (bytes, source): (&[u8], String) = match (inline, args.path.as_str()) {
            ("", "") => return Err(Error::new("must specify one of patch and path")),
            ("", path) => {
                loaded = load(path).within(|| format!("failed to get the patch file from path({path})"))?;
                (&loaded, format!("[path: {path:?}]"))
            }
            (inline, "") => (inline.as_bytes(), format!("[patch: {inline:?}]")),
            _ => return Err(Error::new("patch and path can't be set at the same time")),
        };
        let strategic = read::resources(bytes, limits);
        let json = read_json(bytes, limits);
        let form = match (strategic, json) {
            (Ok(strategic), Ok(operations)) if !strategic.is_empty() && !is_empty_list(&operations) => {
                return Err(Error::new(format!(
                    "illegally qualifies as both an SM and JSON patch: {source}"
                )));
            }
            (Ok(strategic), _) => Form::Strategic(strategic),
            (Err(_), Ok(operations)) => Form::Json(operations),
            (Err(strategic), Err(json)) => {
                return Err(Error::of(
                    strategic.kind(),
                    format!(
                        "unable to parse SM or JSON patch from {source}: not a strategic merge patch ({strategic}), not a \
                         JSON patch ({json})"
                    ),
                ));
            }
        };
        let mut patch = Self {
            form,
            bytes: bytes.len(),
            target: args.target.clone(),
            source,
        };
        if let Form::Strategic(patches) = &mut patch.form {
            for patch in patches {
                patch.allow_name_change |= args.allow_name_change;
                patch.allow_kind_change |= args.allow_kind_change;
                // The original notes this in an annotation, and in doing so makes all of them text.
                if args.allow_name_change || args.allow_kind_change {
                    patch.settle_strings("annotations");
                }
            }
        }
        Ok(patch)
    }

    pub(crate) fn run(&self, resources: &mut ResMap, context: &Context<'_>) -> Result<()> {
        match (&self.form, &self.target) {
            (Form::Strategic(patches), None) => patches.iter().try_for_each(|patch| {
                let id = patch.original_id(context.api);
                let at = resources
                    .find(&id, context.api)
                    .within(|| format!("no resource matches strategic merge patch \"{id}\""))?;
                resources
                    .edit(at, context.api, |resource| apply(resource, patch, context))
                    .within(|| self.source.clone())
            }),
            (Form::Strategic(patches), Some(target)) => {
                let patch = match &patches[..] {
                    [] => return Ok(()),
                    [patch] => patch,
                    _ => {
                        return Err(Error::new(format!(
                            "Multiple Strategic-Merge Patches in one `patches` entry is not allowed to set \
                             `patches.target` field: {}",
                            self.source
                        )));
                    }
                };
                let selected = resources.select(target, context.api, context.limits.regex_bytes)?;
                context.add(self.bytes.saturating_mul(selected.len()))?;
                apply_to(resources, &selected, patch, context).within(|| self.source.clone())
            }
            (Form::Json(_), None) => Err(Error::new(format!(
                "must specify a target for JSON patch {}",
                self.source
            ))),
            (Form::Json(operations), Some(target)) => {
                for at in resources.select(target, context.api, context.limits.regex_bytes)? {
                    context.add(self.bytes)?;
                    resources
                        .edit(at, context.api, |resource| {
                            resource.store_previous_id(context.api);
                            apply_json(resource, operations, context)
                        })
                        .within(|| self.source.clone())?;
                }
                Ok(())
            }
        }
    }
}

fn is_empty_list(operations: &Value) -> bool {
    operations.as_array().is_none_or(Vec::is_empty)
}

/// Reads the operations of a JSON patch, in JSON or YAML.
fn read_json(bytes: &[u8], limits: &Limits) -> Result<Value> {
    if bytes.is_empty() {
        return Err(Error::new("empty json patch operations"));
    }
    let operations = match bytes[0] {
        b'[' => serde_json::from_slice(bytes).map_err(|error| Error::new(error.to_string()))?,
        _ => read::configuration(bytes, limits)?,
    };
    match &operations {
        Value::Array(items) if items.iter().all(|item| item.is_object() || item.is_null()) => Ok(operations),
        Value::Null => Ok(operations),
        _ => Err(Error::new("a JSON patch is a list of operations")),
    }
}

/// An entry of `patchesJson6902`.
#[derive(Debug)]
pub(crate) struct JsonPatch {
    operations: Value,
    target: Selector,
}

impl JsonPatch {
    pub(crate) fn new(
        target: Option<Selector>,
        path: &str,
        inline: &str,
        load: impl FnOnce(&str) -> Result<std::sync::Arc<[u8]>>,
        limits: &Limits,
    ) -> Result<Self> {
        let target = target.filter(|target| !target.id.name.is_empty());
        let target = target.ok_or_else(|| Error::new("must specify the target name"))?;
        let loaded;
        let bytes = match (path, inline) {
            ("", "") => return Err(Error::new("empty file path and empty jsonOp")),
            ("", inline) => inline.as_bytes(),
            (path, "") => {
                loaded = load(path)?;
                if loaded.is_empty() {
                    return Err(Error::new(format!("patch file '{path}' seems to be empty")));
                }
                &loaded
            }
            _ => return Err(Error::new("must specify a file path or jsonOp, not both")),
        };
        let operations = read_json(bytes, limits).within(|| "decoding the JSON patch".to_owned())?;
        if is_empty_list(&operations) {
            return Err(Error::new(format!("patch appears to be empty; file={path}")));
        }
        Ok(Self { operations, target })
    }

    pub(crate) fn run(&self, resources: &mut ResMap, context: &Context<'_>) -> Result<()> {
        for at in resources.select(&self.target, context.api, context.limits.regex_bytes)? {
            resources.edit(at, context.api, |resource| {
                apply_json(resource, &self.operations, context)
            })?;
        }
        Ok(())
    }
}

/// The patches of `patchesStrategicMerge`, each for the resource of its name.
pub(crate) fn strategic(resources: &mut ResMap, patches: &[Resource], context: &Context<'_>) -> Result<()> {
    for patch in patches {
        let at = resources.find(&patch.original_id(context.api), context.api)?;
        apply_to(resources, &[at], patch, context)?;
    }
    Ok(())
}

/// Applies a patch to several resources, whatever it calls itself.
fn apply_to(
    resources: &mut ResMap,
    selected: &[usize],
    patch: &Resource,
    context: &Context<'_>,
) -> Result<()> {
    let mut prepared = patch.clone();
    // On this way the original turns labels and annotations into text, also those that were to be removed.
    prepared.settle_strings("labels");
    prepared.settle_strings("annotations");
    let mut apply = |resource: &mut Resource| {
        let api_version = resource.api_version().to_owned();
        prepared.set_api_version(&api_version);
        apply(resource, &prepared, context)
    };
    if resources.is_known_unique() {
        for at in selected {
            resources.edit(*at, context.api, &mut apply)?;
        }
        if resources.is_known_unique() {
            return Ok(());
        }
        resources.drop_gone();
        return resources.check_unique(context.api);
    }
    // Resources with the same id are patched together.
    let ids: std::collections::HashSet<_> = selected
        .iter()
        .filter_map(|at| resources.iter().as_slice().get(*at))
        .map(|resource| resource.current_id(context.api).into_key())
        .collect();
    for resource in resources.list_mut() {
        if ids.contains(&resource.current_id(context.api).into_key()) {
            apply(resource)?;
        }
    }
    resources.drop_gone();
    resources.check_unique(context.api)
}

fn apply(resource: &mut Resource, patch: &Resource, context: &Context<'_>) -> Result<()> {
    let (name, namespace, kind) = (
        resource.name().into_owned(),
        resource.namespace().into_owned(),
        resource.kind().into_owned(),
    );
    if patch.allow_name_change || patch.allow_kind_change {
        resource.store_previous_id(context.api);
    }
    // The original makes a new object of this, and then forgets it.
    if patch
        .value
        .get("$patch")
        .is_some_and(|directive| directive == "replace")
    {
        return Ok(());
    }
    let blanks = resource.blanks.clone();
    let merge = |value: &mut Value| -> Result<()> {
        let merged = merge_resource(&patch.value, value.take(), &blanks, context.api)
            .within(|| format!("patching {kind} {name}"))?;
        *value = merged.unwrap_or(Value::Null);
        Ok(())
    };
    match touches_all_annotations(&patch.value) {
        true => resource.with_history(merge)?,
        false => merge(&mut resource.value)?,
    }
    if resource.is_gone() {
        resource.value = Value::Null;
        return Ok(());
    }
    resource.allow_name_change |= patch.allow_name_change;
    resource.allow_kind_change |= patch.allow_kind_change;
    if !patch.allow_kind_change {
        resource.set_kind(&kind);
    }
    if !patch.allow_name_change {
        resource.set_name(&name)?;
    }
    resource.set_namespace(&namespace)
}

/// Whether a patch takes annotations away that it does not name.
fn touches_all_annotations(patch: &Value) -> bool {
    let replaces = |value: &Value| value.is_null() || value.get("$patch").is_some();
    let metadata = patch.get("metadata");
    replaces(patch)
        || metadata.is_some_and(replaces)
        || metadata
            .and_then(|metadata| metadata.get("annotations"))
            .is_some_and(replaces)
}

/// Applies operations to an object that shows its history, and keeps that history whatever they do to it.
fn apply_json(resource: &mut Resource, operations: &Value, context: &Context<'_>) -> Result<()> {
    let value = std::mem::take(&mut resource.value);
    let before = resource.clone();
    resource.value = value;
    let (kind, name) = (resource.kind().into_owned(), resource.name().into_owned());
    let depth = context.limits.yaml.depth;
    resource.with_history(|value| {
        let patched = json_patch(value.take(), operations)
            .map_err(|error| Error::new(format!("{error} in {kind} {name}")))?;
        if !patched.is_object() {
            return Err(Error::new("the JSON patch leaves no object"));
        }
        if is_deeper(&patched, depth) {
            return Err(Error::new(format!(
                "the patched object is nested deeper than {depth} levels"
            )));
        }
        *value = patched;
        Ok(())
    })?;
    let value = std::mem::take(&mut resource.value);
    *resource = Resource {
        value,
        blanks: Vec::new(),
        ..before
    };
    resource.tidy_annotations();
    Ok(())
}

fn is_deeper(value: &Value, limit: usize) -> bool {
    let Some(limit) = limit.checked_sub(1) else {
        return true;
    };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper(item, limit)),
        Value::Object(fields) => fields.values().any(|field| is_deeper(field, limit)),
        _ => false,
    }
}
