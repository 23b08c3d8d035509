//! The functions of the string library whose cost is not in their instructions: patterns and repetition.

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Lua, LuaString, MultiValue, Table, Value};

use super::Budget;
use super::pattern::{Capture, Fault, Matcher};

/// The longest text that is built by repetition or replacement.
const MAX_TEXT: usize = 4 << 20;

/// Replaces what is unbounded in the library.
pub(super) fn bound(lua: &Lua, budget: &Rc<Budget>) -> mlua::Result<()> {
    let library: Table = lua.globals().get("string")?;
    library.set("dump", Value::Nil)?;

    let shared = Rc::clone(budget);
    library.set(
        "find",
        lua.create_function(move |lua, (text, pattern, init, plain): Arguments| {
            let start = start(&text, init);
            if plain.unwrap_or(false) || !has_specials(&pattern.as_bytes()) {
                return find_plain(&shared, &text.as_bytes(), &pattern.as_bytes(), start);
            }
            search(lua, &shared, &text.as_bytes(), &pattern.as_bytes(), start, true)
        })?,
    )?;
    let shared = Rc::clone(budget);
    library.set(
        "match",
        lua.create_function(move |lua, (text, pattern, init, _): Arguments| {
            let start = start(&text, init);
            search(lua, &shared, &text.as_bytes(), &pattern.as_bytes(), start, false)
        })?,
    )?;
    let shared = Rc::clone(budget);
    let gmatch = lua.create_function(move |lua, (text, pattern): (LuaString, LuaString)| {
        let (shared, place) = (Rc::clone(&shared), Cell::new(0usize));
        lua.create_function(move |lua, _: MultiValue| {
            next_match(lua, &shared, &text.as_bytes(), &pattern.as_bytes(), &place)
        })
    })?;
    library.set("gmatch", &gmatch)?;
    library.set("gfind", gmatch)?;
    let shared = Rc::clone(budget);
    library.set(
        "gsub",
        lua.create_function(
            move |lua, (text, pattern, by, most): (LuaString, LuaString, Value, Option<f64>)| {
                substitute(lua, &shared, &text.as_bytes(), &pattern.as_bytes(), &by, most)
            },
        )?,
    )?;
    let shared = Rc::clone(budget);
    library.set(
        "rep",
        lua.create_function(move |lua, (text, times): (LuaString, f64)| {
            let times = times.max(0.0) as usize;
            let length = text.as_bytes().len().saturating_mul(times);
            if length > MAX_TEXT {
                return Err(mlua::Error::runtime("resulting string too large"));
            }
            shared.spend(length as u64 / 64)?;
            if length == 0 {
                return lua.create_string("");
            }
            lua.create_string(text.as_bytes().repeat(times))
        })?,
    )
}

type Arguments = (LuaString, LuaString, Option<f64>, Option<bool>);

/// Where to begin, from a place that counts from one, or from the end if it is negative.
fn start(text: &LuaString, init: Option<f64>) -> usize {
    let init = init.unwrap_or(1.0) as i64;
    let length = text.as_bytes().len();
    match usize::try_from(init) {
        Ok(place) => place.saturating_sub(1),
        Err(_) => length.saturating_sub(usize::try_from(init.unsigned_abs()).unwrap_or(usize::MAX)),
    }
}

fn has_specials(pattern: &[u8]) -> bool {
    pattern.iter().any(|c| b"^$*+?.([%-".contains(c))
}

fn find_plain(budget: &Budget, text: &[u8], word: &[u8], start: usize) -> mlua::Result<MultiValue> {
    budget.spend(text.len() as u64 / 16)?;
    let Some(rest) = text.get(start..) else {
        return Ok(nothing());
    };
    let place = match word.is_empty() {
        true => Some(0),
        false => rest.windows(word.len()).position(|window| window == word),
    };
    Ok(match place {
        Some(at) => [number(start + at + 1), number(start + at + word.len())]
            .into_iter()
            .collect(),
        None => nothing(),
    })
}

fn search(
    lua: &Lua,
    budget: &Budget,
    text: &[u8],
    pattern: &[u8],
    start: usize,
    with_place: bool,
) -> mlua::Result<MultiValue> {
    let anchored = pattern.first() == Some(&b'^');
    let pattern = if anchored { &pattern[1..] } else { pattern };
    let mut matcher = Matcher::new(text, pattern, budget.steps.get());
    for at in start..=text.len() {
        if let Some(end) = attempt(budget, &mut matcher, at)? {
            let mut out: Vec<Value> = Vec::new();
            if with_place {
                out.extend([number(at + 1), number(end)]);
            }
            if !with_place || !matcher.captures.is_empty() {
                out.extend(captures(lua, text, &matcher.captures, at, end)?);
            }
            return Ok(out.into_iter().collect());
        }
        if anchored {
            break;
        }
    }
    Ok(nothing())
}

