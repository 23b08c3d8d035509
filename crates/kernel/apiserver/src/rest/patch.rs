//! `patch`: four ways to say what shall be different.

use bytes::Bytes;
use fairway_kernel_apply::managed_fields::ApplyError;
use fairway_kernel_apply::patch::{self as apply, PatchError};
use fairway_kernel_schema::field::{FieldError, Path};
use fairway_kernel_schema::json_type;
use serde_json::Value;

use super::call::{Answer, Call, meta};
use super::kind_check;
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

fn patch_kind(call: &Call<'_>) -> Result<PatchKind, ApiError> {
    let custom = call.def.custom().is_some();
    match body::media_type(call.headers) {
        "application/json-patch+json" => Ok(PatchKind::Json),
        "application/merge-patch+json" => Ok(PatchKind::Merge),
        "application/apply-patch+yaml" => Ok(PatchKind::Apply),
        "application/strategic-merge-patch+json" if !custom => Ok(PatchKind::Strategic),
        _ if custom => Err(ApiError::unsupported_media_type(CUSTOM_KINDS)),
        _ => Err(ApiError {
            message: "415: Unsupported Media Type".to_owned(),
            ..ApiError::unsupported_media_type("")
        }),
    }
}

/// Changes the object that the URL names.
pub(crate) async fn patch(call: &Call<'_>, body: Bytes) -> Answer {
    let options = WriteOptions::read("PatchOptions", call.query)?;
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
    let patch = parse_patch(kind, &body)?;
    let mut change = |old: &Value| {
        let patched = run(call, kind, old, &patch)?;
        let shown = patched.clone();
        write::decode(
            call,
            Parsed {
                value: patched,
                duplicates: Vec::new(),
            },
            options.field_validation,
        )
        .map_err(|error| unfit(kind, &patch, &shown, &error))
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

/// Reads a patch, and refuses what is no patch of its kind in the words of Go's decoder.
fn parse_patch(kind: PatchKind, bytes: &[u8]) -> Result<Value, ApiError> {
    let prefix = match kind {
        PatchKind::Strategic => "",
        _ => "error decoding patch: ",
    };
    let wrong = |why: &str| ApiError::bad_request(format!("{prefix}{why}"));
    let patch = fairway_text_yaml::parse_json(bytes, body::MAX_DEPTH)
        .map_err(|e| wrong(&fairway_text_yaml::json_fault(bytes).unwrap_or_else(|| e.to_string())))?
        .0;
    let (fits, wanted) = match kind {
        PatchKind::Json => (patch.is_array() || patch.is_null(), "[]handlers.jsonPatchOp"),
        _ => (patch.is_object() || patch.is_null(), "map[string]interface {}"),
    };
    if fits {
        Ok(patch)
    } else {
        let found = json_type(&patch);
        Err(wrong(&format!(
            "json: cannot unmarshal {found} into Go value of type {wanted}"
        )))
    }
}

/// A patch whose result cannot be decoded is an invalid patch. Shown is the result, or, where upstream patches Go
/// values, the patch.
fn unfit(kind: PatchKind, patch: &Value, patched: &Value, error: &ApiError) -> ApiError {
    let mut ordered = patched.clone();
    order_metadata(&mut ordered);
    let patched = &ordered;
    let shown = match kind {
        PatchKind::Strategic => apply::go_text(patch),
        PatchKind::Merge => sort_merged(patched, patch).to_string(),
        PatchKind::Json | PatchKind::Apply => sort_touched(patched, patch).to_string(),
    };
    let detail = error.message.split_once(" cannot be handled as a ").map_or_else(
        || error.message.clone(),
        |(_, why)| why.split_once(": ").map_or(why, |(_, why)| why).to_owned(),
    );
    let detail = match kind {
        PatchKind::Strategic => converted(&detail).unwrap_or(detail),
        _ => detail,
    };
    let about = About {
        group: "",
        resource: "",
        name: "",
    };
    ApiError::invalid(about, &[FieldError::invalid(&Path::new("patch"), shown, detail)])
}

/// What Go's decoder says of a wrong type, in the words of upstream's converter, through which strategic patches go.
fn converted(detail: &str) -> Option<String> {
    let rest = detail.strip_prefix("json: cannot unmarshal ")?;
    let (found, rest) = rest.split_once(" into ")?;
    let (_, wanted) = rest.rsplit_once(" of type ")?;
    let found = match found {
        "object" => "map",
        "array" => "slice",
        "number" => "int64",
        other => other,
    };
    Some(match wanted {
        slice if slice.starts_with("[]") => format!("cannot restore slice from {found}"),
        map if map.starts_with("map[") => format!("cannot restore map from {found}"),
        structure if structure.contains('.') => format!("cannot restore struct from: {found}"),
        // Go can convert an integer to a string, but not as JSON would.
        "string" if found == "int64" => "cannot convert int64 to string".to_owned(),
        simple => format!("unrecognized type: {simple}"),
    })
}

/// The fields of `metadata` in the order of Go's struct, in which upstream keeps them.
fn order_metadata(object: &mut Value) {
    const ORDER: [&str; 14] = [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
    ];
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        let place = |key: &str| ORDER.iter().position(|name| *name == key).unwrap_or(ORDER.len());
        let mut fields: Vec<_> = std::mem::take(metadata).into_iter().collect();
        fields.sort_by_key(|(key, _)| place(key));
        metadata.extend(fields);
    }
}

/// A merged document as Go writes it: the objects that the patch went into come out in order of their keys.
fn sort_merged(merged: &Value, patch: &Value) -> Value {
    let (Value::Object(fields), Value::Object(changes)) = (merged, patch) else {
        return merged.clone();
    };
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_unstable_by_key(|(key, _)| key.as_str());
    sorted
        .into_iter()
        .map(|(key, value)| {
            let value = changes
                .get(key)
                .map_or_else(|| value.clone(), |change| sort_merged(value, change));
            (key.clone(), value)
        })
        .collect()
}

/// The same for the objects on the paths of a JSON patch.
fn sort_touched(patched: &Value, operations: &Value) -> Value {
    let mut touched = Value::Object(serde_json::Map::new());
    for operation in operations.as_array().into_iter().flatten() {
        let mut place = &mut touched;
        for step in operation["path"].as_str().unwrap_or("").split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            if !place[step.as_str()].is_object() {
                place[step.as_str()] = Value::Object(serde_json::Map::new());
            }
            place = &mut place[step];
        }
    }
    sort_along(patched, &touched)
}

