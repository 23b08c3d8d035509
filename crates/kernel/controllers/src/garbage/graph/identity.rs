//! Which object is meant.

use fairway_controller::WorkspaceId;
use fairway_controller::kinds::Kind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;

pub(in crate::garbage) type Uid = String;

/// Where an object is. The UID is that of the object, not of whoever has its name now.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::garbage) struct Identity {
    pub(in crate::garbage) workspace: WorkspaceId,
    pub(in crate::garbage) api_version: String,
    pub(in crate::garbage) kind: String,
    /// Empty for objects of the cluster.
    pub(in crate::garbage) namespace: String,
    pub(in crate::garbage) name: String,
    pub(in crate::garbage) uid: Uid,
}

impl Identity {
    /// What a reference claims, seen from a namespace. Nobody can claim anything in another workspace.
    pub(in crate::garbage) fn claimed(
        workspace: &WorkspaceId,
        reference: &OwnerReference,
        namespace: &str,
    ) -> Self {
        Self {
            workspace: workspace.clone(),
            api_version: reference.api_version.clone(),
            kind: reference.kind.clone(),
            namespace: namespace.to_owned(),
            name: reference.name.clone(),
            uid: reference.uid.clone(),
        }
    }

    pub(in crate::garbage) fn observed(workspace: &WorkspaceId, kind: &Kind, meta: &ObjectMeta) -> Self {
        Self {
            workspace: workspace.clone(),
            api_version: kind.resource.api_version.clone(),
            kind: kind.resource.kind.clone(),
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
        }
    }

    fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// Whether a reference from that namespace means this object. Versions of a group name the same objects.
    pub(in crate::garbage) fn answers(&self, reference: &OwnerReference, namespace: &str) -> bool {
        let group = reference
            .api_version
            .split_once('/')
            .map_or("", |(group, _)| group);
        self.uid == reference.uid
            && self.name == reference.name
            && self.kind == reference.kind
            && self.group() == group
            && (self.namespace.is_empty() || self.namespace == namespace)
    }
}
