//! Documents within text: a replacement whose path goes on behind a scalar means a field of the YAML or JSON in it.

use fairway_text_gotext::json;
use fairway_text_yaml::{EmitOptions, Limits as YamlLimits, Resolution, from_str_with, to_string_with};
use serde_json::Value;

use super::Context;
use super::replacement::PathWalk;
use crate::error::Result;
use crate::node::{is_scalar, lookup, plain, set_text, text};
use crate::styled;

/// Larger texts are not looked into.
const LIMITS: YamlLimits = YamlLimits {
    bytes: 4 * 1024 * 1024,
    depth: 100,
    aliased: 10_000,
};

fn parse(text: &str) -> Option<Value> {
    from_str_with(text, LIMITS, Resolution::Yaml12)
        .ok()
        .map(|document| document.value)
}

/// Puts a value into the document in a text that the path leads through; false if there is no such thing.
pub(super) fn put(
    object: &mut Value,
    path: &[String],
    value: &Value,
    create: bool,
    context: &Context<'_>,
) -> Result<bool> {
    let regex_bytes = context.limits.regex_bytes;
    let Some((at, document)) = (1..path.len()).find_map(|at| {
        let found = lookup(object, &path[..at]).ok().flatten()?;
        let text = is_scalar(found).then(|| text(found).into_owned())?;
        Some((at, (parse(&text)?, text)))
    }) else {
        return Ok(false);
    };
    let (mut document, original) = document;
    let mut walk = PathWalk {
        make: create.then_some(value),
        regex_bytes,
        set: &mut |field, made| {
            match (is_scalar(field), made) {
                (true, true) => *field = plain(&text(value)),
                (true, false) => {
                    if set_text(field, &text(value)).is_err() {
                        *field = styled::mistagged(field, &text(value));
                    }
                }
                (false, _) => *field = value.clone(),
            }
            Ok(())
        },
    };
    if !matches!(walk.visit(&mut document, &path[at..], false), Ok(1..)) {
        return Ok(false);
    }
    if is_json(&original) && styled::has_mistagged(&document) {
        return Ok(false);
    }
    let written = write(&document, &original);
    context.add(written.len())?;
    match find_mut(object, &path[..at]) {
        Some(slot) => {
            *slot = Value::String(written);
            Ok(true)
        }
        None => Ok(false),
    }
}

/// How many fields of the document in a text a path means.
pub(super) fn count(field: &Value, path: &[String], create: bool, regex_bytes: usize) -> Result<usize> {
    let Some(mut document) = parse(&text(field)) else {
        return Ok(0);
    };
    let null = Value::Null;
    let mut walk = PathWalk {
        make: create.then_some(&null),
        regex_bytes,
        set: &mut |_, _| Ok(()),
    };
    walk.visit(&mut document, path, false)
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

/// The document in the form that it had.
fn write(document: &Value, original: &str) -> String {
    if !is_json(original) {
        if let Some(kept) = styled::rewrite(original, document) {
            return kept.trim().to_owned();
        }
        let options = EmitOptions {
            sort_keys: false,
            width: None,
        };
        return to_string_with(document, options).trim().to_owned();
    }
    match original.contains('\n') && original.contains("  ") {
        true => json::to_string_pretty(document),
        false => json::to_string(document),
    }
}

fn find_mut<'v>(object: &'v mut Value, path: &[String]) -> Option<&'v mut Value> {
    path.iter().try_fold(object, |value, part| {
        if let Ok(index) = part.parse::<usize>() {
            return value.get_mut(index);
        }
        match crate::node::list_index(part) {
            Some(Ok((name, wanted))) => value.as_array_mut()?.iter_mut().find(|item| match name {
                "" => text(item) == wanted,
                name => item.get(name).is_some_and(|field| text(field) == wanted),
            }),
            Some(Err(_)) => None,
            None => value.get_mut(part),
        }
    })
}
