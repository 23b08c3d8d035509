//! Why an expression has no value.

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It cannot be read.
    #[error("{0}")]
    Syntax(String),
    /// It cannot be worked out.
    #[error("{0}")]
    Failed(String),
    /// It asks for more than an expression may.
    #[error("{0}")]
    TooLarge(String),
}

/// What went wrong, and on which line of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What.
    pub fault: Fault,
    /// Counted from 1; 0 if it is not known.
    pub line: usize,
}

impl Error {
    pub(super) fn new(fault: Fault) -> Self {
        Self { fault, line: 0 }
    }

    pub(super) fn syntax(why: impl Into<String>) -> Self {
        Self::new(Fault::Syntax(why.into()))
    }

    pub(super) fn failed(why: impl Into<String>) -> Self {
        Self::new(Fault::Failed(why.into()))
    }

    /// The first place that is known counts.
    pub(super) fn at(mut self, line: usize) -> Self {
        if self.line == 0 {
            self.line = line;
        }
        self
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.fault),
            line => write!(f, "line {line}: {}", self.fault),
        }
    }
}

impl std::error::Error for Error {}
