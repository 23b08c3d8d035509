//! Files by directory.

use std::collections::BTreeMap;

use super::{File, IsoError, MAX_CONTENT, MAX_DEPTH, MAX_FILES, MAX_NAME};

/// A directory.
#[derive(Debug, Default)]
pub(super) struct Folder {
    /// Directories in it, by name: their numbers.
    pub(super) folders: BTreeMap<String, usize>,
    /// Files in it, by name: their numbers.
    pub(super) files: BTreeMap<String, usize>,
    /// The directory that it is in.
    pub(super) parent: usize,
}

/// All directories and files. The first directory is the root.
#[derive(Debug)]
pub(super) struct Tree<'f> {
    pub(super) folders: Vec<Folder>,
    /// In the order of their paths.
    pub(super) files: Vec<&'f File>,
}

impl<'f> Tree<'f> {
    pub(super) fn of(files: &'f [File]) -> Result<Self, IsoError> {
        if files.len() > MAX_FILES {
            return Err(IsoError::TooMany { count: files.len() });
        }
        let size = files
            .iter()
            .fold(0_usize, |sum, it| sum.saturating_add(it.content.len()));
        if size > MAX_CONTENT {
            return Err(IsoError::TooLarge { size });
        }
        let mut sorted: Vec<&File> = files.iter().collect();
        sorted.sort_by(|a, b| a.path.cmp(&b.path));
        let mut tree = Self {
            folders: vec![Folder::default()],
            files: Vec::new(),
        };
        for file in sorted {
            tree.add(file)?;
        }
        Ok(tree)
    }

    fn add(&mut self, file: &'f File) -> Result<(), IsoError> {
        let wrong = |reason| IsoError::Path {
            path: file.path.clone(),
            reason,
        };
        let names: Vec<&str> = file.path.split('/').collect();
        let (name, way) = names.split_last().ok_or_else(|| wrong("it is empty"))?;
        if way.len() >= MAX_DEPTH {
            return Err(wrong("it lies too deep"));
        }
        for name in &names {
            match *name {
                "" | "." | ".." => return Err(wrong("it has a name that leads elsewhere")),
                long if long.len() > MAX_NAME => return Err(wrong("it has a name of more than 255 bytes")),
                bad if bad.contains('\0') => return Err(wrong("it has a zero byte")),
                _ => {}
            }
        }
        let mut at = 0;
        for name in way {
            if self.folders[at].files.contains_key(*name) {
                return Err(IsoError::Twice {
                    path: file.path.clone(),
                });
            }
            at = match self.folders[at].folders.get(*name) {
                Some(known) => *known,
                None => {
                    let new = self.folders.len();
                    self.folders[at].folders.insert((*name).to_owned(), new);
                    self.folders.push(Folder {
                        parent: at,
                        ..Folder::default()
                    });
                    new
                }
            };
        }
        let folder = &mut self.folders[at];
        if folder.folders.contains_key(*name) || folder.files.contains_key(*name) {
            return Err(IsoError::Twice {
                path: file.path.clone(),
            });
        }
        folder.files.insert((*name).to_owned(), self.files.len());
        self.files.push(file);
        Ok(())
    }
}
