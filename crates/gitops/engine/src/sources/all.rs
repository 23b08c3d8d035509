//! Every kind of source behind one port: charts and images to the one, everything else to Git.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::{Clients, Shutdown, WorkspaceId};
use fairway_gitops_tree::Tree;
use tokio::sync::broadcast;

use super::charts::{self, ChartSources};
use super::git::GitSources;
use super::plugins::Plugins;
use super::{
    Answer, Archive, DependencyRequest, News, PluginRequest, Repository, RevisionMetadata, SourceError,
    Sources,
};

/// Every kind of source.
pub struct AllSources {
    git: Arc<GitSources>,
    charts: Arc<ChartSources>,
    plugins: Option<Plugins>,
}

impl AllSources {
    /// Repositories of Git, and of charts, which are kept in a directory; and plugins, if some are allowed.
    pub fn new(
        git: Arc<GitSources>,
        charts: PathBuf,
        plugins: Option<Plugins>,
        clients: Clients,
    ) -> Arc<Self> {
        let charts = ChartSources::new(charts, clients, git.teller());
        Arc::new(Self { git, charts, plugins })
    }

    /// Looks at the repositories of charts that are in use, before it is time to.
    pub async fn look(&self) {
        self.charts.look_round(|| false).await;
    }

    /// Looks again and again at what is elsewhere, until the end.
    pub async fn follow(self: Arc<Self>, shutdown: Shutdown) {
        let (git, charts) = (Arc::clone(&self.git), Arc::clone(&self.charts));
        tokio::join!(git.follow(shutdown.clone()), charts.follow(shutdown));
    }
}

fn is_charts(repository: &Repository) -> bool {
    !repository.chart.is_empty() || charts::is_image(repository)
}

impl Sources for AllSources {
    fn resolve<'a>(&'a self, repository: &'a Repository, revision: &'a str) -> Answer<'a, String> {
        match is_charts(repository) {
            true => Box::pin(self.charts.resolve(repository, revision)),
            false => self.git.resolve(repository, revision),
        }
    }

    fn tree<'a>(&'a self, repository: &'a Repository, commit: &'a str) -> Answer<'a, Tree> {
        match is_charts(repository) {
            true => Box::pin(self.charts.tree(repository, commit, false)),
            false => self.git.tree(repository, commit),
        }
    }

    fn changed<'a>(
        &'a self,
        repository: &'a Repository,
        old: &'a str,
        new: &'a str,
    ) -> Answer<'a, Vec<String>> {
        match is_charts(repository) {
            // Another version is another chart.
            true => Box::pin(async move {
                Err(SourceError::Missing(format!(
                    "what is different between {old} and {new} of {repository} is not known"
                )))
            }),
            false => self.git.changed(repository, old, new),
        }
    }

    fn metadata<'a>(&'a self, repository: &'a Repository, commit: &'a str) -> Answer<'a, RevisionMetadata> {
        match is_charts(repository) {
            true => Box::pin(self.charts.metadata(repository, commit)),
            false => self.git.metadata(repository, commit),
        }
    }

    fn renew<'a>(&'a self, repository: &'a Repository, oldest: Duration) -> Answer<'a, ()> {
        match is_charts(repository) {
            // They are looked at again whenever somebody asks.
            true => Box::pin(async { Ok(()) }),
            false => self.git.renew(repository, oldest),
        }
    }

    fn merged<'a>(&'a self, repository: &'a Repository, base: &'a str, head: &'a str) -> Answer<'a, String> {
        self.git.merged(repository, base, head)
    }

    fn chart<'a>(
        &'a self,
        repository: &'a Repository,
        version: &'a str,
        passes_credentials: bool,
    ) -> Answer<'a, Tree> {
        match is_charts(repository) {
            true => Box::pin(self.charts.tree(repository, version, passes_credentials)),
            false => self.git.tree(repository, version),
        }
    }

    fn dependency<'a>(&'a self, wanted: &'a DependencyRequest) -> Answer<'a, Archive> {
        Box::pin(self.charts.dependency(wanted))
    }

    fn names<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        project: &'a str,
    ) -> Answer<'a, BTreeMap<String, String>> {
        Box::pin(self.charts.names(workspace, project))
    }

    fn document<'a>(&'a self, workspace: &'a WorkspaceId, url: &'a str) -> Answer<'a, String> {
        Box::pin(self.charts.document(workspace, url))
    }

    fn generate<'a>(&'a self, request: &'a PluginRequest) -> Answer<'a, Option<String>> {
        match &self.plugins {
            Some(plugins) => Box::pin(plugins.generate(request)),
            None => self.git.generate(request),
        }
    }

    fn refresh<'a>(&'a self, repository: &'a Repository, fetched: &'a [String]) -> Answer<'a, ()> {
        match is_charts(repository) {
            true => Box::pin(async move {
                self.charts.refresh(repository, fetched).await;
                Ok(())
            }),
            false => self.git.refresh(repository, fetched),
        }
    }

    fn news(&self) -> broadcast::Receiver<News> {
        self.git.news()
    }
}
