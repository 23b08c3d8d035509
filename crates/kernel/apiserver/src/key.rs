//! Where an object lives in the store.
//!
//! `/<group>/<resource>/<API identity>/<logical-cluster id>/<namespace>/<name>`: ids, never paths, so that a workspace
//! can move; the identity stands before the cluster, so that a wildcard list or watch over all workspaces is one prefix
//! and same-named CRDs of different schema never mix. The core group is written `core`; a cluster-scoped object's
//! namespace is empty.

use bytes::Bytes;

use crate::workspaces::EVERY_CLUSTER;

/// The logical cluster of requests that name no workspace.
pub const ROOT_CLUSTER: &str = "root";

/// The workspace that exports what Fairway's own domains serve.
pub const SYSTEM_CLUSTER: &str = "system:fairway";

/// Identity of kinds that the kernel itself brings.
pub const BUILTIN_IDENTITY: &str = "builtin";

/// `/<group>/<resource>/<API identity>/`: everything of one kind, in all workspaces.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KindPrefix(Box<str>);

impl KindPrefix {
    /// The prefix of a kind. `identity` is `builtin`, the CRD's UID, or an export's hash.
    pub fn new(group: &str, resource: &str, identity: &str) -> Self {
        let group = if group.is_empty() { "core" } else { group };
        Self(format!("/{group}/{resource}/{identity}/").into_boxed_str())
    }

    /// The prefix of the kind that a stored key belongs to, and the rest of the key.
    pub fn split(key: &[u8]) -> Option<(&str, &str)> {
        let key = std::str::from_utf8(key).ok()?;
        let end = key.match_indices('/').nth(3)?.0 + 1;
        Some(key.split_at(end))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `builtin`, the CRD's UID, or an export's hash.
    pub fn identity(&self) -> &str {
        self.0.trim_end_matches('/').rsplit('/').next().unwrap_or("")
    }

    /// The store's key of one object.
    pub fn object(&self, suffix: &ObjectSuffix) -> Bytes {
        Bytes::from(format!("{}{}", self.0, suffix.0))
    }
}

/// `<logical-cluster id>/<namespace>/<name>`: an object within its kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectSuffix(Box<str>);

impl ObjectSuffix {
    /// The suffix of an object; the namespace of a cluster-scoped one is empty.
    pub fn new(cluster: &str, namespace: &str, name: &str) -> Self {
        Self(format!("{cluster}/{namespace}/{name}").into_boxed_str())
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The part of an [`ObjectSuffix`] that all objects of a namespace, or of a workspace, share.
///
/// Of all workspaces there is only everything.
pub fn scope_prefix(cluster: &str, namespace: Option<&str>) -> String {
    match namespace {
        _ if cluster == EVERY_CLUSTER => String::new(),
        Some(namespace) => format!("{cluster}/{namespace}/"),
        None => format!("{cluster}/"),
    }
}

/// Cluster, namespace and name of a suffix.
pub fn split_suffix(suffix: &str) -> (&str, &str, &str) {
    let mut parts = suffix.splitn(3, '/');
    (
        parts.next().unwrap_or(""),
        parts.next().unwrap_or(""),
        parts.next().unwrap_or(""),
    )
}

#[cfg(test)]
mod tests {
    use fairway_kernel_store::KeyRange;

    use super::*;

    #[test]
    fn keys_follow_the_layout() {
        let prefix = KindPrefix::new("", "configmaps", BUILTIN_IDENTITY);
        let key = prefix.object(&ObjectSuffix::new(ROOT_CLUSTER, "default", "a"));
        assert_eq!(&key[..], b"/core/configmaps/builtin/root/default/a");
        assert_eq!(
            KindPrefix::split(&key),
            Some(("/core/configmaps/builtin/", "root/default/a"))
        );
        let cluster_scoped = ObjectSuffix::new(ROOT_CLUSTER, "", "n");
        assert_eq!(split_suffix(cluster_scoped.as_str()), ("root", "", "n"));
    }

    #[test]
    fn a_prefix_range_ends_where_the_prefix_does() {
        assert_eq!(&KeyRange::prefix(b"/a/").end[..], b"/a0");
        assert_eq!(&KeyRange::prefix(&[b'a', 0xff]).end[..], b"b");
        assert!(
            KeyRange::prefix(&[0xff]).end.is_empty(),
            "no key is above: open end"
        );
    }
}
