//! What cannot be synchronised, and who is told what about it.
//!
//! The provider finds it in a condition of the PublishedResource. A consumer finds an event on his object that names the
//! cause where he can do something about it, and otherwise only that there is one: the service cluster is not his.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairway_controller::{Failure, ObjectKey, Shutdown, WorkspaceId};

use crate::catalog::{Catalog, SYNCED, Word};

/// How often the provider is told of changes.
const TELL_EVERY: Duration = Duration::from_millis(500);
/// How many objects are named.
const SHOWN: usize = 3;

/// Why an object could not be synchronised.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) failure: Failure,
    /// What the consumer is told.
    pub(super) tell: Option<String>,
}

impl Trouble {
    /// The provider's business.
    pub(super) fn provider(message: impl Into<String>) -> Self {
        Self {
            failure: Failure::NotYet(message.into()),
            tell: None,
        }
    }

    /// Something that the consumer can do something about.
    pub(super) fn consumer(message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            failure: Failure::NotYet(message.clone()),
            tell: Some(message),
        }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self { failure, tell: None }
    }
}

/// The objects that cannot be synchronised. Clones share it.
#[derive(Clone)]
pub(super) struct Failures {
    name: Arc<str>,
    catalog: Catalog,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    failing: BTreeMap<ObjectKey, String>,
    changed: bool,
}

impl Failures {
    pub(super) fn new(name: &str, catalog: &Catalog) -> Self {
        Self {
            name: name.into(),
            catalog: catalog.clone(),
            known: Arc::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, key: &ObjectKey, why: String) {
        let mut known = self.known();
        if known.failing.get(key) != Some(&why) {
            known.failing.insert(key.clone(), why);
            known.changed = true;
        }
    }

    pub(super) fn clear(&self, key: &ObjectKey) {
        let mut known = self.known();
        if known.failing.remove(key).is_some() {
            known.changed = true;
        }
    }

    /// The objects of a workspace that cannot be synchronised.
    pub(super) fn of(&self, workspace: &WorkspaceId) -> Vec<ObjectKey> {
        let known = self.known();
        let first = ObjectKey::new(workspace, "", "");
        let keys = known.failing.range(first..).map(|(key, _)| key);
        keys.take_while(|key| key.workspace == *workspace)
            .cloned()
            .collect()
    }

    /// What there is to say, if it is new.
    fn news(&self) -> Option<Word> {
        let mut known = self.known();
        if !std::mem::take(&mut known.changed) {
            return None;
        }
        Some(word(&known.failing))
    }

    /// Tells the provider now and then, until the end.
    pub(super) async fn tell(self, mut shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = shutdown.wait() => return,
                () = tokio::time::sleep(TELL_EVERY) => {}
            }
            if let Some(word) = self.news() {
                self.catalog.say(&self.name, SYNCED, word);
            }
        }
    }
}

fn word(failing: &BTreeMap<ObjectKey, String>) -> Word {
    if failing.is_empty() {
        return Word::Holds;
    }
    let shown: Vec<String> = failing
        .iter()
        .take(SHOWN)
        .map(|(key, why)| format!("{key}: {why}"))
        .collect();
    let more = match failing.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let objects = if failing.len() == 1 { "object" } else { "objects" };
    let message = format!(
        "{} {objects} cannot be synchronised: {}{more}",
        failing.len(),
        shown.join("; ")
    );
    Word::error("ObjectsFailing", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_are_named_and_all_are_counted() {
        let root = WorkspaceId::root();
        let mut failing = BTreeMap::new();
        assert_eq!(word(&failing), Word::Holds);
        for name in ["a", "b", "c", "d"] {
            failing.insert(ObjectKey::new(&root, "n", name), "no".to_owned());
        }
        let Word::Fails { message, .. } = word(&failing) else {
            panic!()
        };
        let expected =
            "4 objects cannot be synchronised: root|n/a: no; root|n/b: no; root|n/c: no; and 1 more";
        assert_eq!(message, expected);
    }
}
