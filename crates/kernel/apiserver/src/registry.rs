//! Which resources there are, and what each one knows of itself.
//!
//! A [`Registry`] is an immutable snapshot: built-in kinds plus the custom ones whose CRDs are established. When a CRD
//! changes, a new snapshot replaces the old one; requests under way finish on the one they began with.

use std::collections::HashMap;
use std::sync::Arc;

use fairway_kernel_kinds::Strategy;
use fairway_kernel_schema::builtin::{self, KindInfo};
use fairway_kernel_schema::shape::{ShapeId, Shapes};

use crate::custom::CustomVersion;
use crate::key::{BUILTIN_IDENTITY, KindPrefix};

/// A resource in one version.
pub struct ResourceDef {
    /// API group; empty for the core group.
    pub group: String,
    /// Version that clients of this definition speak.
    pub version: String,
    /// Plural.
    pub resource: String,
    /// Kind.
    pub kind: String,
    /// Kind of lists.
    pub list_kind: String,
    /// Singular.
    pub singular: String,
    /// Short names.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// What can be done with it.
    pub verbs: Vec<String>,
    /// Its subresources.
    pub subresources: Vec<Subresource>,
    /// Where its objects are.
    pub prefix: KindPrefix,
    /// `apiVersion` in which its objects are stored.
    pub stored_as: String,
    /// Whether its objects are encrypted at rest.
    pub sealed: bool,
    /// Built in or custom.
    pub nature: Nature,
}

/// A subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// `status`, `scale`, ...
    pub name: String,
    /// Group of what it takes and gives.
    pub group: String,
    /// Version of what it takes and gives.
    pub version: String,
    /// Kind of what it takes and gives.
    pub kind: String,
    /// What can be done with it.
    pub verbs: Vec<String>,
}

/// Where a resource comes from.
pub enum Nature {
    /// Kubernetes' own.
    BuiltIn {
        /// Facts of its type.
        info: &'static KindInfo,
        /// What it does on write.
        strategy: &'static dyn Strategy,
    },
    /// From a CRD.
    Custom(Arc<CustomVersion>),
}

impl ResourceDef {
    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// Whether objects are stored as this version, so that stored bytes can be sent as they are.
    pub fn is_storage_version(&self) -> bool {
        // Asked for every object of every list, so it must not make strings.
        match self.stored_as.rsplit_once('/') {
            Some((group, version)) => group == self.group && version == self.version,
            None => self.group.is_empty() && self.stored_as == self.version,
        }
    }

    /// The shape for apply and pruning.
    pub fn shape(&self) -> (&Shapes, ShapeId) {
        match &self.nature {
            Nature::BuiltIn { info, .. } => (builtin::shapes(), info.shape),
            Nature::Custom(custom) => (&custom.shapes, custom.shape),
        }
    }

    /// The subresource of that name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// The strategy of a built-in kind.
    pub fn strategy(&self) -> Option<&'static dyn Strategy> {
        match &self.nature {
            Nature::BuiltIn { strategy, .. } => Some(*strategy),
            Nature::Custom(_) => None,
        }
    }

    /// The CRD's side of a custom kind.
    pub fn custom(&self) -> Option<&CustomVersion> {
        match &self.nature {
            Nature::BuiltIn { .. } => None,
            Nature::Custom(custom) => Some(custom),
        }
    }

    /// Whether this is that resource of a built-in group.
    pub fn is(&self, group: &str, resource: &str) -> bool {
        self.group == group && self.resource == resource
    }
}

/// `v1`, `apps/v1`.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// All resources at one moment. The custom ones are held so that making a registry anew copies references and nothing
/// else: a burst of CRDs makes one for each of them.
#[derive(Default)]
pub struct Registry {
    /// All, in discovery order.
    order: Vec<Arc<ResourceDef>>,
    /// The custom ones, ordered by plural name.
    custom: Vec<Arc<ResourceDef>>,
}

impl Registry {
    /// The built-in kinds and these custom ones.
    pub fn new(custom: impl IntoIterator<Item = Arc<ResourceDef>>) -> Self {
        let mut order = builtin_defs().to_vec();
        order.extend(custom);
        let mut custom = order[builtin_defs().len()..].to_vec();
        custom.sort_by(|a, b| a.resource.cmp(&b.resource));
        Self { order, custom }
    }

