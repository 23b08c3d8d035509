//! What can go wrong with a repository, said so that its user can act on it.

use std::path::PathBuf;
use std::time::Duration;

use crate::ObjectId;

/// Why something could not be done with a repository.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The program could not be started.
    #[error("running {program:?} failed; is git installed and on the PATH?")]
    NotStarted {
        /// Its name or path.
        program: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file or pipe of ours.
    #[error("{attempt} failed")]
    Io {
        /// What was attempted.
        attempt: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The child was ended because its time was up.
    #[error("git {what} took longer than {limit:?} and was ended")]
    Timeout {
        /// The subcommand.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// The child was ended because it printed, or stored, more than is allowed.
    #[error("git {what} produced more than the limit of {limit} bytes and was ended")]
    TooLarge {
        /// The subcommand.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// The child said no.
    #[error("git {what} failed: {said}")]
    Failed {
        /// The subcommand.
        what: String,
        /// The end of its complaint, without secrets.
        said: String,
    },
    /// There is no repository.
    #[error("there is no Git repository at {}", path.display())]
    NoRepository {
        /// Where it should be.
        path: PathBuf,
    },
    /// A revision that leads nowhere.
    #[error("unable to resolve {revision:?} to a commit")]
    UnknownRevision {
        /// As it was asked for.
        revision: String,
    },
    /// A short hash of several objects.
    #[error("the short hash {revision:?} is ambiguous; give more of its digits")]
    Ambiguous {
        /// As it was asked for.
        revision: String,
    },
    /// An object that is not there, or not of the kind that was wanted.
    #[error("{id} is not a {wanted} in this repository")]
    NoObject {
        /// Which.
        id: ObjectId,
        /// What it should be.
        wanted: &'static str,
    },
    /// Somebody else moved the reference in the meantime.
    #[error("{reference} has moved: expected {}, found {}", shown(expected.as_ref()), shown(found.as_ref()))]
    Moved {
        /// The reference.
        reference: String,
        /// Where the caller believed it to be.
        expected: Option<ObjectId>,
        /// Where it is.
        found: Option<ObjectId>,
    },
    /// A name, path or address that Git has no room for.
    #[error("{what} {text:?} cannot be used: {why}")]
    Invalid {
        /// What it should be.
        what: &'static str,
        /// As it was given.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// The child said something that it never says.
    #[error("git {what} gave an answer that is none: {said:?}")]
    Nonsense {
        /// The subcommand.
        what: String,
        /// The answer.
        said: String,
    },
}

impl GitError {
    pub(crate) fn io(attempt: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let attempt = attempt.into();
        |source| Self::Io { attempt, source }
    }

    pub(crate) fn invalid(what: &'static str, text: &str, why: impl Into<String>) -> Self {
        Self::Invalid {
            what,
            text: text.to_owned(),
            why: why.into(),
        }
    }

    /// The error and what caused it, in one line.
    pub fn full(&self) -> String {
        match std::error::Error::source(self) {
            Some(source) => format!("{self}: {source}"),
            None => self.to_string(),
        }
    }
}

fn shown(id: Option<&ObjectId>) -> String {
    id.map_or_else(|| "no such reference".to_owned(), ToString::to_string)
}
