//! The GitOps engine, wired to the API of this process and to Git repositories in the data directory.

use std::path::PathBuf;
use std::sync::Arc;

use fairway_controller::{ClientFactory, Metrics, Shutdown};
use fairway_gitops_engine::sources::git::{GitSources, Hosted};
use fairway_gitops_engine::{Options, USER};
use fairway_gitops_git::Git;
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

/// Runs the engine until the end.
pub(super) async fn run(
    clients: ClientFactory,
    directories: Directories,
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
    // Repositories of this installation are found here once it hosts some.
    let hosted: Hosted = Box::new(|_| None);
    let sources = GitSources::new(git, directories.copies, hosted, clients.clients(USER));
    let copies = Arc::clone(&sources).follow(shutdown.clone());
    let options = Options {
        clients,
        sources,
        urls,
        workers: WORKERS,
    };
    tokio::join!(fairway_gitops_engine::run(options, metrics, shutdown), copies);
}
