//! The CRDs that there are, compiled into resource definitions.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use fairway_kernel_schema::crd::conditions::{self, Condition};
use fairway_kernel_schema::crd::{self, CrdSpec, Names, Scope, Version, naming};
use fairway_kernel_schema::jsonpath::JsonPath;
use fairway_kernel_schema::openapi::{CrdKind, CrdVersion, Served, V2Form, v2_document, v3_crd_document};
use fairway_kernel_table::CustomColumns;
use serde_json::{Value, json};
use tracing::warn;

use super::version::CustomVersion;
use crate::cache::{Change, ChangeKind};
use crate::kernel::Kernel;
use crate::key::{BUILTIN_IDENTITY, KindPrefix, split_suffix};
use crate::object::Object;
use crate::registry::{Nature, Registry, ResourceDef, Subresource, api_version};
use crate::rest::call::{Call, meta, metadata_mut};
use crate::status::ApiError;

/// The group of CRDs.
pub(super) const GROUP: &str = "apiextensions.k8s.io";
/// The resource of CRDs.
pub(super) const RESOURCE: &str = "customresourcedefinitions";

const CREATE: &str = "create";
const VERBS: [&str; 8] = [
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    CREATE,
    "update",
    "watch",
];

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

/// The names that each CRD has been given, and which are used in each group: reading all CRDs for each new one would
/// make a thousand of them cost a million readings.
#[derive(Default)]
pub struct AcceptedNames(Mutex<Accepted>);

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
    fn set(&self, crd: &str, object: &Value) {
        let group = object["spec"]["group"].as_str().unwrap_or_default().to_owned();
        let mut all = self.lock();
        all.remove(crd);
        all.add(crd, (group, naming::accepted(object)));
    }

    fn forget(&self, crd: &str) {
        self.lock().remove(crd);
    }

    /// What names a CRD gets beside all others.
    fn decide(&self, object: &Value) -> naming::Decision {
        let name = meta(object, "name");
        let mut all = self.lock();
        // What it has now must not stand in the way of what it asks for.
        let before = all.remove(name);
        let group = object["spec"]["group"].as_str().unwrap_or_default();
        let decision = match all.by_group.get(group) {
            Some(others) => naming::decide_among(object, others),
            None => naming::decide_among(object, &naming::Used::default()),
        };
        if let Some(before) = before {
            all.add(name, before);
        }
        decision
    }

    fn lock(&self) -> MutexGuard<'_, Accepted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Follows the CRDs.
pub struct Definitions {
    kernel: Weak<Kernel>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    known: BTreeMap<String, Known>,
    /// Whether those that there are at the start have all been seen. Until then none is published: a registry for each of a
    /// thousand CRDs would be a thousand registries.
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
        state.publish(kernel);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, change: &Change) {
        let Some(kernel) = self.kernel.upgrade() else {
            return;
        };
        let (_, _, name) = split_suffix(&change.suffix);
        let mut state = self.state();
        let known = &mut state.known;
        if change.kind == ChangeKind::Deleted {
            kernel.accepted_names.forget(name);
            if let Some(gone) = known.remove(name)
                && let Some(def) = gone.defs.first()
            {
                kernel.storage.cache.forget(def.prefix.as_str());
            }
        } else if let Ok(object) = change.object.value() {
            kernel.accepted_names.set(name, &object);
            let before = known.remove(name);
            known.insert(name.to_owned(), compile(&object, &change.object, before));
        }
        if state.complete {
            state.publish(&kernel);
        }
    }
}

impl State {
    fn publish(&self, kernel: &Kernel) {
        let defs = self.known.values().flat_map(|k| k.defs.iter().cloned());
        kernel.registry.store(Arc::new(Registry::new(defs)));
    }
}

/// The printer columns of a version, as the CRD has them.
fn columns(object: &Value, version: &str) -> CustomColumns {
    let versions = object["spec"]["versions"].as_array();
    let found = versions.and_then(|v| v.iter().find(|v| v["name"] == version));
    CustomColumns::new(found.and_then(|v| v.get("additionalPrinterColumns")))
}

