//! A kustomization over another one, for what an Application says of it: images, prefixes, patches and so on. It is a file
//! that the tree does not have, so that the tree need not be changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairway_gitops_tree::{Entry, Found, Limits, Problem, Source, Tree};

/// Where the file is. No repository has such a directory.
pub(super) const DIRECTORY: &str = ".fairway-application";
const FILE: &str = ".fairway-application/kustomization.yaml";

#[derive(Debug)]
struct Overlay {
    below: Tree,
    kustomization: String,
}

/// The tree with a kustomization over what is in it.
pub(super) fn over(below: &Tree, kustomization: String) -> Tree {
    let overlay = Overlay {
        below: below.clone(),
        kustomization,
    };
    Tree::lazy(Box::new(overlay), Limits::default())
}

impl Source for Overlay {
    fn find(&self, path: &str) -> Result<Option<Found>, Problem> {
        Ok(match path {
            DIRECTORY => Some(Found::Directory),
            FILE => Some(Found::File(self.kustomization.len() as u64)),
            path => match self.below.entry(path).map_err(|error| error.problem)? {
                Some(Entry::File(content)) => Some(Found::File(content.len() as u64)),
                Some(Entry::Directory) => Some(Found::Directory),
                Some(Entry::Link(target)) => Some(Found::Link(target)),
                None => None,
            },
        })
    }

    fn read(&self, path: &str, _: u64) -> Result<Arc<[u8]>, Problem> {
        if path == FILE {
            return Ok(self.kustomization.as_bytes().into());
        }
        self.below.reader().read(path).map_err(|error| error.problem)
    }

    fn names(&self, path: &str, _: usize) -> Result<BTreeSet<String>, Problem> {
        match path {
            DIRECTORY => Ok(["kustomization.yaml".to_owned()].into()),
            path => {
                let names = self.below.reader().list(path).map_err(|error| error.problem)?;
                Ok(names.into_iter().collect())
            }
        }
    }
}
