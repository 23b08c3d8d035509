//! Putting a tree together. Bounds are checked here, once, so that readers need none.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::error::{Problem, TreeError};
use crate::lazy::{Lazy, Source};
use crate::path;
use crate::reader::Reader;

/// How large a tree may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many files and links.
    pub files: usize,
    /// The size of each file in bytes.
    pub file_bytes: u64,
    /// The size of all files in bytes.
    pub total_bytes: u64,
    /// How many symbolic links are followed for one path.
    pub links: usize,
}

impl Default for Limits {
    /// A large repository of manifests, and nothing that a machine would notice.
    fn default() -> Self {
        Self {
            files: 100_000,
            file_bytes: 32 * 1024 * 1024,
            total_bytes: 512 * 1024 * 1024,
            links: 16,
        }
    }
}

/// What is at a path.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    File(Arc<[u8]>),
    /// A file that nobody has asked for, and its size.
    Unread(u64),
    Directory(Names),
    /// Its target as it was written, relative to the link's directory.
    Link(Arc<str>),
}

/// The names in a directory.
pub(crate) type Names = Arc<BTreeSet<String>>;

/// A read-only tree of files. Copies share it.
#[derive(Debug, Clone)]
pub struct Tree {
    pub(crate) nodes: Nodes,
    pub(crate) limits: Limits,
    /// How many files and links; of a tree that is read when it is asked for, none.
    pub(crate) files: usize,
    /// Of all files.
    pub(crate) bytes: u64,
    pub(crate) has_links: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Nodes {
    /// All of them are there.
    Whole(Whole),
    /// They are asked for, one by one.
    Lazy(Arc<Lazy>),
}

/// Everything by its path: a tree as it was built, and what was changed since. So a tree that differs from another by a
/// few files costs a few files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Whole {
    pub(crate) built: Arc<HashMap<String, Node>>,
    /// None where there is nothing any more.
    pub(crate) changed: Arc<HashMap<String, Option<Node>>>,
}

impl Whole {
    fn get(&self, path: &str) -> Option<&Node> {
        if !self.changed.is_empty()
            && let Some(changed) = self.changed.get(path)
        {
            return changed.as_ref();
        }
        self.built.get(path)
    }
}

impl Tree {
    /// Starts a tree within the default limits.
    pub fn builder() -> TreeBuilder {
        TreeBuilder::new(Limits::default())
    }

    /// A tree of these files.
    pub fn of<P, C>(files: impl IntoIterator<Item = (P, C)>) -> Result<Self, TreeError>
    where
        P: AsRef<str>,
        C: Into<Arc<[u8]>>,
    {
        let mut builder = Self::builder();
        for (path, content) in files {
            builder.file(path.as_ref(), content)?;
        }
        Ok(builder.build())
    }

    /// A tree whose files are read when they are asked for, within these limits.
    pub fn lazy(source: Box<dyn Source>, limits: Limits) -> Self {
        Self {
            limits,
            files: 0,
            bytes: 0,
            has_links: true,
            nodes: Nodes::Lazy(Arc::new(Lazy::new(source, limits))),
        }
    }

    /// What is at a normalised path; links are not followed.
    pub(crate) fn node(&self, path: &str) -> Result<Option<Node>, TreeError> {
        match &self.nodes {
            Nodes::Whole(nodes) => Ok(nodes.get(path).cloned()),
            Nodes::Lazy(lazy) => lazy.node(path),
        }
    }

    /// The bytes of a file at a normalised path, of which `node` is known.
    pub(crate) fn content(&self, path: &str, node: Node) -> Result<Option<Arc<[u8]>>, TreeError> {
        match (node, &self.nodes) {
            (Node::File(content), _) => Ok(Some(content)),
            (Node::Unread(_), Nodes::Lazy(lazy)) => lazy.content(path).map(Some),
            _ => Ok(None),
        }
    }

