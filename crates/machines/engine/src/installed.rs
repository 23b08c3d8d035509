//! `KubeVirt`, `CDI` and `HyperConverged` objects: what they would install is there already. Their status says so in upstream's words, as
//! people and tools wait for that before they go on.

use std::fmt;

use fairway_api::Kind;
use fairway_api::kubevirt::{HYPER_CONVERGED, KUBE_VIRT};
use fairway_controller::commit::difference;
use fairway_controller::queue::WorkKey;
use fairway_controller::{Clients, Failure, ObjectKey, Outcome, Reconcile, Requests, WorkspaceId};
use fairway_machines_plan::settings::HYPERCONVERGED_NAME;
use fairway_machines_plan::view::Condition;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::conditions::written;
use crate::objects::{DATA_IMPORTER, everywhere, is_leaving, locked, moment, ours, path, text};

/// What Fairway does is what these versions do.
const KUBEVIRT_VERSION: &str = "v1.5.2";
const DATA_IMPORTER_VERSION: &str = "v1.61.0";

/// Which kind of installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Which {
    KubeVirt,
    DataImporter,
    HyperConverged,
}

impl Which {
    /// All kinds.
    pub(crate) const ALL: [Self; 3] = [Self::KubeVirt, Self::DataImporter, Self::HyperConverged];

    /// The kind's names.
    pub(crate) fn kind(self) -> &'static Kind {
        match self {
            Self::KubeVirt => &KUBE_VIRT,
            Self::DataImporter => &DATA_IMPORTER,
            Self::HyperConverged => &HYPER_CONVERGED,
        }
    }
}

/// An object that asks for an installation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Installation {
    pub(crate) which: Which,
    pub(crate) key: ObjectKey,
}

impl WorkKey for Installation {
    fn workspace(&self) -> &WorkspaceId {
        &self.key.workspace
    }
}

impl fmt::Display for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.which.kind().kind, self.key)
    }
}

impl Installation {
    fn place(&self) -> String {
        match self.key.namespace.is_empty() {
            true => format!("{}/{}", everywhere(self.which.kind()), self.key.name),
            false => path(self.which.kind(), &self.key.namespace, &self.key.name),
        }
    }
}

/// What is said of an object, beside its conditions, and those.
fn decide(which: Which, object: &Value) -> (Value, Vec<Condition>) {
    let generation = &object["metadata"]["generation"];
    let fine = |kind: &str, holds: bool, reason: &str, message: &str| match holds {
        true => Condition::holds(kind, reason, message),
        false => Condition::fails(kind, reason, message),
    };
    match which {
        Which::KubeVirt => {
            let ready = |kind, holds| fine(kind, holds, "AllComponentsReady", "All components are ready.");
            let fields = json!({
                "phase": "Deployed",
                "observedGeneration": generation,
                "observedKubeVirtVersion": KUBEVIRT_VERSION,
                "operatorVersion": KUBEVIRT_VERSION,
                "targetKubeVirtVersion": KUBEVIRT_VERSION,
            });
            let conditions = vec![
                ready("Available", true),
                fine(
                    "Created",
                    true,
                    "AllResourcesCreated",
                    "All resources were created.",
                ),
                ready("Degraded", false),
                ready("Progressing", false),
            ];
            (fields, conditions)
        }
        Which::DataImporter => {
            let deployed = |kind, holds| fine(kind, holds, "DeployCompleted", "Deployment Completed");
            let fields = json!({
                "phase": "Deployed",
                "observedVersion": DATA_IMPORTER_VERSION,
                "operatorVersion": DATA_IMPORTER_VERSION,
                "targetVersion": DATA_IMPORTER_VERSION,
            });
            let conditions = vec![
                deployed("Available", true),
                deployed("Degraded", false),
                deployed("Progressing", false),
            ];
            (fields, conditions)
        }
        Which::HyperConverged if text(object, "/metadata/name") != HYPERCONVERGED_NAME => {
            let message = format!("Request does not match expected name ({HYPERCONVERGED_NAME})");
            let refused = |kind| Condition::fails(kind, "InvalidRequest", message.clone());
            let conditions = vec![refused("Available"), refused("ReconcileComplete")];
            (json!({"observedGeneration": generation}), conditions)
        }
        Which::HyperConverged => {
            let done = |kind, holds| {
                fine(
                    kind,
                    holds,
                    "ReconcileCompleted",
                    "Reconcile completed successfully",
                )
            };
            let fields = json!({"observedGeneration": generation, "systemHealthStatus": "healthy"});
            let conditions = vec![
                done("Available", true),
                done("Degraded", false),
                done("Progressing", false),
                done("ReconcileComplete", true),
                done("Upgradeable", true),
            ];
            (fields, conditions)
        }
    }
}

