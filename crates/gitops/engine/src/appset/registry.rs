//! Which sets there are, what each depends on, and what it was last found to stand for.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use fairway_controller::{ObjectKey, Queue};
use fairway_gitops_appset::rollout;
use fairway_gitops_appset::status::Reason;
use fairway_gitops_sync::project::normalize_url;
use serde_json::Value;
use tokio::time::Instant;

use super::listings::Look;
use crate::sources::git::wake::whereabouts;

/// How soon a rollout follows what its Applications do, and how soon the list in a status does.
const SOON: Duration = Duration::from_millis(100);
const LATER: Duration = Duration::from_secs(2);

/// How long a set rests between two looks that somebody asked for from outside.
const REST: Duration = Duration::from_secs(2);

/// Asks for the Applications of a set to be generated again.
pub(crate) const REFRESH: &str = "argocd.argoproj.io/application-set-refresh";

/// What a set stands for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prepared {
    /// Its Applications that can be written.
    pub(crate) applications: Vec<Value>,
    /// The names of those that cannot.
    pub(crate) unsure: BTreeSet<String>,
    /// Those whose own will to prune was taken from them with their will to sync.
    pub(crate) prunes: BTreeSet<String>,
    /// What is wrong with some.
    pub(crate) error: Option<(Reason, String)>,
}

#[derive(Debug, Default)]
struct Known {
    /// Of what people write on the set.
    stamp: u64,
    is_rolling: bool,
    /// The repositories that its generators look at.
    repositories: BTreeSet<String>,
    /// Where the pull requests are that they look at, on hosts that tell of them only by webhooks.
    pulls: BTreeSet<String>,
    /// When somebody last said that there is something new there.
    woken: Option<Instant>,
    prepared: Option<Arc<Prepared>>,
    /// What it was prepared from, beside what is told of when it changes.
    looks: Arc<[Look]>,
    /// What was wrong when it was last looked at, and until when that is believed.
    failure: Option<(Reason, String, Instant)>,
    /// Whether something was pushed to a repository that it looks at.
    is_pushed: bool,
    /// When what is prepared is too old.
    due: Option<Instant>,
    /// Counts what happened around the set, so that a result that was overtaken is not kept.
    changes: u64,
}

/// All sets. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    sets: Arc<Mutex<HashMap<ObjectKey, Known>>>,
    queue: Queue<ObjectKey>,
}

impl Registry {
    pub(crate) fn new(queue: Queue<ObjectKey>) -> Self {
        Self {
            sets: Arc::default(),
            queue,
        }
    }

    fn sets(&self) -> MutexGuard<'_, HashMap<ObjectKey, Known>> {
        // No method panics half-way through a change.
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a set that somebody made, changed, or only its controller wrote to.
    pub(crate) fn seen(&self, key: ObjectKey, set: &Value) {
        let stamp = stamp(set);
        let mut sets = self.sets();
        let is_new = !sets.contains_key(&key);
        let known = sets.entry(key.clone()).or_default();
        known.is_rolling = rollout::is_rolling(&set["spec"]);
        if is_new || known.stamp != stamp || is_refresh(set) {
            known.stamp = stamp;
            known.stale();
            drop(sets);
            self.queue.add(key);
        }
    }

    /// Takes in that a set is gone.
    pub(crate) fn gone(&self, key: &ObjectKey) {
        self.sets().remove(key);
    }

    /// Has sets look again at everything that they depend on.
    pub(crate) fn stale_where(&self, concerns: impl Fn(&ObjectKey) -> bool) {
        for (key, known) in self.sets().iter_mut().filter(|(key, _)| concerns(key)) {
            known.stale();
            self.queue.add(key.clone());
        }
    }

    /// Has sets look at their Applications.
    pub(crate) fn look_where(&self, concerns: impl Fn(&ObjectKey) -> bool) {
        let sets = self.sets();
        let concerned = sets.keys().filter(|key| concerns(key));
        concerned.for_each(|key| self.queue.add(key.clone()));
    }

    /// Has those sets look again whose generators look at a repository.
    pub(crate) fn pushed(&self, url: &str) {
        let url = normalize_url(url);
        for (key, known) in self.sets().iter_mut() {
            if known.repositories.contains(&url) {
                known.is_pushed = true;
                known.failure = None;
                known.changes += 1;
                self.queue.add(key.clone());
            }
        }
    }

