//! What is wrong with the values of metadata: names, labels, annotations, owners, finalizers.

use serde_json::{Map, Value};

use super::coerce_object_meta;
use crate::field::{FieldError, Path};
use crate::json_type;
use crate::structural::canonical;
use fairway_kernel_scalar::names;

/// All annotations of an object together.
const TOTAL_ANNOTATION_SIZE_LIMIT: usize = 256 << 10;

/// Says what is wrong with a name; the flag says that it is a prefix (`generateName`).
pub(crate) type NameRule<'a> = &'a dyn Fn(&str, bool) -> Vec<String>;

/// Type and metadata of a resource inside of another.
pub(super) fn validate_resource(object: &Map<String, Value>, path: &Path, errors: &mut Vec<FieldError>) {
    for field in ["apiVersion", "kind"] {
        if !object.contains_key(field) {
            errors.push(FieldError::required(&path.child(field), ""));
        }
    }
    for (name, value) in object {
        let here = || path.child(name);
        match (name.as_str(), value) {
            ("apiVersion" | "kind", Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(&here(), "", "must not be empty"));
            }
            ("apiVersion", Value::String(text)) if text.matches('/').count() > 1 => {
                let detail = format!("unexpected GroupVersion string: {text}");
                errors.push(FieldError::invalid(&here(), text.as_str(), detail));
            }
            ("apiVersion", Value::String(_)) => {}
            ("kind", Value::String(text)) => {
                let wrong = names::is_dns1035_label(&text.to_lowercase());
                if !wrong.is_empty() {
                    let detail = format!(
                        "may have mixed case, but should otherwise match: {}",
                        wrong.join(",")
                    );
                    errors.push(FieldError::invalid(&here(), text.as_str(), detail));
                }
            }
            ("apiVersion" | "kind", other) => {
                errors.push(FieldError::invalid(
                    &here(),
                    canonical::shown(other),
                    "must be a string",
                ));
            }
            ("metadata", metadata) => {
                let mut decoded = metadata.clone();
                match coerce_object_meta(&mut decoded, "") {
                    Err(reason) => {
                        errors.push(FieldError::invalid(&here(), canonical::shown(metadata), reason));
                    }
                    Ok(_) => {
                        if let Value::Object(object) = &mut decoded
                            && !object.contains_key("name")
                        {
                            // The surrounding object may well create it later, with a name of its own.
                            object.insert("name".to_owned(), "fakename".into());
                        }
                        let namespaced = decoded.get("namespace").is_some();
                        errors.extend(validate(&decoded, namespaced, &names::is_path_segment, &here()));
                    }
                }
            }
            _ => {}
        }
    }
}

fn text<'a>(metadata: &'a Value, field: &str) -> &'a str {
    metadata.get(field).and_then(Value::as_str).unwrap_or("")
}

/// Metadata of an object on creation.
pub(crate) fn validate(
    metadata: &Value,
    namespaced: bool,
    name_rule: NameRule<'_>,
    path: &Path,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let generate_name = text(metadata, "generateName");
    if !generate_name.is_empty() {
        for wrong in name_rule(generate_name, true) {
            errors.push(FieldError::invalid(
                &path.child("generateName"),
                generate_name,
                wrong,
            ));
        }
    }
    let name = text(metadata, "name");
    if name.is_empty() {
        errors.push(FieldError::required(
            &path.child("name"),
            "name or generateName is required",
        ));
    } else {
        for wrong in name_rule(name, false) {
            errors.push(FieldError::invalid(&path.child("name"), name, wrong));
        }
    }
    let namespace = text(metadata, "namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.push(FieldError::required(&path.child("namespace"), "")),
        (true, false) => {
            for wrong in names::is_dns1123_label(namespace) {
                errors.push(FieldError::invalid(&path.child("namespace"), namespace, wrong));
            }
        }
        (false, true) => {}
        (false, false) => {
            errors.push(FieldError::forbidden(
                &path.child("namespace"),
                "not allowed on this type",
            ));
        }
    }
    if let Some(generation) = metadata.get("generation").and_then(Value::as_i64)
        && generation < 0
    {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&path.child("generation"), generation, detail));
    }
    validate_details(metadata, path, &mut errors);
    let finalizers: Vec<&str> = texts(metadata, "finalizers").collect();
    let at = path.child("finalizers");
    for finalizer in &finalizers {
        for wrong in names::is_qualified_name(finalizer) {
            errors.push(FieldError::invalid(&at, *finalizer, wrong));
        }
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        errors.push(FieldError::invalid(
            &at,
            Value::from(finalizers),
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
    errors
}

/// Metadata of an object on update.
pub(crate) fn validate_update(metadata: &Value, old: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.get("deletionTimestamp").is_some_and(|t| !t.is_null()) {
        let known: Vec<&str> = texts(old, "finalizers").collect();
        let mut added: Vec<&str> = texts(metadata, "finalizers")
            .filter(|f| !known.contains(f))
            .collect();
        if !added.is_empty() {
            added.sort_unstable();
            let list: Vec<String> = added.iter().map(|f| format!("{f:?}")).collect();
            errors.push(FieldError::forbidden(
                &path.child("finalizers"),
                format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers \
                     []string{{{}}}",
                    list.join(", ")
                ),
            ));
        }
    }
    if text(metadata, "resourceVersion").is_empty() {
        let detail = "must be specified for an update";
        errors.push(FieldError::invalid(&path.child("resourceVersion"), "", detail));
    }
    let generation = |m: &Value| m.get("generation").and_then(Value::as_i64).unwrap_or(0);
    if generation(metadata) < generation(old) {
        let at = path.child("generation");
        errors.push(FieldError::invalid(
            &at,
            generation(metadata),
            "must not be decremented",
        ));
    }
    for field in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        let (new, old) = (metadata.get(field), old.get(field));
        let set = |v: Option<&Value>| v.filter(|v| !v.is_null() && **v != "").cloned();
        if set(new) != set(old) {
            let shown = new.cloned().unwrap_or(Value::Null);
            errors.push(FieldError::invalid(
                &path.child(field),
                shown,
                "field is immutable",
            ));
        }
    }
    validate_details(metadata, path, &mut errors);
    errors
}

