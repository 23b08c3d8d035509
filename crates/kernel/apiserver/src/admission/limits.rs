//! The LimitRanges and ResourceQuotas of every namespace, kept ready for admission by following the cache.
//!
//! Most namespaces have none, and a write into one of those costs a look-up. What is kept is parsed; it is as new as
//! the last acknowledged write.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use fairway_kernel_quota::Quota;
use fairway_kernel_quota::limits::LimitRange;
use serde_json::Value;
use tokio::sync::Mutex;

use super::Operation;
use crate::cache::{Cache, Change, ChangeKind};
use crate::key::{BUILTIN_IDENTITY, KindPrefix, ObjectSuffix, split_suffix};
use crate::object::Object;
use crate::rest::call::{Call, meta};
use crate::status::ApiError;

/// What limits a namespace.
#[derive(Clone, Default)]
pub struct NamespaceLimits {
    ranges: BTreeMap<Box<str>, Arc<LimitRange>>,
    pub(super) quotas: BTreeMap<Box<str>, Arc<HeldQuota>>,
    /// Held by the write that is being charged, so that writers queue here and not in lost transactions.
    pub(super) turn: Arc<Mutex<()>>,
}

/// A quota, as it is stored and as decisions see it.
pub(super) struct HeldQuota {
    pub(super) quota: Quota,
    pub(super) object: Arc<Object>,
    pub(super) suffix: ObjectSuffix,
}

/// By logical cluster, then by namespace.
type ByNamespace = HashMap<Box<str>, HashMap<Box<str>, Arc<NamespaceLimits>>>;

/// What limits each namespace.
#[derive(Default)]
pub struct Limits {
    namespaces: RwLock<ByNamespace>,
}

/// Where the quotas are.
pub(super) fn quotas_prefix() -> KindPrefix {
    KindPrefix::new("", "resourcequotas", BUILTIN_IDENTITY)
}

impl Limits {
    /// Reads what there is, and follows it from then on. A change counts from the moment when it is acknowledged.
    pub fn follow(cache: &Cache) -> Arc<Self> {
        let limits = Arc::new(Self::default());
        let (ranges, quotas) = (Arc::clone(&limits), Arc::clone(&limits));
        cache
            .kind(KindPrefix::new("", "limitranges", BUILTIN_IDENTITY).as_str())
            .observe(Box::new(move |change| ranges.take_range(change)));
        cache
            .kind(quotas_prefix().as_str())
            .observe(Box::new(move |change| quotas.take_quota(change)));
        limits
    }

    /// What limits a namespace, if anything does.
    pub fn of(&self, cluster: &str, namespace: &str) -> Option<Arc<NamespaceLimits>> {
        let namespaces = self.namespaces.read().unwrap_or_else(PoisonError::into_inner);
        namespaces.get(cluster)?.get(namespace).cloned()
    }

    fn take_range(&self, change: &Change) {
        let range = current(change).map(|object| Arc::new(LimitRange::from_object(&object)));
        self.edit(change, |limits, name| replace(&mut limits.ranges, name, range));
    }

    fn take_quota(&self, change: &Change) {
        let (cluster, namespace, name) = split_suffix(&change.suffix);
        let quota = current(change).map(|object| {
            Arc::new(HeldQuota {
                quota: Quota::from_object(&object),
                object: Arc::clone(&change.object),
                suffix: ObjectSuffix::new(cluster, namespace, name),
            })
        });
        self.edit(change, |limits, name| replace(&mut limits.quotas, name, quota));
    }

    fn edit(&self, change: &Change, edit: impl FnOnce(&mut NamespaceLimits, &str)) {
        let (cluster, namespace, name) = split_suffix(&change.suffix);
        let mut clusters = self.namespaces.write().unwrap_or_else(PoisonError::into_inner);
        let namespaces = clusters.entry(cluster.into()).or_default();
        let mut limits = namespaces
            .get(namespace)
            .map(|limits| NamespaceLimits::clone(limits))
            .unwrap_or_default();
        edit(&mut limits, name);
        if limits.ranges.is_empty() && limits.quotas.is_empty() {
            namespaces.remove(namespace);
        } else {
            namespaces.insert(namespace.into(), Arc::new(limits));
        }
        if namespaces.is_empty() {
            clusters.remove(cluster);
        }
    }
}

/// The object after a change; `None` if it is gone.
fn current(change: &Change) -> Option<Value> {
    if change.kind == ChangeKind::Deleted {
        return None;
    }
    change.object.value().ok()
}

fn replace<V>(map: &mut BTreeMap<Box<str>, V>, name: &str, value: Option<V>) {
    match value {
        Some(value) => map.insert(name.into(), value),
        None => map.remove(name),
    };
}

/// What limit ranges look at: pods when they are made or resized, claims always.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Pod,
    Claim,
}

fn subject(call: &Call<'_>, operation: Operation) -> Option<Subject> {
    let subresource = call.subresource();
    if call.def.is("", "pods") {
        let looked_at = match operation {
            Operation::Create => subresource.is_none(),
            // Resources of a pod change in no other way.
            Operation::Update => subresource == Some("resize"),
            Operation::Delete => false,
        };
        return looked_at.then_some(Subject::Pod);
    }
    let claim = call.def.is("", "persistentvolumeclaims") && subresource.is_none();
    (claim && operation != Operation::Delete).then_some(Subject::Claim)
}

/// Whether an object is on its way out; then nothing is asked of it any more.
fn is_leaving(old: Option<&Value>) -> bool {
    old.is_some_and(|old| !meta(old, "deletionTimestamp").is_empty())
}

/// Fills in the defaults of the namespace's limit ranges.
pub(super) fn complete(call: &Call<'_>, operation: Operation, object: &mut Value, old: Option<&Value>) {
    if subject(call, operation) != Some(Subject::Pod) || is_leaving(old) {
        return;
    }
    if let Some(limits) = call.kernel.limits.of(call.cluster, call.namespace()) {
        limits
            .ranges
            .values()
            .for_each(|range| range.complete_pod(object));
    }
}

/// Refuses what is out of the bounds of the namespace's limit ranges.
pub(super) fn confirm(
    call: &Call<'_>,
    operation: Operation,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let Some(subject) = subject(call, operation).filter(|_| !is_leaving(old)) else {
        return Ok(());
    };
    let Some(limits) = call.kernel.limits.of(call.cluster, call.namespace()) else {
        return Ok(());
    };
    let refusal = limits.ranges.values().find_map(|range| match subject {
        Subject::Pod => range.refuse_pod(object),
        Subject::Claim => range.refuse_claim(object),
    });
    match refusal {
        None => Ok(()),
        Some(why) => Err(ApiError::forbidden(call.about(meta(object, "name")), why)),
    }
}
