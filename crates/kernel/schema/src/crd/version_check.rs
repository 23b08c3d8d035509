//! One version of a definition: its schema, subresources, columns and selectable fields.

use serde_json::Value;

use super::{flag, list, present, text};
use crate::field::{FieldError, Path};
use crate::structural::{Structural, is_zero, resolve_field};

/// How many fields of a version selectors may use.
const MAX_SELECTABLE_FIELDS: usize = 8;

/// Fields that a root schema may have beside a status subresource, with upstream's names for them.
const ALLOWED_AT_ROOT: [(&str, &str); 22] = [
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
    ("x-kubernetes-validations", "XValidations"),
];

/// `schema` of a version; `path` is that of the surrounding object. A schema that was `accepted` before is not judged
/// again: what it costs may have been allowed then and not now.
pub(super) fn schema(
    validation: &Value,
    status: bool,
    accepted: bool,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    let Some(schema) = present(validation, "openAPIV3Schema") else {
        return;
    };
    let at = path.child("openAPIV3Schema");
    // The schema of the status is taken from its properties, so nothing beside them may restrict it.
    for (field, value) in schema.as_object().into_iter().flatten() {
        if !status || is_zero(value) {
            continue;
        }
        if field == "type" {
            if value != "object" {
                let detail = "only \"object\" is allowed as the type at the root of the schema if the status \
                              subresource is enabled";
                errors.push(FieldError::invalid(&at.child("type"), value.clone(), detail));
                break;
            }
        } else if !ALLOWED_AT_ROOT.iter().any(|(name, _)| name == field) {
            let names: Vec<&str> = ALLOWED_AT_ROOT.iter().map(|(_, name)| *name).collect();
            let detail = format!(
                "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
                names.join(" ")
            );
            errors.push(FieldError::invalid(&at, schema.clone(), detail));
            break;
        }
    }
    if flag(schema, "nullable") {
        errors.push(FieldError::forbidden(
            &at.child("nullable"),
            "nullable cannot be true at the root",
        ));
    }
    if !accepted && let Err(found) = Structural::compile_at(schema, &at) {
        errors.extend(found);
    }
}

/// `subresources` of a version.
pub(super) fn subresources(subresources: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let Some(scale) = present(subresources, "scale") else {
        return;
    };
    let mut check = |field: &str, required: bool, below: &[&str], detail: &str| {
        let value = text(scale, field);
        let at = path.child("scale").child(field);
        if value.is_empty() {
            if required {
                errors.push(FieldError::required(&at, ""));
            }
        } else if !value.starts_with('.') {
            errors.push(FieldError::invalid(
                &at,
                value,
                "must be a simple json path starting with .",
            ));
        } else if !below.iter().any(|prefix| value.starts_with(prefix)) {
            errors.push(FieldError::invalid(&at, value, detail));
        }
    };
    check(
        "specReplicasPath",
        true,
        &[".spec."],
        "should be a json path under .spec",
    );
    check(
        "statusReplicasPath",
        true,
        &[".status."],
        "should be a json path under .status",
    );
    check(
        "labelSelectorPath",
        false,
        &[".spec.", ".status."],
        "should be a json path under either .spec or .status",
    );
}

/// `additionalPrinterColumns` of a version.
pub(super) fn columns(columns: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = [
        "byte",
        "date",
        "date-time",
        "double",
        "float",
        "int32",
        "int64",
        "password",
    ];
    for (i, column) in columns.iter().enumerate() {
        let at = path.index(i);
        if text(column, "name").is_empty() {
            errors.push(FieldError::required(&at.child("name"), ""));
        }
        let column_type = text(column, "type");
        let one_of = |values: &[&str]| format!("must be one of {}", values.join(","));
        if column_type.is_empty() {
            errors.push(FieldError::required(&at.child("type"), one_of(&TYPES)));
        } else if !TYPES.contains(&column_type) {
            errors.push(FieldError::invalid(
                &at.child("type"),
                column_type,
                one_of(&TYPES),
            ));
        }
        let format = text(column, "format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            errors.push(FieldError::invalid(&at.child("format"), format, one_of(&FORMATS)));
        }
        let json_path = text(column, "jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(&at.child("JSONPath"), ""));
        } else if !json_path.starts_with('.') {
            let detail = "must be a simple json path starting with .";
            errors.push(FieldError::invalid(&at.child("JSONPath"), json_path, detail));
        }
    }
}

