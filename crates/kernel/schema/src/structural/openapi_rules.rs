//! Which keywords a definition may use, and how the extensions go together.

use serde_json::Value;

use super::raw::{Additional, Props};
use crate::field::{FieldError, Path};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// What holds for a part of a schema because of where it stands.
#[derive(Clone, Copy, Default)]
pub(super) struct Context<'a> {
    root: bool,
    /// Why defaults must not be used here.
    no_defaults: Option<&'a str>,
    /// This describes type or metadata of a resource.
    inside_meta: bool,
}

impl Context<'_> {
    pub(super) fn root() -> Self {
        Self {
            root: true,
            ..Self::default()
        }
    }
}

/// Checks a schema and everything in it.
pub(super) fn check(schema: Props<'_>, path: &Path, context: Context<'_>, errors: &mut Vec<FieldError>) {
    keywords(schema, path, context, errors);
    if schema.flag("uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(&path.child("uniqueItems"), detail));
    }
    let below = Context {
        root: false,
        ..context
    };
    if let Some(additional) = schema.additional() {
        let at = path.child("additionalProperties");
        if schema.has_properties() && !matches!(additional, Additional::Allowed(true)) {
            let detail = "additionalProperties and properties are mutual exclusive";
            errors.push(FieldError::forbidden(&at, detail));
        }
        if let Additional::Schema(child) = additional {
            // Without the value at hand it is unclear what metadata would keep of a default.
            let no_defaults = if context.inside_meta {
                Some("inside additionalProperties applying to object metadata")
            } else {
                context.no_defaults
            };
            check(child, &at, Context { no_defaults, ..below }, errors);
        }
    }
    let properties = path.child("properties");
    for (name, property) in schema.properties() {
        let meta = matches!(name, "metadata" | "kind" | "apiVersion") && (context.root || schema.embedded());
        let reason = format!("in top-level {name}");
        let child = Context {
            root: false,
            no_defaults: if meta && context.root {
                Some(&reason)
            } else {
                context.no_defaults
            },
            inside_meta: context.inside_meta || meta,
        };
        check(property, &properties.key(name), child, errors);
    }
    if let Some(not) = schema.schema("not") {
        check(not, &path.child("not"), below, errors);
    }
    for junctor in ["allOf", "oneOf", "anyOf"] {
        let at = path.child(junctor);
        for (i, part) in schema.schemas(junctor).enumerate() {
            check(part, &at.index(i), below, errors);
        }
    }
    if let Some(items) = schema.items() {
        check(items, &path.child("items"), below, errors);
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let at = path.child("x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(&at, false, "must be true or undefined"));
    }
    map_type(schema, path, errors);
    list_type(schema, path, errors);
    map_keys(schema, path, errors);
    keyed_items(schema, path, errors);
    rules(schema, path, errors);
}

fn keywords(schema: Props<'_>, path: &Path, context: Context<'_>, errors: &mut Vec<FieldError>) {
    let type_name = schema.schema_type();
    let at = path.child("type");
    if !type_name.is_empty() && !TYPES.contains(&type_name) {
        errors.push(FieldError::not_supported(&at, type_name, &TYPES));
    }
    if schema.get("default").is_some()
        && let Some(reason) = context.no_defaults
    {
        errors.push(FieldError::forbidden(
            &path.child("default"),
            format!("must not be set {reason}"),
        ));
    }
    for field in [
        "id",
        "additionalItems",
        "patternProperties",
        "definitions",
        "dependencies",
        "$ref",
    ] {
        let set = match field {
            "additionalItems" | "dependencies" | "$ref" => schema.get(field).is_some(),
            _ => schema.get(field).is_some_and(|v| !super::raw::is_zero(v)),
        };
        if set {
            errors.push(FieldError::forbidden(
                &path.child(field),
                format!("{field} is not supported"),
            ));
        }
    }
    if type_name == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(&at, detail));
    }
    if schema
        .get("items")
        .and_then(Value::as_array)
        .is_some_and(|items| !items.is_empty())
    {
        let detail = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(&path.child("items"), detail));
    }
    if context.inside_meta && schema.embedded() {
        let at = path.child("x-kubernetes-embedded-resource");
        errors.push(FieldError::forbidden(
            &at,
            "must not be used inside of resource meta",
        ));
    }
}

/// Reports that an extension needs a type which is missing or another.
fn needs_type(
    schema: Props<'_>,
    wanted: &str,
    detail: &str,
    path: &Path,
    errors: &mut Vec<FieldError>,
) -> bool {
    let type_name = schema.schema_type();
    if type_name == wanted {
        return true;
    }
    let at = path.child("type");
    errors.push(if type_name.is_empty() {
        FieldError::required(&at, detail)
    } else {
        FieldError::invalid(&at, type_name, detail)
    });
    false
}

fn map_type(schema: Props<'_>, path: &Path, errors: &mut Vec<FieldError>) {
    let Some(map_type) = schema.map_type() else { return };
    needs_type(
        schema,
        "object",
        "must be object if x-kubernetes-map-type is specified",
        path,
        errors,
    );
    if !matches!(map_type, "atomic" | "granular") {
        let at = path.child("x-kubernetes-map-type");
        errors.push(FieldError::not_supported_in_order(
            &at,
            map_type,
            ["atomic", "granular"],
        ));
    }
}

