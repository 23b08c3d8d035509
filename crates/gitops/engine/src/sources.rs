//! What the engine needs of whoever has the manifests: a port, so that the engine knows neither Git nor registries.

pub mod git;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

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
    fn refresh<'a>(&'a self, _: &'a Repository, _oldest: Duration) -> Answer<'a, ()> {
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
