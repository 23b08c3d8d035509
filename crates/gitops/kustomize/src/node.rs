//! Small operations on JSON values, with the meaning that they have on YAML nodes in the original.
//!
//! There a scalar is a text with a tag. Here it is a value, so what works on the text of scalars goes through [`text`],
//! and what sets a text without a tag through [`set_plain`].

use std::borrow::Cow;

use fairway_text_yaml::{Resolution, plain_scalar};
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// The text of a scalar; empty for null, lists and maps.
pub(crate) fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Bool(true) => Cow::Borrowed("true"),
        Value::Bool(false) => Cow::Borrowed("false"),
        Value::Number(number) => Cow::Owned(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => Cow::Borrowed(""),
    }
}

/// Null, an empty list or an empty map.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

pub(crate) fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_))
}

/// What a value is, in YAML's words.
pub(crate) fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "SequenceNode",
        Value::Object(_) => "MappingNode",
        _ => "ScalarNode",
    }
}

pub(crate) fn wrong_kind(expected: &str, found: &Value) -> Error {
    let mut shown = found.to_string();
    if shown.len() > 200 {
        let cut = (0..=200)
            .rev()
            .find(|at| shown.is_char_boundary(*at))
            .unwrap_or(0);
        shown.truncate(cut);
        shown.push('…');
    }
    Error::new(format!(
        "wrong node kind: expected {expected} but got {}: {shown}",
        kind_name(found)
    ))
}

/// Gives a scalar a text and lets the text decide what it is, as a plain scalar does.
pub(crate) fn set_plain(target: &mut Value, new: &str) {
    let stays_text = matches!(target, Value::String(old) if reads_as_other(old));
    *target = match stays_text {
        // What was text against its appearance was quoted, and quotes stay.
        true => Value::String(new.to_owned()),
        false => plain(new),
    };
}

/// What a plain scalar with this text is.
pub(crate) fn plain(text: &str) -> Value {
    plain_scalar(text, Resolution::Yaml12)
}

fn reads_as_other(text: &str) -> bool {
    !matches!(plain(text), Value::String(_))
}

/// Gives a scalar a text and leaves its type as it is.
pub(crate) fn set_text(target: &mut Value, new: &str) -> Result<()> {
    let read = plain(new);
    let fits = match (&*target, &read) {
        (Value::String(_), _) => {
            *target = Value::String(new.to_owned());
            return Ok(());
        }
        (Value::Bool(_), Value::Bool(_)) | (Value::Null, Value::Null) => true,
        (Value::Number(old), Value::Number(new)) => old.is_f64() || !new.is_f64(),
        _ => false,
    };
    if !fits {
        let wanted = match target {
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            _ => "null",
        };
        return Err(Error::new(format!("cannot decode `{new}` as a {wanted}")));
    }
    *target = read;
    Ok(())
}

/// Splits a path at a delimiter that a backslash in front escapes; a leading delimiter counts for nothing.
pub(crate) fn split_path(path: &str, delimiter: char) -> Vec<String> {
    let path = path.strip_prefix(delimiter).unwrap_or(path);
    let mut parts: Vec<String> = Vec::new();
    for part in path.split(delimiter) {
        match parts.last_mut().filter(|last| last.ends_with('\\')) {
            Some(last) => {
                last.pop();
                last.push(delimiter);
                last.push_str(part);
            }
            None => parts.push(part.to_owned()),
        }
    }
    parts
}

/// As [`split_path`] at dots, but not within brackets.
pub(crate) fn split_field_path(path: &str) -> Vec<String> {
    let parts = split_path(path, '.');
    let mut result = Vec::with_capacity(parts.len());
    let mut rest = parts.into_iter();
    while let Some(part) = rest.next() {
        if !part.starts_with('[') || part.ends_with(']') {
            result.push(part);
            continue;
        }
        let mut bracketed = part;
        for next in rest.by_ref() {
            bracketed.push('.');
            bracketed.push_str(&next);
            if next.ends_with(']') {
                break;
            }
        }
        if bracketed.contains('=') {
            result.push(bracketed);
        } else {
            result.push(bracketed.trim_matches(['[', ']']).to_owned());
        }
    }
    result
}

/// A part of a path like `[name=value]`.
pub(crate) fn list_index(part: &str) -> Option<Result<(&str, &str)>> {
    let inner = part.strip_prefix('[')?.strip_suffix(']')?;
    Some(inner.split_once('=').ok_or_else(|| {
        Error::new(format!(
            "list path element must contain fieldName=fieldValue for element to match: {part:?}"
        ))
    }))
}

/// The value at a path; none if the way ends before.
pub(crate) fn lookup<'v>(value: &'v Value, path: &[String]) -> Result<Option<&'v Value>> {
    let mut at = value;
    for part in path
        .iter()
        .map(|part| part.trim())
        .filter(|part| !part.is_empty())
    {
        if at.is_null() {
            return Ok(None);
        }
        let found = if let Ok(index) = part.parse::<usize>() {
            elements(at)?.get(index)
        } else if part == "-" {
            elements(at)?.last()
        } else if part == "*" {
            return Err(Error::new("wildcard is not supported in this path"));
        } else if let Some(index) = list_index(part) {
            let (name, wanted) = index?;
            elements(at)?.iter().find(|item| match name.is_empty() {
                true => text(item) == wanted,
                false => item.get(name).is_some_and(|field| text(field) == wanted),
            })
        } else {
            match at {
                Value::Object(fields) => fields.get(part),
                other => return Err(wrong_kind("MappingNode", other)),
            }
        };
        match found {
            Some(found) => at = found,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

fn elements(value: &Value) -> Result<&[Value]> {
    match value {
        Value::Array(items) => Ok(items),
        Value::Null => Ok(&[]),
        other => Err(wrong_kind("SequenceNode", other)),
    }
}

/// The map at a key, made where there is none or null; an error where there is something else.
pub(crate) fn map_entry<'v>(
    fields: &'v mut Map<String, Value>,
    key: &str,
) -> Result<&'v mut Map<String, Value>> {
    let slot = fields.entry(key).or_insert(Value::Null);
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    match slot {
        Value::Object(inner) => Ok(inner),
        other => Err(wrong_kind("MappingNode", other)),
    }
}
