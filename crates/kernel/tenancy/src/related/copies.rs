//! Copies of related objects: what they look like, where they may go, and how they are known again.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cluster::ClusterId;
use crate::meta::Meta;
use crate::mirror::retyped;
use crate::mutation::Mutator;
use crate::naming::{AGENT_LABEL, CLUSTER_LABEL, Original, RELATED_LABEL, checked_name, checked_namespace};
use crate::published::{Origin, Served, stripped};
use crate::template::sha1;

/// Types of Secrets that are credentials of the cluster that they lie in. They are not copied: a name in a field, which
/// a consumer chooses, would be enough to get one, or to have one filled in.
const CREDENTIALS: [&str; 2] = [
    "kubernetes.io/service-account-token",
    "bootstrap.kubernetes.io/token",
];

/// Whether an object is a credential of the cluster that it lies in.
pub fn is_credential(object: &Value) -> bool {
    let kind = object.get("type").and_then(Value::as_str).unwrap_or_default();
    CREDENTIALS.contains(&kind)
}

/// Whether the specification of a namespace names one that the provider has fixed: nothing of the object's goes into it.
pub fn is_fixed_namespace(spec: &Value) -> bool {
    let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str);
    let by_template = text("/template/template").is_some_and(|it| !it.is_empty() && !it.contains("{{"));
    // Without a pattern, the replacement is the name.
    let by_regex = |at: &str| {
        text(&format!("{at}/pattern")).unwrap_or_default().is_empty()
            && text(&format!("{at}/replacement")).is_some_and(|it| !it.is_empty())
    };
    by_template || by_regex("/reference/regex")
}

/// Whether related objects of a workspace may be in a namespace of the service cluster: the one that the published
/// object's copy is in, one that is the workspace's own, or one that the provider has fixed.
pub fn may_use(
    namespace: &str,
    existing: Option<&Value>,
    primary: &str,
    fixed: bool,
    cluster: &ClusterId,
) -> Result<(), String> {
    checked_namespace(namespace)?;
    if namespace == primary || fixed {
        return Ok(());
    }
    let label = existing.and_then(|it| Meta::read(it).labels.get(CLUSTER_LABEL).cloned());
    if label.as_deref() == Some(cluster.as_str()) {
        return Ok(());
    }
    Err(format!(
        "namespace {namespace:?} on the service cluster is not workspace {cluster}'s: label it {CLUSTER_LABEL}={cluster} if \
         objects of that workspace may be there"
    ))
}

/// A relation of a publication, in one workspace.
pub struct Relation<'a> {
    /// The workspace.
    pub cluster: &'a ClusterId,
    /// The PublishedResource.
    pub publication: &'a str,
    /// The relation's identifier.
    pub identifier: &'a str,
    /// Where the originals are.
    pub origin: Origin,
    /// The agent.
    pub agent: &'a str,
}

/// What is to be done with the copy of a related object.
#[derive(Clone, Debug, PartialEq)]
pub enum Sync {
    /// Apply this.
    Apply(Value),
    /// Something of that name is there, and it is not the agent's copy.
    Taken,
}

impl Relation<'_> {
    /// The labels of all copies that the relation has on the service cluster. Copies in workspaces carry none: consumers
    /// shall not see how it is done, and what is written there tells by its field manager whose it is.
    pub fn mark(&self) -> BTreeMap<&'static str, String> {
        let publication = &sha1(self.publication)[..10];
        BTreeMap::from([
            (CLUSTER_LABEL, self.cluster.to_string()),
            (AGENT_LABEL, self.agent.to_owned()),
            (RELATED_LABEL, format!("{}.{publication}", self.identifier)),
        ])
    }

    /// Labels and annotations of the copy of one object. Several published objects may share it.
    fn marks(&self, object: &Value) -> (BTreeMap<&'static str, String>, BTreeMap<&'static str, String>) {
        if self.origin == Origin::Service {
            return (BTreeMap::new(), BTreeMap::new());
        }
        let path = self.cluster.path();
        let original = Original {
            cluster: self.cluster,
            path: &path,
            object,
        };
        let mut labels = self.mark();
        labels.extend(original.labels());
        (labels, original.annotations(false))
    }

    /// Whether something that is where the copy of an object should be is that.
    pub fn owns(&self, object: &Value, found: &Value, manager: &str) -> bool {
        match self.origin {
            Origin::Kcp => {
                let meta = Meta::read(found);
                let mut labels = self.marks(object).0.into_iter();
                labels.all(|(key, value)| meta.labels.get(key) == Some(&value))
            }
            Origin::Service => {
                let fields = found.pointer("/metadata/managedFields").and_then(Value::as_array);
                fields
                    .into_iter()
                    .flatten()
                    .any(|it| it["manager"] == manager && it["operation"] == "Apply")
            }
        }
    }

    /// Decides about one copy. `kind` and `place` say what and where it is, `existing` what is there.
    pub fn sync(
        &self,
        object: &Value,
        mutator: &Mutator,
        kind: &Served,
        place: (&str, &str),
        existing: Option<&Value>,
        manager: &str,
    ) -> Result<Sync, String> {
        checked_name(place.1)?;
        if existing.is_some_and(|it| !self.owns(object, it, manager)) {
            return Ok(Sync::Taken);
        }
        let skeleton = retyped(object, kind, place);
        let mutated = mutator
            .spec(object, existing.unwrap_or(&skeleton))
            .map_err(|error| format!("failed to apply spec mutation rules: {error}"))?;
        let mut copy = retyped(&stripped(&mutated), kind, place);
        if let Some(fields) = copy.as_object_mut() {
            fields.shift_remove("status");
        }
        let (labels, annotations) = self.marks(object);
        for (key, value) in labels {
            copy["metadata"]["labels"][key] = json!(value);
        }
        for (key, value) in annotations {
            copy["metadata"]["annotations"][key] = json!(value);
        }
        if let Some(uid) = existing.and_then(|it| it.pointer("/metadata/uid")) {
            copy["metadata"]["uid"] = uid.clone();
        }
        Ok(Sync::Apply(copy))
    }
}
