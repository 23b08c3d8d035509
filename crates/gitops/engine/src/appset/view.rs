//! What is kept of each Application that a set controls: what the set writes, and how it stands.

use fairway_api::argoproj::API_VERSION;
use fairway_controller::glimpse::{Kept, meta};
use kube::api::ObjectMeta;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

/// An Application of a set. Of others only the fact is kept that they are nobody's.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct View {
    /// The name and the UID of the set that controls it; none if no set does.
    pub(crate) owner: Option<(String, String)>,
    /// As decisions read it, with those fields only that they read.
    pub(crate) object: Value,
}

#[derive(Deserialize)]
pub(crate) struct Wire {
    metadata: WireMeta,
    #[serde(default)]
    spec: Value,
    operation: Option<IgnoredAny>,
    #[serde(default)]
    status: WireStatus,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct WireMeta {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
    labels: Map<String, Value>,
    annotations: Map<String, Value>,
    finalizers: Vec<String>,
    owner_references: Vec<Value>,
    deletion_timestamp: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct WireStatus {
    sync: Standing,
    health: Standing,
    operation_state: WireOperation,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Standing {
    status: String,
    revision: String,
    revisions: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct WireOperation {
    phase: String,
    finished_at: Option<String>,
    sync_result: Option<Standing>,
}

impl Kept for View {
    type Wire<'a> = Wire;

    fn keep(wire: &Wire) -> (ObjectMeta, Self) {
        let own = &wire.metadata;
        let home = own.annotations.get(fairway_controller::key::CLUSTER_ANNOTATION);
        let metadata = meta(
            &own.name,
            &own.namespace,
            &own.resource_version,
            home.and_then(Value::as_str),
        );
        (metadata, Self::of(wire))
    }
}

impl View {
    /// What is kept of an Application that was read.
    pub(crate) fn read(object: &Value) -> Self {
        // Whoever cannot be read is nobody's, and is looked at again when somebody mends it.
        Wire::deserialize(object).map_or_else(|_| Self::default(), |wire| Self::of(&wire))
    }

    fn of(wire: &Wire) -> Self {
        let own = &wire.metadata;
        let Some(owner) = controller(&own.owner_references) else {
            return Self::default();
        };
        let mut metadata = json!({
            "name": own.name, "namespace": own.namespace, "uid": own.uid, "resourceVersion": own.resource_version,
            "ownerReferences": own.owner_references,
        });
        if !own.labels.is_empty() {
            metadata["labels"] = Value::Object(own.labels.clone());
        }
        if !own.annotations.is_empty() {
            metadata["annotations"] = Value::Object(own.annotations.clone());
        }
        if !own.finalizers.is_empty() {
            metadata["finalizers"] = json!(own.finalizers);
        }
        if let Some(at) = &own.deletion_timestamp {
            metadata["deletionTimestamp"] = json!(at);
        }
        let standing =
            |it: &Standing| json!({"status": it.status, "revision": it.revision, "revisions": it.revisions});
        let operation = &wire.status.operation_state;
        let mut object = json!({
            "metadata": metadata,
            "spec": wire.spec,
            "status": {
                "sync": standing(&wire.status.sync),
                "health": {"status": wire.status.health.status},
                "operationState": {
                    "phase": operation.phase,
                    "finishedAt": operation.finished_at,
                    "syncResult": operation.sync_result.as_ref().map(standing),
                },
            },
        });
        if wire.operation.is_some() {
            object["operation"] = json!(true);
        }
        Self {
            owner: Some(owner),
            object,
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Whether a set controls it.
    pub(crate) fn is_of(&self, set: &str, uid: &str) -> bool {
        self.owner
            .as_ref()
            .is_some_and(|(name, own)| name == set && own == uid)
    }
}

/// The set that controls an object.
fn controller(owners: &[Value]) -> Option<(String, String)> {
    let fits = |it: &&Value| {
        it["controller"] == true && it["apiVersion"] == API_VERSION && it["kind"] == "ApplicationSet"
    };
    let owner = owners.iter().find(fits)?;
    let text = |field: &str| owner[field].as_str().unwrap_or_default().to_owned();
    Some((text("name"), text("uid")))
}

/// What a change of an Application means to its set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Nothing.
    Nothing,
    /// It stands otherwise.
    Standing,
    /// Somebody changed what the set writes, or made or deleted it.
    Substance,
}

/// Compares an Application with what was known of it.
pub(crate) fn meaning(old: Option<&View>, new: &View) -> Meaning {
    let Some(old) = old.filter(|old| old.owner.is_some()) else {
        return match new.owner {
            Some(_) => Meaning::Standing,
            None => Meaning::Nothing,
        };
    };
    let metadata = |view: &View| {
        let mut fields = view.object["metadata"].clone();
        fields["resourceVersion"] = Value::Null;
        fields
    };
    if old.owner != new.owner || old.object["spec"] != new.object["spec"] || metadata(old) != metadata(new) {
        return Meaning::Substance;
    }
    match old.object["status"] == new.object["status"] && old.object["operation"] == new.object["operation"] {
        true => Meaning::Nothing,
        false => Meaning::Standing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Value {
        json!({
            "apiVersion": API_VERSION, "kind": "Application",
            "metadata": {"name": "a", "namespace": "argocd", "uid": "u", "resourceVersion": "1",
                "managedFields": [{"manager": "m"}],
                "ownerReferences": [{"apiVersion": API_VERSION, "kind": "ApplicationSet", "name": "s", "uid": "su",
                    "controller": true}]},
            "spec": {"project": "default"},
            "status": {"reconciledAt": "x", "sync": {"status": "Synced"}, "resources": [{"kind": "ConfigMap"}]},
        })
    }

    #[test]
    fn changes_have_meanings() {
        let known = View::read(&object());
        assert!(known.is_of("s", "su") && !known.is_of("s", "other") && known.name() == "a");
        for (pointer, value, expected) in [
            ("/metadata/resourceVersion", json!("2"), Meaning::Nothing),
            ("/status/reconciledAt", json!("y"), Meaning::Nothing),
            ("/status/resources", json!([]), Meaning::Nothing),
            ("/status/sync/status", json!("OutOfSync"), Meaning::Standing),
            ("/spec/project", json!("p"), Meaning::Substance),
            ("/metadata/ownerReferences", json!([]), Meaning::Substance),
        ] {
            let mut changed = object();
            *changed.pointer_mut(pointer).unwrap() = value;
            let new = View::read(&changed);
            assert_eq!(meaning(Some(&known), &new), expected, "{pointer}");
        }
        assert_eq!(meaning(None, &known), Meaning::Standing);
        assert_eq!(meaning(None, &View::default()), Meaning::Nothing);
        assert_eq!(View::read(&json!({"spec": {}})), View::default());
    }
}
