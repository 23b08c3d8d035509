//! Workspaces, LogicalClusters and APIBindings, known by what can be told of them without looking any further.
//!
//! There are thousands of them and one of each is read whenever a server starts, by everybody who keeps something of it. So
//! these are read straight from JSON text, and what is not named here is passed over. Whoever works on one reads it whole.

use fairway_kernel_scalar::borrowed::{Pairs, Text};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::binding::{Fingerprint, fingerprint, is_without_complaint};
use crate::logical_cluster::Phase;
use crate::names::{annotation, finalizer, label};

/// Metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound = "'de: 'a")]
pub struct Meta<'a> {
    /// Its name.
    pub name: Text<'a>,
    /// Its version.
    pub resource_version: Text<'a>,
    /// Its annotations.
    pub annotations: Pairs<'a>,
    deletion_timestamp: Option<Text<'a>>,
    labels: Pairs<'a>,
    finalizers: Option<Vec<Text<'a>>>,
}

impl Meta<'_> {
    /// Whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    fn is_labelled_ready(&self) -> bool {
        self.labels.get(label::PHASE) == Some(Phase::Ready.as_str())
    }
}

/// A Workspace.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
pub struct Workspace<'a> {
    /// Its metadata.
    pub metadata: Meta<'a>,
    spec: Option<WorkspaceSpec<'a>>,
    status: Option<Status<'a>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
struct WorkspaceSpec<'a> {
    cluster: Text<'a>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
struct Status<'a> {
    phase: Text<'a>,
    #[serde(rename = "URL")]
    url: Text<'a>,
}

fn phase_of<'s>(status: Option<&'s Status<'_>>) -> &'s str {
    status.map_or("", |status| status.phase.as_str())
}

impl Workspace<'_> {
    /// The id that it was given; empty: none.
    pub fn cluster(&self) -> &str {
        self.spec.as_ref().map_or("", |spec| spec.cluster.as_str())
    }

    /// Whether nothing is to be done as long as its LogicalCluster is settled.
    pub fn is_settled(&self) -> bool {
        phase_of(self.status.as_ref()) == Phase::Ready.as_str()
            && !self.metadata.is_deleting()
            && self.metadata.is_labelled_ready()
    }
}

/// A LogicalCluster.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
pub struct Cluster<'a> {
    /// Its metadata.
    pub metadata: Meta<'a>,
    spec: Option<ClusterSpec<'a>>,
    status: Option<Status<'a>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
struct ClusterSpec<'a> {
    owner: Option<Owner<'a>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
struct Owner<'a> {
    cluster: Text<'a>,
    name: Text<'a>,
}

impl Cluster<'_> {
    /// The Workspace that it belongs to: the id of the workspace that lies in, and its name.
    pub fn owner(&self) -> Option<(&str, &str)> {
        let owner = self.spec.as_ref()?.owner.as_ref()?;
        let (cluster, name) = (owner.cluster.as_str(), owner.name.as_str());
        (!cluster.is_empty() && !name.is_empty()).then_some((cluster, name))
    }

    /// Its type, as `<path>:<name>`; empty: none.
    pub fn type_name(&self) -> &str {
        self.metadata
            .annotations
            .get(annotation::TYPE)
            .unwrap_or_default()
    }

    /// Its path; empty: it says none.
    pub fn path(&self) -> &str {
        self.metadata
            .annotations
            .get(annotation::PATH)
            .unwrap_or_default()
    }

    /// Whether it is not in use yet.
    pub fn is_initializing(&self) -> bool {
        let phase = phase_of(self.status.as_ref());
        ["", Phase::Scheduling.as_str(), Phase::Initializing.as_str()].contains(&phase)
    }

    /// The address of the server that it says it is at, if that is all before its path.
    pub fn server(&self) -> Option<&str> {
        let url = self.status.as_ref()?.url.as_str();
        url.strip_suffix(self.path())?.strip_suffix("/clusters/")
    }

    /// Whether it is ready, and nothing is to be done as long as its bindings are there and the server's address is the
    /// same.
    pub fn is_settled(&self) -> bool {
        let Self { metadata, status, .. } = self;
        let is_inactive = [annotation::INACTIVE, annotation::INACTIVE_LEGACY]
            .iter()
            .any(|key| metadata.annotations.get(key) == Some("true"));
        let mut finalizers = metadata.finalizers.iter().flatten();
        phase_of(status.as_ref()) == Phase::Ready.as_str()
            && !is_inactive
            && !metadata.is_deleting()
            && metadata.is_labelled_ready()
            && finalizers.any(|it| it.as_str() == finalizer::LOGICAL_CLUSTER_CONTENT)
    }
}

