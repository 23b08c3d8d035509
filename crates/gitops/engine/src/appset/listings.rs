//! The files of repositories that generators look at, by name, kept from commit to commit.
//!
//! Most commits change files and neither make nor remove any, and most of them are none that a generator reads. So the names are
//! listed once, and then only what differs between two commits is looked at; a set whose generators are not touched is
//! not generated again.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairway_gitops_appset::generator::{directories_of, means_file};
use fairway_gitops_tree::{Kind, Reader, Tree};

use crate::sources::{Repository, SharedSources, SourceError};

/// How many listings are kept.
const MOST: usize = 64;

/// The files of a commit.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) commit: String,
    pub(crate) paths: BTreeSet<String>,
}

impl Listing {
    pub(crate) fn directories(&self) -> Vec<String> {
        directories_of(self.paths.iter().map(String::as_str))
    }
}

/// What a set's generators have looked at in a repository.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    pub(crate) repository: Repository,
    pub(crate) revision: String,
    pub(crate) listing: Arc<Listing>,
    /// Whether its directories.
    pub(crate) directories: bool,
    /// Which files.
    pub(crate) patterns: BTreeSet<String>,
}

/// A commit, and how its files differ from those that were known before.
struct Step {
    listing: Arc<Listing>,
    /// The paths that differ; none if everything may.
    changed: Option<Vec<String>>,
}

/// The last listing of each revision of a repository.
type Known = HashMap<(Repository, String), Arc<Listing>>;

/// The listings. Clones share them.
#[derive(Clone)]
pub(crate) struct Listings {
    sources: SharedSources,
    known: Arc<Mutex<Known>>,
}

