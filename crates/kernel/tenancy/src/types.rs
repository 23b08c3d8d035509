//! Workspace types: what follows from one, and which workspace may be created where.
//!
//! A type may extend others and is then all of them at once: its workspaces run their initializers, begin with their
//! APIs, and are welcome wherever one of them is. [`Resolved`] is a type with everything that it extends.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::cluster::{ClusterId, WorkspacePath};
use crate::meta::{Meta, part};
use crate::names::API_BINDINGS_INITIALIZER;

/// How many types one may extend, itself included. Beyond it somebody is playing.
const MAX_ALIASES: usize = 64;

/// Names that no type may have.
pub const RESERVED: [&str; 2] = ["any", "system"];

/// A reference to a type: with a path to exactly that one, without to the nearest one up the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub struct TypeReference {
    /// The type's name.
    pub name: String,
    /// The workspace that it lies in; may be empty.
    pub path: String,
}

impl fmt::Display for TypeReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.name),
            path => write!(f, "{path}:{}", self.name),
        }
    }
}

/// Which types are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct TypeSelector {
    /// None at all.
    pub none: bool,
    /// These, and what extends them. Empty: all.
    pub types: Vec<TypeReference>,
}

/// A reference to an APIExport.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub struct ExportReference {
    /// The workspace that it lies in; empty means that of the type.
    pub path: String,
    /// Its name.
    pub export: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Extension {
    with: Vec<TypeReference>,
}

/// What a type says.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TypeSpec {
    /// A controller has work to do before a workspace is ready.
    pub initializer: bool,
    /// A controller has work to do before a workspace goes.
    pub terminator: bool,
    extend: Extension,
    /// Labels for new workspaces.
    pub additional_workspace_labels: BTreeMap<String, String>,
    /// The type of children whose creator names none.
    pub default_child_workspace_type: Option<TypeReference>,
    /// Which children are welcome.
    pub limit_allowed_children: Option<TypeSelector>,
    /// Under which parents it may stand.
    pub limit_allowed_parents: Option<TypeSelector>,
    /// APIs that a workspace begins with.
    #[serde(rename = "defaultAPIBindings")]
    pub default_api_bindings: Vec<ExportReference>,
    /// `InitializeOnly` or `Maintain`.
    #[serde(rename = "defaultAPIBindingLifecycle")]
    pub default_api_binding_lifecycle: Option<String>,
    /// What initializers may do inside; empty: what the creator may.
    pub initializer_permissions: Vec<Value>,
    /// What terminators may do inside; empty: what the creator may.
    pub terminator_permissions: Vec<Value>,
}

/// A WorkspaceType.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkspaceType {
    /// Its name.
    pub name: String,
    /// The workspace that it lies in.
    pub cluster: ClusterId,
    /// The path of that workspace.
    pub path: WorkspacePath,
    /// What it says.
    pub spec: TypeSpec,
}

impl WorkspaceType {
    /// Reads the object. Nothing, if it does not say where it lies.
    pub fn read(object: &Value) -> Option<Self> {
        let meta = Meta::read(object);
        Some(Self {
            cluster: meta.cluster()?,
            path: meta.path()?,
            name: meta.name,
            spec: part(object, "spec"),
        })
    }

    /// `<path>:<name>`, under which others know it.
    pub fn qualified(&self) -> String {
        format!("{}:{}", self.path, self.name)
    }

    /// The name of its initializer and of its terminator.
    pub fn initializer_name(&self) -> String {
        format!("{}:{}", self.cluster, self.name)
    }

    /// The initializer's type: the workspace and the name in it.
    pub fn of_initializer(initializer: &str) -> Option<(ClusterId, &str)> {
        let (cluster, name) = initializer.rsplit_once(':')?;
        Some((ClusterId::parse(cluster).ok()?, name))
    }
}

