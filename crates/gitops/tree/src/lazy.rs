//! Trees whose files are read when they are asked for: a command that renders one directory need not read the
//! repository around it.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::builder::{Limits, Names, Node};
use crate::error::{Problem, TreeError};

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A file and its bytes.
    File(Arc<[u8]>),
    /// A directory.
    Directory,
    /// A symbolic link and its target, relative to the link's directory.
    Link(String),
}

/// What a source says is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A file, and its size in bytes.
    File(u64),
    /// A directory.
    Directory,
    /// A symbolic link and its target, relative to the link's directory.
    Link(String),
}

/// Where the files of a tree come from. It is asked for each path once; what it said then, stays. Files of which only
/// names are wanted, like the definitions and pictures of a chart, are never read.
pub trait Source: Debug + Send + Sync {
    /// What is at a normalised path, none if nothing is.
    fn find(&self, path: &str) -> Result<Option<Found>, Problem>;

    /// The bytes of a file that was found, as many as its size was then, or fewer if it has shrunk.
    fn read(&self, path: &str, size: u64) -> Result<Arc<[u8]>, Problem>;

    /// The names in a directory, at most `limit` of them.
    fn names(&self, path: &str, limit: usize) -> Result<BTreeSet<String>, Problem>;
}

#[derive(Debug)]
pub(crate) struct Lazy {
    source: Box<dyn Source>,
    limits: Limits,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    nodes: HashMap<String, Option<Node>>,
    names: HashMap<String, Names>,
    bytes: u64,
}

impl Lazy {
    pub(crate) fn new(source: Box<dyn Source>, limits: Limits) -> Self {
        Self {
            source,
            limits,
            known: Mutex::default(),
        }
    }

    pub(crate) fn node(&self, path: &str) -> Result<Option<Node>, TreeError> {
        let mut known = self.known();
        if let Some(node) = known.nodes.get(path) {
            return Ok(node.clone());
        }
        let refuse = |problem| TreeError::new(path, problem);
        // Questions count, too: a tree may be asked for many paths at which there is nothing.
        if known.nodes.len() >= self.limits.files {
            let limit = self.limits.files;
            return Err(refuse(Problem::TooManyFiles { limit }));
        }
        let limit = self.limits.file_bytes;
        let node = match self.source.find(path).map_err(refuse)? {
            Some(Found::File(size)) if size > limit => {
                return Err(refuse(Problem::FileTooLarge { size, limit }));
            }
            Some(Found::File(size)) => Some(Node::Unread(size)),
            Some(Found::Directory) => Some(Node::Directory(Names::default())),
            Some(Found::Link(target)) => Some(Node::Link(target.into())),
            None => None,
        };
        known.nodes.insert(path.to_owned(), node.clone());
        Ok(node)
    }

    /// The bytes of a file that was found.
    pub(crate) fn content(&self, path: &str) -> Result<Arc<[u8]>, TreeError> {
        let mut known = self.known();
        let refuse = |problem| TreeError::new(path, problem);
        let size = match known.nodes.get(path) {
            Some(Some(Node::File(content))) => return Ok(content.clone()),
            Some(Some(Node::Unread(size))) => *size,
            _ => return Err(refuse(Problem::NotFound)),
        };
        let content = self.source.read(path, size).map_err(refuse)?;
        known.bytes += content.len() as u64;
        let limit = self.limits.total_bytes;
        if known.bytes > limit {
            return Err(refuse(Problem::TreeTooLarge { limit }));
        }
        known
            .nodes
            .insert(path.to_owned(), Some(Node::File(content.clone())));
        Ok(content)
    }

    pub(crate) fn names(&self, path: &str) -> Result<Names, TreeError> {
        let mut known = self.known();
        if let Some(names) = known.names.get(path) {
            return Ok(names.clone());
        }
        let names = self.source.names(path, self.limits.files);
        let names = Arc::new(names.map_err(|problem| TreeError::new(path, problem))?);
        known.names.insert(path.to_owned(), names.clone());
        Ok(names)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // A thread that died while it asked has left usable answers.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
