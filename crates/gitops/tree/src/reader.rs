//! Reading a tree, with the record of it.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::builder::{Node, Tree};
use crate::error::{Problem, TreeError};
use crate::inputs::Inputs;
use crate::path;

/// What is at a path, after symbolic links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
}

/// A tree and the record of what was read from it. Copies share the record.
#[derive(Debug, Clone)]
pub struct Reader {
    tree: Tree,
    inputs: Arc<Mutex<Inputs>>,
    /// Directories that were listed and to which no link leads: what is in one need not be looked for from the top.
    real: Arc<Mutex<HashSet<String>>>,
}

impl Reader {
    pub(crate) fn new(tree: Tree) -> Self {
        Self {
            tree,
            inputs: Arc::default(),
            real: Arc::default(),
        }
    }

    /// The tree itself.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// What has been read until now.
    pub fn inputs(&self) -> Inputs {
        self.record(|inputs| inputs.clone())
    }

    /// The bytes of a file.
    pub fn read(&self, path: &str) -> Result<Arc<[u8]>, TreeError> {
        let (real, node) = self.resolve(path)?;
        self.note(real.clone(), &node);
        match self.tree.content(&real, node)? {
            Some(content) => Ok(content),
            None => Err(TreeError::new(path, Problem::IsDirectory)),
        }
    }

    /// How many bytes the file at a path has, which need not be read for that; none if it is a directory.
    pub fn size(&self, path: &str) -> Result<Option<u64>, TreeError> {
        let (real, node) = self.resolve(path)?;
        self.note(real, &node);
        Ok(match node {
            Node::File(content) => Some(content.len() as u64),
            Node::Unread(size) => Some(size),
            _ => None,
        })
    }

