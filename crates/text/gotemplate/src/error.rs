//! What can go wrong, in Go's words.

/// A template that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("template: {file}:{line}: {message}")]
pub struct ParseError {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// What is wrong.
    pub message: String,
}

impl ParseError {
    pub(crate) fn new(file: &str, line: u32, message: String) -> Self {
        Self {
            file: file.to_owned(),
            line,
            message,
        }
    }
}

/// A template that could not be executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("template: {location}: executing {template} at <{context}>: {message}")]
pub struct ExecError {
    /// `file:line:column`
    pub location: String,
    /// The template's name in quotes.
    pub template: String,
    /// The text of what was executed.
    pub context: String,
    /// What went wrong.
    pub message: String,
}

/// Why a function gave no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It refused its arguments.
    #[error("{0}")]
    Message(String),
    /// A template that it executed failed.
    #[error("{0}")]
    Exec(Box<ExecError>),
    /// A bound was hit.
    #[error("{0}")]
    Limit(String),
}

impl Fault {
    /// A refusal.
    pub fn new(message: impl Into<String>) -> Self {
        Self::Message(message.into())
    }
}

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Self::Message(message)
    }
}

impl From<&str> for Fault {
    fn from(message: &str) -> Self {
        Self::Message(message.to_owned())
    }
}

impl From<Box<ExecError>> for Fault {
    fn from(error: Box<ExecError>) -> Self {
        Self::Exec(error)
    }
}
