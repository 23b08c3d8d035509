//! Regular expressions. Rust's and Go's engines are siblings; what differs in their syntax is translated.

use std::rc::Rc;

use regex::bytes::{Regex, RegexBuilder};

use crate::arg;
use crate::error::Fault;
use crate::functions::{Func, Param};
use crate::machine::Machine;
use crate::text::quote;
use crate::value::Value;

use Param::{Int, Str};

type Answer = Result<Value, Fault>;

pub(super) const TABLE: &[Func] = &[
    Func::new("regexMatch", &[Str, Str], |machine, args| {
        Ok(Value::Bool(
            compiled(machine, args).is_ok_and(|regex| regex.is_match(arg::bytes(args, 1))),
        ))
    }),
    Func::new("mustRegexMatch", &[Str, Str], |machine, args| {
        Ok(Value::Bool(
            compiled(machine, args)?.is_match(arg::bytes(args, 1)),
        ))
    }),
    Func::new("regexFindAll", &[Str, Str, Int], |machine, args| {
        find_all(&*panicking(machine, args)?, machine, args)
    }),
    Func::new("mustRegexFindAll", &[Str, Str, Int], |machine, args| {
        find_all(&*compiled(machine, args)?, machine, args)
    }),
    Func::new("regexFind", &[Str, Str], |machine, args| {
        find(&*panicking(machine, args)?, args)
    }),
    Func::new("mustRegexFind", &[Str, Str], |machine, args| {
        find(&*compiled(machine, args)?, args)
    }),
    Func::new("regexReplaceAll", &[Str, Str, Str], |machine, args| {
        replace(&*panicking(machine, args)?, machine, args)
    }),
    Func::new("mustRegexReplaceAll", &[Str, Str, Str], |machine, args| {
        replace(&*compiled(machine, args)?, machine, args)
    }),
    Func::new("regexReplaceAllLiteral", &[Str, Str, Str], |machine, args| {
        literal(&*panicking(machine, args)?, machine, args)
    }),
    Func::new("mustRegexReplaceAllLiteral", &[Str, Str, Str], |machine, args| {
        literal(&*compiled(machine, args)?, machine, args)
    }),
    Func::new("regexSplit", &[Str, Str, Int], |machine, args| {
        split(&*panicking(machine, args)?, machine, args)
    }),
    Func::new("mustRegexSplit", &[Str, Str, Int], |machine, args| {
        split(&*compiled(machine, args)?, machine, args)
    }),
    Func::new("regexQuoteMeta", &[Str], |_, args| {
        let mut out = Vec::new();
        for &byte in arg::bytes(args, 0) {
            if br"\.+*?()|[]{}^$".contains(&byte) {
                out.push(b'\\');
            }
            out.push(byte);
        }
        Ok(out.into())
    }),
];

/// The largest program that an expression may become.
const SIZE_LIMIT: usize = 2 * 1024 * 1024;

fn compiled(machine: &mut Machine<'_>, args: &[Value]) -> Result<Rc<Regex>, Fault> {
    machine.spend_bytes(args.iter().filter_map(Value::as_str).map(|text| text.len()).sum())?;
    let expression = arg::shared(args, 0);
    if let Some(regex) = machine.regexes.get(&expression) {
        return Ok(regex.clone());
    }
    machine.spend(1000)?;
    let regex = Rc::new(compile(&arg::text(args, 0))?);
    machine.regexes.insert(expression, regex.clone());
    Ok(regex)
}

/// For the functions that panic: Go's message has one more word in it.
fn panicking(machine: &mut Machine<'_>, args: &[Value]) -> Result<Rc<Regex>, Fault> {
    compiled(machine, args).map_err(|fault| {
        let expression = arg::text(args, 0);
        let quoted = match expression.contains('`') || expression.chars().any(char::is_control) {
            true => quote(expression.as_bytes()),
            false => format!("`{expression}`"),
        };
        Fault::new(format!("regexp: Compile({quoted}): {fault}"))
    })
}

/// Compiles an expression of Go's syntax.
pub fn compile(expression: &str) -> Result<Regex, String> {
    let translated = translate(expression);
    RegexBuilder::new(&translated)
        .size_limit(SIZE_LIMIT)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(limit) => {
                format!("the expression needs more than the limit of {limit} bytes")
            }
            error => {
                let text = error.to_string();
                let reason = text.lines().last().unwrap_or("").trim_start_matches("error: ");
                // The commonest mistakes in Go's words.
                let reason = match reason {
                    "unclosed group" => "missing closing )",
                    "unopened group" => "unexpected )",
                    "unclosed character class" => "missing closing ]",
                    "repetition operator missing expression" => "missing argument to repetition operator",
                    other => other,
                };
                format!("error parsing regexp: {reason}: `{expression}`")
            }
        })
}

