//! What can be wrong with a path in a tree, said so that the author of the tree can act on it.

/// A path that could not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path:?}: {problem}")]
pub struct TreeError {
    /// The path as it was asked for.
    pub path: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Nothing is there.
    #[error("no such file or directory")]
    NotFound,
    /// A file was wanted.
    #[error("is a directory")]
    IsDirectory,
    /// A directory was wanted.
    #[error("not a directory")]
    NotDirectory,
    /// The path leads out of the tree.
    #[error("leads out of the directory that is rendered; only files within it can be used")]
    Escapes,
    /// A symbolic link leads out of the tree.
    #[error("the symbolic link {link:?} -> {target:?} leads out of the directory that is rendered")]
    LinkEscapes {
        /// Where the link is.
        link: String,
        /// What it points to.
        target: String,
    },
    /// More symbolic links than are followed.
    #[error("more than {limit} symbolic links on the way")]
    TooManyLinks {
        /// The limit.
        limit: usize,
    },
    /// A path with a NUL in it.
    #[error("the path has a NUL character in it")]
    BadCharacter,
    /// A path that is longer than the limit.
    #[error("the path has {size} bytes, more than the limit of {limit}")]
    PathTooLong {
        /// Its length.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// A file that is larger than the limit.
    #[error("the file has {size} bytes, more than the limit of {limit}")]
    FileTooLarge {
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The tree is larger than the limit.
    #[error("with this file the tree exceeds the limit of {limit} bytes")]
    TreeTooLarge {
        /// The limit.
        limit: u64,
    },
    /// The tree has more files than the limit.
    #[error("with this file the tree exceeds the limit of {limit} files")]
    TooManyFiles {
        /// The limit.
        limit: usize,
    },
    /// Two entries have the same path, or one is a file where the other needs a directory.
    #[error("there is already something else at this path")]
    Occupied,
    /// A file or directory that could not be read.
    #[error("it could not be read: {why}")]
    Unreadable {
        /// Why.
        why: String,
    },
    /// A change to a tree whose files are read when they are asked for.
    #[error("the tree is read when it is asked for, and cannot be changed in memory")]
    NotInMemory,
    /// A file that is not text where text is needed.
    #[error("the file is not valid UTF-8")]
    NotUtf8,
}

impl TreeError {
    pub(crate) fn new(path: impl Into<String>, problem: Problem) -> Self {
        Self {
            path: path.into(),
            problem,
        }
    }

    /// Whether nothing is there, as opposed to something that cannot be used.
    pub fn is_not_found(&self) -> bool {
        matches!(self.problem, Problem::NotFound)
    }
}
