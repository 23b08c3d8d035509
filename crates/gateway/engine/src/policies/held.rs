//! What was seen of policies and of the Secrets that they read.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fairway_controller::ObjectKey;
use fairway_gateway_policy::object::{Kind, Policy, PolicyKey};
use fairway_gateway_policy::portal::MANAGED_BY;
use serde_json::Value;

use super::KINDS;
use crate::world::{Current, current};

/// Selects the Secrets that hold API keys; [`MANAGED_BY`] says the same.
pub(crate) const SECRETS: &str = "authorino.kuadrant.io/managed-by=authorino";

/// Shared by the watches, which fill it, and the conductor.
pub(crate) struct Held {
    seen: Mutex<Seen>,
    needed: tokio::sync::watch::Sender<bool>,
}

#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) policies: BTreeMap<PolicyKey, One>,
    synced: HashSet<Kind>,
    secrets: BTreeMap<ObjectKey, Value>,
    secrets_synced: bool,
    /// Workspaces whose Secrets have changed since somebody asked.
    changed: BTreeSet<String>,
}

/// A policy, and the object that it was read from, without its status.
pub(crate) struct One {
    pub(crate) policy: Policy,
    pub(crate) key: ObjectKey,
    pub(crate) current: Current,
    pub(crate) object: Value,
}

impl Held {
    pub(crate) fn new() -> Self {
        Self {
            seen: Mutex::default(),
            needed: tokio::sync::watch::channel(false).0,
        }
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the first policy.
    pub(crate) async fn until_needed(&self) {
        // The sender lives as long as this does.
        let _ = self.needed.subscribe().wait_for(|needed| *needed).await.is_ok();
    }

    /// Whether everything has been listed. Before that a rule could be open that a policy guards.
    pub(crate) fn is_synced(&self) -> bool {
        let needed = *self.needed.borrow();
        let seen = self.seen();
        KINDS.iter().all(|kind| seen.synced.contains(kind)) && (!needed || seen.secrets_synced)
    }

    /// `false`: nothing has changed but the status.
    pub(crate) fn put(&self, kind: Kind, key: ObjectKey, mut object: Value) -> bool {
        self.needed
            .send_if_modified(|needed| !std::mem::replace(needed, true));
        let current = current(&mut object);
        let policy = Policy::read(key.workspace.as_str(), kind, &object);
        let mut seen = self.seen();
        let before = seen.policies.get(&policy.key);
        let is_news = before.is_none_or(|before| !before.current.is_same(&current));
        let one = One {
            key,
            current,
            object,
            policy,
        };
        seen.policies.insert(one.policy.key.clone(), one);
        is_news
    }

    pub(crate) fn remove(&self, kind: Kind, key: &ObjectKey) -> bool {
        self.seen().policies.remove(&policy_key(kind, key)).is_some()
    }

    pub(crate) fn listed(&self, kind: Kind, brought: &BTreeSet<ObjectKey>) {
        let mut seen = self.seen();
        seen.policies
            .retain(|held, one| held.kind != kind || brought.contains(&one.key));
        seen.synced.insert(kind);
    }

    pub(crate) fn put_secret(&self, key: ObjectKey, object: Value) {
        debug_assert_eq!(SECRETS.split_once('='), Some(MANAGED_BY));
        let mut seen = self.seen();
        seen.changed.insert(key.workspace.as_str().to_owned());
        seen.secrets.insert(key, object);
    }

    pub(crate) fn remove_secret(&self, key: &ObjectKey) {
        let mut seen = self.seen();
        seen.changed.insert(key.workspace.as_str().to_owned());
        seen.secrets.remove(key);
    }

    pub(crate) fn secrets_listed(&self, brought: &BTreeSet<ObjectKey>) {
        let mut seen = self.seen();
        let gone: Vec<ObjectKey> = (seen.secrets.keys().filter(|key| !brought.contains(key)))
            .cloned()
            .collect();
        for key in gone {
            seen.changed.insert(key.workspace.as_str().to_owned());
            seen.secrets.remove(&key);
        }
        seen.secrets_synced = true;
    }
}

impl Seen {
    /// The Secrets of workspaces where some have changed.
    pub(crate) fn take_secrets(&mut self) -> Vec<(String, Vec<Value>)> {
        let changed = std::mem::take(&mut self.changed);
        let of = |workspace: &String| {
            let all = self.secrets.iter();
            let own = all.filter(|(key, _)| key.workspace.as_str() == workspace);
            own.map(|(_, object)| object.clone()).collect()
        };
        changed.iter().map(|id| (id.clone(), of(id))).collect()
    }
}

fn policy_key(kind: Kind, key: &ObjectKey) -> PolicyKey {
    PolicyKey {
        workspace: key.workspace.as_str().to_owned(),
        kind,
        namespace: key.namespace.clone(),
        name: key.name.clone(),
    }
}
