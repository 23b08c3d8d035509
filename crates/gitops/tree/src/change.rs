//! A tree that differs from another by some files: what a commit leaves behind.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::builder::{Node, Nodes, Tree, Whole};
use crate::error::{Problem, TreeError};
use crate::lazy::{Entry, Found};
use crate::path;

/// What is at a path from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A file with this content.
    File(Arc<[u8]>),
    /// A symbolic link with this target.
    Link(String),
    /// Nothing.
    Gone,
}

/// The changes are merged into the tree when they are more than this part of it: looking up in two maps is dearer.
const MERGED_FROM_PART: usize = 4;
/// But not for a few.
const MERGED_FROM: usize = 64;

impl Tree {
    /// What is at a normalised path; links are not followed.
    pub fn entry(&self, path: &str) -> Result<Option<Entry>, TreeError> {
        let Some(node) = self.node(path)? else {
            return Ok(None);
        };
        Ok(match node {
            Node::Link(target) => Some(Entry::Link(target.to_string())),
            Node::Directory(_) => Some(Entry::Directory),
            file => self.content(path, file)?.map(Entry::File),
        })
    }

    /// What is at a normalised path, without reading it; links are not followed.
    pub fn find(&self, path: &str) -> Result<Option<Found>, TreeError> {
        Ok(self.node(path)?.map(|node| match node {
            Node::File(content) => Found::File(content.len() as u64),
            Node::Unread(size) => Found::File(size),
            Node::Directory(_) => Found::Directory,
            Node::Link(target) => Found::Link(target.to_string()),
        }))
    }

    /// This tree with changes, all at once: what a path loses and what another gains may need each other's place. As in
    /// Git, a directory goes with the last file in it. Costs what the changes cost, not what the tree does. A tree that is
    /// read when it is asked for has no state that could be changed, and is refused.
    pub fn changed<P: AsRef<str>>(
        &self,
        changes: impl IntoIterator<Item = (P, Change)>,
    ) -> Result<Self, TreeError> {
        let Nodes::Whole(whole) = &self.nodes else {
            return Err(TreeError::new("", Problem::NotInMemory));
        };
        let mut edit = Edit {
            tree: self.clone(),
            built: Arc::clone(&whole.built),
            changed: HashMap::clone(&whole.changed),
        };
        let mut added = Vec::new();
        for (path, change) in changes {
            let normalised = path::normalise(path.as_ref())?;
            match change {
                Change::Gone => edit.remove(&normalised),
                Change::File(content) => added.push((normalised, Node::File(content))),
                Change::Link(target) => added.push((normalised, Node::Link(target.into()))),
            }
        }
        for (path, node) in added {
            edit.put(&path, node)?;
        }
        Ok(edit.finish())
    }
}

struct Edit {
    /// As it was, but for its counts, which are kept up to date.
    tree: Tree,
    built: Arc<HashMap<String, Node>>,
    changed: HashMap<String, Option<Node>>,
}

impl Edit {
    fn get(&self, path: &str) -> Option<&Node> {
        match self.changed.get(path) {
            Some(changed) => changed.as_ref(),
            None => self.built.get(path),
        }
    }

    fn count(&mut self, node: &Node, is_added: bool) {
        let bytes = match node {
            Node::File(content) => content.len() as u64,
            _ => 0,
        };
        if is_added {
            self.tree.files += 1;
            self.tree.bytes += bytes;
        } else {
            self.tree.files = self.tree.files.saturating_sub(1);
            self.tree.bytes = self.tree.bytes.saturating_sub(bytes);
        }
    }

    fn remove(&mut self, path: &str) {
        let Some(node @ (Node::File(_) | Node::Link(_))) = self.get(path).cloned() else {
            return;
        };
        self.count(&node, false);
        let mut gone = path;
        loop {
            self.changed.insert(gone.to_owned(), None);
            let directory = path::parent(gone);
            let Some(names) = self.names(directory) else {
                return;
            };
            names.remove(path::file_name(gone));
            if !names.is_empty() || directory.is_empty() {
                return;
            }
            gone = directory;
        }
    }

    fn put(&mut self, path: &str, node: Node) -> Result<(), TreeError> {
        let before = self.get(path).cloned();
        match &before {
            Some(Node::Directory(_)) => return Err(TreeError::new(path, Problem::Occupied)),
            Some(before) => self.count(before, false),
            None => self.enter(path)?,
        }
        self.count(&node, true);
        let (limits, tree) = (self.tree.limits, &self.tree);
        let size = match &node {
            Node::File(content) => content.len() as u64,
            _ => 0,
        };
        let problem = if size > limits.file_bytes {
            let limit = limits.file_bytes;
            Some(Problem::FileTooLarge { size, limit })
        } else if tree.bytes > limits.total_bytes {
            let limit = limits.total_bytes;
            Some(Problem::TreeTooLarge { limit })
        } else if tree.files > limits.files {
            let limit = limits.files;
            Some(Problem::TooManyFiles { limit })
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(TreeError::new(path, problem));
        }
        self.tree.has_links |= matches!(node, Node::Link(_));
        self.changed.insert(path.to_owned(), Some(node));
        Ok(())
    }

    /// Makes the directories on the way to a path, and gives it its name in the last of them.
    fn enter(&mut self, path: &str) -> Result<(), TreeError> {
        let mut entry = path;
        // The length of paths is bounded, so this is too.
        loop {
            let directory = path::parent(entry);
            let name = path::file_name(entry).to_owned();
            match self.get(directory) {
                Some(Node::Directory(_)) => {
                    if let Some(names) = self.names(directory) {
                        names.insert(name);
                    }
                    return Ok(());
                }
                Some(_) => return Err(TreeError::new(path, Problem::Occupied)),
                None => {
                    let names = Arc::new(BTreeSet::from([name]));
                    self.changed
                        .insert(directory.to_owned(), Some(Node::Directory(names)));
                }
            }
            entry = directory;
        }
    }

    /// The names in a directory, to be changed.
    fn names(&mut self, directory: &str) -> Option<&mut BTreeSet<String>> {
        if !self.changed.contains_key(directory) {
            let node = self.built.get(directory)?.clone();
            self.changed.insert(directory.to_owned(), Some(node));
        }
        match self.changed.get_mut(directory) {
            Some(Some(Node::Directory(names))) => Some(Arc::make_mut(names)),
            _ => None,
        }
    }

    fn finish(self) -> Tree {
        let built = self.built;
        let is_much = self.changed.len() > MERGED_FROM.max(built.len() / MERGED_FROM_PART);
        let nodes = if is_much {
            let mut merged = HashMap::clone(&built);
            for (path, node) in self.changed {
                match node {
                    Some(node) => merged.insert(path, node),
                    None => merged.remove(&path),
                };
            }
            Whole {
                built: Arc::new(merged),
                changed: Arc::default(),
            }
        } else {
            Whole {
                built,
                changed: Arc::new(self.changed),
            }
        };
        Tree {
            nodes: Nodes::Whole(nodes),
            ..self.tree
        }
    }
}
