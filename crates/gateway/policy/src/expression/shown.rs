//! What explanations say of the values that an expression read. People who may ask are not those who were asked about, so what
//! lets somebody in is left out: Secrets' data, `Authorization`, cookies, keys in queries.

use std::borrow::Cow;

use fairway_gateway_guard::HIDDEN;
use serde_json::Value as Json;

use super::Facts;
use super::cel::shortened;
use super::selector::Selector;

/// The variables that expressions begin with.
const ROOTS: [&str; 5] = ["auth", "request", "source", "destination", "context"];
/// Of one expression, how much is told of what it read.
pub(super) const MOST: usize = 12;

/// A field that an expression asks for, from the variable on: `auth.identity.plan`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) text: String,
    pub(super) names: Vec<String>,
}

/// The fields that an expression asks for, each once, in the order in which they stand there; what is within quotes is none.
pub(super) fn chains(source: &str) -> Vec<Chain> {
    let bytes = source.as_bytes();
    let (mut found, mut at): (Vec<Chain>, usize) = (Vec::new(), 0);
    while at < bytes.len() {
        let here = bytes[at];
        if matches!(here, b'"' | b'\'') {
            at = past_quotes(source, at);
        } else if is_word(here) {
            let end = past_word(bytes, at);
            let is_field = source[..at].trim_end().ends_with(['.', '?']);
            if !is_field && ROOTS.contains(&&source[at..end]) {
                let (chain, end) = chain(source, at, end);
                at = end;
                if !found.contains(&chain) {
                    found.push(chain);
                }
            } else {
                at = end;
            }
        } else {
            at += 1;
        }
    }
    found
}

/// From the variable that stands at `from..end` as far as there are names, and where that ends. What may be missing
/// (`[?"plan"]`) is asked for as what has to be there: then it is told that it is not.
fn chain(source: &str, from: usize, end: usize) -> (Chain, usize) {
    let bytes = source.as_bytes();
    let (mut end, mut names) = (end, vec![source[from..end].to_owned()]);
    loop {
        let rest = &source[end..];
        let field = rest.strip_prefix(".?").or_else(|| rest.strip_prefix('.'));
        if let Some(field) = field {
            let start = source.len() - field.len();
            let stop = past_word(bytes, start);
            // A function of the value is no field of it.
            if stop == start || bytes.get(stop) == Some(&b'(') {
                break;
            }
            names.push(source[start..stop].to_owned());
            end = stop;
            continue;
        }
        let index = rest.strip_prefix("[?").or_else(|| rest.strip_prefix('['));
        let Some(index) = index else { break };
        let start = source.len() - index.len();
        let stop = match bytes.get(start) {
            Some(b'"' | b'\'') => past_quotes(source, start),
            Some(digit) if digit.is_ascii_digit() => past_word(bytes, start),
            _ => break,
        };
        if bytes.get(stop) != Some(&b']') {
            break;
        }
        names.push(source[start..stop].trim_matches(['"', '\'']).to_owned());
        end = stop + 1;
    }
    let text = source[from..end].replace("[?", "[").replace(".?", ".");
    (Chain { text, names }, end)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn past_word(bytes: &[u8], from: usize) -> usize {
    let length = bytes[from..].iter().take_while(|byte| is_word(**byte)).count();
    from + length
}

/// Behind the text in quotes that begins at `from`.
fn past_quotes(source: &str, from: usize) -> usize {
    let bytes = source.as_bytes();
    let three = &source[from..(from + 3).min(source.len())];
    if matches!(three, "\"\"\"" | "'''") {
        let end = source[from + 3..].find(three);
        return end.map_or(source.len(), |end| from + 3 + end + 3);
    }
    let is_raw = from > 0 && matches!(bytes[from - 1], b'r' | b'R');
    let mut at = from + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if !is_raw => at += 2,
            byte if byte == bytes[from] => return at + 1,
            _ => at += 1,
        }
    }
    source.len()
}

