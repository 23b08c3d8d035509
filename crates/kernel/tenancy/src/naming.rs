//! Names of the copies that a sync agent makes on a service cluster.
//!
//! Many workspaces have objects of the same name; their copies meet in one cluster. Names come from templates, copies are
//! found again by labels, and a copy that belongs to another workspace is never taken over.

use std::collections::BTreeMap;

use fairway_kernel_scalar::names;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cluster::{ClusterId, WorkspacePath};
use crate::meta::Meta;
use crate::template::{self, sha1};

/// On the original, until its copy is gone.
pub const FINALIZER: &str = "syncagent.kcp.io/cleanup";
/// Label: the workspace of the original.
pub const CLUSTER_LABEL: &str = "syncagent.kcp.io/remote-object-cluster";
/// Label: a hash of the original's namespace.
pub const NAMESPACE_HASH_LABEL: &str = "syncagent.kcp.io/remote-object-namespace-hash";
/// Label: a hash of the original's name.
pub const NAME_HASH_LABEL: &str = "syncagent.kcp.io/remote-object-name-hash";
/// Label: the agent that made the copy.
pub const AGENT_LABEL: &str = "syncagent.kcp.io/agent-name";
/// Label of copies of related objects: the identifier of the relation. kcp's agent does not mark them.
pub const RELATED_LABEL: &str = "syncagent.kcp.io/related-identifier";
/// Annotation: the original's namespace.
pub const NAMESPACE_ANNOTATION: &str = "syncagent.kcp.io/remote-object-namespace";
/// Annotation: the original's name.
pub const NAME_ANNOTATION: &str = "syncagent.kcp.io/remote-object-name";
/// Annotation: the path of the original's workspace.
pub const PATH_ANNOTATION: &str = "syncagent.kcp.io/remote-object-workspace-path";
/// Before the identifier of a related object, in annotations of the original.
pub const RELATED_PREFIX: &str = "related-resources.syncagent.kcp.io/";

const DEFAULT_NAMESPACE: &str = "{{ .ClusterName }}";
const DEFAULT_NAME: &str =
    "{{ .Object.metadata.namespace | sha3short }}-{{ .Object.metadata.name | sha3short }}";

/// The template for namespaces that are named after organisation and project, `ws-<organisation>-<project>-<namespace>`.
pub const PROJECT_NAMESPACE: &str = "ws-{{ .ClusterPath | trimPrefix \"root:\" | replace \":\" \"-\" }}-{{ .Object.metadata.namespace | default \"cluster\" }}";

/// `spec.naming` of a PublishedResource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Naming {
    /// The template for names; empty: the default.
    pub name: String,
    /// The template for namespaces; empty: the default.
    pub namespace: String,
}

/// An original: an object in a consumer's workspace.
pub struct Original<'a> {
    /// The workspace.
    pub cluster: &'a ClusterId,
    /// Its path.
    pub path: &'a WorkspacePath,
    /// The object.
    pub object: &'a Value,
}

impl Original<'_> {
    fn place(&self) -> (String, String) {
        let text = |field: &str| {
            let value = self.object.get("metadata").and_then(|it| it.get(field));
            value.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        (text("namespace"), text("name"))
    }

    /// The labels by which the copy is found again.
    pub fn labels(&self) -> BTreeMap<&'static str, String> {
        let (namespace, name) = self.place();
        let mut labels = BTreeMap::from([
            (CLUSTER_LABEL, self.cluster.to_string()),
            (NAME_HASH_LABEL, sha1(&name)),
        ]);
        if !namespace.is_empty() {
            labels.insert(NAMESPACE_HASH_LABEL, sha1(&namespace));
        }
        labels
    }

    /// The annotations that lead back from the copy. The path is written if the publication asks for it.
    pub fn annotations(&self, with_path: bool) -> BTreeMap<&'static str, String> {
        let (namespace, name) = self.place();
        let mut annotations = BTreeMap::from([(NAME_ANNOTATION, name)]);
        if !namespace.is_empty() {
            annotations.insert(NAMESPACE_ANNOTATION, namespace);
        }
        if with_path {
            annotations.insert(PATH_ANNOTATION, self.path.to_string());
        }
        annotations
    }

    /// Namespace and name of the copy. The namespace of a cluster-scoped copy is not used.
    pub fn copy_name(&self, naming: &Naming) -> Result<(String, String), String> {
        let or = |pattern: &str, default: &str| match pattern {
            "" => default.to_owned(),
            pattern => pattern.to_owned(),
        };
        let namespace = self
            .render(&or(&naming.namespace, DEFAULT_NAMESPACE))
            .map_err(|error| format!("invalid namespace naming: {error}"))?;
        let name = self
            .render(&or(&naming.name, DEFAULT_NAME))
            .map_err(|error| format!("invalid name naming: {error}"))?;
        let (namespace, name) = (fitted(&namespace, 63), fitted(&name, 253));
        // Names end up in addresses, and what they are made of is the consumer's.
        checked_namespace(&namespace).map_err(|error| format!("invalid namespace naming: {error}"))?;
        checked_name(&name).map_err(|error| format!("invalid name naming: {error}"))?;
        Ok((namespace, name))
    }

    fn render(&self, pattern: &str) -> Result<String, String> {
        if pattern.contains("{{") {
            let data = json!({
                "Object": self.object,
                "ClusterName": self.cluster.as_str(),
                "ClusterPath": self.path.as_str(),
            });
            return template::render(pattern, &data);
        }
        // The older form. Longer placeholders first: one is the beginning of another.
        let (namespace, name) = self.place();
        let mut made = pattern.to_owned();
        for (placeholder, value) in [
            ("$remoteClusterName", self.cluster.to_string()),
            ("$remoteNamespaceHash", sha1(&namespace)[..20].to_owned()),
            ("$remoteNamespace", namespace),
            ("$remoteNameHash", sha1(&name)[..20].to_owned()),
            ("$remoteName", name),
        ] {
            made = made.replace(placeholder, &value);
        }
        Ok(made)
    }
}

