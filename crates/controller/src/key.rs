//! Keys of work: an object is named by its workspace, its namespace and its name.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use kube::api::ObjectMeta;

/// The longest id that is accepted; ids are `root`, 16-character hashes, or those of the system's own workspaces.
const MAX_ID: usize = 63;
/// What the ids of the system's own workspaces begin with.
const SYSTEM: &str = "system:";
/// The annotation by which an object says in which workspace it is. Those of the root workspace need not have it.
pub const CLUSTER_ANNOTATION: &str = "kcp.io/cluster";

static ROOT: LazyLock<WorkspaceId> = LazyLock::new(|| WorkspaceId(Arc::from("root")));
static KNOWN: LazyLock<RwLock<Known>> = LazyLock::new(RwLock::default);

/// The id of a logical cluster. All copies of an id share its text, since many keys have the same one.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkspaceId(Arc<str>);

/// The ids that are in use.
#[derive(Default)]
struct Known {
    ids: HashSet<Arc<str>>,
    /// How many there may be before those out of use are thrown away.
    limit: usize,
}

impl Known {
    fn add(&mut self, text: &str) -> Arc<str> {
        if let Some(id) = self.ids.get(text) {
            return Arc::clone(id);
        }
        if self.ids.len() >= self.limit {
            self.ids.retain(|id| Arc::strong_count(id) > 1);
            self.limit = (2 * self.ids.len()).max(64);
        }
        let id: Arc<str> = Arc::from(text);
        self.ids.insert(Arc::clone(&id));
        id
    }
}

/// A text that is no workspace id.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0:?} is not a workspace id: 1 to {MAX_ID} lower-case letters, digits and inner dashes, perhaps after \"{SYSTEM}\""
)]
pub struct InvalidWorkspaceId(String);

impl WorkspaceId {
    /// The workspace of requests that name none.
    pub fn root() -> Self {
        ROOT.clone()
    }

    /// The same, for those who only look at it.
    pub fn root_ref() -> &'static Self {
        &ROOT
    }

    /// Reads an id.
    pub fn parse(text: &str) -> Result<Self, InvalidWorkspaceId> {
        if text == ROOT.as_str() {
            return Ok(Self::root());
        }
        let name = text.strip_prefix(SYSTEM).unwrap_or(text);
        let sound = (1..=MAX_ID).contains(&name.len())
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !name.starts_with('-')
            && !name.ends_with('-');
        if !sound {
            return Err(InvalidWorkspaceId(text.chars().take(2 * MAX_ID).collect()));
        }
        let known = KNOWN
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .ids
            .get(text)
            .cloned();
        Ok(Self(known.unwrap_or_else(|| {
            KNOWN.write().unwrap_or_else(PoisonError::into_inner).add(text)
        })))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is that of the root workspace.
    pub fn is_root(&self) -> bool {
        *self == *ROOT
    }
}

impl fmt::Debug for WorkspaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for WorkspaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How far a client or a watch reaches. No object is in every workspace, so no key can be made of this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// One workspace, whatever the objects in it say of themselves: a plain Kubernetes cluster is one.
    One(WorkspaceId),
    /// All workspaces: to look, not to write. Each object says where it is.
    Every,
}

impl Reach {
    /// The workspace of an object that was seen.
    pub fn workspace_of(&self, meta: &ObjectMeta) -> WorkspaceId {
        match self {
            Self::One(workspace) => workspace.clone(),
            Self::Every => meta
                .annotations
                .as_ref()
                .and_then(|all| all.get(CLUSTER_ANNOTATION))
                .and_then(|id| WorkspaceId::parse(id).ok())
                .unwrap_or_else(WorkspaceId::root),
        }
    }

    /// What stands before the path of a URL; nothing for the root workspace.
    pub fn url_prefix(&self) -> Option<String> {
        match self {
            Self::One(workspace) if workspace.is_root() => None,
            Self::One(workspace) => Some(format!("/clusters/{workspace}")),
            Self::Every => Some("/clusters/*".to_owned()),
        }
    }
}

