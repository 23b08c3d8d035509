//! Text: trimming, cutting, joining, quoting.

use crate::arg;
use crate::error::Fault;
use crate::functions::{Func, Param};
use crate::machine::Machine;
use crate::sprig::cast::to_text;
use crate::text::{is_space, lossy, quote};
use crate::value::{Entries, Map, STRING_MAP, Value};

use Param::{Any, Int, Str};

type Answer = Result<Value, Fault>;

pub(super) const TABLE: &[Func] = &[
    Func::new("hello", &[], |_, _| Ok("Hello!".into())),
    Func::new("abbrev", &[Int, Str], |_, args| {
        Ok(abbreviate(arg::bytes(args, 1), 0, arg::int(args, 0)).into())
    }),
    Func::new("abbrevboth", &[Int, Int, Str], abbrevboth),
    Func::new("trunc", &[Int, Str], trunc),
    Func::new("trim", &[Str], |_, args| {
        Ok(arg::text(args, 0).trim_matches(is_space).into())
    }),
    Func::new("substr", &[Int, Int, Str], substr),
    Func::new("repeat", &[Int, Str], repeat),
    Func::new("trimall", &[Str, Str], trim_all),
    Func::new("trimAll", &[Str, Str], trim_all),
    Func::new("trimSuffix", &[Str, Str], |_, args| {
        let text = arg::bytes(args, 1);
        Ok(Value::str(text.strip_suffix(arg::bytes(args, 0)).unwrap_or(text)))
    }),
    Func::new("trimPrefix", &[Str, Str], |_, args| {
        let text = arg::bytes(args, 1);
        Ok(Value::str(text.strip_prefix(arg::bytes(args, 0)).unwrap_or(text)))
    }),
    Func::new("wrap", &[Int, Str], |machine, args| {
        wrap(machine, arg::bytes(args, 1), arg::int(args, 0), b"", false)
    }),
    Func::new("wrapWith", &[Int, Str, Str], |machine, args| {
        wrap(
            machine,
            arg::bytes(args, 2),
            arg::int(args, 0),
            arg::bytes(args, 1),
            true,
        )
    }),
    Func::new("contains", &[Str, Str], |_, args| {
        Ok(Value::Bool(
            find(arg::bytes(args, 1), arg::bytes(args, 0)).is_some(),
        ))
    }),
    Func::new("hasPrefix", &[Str, Str], |_, args| {
        Ok(Value::Bool(arg::bytes(args, 1).starts_with(arg::bytes(args, 0))))
    }),
    Func::new("hasSuffix", &[Str, Str], |_, args| {
        Ok(Value::Bool(arg::bytes(args, 1).ends_with(arg::bytes(args, 0))))
    }),
    Func::variadic("quote", &[Any], quote_all),
    Func::variadic("squote", &[Any], squote_all),
    Func::variadic("cat", &[Any], cat),
    Func::new("indent", &[Int, Str], |machine, args| indent(machine, args, b"")),
    Func::new("nindent", &[Int, Str], |machine, args| {
        indent(machine, args, b"\n")
    }),
    Func::new("replace", &[Str, Str, Str], replace),
    Func::new("plural", &[Str, Str, Int], |_, args| {
        Ok(Value::Str(arg::shared(args, usize::from(arg::int(args, 2) != 1))))
    }),
    Func::new("toString", &[Any], |_, args| {
        Ok(to_text(arg::any(args, 0))?.into())
    }),
    Func::new("join", &[Str, Any], join),
    Func::new("split", &[Str, Str], |machine, args| {
        Ok(numbered(split(
            machine,
            arg::bytes(args, 1),
            arg::bytes(args, 0),
            None,
        )?))
    }),
    Func::new("splitn", &[Str, Int, Str], |machine, args| {
        Ok(numbered(split(
            machine,
            arg::bytes(args, 2),
            arg::bytes(args, 0),
            Some(arg::int(args, 1)),
        )?))
    }),
    Func::new("splitList", &[Str, Str], |machine, args| {
        Ok(Value::strings(split(
            machine,
            arg::bytes(args, 1),
            arg::bytes(args, 0),
            None,
        )?))
    }),
    Func::new("toStrings", &[Any], |_, args| {
        Ok(Value::strings(texts(arg::any(args, 0))?))
    }),
];

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, what)
}

