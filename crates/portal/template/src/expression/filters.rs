//! Filters: Nunjucks' own and, in `backstage`, those that templates of software know.

mod about;
mod backstage;
mod order;

use std::sync::Arc;

use regex::Regex;

use super::error::{Error, Fault};
use super::evaluate::Budget;
use super::value::Value;
pub use about::{ABOUT, About};

/// The names of all filters, for who asks which there are.
pub const FILTERS: &[&str] = &[
    "abs",
    "batch",
    "capitalize",
    "center",
    "d",
    "default",
    "dictsort",
    "dump",
    "e",
    "escape",
    "first",
    "float",
    "forceescape",
    "groupby",
    "indent",
    "int",
    "join",
    "jsonify",
    "last",
    "length",
    "list",
    "lower",
    "nl2br",
    "parseEntityRef",
    "parseRepoUrl",
    "pick",
    "projectSlug",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "slice",
    "sort",
    "string",
    "striptags",
    "sum",
    "title",
    "trim",
    "truncate",
    "upper",
    "urlencode",
    "wordcount",
];
/// The largest regular expression, compiled.
const MAX_PATTERN: usize = 1 << 20;

/// What a filter was given beside the value.
struct Given<'a> {
    positional: &'a [Value],
    named: &'a [(&'a str, Value)],
}

impl Given<'_> {
    fn at(&self, at: usize, name: &str) -> Option<&Value> {
        let by_name = self.named.iter().find(|(known, _)| *known == name);
        let found = self.positional.get(at).or(by_name.map(|(_, value)| value));
        found.filter(|value| !matches!(value, Value::Undefined))
    }

    fn text(&self, at: usize, name: &str, otherwise: &str) -> Arc<str> {
        self.at(at, name)
            .map_or_else(|| Arc::from(otherwise), Value::shown)
    }

    fn count(&self, at: usize, name: &str, otherwise: usize) -> usize {
        self.at(at, name).and_then(Value::index).unwrap_or(otherwise)
    }

    fn flag(&self, at: usize, name: &str) -> bool {
        self.at(at, name).is_some_and(Value::is_true)
    }
}

/// Applies a filter.
pub(super) fn apply(
    budget: &mut Budget,
    name: &str,
    of: &Value,
    positional: &[Value],
    named: &[(&str, Value)],
) -> Result<Value, Error> {
    budget.steps(of.weight() / 16)?;
    let given = Given { positional, named };
    let value = match text_filter(budget, name, of, &given)? {
        Some(value) => value,
        None => match list_filter(budget, name, of, &given)? {
            Some(value) => value,
            None => backstage::apply(name, of, &given)?
                .ok_or_else(|| Error::failed(format!("there is no filter called {name:?}")))?,
        },
    };
    budget.made(value)
}

/// Text of a filter's input: nothing where there is nothing.
fn plain(of: &Value) -> Arc<str> {
    of.printed()
}

