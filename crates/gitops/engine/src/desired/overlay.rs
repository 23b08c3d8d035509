//! Files over a tree that it does not have itself: the kustomization for what an Application says, and the charts that another
//! chart needs. So the tree need not be changed, nor read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairway_gitops_tree::{Found, Limits, Problem, Source, Tree};

/// Where the kustomization of an Application is. No repository has such a directory, and nobody sees it who lists the root.
pub(super) const DIRECTORY: &str = ".fairway-application";
const FILE: &str = ".fairway-application/kustomization.yaml";

#[derive(Debug)]
struct Overlay {
    below: Tree,
    /// By their paths.
    files: BTreeMap<String, Arc<[u8]>>,
    /// Files that are no longer there.
    hidden: BTreeSet<String>,
}

/// The tree with a kustomization over what is in it.
pub(super) fn over(below: &Tree, kustomization: String) -> Tree {
    let files = BTreeMap::from([(FILE.to_owned(), kustomization.into_bytes().into())]);
    with_files(below, files, BTreeSet::new())
}

/// The tree with files, and without others.
pub(super) fn with_files(below: &Tree, files: BTreeMap<String, Arc<[u8]>>, hidden: BTreeSet<String>) -> Tree {
    let overlay = Overlay {
        below: below.clone(),
        files,
        hidden,
    };
    Tree::lazy(Box::new(overlay), Limits::default())
}

impl Overlay {
    /// The names of what was laid into a directory.
    fn laid(&self, directory: &str) -> BTreeSet<String> {
        let beginning = match directory {
            "" => String::new(),
            directory => format!("{directory}/"),
        };
        let within = self.files.range(beginning.clone()..);
        within
            .map_while(|(path, _)| path.strip_prefix(&beginning))
            .filter_map(|rest| rest.split('/').next())
            .filter(|name| *name != DIRECTORY)
            .map(str::to_owned)
            .collect()
    }
}

impl Source for Overlay {
    fn find(&self, path: &str) -> Result<Option<Found>, Problem> {
        if let Some(content) = self.files.get(path) {
            return Ok(Some(Found::File(content.len() as u64)));
        }
        if path == DIRECTORY || !self.laid(path).is_empty() {
            return Ok(Some(Found::Directory));
        }
        match self.hidden.contains(path) {
            true => Ok(None),
            false => self.below.find(path).map_err(|error| error.problem),
        }
    }

    fn read(&self, path: &str, _: u64) -> Result<Arc<[u8]>, Problem> {
        match self.files.get(path) {
            Some(content) => Ok(Arc::clone(content)),
            None => self.below.reader().read(path).map_err(|error| error.problem),
        }
    }

    fn names(&self, path: &str, _: usize) -> Result<BTreeSet<String>, Problem> {
        let mut names = self.laid(path);
        let below = match self.below.find(path).map_err(|error| error.problem)? {
            Some(Found::Directory) => self.below.reader().list(path).map_err(|error| error.problem)?,
            // What lies over a link or a file stands for itself.
            _ => Vec::new(),
        };
        let is_there = |name: &String| match path {
            "" => !self.hidden.contains(name),
            path => !self.hidden.contains(&format!("{path}/{name}")),
        };
        names.extend(below.into_iter().filter(is_there));
        if path == DIRECTORY {
            names.insert("kustomization.yaml".to_owned());
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_lie_over_a_tree() {
        let below = Tree::of([
            ("web/Chart.yaml", &b"a"[..]),
            ("web/charts/old.tgz", &b"b"[..]),
            ("top", &b"c"[..]),
        ])
        .unwrap();
        let files = BTreeMap::from([
            ("web/charts/new.tgz".to_owned(), Arc::from(&b"d"[..])),
            ("web/charts/dep/Chart.yaml".to_owned(), Arc::from(&b"e"[..])),
        ]);
        let hidden = BTreeSet::from(["web/charts/old.tgz".to_owned()]);
        let reader = with_files(&below, files, hidden).reader();
        assert_eq!(reader.list("web/charts").unwrap(), ["dep", "new.tgz"]);
        assert_eq!(reader.list("web").unwrap(), ["Chart.yaml", "charts"]);
        assert_eq!(reader.list("").unwrap(), ["top", "web"]);
        assert_eq!(reader.read_text("web/charts/dep/Chart.yaml").unwrap(), "e");
        assert_eq!(reader.read_text("top").unwrap(), "c");
        assert!(reader.read("web/charts/old.tgz").is_err());
        let reader = over(&below, "x".to_owned()).reader();
        assert_eq!(reader.list("").unwrap(), ["top", "web"]);
        assert_eq!(reader.list(DIRECTORY).unwrap(), ["kustomization.yaml"]);
        assert_eq!(reader.read_text(FILE).unwrap(), "x");
    }
}