/// goutils' `AbbreviateFull`, which counts bytes.
fn abbreviate(text: &[u8], offset: usize, width: i64) -> Vec<u8> {
    let Some(width) = usize::try_from(width).ok().filter(|width| *width >= 4) else {
        return text.to_vec();
    };
    if text.len() <= width {
        return text.to_vec();
    }
    let mut offset = offset.min(text.len());
    if text.len() - offset < width - 3 {
        offset = text.len() - (width - 3);
    }
    if offset <= 4 {
        return [&text[..width - 3], b"..."].concat();
    }
    if width < 7 {
        return Vec::new();
    }
    if offset + width - 3 < text.len() {
        return [b"...".to_vec(), abbreviate(&text[offset..], 0, width as i64 - 3)].concat();
    }
    [b"...", &text[text.len() - (width - 3)..]].concat()
}

fn abbrevboth(_: &mut Machine<'_>, args: &[Value]) -> Answer {
    let (left, right, text) = (arg::int(args, 0), arg::int(args, 1), arg::bytes(args, 2));
    if right < 4 || (left > 0 && right < 7) {
        return Ok(Value::str(text));
    }
    let offset = usize::try_from(left).unwrap_or(0);
    Ok(abbreviate(text, offset, right).into())
}

fn trunc(_: &mut Machine<'_>, args: &[Value]) -> Answer {
    let (count, text) = (arg::int(args, 0), arg::bytes(args, 1));
    let length = text.len() as i64;
    let cut = match count {
        count if count < 0 && length.saturating_add(count) > 0 => &text[(length + count) as usize..],
        count if count >= 0 && length > count => &text[..count as usize],
        _ => text,
    };
    Ok(Value::str(cut))
}

fn substr(_: &mut Machine<'_>, args: &[Value]) -> Answer {
    let (start, end, text) = (arg::int(args, 0), arg::int(args, 1), arg::bytes(args, 2));
    let bounds = |start: i64, end: i64| {
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        range
            .and_then(|(start, end)| text.get(start..end))
            .map(Value::str)
            .ok_or_else(|| {
                Fault::new(format!(
                    "runtime error: slice bounds out of range [{start}:{end}] with length {}",
                    text.len()
                ))
            })
    };
    let length = text.len() as i64;
    match () {
        () if start < 0 => bounds(0, end),
        () if end < 0 || end > length => bounds(start, length),
        () => bounds(start, end),
    }
}

fn repeat(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let Some(count) = arg::count(args, 0) else {
        return Err("strings: negative Repeat count".into());
    };
    let text = arg::bytes(args, 1);
    let size = text
        .len()
        .checked_mul(count)
        .ok_or("strings: Repeat output length overflow")?;
    machine.spend_bytes(size)?;
    Ok(text.repeat(count).into())
}

fn trim_all(_: &mut Machine<'_>, args: &[Value]) -> Answer {
    let set = arg::text(args, 0);
    Ok(arg::text(args, 1).trim_matches(|c| set.contains(c)).into())
}

fn wrap(machine: &mut Machine<'_>, text: &[u8], width: i64, line_end: &[u8], long_words: bool) -> Answer {
    let line_end = if line_end.is_empty() { b"\n" } else { line_end };
    let width = usize::try_from(width).unwrap_or(1).max(1);
    machine.spend_bytes(text.len().saturating_mul(1 + line_end.len() / width))?;
    let mut out = Vec::new();
    let mut offset = 0;
    while text.len() - offset > width {
        if text[offset] == b' ' {
            offset += 1;
            continue;
        }
        let end = (offset + width + 1).min(text.len());
        if let Some(space) = text[offset..end].iter().rposition(|&byte| byte == b' ') {
            out.extend_from_slice(&text[offset..offset + space]);
            out.extend_from_slice(line_end);
            offset += space + 1;
        } else if long_words {
            out.extend_from_slice(&text[offset..offset + width]);
            out.extend_from_slice(line_end);
            offset += width;
        } else {
            match text[offset + width..].iter().position(|&byte| byte == b' ') {
                None => {
                    out.extend_from_slice(&text[offset..]);
                    offset = text.len();
                }
                Some(space) => {
                    let space = offset + width + space;
                    out.extend_from_slice(&text[offset..space]);
                    out.extend_from_slice(line_end);
                    offset = space + 1;
                }
            }
        }
    }
    out.extend_from_slice(&text[offset..]);
    Ok(out.into())
}

fn join_with_spaces(parts: &[Vec<u8>]) -> Value {
    parts.join(b" ".as_slice()).into()
}

fn quote_all(_: &mut Machine<'_>, args: &[Value]) -> Answer {
    let mut parts = Vec::with_capacity(args.len());
    for value in args.iter().filter(|value| !value.is_nil()) {
        parts.push(quote(&to_text(value)?).into_bytes());
    }
    Ok(join_with_spaces(&parts))
}