/// A value that is found under these names, as people may see it, and whether something was left out of it.
pub fn shown(facts: &Facts<'_>, names: &[&str], value: &Json) -> (String, bool) {
    let is_kept = match names {
        ["auth", "identity", "data" | "stringData", ..] => is_secret_object(facts),
        // By the names of rules, which say nothing.
        ["auth", "authorization" | "metadata", _, rest @ ..] => rest.iter().any(|name| facts.is_hidden(name)),
        ["auth", "authorization" | "metadata"] | [] => false,
        [_, rest @ ..] => rest.iter().any(|name| facts.is_hidden(name)),
    };
    if is_kept && !value.is_null() {
        return (HIDDEN.to_owned(), true);
    }
    let is_query = matches!(names, ["request", "query"]);
    let mut value = Cow::Borrowed(value);
    let is_hidden = needs(facts, &value, is_query);
    if is_hidden {
        redact(facts, value.to_mut(), is_query);
    }
    (shortened(&value.to_string()), is_hidden)
}

/// Whether the identity is a Secret: then everything in its data is one.
fn is_secret_object(facts: &Facts<'_>) -> bool {
    facts.identity().is_some_and(|identity| is_secret_like(identity))
}

fn is_secret_like(value: &Json) -> bool {
    value["kind"] == "Secret" || value["metadata"].is_object()
}

fn needs(facts: &Facts<'_>, value: &Json, is_query: bool) -> bool {
    let mut copy = value.clone();
    redact(facts, &mut copy, is_query);
    copy != *value
}

fn redact(facts: &Facts<'_>, value: &mut Json, is_query: bool) {
    match value {
        Json::Object(fields) => {
            let is_secret =
                fields.get("kind").is_some_and(|kind| kind == "Secret") || fields.contains_key("metadata");
            for (name, field) in fields.iter_mut() {
                let is_data = is_secret && matches!(name.as_str(), "data" | "stringData");
                // The results of rules stand under this name, and each has fields of its own.
                let is_phase = name == "authorization" && (field.is_object() || field.is_null());
                if (is_data || facts.is_hidden(name)) && !is_phase && !field.is_null() {
                    *field = Json::from(HIDDEN);
                } else {
                    redact(facts, field, matches!(name.as_str(), "query"));
                }
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|item| redact(facts, item, is_query)),
        Json::String(text) if is_query => *text = query(facts, text),
        Json::String(text) if text.contains('=') => {
            if let Some((path, rest)) = text.split_once('?') {
                *text = format!("{path}?{}", query(facts, rest));
            }
        }
        _ => {}
    }
}

fn query(facts: &Facts<'_>, text: &str) -> String {
    let pairs = text.split('&').map(|pair| {
        let name = pair.split('=').next().unwrap_or(pair);
        let is_hidden = form_urlencoded::parse(name.as_bytes())
            .next()
            .is_some_and(|(read, _)| facts.is_hidden(&read));
        match is_hidden && pair.contains('=') {
            true => format!("{name}={HIDDEN}"),
            false => pair.to_owned(),
        }
    });
    pairs.collect::<Vec<_>>().join("&")
}

impl Selector {
    /// What it found, as people may see it, and whether something was left out of it.
    pub(super) fn shown(&self, facts: &Facts<'_>, found: &Json) -> (String, bool) {
        let (names, is_more) = self.names();
        // What is made out of a secret is one, and by a wildcard there is no name to tell it by.
        let is_made = is_more && self.select_names(facts).is_none_or(|(_, is_hidden)| is_hidden);
        match is_made && !found.is_null() {
            true => (HIDDEN.to_owned(), true),
            false => shown(facts, &names, found),
        }
    }

    /// The same of the names alone that it begins with.
    fn select_names(&self, facts: &Facts<'_>) -> Option<(String, bool)> {
        let (names, _) = self.names();
        let mut value = facts.document();
        for name in &names {
            value = value.get(*name)?;
        }
        Some(shown(facts, &names, value))
    }
}

/// An outcome, with what was read for it in brackets.
pub(super) fn with(outcome: String, read: &[String]) -> String {
    match read.is_empty() {
        true => outcome,
        false => format!("{outcome} ({})", read.join(", ")),
    }
}