/// `selectableFields` of a version; `tolerate_many` for those that were too many before.
pub(super) fn selectable_fields(
    fields: &[Value],
    schema: &Value,
    tolerate_many: bool,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    let mut unique: Vec<String> = Vec::new();
    for (i, selectable) in fields.iter().enumerate() {
        let at = path.index(i).child("jsonPath");
        let json_path = text(selectable, "jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(&at, ""));
            continue;
        }
        let field = match resolve_field(schema, json_path) {
            Ok(field) => field,
            Err(reason) => {
                errors.push(FieldError::invalid(
                    &at,
                    json_path,
                    format!("is an invalid path: {reason}"),
                ));
                continue;
            }
        };
        if field.root == "metadata" {
            errors.push(FieldError::invalid(
                &at,
                json_path,
                "must not point to fields in metadata",
            ));
        }
        if !matches!(field.schema_type, "string" | "boolean" | "integer") {
            errors.push(FieldError::invalid(
                &at,
                json_path,
                "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                 formats are allowed.",
            ));
        }
        let resolved = field.path.as_str().to_owned();
        if unique.contains(&resolved) {
            errors.push(FieldError::duplicate(&at, json_path));
        } else {
            unique.push(resolved);
        }
    }
    if unique.len() > MAX_SELECTABLE_FIELDS && !tolerate_many {
        errors.push(FieldError::too_many(path, unique.len(), MAX_SELECTABLE_FIELDS));
    }
}

/// `deprecationWarning` of a version.
pub(super) fn deprecation_warning(version: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else {
        return;
    };
    let at = path.child("deprecationWarning");
    if !flag(version, "deprecated") {
        errors.push(FieldError::invalid(
            &at,
            warning,
            "can only be set for deprecated versions",
        ));
        return;
    }
    if warning.len() > 256 {
        errors.push(FieldError::invalid(
            &at,
            warning,
            "must be <= 256 characters long",
        ));
    }
    if warning.is_empty() {
        errors.push(FieldError::invalid(&at, warning, "must not be an empty string"));
    }
    // Of white space only the plain space can be printed.
    let printable = |c: char| !c.is_control() && (c == ' ' || !c.is_whitespace());
    if let Some((i, _)) = warning.char_indices().find(|(_, c)| !printable(*c)) {
        let detail = format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {i}"
        );
        errors.push(FieldError::invalid(&at, warning, detail));
    }
}

/// Fields of all versions, if all have the same: upstream reports those at the level of `spec`.
pub(super) struct Hoisted<'a> {
    pub(super) validation: Option<&'a Value>,
    pub(super) subresources: Option<&'a Value>,
    pub(super) columns: Option<&'a [Value]>,
    pub(super) selectable_fields: Option<&'a [Value]>,
}

impl<'a> Hoisted<'a> {
    pub(super) fn new(versions: &'a [Value]) -> Self {
        let same = |field: &str| -> Option<&'a Value> {
            let first = versions.first()?;
            let value = present(first, field);
            versions
                .iter()
                .all(|v| {
                    present(v, field).filter(|v| !is_empty_list(v)) == value.filter(|v| !is_empty_list(v))
                })
                .then_some(value.unwrap_or(&Value::Null))
        };
        let slice =
            |value: Option<&'a Value>| value.map(|v| v.as_array().map_or(&[] as &[Value], Vec::as_slice));
        Self {
            validation: same("schema"),
            subresources: same("subresources"),
            columns: slice(same("additionalPrinterColumns")),
            selectable_fields: slice(same("selectableFields")),
        }
    }
}

fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

/// Whether there is a status subresource.
pub(super) fn has_status(subresources: Option<&Value>) -> bool {
    subresources.is_some_and(|s| present(s, "status").is_some())
}

/// Whether any schema has defaults.
pub(super) fn has_defaults(value: &Value) -> bool {
    match value {
        Value::Object(object) => {
            object.get("default").is_some_and(|v| !v.is_null())
                || object
                    .iter()
                    .any(|(name, v)| !matches!(name.as_str(), "example" | "enum") && has_defaults(v))
        }
        Value::Array(items) => items.iter().any(has_defaults),
        _ => false,
    }
}

/// Formats that schemas use but nobody checks, in the order found.
pub(super) fn unrecognized_formats(versions: &[Value]) -> Vec<&str> {
    let mut found = Vec::new();
    for version in versions {
        if let Some(schema) = version.get("schema").and_then(|s| present(s, "openAPIV3Schema")) {
            crate::structural::unrecognized_formats(schema, &mut found);
        }
    }
    found
}

/// The fields of a version that may have too many of them, as a list.
pub(super) fn selectable_list(version: &Value) -> &[Value] {
    list(version, "selectableFields")
}
