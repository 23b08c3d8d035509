//! Rewrite rules of a PublishedResource: what changes between an object and its copy.
//!
//! A rule takes a value away, replaces it by a pattern, or makes a new one by a template or a CEL expression. Rules for the
//! spec see the original and change what goes down; rules for the status see the copy and change what comes up.

use fairway_text_cel::{Activation, Env, Program, Type, Value as Cel, eval};
use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

use crate::dotted::Dotted;
use crate::template;

/// What one expression may cost.
const CEL_BUDGET: u64 = 1_000_000;
/// How large a compiled pattern may be.
const MAX_PATTERN: usize = 1 << 20;

enum Change {
    Delete,
    Replace { pattern: Option<Regex>, with: String },
    Template(String),
    Cel(Box<Program>),
}

struct Rule {
    path: Dotted,
    change: Change,
}

/// Rules that are ready to be applied.
#[derive(Default)]
pub struct Mutator {
    spec: Vec<Rule>,
    status: Vec<Rule>,
}

impl Mutator {
    /// Compiles `mutation` of a publication or of a related kind. The error names the rule.
    pub fn compile(mutation: &Value) -> Result<Self, String> {
        Ok(Self {
            spec: compile(mutation, "spec")?,
            status: compile(mutation, "status")?,
        })
    }

    /// The object as it goes to the other side. `other` is what is there, or would be.
    pub fn spec(&self, object: &Value, other: &Value) -> Result<Value, String> {
        apply(&self.spec, object, other)
    }

    /// The copy as its status is taken back.
    pub fn status(&self, copy: &Value, original: &Value) -> Result<Value, String> {
        apply(&self.status, copy, original)
    }
}

fn compile(mutation: &Value, part: &str) -> Result<Vec<Rule>, String> {
    let list = mutation.get(part).and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .enumerate()
        .map(|(at, rule)| compile_rule(rule).map_err(|error| format!("mutation.{part}[{at}]: {error}")))
        .collect()
}

fn compile_rule(rule: &Value) -> Result<Rule, String> {
    let given: Vec<&str> = ["delete", "regex", "template", "cel"]
        .into_iter()
        .filter(|kind| rule.get(*kind).is_some_and(Value::is_object))
        .collect();
    let [kind] = given.as_slice() else {
        return Err("set exactly one of delete, regex, template and cel".to_owned());
    };
    let options = &rule[*kind];
    let text = |field: &str| options.get(field).and_then(Value::as_str).unwrap_or_default();
    let change = match *kind {
        "delete" => Change::Delete,
        "regex" => Change::Replace {
            pattern: match text("pattern") {
                "" => None,
                pattern => Some(compile_pattern(pattern)?),
            },
            with: text("replacement").to_owned(),
        },
        "template" => Change::Template(text("template").to_owned()),
        _ => Change::Cel(Box::new(compile_cel(text("expression"))?)),
    };
    Ok(Rule {
        path: Dotted::parse(text("path"))?,
        change,
    })
}

pub(crate) fn compile_pattern(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern)
        .size_limit(MAX_PATTERN)
        .build()
        .map_err(|error| format!("invalid pattern {pattern:?}: {error}"))
}

fn compile_cel(expression: &str) -> Result<Program, String> {
    let env = ["self", "other", "value"]
        .into_iter()
        .fold(Env::new(), |env, name| env.with_variable(name, Type::Dyn));
    env.compile(expression).map_err(|errors| {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        format!("failed to compile CEL expression: {}", texts.join("; "))
    })
}

fn apply(rules: &[Rule], object: &Value, other: &Value) -> Result<Value, String> {
    let mut object = object.clone();
    for rule in rules {
        let current = rule.path.get(&object);
        let new = match &rule.change {
            Change::Delete => {
                rule.path.remove(&mut object);
                continue;
            }
            Change::Replace { pattern: None, with } => json!(with),
            Change::Replace {
                pattern: Some(pattern),
                with,
            } => {
                let text = match &current {
                    None | Some(Value::Null) => String::new(),
                    Some(Value::String(text)) => text.clone(),
                    Some(other) => other.to_string(),
                };
                json!(pattern.replace_all(&text, with.as_str()))
            }
            Change::Template(text) => {
                let data = json!({"Value": current, "LocalObject": object, "RemoteObject": other});
                json!(
                    template::render(text, &data)
                        .map_err(|error| format!("failed to execute template: {error}"))?
                )
            }
            Change::Cel(program) => evaluate(program, &object, other, &current.unwrap_or_default())?,
        };
        rule.path.set(&mut object, new)?;
    }
    Ok(object)
}

fn evaluate(program: &Program, object: &Value, other: &Value, current: &Value) -> Result<Value, String> {
    let activation = Activation::new()
        .bind_json("self", object)
        .bind_json("other", other)
        .bind_json("value", current);
    let mut budget = CEL_BUDGET;
    let result = eval(program, &activation, &mut budget)
        .map_err(|error| format!("failed to evaluate CEL expression: {error}"))?;
    match result {
        Cel::Null => Ok(Value::Null),
        Cel::Bool(value) => Ok(json!(value)),
        Cel::Int(value) => Ok(json!(value)),
        Cel::Uint(value) => Ok(json!(value)),
        Cel::Double(value) => Ok(json!(value)),
        Cel::String(value) => Ok(json!(value.as_str())),
        other => Err(format!(
            "the CEL expression makes a {}: only texts, numbers, truth values and null can be set",
            other.type_name()
        )),
    }
}

#[cfg(test)]
mod tests;
