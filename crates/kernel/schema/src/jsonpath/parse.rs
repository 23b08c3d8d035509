//! The grammar: a row of steps, each told by its first characters.

use serde_json::Value;

use super::{Operator, Slice, Step};

/// Filters and unions nest at most this deep.
const MAX_DEPTH: usize = 16;

/// Characters that end a field name.
fn ends_name(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}'
    )
}

/// Parses what stands between the braces of a template.
pub(super) fn expression(text: &str, depth: usize) -> Result<Vec<Step>, String> {
    if depth > MAX_DEPTH {
        return Err("expression is nested too deeply".to_owned());
    }
    let mut steps = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let tail = &rest[c.len_utf8()..];
        rest = match c {
            _ if rest.starts_with("[?(") => filter(&rest[3..], depth, &mut steps)?,
            _ if rest.starts_with("..") => {
                if steps.last() == Some(&Step::Recursive) {
                    return Err("invalid multiple recursive descent".to_owned());
                }
                steps.push(Step::Recursive);
                let tail = &rest[2..];
                if tail.starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
                    field(tail, &mut steps)
                } else {
                    tail
                }
            }
            '\r' | '\n' => return Err("unclosed action".to_owned()),
            // The object at hand, or space: nothing to do.
            ' ' | '@' | '$' => tail,
            '[' => brackets(tail, depth, &mut steps)?,
            '"' | '\'' => quoted(tail, c, &mut steps)?,
            '.' => field(tail, &mut steps),
            '+' | '-' | '0'..='9' => number(rest, &mut steps)?,
            c if c == '_' || c.is_alphanumeric() => word(rest, &mut steps)?,
            c => return Err(format!("unrecognized character in action: {c:?}")),
        };
    }
    Ok(steps)
}

/// A field name after its dot; backslashes take away the meaning of what follows.
fn field<'a>(text: &'a str, steps: &mut Vec<Step>) -> &'a str {
    let mut name = String::new();
    let mut chars = text.char_indices();
    let mut end = text.len();
    while let Some((i, c)) = chars.next() {
        if c == '\\' {
            name.extend(chars.next().map(|(_, escaped)| escaped).filter(|c| *c != '\\'));
        } else if ends_name(c) {
            end = i;
            break;
        } else {
            name.push(c);
        }
    }
    steps.push(if &text[..end] == "*" {
        Step::Wildcard
    } else {
        Step::Field(name)
    });
    &text[end..]
}

fn number<'a>(text: &'a str, steps: &mut Vec<Step>) -> Result<&'a str, String> {
    let end = text[1..]
        .find(|c: char| c != '.' && !c.is_ascii_digit())
        .map_or(text.len(), |i| i + 1);
    let (digits, rest) = text.split_at(end);
    let value = match digits.parse::<i64>() {
        Ok(int) => Value::from(int),
        Err(_) => {
            let float: f64 = digits
                .parse()
                .map_err(|_| format!("cannot parse number {digits}"))?;
            Value::from(float)
        }
    };
    steps.push(Step::Literal(value));
    Ok(rest)
}

fn word<'a>(text: &'a str, steps: &mut Vec<Step>) -> Result<&'a str, String> {
    let (word, rest) = text.split_at(text.find(ends_name).unwrap_or(text.len()));
    match word {
        "true" => steps.push(Step::Literal(true.into())),
        "false" => steps.push(Step::Literal(false.into())),
        other => return Err(format!("unrecognized identifier {other}")),
    }
    Ok(rest)
}

fn quoted<'a>(text: &'a str, quote: char, steps: &mut Vec<Step>) -> Result<&'a str, String> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((i, c)) = chars.next() {
        match c {
            c if c == quote => {
                steps.push(Step::Literal(out.into()));
                return Ok(&text[i + 1..]);
            }
            '\n' => break,
            '\\' => out.push(match chars.next().map(|(_, c)| c) {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some(c @ ('\\' | '"' | '\'')) => c,
                other => {
                    let found = other.map(String::from).unwrap_or_default();
                    return Err(format!("unquote string error: invalid escape \\{found}"));
                }
            }),
            c => out.push(c),
        }
    }
    Err("unterminated quoted string".to_owned())
}

