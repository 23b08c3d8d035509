//! What can be wrong with a document, and where.

/// A document that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The line, counted from 1; none where no line is to blame.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The text is not YAML.
    #[error("{0}")]
    Syntax(String),
    /// The bytes are not text.
    #[error("the document is not valid UTF-8")]
    NotUtf8,
    /// The text has characters that YAML does not allow outside of escapes.
    #[error("control characters are not allowed")]
    ControlCharacter,
    /// The text is longer than the limit.
    #[error("the document has {size} bytes, more than the limit of {limit}")]
    TooLarge {
        /// Its size in bytes.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// Sequences and mappings are nested too deeply.
    #[error("exceeded the limit of {limit} nested levels")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// Aliases make the document too large.
    #[error("document contains excessive aliasing")]
    ExcessiveAliasing,
    /// An alias within the value that it stands for.
    #[error("anchor value contains itself")]
    SelfReference,
    /// A merge key whose value is not a mapping.
    #[error("map merge requires map or sequence of maps as the value")]
    BadMerge,
    /// A key that JSON cannot have.
    #[error("unsupported map key: {0}")]
    UnsupportedKey(&'static str),
    /// A value that its tag does not allow.
    #[error("cannot decode {found} `{text}` as a {tag}")]
    WrongTag {
        /// The type that the text has.
        found: &'static str,
        /// The text.
        text: String,
        /// The type that the tag asks for.
        tag: &'static str,
    },
    /// A `!!binary` value that is not base64.
    #[error("!!binary value contains invalid base64 data")]
    BadBinary,
    /// Infinity and not-a-number have no JSON form.
    #[error("json: unsupported value: {0}")]
    NotFinite(&'static str),
}

impl Error {
    pub(crate) fn new(problem: Problem) -> Self {
        Self { line: None, problem }
    }

    pub(crate) fn at(line: usize, problem: Problem) -> Self {
        Self {
            line: Some(line),
            problem,
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "yaml: line {line}: {}", self.problem),
            None => write!(f, "yaml: {}", self.problem),
        }
    }
}

impl std::error::Error for Error {}
