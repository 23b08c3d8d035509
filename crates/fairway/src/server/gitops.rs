//! The GitOps engine, wired to the API of this process, and to the Git repositories that it hosts or copies.

mod commits;
mod guests;
mod pushes;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use fairway_controller::served::Served;
use fairway_controller::{ClientFactory, Metrics, Shutdown, WorkspaceId};
use fairway_gitops_appset::generator::PullRequest;
use fairway_gitops_engine::appset::PullFollowers;
use fairway_gitops_engine::appset::pulls::{Asked, HostedPulls, Pulls as OpenPulls, PullsError};
use fairway_gitops_engine::sources::AllSources;
use fairway_gitops_engine::sources::git::{self, GitSources, Hosted};
use fairway_gitops_engine::sources::plugins::Plugins;
use fairway_gitops_engine::{
    Answers, Candidate, Judge, Options, Plans, ProjectTokens, Proposal, Pulls, Service, USER,
};
use fairway_gitops_git::{Git, GitError, Repository};
use fairway_gitops_githost::seams::{Push, PushCheck, RemoteWatcher};
use fairway_gitops_githost::{Host, owner, proposals};
use fairway_gitops_tree::Limits;
use fairway_kernel_apiserver::Kernel;
use fairway_outbound::{AllowedHosts, Outbound};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;
use tracing::error;

use crate::data_dir::DataDir;
use commits::KnownCommits;
use pushes::Pushes;

/// How many applications are worked on at once: most of the time of a pass is spent waiting for answers.
const WORKERS: usize = 8;

/// The engine's directories.
pub(super) struct Directories {
    /// An empty home for `git`.
    home: PathBuf,
    /// Copies of repositories elsewhere.
    copies: PathBuf,
    /// Charts that were fetched.
    charts: PathBuf,
    /// The certificate by which this installation is known.
    authority: PathBuf,
    /// Where the definitions of plugins are, if the operator allows any.
    plugins: Option<PathBuf>,
}

impl Directories {
    pub(super) fn of(data: &DataDir, plugins: Option<PathBuf>) -> Self {
        Self {
            home: data.path().join("git-home"),
            copies: data.path().join("git-copies"),
            charts: data.path().join("charts"),
            authority: data.pki("ca").0,
            plugins,
        }
    }
}

/// The Git host of this installation, as the engine sees it.
pub(super) struct OwnHost {
    pub host: Arc<Host>,
    pub kernel: Arc<Kernel>,
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where messages may go.
    pub allowed_hosts: AllowedHosts,
}

