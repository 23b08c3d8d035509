//! Values that a policy fixes, selects, puts together or computes.

use fairway_gateway_guard::HIDDEN;
use serde::Deserialize;
use serde_json::Value as Json;

use super::selector::{Selector, as_text};
use super::shown::{shown, with};
use super::{Cel, CompileError, EvalError, Facts};

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueFrom {
    Static(Json),
    Selector(Selector),
    /// A text with selectors in curly brackets.
    Template(Vec<Part>),
    Cel(Cel),
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    Text(String),
    Selector(Selector),
}

/// `value`, `selector` or `expression`, as manifests write it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ValueSpec {
    value: Option<Json>,
    selector: Option<String>,
    expression: Option<String>,
}

impl ValueFrom {
    /// Compiles what a manifest says. Of several, CEL counts first, then the selector, as Authorino has it.
    pub fn compile(spec: &ValueSpec) -> Result<ValueFrom, CompileError> {
        match (&spec.expression, &spec.selector, &spec.value) {
            (Some(expression), _, _) if !expression.is_empty() => {
                Ok(ValueFrom::Cel(Cel::expression(expression)?))
            }
            (_, Some(selector), _) if !selector.is_empty() => Self::selector(selector),
            (_, _, value) => Ok(ValueFrom::Static(value.clone().unwrap_or(Json::Null))),
        }
    }

    /// A selector, or a template if it has curly brackets that are not arguments of modifiers.
    pub fn selector(text: &str) -> Result<ValueFrom, CompileError> {
        match is_template(text) {
            false => Ok(ValueFrom::Selector(Selector::compile(text)?)),
            true => Ok(ValueFrom::Template(parts(text)?)),
        }
    }

    /// The value.
    pub fn value(&self, facts: &Facts<'_>) -> Result<Json, EvalError> {
        match self {
            ValueFrom::Static(value) => Ok(value.clone()),
            ValueFrom::Selector(selector) => Ok(facts.select(selector).unwrap_or(Json::Null)),
            ValueFrom::Template(parts) => Ok(Json::String(fill(parts, facts))),
            ValueFrom::Cel(cel) => cel.value(facts),
        }
    }

    /// The value as text, for headers, bodies and keys.
    pub fn text(&self, facts: &Facts<'_>) -> Result<String, EvalError> {
        match self {
            ValueFrom::Template(parts) => Ok(fill(parts, facts)),
            _ => Ok(stringify(&self.value(facts)?)),
        }
    }

    /// Where it came from and what it was, for explanations; what is kept secret is not in it.
    pub fn describe(&self, facts: &Facts<'_>) -> String {
        let value = match self.value(facts) {
            Ok(value) => value,
            Err(error) => return format!("{} fails: {}", error.expression, error.why),
        };
        let plain = |is_hidden: bool| match is_hidden {
            true => HIDDEN.to_owned(),
            false => shown(facts, &[], &value).0,
        };
        match self {
            ValueFrom::Static(_) => plain(false),
            ValueFrom::Selector(selector) => {
                let (text, _) = selector.shown(facts, &value);
                format!("{text}, from {}", selector.source())
            }
            ValueFrom::Template(parts) => {
                let selectors = parts.iter().filter_map(|part| match part {
                    Part::Selector(selector) => Some(selector),
                    Part::Text(_) => None,
                });
                let (mut read, mut is_hidden) = (Vec::new(), false);
                for selector in selectors {
                    let found = facts.select(selector).unwrap_or(Json::Null);
                    let (text, hidden) = selector.shown(facts, &found);
                    is_hidden |= hidden;
                    read.push(format!("{} = {text}", selector.source()));
                }
                with(plain(is_hidden), &read)
            }
            ValueFrom::Cel(cel) => {
                let (read, is_hidden) = cel.read(facts);
                with(format!("{}, from {}", plain(is_hidden), cel.source()), &read)
            }
        }
    }
}

/// A value as text: texts as they are, nothing for null, JSON for the rest.
pub fn stringify(value: &Json) -> String {
    as_text(value).into_owned()
}

fn is_template(text: &str) -> bool {
    let (mut brackets, mut arguments) = (0, 0);
    for (at, _) in text.match_indices('{') {
        brackets += 1;
        let before = text[..at].strip_suffix(':');
        let is_argument = before.is_some_and(|before| {
            let name = before.rsplit('@').next().unwrap_or("");
            before.contains('@') && !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        });
        arguments += usize::from(is_argument);
    }
    brackets != arguments
}

fn parts(text: &str) -> Result<Vec<Part>, CompileError> {
    let (mut parts, mut plain, mut inside) = (Vec::new(), String::new(), String::new());
    let (mut is_inside, mut is_escaped, mut depth) = (false, false, 0_usize);
    for c in text.chars() {
        match c {
            '{' if is_inside => {
                inside.push(c);
                depth += 1;
            }
            '{' if is_escaped => plain.push(c),
            '{' => is_inside = true,
            '}' if is_inside && depth > 0 => {
                inside.push(c);
                depth -= 1;
            }
            '}' if is_inside => {
                is_inside = false;
                if !plain.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                }
                if !inside.is_empty() {
                    parts.push(Part::Selector(Selector::compile(&std::mem::take(&mut inside))?));
                }
            }
            '\\' if !is_inside && !is_escaped => {
                is_escaped = true;
                continue;
            }
            c if is_inside => inside.push(c),
            c => plain.push(c),
        }
        is_escaped = false;
    }
    if !plain.is_empty() {
        parts.push(Part::Text(plain));
    }
    Ok(parts)
}

fn fill(parts: &[Part], facts: &Facts<'_>) -> String {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Text(plain) => text.push_str(plain),
            Part::Selector(selector) => {
                let value = facts.select(selector).unwrap_or(Json::Null);
                text.push_str(&as_text(&value));
            }
        }
    }
    text
}
