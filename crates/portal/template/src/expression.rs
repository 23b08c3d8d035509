//! `${{ }}`: Nunjucks as Backstage uses it, with JavaScript's values.
//!
//! An engine of our own, because the semantics are JavaScript's (an empty list is true, `null` prints as nothing, `===` exists, and
//! texts have JavaScript's methods), and because whoever writes a template must not be able to exhaust time, memory or stack: each
//! step and each byte that is made is paid for ([`Limits`]).
//!
//! `lexer` and `syntax` read expressions, `document` texts with statements, `evaluate` works them out with `filters`, `methods` and
//! `tests`.

mod document;
mod error;
mod evaluate;
mod filters;
mod lexer;
mod methods;
mod syntax;
mod tests;
mod value;

use std::sync::Arc;

pub use document::Syntax;
pub use error::{Error, Fault};
pub use evaluate::Limits;
pub use filters::{ABOUT, About, FILTERS};
pub use value::Value;

use document::{Part, document};
use evaluate::Evaluator;

/// The longest text that is read as a template.
const MAX_SOURCE: usize = 4 << 20;

/// Variables by name.
#[derive(Clone, Debug, Default)]
pub struct Variables(Vec<(Arc<str>, Value)>);

impl Variables {
    /// Adds a variable, or replaces it.
    #[must_use]
    pub fn with(mut self, name: &str, value: &serde_json::Value) -> Self {
        self.set(name, Value::from_json(value));
        self
    }

    /// The same with a value that is there already.
    pub fn set(&mut self, name: &str, value: Value) {
        match self.0.iter_mut().find(|(known, _)| **known == *name) {
            Some(entry) => entry.1 = value,
            None => self.0.push((Arc::from(name), value)),
        }
    }
}

/// A text that was read.
#[derive(Clone, Debug)]
pub struct Template {
    parts: Vec<Part>,
}

impl Template {
    /// Reads a text.
    pub fn read(source: &str, syntax: Syntax) -> Result<Self, Error> {
        if source.len() > MAX_SOURCE {
            return Err(Error::new(Fault::TooLarge(format!(
                "the text is longer than {} MiB",
                MAX_SOURCE >> 20
            ))));
        }
        let parts = document(source, syntax)?;
        Ok(Self { parts })
    }

    /// Whether it has nothing to work out.
    pub fn is_plain(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Plain(_)))
    }

    /// Whether it is one expression and nothing else, so that its value keeps its type.
    pub fn is_single(&self) -> bool {
        matches!(self.parts[..], [Part::Print(..)])
    }

    /// The text that it comes to.
    pub fn print(&self, variables: &Variables, limits: Limits) -> Result<String, Error> {
        let mut out = String::new();
        Evaluator::new(&variables.0, limits).print(&self.parts, &mut out)?;
        Ok(out)
    }

    /// The value that it comes to: of a single expression its own, else the text.
    pub fn value(&self, variables: &Variables, limits: Limits) -> Result<Value, Error> {
        match &self.parts[..] {
            [Part::Print(line, node)] => Evaluator::new(&variables.0, limits)
                .value(node)
                .map_err(|error| error.at(*line)),
            _ => self.print(variables, limits).map(Value::text),
        }
    }
}

#[cfg(test)]
mod cases;