impl Naming {
    /// Whether the namespace is the same for all objects of all workspaces: the provider's own choice, which he answers for.
    pub fn has_fixed_namespace(&self) -> bool {
        is_fixed(&self.namespace)
    }
}

/// Whether nothing of the object's or the workspace's goes into a name.
fn is_fixed(pattern: &str) -> bool {
    !pattern.is_empty() && !pattern.contains("{{") && !pattern.contains("$remote")
}

/// A namespace's name, or why it is none.
pub(crate) fn checked_namespace(name: &str) -> Result<(), String> {
    match names::is_dns1123_label(name).first() {
        None => Ok(()),
        Some(why) => Err(format!("{name:?} is no name of a namespace: {why}")),
    }
}

/// An object's name, or why it is none.
pub(crate) fn checked_name(name: &str) -> Result<(), String> {
    match names::is_dns1123_subdomain(name).first() {
        None => Ok(()),
        Some(why) => Err(format!("{name:?} is no name of an object: {why}")),
    }
}

/// The workspace, namespace and name of the original that a copy belongs to.
pub fn original_of(copy: &Value) -> Option<(ClusterId, String, String)> {
    let meta = Meta::read(copy);
    Some((
        ClusterId::parse(meta.labels.get(CLUSTER_LABEL)?).ok()?,
        meta.annotation(NAMESPACE_ANNOTATION)
            .unwrap_or_default()
            .to_owned(),
        meta.annotation(NAME_ANNOTATION)?.to_owned(),
    ))
}

/// A name within its limit: what is cut off leaves its hash behind, so that two long names do not become one.
fn fitted(name: &str, limit: usize) -> String {
    if name.len() <= limit {
        return name.to_owned();
    }
    let hash = &sha1(name)[..10];
    let mut end = limit - hash.len() - 1;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let kept = &name[..end];
    format!("{}-{hash}", kept.trim_end_matches(['-', '.']))
}

/// Whose a namespace on the service cluster is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tenure {
    /// Nobody's yet: create it, with the label [`CLUSTER_LABEL`].
    Free,
    /// This workspace's.
    Own,
    /// Another's, or one that no agent made: use this name instead.
    Taken {
        /// A name that only this workspace can have.
        instead: String,
    },
}

/// Decides whether copies of a workspace's objects may go into a namespace. Names are joined from parts, so `a-b` and `c`
/// make the same as `a` and `b-c`; and a tenant must never get into a namespace that is not his.
pub fn tenure(namespace: &str, existing: Option<&Value>, cluster: &ClusterId) -> Tenure {
    let Some(existing) = existing else {
        return Tenure::Free;
    };
    let owner = Meta::read(existing).labels.get(CLUSTER_LABEL).cloned();
    if owner.as_deref() == Some(cluster.as_str()) {
        return Tenure::Own;
    }
    let hash = &sha1(&format!("{cluster}/{namespace}"))[..10];
    Tenure::Taken {
        instead: format!("{}-{hash}", &fitted(namespace, 63 - 11)),
    }
}

#[cfg(test)]
mod tests;
