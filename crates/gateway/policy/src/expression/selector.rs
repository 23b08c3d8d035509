//! Selectors of Authorino: paths into the authorization document, in gjson's language.
//!
//! Served: names with `\` escapes and wildcards (`*`, `?`), indices, `#` (count, or the same of every element), queries
//! `#(name==value)` and `#(…)#`, `|`, and the modifiers `@extract`, `@replace`, `@case`, `@base64`, `@strip`, `@this`, `@keys`,
//! `@values`, `@reverse`, `@tostr`, `@fromstr`. Everything else is refused when the policy is compiled.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde_json::Value as Json;

use super::CompileError;

/// The longest selector.
const MAX_SELECTOR: usize = 1024;

/// A compiled selector.
#[derive(Debug, Clone, PartialEq)]
pub struct Selector {
    source: String,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Name(String),
    /// With `*` and `?`.
    Glob(String),
    /// `#` at the end.
    Count,
    /// `#` before more: the rest of the path, of every element.
    Each(Vec<Step>),
    Query {
        path: Vec<Step>,
        test: Option<Comparand>,
        /// `#(…)#`: all that fit, and the rest of the path of each.
        all: Option<Vec<Step>>,
    },
    Modifier(Modifier),
}

/// What a query compares with, and how.
type Comparand = (Comparison, String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Like,
    NotLike,
}

#[derive(Debug, Clone, PartialEq)]
enum Modifier {
    This,
    Keys,
    Values,
    Reverse,
    ToStr,
    FromStr,
    Extract { separator: String, position: usize },
    Replace { old: String, new: String },
    Upper,
    Lower,
    Encode,
    Decode,
    Strip,
}

impl Selector {
    pub fn compile(source: &str) -> Result<Selector, CompileError> {
        let failed = |why: String| CompileError::Selector {
            selector: source.chars().take(200).collect(),
            why,
        };
        if source.len() > MAX_SELECTOR {
            return Err(failed(format!("it is longer than {MAX_SELECTOR} bytes")));
        }
        let mut parser = Parser {
            rest: source,
            depth: 0,
        };
        let steps = parser.steps().map_err(failed)?;
        Ok(Selector {
            source: source.to_owned(),
            steps,
        })
    }

    /// As it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The names that it begins with, and whether there is more than names.
    pub(super) fn names(&self) -> (Vec<&str>, bool) {
        let names = self.steps.iter().map_while(|step| match step {
            Step::Name(name) => Some(name.as_str()),
            _ => None,
        });
        let names: Vec<&str> = names.collect();
        let is_more = names.len() < self.steps.len();
        (names, is_more)
    }

    /// The rest of a selector that begins with `auth.identity`.
    pub(super) fn below_identity(&self) -> Option<Below<'_>> {
        match self.steps.as_slice() {
            [Step::Name(auth), Step::Name(identity), rest @ ..]
                if auth == "auth" && identity == "identity" =>
            {
                Some(Below(rest))
            }
            _ => None,
        }
    }

    /// What it asks of authentication, if it does.
    pub(super) fn of_auth(&self) -> Option<&'static str> {
        match self.steps.as_slice() {
            [Step::Name(auth), Step::Name(kuadrant), ..] if auth == "auth" && kuadrant == "kuadrant" => {
                Some("auth.kuadrant")
            }
            [Step::Name(auth), ..] => (auth == "auth").then_some("auth"),
            _ => None,
        }
    }

    /// What it finds.
    pub fn select(&self, document: &Json) -> Option<Json> {
        walk(document, &self.steps).map(Cow::into_owned)
    }
}

/// A part of a selector.
pub(super) struct Below<'a>(&'a [Step]);

impl Below<'_> {
    pub(super) fn select(&self, value: &Json) -> Option<Json> {
        walk(value, self.0).map(Cow::into_owned)
    }
}

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

