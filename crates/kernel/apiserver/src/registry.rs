//! Which resources there are, and what each one knows of itself.
//!
//! A [`Registry`] is what one workspace serves at one moment: the built-in kinds, the custom ones whose CRDs are
//! established, and those that are bound from exports. When one of them changes, a new snapshot replaces the old one;
//! requests under way finish on the one they began with.

use std::borrow::Cow;
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
            Nature::Custom(custom) => {
                let compiled = custom.schema.get();
                (&compiled.shapes, compiled.shape)
            }
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

/// Resources that come from one place: the kernel, the CRDs of a workspace, an export. Workspaces share layers, so that
/// ten thousand of them with the same APIs cost no more than references.
///
/// Making one anew copies references and nothing else: a burst of CRDs makes one for each of them.
#[derive(Default)]
pub struct Layer {
    /// All, in discovery order.
    order: Vec<Arc<ResourceDef>>,
    /// The same, ordered by plural name.
    by_name: Vec<Arc<ResourceDef>>,
}

impl Layer {
    /// A layer of these resources.
    pub fn new(defs: impl IntoIterator<Item = Arc<ResourceDef>>) -> Self {
        let order: Vec<Arc<ResourceDef>> = defs.into_iter().collect();
        let mut by_name = order.clone();
        by_name.sort_by(|a, b| a.resource.cmp(&b.resource));
        Self { order, by_name }
    }

    /// The resources of a plural name, which few groups share.
    fn named<'a, 'n>(
        &'a self,
        resource: &'n str,
    ) -> impl Iterator<Item = &'a Arc<ResourceDef>> + use<'a, 'n> {
        let first = self.by_name.partition_point(|def| *def.resource < *resource);
        self.by_name[first..]
            .iter()
            .take_while(move |def| def.resource == resource)
    }

    /// What others do not have; the same layer, if they have none of it.
    fn without(self: &Arc<Self>, others: &[Arc<Self>]) -> Arc<Self> {
        let is_free = |def: &Arc<ResourceDef>| {
            let mut same = others.iter().flat_map(|layer| layer.named(&def.resource));
            same.all(|other| other.group != def.group)
        };
        if self.iter().all(is_free) {
            return Arc::clone(self);
        }
        let left = self.iter().filter(|def| is_free(def)).cloned();
        Arc::new(Self::new(left))
    }

    /// Whether it has no resource.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// All, in discovery order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ResourceDef>> {
        self.order.iter()
    }
}

/// All resources of a workspace at one moment.
#[derive(Clone)]
pub struct Registry {
    layers: Vec<Arc<Layer>>,
    /// Whether it is that of all workspaces, in which a custom kind is named with its identity (`widgets:<identity>`).
    everywhere: bool,
}

impl Registry {
    /// The built-in kinds, these, and of those that domains provide what these do not have.
    pub fn new(layers: impl IntoIterator<Item = Arc<Layer>>, provided: &Arc<Layer>) -> Self {
        let mut all = vec![
            Arc::clone(builtin_layer()),
            Arc::clone(crate::custom::system_layer()),
        ];
        all.extend(layers.into_iter().filter(|layer| !layer.is_empty()));
        let left = provided.without(&all);
        all.extend(Some(left).filter(|layer| !layer.is_empty()));
        all.shrink_to_fit();
        Self {
            layers: all,
            everywhere: false,
        }
    }

    /// These alone: what the virtual workspace of an export shows.
    pub fn only(layers: impl IntoIterator<Item = Arc<Layer>>) -> Self {
        Self {
            layers: layers.into_iter().collect(),
            everywhere: false,
        }
    }

    /// The same over all workspaces.
    pub fn everywhere(layers: impl IntoIterator<Item = Arc<Layer>>, provided: &Arc<Layer>) -> Self {
        // Names carry identities here, so nothing shadows anything.
        let mut all = Self::new([], provided);
        all.layers
            .extend(layers.into_iter().filter(|layer| !layer.is_empty()));
        all.everywhere = true;
        all
    }

    /// The name under which a resource is found here.
    pub fn name_of<'a>(&self, def: &'a ResourceDef) -> Cow<'a, str> {
        match def.prefix.identity() {
            identity if self.everywhere && identity != BUILTIN_IDENTITY => {
                Cow::Owned(format!("{}:{identity}", def.resource))
            }
            _ => Cow::Borrowed(&def.resource),
        }
    }

    /// The resource of a path.
    pub fn find(&self, group: &str, version: &str, resource: &str) -> Option<&Arc<ResourceDef>> {
        let (resource, identity) = match split_identity(resource) {
            (name, identity) if self.everywhere => (name, Some(identity)),
            _ => (resource, None),
        };
        self.named(resource).find(|d| {
            d.group == group
                && d.version == version
                && identity.is_none_or(|identity| d.prefix.identity() == identity)
        })
    }

    /// Any served version of a resource.
    pub fn any_version(&self, group: &str, resource: &str) -> Option<&Arc<ResourceDef>> {
        self.named(resource).find(|d| d.group == group)
    }

    fn named<'a, 'n>(
        &'a self,
        resource: &'n str,
    ) -> impl Iterator<Item = &'a Arc<ResourceDef>> + use<'a, 'n> {
        self.layers.iter().flat_map(move |layer| layer.named(resource))
    }

    /// The resource of a kind, as owner references name it.
    pub fn find_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<ResourceDef>> {
        self.iter()
            .find(|d| d.group == group && d.version == version && d.kind == kind)
    }

    /// Whether a group-version is served.
    pub fn serves(&self, group: &str, version: &str) -> bool {
        self.iter().any(|d| d.group == group && d.version == version)
    }

    /// All, in discovery order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ResourceDef>> {
        self.layers.iter().flat_map(|layer| layer.iter())
    }
}

/// A resource and the identity that its name carries, where all workspaces are looked at.
pub fn split_identity(resource: &str) -> (&str, &str) {
    resource.split_once(':').unwrap_or((resource, BUILTIN_IDENTITY))
}

fn builtin_layer() -> &'static Arc<Layer> {
    static LAYER: std::sync::OnceLock<Arc<Layer>> = std::sync::OnceLock::new();
    LAYER.get_or_init(|| {
        let defs = builtin::kinds().iter().map(|info| Arc::new(builtin_def(info)));
        Arc::new(Layer::new(defs))
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
