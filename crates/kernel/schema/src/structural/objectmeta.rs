//! The metadata of resources: its fields, their types, and what is wrong with their values.
//!
//! Schemas do not describe metadata, so embedded resources are read as a typed decoder would: unknown fields are
//! dropped, empty ones omitted, times brought to UTC, and a field of the wrong type is an error.

mod check;

use serde_json::{Map, Value};

pub(crate) use self::check::{validate, validate_update};
use super::canonical;
use super::node::{Flags, Node};
use super::trail::{Step, Trail};
use crate::field::{FieldError, Path};
use crate::json_type;

/// How a field of ObjectMeta is decoded.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    /// An integer whose zero is omitted.
    Integer,
    /// An integer whose zero is kept.
    OptionalInteger,
    OptionalBoolean,
    Time,
    TextMap,
    TextList,
    /// A list of objects with these fields; the name is that of the type.
    Objects(&'static str, &'static [(&'static str, Kind)]),
    /// Any object.
    Raw,
}

const OWNER_REFERENCE: &[(&str, Kind)] = &[
    ("apiVersion", Kind::Text),
    ("kind", Kind::Text),
    ("name", Kind::Text),
    ("uid", Kind::Text),
    ("controller", Kind::OptionalBoolean),
    ("blockOwnerDeletion", Kind::OptionalBoolean),
];

const MANAGED_FIELDS_ENTRY: &[(&str, Kind)] = &[
    ("manager", Kind::Text),
    ("operation", Kind::Text),
    ("apiVersion", Kind::Text),
    ("time", Kind::Time),
    ("fieldsType", Kind::Text),
    ("fieldsV1", Kind::Raw),
    ("subresource", Kind::Text),
];

const OBJECT_META: &[(&str, Kind)] = &[
    ("name", Kind::Text),
    ("generateName", Kind::Text),
    ("namespace", Kind::Text),
    ("selfLink", Kind::Text),
    ("uid", Kind::Text),
    ("resourceVersion", Kind::Text),
    ("generation", Kind::Integer),
    ("creationTimestamp", Kind::Time),
    ("deletionTimestamp", Kind::Time),
    ("deletionGracePeriodSeconds", Kind::OptionalInteger),
    ("labels", Kind::TextMap),
    ("annotations", Kind::TextMap),
    (
        "ownerReferences",
        Kind::Objects("OwnerReference", OWNER_REFERENCE),
    ),
    ("finalizers", Kind::TextList),
    (
        "managedFields",
        Kind::Objects("ManagedFieldsEntry", MANAGED_FIELDS_ENTRY),
    ),
];

/// Decodes the metadata of a resource in place. Returns the paths of unknown fields, below `prefix`.
///
/// # Errors
/// A field has the wrong type.
pub fn coerce_object_meta(metadata: &mut Value, prefix: &str) -> Result<Vec<String>, String> {
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    let kind = json_type(metadata);
    let Value::Object(object) = metadata else {
        return Err(format!(
            "json: cannot unmarshal {kind} into Go value of type v1.ObjectMeta"
        ));
    };
    let mut unknown = Vec::new();
    coerce_struct(object, "ObjectMeta", OBJECT_META, prefix, &mut unknown)?;
    unknown.sort();
    Ok(unknown)
}

fn coerce_struct(
    object: &mut Map<String, Value>,
    type_name: &str,
    fields: &[(&str, Kind)],
    prefix: &str,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    let mut failure = None;
    object.retain(|name, value| {
        let Some((_, kind)) = fields.iter().find(|(field, _)| field == name) else {
            unknown.push(format!("{prefix}.{name}"));
            return false;
        };
        match coerce_field(
            value,
            *kind,
            &format!("{type_name}.{name}"),
            &format!("{prefix}.{name}"),
            unknown,
        ) {
            Ok(keep) => keep,
            Err(error) => {
                failure.get_or_insert(error);
                true
            }
        }
    });
    failure.map_or(Ok(()), Err)
}

/// Decodes one field; the answer says whether it is kept.
fn coerce_field(
    value: &mut Value,
    kind: Kind,
    field: &str,
    path: &str,
    unknown: &mut Vec<String>,
) -> Result<bool, String> {
    if value.is_null() {
        return Ok(false);
    }
    let found = json_type(value);
    let wrong = |expected: &str| {
        Err(format!(
            "json: cannot unmarshal {found} into Go struct field {field} of type {expected}"
        ))
    };
    match (kind, value) {
        (Kind::Text, Value::String(text)) => Ok(!text.is_empty()),
        (Kind::Text, _) => wrong("string"),
        (Kind::Integer | Kind::OptionalInteger, Value::Number(number)) => match number.as_i64() {
            Some(0) => Ok(matches!(kind, Kind::OptionalInteger)),
            Some(_) => Ok(true),
            None => Err(format!(
                "json: cannot unmarshal number {number} into Go struct field {field} of type int64"
            )),
        },
        (Kind::Integer | Kind::OptionalInteger, _) => wrong("int64"),
        (Kind::OptionalBoolean, Value::Bool(_)) => Ok(true),
        (Kind::OptionalBoolean, _) => wrong("bool"),
        (Kind::Time, Value::String(text)) => {
            let layout = "2006-01-02T15:04:05Z07:00";
            let time: jiff::Timestamp = text.parse().map_err(|_| {
                format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\"")
            })?;
            *text = time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            Ok(true)
        }
        (Kind::Time, _) => wrong("string"),
        (Kind::TextMap, Value::Object(map)) => {
            for value in map.values_mut() {
                match value {
                    Value::String(_) => {}
                    Value::Null => *value = Value::String(String::new()),
                    other => {
                        let found = json_type(other);
                        return Err(format!(
                            "json: cannot unmarshal {found} into Go struct field {field} of type string"
                        ));
                    }
                }
            }
            Ok(!map.is_empty())
        }
        (Kind::TextMap, _) => wrong("map[string]string"),
        (Kind::TextList, Value::Array(items)) => {
            for item in items.iter_mut() {
                match item {
                    Value::String(_) => {}
                    Value::Null => *item = Value::String(String::new()),
                    other => {
                        let found = json_type(other);
                        return Err(format!(
                            "json: cannot unmarshal {found} into Go struct field {field} of type string"
                        ));
                    }
                }
            }
            Ok(!items.is_empty())
        }
        (Kind::TextList, _) => wrong("[]string"),
        (Kind::Objects(type_name, fields), Value::Array(items)) => {
            for (i, item) in items.iter_mut().enumerate() {
                if item.is_null() {
                    *item = Value::Object(Map::new());
                }
                let found = json_type(item);
                let Value::Object(object) = item else {
                    return Err(format!(
                        "json: cannot unmarshal {found} into Go struct field {field} of type v1.{type_name}"
                    ));
                };
                coerce_struct(object, type_name, fields, &format!("{path}[{i}]"), unknown)?;
            }
            Ok(!items.is_empty())
        }
        (Kind::Objects(type_name, _), _) => wrong(&format!("[]v1.{type_name}")),
        (Kind::Raw, Value::Object(_)) => Ok(true),
        (Kind::Raw, _) => wrong("v1.FieldsV1"),
    }
}

/// Decodes the metadata of all embedded resources, and of the value itself if it is one. Collects unknown fields.
pub(super) fn coerce_embedded(
    node: &Node,
    resource: bool,
    value: &mut Value,
    trail: &Trail<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), Box<FieldError>> {
    if !resource && !node.has(Flags::EMBEDDED_BELOW) {
        return Ok(());
    }
    match value {
        Value::Object(object) => {
            let resource = resource || node.has(Flags::EMBEDDED);
            for (name, value) in object.iter_mut() {
                let declared = resource || node.property(name).is_some();
                let here = trail.then(if declared {
                    Step::Field(name)
                } else {
                    Step::Key(name)
                });
                if resource {
                    coerce_meta_field(name, value, &here, unknown)?;
                }
                if let Some(child) = node.field(name) {
                    coerce_embedded(child, false, value, &here, unknown)?;
                }
            }
        }
        Value::Array(items) => {
            let Some(child) = node.items() else { return Ok(()) };
            for (i, item) in items.iter_mut().enumerate() {
                coerce_embedded(child, false, item, &trail.then(Step::Index(i)), unknown)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn coerce_meta_field(
    name: &str,
    value: &mut Value,
    here: &Trail<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), Box<FieldError>> {
    match name {
        "apiVersion" | "kind" if !value.is_string() => {
            let path = here.path(&Path::root());
            Err(Box::new(FieldError::invalid(
                &path,
                canonical::shown(value),
                "must be a string",
            )))
        }
        "metadata" => {
            let path = here.path(&Path::root());
            match coerce_object_meta(value, path.as_str()) {
                Ok(mut paths) => {
                    unknown.append(&mut paths);
                    Ok(())
                }
                Err(reason) => Err(Box::new(FieldError::invalid(
                    &path,
                    canonical::shown(value),
                    reason,
                ))),
            }
        }
        _ => Ok(()),
    }
}

/// Checks type and metadata of all embedded resources.
pub(super) fn validate_embedded(
    node: &Node,
    resource: bool,
    value: &Value,
    trail: &Trail<'_>,
    errors: &mut Vec<FieldError>,
) {
    if !resource && !node.has(Flags::EMBEDDED_BELOW) {
        return;
    }
    match value {
        Value::Object(object) => {
            if resource || node.has(Flags::EMBEDDED) {
                check::validate_resource(object, &trail.path(&Path::root()), errors);
            }
            for (name, value) in object {
                if let Some(child) = node.property(name) {
                    validate_embedded(child, false, value, &trail.then(Step::Field(name)), errors);
                } else if let Some(child) = node.additional() {
                    validate_embedded(child, false, value, &trail.then(Step::Key(name)), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(child) = node.items() else { return };
            for (i, item) in items.iter().enumerate() {
                validate_embedded(child, false, item, &trail.then(Step::Index(i)), errors);
            }
        }
        _ => {}
    }
}