    /// The names in a directory, of which `known` came with its node.
    pub(crate) fn names(&self, path: &str, known: Names) -> Result<Names, TreeError> {
        match &self.nodes {
            Nodes::Whole(_) => Ok(known),
            Nodes::Lazy(lazy) => lazy.names(path),
        }
    }

    /// A new record of what is read.
    pub fn reader(&self) -> Reader {
        Reader::new(self.clone())
    }
}

/// A tree under construction.
#[derive(Debug)]
pub struct TreeBuilder {
    limits: Limits,
    nodes: HashMap<String, Node>,
    files: usize,
    bytes: u64,
    has_links: bool,
}

impl TreeBuilder {
    /// Starts an empty tree.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            nodes: HashMap::from([(String::new(), Node::Directory(Arc::default()))]),
            files: 0,
            bytes: 0,
            has_links: false,
        }
    }

    /// Adds a file and the directories that it lies in.
    pub fn file(&mut self, path: &str, content: impl Into<Arc<[u8]>>) -> Result<(), TreeError> {
        let content: Arc<[u8]> = content.into();
        let size = content.len() as u64;
        if size > self.limits.file_bytes {
            let limit = self.limits.file_bytes;
            return Err(TreeError::new(path, Problem::FileTooLarge { size, limit }));
        }
        if self.bytes + size > self.limits.total_bytes {
            let limit = self.limits.total_bytes;
            return Err(TreeError::new(path, Problem::TreeTooLarge { limit }));
        }
        self.add(path, Node::File(content))?;
        self.bytes += size;
        Ok(())
    }

    /// Adds a symbolic link. Where it leads is looked at when it is followed, as file systems do.
    pub fn link(&mut self, path: &str, target: &str) -> Result<(), TreeError> {
        self.add(path, Node::Link(target.into()))?;
        self.has_links = true;
        Ok(())
    }

    /// Adds a directory, which may stay empty.
    pub fn directory(&mut self, path: &str) -> Result<(), TreeError> {
        let normalised = path::normalise(path)?;
        self.ensure_directory(&normalised)
    }

    fn add(&mut self, path: &str, node: Node) -> Result<(), TreeError> {
        let normalised = path::normalise(path)?;
        if self.files >= self.limits.files {
            let limit = self.limits.files;
            return Err(TreeError::new(path, Problem::TooManyFiles { limit }));
        }
        if self.nodes.contains_key(&normalised) {
            return Err(TreeError::new(path, Problem::Occupied));
        }
        self.ensure_directory(path::parent(&normalised))?;
        self.enter(&normalised, node);
        self.files += 1;
        Ok(())
    }

    fn ensure_directory(&mut self, directory: &str) -> Result<(), TreeError> {
        match self.nodes.get(directory) {
            Some(Node::Directory(_)) => return Ok(()),
            Some(_) => return Err(TreeError::new(directory, Problem::Occupied)),
            None => {}
        }
        // From the top: a path has few parts, and the length of paths is bounded.
        let mut ends: Vec<usize> = directory.match_indices('/').map(|(at, _)| at).collect();
        ends.push(directory.len());
        for end in ends {
            match self.nodes.get(&directory[..end]) {
                Some(Node::Directory(_)) => {}
                Some(_) => return Err(TreeError::new(&directory[..end], Problem::Occupied)),
                None => self.enter(&directory[..end], Node::Directory(Arc::default())),
            }
        }
        Ok(())
    }

    fn enter(&mut self, path: &str, node: Node) {
        if let Some(Node::Directory(names)) = self.nodes.get_mut(path::parent(path)) {
            Arc::make_mut(names).insert(path::file_name(path).to_owned());
        }
        self.nodes.insert(path.to_owned(), node);
    }

    /// The finished tree.
    pub fn build(self) -> Tree {
        Tree {
            nodes: Nodes::Whole(Whole {
                built: Arc::new(self.nodes),
                changed: Arc::default(),
            }),
            limits: self.limits,
            files: self.files,
            bytes: self.bytes,
            has_links: self.has_links,
        }
    }
}
