//! A commit's files as a [`Tree`], read when they are asked for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use fairway_gitops_tree::{Found, Problem, Source, path};

use crate::batch::Answer;
use crate::{GitError, ObjectId, Repository};

/// The largest directory, as Git stores it: some hundred thousand files.
const MAX_TREE_BYTES: u64 = 16 << 20;

/// What a directory has under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    kind: ItemKind,
    id: ObjectId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemKind {
    Directory,
    File,
    Link,
    /// A commit of another repository, whose files are not here: an empty directory, as in a clone without submodules.
    Submodule,
}

pub(crate) type Items = Arc<BTreeMap<String, Item>>;

/// The files below a tree object.
#[derive(Debug)]
pub(crate) struct CommitFiles {
    repository: Repository,
    root: ObjectId,
    /// Directories that were read, none where there is none.
    directories: Mutex<HashMap<String, Option<Items>>>,
}

impl CommitFiles {
    pub(crate) fn new(repository: Repository, root: ObjectId) -> Self {
        Self {
            repository,
            root,
            directories: Mutex::default(),
        }
    }

    fn directory(&self, path: &str) -> Result<Option<Items>, Problem> {
        let known = self
            .directories
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(path)
            .cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        // The depth is bounded by the length of paths.
        let items = match path.is_empty() {
            true => Some(self.read_directory(&self.root)?),
            false => match self.item(path)? {
                Some(item) if item.kind == ItemKind::Directory => Some(self.read_directory(&item.id)?),
                Some(item) if item.kind == ItemKind::Submodule => Some(Items::default()),
                _ => None,
            },
        };
        self.directories
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(path.to_owned(), items.clone());
        Ok(items)
    }

    fn item(&self, at: &str) -> Result<Option<Item>, Problem> {
        let Some(items) = self.directory(path::parent(at))? else {
            return Ok(None);
        };
        Ok(items.get(path::file_name(at)).cloned())
    }

    fn read_directory(&self, id: &ObjectId) -> Result<Items, Problem> {
        let pool = self.repository.git().pool();
        if let Some(items) = pool.directory(&self.repository, id) {
            return Ok(items);
        }
        match self.contents(id, MAX_TREE_BYTES)? {
            Answer::Found(object) if object.kind == "tree" => {
                let items = parse_tree(&object.content, id.byte_len())
                    .map(Arc::new)
                    .ok_or_else(|| unreadable(format!("{id} is not a well-formed tree")))?;
                pool.keep_directory(&self.repository, id, &items);
                Ok(items)
            }
            Answer::TooLarge { size } => Err(Problem::FileTooLarge {
                size,
                limit: MAX_TREE_BYTES,
            }),
            _ => Err(unreadable(format!("{id} is not a tree in the repository"))),
        }
    }

    fn contents(&self, id: &ObjectId, limit: u64) -> Result<Answer, Problem> {
        self.repository
            .contents(id.as_str(), limit)
            .map_err(|error: GitError| unreadable(error.full()))
    }

    fn blob(&self, id: &ObjectId, limit: u64) -> Result<Vec<u8>, Problem> {
        match self.contents(id, limit)? {
            Answer::Found(object) if object.kind == "blob" => Ok(object.content),
            Answer::TooLarge { size } => Err(Problem::FileTooLarge { size, limit }),
            _ => Err(missing(id)),
        }
    }
}

impl Source for CommitFiles {
    fn find(&self, path: &str) -> Result<Option<Found>, Problem> {
        if path.is_empty() {
            return Ok(Some(Found::Directory));
        }
        let Some(item) = self.item(path)? else {
            return Ok(None);
        };
        Ok(Some(match item.kind {
            ItemKind::Directory | ItemKind::Submodule => Found::Directory,
            ItemKind::Link => {
                let target = self.blob(&item.id, path::MAX_PATH as u64)?;
                Found::Link(String::from_utf8(target).map_err(|_| Problem::NotUtf8)?)
            }
            ItemKind::File => match self.repository.info(item.id.as_str()) {
                Ok(Answer::Found(object)) if object.kind == "blob" => Found::File(object.size),
                Ok(_) => return Err(missing(&item.id)),
                Err(error) => return Err(unreadable(error.full())),
            },
        }))
    }

    fn read(&self, path: &str, size: u64) -> Result<Arc<[u8]>, Problem> {
        match self.item(path)? {
            Some(item) if item.kind == ItemKind::File => Ok(self.blob(&item.id, size)?.into()),
            _ => Err(unreadable(format!("{path} is not a file in the repository"))),
        }
    }

    fn names(&self, path: &str, limit: usize) -> Result<BTreeSet<String>, Problem> {
        let items = self.directory(path)?.ok_or(Problem::NotDirectory)?;
        match items.len() > limit {
            true => Err(Problem::TooManyFiles { limit }),
            false => Ok(items.keys().cloned().collect()),
        }
    }
}

fn missing(id: &ObjectId) -> Problem {
    unreadable(format!("{id} is not in the repository"))
}

fn unreadable(why: String) -> Problem {
    Problem::Unreadable { why }
}

/// Reads a tree object: `MODE NAME<nul>HASH`, again and again. Names that no file system could hold are left out; they
/// come from hostile hands only.
fn parse_tree(mut bytes: &[u8], hash_len: usize) -> Option<BTreeMap<String, Item>> {
    let mut items = BTreeMap::new();
    while !bytes.is_empty() {
        let space = bytes.iter().position(|byte| *byte == b' ')?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let (mode, name) = (bytes.get(..space)?, bytes.get(space + 1..end)?);
        let hash = bytes.get(end + 1..end + 1 + hash_len)?;
        bytes = &bytes[end + 1 + hash_len..];
        let kind = match mode {
            b"40000" | b"040000" => ItemKind::Directory,
            b"120000" => ItemKind::Link,
            b"160000" => ItemKind::Submodule,
            _ => ItemKind::File,
        };
        let name = String::from_utf8_lossy(name).into_owned();
        if name.is_empty() || name.contains('/') || name == "." || name == ".." {
            continue;
        }
        let id = ObjectId::from_bytes(hash);
        items.insert(name, Item { kind, id });
    }
    Some(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (mode, name) in entries {
            bytes.extend_from_slice(format!("{mode} {name}\0").as_bytes());
            bytes.extend_from_slice(&[0xab; 20]);
        }
        bytes
    }

    #[test]
    fn trees_are_read_and_hostile_names_left_out() {
        let bytes = tree(&[
            ("100644", "a b"),
            ("40000", "d"),
            ("120000", "l"),
            ("160000", "m"),
            ("100644", ".."),
            ("100644", "x/y"),
            ("100644", ""),
        ]);
        let items = parse_tree(&bytes, 20).unwrap();
        let found: Vec<(&str, ItemKind)> = items.iter().map(|(name, item)| (&**name, item.kind)).collect();
        assert_eq!(
            found,
            [
                ("a b", ItemKind::File),
                ("d", ItemKind::Directory),
                ("l", ItemKind::Link),
                ("m", ItemKind::Submodule)
            ]
        );
        for end in 1..bytes.len() {
            // Every beginning is either whole entries or refused; none is read beyond its end.
            let whole = (1..=7).any(|count| {
                let names = ["a b", "d", "l", "m", "..", "x/y", ""];
                let modes = [6, 5, 6, 6, 6, 6, 6];
                let size: usize = (0..count).map(|at| modes[at] + 1 + names[at].len() + 21).sum();
                size == end
            });
            assert_eq!(parse_tree(&bytes[..end], 20).is_some(), whole, "{end}");
        }
    }
}
