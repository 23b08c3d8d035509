//! What makes a schema structural: the type of every field is known without looking at junctors.
//!
//! Then objects can be pruned, defaulted and merged field by field. Everything under `allOf`, `anyOf`, `oneOf` and `not`
//! may only restrict values of fields that are specified outside of them.

use serde_json::Value;

use super::pattern;
use super::raw::{self, Additional, Props};
use crate::field::{FieldError, Path};

/// Where a schema stands, which decides how a missing type is reported.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Why it cannot even be said whether a schema is structural.
pub(super) fn unsupported(schema: &Value) -> Option<String> {
    let mut found = None;
    raw::visit(schema, 0, &mut |props| {
        let set = |field: &str| props.get(field).is_some_and(|v| !raw::is_zero(v));
        let keyword = [
            "id",
            "$schema",
            "$ref",
            "patternProperties",
            "dependencies",
            "additionalItems",
            "definitions",
        ]
        .into_iter()
        .find(|field| set(field) || (*field == "additionalItems" && props.get(field).is_some()));
        let reason = if let Some(keyword) = keyword {
            let name = if keyword == "$schema" { "schema" } else { keyword };
            Some(format!("OpenAPIV3Schema '{name}' is not supported"))
        } else if props
            .get("items")
            .is_some_and(|items| items.as_array().is_some_and(|a| !a.is_empty()))
        {
            Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned())
        } else if props.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            Some(
                "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned(),
            )
        } else {
            None
        };
        if found.is_none() {
            found = reason;
        }
    });
    found
}

/// All violations, sorted by their text so that they do not depend on the order of fields.
pub(super) fn check(schema: Props<'_>, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    invariants(schema, Level::Root, path, &mut errors);
    junctors_are_complete(schema, schema, path, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

fn invariants(schema: Props<'_>, level: Level, path: &Path, errors: &mut Vec<FieldError>) {
    let type_name = schema.schema_type();
    if type_name == "array" && schema.items().is_none() {
        errors.push(FieldError::required(&path.child("items"), "must be specified"));
    }
    if let Some(items) = schema.items() {
        invariants(items, Level::Item, &path.child("items"), errors);
    }
    let properties = path.child("properties");
    for (name, property) in schema.properties() {
        invariants(property, Level::Field, &properties.key(name), errors);
    }
    if let Some(additional) = schema.additional() {
        let at = path.child("additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(&at, "must not be used at the root"));
        }
        if let Additional::Schema(child) = additional {
            invariants(child, Level::Field, &at, errors);
        }
    }
    if schema.int_or_string() {
        for (field, set) in [
            ("x-kubernetes-preserve-unknown-fields", schema.preserve_unknown()),
            ("x-kubernetes-embedded-resource", schema.embedded()),
        ] {
            if set {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                errors.push(FieldError::invalid(&path.child(field), true, detail));
            }
        }
    }
    let skip_any_of = is_int_or_string_pair(schema);
    let skip_first_all_of = schema.schemas("allOf").next().is_some_and(is_int_or_string_pair);
    value_validations(schema, skip_any_of, skip_first_all_of, path, errors);
    required_types(schema, level, path, errors);
    if level == Level::Root && !type_name.is_empty() && type_name != "object" {
        errors.push(FieldError::invalid(
            &path.child("type"),
            type_name,
            "must be object at the root",
        ));
    }
    metadata(schema, level, path, errors);
    if schema.embedded() && !schema.preserve_unknown() && !schema.has_properties() {
        errors.push(FieldError::required(
            &properties,
            "must not be empty if x-kubernetes-embedded-resource is true without \
             x-kubernetes-preserve-unknown-fields",
        ));
    }
}

fn required_types(schema: Props<'_>, level: Level, path: &Path, errors: &mut Vec<FieldError>) {
    let type_name = schema.schema_type();
    let at = path.child("type");
    if schema.embedded() && type_name != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if type_name.is_empty() {
            FieldError::required(&at, detail)
        } else {
            FieldError::invalid(&at, type_name, detail)
        });
    } else if type_name.is_empty() && !schema.int_or_string() && !schema.preserve_unknown() {
        errors.push(FieldError::required(
            &at,
            match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            },
        ));
    }
    if schema.embedded() && schema.additional().is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(&path.child("additionalProperties"), detail));
    }
}