fn text_filter(
    budget: &mut Budget,
    name: &str,
    of: &Value,
    given: &Given<'_>,
) -> Result<Option<Value>, Error> {
    let text = plain(of);
    Ok(Some(match name {
        "abs" => Value::Number(of.number().abs()),
        "capitalize" => {
            let lower = text.to_lowercase();
            let mut letters = lower.chars();
            let first: String = letters
                .next()
                .map(|c| c.to_uppercase().collect())
                .unwrap_or_default();
            Value::text(first + letters.as_str())
        }
        "center" => {
            let width = given.count(0, "width", 80);
            let missing = width.saturating_sub(text.chars().count());
            budget.bytes(missing)?;
            let left = " ".repeat(missing / 2);
            let right = " ".repeat(missing - missing / 2);
            Value::text(format!("{left}{text}{right}"))
        }
        "d" | "default" => {
            let replaces = match given.flag(1, "boolean") {
                true => !of.is_true(),
                false => matches!(of, Value::Undefined),
            };
            match replaces {
                true => given.at(0, "default").cloned().unwrap_or(Value::text("")),
                false => of.clone(),
            }
        }
        "dump" | "jsonify" => dump(budget, of, given)?,
        "e" | "escape" | "forceescape" => Value::text(escaped(&text)),
        "float" => match of.number() {
            number if number.is_nan() => given.at(0, "default").cloned().unwrap_or(Value::Number(f64::NAN)),
            number => Value::Number(number),
        },
        "int" => match leading_number(&text) {
            Some(number) => Value::Number(number),
            None => given.at(0, "default").cloned().unwrap_or(Value::Number(f64::NAN)),
        },
        "indent" => indented(budget, &text, given)?,
        "lower" => Value::text(text.to_lowercase()),
        "nl2br" => {
            budget.bytes(text.len().saturating_mul(8))?;
            Value::text(text.replace("\r\n", "\n").replace('\n', "<br />\n"))
        }
        "replace" => match of {
            Value::Text(_) | Value::Number(_) => {
                let sought = given.at(0, "old").cloned().unwrap_or(Value::text(""));
                let by = given.text(1, "new_", "");
                let most = given.at(2, "maxCount").and_then(Value::index);
                // A pattern without the flag g is replaced once, as JavaScript does.
                let most = match &sought {
                    Value::Pattern(_, flags) => (!flags.contains('g')).then_some(1),
                    _ => most,
                };
                replaced(budget, &text, &sought, &by, most)?
            }
            other => other.clone(),
        },
        "round" => {
            let digits = given
                .at(0, "precision")
                .map_or(0.0, Value::number)
                .clamp(0.0, 15.0);
            let factor = 10_f64.powf(digits);
            let number = of.number() * factor;
            let rounded = match &*given.text(1, "method", "common") {
                "ceil" => number.ceil(),
                "floor" => number.floor(),
                // JavaScript rounds a half up, also below zero.
                _ => (number + 0.5).floor(),
            };
            Value::Number(rounded / factor)
        }
        "safe" | "string" => Value::Text(text),
        "striptags" => Value::text(without_tags(&text)),
        "title" => {
            let words: Vec<String> = text
                .split(' ')
                .map(|word| {
                    let mut letters = word.chars();
                    let first: String = letters
                        .next()
                        .map(|c| c.to_uppercase().collect())
                        .unwrap_or_default();
                    first + &letters.as_str().to_lowercase()
                })
                .collect();
            Value::text(words.join(" "))
        }
        "trim" => Value::text(text.trim()),
        "truncate" => truncated(&text, given),
        "upper" => Value::text(text.to_uppercase()),
        "urlencode" => match of {
            Value::Map(entries) => {
                let pairs: Vec<String> = entries
                    .iter()
                    .map(|(key, value)| format!("{}={}", url_encoded(key), url_encoded(&value.shown())))
                    .collect();
                Value::text(pairs.join("&"))
            }
            _ => Value::text(url_encoded(&text)),
        },
        "wordcount" => match text.split_whitespace().count() {
            0 => Value::Null,
            count => Value::count(count),
        },
        _ => return Ok(None),
    }))
}

