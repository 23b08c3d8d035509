//! The part of jq that names fields: what `jqPathExpressions` of ignored differences are written in.
//!
//! A path expression says which fields of an object it means, and [`Expression::remove`] takes them out. Everything that
//! walks, selects, compares and tests is here; what makes new values (`reduce`, arithmetic, definitions, formats) is not,
//! and is refused by name when an expression is read. Interpreters of the whole language cannot be stopped from within, and
//! an Application's author is a tenant: here every step is counted, so that no expression runs for ever.

mod eval;
mod functions;
mod parse;

use serde_json::Value;
use thiserror::Error;

/// How many steps one expression may take over one object.
const MAX_STEPS: u64 = 1_000_000;

/// An expression that has been read.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression(parse::Node);

/// Why an expression could not be read or used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JqError {
    /// It is no jq, or more of it than is understood here.
    #[error("jq path expression {text:?}, at byte {at}: {reason}")]
    Syntax {
        /// The expression.
        text: String,
        /// Where.
        at: usize,
        /// Why.
        reason: String,
    },
    /// It does not fit the object.
    #[error("{0}")]
    Run(String),
    /// It takes too long.
    #[error("the expression takes more than a million steps on this object; make it more specific")]
    OverBudget,
}

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Field(String),
    Index(usize),
}

impl Expression {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Self, JqError> {
        parse::parse(text)
            .map(Self)
            .map_err(|(at, reason)| JqError::Syntax {
                text: text.to_owned(),
                at,
                reason,
            })
    }

    /// Takes out of an object what the expression names. An object that it does not fit stays as it is.
    pub fn remove(&self, object: &mut Value) -> Result<(), JqError> {
        let mut paths = eval::paths(&self.0, object, MAX_STEPS)?;
        paths.sort_unstable();
        paths.dedup();
        // From the back, so that indices in front stay what they are.
        for path in paths.iter().rev() {
            remove(object, path);
        }
        Ok(())
    }

    /// The values that the expression names.
    pub fn values(&self, object: &Value) -> Result<Vec<Value>, JqError> {
        eval::values(&self.0, object, MAX_STEPS)
    }
}

/// Takes one field or element out.
pub(crate) fn remove(value: &mut Value, path: &[Step]) {
    let Some((last, parents)) = path.split_last() else {
        *value = Value::Null;
        return;
    };
    let mut place = value;
    for step in parents {
        let next = match step {
            Step::Field(name) => place.get_mut(name.as_str()),
            Step::Index(index) => place.get_mut(*index),
        };
        match next {
            Some(next) => place = next,
            None => return,
        }
    }
    match (last, place) {
        (Step::Field(name), Value::Object(fields)) => {
            fields.shift_remove(name.as_str());
        }
        (Step::Index(index), Value::Array(items)) if *index < items.len() => {
            items.remove(*index);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
