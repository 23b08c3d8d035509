//! Why a build failed. A message grows on its way up: each caller puts what it attempted in front.

/// A build that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    message: String,
    kind: ErrorKind,
}

/// What sort of failure it was, for callers that treat some of them differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The author of the kustomization has to change something.
    Invalid,
    /// A file is not YAML.
    MalformedYaml,
    /// A bound was hit; the message names the file and the bound.
    Limit,
    /// Something outside of the tree could not be fetched.
    Remote,
    /// A directory above the tree is wanted.
    Above,
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            kind: ErrorKind::Invalid,
        }
    }

    pub(crate) fn of(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            kind,
        }
    }

    /// The same failure with what was attempted in front.
    pub(crate) fn within(mut self, attempt: impl std::fmt::Display) -> Self {
        self.message = format!("{attempt}: {}", self.message);
        self
    }

    /// What sort of failure it was.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Puts what was attempted in front of an error.
pub(crate) trait Within<T> {
    fn within(self, attempt: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Within<T> for Result<T> {
    fn within(self, attempt: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| error.within(attempt()))
    }
}