fn list_filter(
    budget: &mut Budget,
    name: &str,
    of: &Value,
    given: &Given<'_>,
) -> Result<Option<Value>, Error> {
    let items = || -> Vec<Value> {
        match of {
            Value::List(items) => items.to_vec(),
            Value::Text(text) => text.chars().map(|c| Value::text(c.to_string())).collect(),
            Value::Map(entries) => entries
                .iter()
                .map(|(key, value)| {
                    Value::map(vec![
                        (Arc::from("key"), Value::Text(Arc::clone(key))),
                        (Arc::from("value"), value.clone()),
                    ])
                })
                .collect(),
            _ => Vec::new(),
        }
    };
    let field = |item: &Value, path: &str| {
        path.split('.')
            .fold(item.clone(), |value, key| value.member(&Value::text(key)))
    };
    Ok(Some(match name {
        "batch" | "slice" => {
            let (items, count) = (items(), given.count(0, "count", 0));
            if count == 0 || count > 10_000 {
                return Err(Error::failed(format!("{name} wants a number from 1 to 10000")));
            }
            let mut parts: Vec<Vec<Value>> = match name {
                "batch" => items.chunks(count).map(<[Value]>::to_vec).collect(),
                _ => {
                    let (size, extra) = (items.len() / count, items.len() % count);
                    let mut rest = items.into_iter();
                    (0..count)
                        .map(|at| rest.by_ref().take(size + usize::from(at < extra)).collect())
                        .collect()
                }
            };
            if let (Some(fill), Some(last), "batch") = (given.at(1, "fill"), parts.last_mut(), name) {
                last.resize(count, fill.clone());
            }
            Value::list(parts.into_iter().map(Value::list).collect())
        }
        "dictsort" => order::sorted_map(of, &given.text(1, "by", "key"), given.flag(0, "case_sensitive"))?,
        "first" => items().first().cloned().unwrap_or(Value::Undefined),
        "last" => items().last().cloned().unwrap_or(Value::Undefined),
        "groupby" => {
            let by = given.text(0, "attr", "");
            let mut groups: Vec<(Arc<str>, Vec<Value>)> = Vec::new();
            let items = items();
            budget.steps(items.len().saturating_mul(items.len().min(64)))?;
            for item in items {
                let key = field(&item, &by).shown();
                match groups.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, group)) => group.push(item),
                    None => groups.push((key, vec![item])),
                }
            }
            Value::map(
                groups
                    .into_iter()
                    .map(|(key, group)| (key, Value::list(group)))
                    .collect(),
            )
        }
        "join" => {
            let by = given.text(0, "delimiter", "");
            let attribute = given.at(1, "attribute").map(Value::shown);
            let parts: Vec<Arc<str>> = items()
                .iter()
                .map(|item| match &attribute {
                    Some(path) => field(item, path).printed(),
                    None => item.printed(),
                })
                .collect();
            let size: usize = parts.iter().map(|part| part.len() + by.len()).sum();
            budget.bytes(size)?;
            Value::text(parts.join(&by))
        }
        "length" => match of {
            Value::Map(entries) => Value::count(entries.len()),
            Value::Text(text) => Value::count(text.chars().count()),
            Value::List(items) => Value::count(items.len()),
            _ => Value::Number(0.0),
        },
        "list" => match of {
            Value::List(_) | Value::Text(_) | Value::Map(_) => Value::list(items()),
            _ => return Err(Error::failed("list wants a list, a text or a map")),
        },
        "reject" | "select" => {
            let test = given.text(0, "test", "truthy");
            let wanted = name == "select";
            let mut kept = Vec::new();
            for item in items() {
                if super::tests::holds(&test, &item, given.positional.get(1..).unwrap_or_default())? == wanted
                {
                    kept.push(item);
                }
            }
            Value::list(kept)
        }
        "rejectattr" | "selectattr" => {
            let (path, wanted) = (given.text(0, "attr", ""), name == "selectattr");
            let kept = items()
                .into_iter()
                .filter(|item| field(item, &path).is_true() == wanted);
            Value::list(kept.collect())
        }
        "reverse" => match of {
            Value::Text(text) => Value::text(text.chars().rev().collect::<String>()),
            _ => Value::list(items().into_iter().rev().collect()),
        },
        "sort" => {
            let attribute = given.at(2, "attribute").map(Value::shown);
            let key = |item: &Value| {
                attribute
                    .as_ref()
                    .map_or_else(|| item.clone(), |path| field(item, path))
            };
            let sorted = order::sorted(items(), key, given.flag(1, "case_sens"));
            Value::list(match given.flag(0, "reverse") {
                true => sorted.into_iter().rev().collect(),
                false => sorted,
            })
        }
        "sum" => {
            let attribute = given.at(0, "attribute").map(Value::shown);
            let start = given.at(1, "start").map_or(0.0, Value::number);
            let numbers = items().into_iter().map(|item| match &attribute {
                Some(path) => field(&item, path).number(),
                None => item.number(),
            });
            Value::Number(start + numbers.sum::<f64>())
        }
        _ => return Ok(None),
    }))
}

