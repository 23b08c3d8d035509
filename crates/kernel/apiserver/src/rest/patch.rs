//! `patch`: four ways to say what shall be different.

use bytes::Bytes;
use fairway_kernel_apply::managed_fields::ApplyError;
use fairway_kernel_apply::patch::{self as apply, PatchError};
use fairway_kernel_schema::field::{FieldError, Path};
use serde_json::Value;

use super::call::{Answer, Call, meta};
use super::write::{self, Update};
use crate::authorize;
use crate::behaviour;
use crate::http::body::{self, BodyFormat, Parsed};
use crate::query::{FieldValidation, WriteOptions};
use crate::status::{About, ApiError, Cause};

/// The kind of a patch, from its media type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

const CUSTOM_KINDS: &str =
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
const ALL_KINDS: &str = "application/json-patch+json, application/merge-patch+json, \
                         application/strategic-merge-patch+json, application/apply-patch+yaml";

fn patch_kind(call: &Call<'_>) -> Result<PatchKind, ApiError> {
    let custom = call.def.custom().is_some();
    match body::media_type(call.headers) {
        "application/json-patch+json" => Ok(PatchKind::Json),
        "application/merge-patch+json" => Ok(PatchKind::Merge),
        "application/apply-patch+yaml" => Ok(PatchKind::Apply),
        "application/strategic-merge-patch+json" if !custom => Ok(PatchKind::Strategic),
        _ => Err(ApiError::unsupported_media_type(if custom {
            CUSTOM_KINDS
        } else {
            ALL_KINDS
        })),
    }
}

/// Changes the object that the URL names.
pub(crate) async fn patch(call: &Call<'_>, body: Bytes) -> Answer {
    let options = WriteOptions::read(call.query)?;
    let kind = patch_kind(call)?;
    if kind == PatchKind::Apply {
        return server_side_apply(call, &body, &options).await;
    }
    if options.force.is_some() {
        return Err(ApiError::invalid_options(
            "PatchOptions",
            FieldError::forbidden(&Path::new("force"), "may not be specified for non-apply patch"),
        ));
    }
    let patch = body::parse(&body, BodyFormat::Json)
        .map_err(|e| ApiError::bad_request(format!("error decoding patch: {}", e.message)))?
        .value;
    if kind != PatchKind::Json && !patch.is_object() {
        return Err(ApiError::bad_request(
            "error decoding patch: it must be an object",
        ));
    }
    let mut change = |old: &Value| {
        let patched = run(call, kind, old, &patch)?;
        write::decode(
            call,
            Parsed {
                value: patched,
                duplicates: Vec::new(),
            },
            options.field_validation,
        )
        .map_err(|error| unfit(&body, &error))
    };
    let pinned = names_version(kind, &patch);
    let update = Update {
        name: &call.path.name,
        change: &mut change,
        owned: false,
        conditional: pinned,
    };
    write::update(call, &options, update).await?.answer(call)
}

/// A patch whose result cannot be decoded is an invalid patch.
fn unfit(patch: &[u8], error: &ApiError) -> ApiError {
    let shown = String::from_utf8_lossy(patch).into_owned();
    let detail = error.message.split_once("strict decoding error: ").map_or_else(
        || error.message.clone(),
        |(_, fields)| format!("strict decoding error: {fields}"),
    );
    let about = About {
        group: "",
        resource: "",
        name: "",
    };
    ApiError::invalid(about, &[FieldError::invalid(&Path::new("patch"), shown, detail)])
}

/// Whether the patch itself states a resourceVersion, which is then a condition.
fn names_version(kind: PatchKind, patch: &Value) -> bool {
    match kind {
        PatchKind::Json => patch.as_array().is_some_and(|ops| {
            ops.iter()
                .any(|op| op["path"] == "/metadata/resourceVersion" && op["op"] != "test")
        }),
        _ => !meta(patch, "resourceVersion").is_empty(),
    }
}

/// Applies a patch to an object.
fn run(call: &Call<'_>, kind: PatchKind, old: &Value, patch: &Value) -> Result<Value, ApiError> {
    let patched = match kind {
        PatchKind::Json => apply::json_patch(old.clone(), patch),
        PatchKind::Merge => apply::merge_patch(old.clone(), patch.clone()),
        PatchKind::Strategic | PatchKind::Apply => {
            let (shapes, shape) = call.def.shape();
            apply::strategic_merge_patch(shapes, shape, old.clone(), patch.clone())
        }
    };
    patched.map_err(patch_error)
}

