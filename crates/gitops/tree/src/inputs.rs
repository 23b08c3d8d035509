//! What a result depends on.

use std::collections::{BTreeMap, BTreeSet};

use crate::path;

/// What was asked of a tree: whoever asks the same of another tree and gets the same answers, gets the same result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inputs {
    /// Files that were read, and links that were followed.
    pub files: BTreeSet<String>,
    /// Paths at which there was nothing.
    pub missing: BTreeSet<String>,
    /// Directories that had to be there, whatever is in them.
    pub present: BTreeSet<String>,
    /// Directories that were listed, with the names that were found.
    pub directories: BTreeMap<String, BTreeSet<String>>,
}

impl Inputs {
    /// Whether adding, changing or removing the file at `changed` can change the result.
    pub fn depend_on(&self, changed: &str) -> bool {
        if self.files.contains(changed) {
            return true;
        }
        // A missing path appears when it, or something below it, is created, or when a link is put on the way to it.
        let appears = self
            .missing
            .iter()
            .any(|missing| path::is_within(changed, missing) || path::is_within(missing, changed));
        if appears {
            return true;
        }
        if self.present.contains(changed) || self.directories.contains_key(changed) {
            return true;
        }
        // What a directory lists changes with the files in it, and with the first file of a new directory in it. That
        // the last file of a directory went is not seen here: whoever listed it has read that file, or did not care.
        let mut entry = changed;
        loop {
            let directory = path::parent(entry);
            if let Some(names) = self.directories.get(directory)
                && (entry == changed || !names.contains(path::file_name(entry)))
            {
                return true;
            }
            if directory.is_empty() {
                return false;
            }
            entry = directory;
        }
    }

    /// Adds what another result depends on.
    pub fn extend(&mut self, other: &Self) {
        self.files.extend(other.files.iter().cloned());
        self.missing.extend(other.missing.iter().cloned());
        self.present.extend(other.present.iter().cloned());
        let directories = other.directories.iter();
        self.directories
            .extend(directories.map(|(path, names)| (path.clone(), names.clone())));
    }
}
