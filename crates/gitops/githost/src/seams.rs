//! Where others join a push: before references move, to judge it; after they have moved, to tell what follows.

use std::sync::Arc;

use fairway_gitops_git::{ObjectId, RefName, Repository};
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::access::Caller;
use crate::catalog::Wanted;
use crate::proposals::Pull;
pub use crate::push::telling::Telling;
use crate::push::telling::telling;

/// A reference that is to move, or has moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// Which.
    pub name: RefName,
    /// Where it was; none if it is new.
    pub old: Option<ObjectId>,
    /// Where it is; none if it goes.
    pub new: Option<ObjectId>,
}

/// A push, or anything else that moves references: a commit through the REST API, a merge, a mirror that has followed.
#[derive(Debug, Clone)]
pub struct Push {
    /// The repository's object.
    pub wanted: Arc<Wanted>,
    /// The owner's name.
    pub owner: String,
    /// The repository; a check sees what has come, and nobody else does yet.
    pub repository: Repository,
    /// What moves.
    pub updates: Vec<Update>,
    /// Who does it.
    pub pusher: Caller,
    /// What he gave with `git push -o`.
    pub options: Vec<String>,
}

impl Push {
    /// What the pusher is told of what follows, if anything.
    pub fn telling(&self) -> Option<Telling> {
        telling(self.wanted.push_answers, &self.options)
    }
}

/// Judges pushes.
pub trait PushCheck: Send + Sync {
    /// Lines for the pusher, and whether the push may go on. An error refuses all of it.
    fn check<'a>(&'a self, push: &'a Push) -> BoxFuture<'a, Result<Vec<String>, String>>;
}

/// Follows pushes. References have moved when it is called, which must return at once.
pub trait PushWatcher: Send + Sync {
    /// Lines for the pusher, as they come; `git push` ends when the stream does. Often nobody listens, and the stream is
    /// dropped at once or when the pusher leaves: what follows from a push must not depend on it.
    fn pushed(&self, push: &Push) -> BoxStream<'static, String>;

    /// That pull requests of a repository were made, changed or closed. It must return at once.
    fn pulls_changed(&self, _owner: &str, _name: &str) {}

    /// A pull request was opened, or its branch has moved. It must return at once.
    fn proposed(&self, _pull: &Pull) {}
}

/// Follows repositories elsewhere, of which a webhook may tell that they were pushed to.
pub trait RemoteWatcher: Send + Sync {
    /// The ids of the workspaces in which somebody reads one of these addresses.
    fn followers(&self, addresses: &[String]) -> Vec<String>;

    /// Has those of a workspace look again who read one of these addresses; how many there are. It must return at once, and
    /// not look more often than is harmless: whoever calls may be anybody.
    fn wake(&self, workspace: &str, addresses: &[String]) -> usize;
}