/// The patch of an object's status; nothing if it says all of this already.
fn patch(which: Which, object: &Value, now: &str) -> Option<Value> {
    let (fields, conditions) = decide(which, object);
    let before = object["status"].as_object().cloned().unwrap_or_default();
    let mut after: Map<String, Value> = before.clone();
    after.extend(fields.as_object().cloned().unwrap_or_default());
    let conditions: Vec<Value> = conditions.iter().map(|it| written(it, &[object], now)).collect();
    after.insert("conditions".to_owned(), conditions.into());
    let status = difference(&Value::Object(before), &Value::Object(after))?;
    Some(json!({"metadata": locked(object, json!({})), "status": status}))
}

/// Says of installations that they are complete.
pub(crate) struct Installations {
    clients: Clients,
}

impl Installations {
    pub(crate) fn new(clients: Clients) -> Self {
        Self { clients }
    }
}

impl Reconcile<Installation> for Installations {
    async fn reconcile(&self, asked: &Installation) -> Result<Outcome, Failure> {
        let requests = Requests::new(self.clients.of(&asked.key.workspace));
        let place = asked.place();
        let Some(object) = requests.get(&place).await?.filter(|it| !is_leaving(it)) else {
            return Ok(Outcome::Done);
        };
        if let Some(patch) = patch(asked.which, &object, &moment(Timestamp::now())) {
            // The data importer's kind has no status of its own.
            let place = match asked.which {
                Which::DataImporter => place,
                Which::KubeVirt | Which::HyperConverged => format!("{place}/status"),
            };
            requests.merge(&ours(&place), &patch).await?;
        }
        Ok(Outcome::Done)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(which: Which, name: &str, expected: &Expect) {
        let mut object =
            json!({"metadata": {"name": name, "uid": "u", "resourceVersion": "7", "generation": 3}});
        let patch = patch(which, &object, "now").unwrap();
        let mut shown = patch["status"].clone();
        let conditions = shown["conditions"].take();
        let conditions: Vec<String> = conditions
            .as_array()
            .unwrap()
            .iter()
            .map(|it| {
                format!(
                    "{}={}({})",
                    text(it, "/type"),
                    text(it, "/status"),
                    text(it, "/reason")
                )
            })
            .collect();
        shown["conditions"] = conditions.into();
        expected.assert_eq(&shown.to_string());
        object["status"] = patch["status"].clone();
        assert_eq!(
            super::patch(which, &object, "later"),
            None,
            "nothing is written twice"
        );
    }

    #[test]
    fn what_is_said_of_installations() {
        check(
            Which::KubeVirt,
            "kubevirt",
            &expect![[
                r#"{"phase":"Deployed","observedGeneration":3,"observedKubeVirtVersion":"v1.5.2","operatorVersion":"v1.5.2","targetKubeVirtVersion":"v1.5.2","conditions":["Available=True(AllComponentsReady)","Created=True(AllResourcesCreated)","Degraded=False(AllComponentsReady)","Progressing=False(AllComponentsReady)"]}"#
            ]],
        );
        check(
            Which::DataImporter,
            "cdi",
            &expect![[
                r#"{"phase":"Deployed","observedVersion":"v1.61.0","operatorVersion":"v1.61.0","targetVersion":"v1.61.0","conditions":["Available=True(DeployCompleted)","Degraded=False(DeployCompleted)","Progressing=False(DeployCompleted)"]}"#
            ]],
        );
        check(
            Which::HyperConverged,
            "kubevirt-hyperconverged",
            &expect![[
                r#"{"observedGeneration":3,"systemHealthStatus":"healthy","conditions":["Available=True(ReconcileCompleted)","Degraded=False(ReconcileCompleted)","Progressing=False(ReconcileCompleted)","ReconcileComplete=True(ReconcileCompleted)","Upgradeable=True(ReconcileCompleted)"]}"#
            ]],
        );
        check(
            Which::HyperConverged,
            "other",
            &expect![[
                r#"{"observedGeneration":3,"conditions":["Available=False(InvalidRequest)","ReconcileComplete=False(InvalidRequest)"]}"#
            ]],
        );
    }
}