/// Why a type cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// There is no such type.
    #[error("workspace type {0:?} cannot be resolved: create it, or name one that exists in spec.type")]
    Unresolved(String),
    /// It extends a type that does not exist.
    #[error("unable to find inherited workspace type {0}")]
    BaseMissing(String),
    /// It extends itself.
    #[error("circular dependency detected in workspace type {of}: {chain}")]
    Cycle {
        /// The type at which the circle closes.
        of: String,
        /// The types on the way.
        chain: String,
    },
    /// It extends too many.
    #[error("workspace type {0} extends more than {MAX_ALIASES} types")]
    TooMany(String),
    /// The creator named no type, and the parent's type has no default.
    #[error("spec.type must be set: workspace type {0} has no spec.defaultChildWorkspaceType")]
    NoDefault(String),
    /// The parent's type is not known.
    #[error("parent type cannot be resolved: {0}")]
    Parent(Box<TypeError>),
    /// Parent and child do not go together. All reasons.
    #[error("{}", one_or_list(.0))]
    Misplaced(Vec<String>),
}

/// One message as it is, several as Go's aggregated errors are written.
fn one_or_list(messages: &[String]) -> String {
    match messages {
        [one] => one.clone(),
        more => format!("[{}]", more.join(", ")),
    }
}

/// Finds a type by the path of its workspace and its name.
pub type Lookup<'a> = &'a dyn Fn(&WorkspacePath, &str) -> Option<Arc<WorkspaceType>>;

/// The type that a reference in a workspace means. Without a path the workspace itself is asked, then those above, `root`
/// last.
pub fn resolve(
    from: &WorkspacePath,
    reference: &TypeReference,
    lookup: Lookup<'_>,
) -> Result<Arc<WorkspaceType>, TypeError> {
    let unresolved = || TypeError::Unresolved(reference.to_string());
    if !reference.path.is_empty() {
        let path = WorkspacePath::parse(&reference.path).map_err(|_| unresolved())?;
        return lookup(&path, &reference.name).ok_or_else(unresolved);
    }
    let root = WorkspacePath::root();
    let mut at = Some(from.clone());
    while let Some(path) = at {
        if let Some(found) = lookup(&path, &reference.name) {
            return Ok(found);
        }
        at = path.parent().or_else(|| (path != root).then(|| root.clone()));
    }
    Err(unresolved())
}

/// A type, and all that it is by extension.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// Extended types first, the type itself last.
    aliases: Vec<Arc<WorkspaceType>>,
    own: Arc<WorkspaceType>,
}

/// One question for the authorizer: may the user `use` this type? It is asked in the type's own workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UseQuestion {
    /// Where to ask.
    pub cluster: ClusterId,
    /// `workspacetypes/<name>` of `tenancy.kcp.io`, verb `use`.
    pub name: String,
    /// What to say if the answer is no.
    pub refusal: String,
}

/// An API that a workspace of a type begins with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DefaultBinding {
    /// The path, or the id, of the export's workspace.
    pub path: String,
    /// The export.
    pub export: String,
    /// Whether it is kept as the type says for ever, or only bound once.
    pub maintain: bool,
}

impl Resolved {
    /// Follows everything that a type extends.
    pub fn of(own: &Arc<WorkspaceType>, lookup: Lookup<'_>) -> Result<Self, TypeError> {
        let mut seen = BTreeSet::new();
        let mut aliases = Vec::new();
        follow(own, lookup, &mut seen, &mut Vec::new(), &mut aliases)?;
        aliases.push(Arc::clone(own));
        Ok(Self {
            aliases,
            own: Arc::clone(own),
        })
    }

    /// The type itself.
    pub fn own(&self) -> &Arc<WorkspaceType> {
        &self.own
    }

    /// Extended types first, the type itself last.
    pub fn aliases(&self) -> &[Arc<WorkspaceType>] {
        &self.aliases
    }

