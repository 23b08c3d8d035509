//! The CRDs that there are, compiled into resource definitions.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use fairway_kernel_schema::crd::conditions::{self, Condition};
use fairway_kernel_schema::crd::{self, naming};
use serde_json::{Value, json};

use super::compile::{Origin, resources};
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
    spec: Value,
    defs: Vec<Arc<ResourceDef>>,
}

/// The names that each CRD has been given, as far as others must not take them: reading all CRDs for each new one would
/// make a thousand of them cost a million readings.
#[derive(Default)]
pub struct AcceptedNames(RwLock<HashMap<Box<str>, NamesOfCrds>>);

/// By the name of the CRD.
type NamesOfCrds = BTreeMap<String, Arc<Value>>;

impl AcceptedNames {
    fn set(&self, cluster: &str, crd: &str, object: &Value) {
        let names = json!({
            "spec": {"group": object["spec"]["group"]},
            "status": {"acceptedNames": object["status"]["acceptedNames"]},
        });
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let here = all.entry(cluster.into()).or_default();
        here.insert(crd.to_owned(), Arc::new(names));
    }

    fn forget(&self, cluster: &str, crd: &str) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(here) = all.get_mut(cluster) {
            here.remove(crd);
            if here.is_empty() {
                all.remove(cluster);
            }
        }
    }

    /// Of every CRD of the workspace but this one.
    fn of_others(&self, cluster: &str, crd: &str) -> Vec<Arc<Value>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let here = all.get(cluster).into_iter().flatten();
        let others = here.filter(|(name, _)| *name != crd);
        others.map(|(_, names)| Arc::clone(names)).collect()
    }
}

/// Follows the CRDs.
pub struct Definitions {
    kernel: Weak<Kernel>,
    known: Mutex<HashMap<Box<str>, BTreeMap<String, Known>>>,
}

impl Definitions {
    /// Compiles the CRDs that there are, and every change from then on.
    pub fn follow(kernel: &Arc<Kernel>) {
        let definitions = Self {
            kernel: Arc::downgrade(kernel),
            known: Mutex::default(),
        };
        kernel
            .storage
            .cache
            .kind(prefix().as_str())
            .observe(Box::new(move |change| definitions.take(change)));
    }

    fn take(&self, change: &Change) {
        let Some(kernel) = self.kernel.upgrade() else {
            return;
        };
        let (cluster, _, name) = split_suffix(&change.suffix);
        let mut clusters = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = clusters.entry(cluster.into()).or_default();
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
        let defs = known.values().flat_map(|k| k.defs.iter().cloned());
        kernel.apis.set_own(cluster, Layer::new(defs));
        if known.is_empty() {
            clusters.remove(cluster);
        }
    }
}

fn compile(cluster: &str, object: &Value, stored: &Object, before: Option<Known>) -> Known {
    if !Condition::holds(object, "Established") {
        return Known {
            spec: object["spec"].clone(),
            defs: Vec::new(),
        };
    }
    if let Some(before) = before
        && before.spec == object["spec"]
        && !before.defs.is_empty()
    {
        return before;
    }
    let origin = Origin::Definition(cluster.into());
    let identity = meta(object, "uid");
    let defs = resources(object, &origin, identity, stored.revision());
    Known {
        spec: object["spec"].clone(),
        defs,
    }
}

/// Settles a CRD's names and conditions against all others.
fn settle(crd: &mut Value, others: &[Arc<Value>], now: &str) {
    let decision = naming::decide(crd, others.iter().map(Arc::as_ref).chain([&crd.clone()]));
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
    if meta(object, "deletionTimestamp").is_empty() {
        let metadata = metadata_mut(object);
        let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
        if let Some(list) = finalizers.as_array_mut()
            && !list.iter().any(|f| f == crd::CLEANUP_FINALIZER)
        {
            list.push(crd::CLEANUP_FINALIZER.into());
        }
    }
    let others = (call.kernel.accepted_names).of_others(call.cluster, meta(object, "name"));
    settle(object, &others, &call.now);
}
