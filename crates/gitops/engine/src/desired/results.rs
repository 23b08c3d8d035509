//! What rendering came to, and what is remembered of it until something touches it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use fairway_controller::ObjectKey;
use fairway_gitops_tree::Inputs;
use serde_json::Value;

use super::asked;
use crate::application::{Application, Source};
use crate::sources::Repository;

/// What an application declares at some commits.
#[derive(Debug, Clone)]
pub(crate) struct Rendered {
    /// The commit of each source.
    pub(crate) revisions: Vec<String>,
    /// The objects, as a JSON array: a tenth of what they take as values.
    pub(super) objects: Arc<[u8]>,
    /// What each source was.
    pub(crate) source_types: Vec<&'static str>,
    /// Why there is no result.
    pub(crate) failure: Option<String>,
    /// Of what else than files it was made.
    pub(super) digest: u64,
    /// What the cluster could do, if it mattered.
    pub(super) capabilities: Option<u64>,
    pub(super) inputs: Arc<[Inputs]>,
    /// Of which repositories at which revisions.
    pub(crate) asked: Arc<[(Repository, String)]>,
}

impl Rendered {
    /// That the sources could not be resolved. It is known what they are, so that a push is heard.
    pub(crate) fn unresolved(application: &Application, sources: &[Source]) -> Self {
        Self {
            asked: asked(application, sources),
            ..Self::given(&[], Vec::new())
        }
    }

    /// Whether the sources could not be resolved.
    pub(crate) fn is_unresolved(&self) -> bool {
        self.revisions.is_empty()
    }

    /// Objects that somebody sent along.
    pub(crate) fn given(objects: &[Value], revisions: Vec<String>) -> Self {
        Self {
            revisions,
            objects: serde_json::to_vec(objects).unwrap_or_default().into(),
            source_types: Vec::new(),
            failure: None,
            digest: 0,
            capabilities: None,
            inputs: Arc::new([]),
            asked: Arc::new([]),
        }
    }

    /// The objects.
    pub(crate) fn objects(&self) -> Vec<Value> {
        // It was written by us.
        serde_json::from_slice(&self.objects).unwrap_or_default()
    }

    /// Whether files of a source matter.
    pub(crate) fn depends_on(&self, source: usize, changed: &[String]) -> bool {
        let inputs = self.inputs.get(source);
        inputs.is_none_or(|inputs| changed.iter().any(|path| inputs.depend_on(path)))
    }

    /// The same result for other commits, which did not touch it.
    pub(crate) fn moved_to(&self, revisions: Vec<String>) -> Self {
        Self {
            revisions,
            ..self.clone()
        }
    }
}

/// What is remembered of applications' results.
#[derive(Default)]
pub(crate) struct Results(Mutex<HashMap<ObjectKey, Arc<Rendered>>>);

impl Results {
    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Arc<Rendered>>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<Rendered>> {
        self.lock().get(key).cloned()
    }

    /// Notes what an application is about to ask for, so that a push that comes while it is asked is heard.
    pub(crate) fn expect(&self, application: &Application, sources: &[Source]) {
        let mut all = self.lock();
        match all.get_mut(&application.key) {
            None => {
                let unresolved = Rendered::unresolved(application, sources);
                all.insert(application.key.clone(), Arc::new(unresolved));
            }
            Some(known) => {
                let asked = asked(application, sources);
                if known.asked != asked {
                    // The result may still be right; which push touches it is another matter.
                    Arc::make_mut(known).asked = asked;
                }
            }
        }
    }

    pub(crate) fn put(&self, key: &ObjectKey, rendered: Arc<Rendered>) {
        self.lock().insert(key.clone(), rendered);
    }

    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        self.lock().keys().cloned().collect()
    }

    pub(crate) fn all(&self) -> Vec<(ObjectKey, Arc<Rendered>)> {
        let all = self.lock();
        all.iter()
            .map(|(key, rendered)| (key.clone(), Arc::clone(rendered)))
            .collect()
    }

    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }
}