/// Go's classes are ASCII, its `{` may be itself, and within brackets it knows no set operations.
fn translate(expression: &str) -> String {
    let mut out = String::with_capacity(expression.len() + 16);
    let mut rest = expression;
    let mut in_class = false;
    let mut class_start = false;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let first_in_class = std::mem::take(&mut class_start);
        rest = after;
        match c {
            '\\' => rest = escape(after, in_class, &mut out),
            '[' if !in_class => {
                out.push('[');
                in_class = true;
                class_start = true;
                if let Some(negated) = after.strip_prefix('^') {
                    out.push('^');
                    rest = negated;
                }
            }
            ']' if in_class && first_in_class => out.push_str("\\]"),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '[' => match after.strip_prefix(':').and_then(|name| name.find(":]")) {
                Some(length) => {
                    let end = length + 3;
                    out.push('[');
                    out.push_str(&after[..end]);
                    rest = &after[end..];
                }
                None => out.push_str("\\["),
            },
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            '-' if in_class && after.starts_with('-') => out.push_str("\\-"),
            '{' if !in_class && !is_repetition(after) => out.push_str("\\{"),
            '}' if !in_class && !closes_repetition(&out) => out.push_str("\\}"),
            c => out.push(c),
        }
    }
    out
}

fn is_repetition(after: &str) -> bool {
    let Some((inner, _)) = after.split_once('}') else {
        return false;
    };
    let (low, high) = inner.split_once(',').unwrap_or((inner, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !low.is_empty() && digits(low) && digits(high)
}

/// Whether what was written ends in an open brace that means something.
fn closes_repetition(out: &str) -> bool {
    let Some(at) = out.rfind('{') else {
        return false;
    };
    let inner = &out[at + 1..];
    !out[..at].ends_with('\\') && !inner.contains('}')
}

fn escape<'a>(after: &'a str, in_class: bool, out: &mut String) -> &'a str {
    let Some(kind) = after.chars().next() else {
        out.push('\\');
        return after;
    };
    let rest = &after[kind.len_utf8()..];
    let class = match kind {
        'd' => "0-9",
        'w' => "0-9A-Za-z_",
        's' => "\\t\\n\\x0C\\r ",
        'D' => "^0-9",
        'W' => "^0-9A-Za-z_",
        'S' => "^\\t\\n\\x0C\\r ",
        'b' | 'B' if !in_class => {
            out.push_str(&format!("(?-u:\\{kind})"));
            return rest;
        }
        'Q' => {
            let (literal, rest) = rest.split_once("\\E").unwrap_or((rest, ""));
            out.push_str(&regex::escape(literal));
            return rest;
        }
        kind => {
            out.push('\\');
            out.push(kind);
            // A named class keeps its braces.
            if matches!(kind, 'p' | 'P' | 'x')
                && rest.starts_with('{')
                && let Some(end) = rest.find('}')
            {
                out.push_str(&rest[..=end]);
                return &rest[end + 1..];
            }
            return rest;
        }
    };
    match in_class && !class.starts_with('^') {
        true => out.push_str(class),
        false => {
            out.push('[');
            out.push_str(class);
            out.push(']');
        }
    }
    rest
}

fn find_all(regex: &Regex, machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let limit = usize::try_from(arg::int(args, 2)).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    for matched in regex.find_iter(arg::bytes(args, 1)).take(limit) {
        machine.spend(1)?;
        found.push(matched.as_bytes());
    }
    Ok(Value::strings(found))
}

fn find(regex: &Regex, args: &[Value]) -> Answer {
    let found = regex.find(arg::bytes(args, 1));
    Ok(found.map_or(Value::str(""), |matched| Value::str(matched.as_bytes())))
}

fn replace(regex: &Regex, machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let text = arg::bytes(args, 1);
    let template = arg::bytes(args, 2);
    let mut out = Vec::with_capacity(text.len());
    let mut end = 0;
    for captures in regex.captures_iter(text) {
        let Some(whole) = captures.get(0) else {
            continue;
        };
        out.extend_from_slice(&text[end..whole.start()]);
        let before = out.len();
        captures.expand(template, &mut out);
        machine.spend_bytes(out.len() - before)?;
        end = whole.end();
    }
    out.extend_from_slice(&text[end..]);
    Ok(out.into())
}

fn literal(regex: &Regex, machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let text = arg::bytes(args, 1);
    let mut out = Vec::with_capacity(text.len());
    let mut end = 0;
    for matched in regex.find_iter(text) {
        machine.spend_bytes(arg::bytes(args, 2).len())?;
        out.extend_from_slice(&text[end..matched.start()]);
        out.extend_from_slice(arg::bytes(args, 2));
        end = matched.end();
    }
    out.extend_from_slice(&text[end..]);
    Ok(out.into())
}

fn split(regex: &Regex, machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let text = arg::bytes(args, 1);
    let count = arg::int(args, 2);
    if count == 0 {
        return Ok(Value::strings(Vec::<&[u8]>::new()));
    }
    if text.is_empty() && !arg::bytes(args, 0).is_empty() {
        return Ok(Value::strings([""]));
    }
    let limit = usize::try_from(count).unwrap_or(usize::MAX);
    let mut parts: Vec<&[u8]> = Vec::new();
    let (mut begin, mut end) = (0, 0);
    for matched in regex.find_iter(text).take(limit) {
        machine.spend(1)?;
        if parts.len() == limit - 1 {
            break;
        }
        end = matched.start();
        if matched.end() != 0 {
            parts.push(&text[begin..end]);
        }
        begin = matched.end();
    }
    if end != text.len() {
        parts.push(&text[begin..]);
    }
    Ok(Value::strings(parts))
}