impl Parser<'_> {
    fn steps(&mut self) -> Result<Vec<Step>, String> {
        self.depth += 1;
        if self.depth > 32 {
            return Err("it is nested too deeply".to_owned());
        }
        let mut steps = Vec::new();
        while !self.rest.is_empty() {
            if let Some(rest) = self.rest.strip_prefix('@') {
                self.rest = rest;
                steps.push(Step::Modifier(self.modifier()?));
            } else if let Some(rest) = self.rest.strip_prefix("#(") {
                self.rest = rest;
                let (path, test) = self.query()?;
                let is_all = self.eat("#");
                let all = match is_all {
                    true => {
                        let goes_on = self.eat(".");
                        Some(if goes_on { self.until_pipe()? } else { Vec::new() })
                    }
                    false => None,
                };
                steps.push(Step::Query { path, test, all });
            } else if self.rest == "#" || self.rest.starts_with("#|") {
                self.rest = &self.rest[1..];
                steps.push(Step::Count);
            } else if let Some(rest) = self.rest.strip_prefix("#.") {
                self.rest = rest;
                steps.push(Step::Each(self.until_pipe()?));
            } else {
                steps.push(self.name());
            }
            if !self.eat(".") && !self.eat("|") && !self.rest.is_empty() {
                return Err(format!("{:?} cannot follow here", self.rest));
            }
        }
        Ok(steps)
    }

    fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// The path up to a pipe, which ends what is done for every element.
    fn until_pipe(&mut self) -> Result<Vec<Step>, String> {
        let (mut depth, mut end, mut escaped) = (0_i32, self.rest.len(), false);
        for (at, c) in self.rest.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '(' | '{' => depth += 1,
                ')' | '}' => depth -= 1,
                '|' if depth == 0 => {
                    end = at;
                    break;
                }
                _ => {}
            }
        }
        let mut inner = Parser {
            rest: &self.rest[..end],
            depth: self.depth,
        };
        let steps = inner.steps()?;
        self.rest = &self.rest[end..];
        Ok(steps)
    }

    fn name(&mut self) -> Step {
        let (mut name, mut is_glob, mut end) = (String::new(), false, self.rest.len());
        let mut characters = self.rest.char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '\\' => name.extend(characters.next().map(|(_, c)| c)),
                '.' | '|' => {
                    end = at;
                    break;
                }
                c => {
                    is_glob |= c == '*' || c == '?';
                    name.push(c);
                }
            }
        }
        self.rest = &self.rest[end..];
        if is_glob {
            Step::Glob(name)
        } else {
            Step::Name(name)
        }
    }

    fn query(&mut self) -> Result<(Vec<Step>, Option<Comparand>), String> {
        let close = closing(self.rest, '(', ')').ok_or("a query is not closed")?;
        let inside = &self.rest[..close];
        self.rest = &self.rest[close + 1..];
        let operators = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("!%", Comparison::NotLike),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
            ("%", Comparison::Like),
            ("=", Comparison::Equal),
        ];
        let found = operators
            .iter()
            .filter_map(|(text, comparison)| Some((inside.find(text)?, text.len(), *comparison)))
            .min_by_key(|(at, length, _)| (*at, usize::MAX - length));
        let (path, test) = match found {
            Some((at, length, comparison)) => {
                let value = inside[at + length..].trim();
                let value = match serde_json::from_str::<Json>(value) {
                    Ok(Json::String(text)) => text,
                    _ => value.to_owned(),
                };
                (&inside[..at], Some((comparison, value)))
            }
            None => (inside, None),
        };
        let mut inner = Parser {
            rest: path.trim(),
            depth: self.depth,
        };
        Ok((inner.steps()?, test))
    }

    fn modifier(&mut self) -> Result<Modifier, String> {
        let end = self
            .rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(self.rest.len());
        let name = &self.rest[..end];
        self.rest = &self.rest[end..];
        let mut argument = "";
        if self.eat(":") {
            let length = match self.rest.strip_prefix('{') {
                Some(inside) => closing(inside, '{', '}').ok_or("an argument is not closed")? + 2,
                None => self.rest.find(['.', '|']).unwrap_or(self.rest.len()),
            };
            argument = &self.rest[..length];
            self.rest = &self.rest[length..];
        }
        let text = |wanted: &str, otherwise: &str| -> String {
            loose_object(argument)
                .into_iter()
                .find(|(key, _)| key == wanted)
                .map_or_else(|| otherwise.to_owned(), |(_, value)| value)
        };
        Ok(match (name, argument) {
            ("this", _) => Modifier::This,
            ("keys", _) => Modifier::Keys,
            ("values", _) => Modifier::Values,
            ("reverse", _) => Modifier::Reverse,
            ("tostr", _) => Modifier::ToStr,
            ("fromstr", _) => Modifier::FromStr,
            ("extract", _) => Modifier::Extract {
                separator: text("sep", " "),
                position: text("pos", "0").parse().map_err(|_| "pos is not a number")?,
            },
            ("replace", _) => Modifier::Replace {
                old: text("old", ""),
                new: text("new", ""),
            },
            ("case", "upper") => Modifier::Upper,
            ("case", "lower") => Modifier::Lower,
            ("base64", "encode") => Modifier::Encode,
            ("base64", "decode") => Modifier::Decode,
            ("strip", _) => Modifier::Strip,
            _ => return Err(format!("modifier @{name}:{argument} is not supported")),
        })
    }
}