    /// Notes that a set looks at a repository.
    pub(crate) fn asks(&self, key: &ObjectKey, url: &str) {
        if let Some(known) = self.sets().get_mut(key) {
            known.repositories.insert(normalize_url(url));
        }
    }

    /// Notes that a set looks at the pull requests of a repository elsewhere.
    pub(crate) fn asks_pulls(&self, key: &ObjectKey, url: &str) {
        if let Some(known) = self.sets().get_mut(key) {
            known.pulls.insert(whereabouts(url));
        }
    }

    /// The workspaces whose sets look at pull requests at one of these addresses.
    fn followers(&self, addresses: &[String]) -> BTreeSet<String> {
        let wanted: Vec<String> = addresses.iter().map(|address| whereabouts(address)).collect();
        let sets = self.sets();
        let concerned = sets
            .iter()
            .filter(|(_, known)| wanted.iter().any(|at| known.pulls.contains(at)));
        concerned
            .map(|(key, _)| key.workspace.as_str().to_owned())
            .collect()
    }

    /// Has those sets of a workspace look again; how many there are. Whoever says that there is something new may be anybody,
    /// so none looks more often than every two seconds.
    fn told(&self, workspace: &str, addresses: &[String]) -> usize {
        let wanted: Vec<String> = addresses.iter().map(|address| whereabouts(address)).collect();
        let now = Instant::now();
        let mut count = 0;
        for (key, known) in self.sets().iter_mut() {
            if key.workspace.as_str() != workspace || !wanted.iter().any(|at| known.pulls.contains(at)) {
                continue;
            }
            count += 1;
            known.is_pushed = true;
            known.failure = None;
            known.changes += 1;
            // One look in the future is enough for all that is said until then.
            let at = match known.woken {
                Some(next) if next > now => next,
                Some(last) => now.max(last + REST),
                None => now,
            };
            known.woken = Some(at);
            self.queue.add_after(key.clone(), at - now);
        }
        count
    }

    /// Has a set look at its Applications: at once, or in a while, together with others.
    pub(crate) fn wake(&self, key: ObjectKey, at_once: bool) {
        let Some(is_rolling) = self.sets().get(&key).map(|known| known.is_rolling) else {
            return;
        };
        match (at_once, is_rolling) {
            (true, _) => self.queue.add(key),
            (false, true) => self.queue.add_after(key, SOON),
            (false, false) => self.queue.add_after(key, LATER),
        }
    }

    /// What a set was found to stand for, and how good that is.
    pub(crate) fn prepared(&self, key: &ObjectKey) -> Before {
        let mut sets = self.sets();
        let known = sets.entry(key.clone()).or_default();
        let (begun, now) = (known.changes, Instant::now());
        if let Some((reason, why, until)) = known.failure.as_ref().filter(|(_, _, until)| *until > now) {
            return Before::Bad(*reason, why.clone(), *until - now);
        }
        let Some(prepared) = known.prepared.clone() else {
            // What it will ask for is noted anew.
            known.repositories.clear();
            known.pulls.clear();
            return Before::Nothing { begun };
        };
        match !known.is_pushed && known.due.is_none_or(|due| due > now) {
            true => Before::Good(prepared, known.due.map(|due| due - now)),
            false => {
                let looks = Arc::clone(&known.looks);
                Before::Perhaps {
                    begun,
                    prepared,
                    looks,
                }
            }
        }
    }

    /// Remembers what a set stands for, for so long, unless something has happened since it was begun to be found out.
    pub(crate) fn remember(
        &self,
        key: &ObjectKey,
        begun: u64,
        (prepared, looks): (Arc<Prepared>, Vec<Look>),
        valid: Option<Duration>,
    ) {
        if let Some(known) = self.sets().get_mut(key)
            && known.changes == begun
        {
            known.prepared = Some(prepared);
            known.looks = looks.into();
            (known.is_pushed, known.failure) = (false, None);
            known.due = valid.map(|valid| Instant::now() + valid);
        }
    }

    /// Remembers what is wrong with a set, for so long.
    pub(crate) fn remember_failure(&self, key: &ObjectKey, begun: u64, (reason, why, valid): Failed) {
        if let Some(known) = self.sets().get_mut(key)
            && known.changes == begun
        {
            known.prepared = None;
            known.failure = Some((reason, why, Instant::now() + valid));
        }
    }

