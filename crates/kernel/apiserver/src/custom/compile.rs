//! From the definition of a custom kind to the resources that it makes.
//!
//! A CRD, a schema that an export offers and the kinds of the system all have the same form here: that of a CRD.

use std::sync::Arc;

use fairway_kernel_schema::crd::{CrdSpec, Scope, Version};
use fairway_kernel_schema::jsonpath::JsonPath;
use fairway_kernel_table::CustomColumns;
use serde_json::Value;
use tracing::warn;

use super::provided::ProvidedKind;
use super::schema::Schema;
use super::version::CustomVersion;
use crate::key::{BUILTIN_IDENTITY, KindPrefix};
use crate::registry::{Nature, ResourceDef, Subresource, api_version};
use crate::rest::call::meta;

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

/// Where the definition of a custom kind can be read again, by those few who need all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The CRD of its name in this workspace.
    Definition(Box<str>),
    /// A schema that an export offers.
    Export {
        /// The workspace of both.
        cluster: Box<str>,
        /// The export.
        export: Box<str>,
        /// The APIResourceSchema.
        schema: Box<str>,
    },
    /// The program itself, which nobody can shadow.
    System,
    /// A domain of the program.
    Provided,
}

struct Source<'a> {
    object: &'a Value,
    origin: &'a Origin,
    identity: &'a str,
    revision: u64,
}

/// The resources that a definition makes, one for each served version.
pub(super) fn resources(
    object: &Value,
    origin: &Origin,
    identity: &str,
    revision: u64,
) -> Vec<Arc<ResourceDef>> {
    let spec = match CrdSpec::parse(object) {
        Ok(spec) => spec,
        Err(errors) => {
            warn!(crd = meta(object, "name"), ?errors, "a CRD cannot be served");
            return Vec::new();
        }
    };
    let source = Source {
        object,
        origin,
        identity,
        revision,
    };
    let served = spec.served_versions().into_iter();
    let mut defs: Vec<ResourceDef> = served
        .filter_map(|version| definition(&source, &spec, version, Schema::ready(version.schema.clone()?)))
        .collect();
    if defs.is_empty() && !meta(object, "deletionTimestamp").is_empty() {
        defs.extend(for_removal(&source, &spec));
    }
    defs.into_iter().map(Arc::new).collect()
}

/// The printer columns of a version, as the CRD has them.
fn columns(object: &Value, version: &str) -> CustomColumns {
    let versions = object["spec"]["versions"].as_array();
    let found = versions.and_then(|v| v.iter().find(|v| v["name"] == version));
    CustomColumns::new(found.and_then(|v| v.get("additionalPrinterColumns")))
}

/// A CRD that serves no version and is being deleted is reached through its stored one, so that its objects can be deleted
/// and their finalizers be removed; nothing else could ever reach them again.
fn for_removal(source: &Source<'_>, spec: &CrdSpec) -> Option<ResourceDef> {
    let version = spec.storage_version()?;
    let mut def = definition(source, spec, version, Schema::ready(version.schema.clone()?))?;
    def.verbs.retain(|verb| verb != CREATE);
    Some(def)
}

/// The resources of a kind that a domain of the program brings, one for each version. They have one schema.
pub(super) fn provided(kind: &ProvidedKind) -> Vec<Arc<ResourceDef>> {
    let Ok(spec) = CrdSpec::parse(&kind.head) else {
        return Vec::new();
    };
    let versions = spec.versions.iter().filter(|version| version.served);
    versions
        .filter_map(|version| provided_version(kind, &spec, version))
        .collect()
}

fn provided_version(kind: &ProvidedKind, spec: &CrdSpec, version: &Version) -> Option<Arc<ResourceDef>> {
    let source = Source {
        object: &kind.head,
        origin: &Origin::Provided,
        identity: BUILTIN_IDENTITY,
        revision: 0,
    };
    let schema = Schema::later(Arc::clone(&kind.schema));
    let mut def = definition(&source, spec, version, schema)?;
    def.sealed = kind.sealed;
    if let Nature::Custom(custom) = &mut def.nature
        && let Some(custom) = Arc::get_mut(custom)
    {
        custom.fingerprint = kind.fingerprint;
        custom.domain.clone_from(&kind.domain);
    }
    Some(Arc::new(def))
}

fn definition(source: &Source<'_>, spec: &CrdSpec, version: &Version, schema: Schema) -> Option<ResourceDef> {
    let columns = columns(source.object, &version.name);
    let paths = columns
        .columns()
        .iter()
        .skip(1)
        .map(|c| JsonPath::parse(&c.json_path).ok())
        .collect();
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
        prefix: KindPrefix::new(&spec.group, &names.plural, source.identity),
        stored_as: api_version(&spec.group, storage),
        sealed: false,
        nature: Nature::Custom(Arc::new(CustomVersion {
            schema,
            columns,
            paths,
            deprecation: spec.deprecation_warning(&version.name),
            version: version.clone(),
            storage_hash: hash.chars().take(12).collect(),
            schema_since: source.revision,
            fingerprint: source.revision,
            origin: source.origin.clone(),
            domain: None,
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
