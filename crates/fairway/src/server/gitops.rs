//! The GitOps engine, wired to the API of this process, and to the Git repositories that it hosts or copies.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use fairway_controller::{ClientFactory, Metrics, Shutdown};
use fairway_gitops_engine::sources::AllSources;
use fairway_gitops_engine::sources::git::{self, GitSources, Hosted};
use fairway_gitops_engine::sources::plugins::Plugins;
use fairway_gitops_engine::{Options, USER};
use fairway_gitops_git::Git;
use fairway_gitops_githost::seams::{Push, PushWatcher};
use fairway_gitops_githost::{Host, owner};
use fairway_kernel_apiserver::Kernel;
use futures::StreamExt as _;
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
}

impl OwnHost {
    /// How repositories of other workspaces are reached: over the web listener, with a token, as from outside. The
    /// certificate is read each time, since it may be replaced.
    fn from_outside(&self, authority: PathBuf) -> git::OwnHost {
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
    let from_outside = own.from_outside(directories.authority);
    let hosted: Hosted =
        Box::new(move |repository| own.directory(repository.workspace.as_str(), &repository.url));
    let user = clients.clients(USER);
    let sources = GitSources::new(git, directories.copies, hosted, Some(from_outside), user.clone());
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
    let all = AllSources::new(Arc::clone(&sources), directories.charts, plugins, user);
    host.add_watcher(Arc::new(Wake {
        sources,
        url: host.url().to_owned(),
    }));
    let elsewhere = Arc::clone(&all).follow(shutdown.clone());
    let options = Options {
        clients,
        sources: all,
        urls,
        workers: WORKERS,
    };
    tokio::join!(fairway_gitops_engine::run(options, metrics, shutdown), elsewhere);
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