fn list_type(schema: Props<'_>, path: &Path, errors: &mut Vec<FieldError>) {
    let Some(list_type) = schema.list_type() else {
        return;
    };
    let detail = "must be array if x-kubernetes-list-type is specified";
    if needs_type(schema, "array", detail, path, errors)
        && list_type == "set"
        && let Some(items) = schema.items()
    {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let shown = items.list_type().map_or(Value::Null, Value::from);
        let at = path.child("items");
        match items.schema_type() {
            "array" if items.list_type().is_some_and(|t| t != "atomic") => {
                errors.push(FieldError::invalid(
                    &at.child("x-kubernetes-list-type"),
                    shown,
                    detail,
                ));
            }
            "object" if items.map_type() != Some("atomic") => {
                errors.push(FieldError::invalid(
                    &at.child("x-kubernetes-map-type"),
                    shown,
                    detail,
                ));
            }
            _ => {}
        }
    }
    if !matches!(list_type, "atomic" | "set" | "map") {
        let at = path.child("x-kubernetes-list-type");
        errors.push(FieldError::not_supported_in_order(
            &at,
            list_type,
            ["atomic", "set", "map"],
        ));
    }
}

fn map_keys(schema: Props<'_>, path: &Path, errors: &mut Vec<FieldError>) {
    let keys: Vec<&str> = schema.map_keys().collect();
    let list_type = schema.list_type();
    if !keys.is_empty() && list_type != Some("map") {
        let at = path.child("x-kubernetes-list-type");
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => FieldError::required(&at, detail),
            Some(other) => FieldError::invalid(&at, other, detail),
        });
    }
    if list_type != Some("map") {
        return;
    }
    let at = path.child("x-kubernetes-list-map-keys");
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(&at, detail));
    }
    let items_path = path.child("items");
    let Some(items) = schema.items() else {
        errors.push(match schema.get("items") {
            None => FieldError::required(&items_path, "must have a schema if x-kubernetes-list-type is map"),
            Some(other) => {
                let detail = "must only have a single schema if x-kubernetes-list-type is map";
                FieldError::invalid(&items_path, other.clone(), detail)
            }
        });
        return;
    };
    if items.schema_type() != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(
            &items_path.child("type"),
            items.schema_type(),
            detail,
        ));
        return;
    }
    for (i, key) in keys.iter().enumerate() {
        match items.property(key) {
            Some(property) if matches!(property.schema_type(), "array" | "object") => {
                let at = items_path.child("properties").key(key).child("type");
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.push(FieldError::invalid(&at, items.schema_type(), detail));
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                errors.push(FieldError::invalid(&at, Value::from(keys.clone()), detail));
            }
        }
        if keys[..i].contains(key) {
            let detail = "must not contain duplicate entries";
            errors.push(FieldError::invalid(&at, Value::from(keys.clone()), detail));
        }
    }
}

/// Elements of sets and map lists are never null, and their keys are always there.
fn keyed_items(schema: Props<'_>, path: &Path, errors: &mut Vec<FieldError>) {
    let (Some(items), Some(list_type @ ("set" | "map"))) = (schema.items(), schema.list_type()) else {
        return;
    };
    let at = path.child("items");
    if items.flag("nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(&at.child("nullable"), detail));
    }
    if list_type != "map" {
        return;
    }
    for key in schema.map_keys() {
        let Some(property) = items.property(key) else {
            continue;
        };
        let at = at.child("properties").key(key);
        let required = items.list("required").iter().any(|name| name == key);
        if !required && property.get("default").is_none() {
            errors.push(FieldError::required(
                &at.child("default"),
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            ));
        }
        if property.flag("nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(&at.child("nullable"), detail));
        }
    }
}

fn has_line_break(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// The parts of rules that are not CEL.
fn rules(schema: Props<'_>, path: &Path, errors: &mut Vec<FieldError>) {
    let base = path.child("x-kubernetes-validations");
    for (i, rule) in schema.list("x-kubernetes-validations").iter().enumerate() {
        let at = base.index(i);
        let Some(rule) = Props::of(rule) else {
            errors.push(FieldError::invalid(&at, rule.clone(), "must be a rule"));
            continue;
        };
        let message = rule.text("message");
        if rule.text("rule").trim().is_empty() {
            errors.push(FieldError::required(&at.child("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            let detail = "must be non-empty if specified";
            errors.push(FieldError::invalid(&at.child("message"), message, detail));
        } else if has_line_break(message.trim()) {
            errors.push(FieldError::invalid(
                &at.child("message"),
                message,
                "must not contain line breaks",
            ));
        } else if has_line_break(rule.text("rule").trim()) && message.trim().is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(&at.child("message"), detail));
        }
        let expression = rule.text("messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(&at.child("messageExpression"), detail));
        }
        if let Some(reason) = rule.get("reason").and_then(Value::as_str)
            && !REASONS.contains(&reason)
        {
            errors.push(FieldError::not_supported(&at.child("reason"), reason, &REASONS));
        }
        let field_path = rule.text("fieldPath");
        let at = at.child("fieldPath");
        if !field_path.is_empty() {
            if field_path.trim().is_empty() {
                errors.push(FieldError::invalid(
                    &at,
                    field_path,
                    "must be non-empty if specified",
                ));
            }
            if has_line_break(field_path) {
                errors.push(FieldError::invalid(
                    &at,
                    field_path,
                    "must not contain line breaks",
                ));
            }
            if super::fieldpath::resolve(schema, field_path, true).is_err() {
                errors.push(FieldError::invalid(&at, field_path, "must be a valid path"));
            }
        }
    }
}