/// Where the bracket that is open is closed.
fn closing(text: &str, open: char, close: char) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            c if c == open => depth += 1,
            c if c == close && depth == 0 => return Some(at),
            c if c == close => depth -= 1,
            _ => {}
        }
    }
    None
}

/// `{sep:" ",pos:0}`: gjson reads keys without quotes, too.
fn loose_object(text: &str) -> Vec<(String, String)> {
    if let Ok(Json::Object(map)) = serde_json::from_str(text) {
        return map
            .iter()
            .map(|(key, value)| (key.clone(), as_text(value).into_owned()))
            .collect();
    }
    let inside = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'))
        .unwrap_or("");
    let (mut pairs, mut rest) = (Vec::new(), inside);
    while let Some((key, after)) = rest.split_once(':') {
        let after = after.trim_start();
        let length = match after.strip_prefix('"') {
            Some(quoted) => closing_quote(quoted).map_or(after.len(), |at| at + 2),
            None => after.find(',').unwrap_or(after.len()),
        };
        let value = &after[..length];
        let value = match serde_json::from_str::<Json>(value) {
            Ok(read) => as_text(&read).into_owned(),
            Err(_) => value.trim().to_owned(),
        };
        pairs.push((key.trim().trim_matches('"').to_owned(), value));
        rest = after[length..].trim_start().trim_start_matches(',');
    }
    pairs
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at),
            _ => {}
        }
    }
    None
}

/// A value as gjson writes it: texts as they are, nothing for null, JSON for the rest.
pub(super) fn as_text(value: &Json) -> Cow<'_, str> {
    match value {
        Json::String(text) => Cow::Borrowed(text),
        Json::Null => Cow::Borrowed(""),
        other => Cow::Owned(other.to_string()),
    }
}

fn walk<'a>(value: &'a Json, steps: &[Step]) -> Option<Cow<'a, Json>> {
    let Some((step, rest)) = steps.split_first() else {
        return Some(Cow::Borrowed(value));
    };
    let all = |found: Vec<&Json>, steps: &[Step]| {
        let found = found
            .into_iter()
            .filter_map(|item| walk(item, steps).map(Cow::into_owned));
        Json::Array(found.collect())
    };
    let made = match step {
        Step::Name(name) => {
            let next = match value {
                Json::Object(map) => map.get(name),
                Json::Array(items) => name.parse::<usize>().ok().and_then(|at| items.get(at)),
                _ => None,
            };
            return walk(next?, rest);
        }
        Step::Glob(pattern) => {
            let map = value.as_object()?;
            let (_, next) = map.iter().find(|(key, _)| is_like(key, pattern))?;
            return walk(next, rest);
        }
        Step::Count => Json::from(value.as_array()?.len()),
        Step::Each(steps) => all(value.as_array()?.iter().collect(), steps),
        Step::Query {
            path,
            test,
            all: of_all,
        } => {
            let fitting = value
                .as_array()?
                .iter()
                .filter(|item| fits(item, path, test.as_ref()));
            match of_all {
                Some(steps) => all(fitting.collect(), steps),
                None => {
                    let mut fitting = fitting;
                    return walk(fitting.next()?, rest);
                }
            }
        }
        Step::Modifier(modifier) => modify(value, modifier)?,
    };
    walk(&made, rest).map(|found| Cow::Owned(found.into_owned()))
}

