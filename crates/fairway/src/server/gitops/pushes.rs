//! Where a push meets the engine: it is woken, what becomes of the push is told to who pushed, and pull requests hear what they would
//! do.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use fairway_controller::WorkspaceId;
use fairway_gitops_engine::sources::git::GitSources;
use fairway_gitops_engine::sources::{Moved, News};
use fairway_gitops_engine::{Answers, Plans, Proposal, Wishes};
use fairway_gitops_githost::Host;
use fairway_gitops_githost::proposals::{self, Pull, Remark};
use fairway_gitops_githost::seams::{Push, PushWatcher, Telling};
use fairway_gitops_view::plan;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::sync::Semaphore;
use tracing::warn;

/// Tells the engine of pushes, and pushers of the engine. Whoever may push to a repository hears what becomes of it in the
/// Applications of its workspace, whether he may read these or not: it is his commit that they deploy.
pub(super) struct Pushes {
    pub(super) sources: Arc<GitSources>,
    pub(super) answers: Answers,
    /// It owns the watchers.
    pub(super) host: Weak<Host>,
    pub(super) plans: Plans,
    /// Pull requests that are planned at once.
    pub(super) turns: Arc<Semaphore>,
    /// Pull requests that wait for it: a second reason to plan one that waits is none.
    pub(super) waiting: Arc<Mutex<HashSet<Waiting>>>,
}

/// Workspace, repository and number of a pull request.
type Waiting = (String, String, u64);

impl PushWatcher for Pushes {
    fn pushed(&self, push: &Push) -> BoxStream<'static, String> {
        let Some(host) = self.host.upgrade() else {
            return stream::empty().boxed();
        };
        let mut news = news(host.url(), push);
        let Some((telling, workspace)) = push
            .telling()
            .zip(WorkspaceId::parse(&push.wanted.workspace).ok())
        else {
            self.sources.pushed(news);
            return stream::empty().boxed();
        };
        let expected = self.answers.expect();
        news.asked_by = expected.number;
        if !self.sources.pushed(news) {
            return stream::empty().boxed();
        }
        let Telling { is_brief, limit } = telling;
        expected.lines(Wishes {
            workspace,
            limit,
            is_brief,
        })
    }

    fn pulls_changed(&self, owner: &str, name: &str) {
        if let Some(host) = self.host.upgrade() {
            self.sources
                .pushed(News::of(&format!("{}/{owner}/{name}.git", host.url())));
        }
    }

    fn proposed(&self, pull: &Pull) {
        let Some(host) = self.host.upgrade() else {
            return;
        };
        let name = (
            pull.wanted.workspace.to_string(),
            pull.wanted.name.to_string(),
            pull.number,
        );
        if !self.lock().insert(name.clone()) {
            return;
        }
        let (plans, turns, pull) = (self.plans.clone(), Arc::clone(&self.turns), pull.clone());
        let waiting = Arc::clone(&self.waiting);
        tokio::spawn(async move {
            // One after the other: whoever moves many branches at once waits for his plans.
            let turn = turns.acquire().await;
            waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&name);
            if turn.is_ok() {
                judge(plans, host, pull).await;
            }
        });
    }
}

impl Pushes {
    fn lock(&self) -> MutexGuard<'_, HashSet<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says in a pull request what it would do: a status on its head, and one comment that is kept up to date.
async fn judge(plans: Plans, host: Arc<Host>, mut pull: Pull) {
    // It may have moved, or been merged, while it waited.
    let Some((base, head)) = proposals::find(&pull.repository, pull.number).await else {
        return;
    };
    (pull.base, pull.head) = (base, head);
    let Ok(workspace) = WorkspaceId::parse(&pull.wanted.workspace) else {
        return;
    };
    let proposal = Proposal {
        url: format!("{}/{}/{}.git", host.url(), pull.owner, pull.wanted.name),
        base: pull.base.clone(),
        head: pull.head.as_str().to_owned(),
    };
    let plans = plans.of(&workspace, &proposal).await;
    let (state, description) = plan::status(&plans);
    let remark = Remark {
        context: "fairway/plan".to_owned(),
        state: state.to_owned(),
        description,
    };
    let body = plan::comment(&plans, pull.head.as_str());
    for written in [
        pull.remark(&host, remark).await,
        pull.comment(&host, plan::MARK, body).await,
    ] {
        if let Err(why) = written {
            warn!(
                why,
                number = pull.number,
                "the plan of a pull request could not be kept"
            );
        }
    }
}

/// What the engine hears of a push.
fn news(host: &str, push: &Push) -> News {
    let moved = push.updates.iter().filter_map(|update| {
        let (old, new) = update.old.as_ref().zip(update.new.as_ref())?;
        Some(Moved {
            old: old.as_str().to_owned(),
            new: new.as_str().to_owned(),
        })
    });
    News {
        url: format!("{host}/{}/{}.git", push.owner, push.wanted.name),
        moved: moved.collect(),
        asked_by: 0,
    }
}
