//! Keys of work: an object is named by its workspace, its namespace and its name.

use std::fmt;
use std::sync::{Arc, LazyLock};

use kube::api::ObjectMeta;

/// The longest id that is accepted; ids are `root` or 16-character hashes.
const MAX_ID: usize = 63;

static ROOT: LazyLock<WorkspaceId> = LazyLock::new(|| WorkspaceId(Arc::from("root")));

/// The id of a logical cluster.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkspaceId(Arc<str>);

/// A text that is no workspace id.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is not a workspace id: 1 to {MAX_ID} lower-case letters and digits")]
pub struct InvalidWorkspaceId(String);

impl WorkspaceId {
    /// The workspace of requests that name none.
    pub fn root() -> Self {
        ROOT.clone()
    }

    /// Reads an id.
    pub fn parse(text: &str) -> Result<Self, InvalidWorkspaceId> {
        let sound = (1..=MAX_ID).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if sound {
            Ok(Self(Arc::from(text)))
        } else {
            Err(InvalidWorkspaceId(text.chars().take(2 * MAX_ID).collect()))
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
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

    /// The key of an object.
    pub fn of(workspace: &WorkspaceId, meta: &ObjectMeta) -> Self {
        Self::new(
            workspace,
            meta.namespace.as_deref().unwrap_or_default(),
            meta.name.as_deref().unwrap_or_default(),
        )
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
    use super::{ObjectKey, WorkspaceId};

    #[test]
    fn ids_are_parsed_once() {
        for (text, sound) in [
            ("root", true),
            ("2x8f0a9b1c3d4e5f", true),
            ("", false),
            ("Root", false),
            ("a/b", false),
            ("a:b", false),
        ] {
            assert_eq!(WorkspaceId::parse(text).is_ok(), sound, "{text:?}");
        }
        assert!(WorkspaceId::parse(&"a".repeat(64)).is_err());
    }

    #[test]
    fn keys_read_well() {
        let root = WorkspaceId::root();
        assert_eq!(ObjectKey::new(&root, "", "a").to_string(), "root|a");
        assert_eq!(ObjectKey::new(&root, "n", "a").to_string(), "root|n/a");
    }
}