fn squote_all(_: &mut Machine<'_>, args: &[Value]) -> Answer {
    let mut parts = Vec::with_capacity(args.len());
    for value in args.iter().filter(|value| !value.is_nil()) {
        parts.push([b"'", crate::fmt::print(value)?.as_slice(), b"'"].concat());
    }
    Ok(join_with_spaces(&parts))
}

fn cat(_: &mut Machine<'_>, args: &[Value]) -> Answer {
    let mut parts = Vec::with_capacity(args.len());
    for value in args.iter().filter(|value| !value.is_nil()) {
        parts.push(crate::fmt::print(value)?);
    }
    Ok(join_with_spaces(&parts))
}

fn indent(machine: &mut Machine<'_>, args: &[Value], before: &[u8]) -> Answer {
    let Some(spaces) = arg::count(args, 0) else {
        return Err("strings: negative Repeat count".into());
    };
    let text = arg::bytes(args, 1);
    let lines = text.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let size = lines.saturating_mul(spaces).saturating_add(text.len());
    machine.spend_bytes(size)?;
    let mut out = Vec::with_capacity(size + before.len());
    out.extend_from_slice(before);
    for (at, line) in text.split(|&byte| byte == b'\n').enumerate() {
        if at > 0 {
            out.push(b'\n');
        }
        out.extend(std::iter::repeat_n(b' ', spaces));
        out.extend_from_slice(line);
    }
    Ok(out.into())
}

fn replace(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let (old, new, text) = (arg::bytes(args, 0), arg::bytes(args, 1), arg::bytes(args, 2));
    machine.spend_bytes(text.len())?;
    let mut out = Vec::with_capacity(text.len());
    if old.is_empty() {
        machine.spend_bytes(text.len().saturating_mul(new.len()))?;
        // Before each character, and at the end.
        for chunk in text.utf8_chunks() {
            for c in chunk.valid().chars() {
                out.extend_from_slice(new);
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            for byte in chunk.invalid() {
                out.extend_from_slice(new);
                out.push(*byte);
            }
        }
        out.extend_from_slice(new);
        return Ok(out.into());
    }
    let mut rest = text;
    while let Some(at) = find(rest, old) {
        machine.spend_bytes(new.len())?;
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(new);
        rest = &rest[at + old.len()..];
    }
    out.extend_from_slice(rest);
    Ok(out.into())
}

/// sprig's `strslice`: the elements of a list as texts, or the one text of anything else.
pub(super) fn texts(value: &Value) -> Result<Vec<Vec<u8>>, String> {
    match value {
        Value::List(list) => list
            .items
            .iter()
            .filter(|item| !item.is_nil())
            .map(to_text)
            .collect(),
        Value::Bytes(bytes) => Ok(bytes.iter().map(|byte| byte.to_string().into_bytes()).collect()),
        Value::Invalid | Value::Nil => Ok(Vec::new()),
        other => Ok(vec![to_text(other)?]),
    }
}

fn join(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let separator = arg::bytes(args, 0);
    let parts = texts(arg::any(args, 1))?;
    machine.spend_bytes(parts.iter().map(|part| part.len() + separator.len()).sum())?;
    Ok(parts.join(separator).into())
}

/// Go's `strings.SplitN`; without a count all parts.
fn split(
    machine: &mut Machine<'_>,
    text: &[u8],
    separator: &[u8],
    count: Option<i64>,
) -> Result<Vec<Vec<u8>>, Fault> {
    machine.spend_bytes(text.len())?;
    let limit = match count {
        Some(0) => return Ok(Vec::new()),
        Some(count) => usize::try_from(count).unwrap_or(usize::MAX),
        None => usize::MAX,
    };
    let mut parts = Vec::new();
    if separator.is_empty() {
        let text = lossy(text);
        let mut rest = text.chars();
        while !rest.as_str().is_empty() {
            if parts.len() + 1 == limit {
                parts.push(rest.as_str().as_bytes().to_vec());
                break;
            }
            if let Some(c) = rest.next() {
                machine.spend(1)?;
                parts.push(c.to_string().into_bytes());
            }
        }
        return Ok(parts);
    }
    let mut rest = text;
    while parts.len() + 1 < limit {
        let Some(at) = find(rest, separator) else {
            break;
        };
        machine.spend(1)?;
        parts.push(rest[..at].to_vec());
        rest = &rest[at + separator.len()..];
    }
    parts.push(rest.to_vec());
    Ok(parts)
}

/// `_0`, `_1` and so on.
fn numbered(parts: Vec<Vec<u8>>) -> Value {
    let entries: Entries = parts
        .into_iter()
        .enumerate()
        .map(|(at, part)| (format!("_{at}").into_bytes().into(), Value::from(part)))
        .collect();
    Value::Map(Map::typed(&STRING_MAP, entries))
}