fn dump(budget: &mut Budget, of: &Value, given: &Given<'_>) -> Result<Value, Error> {
    let Some(json) = of.to_json() else {
        return Ok(Value::Undefined);
    };
    let spaces = given.count(0, "spaces", 0).min(10);
    budget.bytes(of.weight().saturating_mul(1 + spaces))?;
    if spaces == 0 {
        return Ok(Value::text(json.to_string()));
    }
    let indent = " ".repeat(spaces);
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    let mut writer = serde_json::Serializer::with_formatter(&mut out, formatter);
    serde::Serialize::serialize(&json, &mut writer).map_err(|error| Error::failed(error.to_string()))?;
    Ok(Value::text(String::from_utf8_lossy(&out).into_owned()))
}

fn indented(budget: &mut Budget, text: &str, given: &Given<'_>) -> Result<Value, Error> {
    if text.is_empty() {
        return Ok(Value::text(""));
    }
    let (width, first) = (given.count(0, "width", 4), given.flag(1, "indentfirst"));
    let lines = text.split('\n').count();
    budget.bytes(width.saturating_mul(lines))?;
    let blanks = " ".repeat(width);
    let lines: Vec<String> = text
        .split('\n')
        .enumerate()
        .map(|(at, line)| match at == 0 && !first {
            true => line.to_owned(),
            false => format!("{blanks}{line}"),
        })
        .collect();
    Ok(Value::text(lines.join("\n")))
}

/// Replaces a text or what a pattern matches, everywhere or so many times.
pub(super) fn replaced(
    budget: &mut Budget,
    text: &str,
    sought: &Value,
    by: &str,
    most: Option<usize>,
) -> Result<Value, Error> {
    let longest = text.len().saturating_add(1).saturating_mul(by.len());
    let count = most.unwrap_or(usize::MAX);
    budget.bytes(
        longest
            .min(count.saturating_mul(by.len()))
            .saturating_add(text.len()),
    )?;
    if let Some(pattern) = pattern_of(sought)? {
        let by = by.replace("$&", "${0}");
        let limit = match sought {
            Value::Pattern(_, flags) if flags.contains('g') => 0,
            _ => most.unwrap_or(0),
        };
        let made = pattern.replacen(text, limit, by.as_str());
        budget.bytes(made.len())?;
        return Ok(Value::text(made.into_owned()));
    }
    Ok(Value::text(text.replacen(&*sought.shown(), by, count)))
}

/// The regular expression that a value is, if it is one.
pub(super) fn pattern_of(value: &Value) -> Result<Option<Regex>, Error> {
    let Value::Pattern(source, flags) = value else {
        return Ok(None);
    };
    let built = regex::RegexBuilder::new(source)
        .case_insensitive(flags.contains('i'))
        .multi_line(flags.contains('m'))
        .size_limit(MAX_PATTERN)
        .build();
    built.map(Some).map_err(|_| {
        Error::new(Fault::Failed(format!(
            "the regular expression r/{source}/ cannot be used; look-around and back references are not known here"
        )))
    })
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '`' => out.push_str("&#96;"),
            c => out.push(c),
        }
    }
    out
}

fn without_tags(text: &str) -> String {
    let (mut out, mut depth) = (String::new(), 0_usize);
    for c in text.chars() {
        match c {
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            c if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn truncated(text: &str, given: &Given<'_>) -> Value {
    let length = given.count(0, "length", 255);
    if text.chars().count() <= length {
        return Value::text(text);
    }
    let mut kept: String = text.chars().take(length).collect();
    if !given.flag(1, "killwords") {
        // A word that ends just there is whole.
        let with_next: String = text.chars().take(length + 1).collect();
        kept.truncate(with_next.rfind(' ').unwrap_or(kept.len()));
    }
    Value::text(kept + &given.text(2, "end", "..."))
}

fn url_encoded(text: &str) -> String {
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'_')
        .remove(b'.')
        .remove(b'!')
        .remove(b'~')
        .remove(b'*')
        .remove(b'\'')
        .remove(b'(')
        .remove(b')');
    utf8_percent_encode(text, KEPT).to_string()
}

/// `parseInt(text, 10)`.
fn leading_number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = unsigned
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(unsigned.len());
    text[..text.len() - unsigned.len() + digits].parse().ok()
}