/// What follows an opening bracket: a key, an index, a slice, or several of them.
fn brackets<'a>(text: &'a str, depth: usize, steps: &mut Vec<Step>) -> Result<&'a str, String> {
    let end = text
        .find([']', '\n'])
        .filter(|&i| text[i..].starts_with(']'))
        .ok_or("unterminated array")?;
    let (inner, rest) = (&text[..end], &text[end + 1..]);
    if inner.contains(',') {
        let parts: Result<Vec<Vec<Step>>, String> = inner
            .split(',')
            .map(|part| expression(&format!("[{}]", part.trim_matches(' ')), depth + 1))
            .collect();
        steps.push(Step::Union(parts?));
    } else if let Some(key) = inner.strip_prefix('\'').and_then(|k| k.strip_suffix('\'')) {
        steps.append(&mut expression(&format!(".{key}"), depth + 1)?);
    } else {
        steps.push(Step::Slice(slice(if inner == "*" { ":" } else { inner })?));
    }
    Ok(rest)
}

fn slice(text: &str) -> Result<Slice, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let invalid = || format!("invalid array index {text}");
    if parts.len() > 3 {
        return Err(invalid());
    }
    let mut numbers = [None; 3];
    for (number, part) in numbers.iter_mut().zip(&parts) {
        let digits = part.strip_prefix('-').unwrap_or(part);
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(invalid());
        }
        if !part.is_empty() {
            *number = Some(
                part.parse::<i64>()
                    .map_err(|_| format!("array index {part} is not a number"))?,
            );
        }
    }
    let single = parts.len() == 1;
    let end = if single {
        Some(numbers[0].unwrap_or(0).saturating_add(1))
    } else {
        numbers[1]
    };
    Ok(Slice {
        start: numbers[0],
        end,
        single,
        step: numbers[2],
    })
}

/// What follows `[?(`, up to and with `)]`.
fn filter<'a>(text: &'a str, depth: usize, steps: &mut Vec<Step>) -> Result<&'a str, String> {
    let mut quote: Option<char> = None;
    let mut closed = false;
    let mut previous = ' ';
    let mut end = None;
    for (i, c) in text.char_indices() {
        match c {
            '\n' => break,
            '"' | '\'' if quote.is_none() => quote = Some(c),
            '"' | '\'' if Some(c) == quote && previous != '\\' => closed = true,
            ')' if quote.is_some() == closed => {
                end = Some(i);
                break;
            }
            _ => {}
        }
        previous = c;
    }
    let end = end.ok_or("unterminated filter")?;
    let inner = &text[..end];
    let rest = text[end + 1..]
        .strip_prefix(']')
        .ok_or("unclosed array expect ]")?;
    let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let step = match inner.find(is_operator).filter(|&i| i > 0) {
        Some(at) => {
            let tail = &inner[at..];
            let length = tail.find(|c| !is_operator(c)).ok_or("unclosed filter")?;
            let operator = match &tail[..length] {
                "==" => Operator::Equal,
                "!=" => Operator::NotEqual,
                "<" => Operator::Less,
                "<=" => Operator::LessOrEqual,
                ">" => Operator::Greater,
                ">=" => Operator::GreaterOrEqual,
                other => return Err(format!("unrecognized filter operator {other}")),
            };
            Step::Filter {
                left: expression(&inner[..at], depth + 1)?,
                operator,
                right: expression(&tail[length..], depth + 1)?,
            }
        }
        None => Step::Filter {
            left: expression(inner, depth + 1)?,
            operator: Operator::Exists,
            right: Vec::new(),
        },
    };
    steps.push(step);
    Ok(rest)
}
