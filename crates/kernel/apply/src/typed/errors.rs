//! Errors of the walks, each with the path to the value that it is about.

use std::fmt;

use crate::fieldpath::PathElement;

/// A value that does not fit its shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationError {
    /// Where, such as `.spec.ports[name="a"]`; empty at the root.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

/// One or more values that do not fit their shape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationErrors(pub Vec<ValidationError>);

impl std::error::Error for ValidationErrors {}

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl fmt::Display for ValidationErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => one.fmt(f),
            all => {
                f.write_str("errors:")?;
                all.iter().try_for_each(|error| write!(f, "\n  {error}"))
            }
        }
    }
}

impl ValidationErrors {
    pub(super) fn add(&mut self, message: impl Into<String>) {
        self.0.push(ValidationError {
            path: String::new(),
            message: message.into(),
        });
    }

    /// A mark for [`ValidationErrors::prefix_since`].
    pub(super) fn mark(&self) -> usize {
        self.0.len()
    }

    /// Puts `element` before the path of the errors added since the mark.
    pub(super) fn prefix_since(&mut self, mark: usize, element: impl FnOnce() -> PathElement) {
        if self.0.len() > mark {
            let prefix = element().to_string();
            for error in &mut self.0[mark..] {
                error.path.insert_str(0, &prefix);
            }
        }
    }

    pub(super) fn into_result<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }
}