fn next_match(
    lua: &Lua,
    budget: &Budget,
    text: &[u8],
    pattern: &[u8],
    place: &Cell<usize>,
) -> mlua::Result<MultiValue> {
    let mut matcher = Matcher::new(text, pattern, budget.steps.get());
    for at in place.get()..=text.len() {
        if let Some(end) = attempt(budget, &mut matcher, at)? {
            // An empty match must not be found for ever.
            place.set(if end == at { at + 1 } else { end });
            return Ok(captures(lua, text, &matcher.captures, at, end)?
                .into_iter()
                .collect());
        }
    }
    place.set(text.len() + 1);
    Ok(nothing())
}

fn substitute(
    lua: &Lua,
    budget: &Budget,
    text: &[u8],
    pattern: &[u8],
    by: &Value,
    most: Option<f64>,
) -> mlua::Result<(LuaString, usize)> {
    let anchored = pattern.first() == Some(&b'^');
    let pattern = if anchored { &pattern[1..] } else { pattern };
    let mut matcher = Matcher::new(text, pattern, budget.steps.get());
    let (mut out, mut at, mut count) = (Vec::new(), 0usize, 0usize);
    while most.is_none_or(|most| (count as f64) < most) {
        match attempt(budget, &mut matcher, at)? {
            Some(end) => {
                count += 1;
                let found = captures(lua, text, &matcher.captures, at, end)?;
                out.extend(replacement(by, found, &text[at..end])?);
                if end > at {
                    at = end;
                } else {
                    out.extend(text.get(at));
                    at += 1;
                }
                // What a function in `by` used is gone from the budget, too.
                matcher.budget = budget.steps.get();
            }
            None => {
                out.extend(text.get(at));
                at += 1;
            }
        }
        if out.len() > MAX_TEXT {
            return Err(mlua::Error::runtime("resulting string too large"));
        }
        if at > text.len() || anchored {
            break;
        }
    }
    out.extend(text.get(at..).unwrap_or_default());
    Ok((lua.create_string(&out)?, count))
}

fn replacement(by: &Value, found: Vec<Value>, whole: &[u8]) -> mlua::Result<Vec<u8>> {
    let first = || found.first().cloned().unwrap_or(Value::Nil);
    let value = match by {
        Value::String(template) => return expand(&template.as_bytes(), &found, whole),
        Value::Integer(_) | Value::Number(_) => return Ok(by.to_string()?.into_bytes()),
        Value::Table(table) => table.get::<Value>(first())?,
        Value::Function(function) => {
            let arguments: MultiValue = found.into_iter().collect();
            function.call::<Value>(arguments)?
        }
        other => {
            let message = format!("string/function/table expected, got {}", other.type_name());
            return Err(mlua::Error::runtime(message));
        }
    };
    match value {
        Value::Nil | Value::Boolean(false) => Ok(whole.to_vec()),
        Value::String(text) => Ok(text.as_bytes().to_vec()),
        Value::Integer(_) | Value::Number(_) => Ok(value.to_string()?.into_bytes()),
        other => {
            let message = format!("invalid replacement value (a {})", other.type_name());
            Err(mlua::Error::runtime(message))
        }
    }
}

/// A replacement text, in which `%0` is the whole match and `%1` the first capture.
fn expand(template: &[u8], found: &[Value], whole: &[u8]) -> mlua::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(template.len());
    let mut bytes = template.iter();
    while let Some(&c) = bytes.next() {
        if c != b'%' {
            out.push(c);
            continue;
        }
        match bytes.next() {
            Some(b'0') => out.extend(whole),
            Some(digit) if digit.is_ascii_digit() => match found.get(usize::from(digit - b'1')) {
                Some(value) => out.extend(value.to_string()?.into_bytes()),
                None => return Err(mlua::Error::runtime("invalid capture index")),
            },
            Some(other) => out.push(*other),
            None => return Err(mlua::Error::runtime("invalid use of '%' in replacement string")),
        }
    }
    Ok(out)
}

fn attempt(budget: &Budget, matcher: &mut Matcher<'_>, at: usize) -> mlua::Result<Option<usize>> {
    let result = matcher.match_at(at);
    let used = budget.steps.get().saturating_sub(matcher.budget);
    match result {
        Err(Fault::OverBudget) => {
            budget.spend(u64::MAX)?;
            Ok(None)
        }
        Err(Fault::Malformed(why)) => Err(mlua::Error::runtime(why)),
        Ok(found) => {
            budget.spend(used)?;
            Ok(found)
        }
    }
}

/// What was caught; the whole match if the pattern catches nothing.
fn captures(lua: &Lua, text: &[u8], list: &[Capture], at: usize, end: usize) -> mlua::Result<Vec<Value>> {
    if list.is_empty() {
        return Ok(vec![Value::String(lua.create_string(&text[at..end])?)]);
    }
    list.iter()
        .map(|capture| match capture {
            Capture::Text(from, to) => Ok(Value::String(lua.create_string(&text[*from..*to])?)),
            Capture::Place(place) => Ok(number(place + 1)),
            Capture::Open(_) => Err(mlua::Error::runtime("unfinished capture")),
        })
        .collect()
}

fn number(value: usize) -> Value {
    Value::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}

fn nothing() -> MultiValue {
    std::iter::once(Value::Nil).collect()
}
