//! Conditions of triggers, in the language of expr-lang.org, which argocd-notifications uses.
//!
//! An expression is read once, into a tree; values are those that templates see, so that both speak of the same things. As in
//! the original, a name that means nothing is nil, and asking something of nil is an error. Unlike there, types are looked at
//! only when an expression is evaluated, so that what cannot work is told then. Everything is bounded: the length of a text, the
//! depth of its tree, the steps of an evaluation and what it may build.

mod builtins;
mod eval;
mod lex;
mod numbers;
mod operators;
mod parse;

#[cfg(test)]
mod tests;

pub use eval::Scope;

use fairway_text_gotemplate::{Value, fmt};

/// The longest expression in bytes.
const MAX_LENGTH: usize = 16 << 10;
/// The deepest tree. A condition of fifty comparisons joined by `and` is some sixty deep.
const MAX_DEPTH: u32 = 200;
/// How deep parentheses and the like may be nested.
const MAX_NESTING: u32 = 40;
/// What evaluating one may cost: a node is a step, and so is an element that is looked at, and 16 bytes that are made.
const MAX_STEPS: u64 = 200_000;

/// Why an expression cannot be read, or has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExprError(pub String);

fn error<T>(message: impl Into<String>) -> Result<T, ExprError> {
    Err(ExprError(message.into()))
}

/// An expression, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    root: parse::Node,
    asks_clock: bool,
}

impl Expr {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Self, ExprError> {
        if text.len() > MAX_LENGTH {
            return error(format!("the expression is longer than {MAX_LENGTH} bytes"));
        }
        let (root, asks_clock) = parse::parse(text)?;
        Ok(Self { root, asks_clock })
    }

    /// Its value.
    pub fn eval(&self, scope: &Scope<'_>) -> Result<Value, ExprError> {
        eval::eval(&self.root, scope)
    }

    /// Whether its value may change by itself, because time passes.
    pub fn asks_clock(&self) -> bool {
        self.asks_clock
    }
}

/// A value as Go prints it with `%v`.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Nil | Value::Invalid => "<nil>".to_owned(),
        other => match fmt::print(other) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(why) => why,
        },
    }
}
