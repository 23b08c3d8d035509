//! The built-in kinds and how they are served.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::table::{Gvk, Kinds, ResourceRow, SubresourceRow};
use crate::shape::ShapeId;

/// A built-in kind in one version, and its resource.
#[derive(Clone, Debug)]
pub struct KindInfo {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Kind of its lists; `None` when it cannot be listed.
    pub list_kind: Option<&'static str>,
    /// Plural name, as in URLs.
    pub resource: &'static str,
    /// Singular name.
    pub singular: &'static str,
    /// Short names that kubectl accepts.
    pub short_names: Vec<&'static str>,
    /// Categories, such as `all`.
    pub categories: Vec<&'static str>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Verbs, sorted.
    pub verbs: Vec<&'static str>,
    /// Subresources, sorted by name.
    pub subresources: Vec<SubresourceInfo>,
    /// The shape of its objects, in [`super::shapes`].
    pub shape: ShapeId,
    /// The name of its type, such as `io.k8s.api.core.v1.Pod`.
    pub type_name: &'static str,
    /// Objects are stored in this group and version.
    pub storage_version: bool,
    /// Deleting an object answers with the object, not with a `Status`.
    pub delete_returns_object: bool,
    /// What discovery shows of the stored version; empty when objects are not stored.
    pub storage_version_hash: &'static str,
}

/// A subresource of a built-in kind.
#[derive(Clone, Debug)]
pub struct SubresourceInfo {
    /// Name, such as `status`.
    pub name: &'static str,
    /// Group of its objects.
    pub group: &'static str,
    /// Version of its objects.
    pub version: &'static str,
    /// Kind of its objects.
    pub kind: &'static str,
    /// Verbs, sorted.
    pub verbs: Vec<&'static str>,
    /// The shape of its objects; `None` for those that are query parameters only (`PodExecOptions`).
    pub shape: Option<ShapeId>,
}

/// Names within a group and version.
type Index = HashMap<(&'static str, &'static str, &'static str), usize>;

struct Registry {
    kinds: Vec<KindInfo>,
    by_resource: Index,
    by_kind: Index,
    groups: Vec<(&'static str, Vec<&'static str>)>,
}

/// All kinds: groups in order of priority, versions in order of preference, resources by name.
pub fn kinds() -> &'static [KindInfo] {
    &registry().kinds
}

/// API groups in order of priority with their versions, the preferred one first. The core group is the first.
pub fn groups() -> &'static [(&'static str, Vec<&'static str>)] {
    &registry().groups
}

/// The kind that is served under a resource name.
pub fn resource(group: &str, version: &str, resource: &str) -> Option<&'static KindInfo> {
    registry().find(&registry().by_resource, group, version, resource)
}

/// The kind of a name.
pub fn kind(group: &str, version: &str, kind: &str) -> Option<&'static KindInfo> {
    registry().find(&registry().by_kind, group, version, kind)
}

impl KindInfo {
    /// `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The subresource of that name.
    pub fn subresource(&self, name: &str) -> Option<&SubresourceInfo> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// Whether a verb is served.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }
}

fn registry() -> &'static Registry {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::new);
    &REGISTRY
}

impl Registry {
    fn new() -> Self {
        let table = super::facts();
        let types: HashMap<Gvk<'static>, &'static str> = table
            .types
            .iter()
            .filter_map(|row| match row.kinds {
                Kinds::One(gvk) => Some((gvk, row.name)),
                _ => None,
            })
            .collect();
        let mut registry = Self {
            kinds: Vec::new(),
            by_resource: Index::new(),
            by_kind: Index::new(),
            groups: Vec::new(),
        };
        for group in &table.groups {
            registry
                .groups
                .push((group.name, group.versions.iter().map(|v| v.name).collect()));
            for version in &group.versions {
                for row in &version.resources {
                    let Some(info) = kind_info(group.name, version.name, row, &types) else {
                        continue;
                    };
                    let index = registry.kinds.len();
                    registry
                        .by_resource
                        .insert((info.group, info.version, info.resource), index);
                    registry
                        .by_kind
                        .insert((info.group, info.version, info.kind), index);
                    registry.kinds.push(info);
                }
            }
        }
        registry
    }

    fn find(&self, index: &Index, group: &str, version: &str, name: &str) -> Option<&KindInfo> {
        index
            .get(&(group, version, name))
            .and_then(|i| self.kinds.get(*i))
    }
}

fn kind_info(
    group: &'static str,
    version: &'static str,
    row: &ResourceRow<'static>,
    types: &HashMap<Gvk<'static>, &'static str>,
) -> Option<KindInfo> {
    let type_name = *types.get(&Gvk {
        group,
        version,
        kind: row.kind,
    })?;
    let list_type = format!("{type_name}List");
    let list_kind = types
        .values()
        .find(|name| **name == list_type)
        .and_then(|name| name.rsplit('.').next())
        .filter(|_| row.verbs.contains(&"list"));
    Some(KindInfo {
        group,
        version,
        kind: row.kind,
        list_kind,
        resource: row.name,
        singular: row.singular,
        short_names: row.short_names.clone(),
        categories: row.categories.clone(),
        namespaced: row.namespaced,
        verbs: row.verbs.clone(),
        subresources: row
            .subresources
            .iter()
            .map(|s| subresource_info(s, types))
            .collect(),
        shape: super::shape(type_name)?,
        type_name,
        storage_version: row.storage,
        delete_returns_object: row.returns_deleted,
        storage_version_hash: row.storage_hash,
    })
}

fn subresource_info(
    row: &SubresourceRow<'static>,
    types: &HashMap<Gvk<'static>, &'static str>,
) -> SubresourceInfo {
    SubresourceInfo {
        name: row.name,
        group: row.gvk.group,
        version: row.gvk.version,
        kind: row.gvk.kind,
        verbs: row.verbs.clone(),
        shape: types.get(&row.gvk).and_then(|name| super::shape(name)),
    }
}