/// The name of an object of some kind. A cluster-scoped object has an empty namespace.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Its namespace, or nothing.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl ObjectKey {
    /// A key from its parts.
    pub fn new(workspace: &WorkspaceId, namespace: &str, name: &str) -> Self {
        Self {
            workspace: workspace.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The key of an object that was seen.
    pub fn of(reach: &Reach, meta: &ObjectMeta) -> Self {
        Self {
            workspace: reach.workspace_of(meta),
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
        }
    }

    /// The key of the namespace that the object is in.
    pub fn to_namespace(&self) -> Self {
        Self {
            workspace: self.workspace.clone(),
            namespace: String::new(),
            name: self.namespace.clone(),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{}|{}", self.workspace, self.name)
        } else {
            write!(f, "{}|{}/{}", self.workspace, self.namespace, self.name)
        }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kube::api::ObjectMeta;

    use super::{CLUSTER_ANNOTATION, Known, ObjectKey, Reach, WorkspaceId};

    #[test]
    fn ids_are_parsed_once() {
        for (text, sound) in [
            ("root", true),
            ("2x8f0a9b1c3d4e5f", true),
            ("a-b", true),
            ("system:fairway", true),
            ("system:", false),
            ("system:a:b", false),
            ("", false),
            ("*", false),
            ("-a", false),
            ("a-", false),
            ("Root", false),
            ("a/b", false),
            ("a:b", false),
        ] {
            assert_eq!(WorkspaceId::parse(text).is_ok(), sound, "{text:?}");
        }
        assert!(WorkspaceId::parse(&"a".repeat(64)).is_err());
        let (one, other) = (WorkspaceId::parse("shared"), WorkspaceId::parse("shared"));
        assert!(Arc::ptr_eq(&one.unwrap().0, &other.unwrap().0));
    }

    #[test]
    fn ids_out_of_use_are_forgotten() {
        let mut known = Known::default();
        let kept: Vec<_> = (0..100).map(|n| known.add(&format!("kept{n}"))).collect();
        for number in 0..10_000 {
            known.add(&format!("lost{number}"));
        }
        assert!(known.ids.len() <= 2 * kept.len() + 64, "{}", known.ids.len());
        assert!(Arc::ptr_eq(&known.add("kept7"), &kept[7]));
    }

    #[test]
    fn keys_read_well() {
        let root = WorkspaceId::root();
        assert_eq!(ObjectKey::new(&root, "", "a").to_string(), "root|a");
        assert_eq!(ObjectKey::new(&root, "n", "a").to_string(), "root|n/a");
    }

    #[test]
    fn an_object_says_where_it_is_to_those_who_see_every_workspace() {
        let meta = |home: Option<&str>| ObjectMeta {
            name: Some("a".to_owned()),
            annotations: home.map(|home| [(CLUSTER_ANNOTATION.to_owned(), home.to_owned())].into()),
            ..ObjectMeta::default()
        };
        let plain = Reach::One(WorkspaceId::root());
        for (reach, home, want) in [
            (&Reach::Every, None, "root|a"),
            (&Reach::Every, Some("root"), "root|a"),
            (&Reach::Every, Some("team"), "team|a"),
            (&plain, Some("team"), "root|a"),
        ] {
            assert_eq!(ObjectKey::of(reach, &meta(home)).to_string(), want);
        }
    }

    #[test]
    fn urls_name_the_workspace() {
        let one = |id: &str| Reach::One(WorkspaceId::parse(id).unwrap());
        for (reach, want) in [
            (one("root"), None),
            (one("system:fairway"), Some("/clusters/system:fairway")),
            (Reach::Every, Some("/clusters/*")),
        ] {
            assert_eq!(reach.url_prefix().as_deref(), want);
        }
    }
}
