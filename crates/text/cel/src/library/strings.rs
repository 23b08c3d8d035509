//! Text: the standard functions and the strings extension.

use super::{arg, format_string};
use crate::cost::Cost;
use crate::error::Error;
use crate::functions::Registry;
use crate::meter::Meter;
use crate::value::Value;

pub(super) fn register(r: &mut Registry) {
    r.add(
        "contains",
        "string.(string) -> bool",
        Cost::Contains,
        |_, args| {
            Ok(Value::Bool(
                arg!(args, 0, String).contains(arg!(args, 1, String).as_str()),
            ))
        },
    );
    r.add("startsWith", "string.(string) -> bool", Cost::Affix, |_, args| {
        Ok(Value::Bool(
            arg!(args, 0, String).starts_with(arg!(args, 1, String).as_str()),
        ))
    });
    r.add("endsWith", "string.(string) -> bool", Cost::Affix, |_, args| {
        Ok(Value::Bool(
            arg!(args, 0, String).ends_with(arg!(args, 1, String).as_str()),
        ))
    });
    r.add("charAt", "string.(int) -> string", Cost::Fixed(1), char_at);
    r.add("indexOf", "string.(string) -> int", Cost::Traverse, index_of);
    r.add("indexOf", "string.(string, int) -> int", Cost::Traverse, index_of);
    r.add(
        "lastIndexOf",
        "string.(string) -> int",
        Cost::Traverse,
        last_index_of,
    );
    r.add(
        "lastIndexOf",
        "string.(string, int) -> int",
        Cost::Traverse,
        last_index_of,
    );
    r.add(
        "lowerAscii",
        "string.() -> string",
        Cost::ScanTarget,
        |_, args| Ok(Value::string(arg!(args, 0, String).to_ascii_lowercase())),
    );
    r.add(
        "upperAscii",
        "string.() -> string",
        Cost::ScanTarget,
        |_, args| Ok(Value::string(arg!(args, 0, String).to_ascii_uppercase())),
    );
    r.add(
        "replace",
        "string.(string, string) -> string",
        Cost::Replace,
        replace,
    );
    r.add(
        "replace",
        "string.(string, string, int) -> string",
        Cost::Replace,
        replace,
    );
    r.add("split", "string.(string) -> list<string>", Cost::Split, split);
    r.add(
        "split",
        "string.(string, int) -> list<string>",
        Cost::Split,
        split,
    );
    r.add("substring", "string.(int) -> string", Cost::ScanTarget, substring);
    r.add(
        "substring",
        "string.(int, int) -> string",
        Cost::ScanTarget,
        substring,
    );
    r.add("trim", "string.() -> string", Cost::ScanTarget, |_, args| {
        let white = |c: char| c.is_whitespace();
        Ok(Value::string(arg!(args, 0, String).trim_matches(white)))
    });
    r.add("join", "list<string>.() -> string", Cost::Join, join);
    r.add("join", "list<string>.(string) -> string", Cost::Join, join);
    r.add(
        "format",
        "string.(list<dyn>) -> string",
        Cost::Format,
        format_string::format,
    );
    r.add("strings.quote", "(string) -> string", Cost::Quote, |_, args| {
        Ok(Value::string(quote(arg!(args, 0, String))))
    });
}

pub(super) fn register_latest(r: &mut Registry) {
    r.add("reverse", "string.() -> string", Cost::Fixed(1), |_, args| {
        Ok(Value::string(
            arg!(args, 0, String).chars().rev().collect::<String>(),
        ))
    });
}

pub(super) fn register_json_patch(r: &mut Registry) {
    r.add(
        "jsonpatch.escapeKey",
        "(string) -> string",
        Cost::ScanArgument,
        |_, args| {
            Ok(Value::string(
                arg!(args, 0, String).replace('~', "~0").replace('/', "~1"),
            ))
        },
    );
}

fn out_of_range(index: i64) -> Error {
    Error::invalid(format!("index out of range: {index}"))
}

/// The byte offset of a code point, where the end of the text counts too.
fn byte_offset(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    text.char_indices()
        .map(|(offset, _)| offset)
        .chain([text.len()])
        .nth(index)
}

fn char_at<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let (text, index) = (arg!(args, 0, String), *arg!(args, 1, Int));
    let offset = byte_offset(text, index).ok_or_else(|| out_of_range(index))?;
    Ok(Value::string(text[offset..].chars().take(1).collect::<String>()))
}

