//! What a kind does on write, whether Kubernetes brought it or a CRD did.
//!
//! Built-in kinds have a strategy and generated facts; custom ones have their structural schema. The verbs of `rest`
//! speak to both through these functions and know neither.

use fairway_kernel_apply::fieldpath::{Filter, Set};
use fairway_kernel_apply::managed_fields::{self, ApplyError, Ctx, SameVersion};
use fairway_kernel_apply::updater::ResetFields;
use fairway_kernel_kinds::WriteContext;
use fairway_kernel_schema::builtin::{self, UnknownFields};
use fairway_kernel_schema::field::FieldError;
use fairway_kernel_schema::structural::coerce_object_meta;
use fairway_kernel_tenancy::unserved;
use serde_json::Value;

use crate::registry::{Nature, ResourceDef};
use crate::rest::call::Call;
use crate::status::ApiError;

/// Drops what the kind does not have and returns the paths; refuses what cannot be decoded.
pub(crate) fn prune(def: &ResourceDef, object: &mut Value) -> Result<Vec<String>, ApiError> {
    match &def.nature {
        Nature::BuiltIn { info, .. } => {
            let findings = builtin::check(info, object, UnknownFields::Report);
            match findings.errors.first() {
                None => Ok(findings.unknown),
                Some(error) => Err(ApiError::bad_request(format!(
                    "{} in version {:?} cannot be handled as a {}: {error}",
                    def.kind, def.version, def.kind
                ))),
            }
        }
        Nature::Custom(custom) => {
            let mut unknown = custom.prune(object)?;
            let Some(metadata) = object.get_mut("metadata") else {
                return Ok(unknown);
            };
            let found = coerce_object_meta(metadata, "metadata").map_err(|error| {
                ApiError::bad_request(format!(
                    "{} in version {:?} cannot be handled as a {}: {error}",
                    def.kind, def.version, def.kind
                ))
            })?;
            unknown.extend(found);
            Ok(unknown)
        }
    }
}

/// Refuses a value that is not of this built-in type (what subresources, reviews and options take). Unknown fields are
/// dropped.
pub(crate) fn check_type(type_name: &str, value: &mut Value) -> Result<(), ApiError> {
    let Some(shape) = builtin::shape(type_name) else {
        return Ok(());
    };
    match builtin::check_shape(shape, value, UnknownFields::Ignore)
        .errors
        .first()
    {
        None => Ok(()),
        Some(error) => Err(ApiError::bad_request(error.to_string())),
    }
}

/// Fills in defaults.
pub(crate) fn default(def: &ResourceDef, object: &mut Value) {
    match &def.nature {
        Nature::BuiltIn { strategy, .. } => strategy.default(object),
        Nature::Custom(custom) => custom.default(object),
    }
}

/// Gives an object the form in which it is stored and answered: that of Go's encoder, for kinds that Go defines.
pub(crate) fn encode(def: &ResourceDef, object: &mut Value) {
    if let Nature::BuiltIn { info, .. } = &def.nature {
        builtin::encode(info, object);
    }
}

fn context<'c>(call: &'c Call<'_>) -> WriteContext<'c> {
    WriteContext {
        now: &call.now,
        subresource: call.subresource(),
        namespace: Some(call.namespace()).filter(|n| !n.is_empty()),
    }
}

/// Drops what a client may not set on create.
pub(crate) fn prepare_create(call: &Call<'_>, object: &mut Value) {
    match &call.def.nature {
        Nature::BuiltIn { strategy, .. } => strategy.prepare_create(&context(call), object),
        Nature::Custom(custom) => custom.prepare_create(object),
    }
}

/// Keeps what this endpoint may not change, and counts the generation.
pub(crate) fn prepare_update(call: &Call<'_>, object: &mut Value, old: &Value) {
    match &call.def.nature {
        Nature::BuiltIn { strategy, .. } => strategy.prepare_update(&context(call), object, old),
        Nature::Custom(custom) => custom.prepare_update(call.subresource(), object, old),
    }
}

/// Everything that is wrong with a new object.
pub(crate) fn validate_create(call: &Call<'_>, object: &Value) -> Vec<FieldError> {
    match &call.def.nature {
        Nature::BuiltIn { strategy, .. } => strategy.validate_create(&context(call), object),
        Nature::Custom(custom) => custom.validate_create(object, call.def.namespaced),
    }
}

/// Everything that is wrong with a changed object.
pub(crate) fn validate_update(call: &Call<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
    match &call.def.nature {
        Nature::BuiltIn { strategy, .. } => strategy.validate_update(&context(call), object, old),
        Nature::Custom(custom) => custom.validate_update(call.subresource(), object, old),
    }
}

/// What is accepted but worth saying.
pub(crate) fn warnings(call: &Call<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
    match &call.def.nature {
        Nature::BuiltIn { strategy, .. } => strategy.warnings(&context(call), object, old),
        Nature::Custom(custom) => {
            let unserved = unserved::warnings(&call.def.group, &call.def.resource, object);
            let mut warnings = custom.warnings();
            // Our own controllers write such objects, too; only who brings the field is told.
            warnings.extend(
                unserved
                    .into_iter()
                    .filter(|_| old.is_none_or(|old| old["spec"] != object["spec"])),
            );
            warnings
        }
    }
}

/// Whether PUT works without a resourceVersion.
pub(crate) fn allows_unconditional_update(def: &ResourceDef) -> bool {
    def.strategy().is_some_and(|s| s.allow_unconditional_update())
}

/// Whether PUT may create.
pub(crate) fn allows_create_on_update(def: &ResourceDef) -> bool {
    def.strategy().is_some_and(|s| s.allow_create_on_update())
}

/// Records who owns what after an ordinary write.
pub(crate) fn own_update(call: &Call<'_>, old: Option<&Value>, new: Value, manager: &str) -> Value {
    with_fields(call, |ctx| managed_fields::update(ctx, old, new, manager))
}

/// Merges an applied configuration into the live object, by ownership.
pub(crate) fn own_apply(
    call: &Call<'_>,
    old: Option<&Value>,
    applied: &Value,
    manager: &str,
    force: bool,
) -> Result<Value, ApplyError> {
    with_fields(call, |ctx| {
        managed_fields::apply(ctx, old, applied, manager, force)
    })
}

fn with_fields<T>(call: &Call<'_>, run: impl FnOnce(&Ctx<'_>) -> T) -> T {
    let def = &call.def;
    let (shapes, shape) = def.shape();
    let api_version = def.api_version();
    let subresource = call.subresource().unwrap_or("");
    let reset_fields = reset_fields(def, call.subresource(), &api_version);
    run(&Ctx {
        shapes,
        shape,
        api_version: &api_version,
        kind: &def.kind,
        subresource,
        time: &call.now,
        built_in: def.custom().is_none(),
        reset_fields: &reset_fields,
        converter: &SameVersion,
    })
}

fn reset_fields(def: &ResourceDef, subresource: Option<&str>, api_version: &str) -> ResetFields {
    let paths: &[&str] = match &def.nature {
        Nature::BuiltIn { strategy, .. } => strategy.reset_fields(subresource),
        Nature::Custom(custom) => custom.reset_fields(subresource),
    };
    if paths.is_empty() {
        return ResetFields::none();
    }
    let split: Vec<Vec<&str>> = paths.iter().map(|p| p.split('.').collect()).collect();
    let slices: Vec<&[&str]> = split.iter().map(Vec::as_slice).collect();
    ResetFields::new(vec![(
        api_version.to_owned(),
        Filter::Exclude(Set::from_paths(&slices)),
    )])
}