fn fits(item: &Json, path: &[Step], test: Option<&Comparand>) -> bool {
    let Some(found) = walk(item, path) else {
        return false;
    };
    let Some((comparison, wanted)) = test else {
        return true;
    };
    let text = as_text(&found);
    let order = match (found.as_f64(), wanted.parse::<f64>()) {
        (Some(one), Ok(other)) => one.partial_cmp(&other),
        _ => Some(text.as_ref().cmp(wanted.as_str())),
    };
    match comparison {
        Comparison::Equal => order == Some(std::cmp::Ordering::Equal),
        Comparison::NotEqual => order != Some(std::cmp::Ordering::Equal),
        Comparison::Less => order.is_some_and(std::cmp::Ordering::is_lt),
        Comparison::LessOrEqual => order.is_some_and(std::cmp::Ordering::is_le),
        Comparison::Greater => order.is_some_and(std::cmp::Ordering::is_gt),
        Comparison::GreaterOrEqual => order.is_some_and(std::cmp::Ordering::is_ge),
        Comparison::Like => is_like(&text, wanted),
        Comparison::NotLike => !is_like(&text, wanted),
    }
}

/// `*` any run, `?` any one character. Linear but for the last star, which is enough to start over from.
fn is_like(text: &str, pattern: &str) -> bool {
    let (text, pattern): (Vec<char>, Vec<char>) = (text.chars().collect(), pattern.chars().collect());
    let (mut at, mut place, mut star) = (0, 0, None);
    while at < text.len() {
        match pattern.get(place) {
            Some('*') => {
                star = Some((place, at));
                place += 1;
            }
            Some(c) if *c == '?' || *c == text[at] => {
                at += 1;
                place += 1;
            }
            _ => match star {
                Some((from, covered)) => {
                    place = from + 1;
                    at = covered + 1;
                    star = Some((from, covered + 1));
                }
                None => return false,
            },
        }
    }
    pattern[place..].iter().all(|c| *c == '*')
}

fn modify(value: &Json, modifier: &Modifier) -> Option<Json> {
    let text = || as_text(value);
    let strings = |each: &mut dyn Iterator<Item = Json>| Json::Array(each.collect());
    Some(match modifier {
        Modifier::This => value.clone(),
        Modifier::Keys => strings(&mut value.as_object()?.keys().map(|key| Json::from(key.as_str()))),
        Modifier::Values => strings(&mut value.as_object()?.values().cloned()),
        Modifier::Reverse => strings(&mut value.as_array()?.iter().rev().cloned()),
        Modifier::ToStr => Json::from(value.to_string()),
        Modifier::FromStr => serde_json::from_str(&text()).ok()?,
        Modifier::Extract { separator, position } => {
            let text = text();
            let part = text.split(separator.as_str()).nth(*position)?;
            Json::from(part)
        }
        // Nothing cannot be found between characters: the text would grow with every one of them.
        Modifier::Replace { old, .. } if old.is_empty() => value.clone(),
        Modifier::Replace { old, new } => Json::from(text().replace(old.as_str(), new)),
        Modifier::Upper => Json::from(text().to_uppercase()),
        Modifier::Lower => Json::from(text().to_lowercase()),
        Modifier::Encode => Json::from(STANDARD.encode(text().as_bytes())),
        Modifier::Decode => {
            let text = text();
            let decoded = STANDARD
                .decode(text.as_bytes())
                .or_else(|_| STANDARD_NO_PAD.decode(text.as_bytes()));
            Json::from(String::from_utf8_lossy(&decoded.unwrap_or_default()).into_owned())
        }
        Modifier::Strip => {
            let kept: String = text().chars().filter(|c| !c.is_control()).collect();
            Json::from(kept)
        }
    })
}
