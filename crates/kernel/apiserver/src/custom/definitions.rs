//! The CRDs that there are, compiled into resource definitions.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use fairway_kernel_schema::crd::conditions::{self, Condition};
use fairway_kernel_schema::crd::{self, naming};
use serde_json::{Value, json};

use super::compile::{Origin, resources};
use super::provided::is_adopted;
use crate::cache::{Change, ChangeKind};
use crate::kernel::Kernel;
use crate::key::{BUILTIN_IDENTITY, KindPrefix, split_suffix};
use crate::object::Object;
use crate::registry::{Layer, ResourceDef};
use crate::rest::call::{Call, meta, metadata_mut};

/// The group of CRDs.
pub(super) const GROUP: &str = "apiextensions.k8s.io";
/// The resource of CRDs.
pub(super) const RESOURCE: &str = "customresourcedefinitions";

/// Where CRDs are stored.
pub(super) fn prefix() -> KindPrefix {
    KindPrefix::new(GROUP, RESOURCE, BUILTIN_IDENTITY)
}

/// A CRD as it was last seen: enough to know whether its versions must be compiled again.
struct Known {
    /// Its UID and generation: they change when its specification does.
    specified: (String, i64),
    defs: Vec<Arc<ResourceDef>>,
}

/// Follows the CRDs.
pub struct Definitions {
    kernel: Weak<Kernel>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By workspace, then by name.
    known: HashMap<Box<str>, BTreeMap<String, Known>>,
    /// Whether those that there are at the start have all been seen. Until then none is published: a layer for each of a
    /// thousand CRDs would be a thousand layers.
    complete: bool,
}

impl Definitions {
    /// Compiles the CRDs that there are, and every change from then on.
    pub fn follow(kernel: &Arc<Kernel>) {
        let definitions = Arc::new(Self {
            kernel: Arc::downgrade(kernel),
            state: Mutex::default(),
        });
        let following = Arc::clone(&definitions);
        kernel
            .storage
            .cache
            .kind(prefix().as_str())
            .observe(Box::new(move |change| following.take(change)));
        let mut state = definitions.state();
        state.complete = true;
        for cluster in state.known.keys() {
            state.publish(kernel, cluster);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, change: &Change) {
        let Some(kernel) = self.kernel.upgrade() else {
            return;
        };
        let (cluster, _, name) = split_suffix(&change.suffix);
        let mut state = self.state();
        let known = state.known.entry(cluster.into()).or_default();
        if change.kind == ChangeKind::Deleted {
            kernel.accepted_names.forget(cluster, name);
            if let Some(gone) = known.remove(name)
                && let Some(def) = gone.defs.first()
            {
                kernel.storage.cache.forget(def.prefix.as_str());
            }
        } else if let Ok(object) = change.object.value() {
            kernel.accepted_names.set(cluster, name, &object);
            let before = known.remove(name);
            known.insert(name.to_owned(), compile(cluster, &object, &change.object, before));
        }
        if state.complete {
            state.publish(&kernel, cluster);
        }
        if state.known.get(cluster).is_some_and(BTreeMap::is_empty) {
            state.known.remove(cluster);
        }
    }
}

impl State {
    fn publish(&self, kernel: &Kernel, cluster: &str) {
        let known = self.known.get(cluster).into_iter().flat_map(BTreeMap::values);
        let defs = known.flat_map(|k| k.defs.iter().cloned());
        kernel.apis.set_own(cluster, Layer::new(defs));
    }
}

fn compile(cluster: &str, object: &Value, stored: &Object, before: Option<Known>) -> Known {
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
    let specified = (meta(object, "uid").to_owned(), generation);
    if !Condition::holds(object, "Established") || is_adopted(object) {
        return Known {
            specified,
            defs: Vec::new(),
        };
    }
    if let Some(before) = before
        && before.specified == specified
        && !before.defs.is_empty()
    {
        return before;
    }
    let origin = Origin::Definition(cluster.into());
    let identity = meta(object, "uid");
    let defs = resources(object, &origin, identity, stored.revision());
    Known { specified, defs }
}

/// Settles a CRD's names and conditions.
fn settle(crd: &mut Value, decision: &naming::Decision, now: &str) {
    crd["status"]["acceptedNames"] = decision.names.to_value();
    decision.names_accepted.set(crd, now);
    decision.established.set(crd, now);
    if let Some(established) = conditions::established(crd) {
        established.set(crd, now);
    }
    for (condition, name) in [
        (conditions::non_structural_schema(crd), "NonStructuralSchema"),
        (
            conditions::api_approval(crd),
            "KubernetesAPIApprovalPolicyConformant",
        ),
        (conditions::conversion_supported(crd), "ConversionSupported"),
    ] {
        match condition {
            Some(condition) => {
                condition.set(crd, now);
            }
            None => {
                Condition::remove(crd, name);
            }
        }
    }
}

/// Completes a CRD that is being written: its finalizer, names and conditions. They are part of the same write, so a CRD is
/// established when its creation is acknowledged.
pub fn admit_definition(call: &Call<'_>, object: &mut Value) {
    if call.subresource().is_some() {
        return;
    }
    // Where it serves nothing, there is nothing to remove with it.
    if meta(object, "deletionTimestamp").is_empty() && !is_adopted(object) {
        let metadata = metadata_mut(object);
        let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
        if let Some(list) = finalizers.as_array_mut()
            && !list.iter().any(|f| f == crd::CLEANUP_FINALIZER)
        {
            list.push(crd::CLEANUP_FINALIZER.into());
        }
    }
    let decision = call.kernel.accepted_names.decide(call.cluster, object);
    settle(object, &decision, &call.now);
}
