//! CEL over the well-known attributes (Kuadrant's RFC 0002).

use std::sync::OnceLock;

use fairway_text_cel::{Env, Library, Program, Type, Value, eval};
use serde_json::Value as Json;

use super::attributes::{Attribute, Facts};
use super::shown::{MOST, chains, shown};
use super::{CompileError, EvalError};

/// What one evaluation may cost, in CEL's units. A comparison costs one; this is some ten thousand of them.
const BUDGET: u64 = 10_000;
/// The longest expression.
const MAX_EXPRESSION: usize = 8 * 1024;

/// A compiled expression.
#[derive(Debug, Clone)]
pub struct Cel {
    program: Program,
    /// The variables that it names; no other is made.
    uses: Vec<Attribute>,
}

impl PartialEq for Cel {
    fn eq(&self, other: &Self) -> bool {
        self.source() == other.source()
    }
}

fn environment() -> &'static Env {
    static ENVIRONMENT: OnceLock<Env> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let env = Env::new()
            .with_library(Library::Bindings)
            .with_library(Library::Math)
            .with_library(Library::Encoders)
            .with_library(Library::StringsLatest)
            .with_mixed_literals();
        Attribute::ALL.iter().fold(env, |env, attribute| {
            env.with_variable(attribute.name(), attribute.cel_type())
        })
    })
}

impl Cel {
    /// An expression that gives any value.
    pub fn expression(source: &str) -> Result<Cel, CompileError> {
        Self::compile(source, None)
    }

    /// An expression that must give true or false.
    pub fn predicate(source: &str) -> Result<Cel, CompileError> {
        Self::compile(source, Some(Type::Bool))
    }

    fn compile(source: &str, expected: Option<Type>) -> Result<Cel, CompileError> {
        let failed = |why: String| CompileError::Cel {
            expression: shortened(source),
            why,
        };
        if source.len() > MAX_EXPRESSION {
            return Err(failed(format!("it is longer than {MAX_EXPRESSION} bytes")));
        }
        let program = environment().compile(source).map_err(|errors| {
            let first = errors.into_iter().next();
            failed(first.map_or_else(|| "it does not compile".to_owned(), |error| error.message))
        })?;
        if let Some(expected) = expected {
            let result = program.result_type();
            if *result != expected && !matches!(result, Type::Dyn) {
                return Err(failed(format!("it must give {expected}, and gives {result}")));
            }
        }
        let uses = Attribute::ALL
            .iter()
            .copied()
            .filter(|attribute| program.uses_variable(attribute.name()))
            .collect();
        Ok(Cel { program, uses })
    }

    /// As it was written.
    pub fn source(&self) -> &str {
        self.program.source()
    }

    /// What it asks of authentication: `auth.identity` and the like.
    pub fn asks_of_auth(&self) -> impl Iterator<Item = &'static str> + '_ {
        let names = self.uses.iter().map(|attribute| attribute.name());
        names.filter(|name| name.split('.').next() == Some("auth"))
    }

    /// What it read of a request, for explanations: `auth.identity.plan = "free"`, and whether some of it is kept secret.
    pub(super) fn read(&self, facts: &Facts<'_>) -> (Vec<String>, bool) {
        let (mut read, mut is_hidden) = (Vec::new(), false);
        for chain in chains(self.source()) {
            let Ok(part) = Cel::expression(&chain.text) else {
                continue;
            };
            let names: Vec<&str> = chain.names.iter().map(String::as_str).collect();
            match part.value(facts) {
                Ok(value) => {
                    let (text, hidden) = shown(facts, &names, &value);
                    is_hidden |= hidden;
                    read.push(format!("{} = {text}", chain.text));
                }
                Err(error) => read.push(format!("{}: {}", chain.text, error.why)),
            }
        }
        read.truncate(MOST);
        (read, is_hidden)
    }

    fn run<'a>(&self, facts: &'a Facts<'_>) -> Result<Value<'a>, EvalError> {
        let activation = facts.activation(&self.uses);
        eval(&self.program, &activation, &mut { BUDGET }).map_err(|error| self.failed(error.to_string()))
    }

    fn failed(&self, why: impl Into<String>) -> EvalError {
        EvalError {
            expression: shortened(self.source()),
            why: why.into(),
        }
    }

    /// Whether it is true.
    pub fn test(&self, facts: &Facts<'_>) -> Result<bool, EvalError> {
        let value = self.run(facts)?;
        value
            .as_bool()
            .ok_or_else(|| self.failed(format!("it gave {}, not bool", value.type_name())))
    }

    /// Its value and what it read, for explanations; what is kept secret is not in it.
    pub fn describe(&self, facts: &Facts<'_>) -> String {
        super::ValueFrom::Cel(self.clone()).describe(facts)
    }

    /// Whether it read something that is kept secret.
    pub fn reads_secrets(&self, facts: &Facts<'_>) -> bool {
        self.read(facts).1
    }

    /// Its value.
    pub fn value(&self, facts: &Facts<'_>) -> Result<Json, EvalError> {
        let value = self.run(facts)?;
        value
            .to_json()
            .ok_or_else(|| self.failed(format!("{} cannot be written as JSON", value.type_name())))
    }

    /// Appends its value as text; a text is not quoted. False if there is no value to speak of (null).
    pub fn append(&self, facts: &Facts<'_>, to: &mut String) -> Result<bool, EvalError> {
        match self.run(facts)? {
            Value::String(text) => to.push_str(&text),
            Value::Null => return Ok(false),
            value => {
                let json = value
                    .to_json()
                    .ok_or_else(|| self.failed(format!("{} is no text", value.type_name())))?;
                to.push_str(&super::stringify(&json));
            }
        }
        Ok(true)
    }
}

pub(super) fn shortened(text: &str) -> String {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