/// An APIBinding.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
pub struct Binding<'a> {
    /// Its metadata.
    pub metadata: Meta<'a>,
    spec: Option<BindingSpec<'a>>,
    status: Option<BindingStatus<'a>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound = "'de: 'a")]
struct BindingSpec<'a> {
    reference: Option<Reference<'a>>,
    permission_claims: Option<Vec<Claim<'a>>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
struct Claim<'a> {
    state: Text<'a>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
struct Reference<'a> {
    export: Option<ExportReference<'a>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
struct ExportReference<'a> {
    name: Text<'a>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound = "'de: 'a")]
struct BindingStatus<'a> {
    phase: Text<'a>,
    api_export_cluster_name: Text<'a>,
    bound_resources: Option<Vec<Bound<'a>>>,
    conditions: Option<Vec<Condition<'a>>>,
    applied_permission_claims: Option<Vec<IgnoredAny>>,
    export_permission_claims: Option<Vec<IgnoredAny>>,
}

/// A resource that a binding brings.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
pub struct Bound<'a> {
    /// Its group.
    pub group: Text<'a>,
    /// Its plural name.
    pub resource: Text<'a>,
    /// Its schema.
    pub schema: Schema<'a>,
}

/// The schema of a resource that a binding brings.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound = "'de: 'a")]
pub struct Schema<'a> {
    /// Its name.
    pub name: Text<'a>,
    /// Its UID.
    #[serde(rename = "UID")]
    pub uid: Text<'a>,
    /// The identity of its export.
    pub identity_hash: Text<'a>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
struct Condition<'a> {
    r#type: Text<'a>,
    status: Text<'a>,
}

fn some<T>(list: Option<&Vec<T>>) -> bool {
    list.is_some_and(|list| !list.is_empty())
}

impl Binding<'_> {
    /// The id of the workspace and the name of the export, once that was found.
    pub fn export(&self) -> Option<(&str, &str)> {
        let cluster = self.status.as_ref()?.api_export_cluster_name.as_str();
        let export = self.spec.as_ref()?.reference.as_ref()?.export.as_ref()?;
        (!cluster.is_empty()).then_some((cluster, export.name.as_str()))
    }

    /// What it brings.
    pub fn bound(&self) -> &[Bound<'_>] {
        let bound = self.status.as_ref().and_then(|it| it.bound_resources.as_ref());
        bound.map_or(&[], Vec::as_slice)
    }

    fn answers(&self) -> &[Claim<'_>] {
        let answers = self.spec.as_ref().and_then(|it| it.permission_claims.as_ref());
        answers.map_or(&[], Vec::as_slice)
    }

    /// Whether it lets its provider see more than its own kinds.
    pub fn consents(&self) -> bool {
        self.answers().iter().any(|it| it.state.as_str() == "Accepted")
    }

    fn holds(&self, kind: &str) -> bool {
        let conditions = self.status.as_ref().and_then(|it| it.conditions.as_ref());
        let mut conditions = conditions.into_iter().flatten();
        conditions
            .find(|it| it.r#type.as_str() == kind)
            .is_some_and(|it| it.status.as_str() == "True")
    }

    /// Whether it got so far that a new workspace may be used.
    pub fn is_initially_bound(&self) -> bool {
        self.holds("InitialBindingCompleted") && (self.holds("PermissionClaimsApplied") || !self.consents())
    }

    /// What it has taken; nothing if it is not complete, complains, goes, or is about claims.
    pub fn taken(&self) -> Option<Fingerprint> {
        let status = self.status.as_ref()?;
        let is_about_claims = !self.answers().is_empty()
            || some(status.applied_permission_claims.as_ref())
            || some(status.export_permission_claims.as_ref());
        if is_about_claims
            || status.phase.as_str() != "Bound"
            || self.metadata.is_deleting()
            || !is_without_complaint(|kind| self.holds(kind))
        {
            return None;
        }
        let (cluster, export) = self.export()?;
        let bound = self.bound();
        let identity = bound.first()?.schema.identity_hash.as_str();
        if bound
            .iter()
            .any(|it| it.schema.identity_hash.as_str() != identity)
        {
            return None;
        }
        let taken = bound.iter().map(|it| {
            (
                it.group.as_str(),
                it.resource.as_str(),
                it.schema.name.as_str(),
                it.schema.uid.as_str(),
            )
        });
        Some(fingerprint(cluster, export, identity, taken.collect()))
    }
}

#[cfg(test)]
mod tests;
