//! API keys: Secrets that fit a selector, found by their value.
//!
//! A key is looked up by a hash whose own key is made at the start, so the time of a look-up tells nothing about how much of a
//! guess is right; the value is then compared in constant time.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher as _;
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_gateway_guard::Credential;
use fairway_gateway_policy::auth::ApiKeyMethod;
use fairway_gateway_policy::portal::{API_KEY, MANAGED_BY};
use serde_json::Value;

/// The longest key.
const MAX_KEY: usize = 4 * 1024;

/// The keys of one selector. Replaced whole when Secrets change.
#[derive(Default)]
pub struct KeyRing {
    /// Of values.
    hasher: RandomState,
    /// By hash.
    keys: ArcSwap<HashMap<u64, Vec<Arc<Entry>>>>,
}

/// A key.
pub(crate) struct Entry {
    value: Box<[u8]>,
    /// The Secret, as Authorino shows it to expressions.
    pub(crate) identity: Arc<Value>,
    ring: Weak<KeyRing>,
}

impl Credential for Entry {
    fn lapsed(&self, _: u128) -> Option<&'static str> {
        let secret = |entry: &Entry, field: &str| entry.identity["metadata"][field].clone();
        let is_known = self.ring.upgrade().is_some_and(|ring| {
            // Another Secret with the same key stands for somebody else.
            ring.of_value(&self.value).is_some_and(|entry| {
                ["namespace", "name", "uid"]
                    .iter()
                    .all(|field| secret(&entry, field) == secret(self, field))
            })
        });
        (!is_known).then_some("the API key has been taken back")
    }
}

impl KeyRing {
    /// Takes the keys of those Secrets that fit. Of two with the same key, the one that was there first counts.
    pub(crate) fn fill(self: &Arc<Self>, method: &ApiKeyMethod, secrets: &[Value]) {
        let mut fitting: Vec<&Value> = secrets.iter().filter(|secret| fits(secret, method)).collect();
        fitting.sort_by_key(|secret| {
            let text = |field: &str| secret["metadata"][field].as_str().unwrap_or("").to_owned();
            (text("creationTimestamp"), text("namespace"), text("name"))
        });
        let mut keys: HashMap<u64, Vec<Arc<Entry>>> = HashMap::with_capacity(fitting.len());
        for secret in fitting {
            let value = secret["data"][API_KEY].as_str().unwrap_or("");
            let Ok(value) = STANDARD.decode(value) else {
                continue;
            };
            if value.is_empty() || value.len() > MAX_KEY {
                continue;
            }
            let alike = keys.entry(self.hasher.hash_one(value.as_slice())).or_default();
            if alike.iter().all(|entry| *entry.value != *value) {
                alike.push(Arc::new(Entry {
                    value: value.into(),
                    identity: Arc::new(identity(secret)),
                    ring: Arc::downgrade(self),
                }));
            }
        }
        self.keys.store(Arc::new(keys));
    }

    /// Who has this key.
    pub(crate) fn find(&self, key: &str) -> Option<Arc<Entry>> {
        if key.is_empty() || key.len() > MAX_KEY {
            return None;
        }
        self.of_value(key.as_bytes())
    }

    fn of_value(&self, value: &[u8]) -> Option<Arc<Entry>> {
        let keys = self.keys.load();
        let mut alike = keys.get(&self.hasher.hash_one(value))?.iter();
        alike.find(|entry| is_same(&entry.value, value)).cloned()
    }

    pub fn len(&self) -> usize {
        self.keys.load().values().map(Vec::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// In the same time whatever differs.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let difference = one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b));
    one.len() == other.len() && std::hint::black_box(difference) == 0
}

fn fits(secret: &Value, method: &ApiKeyMethod) -> bool {
    let metadata = &secret["metadata"];
    let namespace = metadata["namespace"].as_str().unwrap_or("");
    let labels: BTreeMap<String, String> = metadata["labels"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect();
    metadata["deletionTimestamp"].is_null()
        && labels
            .get(MANAGED_BY.0)
            .is_some_and(|value| value == MANAGED_BY.1)
        && method
            .namespaces
            .as_ref()
            .is_none_or(|namespaces| namespaces.iter().any(|one| one == namespace))
        && method.selector.matches(&labels)
}

/// The Secret without what only machinery needs.
fn identity(secret: &Value) -> Value {
    let mut identity = secret.clone();
    if let Some(metadata) = identity["metadata"].as_object_mut() {
        metadata.shift_remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.shift_remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    identity
}

#[cfg(test)]
mod tests;