fn texts<'a>(metadata: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    metadata
        .get(field)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Labels, annotations, owners and managed fields: the same on creation and update.
fn validate_details(metadata: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let map = |field: &str| {
        metadata
            .get(field)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    };
    let labels = path.child("labels");
    for (key, value) in map("labels") {
        let value = value.as_str().unwrap_or("");
        errors.extend(
            names::is_qualified_name(key)
                .into_iter()
                .map(|e| FieldError::invalid(&labels, key.as_str(), e)),
        );
        errors.extend(
            names::is_label_value(value)
                .into_iter()
                .map(|e| FieldError::invalid(&labels, value, e)),
        );
    }
    let annotations = path.child("annotations");
    let mut size = 0_usize;
    for (key, value) in map("annotations") {
        size += key.len() + value.as_str().map_or(0, str::len);
        let wrong = names::is_qualified_name(&key.to_lowercase());
        errors.extend(
            wrong
                .into_iter()
                .map(|e| FieldError::invalid(&annotations, key.as_str(), e)),
        );
    }
    if size > TOTAL_ANNOTATION_SIZE_LIMIT {
        errors.push(FieldError::too_long(&annotations, TOTAL_ANNOTATION_SIZE_LIMIT));
    }
    validate_owners(metadata, &path.child("ownerReferences"), errors);
    let managed = path.child("managedFields");
    for (i, entry) in metadata
        .get("managedFields")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate()
    {
        let at = managed.index(i);
        let operation = text(entry, "operation");
        if operation != "Apply" && operation != "Update" {
            let detail = "must be `Apply` or `Update`";
            errors.push(FieldError::invalid(&at.child("operation"), operation, detail));
        }
        let fields_type = text(entry, "fieldsType");
        if !fields_type.is_empty() && fields_type != "FieldsV1" {
            errors.push(FieldError::invalid(
                &at.child("fieldsType"),
                fields_type,
                "must be `FieldsV1`",
            ));
        }
        let manager = text(entry, "manager");
        if manager.len() > 128 {
            errors.push(FieldError::too_long(&at.child("manager"), 128));
        }
        if let Some((i, _)) = manager.char_indices().find(|(_, c)| c.is_control()) {
            let detail =
                format!("should only contain printable characters, found a control character at {i}");
            errors.push(FieldError::invalid(&at.child("manager"), manager, detail));
        }
        if text(entry, "subresource").len() > 256 {
            errors.push(FieldError::too_long(&at.child("subresource"), 256));
        }
    }
}

fn validate_owners(metadata: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let Some(owners) = metadata
        .get("ownerReferences")
        .filter(|o| json_type(o) == "array")
    else {
        return;
    };
    let mut controller: Option<String> = None;
    for owner in owners.as_array().into_iter().flatten() {
        let api_version = text(owner, "apiVersion");
        let version = api_version.rsplit('/').next().unwrap_or("");
        if version.is_empty() || api_version.matches('/').count() > 1 {
            let detail = "version must not be empty";
            errors.push(FieldError::invalid(
                &path.child("apiVersion"),
                api_version,
                detail,
            ));
        }
        for field in ["kind", "name", "uid"] {
            if text(owner, field).is_empty() {
                errors.push(FieldError::invalid(&path.child(field), "", "must not be empty"));
            }
        }
        if api_version == "v1" && text(owner, "kind") == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid(path, canonical::shown(owner), detail));
        }
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            let name = format!("{}/{}", text(owner, "kind"), text(owner, "name"));
            match &controller {
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for \
                         {first} and {name}"
                    );
                    errors.push(FieldError::invalid(path, canonical::shown(owners), detail));
                }
                None => controller = Some(name),
            }
        }
    }
}
