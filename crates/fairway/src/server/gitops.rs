//! The GitOps engine, wired to the API of this process, and to the Git repositories that it hosts or copies.

use std::path::PathBuf;
use std::sync::Arc;

use fairway_controller::{ClientFactory, Metrics, Shutdown, WorkspaceId};
use fairway_gitops_engine::sources::git::{GitSources, Hosted};
use fairway_gitops_engine::{Judge, Options, Proposal, USER};
use fairway_gitops_git::{Git, GitError};
use fairway_gitops_githost::seams::{Push, PushCheck, PushWatcher, RemoteWatcher};
use fairway_gitops_githost::{Host, owner};
use fairway_gitops_tree::Limits;
use fairway_kernel_apiserver::Kernel;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use tracing::error;

use crate::data_dir::DataDir;

/// How many applications are worked on at once: most of the time of a pass is spent waiting for answers.
const WORKERS: usize = 8;

/// The engine's directories.
pub(super) struct Directories {
    /// An empty home for `git`.
    home: PathBuf,
    /// Copies of repositories elsewhere.
    copies: PathBuf,
}

impl Directories {
    pub(super) fn of(data: &DataDir) -> Self {
        Self {
            home: data.path().join("git-home"),
            copies: data.path().join("git-copies"),
        }
    }
}

/// The Git host of this installation, as the engine sees it.
pub(super) struct OwnHost {
    pub host: Arc<Host>,
    pub kernel: Arc<Kernel>,
}

impl OwnHost {
    /// Where a repository is that an Application names. Only those of its own workspace are read without credentials: who may
    /// read others is for their workspace to say.
    fn directory(&self, workspace: &str, url: &str) -> Option<PathBuf> {
        let (owner, name) = slug(self.host.url(), url)?;
        let id = self.kernel.workspaces.resolve(&owner::workspace_of(owner)?)?;
        (*id == *workspace).then(|| self.host.place().path(&id, name))
    }
}

/// Owner and name in the address of a hosted repository.
fn slug<'a>(host: &str, url: &'a str) -> Option<(&'a str, &'a str)> {
    let path = url.strip_prefix(host)?.strip_prefix('/')?.trim_end_matches('/');
    let (owner, name) = path.strip_suffix(".git").unwrap_or(path).split_once('/')?;
    owner::is_repository_name(name).then_some((owner, name))
}

/// Wakes the engine when something was pushed.
struct Wake {
    sources: Arc<GitSources>,
    url: String,
}

impl PushWatcher for Wake {
    fn pushed(&self, push: &Push) -> BoxStream<'static, String> {
        let url = format!("{}/{}/{}.git", self.url, push.owner, push.wanted.name);
        self.sources.pushed(&url);
        stream::empty().boxed()
    }
}

/// Copies of repositories elsewhere, as webhooks wake them.
struct Copies(Arc<GitSources>);

impl RemoteWatcher for Copies {
    fn followers(&self, addresses: &[String]) -> Vec<String> {
        self.0.followers(addresses)
    }

    fn wake(&self, workspace: &str, addresses: &[String]) -> usize {
        self.0.look_again(workspace, addresses)
    }
}

/// Refuses pushes to repositories that ask for it, if what they declare does not render or is not admitted.
struct MustRender {
    judge: Judge,
    url: String,
}

impl MustRender {
    async fn judge(&self, push: &Push) -> Result<Vec<String>, String> {
        let mut lines = Vec::new();
        for update in &push.updates {
            let (Some(branch), Some(new)) = (update.name.as_branch(), &update.new) else {
                continue;
            };
            let workspace = WorkspaceId::parse(&push.wanted.workspace).map_err(|error| error.to_string())?;
            let unreadable = |error: GitError| format!("the commit cannot be read: {}", error.full());
            let changed = push.repository.changed_paths(update.old.as_ref(), new).await;
            let tree = push.repository.tree(new, Limits::default()).await;
            let proposal = Proposal {
                workspace,
                url: format!("{}/{}/{}.git", self.url, push.owner, push.wanted.name),
                branch: branch.to_owned(),
                is_default: branch == push.wanted.default_branch,
                commit: new.as_str().to_owned(),
                changed: changed.map_err(unreadable)?,
                tree: tree.map_err(unreadable)?,
            };
            lines.extend(self.judge.judge(proposal).await?);
        }
        Ok(lines)
    }
}

impl PushCheck for MustRender {
    fn check<'a>(&'a self, push: &'a Push) -> BoxFuture<'a, Result<Vec<String>, String>> {
        match push.wanted.limits.must_render {
            true => Box::pin(self.judge(push)),
            false => Box::pin(async { Ok(Vec::new()) }),
        }
    }
}

/// Runs the engine until the end.
pub(super) async fn run(
    clients: ClientFactory,
    directories: Directories,
    own: OwnHost,
    urls: Vec<String>,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
) {
    let git = match Git::new(fairway_gitops_git::Options::new(&directories.home)) {
        Ok(git) => git,
        Err(problem) => {
            error!(
                reason = problem.full(),
                "Applications are not synced: git cannot be used"
            );
            return;
        }
    };
    let host = Arc::clone(&own.host);
    let hosted: Hosted =
        Box::new(move |repository| own.directory(repository.workspace.as_str(), &repository.url));
    let sources = GitSources::new(git, directories.copies, hosted, clients.clients(USER));
    host.add_watcher(Arc::new(Wake {
        sources: Arc::clone(&sources),
        url: host.url().to_owned(),
    }));
    host.add_remote_watcher(Arc::new(Copies(Arc::clone(&sources))));
    let copies = Arc::clone(&sources).follow(shutdown.clone());
    let options = Options {
        clients,
        sources,
        urls,
        workers: WORKERS,
    };
    let url = host.url().to_owned();
    let take = |judge| host.add_check(Arc::new(MustRender { judge, url }));
    let engine = fairway_gitops_engine::run_with_judge(options, metrics, shutdown, take);
    tokio::join!(engine, copies);
}

#[cfg(test)]
mod tests {
    use super::slug;

    #[test]
    fn addresses_of_hosted_repositories() {
        let host = "https://git.fairway.localhost:7443";
        for (url, expected) in [
            (
                "https://git.fairway.localhost:7443/root/app.git",
                Some(("root", "app")),
            ),
            (
                "https://git.fairway.localhost:7443/org.team/app/",
                Some(("org.team", "app")),
            ),
            ("https://git.fairway.localhost:7443/root", None),
            ("https://git.fairway.localhost:7443/root/../etc", None),
            ("https://git.fairway.localhost:74430/root/app", None),
            ("https://git.fairway.localhost:7443/root/app/more", None),
            ("https://example.com/root/app", None),
        ] {
            assert_eq!(slug(host, url), expected, "{url}");
        }
    }
}