    /// The text of a file.
    pub fn read_text(&self, path: &str) -> Result<String, TreeError> {
        let bytes = self.read(path)?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(TreeError::new(path, Problem::NotUtf8)),
        }
    }

    /// What is at a path; none if nothing is. A path that leads out of the tree is an error.
    pub fn kind(&self, path: &str) -> Result<Option<Kind>, TreeError> {
        match self.resolve(path) {
            Ok((real, node)) => Ok(Some(self.note(real, &node))),
            Err(error) if matches!(error.problem, Problem::NotFound | Problem::NotDirectory) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The names in a directory, sorted by bytes.
    pub fn list(&self, path: &str) -> Result<Vec<String>, TreeError> {
        match self.resolve(path)? {
            (real, Node::Directory(names)) => {
                let names = self.tree.names(&real, names)?;
                if self.tree.has_links {
                    self.real().insert(real.clone());
                }
                self.record(|inputs| inputs.directories.insert(real, BTreeSet::clone(&names)));
                Ok(names.iter().cloned().collect())
            }
            (real, node) => {
                self.note(real, &node);
                Err(TreeError::new(path, Problem::NotDirectory))
            }
        }
    }

    /// The path at which the content of `path` lies when every symbolic link on the way is followed.
    pub fn real_path(&self, path: &str) -> Result<String, TreeError> {
        let (real, node) = self.resolve(path)?;
        self.note(real.clone(), &node);
        Ok(real)
    }

    /// Whether the entry itself, not what it leads to, is a symbolic link.
    pub fn is_link(&self, path: &str) -> bool {
        path::normalise(path)
            .is_ok_and(|normalised| matches!(self.tree.node(&normalised), Ok(Some(Node::Link(_)))))
    }

    /// The files in a directory and below it as normalised paths, in the order in which Go walks a directory. Symbolic
    /// links to files are among them; links to directories are not entered.
    pub fn walk(&self, directory: &str) -> Result<Vec<String>, TreeError> {
        let mut found = Vec::new();
        let start = path::normalise(directory)?;
        // A stack instead of recursion: the depth is what the tree's author chose.
        let mut open = vec![start];
        let mut first = true;
        while let Some(at) = open.pop() {
            let node = match first {
                true => self.resolve(&at)?.1,
                false => match self.tree.node(&at)? {
                    Some(node) => node,
                    None => continue,
                },
            };
            match node {
                Node::Directory(names) => {
                    let names = self.tree.names(&at, names)?;
                    self.record(|inputs| inputs.directories.insert(at.clone(), BTreeSet::clone(&names)));
                    open.extend(names.iter().rev().map(|name| match at.is_empty() {
                        true => name.clone(),
                        false => format!("{at}/{name}"),
                    }));
                }
                Node::File(_) | Node::Unread(_) if first => {
                    return Err(TreeError::new(directory, Problem::NotDirectory));
                }
                Node::File(_) | Node::Unread(_) => found.push(at),
                Node::Link(_) => {
                    if self.kind(&at)? == Some(Kind::File) {
                        found.push(at);
                    }
                }
            }
            first = false;
        }
        Ok(found)
    }

    /// Records that something is there. That it exists is a fact about its directory's entries; a file stands for it.
    fn note(&self, real: String, node: &Node) -> Kind {
        match node {
            Node::File(_) | Node::Unread(_) => {
                self.record(|inputs| inputs.files.insert(real));
                Kind::File
            }
            _ => {
                self.record(|inputs| inputs.present.insert(real));
                Kind::Directory
            }
        }
    }

    fn real(&self) -> MutexGuard<'_, HashSet<String>> {
        self.real.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record<T>(&self, note: impl FnOnce(&mut Inputs) -> T) -> T {
        // A thread that died while it noted something has left a usable record.
        note(&mut self.inputs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn resolve(&self, asked: &str) -> Result<(String, Node), TreeError> {
        let normalised = path::normalise(asked)?;
        let found = match self.tree.has_links {
            false => match self.tree.node(&normalised)? {
                Some(node) => Ok((normalised, node)),
                None => Err((Problem::NotFound, normalised)),
            },
            true => self.follow(asked, &normalised)?,
        };
        found.map_err(|(problem, missing)| {
            self.record(|inputs| inputs.missing.insert(missing));
            TreeError::new(asked, problem)
        })
    }

    /// Walks down part by part, replacing links by what they point to. The inner error is of what is not there.
    #[expect(
        clippy::type_complexity,
        reason = "a found node, or the path at which there was none"
    )]
    fn follow(
        &self,
        asked: &str,
        normalised: &str,
    ) -> Result<Result<(String, Node), (Problem, String)>, TreeError> {
        let mut links = self.tree.limits.links;
        let mut path = normalised.to_owned();
        let mut done = match path::parent(normalised) {
            "" => 0,
            parent if self.real().contains(parent) => parent.len() + 1,
            _ => 0,
        };
        loop {
            let end = match path[done..].find('/') {
                Some(length) => done + length,
                None => path.len(),
            };
            let here = &path[..end];
            match self.tree.node(here)? {
                None => return Ok(Err((Problem::NotFound, here.to_owned()))),
                Some(Node::Link(target)) => {
                    links = links.checked_sub(1).ok_or_else(|| {
                        let limit = self.tree.limits.links;
                        TreeError::new(asked, Problem::TooManyLinks { limit })
                    })?;
                    // Before it is known where it leads: if nowhere, another target mends that.
                    self.record(|inputs| inputs.files.insert(here.to_owned()));
                    let escaped = || Problem::LinkEscapes {
                        link: here.to_owned(),
                        target: target.to_string(),
                    };
                    let led = path::join(path::parent(here), &target)
                        .map_err(|_| TreeError::new(asked, escaped()))?;
                    path = path::join(&led, path[end..].trim_start_matches('/'))?;
                    done = 0;
                }
                Some(node) if end == path.len() => return Ok(Ok((path, node))),
                Some(Node::Directory(_)) => done = end + 1,
                Some(Node::File(_) | Node::Unread(_)) => {
                    return Ok(Err((Problem::NotDirectory, path.clone())));
                }
            }
        }
    }
}
