//! The names that each CRD has been given, and which are used in each group of its workspace: reading all CRDs for each
//! new one would make a thousand of them cost a million readings.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fairway_kernel_schema::crd::{Names, naming};
use serde_json::Value;

use crate::rest::call::meta;

/// The names of all workspaces.
#[derive(Default)]
pub struct AcceptedNames(Mutex<HashMap<Box<str>, Accepted>>);

#[derive(Default)]
struct Accepted {
    by_crd: HashMap<String, (String, Names)>,
    by_group: HashMap<String, naming::Used>,
}

impl Accepted {
    fn add(&mut self, crd: &str, (group, names): (String, Names)) {
        self.by_group.entry(group.clone()).or_default().add(&names);
        self.by_crd.insert(crd.to_owned(), (group, names));
    }

    fn remove(&mut self, crd: &str) -> Option<(String, Names)> {
        let (group, names) = self.by_crd.remove(crd)?;
        if let Some(used) = self.by_group.get_mut(&group) {
            used.remove(&names);
            if used.is_empty() {
                self.by_group.remove(&group);
            }
        }
        Some((group, names))
    }
}

impl AcceptedNames {
    pub(super) fn set(&self, cluster: &str, crd: &str, object: &Value) {
        let group = object["spec"]["group"].as_str().unwrap_or_default().to_owned();
        let mut all = self.lock();
        let here = all.entry(cluster.into()).or_default();
        here.remove(crd);
        here.add(crd, (group, naming::accepted(object)));
    }

    pub(super) fn forget(&self, cluster: &str, crd: &str) {
        let mut all = self.lock();
        if let Some(here) = all.get_mut(cluster) {
            here.remove(crd);
            if here.by_crd.is_empty() {
                all.remove(cluster);
            }
        }
    }

    /// What names a CRD gets beside all others of its workspace.
    pub(super) fn decide(&self, cluster: &str, object: &Value) -> naming::Decision {
        let name = meta(object, "name");
        let mut all = self.lock();
        let Some(here) = all.get_mut(cluster) else {
            return naming::decide_among(object, &naming::Used::default());
        };
        // What it has now must not stand in the way of what it asks for.
        let before = here.remove(name);
        let group = object["spec"]["group"].as_str().unwrap_or_default();
        let decision = match here.by_group.get(group) {
            Some(others) => naming::decide_among(object, others),
            None => naming::decide_among(object, &naming::Used::default()),
        };
        if let Some(before) = before {
            here.add(name, before);
        }
        decision
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Accepted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
