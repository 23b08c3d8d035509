//! What the parts of an agent know of its publications, and what they have to say about them.
//!
//! Several parts find something to tell about a PublishedResource; one writes it down. So each puts its word here, and
//! whoever writes is told that there is news.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairway_controller::Queue;
use fairway_kernel_tenancy::Severity;
use fairway_kernel_tenancy::conditions::Conditions;
use fairway_kernel_tenancy::mutation::Mutator;
use fairway_kernel_tenancy::published::{PublishedResource, Served};
use tokio::sync::watch;

/// The spec is sound.
pub(crate) const VALID: &str = "Valid";
/// There is a definition, and a schema made of it.
pub(crate) const SCHEMA: &str = "SchemaPublished";
/// The export offers it.
pub(crate) const EXPORTED: &str = "Exported";
/// Objects are kept in step.
pub(crate) const SYNCED: &str = "Synchronized";

const ALL: [&str; 4] = [VALID, SCHEMA, EXPORTED, SYNCED];

/// A publication that is ready to be offered.
pub(crate) struct Publication {
    pub(crate) published: PublishedResource,
    pub(crate) schema: String,
    /// The kind on the service cluster, and in workspaces.
    pub(crate) local: Served,
    pub(crate) remote: Served,
    pub(crate) mutator: Mutator,
    pub(crate) related_mutators: Vec<Mutator>,
    /// Another text is another publication.
    pub(crate) fingerprint: String,
    /// Whether a change of the kind is noticed when it happens.
    pub(crate) followed: bool,
}

impl Publication {
    pub(crate) fn name(&self) -> &str {
        &self.published.meta.name
    }
}

/// Whether something is as it should be, and if not, why.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Word {
    Holds,
    Fails {
        reason: &'static str,
        severity: Severity,
        message: String,
    },
}

impl Word {
    pub(crate) fn error(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Fails {
            reason,
            severity: Severity::Error,
            message: message.into(),
        }
    }

    pub(crate) fn info(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Fails {
            reason,
            severity: Severity::Info,
            message: message.into(),
        }
    }
}

type Words = BTreeMap<&'static str, Word>;
pub(crate) type Publications = Arc<BTreeMap<String, Arc<Publication>>>;

/// Clones share it.
#[derive(Clone)]
pub(crate) struct Catalog {
    ready: Arc<watch::Sender<Publications>>,
    words: Arc<Mutex<BTreeMap<String, Words>>>,
    news: Queue<String>,
}

impl Catalog {
    /// `news` gets the name of every publication about which there is something new to say.
    pub(crate) fn new(news: Queue<String>) -> Self {
        Self {
            ready: Arc::new(watch::channel(Publications::default()).0),
            words: Arc::default(),
            news,
        }
    }

    pub(crate) fn changes(&self) -> watch::Receiver<Publications> {
        self.ready.subscribe()
    }

    pub(crate) fn publications(&self) -> Publications {
        Arc::clone(&self.ready.borrow())
    }

    pub(crate) fn put(&self, publication: Publication) {
        self.ready.send_if_modified(|all| {
            let name = publication.name().to_owned();
            let same = all
                .get(&name)
                .is_some_and(|it| it.fingerprint == publication.fingerprint);
            if !same {
                Arc::make_mut(all).insert(name, Arc::new(publication));
            }
            !same
        });
    }

    /// Takes a publication out of service.
    pub(crate) fn remove(&self, name: &str) {
        self.ready.send_if_modified(|all| {
            let known = all.contains_key(name);
            if known {
                Arc::make_mut(all).remove(name);
            }
            known
        });
    }

    fn words(&self) -> MutexGuard<'_, BTreeMap<String, Words>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says something about a publication.
    pub(crate) fn say(&self, name: &str, about: &'static str, word: Word) {
        {
            let mut words = self.words();
            let known = words.entry(name.to_owned()).or_default();
            if known.get(about) == Some(&word) {
                return;
            }
            known.insert(about, word);
        }
        self.news.add(name.to_owned());
    }

    /// Forgets what was said of one that is gone.
    pub(crate) fn forget(&self, name: &str) {
        self.words().remove(name);
    }

    /// Whether something was said to hold.
    pub(crate) fn holds(&self, name: &str, about: &str) -> bool {
        self.words().get(name).and_then(|it| it.get(about)) == Some(&Word::Holds)
    }

    /// Writes what was said into conditions.
    pub(crate) fn write(&self, name: &str, conditions: &mut Conditions, now: &str) {
        let words = self.words().get(name).cloned().unwrap_or_default();
        for (about, word) in &words {
            match word {
                Word::Holds => conditions.mark_true(about, now),
                Word::Fails {
                    reason,
                    severity,
                    message,
                } => conditions.mark_false(about, reason, *severity, message, now),
            }
        }
        conditions.summarize(&ALL, now);
    }
}