    /// What has to happen before a workspace is ready.
    pub fn initializers(&self) -> Vec<String> {
        let mut names: Vec<_> = self
            .aliases
            .iter()
            .filter(|it| it.spec.initializer)
            .map(|it| it.initializer_name())
            .collect();
        if self
            .aliases
            .iter()
            .any(|it| !it.spec.default_api_bindings.is_empty())
        {
            names.push(API_BINDINGS_INITIALIZER.to_owned());
        }
        names
    }

    /// What has to happen before a workspace goes.
    pub fn terminators(&self) -> Vec<String> {
        self.aliases
            .iter()
            .filter(|it| it.spec.terminator)
            .map(|it| it.initializer_name())
            .collect()
    }

    /// The APIs that a workspace begins with, each once; maintained if one type wants that.
    pub fn default_bindings(&self) -> Vec<DefaultBinding> {
        let mut bindings: Vec<DefaultBinding> = Vec::new();
        for alias in &self.aliases {
            let maintain = alias.spec.default_api_binding_lifecycle.as_deref() == Some("Maintain");
            for reference in &alias.spec.default_api_bindings {
                let path = match reference.path.as_str() {
                    "" => alias.cluster.to_string(),
                    path => path.to_owned(),
                };
                match bindings
                    .iter_mut()
                    .find(|it| it.path == path && it.export == reference.export)
                {
                    Some(known) => known.maintain |= maintain,
                    None => bindings.push(DefaultBinding {
                        path,
                        export: reference.export.clone(),
                        maintain,
                    }),
                }
            }
        }
        bindings
    }

    /// What the creator of a workspace must be allowed: `use` on every type that it will be.
    pub fn use_questions(&self) -> Vec<UseQuestion> {
        self.aliases
            .iter()
            .map(|it| UseQuestion {
                cluster: it.cluster.clone(),
                name: it.name.clone(),
                refusal: format!(
                    "unable to use workspace type {}: missing verb='use' permission on workspacetype",
                    it.qualified()
                ),
            })
            .collect()
    }

    fn implements(&self, types: &[TypeReference]) -> bool {
        self.aliases
            .iter()
            .any(|alias| types.iter().any(|it| it.to_string() == alias.qualified()))
    }

    /// Why a workspace of this type may not stand below one of type `parent`; empty if it may.
    pub fn objections_below(&self, parent: &Self) -> Vec<String> {
        let mut objections = Vec::new();
        for alias in &self.aliases {
            let limit = alias.spec.limit_allowed_parents.as_ref();
            objections.extend(objection(limit, alias, self, parent, "parent"));
        }
        for alias in &parent.aliases {
            let limit = alias.spec.limit_allowed_children.as_ref();
            objections.extend(objection(limit, alias, parent, self, "child"));
        }
        objections
    }
}

/// What `limit`, which `alias` brings to `subject`, says against `other` as its parent or child.
fn objection(
    limit: Option<&TypeSelector>,
    alias: &WorkspaceType,
    subject: &Resolved,
    other: &Resolved,
    role: &str,
) -> Option<String> {
    let limit = limit?;
    let name = subject.own.qualified();
    if limit.none {
        return Some(format!("workspace type {name} cannot have any {role}"));
    }
    if limit.types.is_empty() || other.implements(&limit.types) {
        return None;
    }
    let extending = if alias.qualified() == name {
        String::new()
    } else {
        format!(" extends {}, which", alias.qualified())
    };
    let sorted = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(" ");
    Some(format!(
        "workspace type {name}{extending} only allows [{}] {role} workspaces, but {role} type {} only implements [{}]",
        sorted(limit.types.iter().map(ToString::to_string).collect()),
        other.own.qualified(),
        sorted(other.aliases.iter().map(|it| it.qualified()).collect()),
    ))
}

