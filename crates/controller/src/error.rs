//! Failures of a reconcile: what was attempted, and what the API answered.

use std::borrow::Cow;

use kube::Error;
use kube::core::Status;

/// An attempt that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The API refused or could not be reached.
    #[error("could not {doing}")]
    Api {
        /// What was attempted, as in "could not ...".
        doing: Cow<'static, str>,
        /// The answer.
        #[source]
        source: Box<Error>,
    },
    /// Several attempts failed; each has its own sentence.
    #[error("{}", .0.join("; "))]
    Several(Vec<String>),
    /// What was observed allows no step forward yet.
    #[error("{0}")]
    NotYet(String),
}

/// Says what was attempted when it fails.
pub trait Attempt<T> {
    /// `doing` completes the sentence "could not ...".
    fn attempting(self, doing: impl Into<Cow<'static, str>>) -> Result<T, Failure>;
}

impl<T> Attempt<T> for Result<T, Error> {
    fn attempting(self, doing: impl Into<Cow<'static, str>>) -> Result<T, Failure> {
        self.map_err(|source| Failure::Api {
            doing: doing.into(),
            source: Box::new(source),
        })
    }
}

/// The status that an API answered with.
pub fn status(error: &Error) -> Option<&Status> {
    match error {
        Error::Api(status) => Some(status),
        _ => None,
    }
}

/// Whether the object is not there.
pub fn is_not_found(error: &Error) -> bool {
    status(error).is_some_and(|s| s.code == 404)
}

/// Whether somebody else was quicker.
pub fn is_conflict(error: &Error) -> bool {
    status(error).is_some_and(|s| s.code == 409 && s.reason != "AlreadyExists")
}

/// Whether the object exists already.
pub fn is_already_exists(error: &Error) -> bool {
    status(error).is_some_and(|s| s.code == 409 && s.reason == "AlreadyExists")
}

/// Whether it is not for whoever asked.
pub fn is_forbidden(error: &Error) -> bool {
    status(error).is_some_and(|s| s.code == 403)
}

/// Whether the namespace refuses new content because it is being deleted.
pub fn is_namespace_terminating(error: &Error) -> bool {
    status(error).is_some_and(|s| {
        s.code == 403
            && s.details
                .as_ref()
                .is_some_and(|d| d.causes.iter().any(|c| c.reason == "NamespaceTerminating"))
    })
}

/// The answer of the API in one sentence, without the client's wrapping.
pub fn sentence(error: &Error) -> String {
    match status(error) {
        Some(status) if !status.message.is_empty() => status.message.clone(),
        Some(status) => format!("{} {}", status.code, status.reason),
        None => error.to_string(),
    }
}

impl Failure {
    /// Whether somebody else was quicker: worth another try, and no word to anybody.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Api { source, .. } if is_conflict(source))
    }

    /// Whether it is not for whoever asked.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Api { source, .. } if is_forbidden(source))
    }

    /// What happened, in one sentence.
    pub fn sentence(&self) -> String {
        match self {
            Self::Api { source, .. } => format!("{self}: {}", sentence(source)),
            _ => self.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::Error;
    use kube::core::Status;

    use super::{Attempt, is_already_exists, is_conflict, is_not_found};

    fn answer(code: u16, reason: &str) -> Error {
        Error::Api(Status::failure("no", reason).with_code(code).boxed())
    }

    #[test]
    fn answers_are_told_apart() {
        for (code, reason, conflict, exists, absent) in [
            (409, "Conflict", true, false, false),
            (409, "AlreadyExists", false, true, false),
            (404, "NotFound", false, false, true),
            (403, "Forbidden", false, false, false),
        ] {
            let error = answer(code, reason);
            let got = (
                is_conflict(&error),
                is_already_exists(&error),
                is_not_found(&error),
            );
            assert_eq!(got, (conflict, exists, absent), "{code} {reason}");
        }
    }

    #[test]
    fn a_failure_says_what_was_attempted_once() {
        let failed = Err::<(), _>(answer(403, "Forbidden")).attempting("delete pod a");
        assert_eq!(failed.unwrap_err().sentence(), "could not delete pod a: no");
    }
}
