//! What the engine needs of whoever has the manifests: a port, so that the engine knows neither Git nor registries.

mod all;
pub mod charts;
mod credentials;
pub mod git;
pub mod plugins;
mod web;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use all::AllSources;

use fairway_controller::WorkspaceId;
use fairway_gitops_tree::Tree;
use futures::future::BoxFuture;
use tokio::sync::broadcast;

/// A repository as an application of a workspace names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Repository {
    /// Whose credentials and whose own repositories count.
    pub workspace: WorkspaceId,
    /// The project of the application, which may have credentials of its own.
    pub project: String,
    /// `repoURL`.
    pub url: String,
    /// The name of a chart, if the repository is one of charts.
    pub chart: String,
}

/// Why something could not be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// There is no such thing, and asking again will not change that before something happens there.
    #[error("{0}")]
    Missing(String),
    /// It could not be reached; later it may be.
    #[error("{0}")]
    Unreachable(String),
}

/// What a person should know of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RevisionMetadata {
    /// Who wrote it.
    pub author: String,
    /// When, in seconds since 1970.
    pub date: i64,
    /// What for.
    pub message: String,
    /// The tags on it.
    pub tags: Vec<String>,
}

/// A chart that another chart needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependencyRequest {
    /// Where it is, and its name.
    pub repository: Repository,
    /// Which version, or what it must meet.
    pub version: String,
    /// Whether only this version will do.
    pub is_locked: bool,
    /// Whether the project lets credentials of the workspace be used there.
    pub uses_credentials: bool,
    /// Whether they go along to other hosts that the repository names.
    pub passes_credentials: bool,
}

/// A chart as an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// Its version.
    pub version: String,
    /// The `.tgz`.
    pub bytes: Arc<[u8]>,
}

/// A source that a plugin makes manifests of.
#[derive(Debug, Clone)]
pub struct PluginRequest {
    /// Which plugin; whichever wants the source, if none is named.
    pub name: String,
    /// The files.
    pub tree: Tree,
    /// The directory of the source.
    pub directory: String,
    /// What the plugin is told.
    pub environment: BTreeMap<String, String>,
}

/// That something was pushed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct News {
    /// Where, as applications may spell it.
    pub url: String,
    /// From where to where branches and tags have moved, as far as it is known.
    pub moved: Vec<Moved>,
    /// Who waits for an answer: a number of [`crate::Answers::expect`], 0 if nobody does.
    pub asked_by: u64,
}

impl News {
    /// News of a repository, and nothing more.
    pub fn of(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            ..Self::default()
        }
    }
}

/// A branch or tag that points to another commit now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// The commit before.
    pub old: String,
    /// The commit now.
    pub new: String,
}

/// An answer.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, SourceError>>;

/// Whoever has the manifests.
pub trait Sources: Send + Sync + 'static {
    /// Sees to it that what is known of a repository elsewhere is no older than that.
    fn renew<'a>(&'a self, _: &'a Repository, _oldest: Duration) -> Answer<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// The commit that a branch, a tag, a commit or nothing (`HEAD`) stands for now.
    fn resolve<'a>(&'a self, repository: &'a Repository, revision: &'a str) -> Answer<'a, String>;

    /// The files of a commit.
    fn tree<'a>(&'a self, repository: &'a Repository, commit: &'a str) -> Answer<'a, Tree>;

    /// The paths of all files that differ between two commits.
    fn changed<'a>(
        &'a self,
        repository: &'a Repository,
        old: &'a str,
        new: &'a str,
    ) -> Answer<'a, Vec<String>>;

    /// The commit that a merge of one commit into another comes to, without anything being moved. It is missing if they
    /// disagree.
    fn merged<'a>(
        &'a self,
        _repository: &'a Repository,
        _base: &'a str,
        head: &'a str,
    ) -> Answer<'a, String> {
        Box::pin(async move { Ok(head.to_owned()) })
    }

    /// Who wrote a commit, and why.
    fn metadata<'a>(&'a self, repository: &'a Repository, commit: &'a str) -> Answer<'a, RevisionMetadata>;

    /// The files of a version of a chart. `passes_credentials` sends them to other hosts, too, that the repository names.
    fn chart<'a>(
        &'a self,
        repository: &'a Repository,
        version: &'a str,
        passes_credentials: bool,
    ) -> Answer<'a, Tree> {
        let _ = passes_credentials;
        self.tree(repository, version)
    }

    /// A chart that another needs.
    fn dependency<'a>(&'a self, wanted: &'a DependencyRequest) -> Answer<'a, Archive> {
        let why = format!("no charts are fetched from {}", wanted.repository);
        Box::pin(async move { Err(SourceError::Missing(why)) })
    }

    /// The addresses of repositories that a workspace has given names.
    fn names<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        project: &'a str,
    ) -> Answer<'a, BTreeMap<String, String>> {
        let _ = (workspace, project);
        Box::pin(async { Ok(BTreeMap::new()) })
    }

    /// A text at an address: a file of values.
    fn document<'a>(&'a self, workspace: &'a WorkspaceId, url: &'a str) -> Answer<'a, String> {
        let _ = workspace;
        Box::pin(async move { Err(SourceError::Missing(format!("{url} is not fetched"))) })
    }

    /// The text that a plugin makes of a source; none if no plugin is named and none wants it.
    fn generate<'a>(&'a self, request: &'a PluginRequest) -> Answer<'a, Option<String>> {
        Box::pin(async move {
            match request.name.as_str() {
                "" => Ok(None),
                name => Err(SourceError::Missing(format!(
                    "plugin {name:?} is not known: Fairway has the envsubst plugin (setenv-cmp-plugin), and runs others only \
                     if it is started with --config-management-plugins DIR"
                ))),
            }
        })
    }

    /// Forgets what revisions stand for, so that the next who asks is told what is so now; and what was fetched of these
    /// revisions.
    fn refresh<'a>(&'a self, repository: &'a Repository, fetched: &'a [String]) -> Answer<'a, ()> {
        let _ = (repository, fetched);
        Box::pin(async { Ok(()) })
    }

    /// What is pushed from now on.
    fn news(&self) -> broadcast::Receiver<News>;
}

/// Sources as the engine holds them.
pub type SharedSources = Arc<dyn Sources>;

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}
