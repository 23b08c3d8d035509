//! Charts of repositories that kustomizations inflate (`helmCharts` with `repo`). Rendering never reaches out: it notes which
//! charts it lacks, they are brought as the dependencies of charts are, and it is rendered again with them.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use fairway_gitops_helm::{ArchiveLimits, unpack_chart};
use fairway_gitops_kustomize::{Fetcher, RepositorySpec};
use fairway_gitops_tree::Tree;

use super::dependencies::Buyer;
use crate::sources::SourceError;

/// The most charts of one Application.
pub(super) const MOST: usize = 32;

/// A chart as a kustomization names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ChartName {
    pub(super) repository: String,
    pub(super) name: String,
    /// A version, what it must meet, or nothing: the newest.
    pub(super) version: String,
}

/// Charts that were brought.
pub(super) type Brought = HashMap<ChartName, Tree>;

/// What a kustomization finds there, and what it lacks.
pub(super) struct Shelf<'a> {
    brought: &'a Brought,
    lacks: RefCell<BTreeSet<ChartName>>,
    /// Whether charts may be fetched (`--enable-helm`).
    is_open: bool,
}

impl<'a> Shelf<'a> {
    pub(super) fn new(brought: &'a Brought, is_open: bool) -> Self {
        Self {
            brought,
            lacks: RefCell::default(),
            is_open,
        }
    }

    /// What was asked for and is not there.
    pub(super) fn lacks(self) -> BTreeSet<ChartName> {
        self.lacks.into_inner()
    }
}

impl Fetcher for Shelf<'_> {
    fn file(&self, _: &str) -> Result<Option<Arc<[u8]>>, String> {
        Err("it is not in the tree, and nothing but charts is fetched from elsewhere".to_owned())
    }

    fn repository(&self, _: &RepositorySpec) -> Result<Tree, String> {
        Err("it is a repository elsewhere, and nothing but charts is fetched from elsewhere".to_owned())
    }

    fn chart(&self, repository: &str, name: &str, version: &str) -> Result<Tree, String> {
        let wanted = ChartName {
            repository: repository.to_owned(),
            name: name.to_owned(),
            version: version.to_owned(),
        };
        match self.brought.get(&wanted) {
            Some(tree) => Ok(tree.clone()),
            None if self.is_open => {
                self.lacks.borrow_mut().insert(wanted);
                Err(format!("the chart {name} is not here yet"))
            }
            None => Err(
                "charts of kustomizations are fetched only if kustomize.buildOptions in argocd-cm has --enable-helm"
                    .to_owned(),
            ),
        }
    }
}

impl Buyer<'_> {
    /// A chart that a kustomization names.
    pub(super) async fn inflated(&self, wanted: &ChartName) -> Result<Tree, SourceError> {
        let version = match wanted.version.as_str() {
            "" => "*",
            version => version,
        };
        let fetched = self.chart(&wanted.repository, &wanted.name, version, false).await;
        let (_, bytes) = fetched.map_err(|why| told(wanted, &why.to_string(), &why))?;
        let unpacked =
            tokio::task::spawn_blocking(move || unpack_chart(&bytes, ArchiveLimits::default())).await;
        match unpacked {
            Ok(Ok(tree)) => Ok(tree),
            Ok(Err(why)) => Err(SourceError::Missing(format!(
                "chart '{}' of {}: {why}",
                wanted.name, wanted.repository
            ))),
            Err(_) => Err(SourceError::Unreachable(
                "unpacking a chart was broken off".to_owned(),
            )),
        }
    }
}

fn told(wanted: &ChartName, why: &str, kind: &SourceError) -> SourceError {
    let text = format!("chart '{}': {why}", wanted.name);
    match kind {
        SourceError::Missing(_) => SourceError::Missing(text),
        SourceError::Unreachable(_) => SourceError::Unreachable(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_noted_if_it_may_be_fetched() {
        let there = ChartName {
            repository: "https://charts.example.com".to_owned(),
            name: "web".to_owned(),
            version: "1.0.0".to_owned(),
        };
        let tree = Tree::of(vec![("Chart.yaml".to_owned(), b"name: web".to_vec())]).unwrap();
        let brought = Brought::from([(there, tree)]);
        for (is_open, version, expected, lacking) in [
            (true, "1.0.0", true, 0),
            (true, "2.0.0", false, 1),
            (false, "1.0.0", true, 0),
            (false, "2.0.0", false, 0),
        ] {
            let shelf = Shelf::new(&brought, is_open);
            let found = shelf.chart("https://charts.example.com", "web", version);
            assert_eq!(found.is_ok(), expected, "{is_open} {version}");
            assert!(shelf.file("https://example.com/x").is_err());
            assert_eq!(shelf.lacks().len(), lacking, "{is_open} {version}");
        }
    }
}