    /// Has everything looked at again, which is asked for on the set itself.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        if let Some(known) = self.sets().get_mut(key) {
            known.stale();
        }
    }
}

/// The way to the sets for who hears of pull requests elsewhere: they are there while the controller runs.
#[derive(Debug, Clone, Default)]
pub struct PullFollowers(Arc<OnceLock<Registry>>);

impl PullFollowers {
    pub(crate) fn are(&self, registry: &Registry) {
        let _ = self.0.set(registry.clone());
    }

    /// The workspaces whose sets look at pull requests at one of these addresses.
    pub fn followers(&self, addresses: &[String]) -> Vec<String> {
        let found = self.0.get().map(|registry| registry.followers(addresses));
        found.into_iter().flatten().collect()
    }

    /// Has those of a workspace look again; how many there are.
    pub fn wake(&self, workspace: &str, addresses: &[String]) -> usize {
        self.0
            .get()
            .map_or(0, |registry| registry.told(workspace, addresses))
    }
}

/// What is wrong, and how soon to look again.
pub(crate) type Failed = (Reason, String, Duration);

/// What was found out before.
pub(crate) enum Before {
    /// What is wrong, and will be for so long if nothing happens.
    Bad(Reason, String, Duration),
    /// It still holds, for so long.
    Good(Arc<Prepared>, Option<Duration>),
    /// It holds if these looks still show the same.
    Perhaps {
        /// What had happened around the set by now.
        begun: u64,
        /// What it was found to stand for.
        prepared: Arc<Prepared>,
        /// What that was made of.
        looks: Arc<[Look]>,
    },
    /// Nothing, or nothing that holds.
    Nothing {
        /// What had happened around the set by now.
        begun: u64,
    },
}

impl Known {
    fn stale(&mut self) {
        (self.prepared, self.failure) = (None, None);
        self.changes += 1;
    }
}

/// Whether somebody wants everything looked at again.
pub(crate) fn is_refresh(set: &Value) -> bool {
    set["metadata"]["annotations"].get(REFRESH).is_some()
}

/// A digest of what people write on a set; what its controller writes is not in it.
fn stamp(set: &Value) -> u64 {
    let metadata = &set["metadata"];
    let mut annotations = metadata["annotations"].clone();
    if let Some(all) = annotations.as_object_mut() {
        all.shift_remove(REFRESH);
    }
    let mut hasher = DefaultHasher::new();
    for part in [
        &set["spec"],
        &metadata["uid"],
        &metadata["labels"],
        &metadata["finalizers"],
        &metadata["deletionTimestamp"],
        &annotations,
    ] {
        part.to_string().hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use fairway_controller::WorkspaceId;

    use super::*;

    #[test]
    fn who_looks_at_pull_requests_hears_of_them() {
        let registry = Registry::new(Queue::default());
        let followers = PullFollowers::default();
        let told = ["git@example.com:team/app.git".to_owned()];
        assert_eq!(
            (followers.followers(&told).len(), followers.wake("root", &told)),
            (0, 0),
            "nobody runs yet"
        );
        followers.are(&registry);
        let other = WorkspaceId::parse("2a8f0a9b1c3d4e5f").unwrap();
        for (workspace, name, url) in [
            (WorkspaceId::root_ref(), "a", "https://example.com/team/app"),
            (WorkspaceId::root_ref(), "b", "https://example.com/team/other"),
            (&other, "c", "https://example.com:8443/Team/App"),
        ] {
            let key = ObjectKey::new(workspace, "argocd", name);
            registry.seen(key.clone(), &Value::Null);
            registry.asks_pulls(&key, url);
        }
        assert_eq!(followers.followers(&told), ["2a8f0a9b1c3d4e5f", "root"]);
        assert_eq!(followers.wake("root", &told), 1, "those of the workspace alone");
        assert_eq!(followers.wake("nowhere", &told), 0);
        let key = ObjectKey::new(WorkspaceId::root_ref(), "argocd", "a");
        let first = registry.sets()[&key].woken.unwrap();
        for _ in 0..3 {
            followers.wake("root", &told);
        }
        let last = registry.sets()[&key].woken.unwrap();
        assert_eq!(
            last,
            first + REST,
            "it is not looked at more often, whoever says what"
        );
    }
}