/// The type of resources is text, and their metadata is implied: only its names may be restricted.
fn metadata(schema: Props<'_>, level: Level, path: &Path, errors: &mut Vec<FieldError>) {
    let resource = level == Level::Root || schema.embedded();
    let properties = path.child("properties");
    for name in ["kind", "apiVersion"] {
        if let Some(property) = schema.property(name)
            && resource
            && property.schema_type() != "string"
        {
            let at = properties.key(name).child("type");
            errors.push(FieldError::invalid(&at, property.schema_type(), "must be string"));
        }
    }
    let Some(metadata) = schema.property("metadata") else {
        return;
    };
    let at = properties.key("metadata");
    if resource && metadata.schema_type() != "object" {
        errors.push(FieldError::invalid(
            &at.child("type"),
            metadata.schema_type(),
            "must be object",
        ));
    }
    if level == Level::Root {
        let only_names = metadata
            .properties()
            .all(|(name, _)| name == "name" || name == "generateName");
        if !only_names || !metadata.only(&["type", "default", "properties"]) {
            errors.push(FieldError::forbidden(
                &at,
                "must not specify anything other than name and generateName, but metadata is implicitly specified",
            ));
        }
    }
}

/// `anyOf: [{type: integer}, {type: string}]`, the one place where junctors may carry types.
fn is_int_or_string_pair(schema: Props<'_>) -> bool {
    let alternatives: Vec<Props<'_>> = schema.schemas("anyOf").collect();
    matches!(&*alternatives, [integer, string]
        if integer.schema_type() == "integer" && integer.only(&["type"])
            && string.schema_type() == "string" && string.only(&["type"]))
}

fn value_validations(
    schema: Props<'_>,
    skip_any_of: bool,
    skip_first_all_of: bool,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    for junctor in ["anyOf", "allOf", "oneOf"] {
        if junctor == "anyOf" && skip_any_of {
            continue;
        }
        let at = path.child(junctor);
        for (i, nested) in schema.schemas(junctor).enumerate() {
            let skip = junctor == "allOf" && skip_first_all_of && i == 0;
            nested_validation(nested, skip, &at.index(i), errors);
        }
    }
    if let Some(nested) = schema.schema("not") {
        nested_validation(nested, false, &path.child("not"), errors);
    }
    let source = schema.text("pattern");
    if !source.is_empty()
        && let Err(reason) = pattern::compile(source)
    {
        let detail = format!("must be a valid regular expression, but isn't: {reason}");
        errors.push(FieldError::invalid(&path.child("pattern"), source, detail));
    }
}

/// Whether a field of a nested schema is set, and with which words it is forbidden.
const FORBIDDEN_WHEN_NESTED: &[(&str, &str)] = &[
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (
        "x-kubernetes-preserve-unknown-fields",
        "must be false to be structural",
    ),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
];

fn nested_validation(schema: Props<'_>, skip_any_of: bool, path: &Path, errors: &mut Vec<FieldError>) {
    value_validations(schema, skip_any_of, false, path, errors);
    if let Some(items) = schema.items() {
        nested_validation(items, false, &path.child("items"), errors);
    }
    let properties = path.child("properties");
    for (name, property) in schema.properties() {
        nested_validation(property, false, &properties.key(name), errors);
    }
    for (field, detail) in FORBIDDEN_WHEN_NESTED {
        let set = match *field {
            // A default or a type name may be any value, also one that looks empty.
            "default" | "x-kubernetes-list-type" | "x-kubernetes-map-type" => schema.get(field).is_some(),
            "additionalProperties" => match schema.additional() {
                Some(Additional::Allowed(allowed)) => allowed,
                Some(Additional::Schema(_)) => true,
                None => false,
            },
            _ => schema.get(field).is_some_and(|v| !raw::is_zero(v)),
        };
        if set {
            errors.push(FieldError::forbidden(&path.child(field), *detail));
        }
    }
    if schema.property("metadata").is_some() {
        let detail = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(&properties.key("metadata"), detail));
    }
}

/// Every field that the junctors of `nested` restrict is specified by `spine`.
fn junctors_are_complete(
    nested: Props<'_>,
    spine: Props<'_>,
    spine_path: &Path,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    if let Some(not) = nested.schema("not") {
        is_complete(not, spine, spine_path, &path.child("not"), errors);
    }
    for junctor in ["allOf", "anyOf", "oneOf"] {
        let at = path.child(junctor);
        for (i, part) in nested.schemas(junctor).enumerate() {
            is_complete(part, spine, spine_path, &at.index(i), errors);
        }
    }
}

fn is_complete(
    nested: Props<'_>,
    spine: Props<'_>,
    spine_path: &Path,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    junctors_are_complete(nested, spine, spine_path, path, errors);
    let mut pair = |nested: Props<'_>, spine: Option<Props<'_>>, spine_path: &Path, path: &Path| match spine {
        Some(spine) => is_complete(nested, spine, spine_path, path, errors),
        None => errors.push(FieldError::required(
            spine_path,
            format!("because it is defined in {path}"),
        )),
    };
    if let Some(items) = nested.items() {
        pair(
            items,
            spine.items(),
            &spine_path.child("items"),
            &path.child("items"),
        );
    }
    for (name, property) in nested.properties() {
        pair(
            property,
            spine.property(name),
            &spine_path.child("properties").key(name),
            &path.child("properties").key(name),
        );
    }
}