pub(crate) fn patch_error(error: PatchError) -> ApiError {
    match error {
        PatchError::BadRequest(message) => ApiError::bad_request(message),
        PatchError::TooLarge(message) => ApiError {
            message,
            ..ApiError::too_large(0)
        },
        PatchError::Unprocessable(message) => ApiError::unprocessable(message),
        // Upstream answers 500 here, but a patch is computed from nothing but what the client sent.
        PatchError::Internal(message) => ApiError::bad_request(message),
    }
}

/// Who applies. Without a name there is nobody to own the fields.
pub(crate) fn apply_manager(options: &WriteOptions) -> Result<&str, ApiError> {
    options.field_manager.as_deref().ok_or_else(|| {
        ApiError::invalid_options(
            "PatchOptions",
            FieldError::required(&Path::new("fieldManager"), "is required for apply patch"),
        )
    })
}

async fn server_side_apply(call: &Call<'_>, body: &[u8], options: &WriteOptions) -> Answer {
    let manager = apply_manager(options)?;
    let parsed = body::parse(body, BodyFormat::Yaml)
        .map_err(|e| ApiError::bad_request(format!("error decoding YAML: {}", e.message)))?;
    let applied = parsed_apply(call, parsed, options)?;
    let name = call.path.name.as_str();
    let given = meta(&applied, "name");
    if given != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    let force = options.force.unwrap_or(false);
    if call.current(name).await?.is_none() {
        if call.subresource().is_some() {
            return Err(ApiError::not_found(call.about(name)));
        }
        if !meta(&applied, "uid").is_empty() {
            return Err(ApiError::conflict(
                call.about(name),
                format!(
                    "uid mismatch: the provided object specified uid {}, and no existing object was found",
                    meta(&applied, "uid")
                ),
            ));
        }
        if !meta(&applied, "resourceVersion").is_empty() {
            return Err(ApiError::not_found(call.about(name)));
        }
        // Apply creates what is not there, but only for who may create.
        authorize::require(call, "create")?;
        let mut object = behaviour::own_apply(call, None, &applied, manager, force).map_err(apply_error)?;
        behaviour::default(&call.def, &mut object);
        match write::create(call, object, options, true).await {
            Err(error) if error.reason == "AlreadyExists" => {}
            written => return written?.answer(call),
        }
    }
    let mut change = |old: &Value| {
        let mut object =
            behaviour::own_apply(call, Some(old), &applied, manager, force).map_err(apply_error)?;
        behaviour::default(&call.def, &mut object);
        Ok(object)
    };
    let pinned = !meta(&applied, "resourceVersion").is_empty();
    let update = Update {
        name,
        change: &mut change,
        owned: true,
        conditional: pinned,
    };
    write::update(call, options, update).await?.answer(call)
}

fn parsed_apply(call: &Call<'_>, parsed: Parsed, options: &WriteOptions) -> Result<Value, ApiError> {
    let applied = &parsed.value;
    if !applied.is_object() {
        return Err(ApiError::bad_request("the body of an apply must be an object"));
    }
    for field in ["apiVersion", "kind"] {
        if applied[field].as_str().unwrap_or("").is_empty() {
            return Err(ApiError::bad_request(format!(
                "Object '{field}' is missing in the applied configuration"
            )));
        }
    }
    if meta(applied, "name").is_empty() && !call.path.name.is_empty() {
        return Err(ApiError::bad_request(
            "metadata.name is required in an applied configuration",
        ));
    }
    // Unknown fields need no word here: they have no owner, so apply itself refuses them.
    let mut parsed = parsed;
    for complaint in std::mem::take(&mut parsed.duplicates) {
        let complaint = format!("error converting YAML to JSON: {complaint}");
        match options.field_validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => call.warn(complaint),
            FieldValidation::Strict => {
                return Err(ApiError::bad_request(format!(
                    "error strict decoding YAML: {complaint}"
                )));
            }
        }
    }
    write::check_kind(call, &mut parsed.value)?;
    Ok(parsed.value)
}

pub(crate) fn apply_error(error: ApplyError) -> ApiError {
    match error {
        ApplyError::Conflicts(conflicts) => {
            let causes = conflicts
                .causes()
                .map(|(message, field)| Cause {
                    reason: "FieldManagerConflict".to_owned(),
                    message,
                    field: field.to_owned(),
                })
                .collect();
            ApiError::apply_conflict(conflicts.to_string(), causes)
        }
        ApplyError::BadRequest(message) => ApiError::bad_request(message),
        ApplyError::Invalid(message) => ApiError::unforeseen(message),
    }
}
