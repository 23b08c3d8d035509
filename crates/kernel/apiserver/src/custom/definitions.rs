//! The CRDs that there are, compiled into resource definitions.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use fairway_kernel_schema::crd::conditions::{self, Condition};
use fairway_kernel_schema::crd::{self, CrdSpec, Scope, Version, naming};
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
use crate::registry::{Layer, Nature, Registry, ResourceDef, Subresource, api_version};
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

/// The printer columns of a version, as the CRD has them.
fn columns(object: &Value, version: &str) -> CustomColumns {
    let versions = object["spec"]["versions"].as_array();
    let found = versions.and_then(|v| v.iter().find(|v| v["name"] == version));
    CustomColumns::new(found.and_then(|v| v.get("additionalPrinterColumns")))
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
    let name = meta(object, "name");
    let defs = match CrdSpec::parse(object) {
        Ok(spec) => {
            let mut defs: Vec<ResourceDef> = spec
                .served_versions()
                .into_iter()
                .filter_map(|version| definition(cluster, object, &spec, version, stored.revision()))
                .collect();
            if defs.is_empty() && !meta(object, "deletionTimestamp").is_empty() {
                defs.extend(for_removal(cluster, object, &spec, stored.revision()));
            }
            defs.into_iter().map(Arc::new).collect()
        }
        Err(errors) => {
            warn!(crd = name, ?errors, "a CRD cannot be served");
            Vec::new()
        }
    };
    Known {
        spec: object["spec"].clone(),
        defs,
    }
}

/// A CRD that serves no version and is being deleted is reached through its stored one, so that its objects can be deleted
/// and their finalizers be removed; nothing else could ever reach them again.
fn for_removal(cluster: &str, object: &Value, spec: &CrdSpec, revision: u64) -> Option<ResourceDef> {
    let mut def = definition(cluster, object, spec, spec.storage_version()?, revision)?;
    def.verbs.retain(|verb| verb != CREATE);
    Some(def)
}

fn definition(
    cluster: &str,
    object: &Value,
    spec: &CrdSpec,
    version: &Version,
    revision: u64,
) -> Option<ResourceDef> {
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
            defined_in: cluster.into(),
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
    for def in registry.iter().filter(|d| wanted(d)) {
        let Nature::Custom(custom) = &def.nature else {
            continue;
        };
        let name = format!("{}.{}", def.resource, def.group);
        let Some(object) = crds.get(&format!("{}//{name}", custom.defined_in)) else {
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