    /// The resource of a path.
    pub fn find(&self, group: &str, version: &str, resource: &str) -> Option<&Arc<ResourceDef>> {
        let is_it = |def: &&Arc<ResourceDef>| def.group == group && def.version == version;
        let built_in = builtin_by_resource().get(resource).map_or(&[][..], Vec::as_slice);
        built_in.iter().copied().find(is_it).or_else(|| {
            let first = self.custom.partition_point(|def| *def.resource < *resource);
            self.custom[first..]
                .iter()
                .take_while(|def| def.resource == resource)
                .find(is_it)
        })
    }

    /// Any served version of a resource.
    pub fn any_version(&self, group: &str, resource: &str) -> Option<&Arc<ResourceDef>> {
        self.order
            .iter()
            .find(|d| d.group == group && d.resource == resource)
    }

    /// The resource of a kind, as owner references name it.
    pub fn find_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<ResourceDef>> {
        self.order
            .iter()
            .find(|d| d.group == group && d.version == version && d.kind == kind)
    }

    /// Whether a group-version is served.
    pub fn serves(&self, group: &str, version: &str) -> bool {
        self.order
            .iter()
            .any(|d| d.group == group && d.version == version)
    }

    /// All, in discovery order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ResourceDef>> {
        self.order.iter()
    }
}

fn builtin_defs() -> &'static [Arc<ResourceDef>] {
    static DEFS: std::sync::OnceLock<Vec<Arc<ResourceDef>>> = std::sync::OnceLock::new();
    DEFS.get_or_init(|| {
        builtin::kinds()
            .iter()
            .map(|info| Arc::new(builtin_def(info)))
            .collect()
    })
}

/// The built-in resources by plural name, which few groups share.
fn builtin_by_resource() -> &'static HashMap<&'static str, Vec<&'static Arc<ResourceDef>>> {
    static DEFS: std::sync::OnceLock<HashMap<&'static str, Vec<&'static Arc<ResourceDef>>>> =
        std::sync::OnceLock::new();
    DEFS.get_or_init(|| {
        let mut by_resource: HashMap<&'static str, Vec<&'static Arc<ResourceDef>>> = HashMap::new();
        for def in builtin_defs() {
            by_resource.entry(&def.resource).or_default().push(def);
        }
        by_resource
    })
}

/// The group and version under which a built-in resource is stored. Two resources of Kubernetes have a second face: an
/// Event is the same object in both of its groups, and autoscaling/v1 is an older view of v2.
fn storage_of(info: &KindInfo) -> (&str, &str) {
    match (info.group, info.resource) {
        ("events.k8s.io", "events") => ("", "v1"),
        ("autoscaling", "horizontalpodautoscalers") => ("autoscaling", "v2"),
        _ => (info.group, info.version),
    }
}

fn builtin_def(info: &'static KindInfo) -> ResourceDef {
    let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<String>>();
    let (group, version) = storage_of(info);
    ResourceDef {
        group: info.group.to_string(),
        version: info.version.to_string(),
        resource: info.resource.to_string(),
        kind: info.kind.to_string(),
        list_kind: info
            .list_kind
            .map_or_else(|| format!("{}List", info.kind), str::to_owned),
        singular: info.singular.to_string(),
        short_names: owned(&info.short_names),
        categories: owned(&info.categories),
        namespaced: info.namespaced,
        verbs: owned(&info.verbs),
        subresources: info
            .subresources
            .iter()
            .map(|s| Subresource {
                name: s.name.to_string(),
                group: s.group.to_string(),
                version: s.version.to_string(),
                kind: s.kind.to_string(),
                verbs: owned(&s.verbs),
            })
            .collect(),
        prefix: KindPrefix::new(group, info.resource, BUILTIN_IDENTITY),
        stored_as: api_version(group, version),
        sealed: info.group.is_empty() && info.resource == "secrets",
        nature: Nature::BuiltIn {
            info,
            strategy: strategy_of(info),
        },
    }
}

/// CRDs bring the kernel's own machinery with them; all other kinds are in the crate of kinds.
fn strategy_of(info: &KindInfo) -> &'static dyn Strategy {
    match (info.group, info.resource) {
        ("apiextensions.k8s.io", "customresourcedefinitions") => &crate::custom::Definition,
        (group, resource) => fairway_kernel_kinds::strategy(group, resource),
    }
}