fn sort_along(value: &Value, touched: &Value) -> Value {
    let Value::Object(steps) = touched else {
        return value.clone();
    };
    if steps.is_empty() {
        return value.clone();
    }
    match value {
        Value::Object(_) => sort_merged_along(value, touched),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(i, item)| sort_along(item, &touched[i.to_string()]))
            .collect(),
        other => other.clone(),
    }
}

fn sort_merged_along(value: &Value, touched: &Value) -> Value {
    let mut sorted: Vec<_> = value.as_object().into_iter().flatten().collect();
    sorted.sort_unstable_by_key(|(key, _)| key.as_str());
    sorted
        .into_iter()
        .map(|(key, value)| (key.clone(), sort_along(value, &touched[key.as_str()])))
        .collect()
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
        PatchError::Unprocessable(_) => ApiError::unprocessable(),
        PatchError::Beyond(message) => ApiError {
            message,
            ..ApiError::unprocessable()
        },
        PatchError::Internal(message) => ApiError::unforeseen(message),
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
    let parsed = body::parse(body, BodyFormat::Yaml).map_err(|e| {
        ApiError::bad_request(format!(
            "error decoding YAML: error converting YAML to JSON: {}",
            e.message
        ))
    })?;
    let applied = parsed_apply(call, parsed, options)?;
    let name = call.path.name.as_str();
    let given = meta(&applied, "name");
    if !given.is_empty() && given != name {
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
        return Err(ApiError::bad_request(format!(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value \
             of type map[string]interface {{}}",
            json_type(applied)
        )));
    }
    let text = |field: &str| applied[field].as_str().unwrap_or("");
    let (version, kind) = (text("apiVersion"), text("kind"));
    if version != call.def.api_version() || kind != call.def.kind {
        let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
        return Err(ApiError::bad_request(format!(
            "invalid object type: {group}/{version}, Kind={kind}"
        )));
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
    kind_check::check_kind(call, &mut parsed.value)?;
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