fn compile(object: &Value, stored: &Object, before: Option<Known>) -> Known {
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
    let specified = (meta(object, "uid").to_owned(), generation);
    if !Condition::holds(object, "Established") {
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
    let name = meta(object, "name");
    let defs = match CrdSpec::parse(object) {
        Ok(spec) => {
            let mut defs: Vec<ResourceDef> = spec
                .served_versions()
                .into_iter()
                .filter_map(|version| definition(object, &spec, version, stored.revision()))
                .collect();
            if defs.is_empty() && !meta(object, "deletionTimestamp").is_empty() {
                defs.extend(for_removal(object, &spec, stored.revision()));
            }
            defs.into_iter().map(Arc::new).collect()
        }
        Err(errors) => {
            warn!(crd = name, ?errors, "a CRD cannot be served");
            Vec::new()
        }
    };
    Known { specified, defs }
}

/// A CRD that serves no version and is being deleted is reached through its stored one, so that its objects can be deleted
/// and their finalizers be removed; nothing else could ever reach them again.
fn for_removal(object: &Value, spec: &CrdSpec, revision: u64) -> Option<ResourceDef> {
    let mut def = definition(object, spec, spec.storage_version()?, revision)?;
    def.verbs.retain(|verb| verb != CREATE);
    Some(def)
}

fn definition(object: &Value, spec: &CrdSpec, version: &Version, revision: u64) -> Option<ResourceDef> {
    let uid = meta(object, "uid");
    let columns = columns(object, &version.name);
    let paths = columns
        .columns()
        .iter()
        .skip(1)
        .map(|c| JsonPath::parse(&c.json_path).ok())
        .collect();
    let structural = version.schema.clone()?;
    let (shapes, shape) = structural.shapes();
    let storage = spec
        .storage_version()
        .map_or(version.name.as_str(), |v| v.name.as_str());
    let hash = crate::openapi::hash(format!("{}/{storage}/{}", spec.group, spec.names.kind).as_bytes());
    let names = &spec.names;
    Some(ResourceDef {
        group: spec.group.clone(),
        version: version.name.clone(),
        resource: names.plural.clone(),
        kind: names.kind.clone(),
        list_kind: names.list_kind.clone(),
        singular: names.singular.clone(),
        short_names: names.short_names.clone(),
        categories: names.categories.clone(),
        namespaced: spec.scope == Scope::Namespaced,
        verbs: VERBS.map(str::to_owned).to_vec(),
        subresources: subresources(spec, version),
        prefix: KindPrefix::new(&spec.group, &names.plural, uid),
        stored_as: api_version(&spec.group, storage),
        sealed: false,
        nature: Nature::Custom(Arc::new(CustomVersion {
            structural,
            shapes,
            shape,
            columns,
            paths,
            deprecation: spec.deprecation_warning(&version.name),
            version: version.clone(),
            storage_hash: hash.chars().take(12).collect(),
            schema_since: revision,
        })),
    })
}

fn subresources(spec: &CrdSpec, version: &Version) -> Vec<Subresource> {
    let verbs = ["get", "patch", "update"].map(str::to_owned).to_vec();
    let mut all = Vec::new();
    if version.subresources.status {
        all.push(Subresource {
            name: "status".to_owned(),
            group: spec.group.clone(),
            version: version.name.clone(),
            kind: spec.names.kind.clone(),
            verbs: verbs.clone(),
        });
    }
    if version.subresources.scale.is_some() {
        all.push(Subresource {
            name: "scale".to_owned(),
            group: "autoscaling".to_owned(),
            version: "v1".to_owned(),
            kind: "Scale".to_owned(),
            verbs,
        });
    }
    all
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
    if meta(object, "deletionTimestamp").is_empty() {
        let metadata = metadata_mut(object);
        let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
        if let Some(list) = finalizers.as_array_mut()
            && !list.iter().any(|f| f == crd::CLEANUP_FINALIZER)
        {
            list.push(crd::CLEANUP_FINALIZER.into());
        }
    }
    let decision = call.kernel.accepted_names.decide(object);
    settle(object, &decision, &call.now);
}

/// The OpenAPI document of a custom group-version.
pub fn openapi_document(
    kernel: &Kernel,
    registry: &Registry,
    group: &str,
    version: &str,
) -> Result<Value, ApiError> {
    let found = with_schemas(kernel, registry, |def| {
        def.group == group && def.version == version
    })?;
    let kinds: Vec<CrdKind<'_>> = found.iter().map(crd_kind).collect();
    Ok(v3_crd_document(group, version, &kinds))
}

/// The OpenAPI document of version 2, which has all kinds in it.
pub fn openapi_v2_document(kernel: &Kernel, registry: &Registry, form: V2Form) -> Result<Vec<u8>, ApiError> {
    let found = with_schemas(kernel, registry, |_| true)?;
    let mut versions: Vec<CrdVersion<'_>> = Vec::new();
    for pair in &found {
        let (group, version) = (pair.0.group.as_str(), pair.0.version.as_str());
        match versions
            .iter_mut()
            .find(|v| v.group == group && v.version == version)
        {
            Some(known) => known.kinds.push(crd_kind(pair)),
            None => versions.push(CrdVersion {
                group,
                version,
                kinds: vec![crd_kind(pair)],
            }),
        }
    }
    let mut served = Served::default();
    for service in kernel.api_services.load().iter() {
        let (paths, schemas) = service.openapi_parts();
        served.paths.extend(paths);
        served.schemas.extend(schemas);
    }
    Ok(v2_document(form, &versions, served))
}

/// The custom kinds that are wanted, each with the schema that its CRD has for its version.
fn with_schemas(
    kernel: &Kernel,
    registry: &Registry,
    wanted: impl Fn(&ResourceDef) -> bool,
) -> Result<Vec<(Arc<ResourceDef>, Value)>, ApiError> {
    let crds = kernel.storage.cache.kind(prefix().as_str());
    let mut found = Vec::new();
    for def in registry
        .iter()
        .filter(|d| matches!(d.nature, Nature::Custom(_)) && wanted(d))
    {
        let name = format!("{}.{}", def.resource, def.group);
        let Some(object) = crds.get(&format!("{}//{name}", crate::key::ROOT_CLUSTER)) else {
            continue;
        };
        let object = object.value()?;
        let schema = object["spec"]["versions"]
            .as_array()
            .and_then(|versions| versions.iter().find(|v| v["name"] == def.version))
            .map(|v| v["schema"]["openAPIV3Schema"].clone())
            .unwrap_or_default();
        found.push((Arc::clone(def), schema));
    }
    Ok(found)
}

fn crd_kind((def, schema): &(Arc<ResourceDef>, Value)) -> CrdKind<'_> {
    CrdKind {
        kind: &def.kind,
        plural: &def.resource,
        namespaced: def.namespaced,
        list_kind: &def.list_kind,
        schema,
        status: def.subresource("status").is_some(),
        scale: def.subresource("scale").is_some(),
    }
}
