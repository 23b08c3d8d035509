//! Why an evaluation gave no value.

use std::sync::Arc;

use thiserror::Error as ThisError;

/// An evaluation error, printed with upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum Error {
    /// The budget is used up. Unlike the others, this error is never absorbed by `||` and `&&`.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostExceeded,
    /// No version of the function takes these arguments.
    #[error("no such overload")]
    NoSuchOverload,
    /// A map or an object lacks the key.
    #[error("no such key: {0}")]
    NoSuchKey(Arc<str>),
    /// A list is shorter than that.
    #[error("index out of bounds: {0}")]
    IndexOutOfBounds(i64),
    /// A variable was declared but not bound.
    #[error("no such attribute(s): {0}")]
    NoSuchAttribute(Arc<str>),
    /// Division or remainder by zero.
    #[error("{0} by zero")]
    ByZero(&'static str),
    /// The result does not fit its type.
    #[error("{0} overflow")]
    Overflow(&'static str),
    /// Anything else: bad arguments of a library function, data that does not match its schema.
    #[error("{0}")]
    Invalid(Arc<str>),
}

impl Error {
    pub(crate) fn invalid(message: impl Into<Arc<str>>) -> Error {
        Error::Invalid(message.into())
    }

    /// Whether evaluation must stop, whatever an operator could make of the error.
    pub(crate) fn is_fatal(&self) -> bool {
        matches!(self, Error::CostExceeded)
    }
}