impl OwnHost {
    /// How repositories of other workspaces are reached: over the web listener, with a token, as from outside. The
    /// certificate is read each time, since it may be replaced.
    fn seen_from_outside(&self, authority: PathBuf) -> git::OwnHost {
        let url = self.host.url().to_owned();
        let place = url.trim_start_matches("https://");
        let address = match self.listen.ip() {
            ip if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            ip => ip,
        };
        let address = match address {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        git::OwnHost {
            at: format!("{place}:{address}"),
            authority: Box::new(move || std::fs::read_to_string(&authority).ok()),
            url,
        }
    }

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

/// The pull requests of the Git host, for sets of the workspace that a repository belongs to.
struct OwnPulls(Arc<OwnHost>);

impl OwnPulls {
    /// The workspace of a repository, if it is one of this host that the asker may read.
    fn workspace(&self, asked: &Asked) -> Option<String> {
        let own = &self.0;
        let url = format!("{}/{}/{}.git", asked.api, asked.owner, asked.name);
        own.directory(asked.workspace.as_str(), &url)?;
        Some(asked.workspace.as_str().to_owned())
    }
}

impl HostedPulls for OwnPulls {
    fn address(&self, asked: &Asked) -> Option<String> {
        self.workspace(asked)?;
        Some(format!(
            "{}/{}/{}.git",
            self.0.host.url(),
            asked.owner,
            asked.name
        ))
    }

    fn open<'a>(&'a self, asked: &'a Asked) -> OpenPulls<'a> {
        Box::pin(async move {
            let missing =
                || PullsError::NotFound(format!("there is no repository {}/{}", asked.owner, asked.name));
            let workspace = self.workspace(asked).ok_or_else(missing)?;
            let found = self.0.host.open_pulls(&workspace, &asked.name).await;
            let found = found.map_err(PullsError::Failed)?.ok_or_else(missing)?;
            let shown = found.into_iter().map(|pull| PullRequest {
                number: pull.number,
                title: pull.title,
                branch: pull.head,
                target_branch: pull.base,
                head: pull.head_commit,
                labels: pull.labels,
                author: pull.author,
            });
            Ok(shown.collect())
        })
    }
}

/// Pull requests of hosted repositories.
fn pulls(own: &Arc<OwnHost>, git: &Git) -> Pulls {
    let (own, git) = (Arc::clone(own), git.clone());
    Arc::new(move |workspace, url, number| {
        let directory = own.directory(workspace.as_str(), &url);
        let repository = directory.and_then(|path| Repository::open(&git, path).ok());
        async move {
            let (base, head) = proposals::find(&repository?, number).await?;
            Some(Proposal {
                url,
                base,
                head: head.as_str().to_owned(),
            })
        }
        .boxed()
    })
}

/// Copies of repositories elsewhere, and sets that look at pull requests there, as webhooks wake them.
struct Followers {
    copies: Arc<GitSources>,
    sets: PullFollowers,
}

impl RemoteWatcher for Followers {
    fn followers(&self, addresses: &[String]) -> Vec<String> {
        let mut all = self.copies.followers(addresses);
        all.extend(self.sets.followers(addresses));
        all
    }

    fn wake(&self, workspace: &str, addresses: &[String]) -> usize {
        self.copies.look_again(workspace, addresses) + self.sets.wake(workspace, addresses)
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
            let candidate = Candidate {
                workspace,
                url: format!("{}/{}/{}.git", self.url, push.owner, push.wanted.name),
                branch: branch.to_owned(),
                is_default: branch == push.wanted.default_branch,
                commit: new.as_str().to_owned(),
                changed: changed.map_err(unreadable)?,
                tree: tree.map_err(unreadable)?,
            };
            lines.extend(self.judge.judge(candidate).await?);
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
    served: Served,
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
    let own = Arc::new(own);
    let (host, open_pulls) = (Arc::clone(&own.host), OwnPulls(Arc::clone(&own)));
    let for_sources = Arc::clone(&own);
    let hosted: Hosted =
        Box::new(move |repository| for_sources.directory(repository.workspace.as_str(), &repository.url));
    let from_outside = own.seen_from_outside(directories.authority);
    let user = clients.clients(USER);
    let sources = GitSources::new(
        git.clone(),
        directories.copies,
        hosted,
        Some(from_outside),
        user.clone(),
    );
    // In the directory for everybody's temporary files: whoever a plugin runs as does not see into ours.
    let plugins = directories
        .plugins
        .map(|path| Plugins::load(&path, std::env::temp_dir()));
    let plugins = match plugins.transpose() {
        Ok(plugins) => plugins,
        Err(why) => {
            error!(
                why,
                "no plugins are run: --config-management-plugins cannot be read"
            );
            None
        }
    };
    let all = AllSources::new(Arc::clone(&sources), directories.charts, plugins, user.clone());
    let (answers, plans) = (Answers::default(), Plans::default());
    let guests = guests::ProjectRoles(ProjectTokens::new(user));
    own.kernel.guests.add(Arc::new(guests));
    let service = Service {
        plans: plans.clone(),
        pulls: pulls(&own, &git),
    };
    if let Err(problem) = own.kernel.serve_api(&service) {
        error!(%problem, "the engine does not answer requests");
    }
    host.add_watcher(Arc::new(Pushes {
        sources: Arc::clone(&sources),
        answers: answers.clone(),
        host: Arc::downgrade(&host),
        plans: plans.clone(),
        turns: Arc::new(Semaphore::new(1)),
        waiting: Arc::default(),
    }));
    let pull_followers = PullFollowers::default();
    host.add_remote_watcher(Arc::new(Followers {
        copies: sources,
        sets: pull_followers.clone(),
    }));
    let elsewhere = Arc::clone(&all).follow(shutdown.clone());
    let notifications = fairway_gitops_notifier::Options {
        clients: clients.clone(),
        outbound: Outbound::new(own.allowed_hosts.clone()),
        kinds: served.changes(),
        commits: Arc::new(KnownCommits(Arc::clone(&all))),
    };
    let notifier = fairway_gitops_notifier::run(notifications, Arc::clone(&metrics), shutdown.clone());
    let options = Options {
        clients,
        sources: all,
        pulls: Some(Arc::new(open_pulls)),
        pull_followers,
        urls,
        workers: WORKERS,
        served: Some(served),
        answers,
        plans,
    };
    let url = host.url().to_owned();
    let take = |judge| host.add_check(Arc::new(MustRender { judge, url }));
    let engine = fairway_gitops_engine::run_with_judge(options, metrics, shutdown, take);
    tokio::join!(engine, elsewhere, notifier);
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
