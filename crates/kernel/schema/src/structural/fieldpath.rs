//! Paths to a declared field: `.spec.replicas`, `.data['a.b']`. Rules and selectable fields name fields this way.

use super::raw::{Additional, Props};
use crate::field::Path;

/// The field that a path leads to.
pub(crate) struct Resolved<'a> {
    /// The path in the notation of field errors.
    pub(crate) path: Path,
    /// `type` of the field.
    pub(crate) schema_type: &'a str,
    /// The first step.
    pub(crate) root: String,
}

/// Delimiters are tokens of their own; quoted strings are one token, quotes included.
fn token(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let end = if bytes[0] == b'\'' {
        (1..bytes.len())
            .find(|&i| bytes[i] == b'\'' && bytes[i - 1] != b'\\')
            .map_or(text.len(), |i| i + 1)
    } else {
        bytes
            .iter()
            .position(|b| matches!(b, b'.' | b'[' | b']'))
            .map_or(text.len(), |i| i.max(1))
    };
    text.split_at(end)
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some(c @ ('\'' | '\\')) => c,
            other => {
                let found = other.map(String::from).unwrap_or_default();
                return Err(format!("invalid string literal: invalid escape char \\{found}"));
            }
        });
    }
    Ok(out)
}

/// Follows a path through a schema; `brackets` says whether `['x']` may be used.
pub(super) fn resolve<'a>(schema: Props<'a>, path: &str, brackets: bool) -> Result<Resolved<'a>, String> {
    let end = || "unexpected end of JSON path".to_owned();
    let mut current = Some(schema);
    let mut resolved = Path::root();
    let mut first = None;
    let mut rest = path;
    while !rest.is_empty() {
        let (delimiter, tail) = token(rest);
        let bracket = match delimiter {
            "." => false,
            "[" if brackets => true,
            "[" => return Err("array notation is not allowed".to_owned()),
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        if tail.is_empty() {
            return Err(end());
        }
        let (name, tail) = token(tail);
        rest = tail;
        let name = if bracket {
            let inner = name
                .strip_prefix('\'')
                .and_then(|n| n.strip_suffix('\''))
                .ok_or_else(|| format!("expected single quoted string but got {name}"))?;
            if rest.is_empty() {
                return Err(end());
            }
            let (closing, tail) = token(rest);
            if closing != "]" {
                return Err(format!("expected ] but got {closing}"));
            }
            rest = tail;
            unescape(inner)?
        } else {
            name.to_owned()
        };
        let here = current.ok_or("does not refer to a valid field")?;
        if here.has_properties() {
            resolved = resolved.child(&name);
            current = Some(here.property(&name).ok_or("does not refer to a valid field")?);
        } else {
            resolved = resolved.key(&name);
            current = match here.additional() {
                None => return Err("does not refer to a valid field".to_owned()),
                Some(Additional::Schema(child)) => Some(child),
                Some(Additional::Allowed(_)) => None,
            };
        }
        first.get_or_insert(name);
    }
    Ok(Resolved {
        path: resolved,
        schema_type: current.map_or("", Props::schema_type),
        root: first.unwrap_or_default(),
    })
}
