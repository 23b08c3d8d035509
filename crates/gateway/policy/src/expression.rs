//! Expressions of policies: CEL, Authorino's older patterns and selectors, and what they are evaluated over.
//!
//! Everything is compiled once, when a policy is; a request only evaluates. What an expression may cost is bounded, and what
//! fails is told as an error, never taken for an answer.

mod attributes;
mod cel;
mod pattern;
mod selector;
mod shown;
mod value;

pub use attributes::Facts;
pub use cel::Cel;
pub use pattern::{ConditionSpec, Named, Pattern, Predicate};
pub use selector::Selector;
pub use shown::shown;
pub use value::{ValueFrom, ValueSpec, stringify};

/// Why an expression gave no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{expression}: {why}")]
pub struct EvalError {
    /// As it was written.
    pub expression: String,
    pub why: String,
}

/// Why an expression cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    #[error("CEL expression {expression:?}: {why}")]
    Cel { expression: String, why: String },
    #[error("selector {selector:?}: {why}")]
    Selector { selector: String, why: String },
    #[error("{0}")]
    Other(String),
}

#[cfg(test)]
mod tests;