impl Listings {
    pub(crate) fn new(sources: SharedSources) -> Self {
        Self {
            sources,
            known: Arc::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The commit that a revision is now, from what is known no longer ago than that.
    async fn resolve(
        &self,
        repository: &Repository,
        revision: &str,
        oldest: Duration,
    ) -> Result<String, SourceError> {
        self.sources.renew(repository, oldest).await?;
        self.sources.resolve(repository, revision).await
    }

    /// The files of a revision as it is now, and the tree to read them from.
    pub(crate) async fn at(
        &self,
        repository: &Repository,
        revision: &str,
        oldest: Duration,
    ) -> Result<(Arc<Listing>, Tree), SourceError> {
        let commit = self.resolve(repository, revision, oldest).await?;
        let tree = self.sources.tree(repository, &commit).await?;
        let key = (repository.clone(), revision.to_owned());
        let known = self.known().get(&key).cloned();
        if let Some(known) = known.as_ref().filter(|known| known.commit == commit) {
            return Ok((Arc::clone(known), tree));
        }
        let step = self.step(repository, known, commit, tree.clone()).await?;
        self.keep(key, &step.listing);
        Ok((step.listing, tree))
    }

    /// From one commit to another.
    async fn step(
        &self,
        repository: &Repository,
        known: Option<Arc<Listing>>,
        commit: String,
        tree: Tree,
    ) -> Result<Step, SourceError> {
        let changed = match &known {
            Some(known) => self
                .sources
                .changed(repository, &known.commit, &commit)
                .await
                .ok(),
            None => None,
        };
        // Reading waits for a program that reads files.
        let listed = tokio::task::spawn_blocking(move || {
            let reader = tree.reader();
            match known.zip(changed) {
                Some((known, changed)) => moved(&known, &reader, changed, commit),
                None => {
                    let paths = reader.walk("").map_err(|error| error.to_string())?;
                    let paths = paths.into_iter().collect();
                    Ok(Step {
                        listing: Arc::new(Listing { commit, paths }),
                        changed: None,
                    })
                }
            }
        });
        let listed = listed.await.unwrap_or_else(|broken| Err(broken.to_string()));
        listed.map_err(SourceError::Missing)
    }

    fn keep(&self, key: (Repository, String), listing: &Arc<Listing>) {
        let mut known = self.known();
        if known.len() >= MOST && !known.contains_key(&key) {
            // Whoever needs them lists them again.
            known.clear();
        }
        known.insert(key, Arc::clone(listing));
    }

    /// The same looks at what repositories are now; none if they would show something else.
    pub(crate) async fn unchanged(
        &self,
        looks: &[Look],
        oldest: Duration,
    ) -> Result<Option<Vec<Look>>, SourceError> {
        let mut all = Vec::with_capacity(looks.len());
        for look in looks {
            let (repository, revision) = (&look.repository, &look.revision);
            let commit = self.resolve(repository, revision, oldest).await?;
            if commit == look.listing.commit {
                all.push(look.clone());
                continue;
            }
            let tree = self.sources.tree(repository, &commit).await?;
            let step = self
                .step(repository, Some(Arc::clone(&look.listing)), commit, tree)
                .await?;
            self.keep((repository.clone(), revision.clone()), &step.listing);
            if shows_more(look, &step) {
                return Ok(None);
            }
            all.push(Look {
                listing: step.listing,
                ..look.clone()
            });
        }
        Ok(Some(all))
    }
}

/// The listing after some paths have changed.
fn moved(known: &Listing, reader: &Reader, changed: Vec<String>, commit: String) -> Result<Step, String> {
    let mut paths = None;
    for path in &changed {
        let is_file = reader.kind(path).map_err(|error| error.to_string())? == Some(Kind::File);
        if is_file != known.paths.contains(path) {
            let paths = paths.get_or_insert_with(|| known.paths.clone());
            match is_file {
                true => paths.insert(path.clone()),
                false => paths.remove(path),
            };
        }
    }
    let paths = paths.unwrap_or_else(|| known.paths.clone());
    Ok(Step {
        listing: Arc::new(Listing { commit, paths }),
        changed: Some(changed),
    })
}

/// Whether generators would yield something else.
fn shows_more(look: &Look, step: &Step) -> bool {
    let Some(changed) = &step.changed else {
        return true;
    };
    let means = |path: &String| look.patterns.iter().any(|pattern| means_file(pattern, path));
    changed.iter().any(means)
        || look.directories
            && look.listing.paths != step.listing.paths
            && look.listing.directories() != step.listing.directories()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(paths: &[&str]) -> Listing {
        Listing {
            commit: "old".to_owned(),
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        }
    }

    #[test]
    fn only_what_generators_look_at_counts() {
        let before = listing(&["apps/a/x.yaml", "apps/b/x.yaml", "envs/dev.json"]);
        let files = ["apps/a/x.yaml", "apps/a/y.yaml", "apps/c/x.yaml", "envs/dev.json"];
        let tree = Tree::of(files.map(|path| (path, Vec::from("x")))).unwrap();
        let look = |directories: bool, patterns: &[&str]| Look {
            repository: Repository {
                workspace: fairway_controller::WorkspaceId::root(),
                project: String::new(),
                url: "u".to_owned(),
                chart: String::new(),
            },
            revision: "main".to_owned(),
            listing: Arc::new(listing(&["apps/a/x.yaml", "apps/b/x.yaml", "envs/dev.json"])),
            directories,
            patterns: patterns.iter().map(|it| (*it).to_owned()).collect(),
        };
        for (changed, paths, by_directories, by_files) in [
            (&["apps/a/x.yaml"][..], 3, false, false),
            (&["apps/a/y.yaml"], 4, false, false),
            (&["apps/c/x.yaml"], 4, true, false),
            (&["apps/b/x.yaml"], 2, true, false),
            (&["envs/dev.json"], 3, false, true),
        ] {
            let changed: Vec<String> = changed.iter().map(|path| (*path).to_owned()).collect();
            let step = moved(&before, &tree.reader(), changed.clone(), "new".to_owned()).unwrap();
            assert_eq!(step.listing.paths.len(), paths, "{changed:?}");
            assert_eq!(shows_more(&look(true, &[]), &step), by_directories, "{changed:?}");
            assert_eq!(
                shows_more(&look(false, &["envs/*"]), &step),
                by_files,
                "{changed:?}"
            );
        }
        let unknown = Step {
            listing: Arc::new(listing(&[])),
            changed: None,
        };
        assert!(shows_more(&look(false, &[]), &unknown));
    }
}