fn index_of<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let (text, part) = (arg!(args, 0, String), arg!(args, 1, String));
    let from = args.get(2).and_then(Value::as_int).unwrap_or(0);
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    if from < 0 {
        return Err(out_of_range(from));
    }
    let Some(offset) = byte_offset(text, from) else {
        return Ok(Value::Int(-1));
    };
    let found = text[offset..].find(part.as_str());
    Ok(Value::Int(found.map_or(-1, |found| {
        text[..offset + found].chars().count() as i64
    })))
}

fn last_index_of<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let (text, part) = (arg!(args, 0, String), arg!(args, 1, String));
    let length = text.chars().count() as i64;
    let from = args.get(2).and_then(Value::as_int);
    if part.is_empty() {
        return Ok(Value::Int(from.unwrap_or(length)));
    }
    let until = match from {
        Some(from) if from < 0 => return Err(out_of_range(from)),
        Some(from) if from >= length => return Ok(Value::Int(-1)),
        Some(from) => (from + part.chars().count() as i64).min(length),
        None => length,
    };
    let end = byte_offset(text, until).unwrap_or(text.len());
    let found = text[..end].rfind(part.as_str());
    Ok(Value::Int(
        found.map_or(-1, |found| text[..found].chars().count() as i64),
    ))
}

fn replace<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let (text, old, new) = (
        arg!(args, 0, String),
        arg!(args, 1, String),
        arg!(args, 2, String),
    );
    let limit = args.get(3).and_then(Value::as_int).unwrap_or(-1);
    // The price of replace does not depend on the replacement, which may be long.
    let count = if old.is_empty() {
        text.len() + 1
    } else {
        text.matches(old.as_str()).count()
    };
    let count = usize::try_from(limit).map_or(count, |limit| limit.min(count));
    meter.work(count.saturating_mul(new.len() + 1) / 4)?;
    Ok(Value::string(match usize::try_from(limit) {
        Ok(limit) => text.replacen(old.as_str(), new, limit),
        Err(_) => text.replace(old.as_str(), new),
    }))
}

fn split<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let (text, separator) = (arg!(args, 0, String), arg!(args, 1, String));
    let limit = args.get(2).and_then(Value::as_int).unwrap_or(-1);
    meter.work(text.len() * 4)?;
    if limit == 0 {
        return Ok(Value::list(Vec::new()));
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let part = |part: &str| Value::string(part);
    Ok(Value::list(if separator.is_empty() {
        // An empty separator splits into code points; the last part takes the rest.
        let mut parts: Vec<_> = text
            .char_indices()
            .map(|(start, c)| (start, start + c.len_utf8()))
            .take(limit)
            .collect();
        if let Some(last) = parts.last_mut() {
            last.1 = text.len();
        }
        parts
            .into_iter()
            .map(|(start, end)| part(&text[start..end]))
            .collect()
    } else {
        text.splitn(limit, separator.as_str()).map(part).collect()
    }))
}

fn substring<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let (text, start) = (arg!(args, 0, String), *arg!(args, 1, Int));
    let end = args.get(2).and_then(Value::as_int);
    if let Some(end) = end
        && start > end
    {
        return Err(Error::invalid(format!(
            "invalid substring range. start: {start}, end: {end}"
        )));
    }
    let from = byte_offset(text, start).ok_or_else(|| out_of_range(start))?;
    let to = match end {
        Some(end) => byte_offset(text, end).ok_or_else(|| out_of_range(end))?,
        None => text.len(),
    };
    Ok(Value::string(&text[from..to]))
}

fn join<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let list = arg!(args, 0, List);
    let separator = args.get(1).and_then(Value::as_str).unwrap_or_default();
    let mut out = String::new();
    for (index, element) in list.iter().enumerate() {
        let element = element?;
        let Value::String(text) = &element else {
            return Err(Error::invalid(format!(
                "join: invalid input: {}",
                element.type_name()
            )));
        };
        meter.work(1 + (text.len() + separator.len()) / 4)?;
        if index > 0 {
            out.push_str(separator);
        }
        out.push_str(text);
    }
    Ok(Value::string(out))
}

/// The text as a CEL literal.
pub(super) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
