//! Webhooks of repositories, in Gitea's form: who is to be told of what, and that he is told.
//!
//! ```text
//! something happens → hooks that want to know (a Secret) → a delivery for each, on disk (outbox)
//!     → acknowledged → sent (deliver) → again after a while if it failed → history
//! ```
//!
//! A delivery is on disk before whatever it tells of is acknowledged, and stays there until it has arrived or was given up.
//! So nothing is lost when the server ends, and something may arrive twice; deliveries have ids.
//!
//! [`hook`], [`payload`]'s shapes, [`message`] and [`deliver::after`] decide and do nothing else.

pub(crate) mod deliver;
pub(crate) mod hook;
pub(crate) mod message;
pub(crate) mod outbox;
pub(crate) mod payload;
pub(crate) mod store;

use fairway_controller::{ObjectKey, Queue, WorkspaceId};
use fairway_gitops_git::Repository;
use fairway_outbound::Outbound;
use serde_json::Value;
use tracing::warn;

use crate::catalog::Wanted;
use crate::host::Host;
use hook::Hook;
use outbox::Task;

/// What happens in a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// References have moved.
    Push,
    /// A branch or tag is new.
    Create,
    /// A branch or tag is gone.
    Delete,
    /// A pull request was opened, closed, merged, edited.
    PullRequest,
    /// The head of a pull request has moved.
    PullRequestSync,
    /// A pull request has other labels.
    PullRequestLabel,
    /// Somebody commented on a pull request.
    PullRequestComment,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Push,
        Self::Create,
        Self::Delete,
        Self::PullRequest,
        Self::PullRequestSync,
        Self::PullRequestLabel,
        Self::PullRequestComment,
    ];

    /// Its name where hooks choose.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Create => "create",
            Self::Delete => "delete",
            Self::PullRequest => "pull_request",
            Self::PullRequestSync => "pull_request_sync",
            Self::PullRequestLabel => "pull_request_label",
            Self::PullRequestComment => "pull_request_comment",
        }
    }

    /// Its name for those who receive it.
    pub(crate) fn event(self) -> &'static str {
        match self {
            Self::PullRequestSync | Self::PullRequestLabel => "pull_request",
            Self::PullRequestComment => "issue_comment",
            other => other.name(),
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Something that has happened.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) kind: Kind,
    /// The branch that it is about, for hooks that want to hear of some only.
    pub(crate) branch: Option<String>,
    pub(crate) payload: Value,
}

/// The hooks of all repositories.
#[derive(Debug)]
pub(crate) struct Hooks {
    outbound: Outbound,
    queue: Queue<ObjectKey>,
}

impl Hooks {
    pub(crate) fn new(outbound: Outbound) -> Self {
        Self {
            outbound,
            queue: Queue::default(),
        }
    }

    pub(crate) fn outbound(&self) -> &Outbound {
        &self.outbound
    }

    /// Has a delivery sent.
    fn wake(&self, wanted: &Wanted, id: &str) {
        if let Ok(workspace) = WorkspaceId::parse(&wanted.workspace) {
            self.queue.add(ObjectKey {
                workspace,
                namespace: wanted.name.clone(),
                name: id.to_owned(),
            });
        }
    }
}

/// The hooks of a repository that are to be told something.
pub(crate) async fn listening(host: &Host, wanted: &Wanted) -> Vec<Hook> {
    match store::list(host.client_at(&wanted.workspace), wanted).await {
        Ok(hooks) => hooks.into_iter().filter(|hook| hook.active).collect(),
        Err(error) => {
            warn!(repository = wanted.name, %error, "webhooks are not told: they cannot be read");
            Vec::new()
        }
    }
}

/// Puts deliveries of an event on disk, for all of these hooks that want it, and has them sent.
pub(crate) async fn announce(
    host: &Host,
    wanted: &Wanted,
    repository: &Repository,
    hooks: &[Hook],
    event: &Event,
) {
    for hook in hooks
        .iter()
        .filter(|hook| hook.wants(event.kind, event.branch.as_deref()))
    {
        let _ = enqueue(
            host,
            wanted,
            repository,
            hook.id,
            event.kind,
            event.payload.to_string(),
        )
        .await;
    }
}

/// Puts one delivery on disk, and has it sent; its id.
pub(crate) async fn enqueue(
    host: &Host,
    wanted: &Wanted,
    repository: &Repository,
    hook: u64,
    kind: Kind,
    payload: String,
) -> Result<String, std::io::Error> {
    let task = Task::new(hook, kind, payload)?;
    let id = task.id.clone();
    if let Err(error) = outbox::put(repository, task).await {
        warn!(repository = wanted.name, %error, "a webhook is not told: the delivery cannot be written");
        return Err(error);
    }
    host.hooks().wake(wanted, &id);
    Ok(id)
}
