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

/// Where the files of a tree come from. It is asked for each path once; what it said then, stays.
pub trait Source: Debug + Send + Sync {
    /// What is at a normalised path, none if nothing is. A file of more than `limit` bytes is an error.
    fn entry(&self, path: &str, limit: u64) -> Result<Option<Entry>, Problem>;

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
        let entry = self.source.entry(path, self.limits.file_bytes).map_err(refuse)?;
        let node = entry.map(|entry| match entry {
            Entry::File(content) => Node::File(content),
            Entry::Directory => Node::Directory(Names::default()),
            Entry::Link(target) => Node::Link(target.into()),
        });
        if let Some(Node::File(content)) = &node {
            known.bytes += content.len() as u64;
            let limit = self.limits.total_bytes;
            if known.bytes > limit {
                return Err(refuse(Problem::TreeTooLarge { limit }));
            }
        }
        known.nodes.insert(path.to_owned(), node.clone());
        Ok(node)
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
