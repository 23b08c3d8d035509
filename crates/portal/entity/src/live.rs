//! From an entity to what runs: which objects its annotations mean, and what is to be said of them.

use fairway_text_selector::LabelSelector;
use serde_json::{Value, json};

use crate::InputError;

/// The label by which objects belong to an entity.
pub const KUBERNETES_ID: &str = "backstage.io/kubernetes-id";

/// Which Applications an entity means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applications {
    /// None.
    None,
    /// By name, perhaps in a namespace.
    Named(Option<String>, String),
    /// By labels.
    Selected(LabelSelector),
}

/// Which objects an entity means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// Applications that deploy it.
    pub applications: Applications,
    /// Objects of the cluster, by their labels; none if nothing is said.
    pub objects: Option<LabelSelector>,
    /// Where these are; none: anywhere.
    pub namespace: Option<String>,
}

impl Live {
    /// What the annotations of an entity say.
    pub fn of(entity: &Value) -> Result<Self, InputError> {
        let annotations = &entity["metadata"]["annotations"];
        let text = |key: &str| {
            annotations[key]
                .as_str()
                .map(str::trim)
                .filter(|text| !text.is_empty())
        };
        let selector = |key: &str, text: &str| {
            LabelSelector::parse(text)
                .map_err(|error| InputError(format!("the annotation {key} is no label selector: {error}")))
        };
        let applications = match (text("argocd/app-name"), text("argocd/app-selector")) {
            (Some(name), _) => {
                let namespace = text("argocd/app-namespace").map(str::to_owned);
                Applications::Named(namespace, name.to_owned())
            }
            (None, Some(labels)) => Applications::Selected(selector("argocd/app-selector", labels)?),
            (None, None) => Applications::None,
        };
        let objects = match (
            text("backstage.io/kubernetes-label-selector"),
            text(KUBERNETES_ID),
        ) {
            (Some(labels), _) => Some(selector("backstage.io/kubernetes-label-selector", labels)?),
            (None, Some(id)) => {
                let mut selector = LabelSelector::default();
                selector.require(KUBERNETES_ID, id);
                Some(selector)
            }
            (None, None) => None,
        };
        Ok(Self {
            applications,
            objects,
            namespace: text("backstage.io/kubernetes-namespace").map(str::to_owned),
        })
    }

    /// Whether an Application is meant.
    pub fn means_application(&self, object: &Value) -> bool {
        let name = |field: &str| object["metadata"][field].as_str();
        match &self.applications {
            Applications::None => false,
            Applications::Named(namespace, wanted) => {
                name("name") == Some(wanted)
                    && namespace
                        .as_deref()
                        .is_none_or(|wanted| name("namespace") == Some(wanted))
            }
            Applications::Selected(selector) => labelled(selector, object),
        }
    }

    /// Whether an object is meant.
    pub fn means_object(&self, object: &Value) -> bool {
        let namespace = object["metadata"]["namespace"].as_str();
        self.objects
            .as_ref()
            .is_some_and(|selector| labelled(selector, object))
            && self
                .namespace
                .as_deref()
                .is_none_or(|wanted| namespace == Some(wanted))
    }
}

fn labelled(selector: &LabelSelector, object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    selector.matches(|key| labels[key].as_str())
}

/// What is said of an Application.
pub fn application(object: &Value) -> Value {
    let text = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
    json!({
        "namespace": text("/metadata/namespace"),
        "name": text("/metadata/name"),
        "sync": text("/status/sync/status"),
        "health": text("/status/health/status"),
        "message": text("/status/health/message"),
        "revision": text("/status/sync/revision"),
        "operation": text("/status/operationState/phase"),
        "destination": text("/spec/destination"),
    })
}

/// What is said of any other object: its status in a word, and whether it is as it should be, where its kind says so.
pub fn object(kind: &str, object: &Value) -> Value {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let condition = |name: &str| {
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
        conditions
            .into_iter()
            .flatten()
            .find(|condition| condition["type"] == name)
    };
    let phase = text("/status/printableStatus").or_else(|| text("/status/phase"));
    let ready = ["Ready", "Programmed", "Accepted"]
        .into_iter()
        .find_map(condition);
    json!({
        "kind": kind,
        "namespace": object["metadata"]["namespace"],
        "name": object["metadata"]["name"],
        "status": phase,
        "ready": ready.map(|condition| condition["status"] == "True"),
        "message": ready.filter(|condition| condition["status"] != "True").map(|condition| condition["message"].clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labelled_object(namespace: &str, name: &str, labels: Value) -> Value {
        let mut object = json!({"metadata": {"namespace": namespace, "name": name}});
        object["metadata"]["labels"] = labels;
        object
    }

    #[test]
    fn annotations_mean_objects() {
        let entity = |annotations: Value| json!({"metadata": {"annotations": annotations}});
        let web = labelled_object(
            "vms",
            "web",
            json!({"backstage.io/kubernetes-id": "web", "app": "web"}),
        );
        let other = labelled_object("vms", "other", json!({"app": "other"}));
        for (annotations, means_web, means_other) in [
            (json!({"backstage.io/kubernetes-id": "web"}), true, false),
            (
                json!({"backstage.io/kubernetes-label-selector": "app in (web,other)"}),
                true,
                true,
            ),
            (
                json!({"backstage.io/kubernetes-id": "web", "backstage.io/kubernetes-namespace": "elsewhere"}),
                false,
                false,
            ),
            (json!({}), false, false),
        ] {
            let live = Live::of(&entity(annotations.clone())).unwrap();
            assert_eq!(
                (live.means_object(&web), live.means_object(&other)),
                (means_web, means_other),
                "{annotations}"
            );
        }
        for (annotations, means_web) in [
            (json!({"argocd/app-name": "web"}), true),
            (
                json!({"argocd/app-name": "web", "argocd/app-namespace": "argocd"}),
                false,
            ),
            (json!({"argocd/app-selector": "app=web"}), true),
            (json!({"argocd/app-selector": "app=x"}), false),
            (json!({"argocd/app-name": ""}), false),
        ] {
            let live = Live::of(&entity(annotations.clone())).unwrap();
            assert_eq!(live.means_application(&web), means_web, "{annotations}");
        }
        let wrong = Live::of(&entity(json!({"argocd/app-selector": "a in ("})));
        assert!(
            wrong
                .unwrap_err()
                .0
                .contains("argocd/app-selector is no label selector")
        );
    }

    #[test]
    fn objects_are_summed_up() {
        let machine = json!({
            "metadata": {"namespace": "vms", "name": "web"},
            "status": {
                "printableStatus": "Running",
                "conditions": [{"type": "Ready", "status": "False", "message": "the agent does not answer"}],
            },
        });
        assert_eq!(
            object("VirtualMachine", &machine),
            json!({
                "kind": "VirtualMachine", "namespace": "vms", "name": "web", "status": "Running", "ready": false,
                "message": "the agent does not answer",
            })
        );
        let app = json!({
            "metadata": {"namespace": "argocd", "name": "web"},
            "status": {"sync": {"status": "Synced", "revision": "abc"}, "health": {"status": "Healthy"}},
        });
        assert_eq!(
            (
                application(&app)["sync"].as_str(),
                application(&app)["health"].as_str()
            ),
            (Some("Synced"), Some("Healthy"))
        );
    }
}