/// Depth first: a base, then its bases. A type that is reached twice counts once.
fn follow(
    of: &Arc<WorkspaceType>,
    lookup: Lookup<'_>,
    seen: &mut BTreeSet<String>,
    way: &mut Vec<String>,
    found: &mut Vec<Arc<WorkspaceType>>,
) -> Result<(), TypeError> {
    let name = of.qualified();
    seen.insert(name.clone());
    way.push(name);
    for reference in &of.spec.extend.with {
        let base = resolve(&of.path, reference, lookup)
            .map_err(|_| TypeError::BaseMissing(reference.to_string()))?;
        let base_name = base.qualified();
        if let Some(start) = way.iter().position(|it| *it == base_name) {
            return Err(TypeError::Cycle {
                of: base_name,
                chain: way[start..].join(" -> "),
            });
        }
        if seen.contains(&base_name) {
            continue;
        }
        if found.len() + 1 >= MAX_ALIASES {
            return Err(TypeError::TooMany(way[0].clone()));
        }
        found.push(Arc::clone(&base));
        follow(&base, lookup, seen, way, found)?;
    }
    way.pop();
    Ok(())
}

/// What the answer to the creation of a Workspace rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Admitted {
    /// The type, with its path.
    pub reference: TypeReference,
    /// The type, and what it extends.
    pub resolved: Resolved,
    /// Labels to add where the creator set none.
    pub labels: BTreeMap<String, String>,
    /// What the creator has to be allowed.
    pub questions: Vec<UseQuestion>,
}

/// Decides on the type of a new Workspace in the workspace `here`, whose own type is `here_type` (`<path>:<name>`).
pub fn admit(
    here: &WorkspacePath,
    here_type: &str,
    requested: Option<&TypeReference>,
    lookup: Lookup<'_>,
) -> Result<Admitted, TypeError> {
    let parent = WorkspacePath::parse(here_type)
        .ok()
        .and_then(|path| path.split().map(|(path, name)| (path, name.to_owned())))
        .and_then(|(path, name)| lookup(&path, &name))
        .ok_or_else(|| TypeError::Parent(Box::new(TypeError::Unresolved(here_type.to_owned()))))?;
    let requested = match requested.filter(|it| !it.name.is_empty()) {
        Some(requested) => requested.clone(),
        None => parent
            .spec
            .default_child_workspace_type
            .clone()
            .ok_or_else(|| TypeError::NoDefault(parent.qualified()))?,
    };
    let own = resolve(here, &requested, lookup)?;
    let resolved = Resolved::of(&own, lookup)?;
    let parent = Resolved::of(&parent, lookup).map_err(|error| TypeError::Parent(Box::new(error)))?;
    let objections = resolved.objections_below(&parent);
    if !objections.is_empty() {
        return Err(TypeError::Misplaced(objections));
    }
    Ok(Admitted {
        reference: TypeReference {
            name: requested.name,
            path: if requested.path.is_empty() {
                own.path.to_string()
            } else {
                requested.path
            },
        },
        labels: own.spec.additional_workspace_labels.clone(),
        questions: resolved.use_questions(),
        resolved,
    })
}

/// What is wrong with a WorkspaceType that somebody wrote into the workspace `cluster`, beyond its schema.
pub fn objection_to(object: &Value, cluster: &ClusterId) -> Option<String> {
    let name = Meta::read(object).name;
    let spec: TypeSpec = part(object, "spec");
    if RESERVED.contains(&name.as_str()) {
        return Some(format!(
            "metadata.name: Invalid value: {name:?}: name is reserved"
        ));
    }
    if name == "root" && !cluster.is_root() {
        return Some("root workspace type can only be created in root cluster".to_owned());
    }
    if spec
        .default_child_workspace_type
        .as_ref()
        .is_some_and(|it| it.path.is_empty())
    {
        return Some(".spec.defaultChildWorkspaceType.path must be set".to_owned());
    }
    for (field, limit) in [
        ("limitAllowedChildren", &spec.limit_allowed_children),
        ("limitAllowedParents", &spec.limit_allowed_parents),
    ] {
        let types = limit.as_ref().map_or(&[][..], |it| &it.types);
        if let Some(at) = types.iter().position(|it| it.path.is_empty()) {
            return Some(format!(".spec.{field}.types[{at}].path must be set"));
        }
    }
    None
}

#[cfg(test)]
mod tests;
