//! JSON Schema as forms of questions use it (draft 7, as the form library of Backstage and ajv judge it).
//!
//! A checker of our own: the questions are read from strangers' repositories, so that references, nesting and regular expressions are
//! bounded, and what is said of an answer names the question by its title.

mod check;
mod formats;
mod pickers;

use serde_json::Value;

pub use check::{Complaint, check, check_within};
pub use pickers::unheeded;

/// What a `$ref` of a page leads to; a schema without one is itself.
pub(crate) fn resolved<'s>(root: &'s Value, schema: &'s Value) -> Option<&'s Value> {
    let mut schema = schema;
    for _ in 0..MAX_DEPTH {
        match schema.get("$ref").and_then(Value::as_str) {
            None => return Some(schema),
            Some(reference) => schema = root.pointer(reference.strip_prefix('#')?)?,
        }
    }
    None
}

/// How deeply schemas may be nested.
const MAX_DEPTH: usize = 40;
/// The largest regular expression, compiled.
const MAX_PATTERN: usize = 1 << 20;

/// A regular expression of a schema; JavaScript's, so that it may match anywhere.
pub(crate) fn pattern(source: &str) -> Result<regex::Regex, String> {
    let source = source.replace("\\/", "/").replace("(?<", "(?P<");
    regex::RegexBuilder::new(&source)
        .size_limit(MAX_PATTERN)
        .build()
        .map_err(|_| {
            "the pattern cannot be used; look-around and back references are not known here".to_owned()
        })
}

/// What is wrong with a schema itself.
pub fn problems(schema: &Value, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    look(schema, at, MAX_DEPTH, &mut found);
    found
}

/// Keywords whose value is a schema, a list of schemas, or a map of them.
const ONE: [&str; 8] = [
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
];
const SEVERAL: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const NAMED: [&str; 6] = [
    "properties",
    "patternProperties",
    "dependencies",
    "dependentSchemas",
    "definitions",
    "$defs",
];

fn look(schema: &Value, at: &str, depth: usize, found: &mut Vec<String>) {
    if depth == 0 {
        found.push(format!("{at}: it is nested more than {MAX_DEPTH} deep"));
        return;
    }
    let Some(fields) = schema.as_object() else {
        if !schema.is_boolean() {
            found.push(format!("{at}: a schema is an object"));
        }
        return;
    };
    for key in ["pattern"] {
        if let Some(Err(why)) = fields.get(key).and_then(Value::as_str).map(pattern) {
            found.push(format!("{at}.{key}: {why}"));
        }
    }
    if let Some(reference) = fields.get("$ref").and_then(Value::as_str)
        && !reference.starts_with("#/")
    {
        found.push(format!(
            "{at}.$ref: only parts of the same page can be referred to (#/definitions/...)"
        ));
    }
    for key in ONE {
        match fields.get(key) {
            Some(Value::Array(items)) if key == "items" => {
                for (index, item) in items.iter().enumerate() {
                    look(item, &format!("{at}.items[{index}]"), depth - 1, found);
                }
            }
            Some(inner) => look(inner, &format!("{at}.{key}"), depth - 1, found),
            None => {}
        }
    }
    for key in SEVERAL {
        for (index, inner) in fields
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            look(inner, &format!("{at}.{key}[{index}]"), depth - 1, found);
        }
    }
    for key in NAMED {
        for (name, inner) in fields.get(key).and_then(Value::as_object).into_iter().flatten() {
            // A dependency may also be a list of names.
            if !(inner.is_array() && key == "dependencies") {
                look(inner, &format!("{at}.{key}.{name}"), depth - 1, found);
            }
        }
    }
}

#[cfg(test)]
mod tests;
