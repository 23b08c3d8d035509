//! Machines that leave their node: because it is to be emptied, because somebody asks for it, or because the node does not
//! suit them any more.
//!
//! A node is to be emptied when it has the taint of the settings, as upstream's, or when it is cordoned: `kubectl drain`
//! cordons a node and then evicts its pods, of which machines have none here; and, for those that do not tolerate it, when it
//! has a taint with effect `NoExecute`. Only machines whose eviction strategy says so are moved, as upstream's.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fairway_api::kubevirt::{VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_MIGRATION};
use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::{Clients, Failure, ObjectKey, Outcome, Reconcile, Requests, WorkspaceId};
use fairway_machines_plan::view::Condition;
use k8s_openapi::api::core::v1::{Taint, Toleration};
use serde_json::{Value, json};

use crate::nodes::OUT_OF_SERVICE;
use crate::objects::{about, collection, is_leaving, locked, ours, path, text};
use crate::schedule::ground::Ground;
use crate::schedule::instance::Instance;
use crate::schedule::node::{NOT_READY, Node, UNREACHABLE};
use crate::schedule::place::is_tolerated;
use crate::settings::SettingsOf;

/// Of a migration: the node that is to be emptied.
pub(crate) const ANNOTATION: &str = "kubevirt.io/evacuationMigration";
/// How soon a node is looked at again from which not all can go at once.
const SOON: Duration = Duration::from_secs(5);
/// How soon it is told again who cannot go.
const LATER: Duration = Duration::from_mins(1);

/// Moves machines away from nodes. Keys are names of nodes.
pub(crate) struct Evacuation {
    clients: Clients,
    recorder: Recorder,
    settings: Arc<SettingsOf>,
    ground: Arc<Ground>,
}

/// What becomes of an instance on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It stays.
    Stays,
    /// It is moved.
    Moves,
    /// It should be moved and cannot.
    Cannot,
    /// Somebody else moves it, who is told that it should go.
    Marked,
}

/// Why an instance would leave a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reasons {
    /// The node is to be emptied.
    drained: bool,
    /// Somebody asks for it.
    asked: bool,
    /// The node does not suit it.
    unsuited: bool,
}

fn fate(vmi: &Value, reasons: Reasons, default_strategy: Option<&str>) -> Fate {
    let running = text(vmi, "/status/phase") == "Running" && !is_leaving(vmi);
    if !running {
        return Fate::Stays;
    }
    let conditions: Vec<Condition> =
        serde_json::from_value(vmi["status"]["conditions"].clone()).unwrap_or_default();
    let able = Condition::is_true(&conditions, "LiveMigratable");
    let strategy = vmi["spec"]["evictionStrategy"].as_str().or(default_strategy);
    if strategy == Some("External") && reasons.drained {
        return Fate::Marked;
    }
    let wanted = match strategy {
        Some("LiveMigrate") => true,
        Some("LiveMigrateIfPossible") => able,
        _ => false,
    };
    let leaves = reasons.unsuited || (wanted && (reasons.drained || reasons.asked));
    match (leaves, able) {
        (false, _) => Fate::Stays,
        (true, true) => Fate::Moves,
        // One that only would be better off elsewhere is not told of.
        (true, false) if wanted => Fate::Cannot,
        (true, false) => Fate::Stays,
    }
}

impl Evacuation {
    pub(crate) fn new(
        clients: Clients,
        recorder: Recorder,
        settings: Arc<SettingsOf>,
        ground: Arc<Ground>,
    ) -> Self {
        Self {
            clients,
            recorder,
            settings,
            ground,
        }
    }

    /// Those instances of a node that a migration is about which is not over. It is asked and not remembered: what was
    /// just created counts.
    async fn moving(&self, node: &str) -> Result<BTreeSet<ObjectKey>, Failure> {
        let here = self
            .ground
            .instances
            .keys_where(|_, it| &*it.node == node && !it.ended);
        let places: BTreeSet<(WorkspaceId, String)> = here
            .iter()
            .map(|it| (it.workspace.clone(), it.namespace.clone()))
            .collect();
        let mut moving = BTreeSet::new();
        for (workspace, namespace) in places {
            let requests = Requests::new(self.clients.of(&workspace));
            let all = requests
                .list(&collection(&VIRTUAL_MACHINE_INSTANCE_MIGRATION, &namespace))
                .await?;
            let under_way = all
                .iter()
                .filter(|it| !matches!(text(it, "/status/phase"), "Succeeded" | "Failed"));
            moving.extend(
                under_way.map(|it| ObjectKey::new(&workspace, &namespace, text(it, "/spec/vmiName"))),
            );
        }
        moving.retain(|it| here.contains(it));
        Ok(moving)
    }

    async fn create(&self, key: &ObjectKey, vmi: &Value, node: &str) -> Result<(), Failure> {
        let requests = Requests::new(self.clients.of(&key.workspace));
        let migration = json!({
            "apiVersion": VIRTUAL_MACHINE_INSTANCE_MIGRATION.api_version(),
            "kind": VIRTUAL_MACHINE_INSTANCE_MIGRATION.kind,
            "metadata": {"generateName": "kubevirt-evacuation-", "annotations": {ANNOTATION: node}},
            "spec": {"vmiName": key.name},
        });
        let place = ours(&collection(&VIRTUAL_MACHINE_INSTANCE_MIGRATION, &key.namespace));
        let (severity, reason, message, result) = match requests.create(&place, &migration).await {
            Ok(_) => (
                Severity::Normal,
                "SuccessfulCreate",
                format!("Created Migration to leave node {node}"),
                Ok(()),
            ),
            Err(failure) => (
                Severity::Warning,
                "FailedCreate",
                format!("Error creating a Migration: {}", failure.sentence()),
                Err(failure),
            ),
        };
        self.tell(&key.workspace, vmi, severity, reason, message).await;
        result
    }

    async fn tell(
        &self,
        workspace: &WorkspaceId,
        vmi: &Value,
        severity: Severity,
        reason: &'static str,
        message: String,
    ) {
        let happening = Happening {
            severity,
            reason,
            message,
        };
        let about = about(&VIRTUAL_MACHINE_INSTANCE, vmi);
        self.recorder.record(workspace, &about, happening).await;
    }

    async fn pass(&self, name: &str, node: &Node) -> Result<Outcome, Failure> {
        if node.taints.iter().any(|it| it.key == UNREACHABLE) {
            // Nobody is there who could send anything.
            return Ok(Outcome::Done);
        }
        let settings = self.settings.migrations().await?;
        let taint = node.taints.iter().any(|it| it.key == settings.drain_taint);
        let drained = taint || node.cordoned;
        let expels = node.taints.iter().any(expels);
        let leaves = |it: &Instance| {
            let here = &*it.node == name && !it.ended && !it.leaving;
            here && (drained || expels || &*it.evacuates == name || !suits(it, node))
        };
        let candidates = self.ground.instances.keys_where(|_, it| leaves(it));
        if candidates.is_empty() {
            return Ok(Outcome::Done);
        }
        let mut again = None;
        let under_way = self.moving(name).await?;
        let (all, outbound) = self.ground.moving(name);
        let mut moving = all.max(under_way.len());
        let mut free = settings
            .parallel_outbound
            .saturating_sub(outbound.max(under_way.len()));
        for key in candidates.into_iter().filter(|key| !under_way.contains(key)) {
            let requests = Requests::new(self.clients.of(&key.workspace));
            let place = path(&VIRTUAL_MACHINE_INSTANCE, &key.namespace, &key.name);
            let Some(vmi) = requests
                .get(&place)
                .await?
                .filter(|it| text(it, "/status/nodeName") == name)
            else {
                continue;
            };
            let reasons = Reasons {
                drained: drained || !endures(&vmi, node),
                asked: text(&vmi, "/status/evacuationNodeName") == name,
                unsuited: self
                    .ground
                    .instances
                    .get(&key)
                    .is_some_and(|it| !suits(&it, node)),
            };
            let strategy = self.settings.of(&key.workspace).await?.eviction_strategy.clone();
            match fate(&vmi, reasons, strategy.as_deref()) {
                Fate::Stays => {}
                Fate::Cannot => {
                    let message = "VirtualMachineInstance is not migrateable".to_owned();
                    self.tell(&key.workspace, &vmi, Severity::Normal, "FailedCreate", message)
                        .await;
                    again.get_or_insert(LATER);
                }
                Fate::Marked => mark(&vmi, name, &place, &requests).await?,
                Fate::Moves if free == 0 || moving >= settings.parallel => again = Some(SOON),
                Fate::Moves => {
                    self.create(&key, &vmi, name).await?;
                    free -= 1;
                    moving += 1;
                }
            }
        }
        Ok(again.map_or(Outcome::Done, Outcome::Again))
    }
}

/// Says of an instance that it should leave its node.
async fn mark(vmi: &Value, node: &str, place: &str, requests: &Requests) -> Result<(), Failure> {
    if text(vmi, "/status/evacuationNodeName") == node {
        return Ok(());
    }
    let patch = json!({"metadata": locked(vmi, json!({})), "status": {"evacuationNodeName": node}});
    requests.merge(&ours(place), &patch).await.map(drop)
}

/// Whether a taint is to send away what does not tolerate it. How a node is is not anybody's wish.
fn expels(taint: &Taint) -> bool {
    taint.effect == "NoExecute" && ![NOT_READY, UNREACHABLE, OUT_OF_SERVICE].contains(&taint.key.as_str())
}

/// Whether an instance tolerates what would send it away from a node.
fn endures(vmi: &Value, node: &Node) -> bool {
    let tolerations: Vec<Toleration> =
        serde_json::from_value(vmi["spec"]["tolerations"].clone()).unwrap_or_default();
    let mut taints = node.taints.iter().filter(|it| expels(it));
    taints.all(|it| is_tolerated(&tolerations, it))
}

/// Whether a node has what an instance asks of its labels.
fn suits(instance: &Instance, node: &Node) -> bool {
    instance.wants.as_ref().is_none_or(|wants| wants.holds(node))
}

impl Reconcile<String> for Evacuation {
    async fn reconcile(&self, name: &String) -> Result<Outcome, Failure> {
        if !self.ground.is_synced() {
            return Ok(Outcome::Again(Duration::from_millis(20)));
        }
        let key = ObjectKey::new(&WorkspaceId::root(), "", name);
        match self.ground.nodes.get(&key) {
            Some(node) => self.pass(name, &node).await,
            None => Ok(Outcome::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_leaves_a_node() {
        let vmi = |strategy: Option<&str>, able: &str, phase: &str| {
            json!({
                "spec": {"evictionStrategy": strategy},
                "status": {"phase": phase, "conditions": [{"type": "LiveMigratable", "status": able}]},
            })
        };
        let drained = Reasons {
            drained: true,
            asked: false,
            unsuited: false,
        };
        let asked = Reasons {
            drained: false,
            asked: true,
            unsuited: false,
        };
        let unsuited = Reasons {
            drained: false,
            asked: false,
            unsuited: true,
        };
        let none = Reasons {
            drained: false,
            asked: false,
            unsuited: false,
        };
        let (live, possible) = (Some("LiveMigrate"), Some("LiveMigrateIfPossible"));
        for (name, vmi, reasons, default, expected) in [
            (
                "drained",
                vmi(live, "True", "Running"),
                drained,
                None,
                Fate::Moves,
            ),
            (
                "asked for",
                vmi(live, "True", "Running"),
                asked,
                None,
                Fate::Moves,
            ),
            ("no reason", vmi(live, "True", "Running"), none, None, Fate::Stays),
            (
                "wants to stay",
                vmi(Some("None"), "True", "Running"),
                drained,
                live,
                Fate::Stays,
            ),
            (
                "somebody else's business",
                vmi(Some("External"), "True", "Running"),
                drained,
                None,
                Fate::Marked,
            ),
            (
                "somebody else's business, and asked for",
                vmi(Some("External"), "True", "Running"),
                asked,
                None,
                Fate::Stays,
            ),
            (
                "says nothing",
                vmi(None, "True", "Running"),
                drained,
                None,
                Fate::Stays,
            ),
            (
                "as everybody",
                vmi(None, "True", "Running"),
                drained,
                live,
                Fate::Moves,
            ),
            (
                "cannot",
                vmi(live, "False", "Running"),
                drained,
                None,
                Fate::Cannot,
            ),
            (
                "cannot, and need not",
                vmi(possible, "False", "Running"),
                drained,
                None,
                Fate::Stays,
            ),
            (
                "does not run",
                vmi(live, "True", "Scheduled"),
                drained,
                None,
                Fate::Stays,
            ),
            (
                "unsuited",
                vmi(None, "True", "Running"),
                unsuited,
                None,
                Fate::Moves,
            ),
            (
                "unsuited, and cannot",
                vmi(None, "False", "Running"),
                unsuited,
                None,
                Fate::Stays,
            ),
        ] {
            assert_eq!(fate(&vmi, reasons, default), expected, "{name}");
        }
    }
    #[test]
    fn taints_that_send_machines_away() {
        let node = |key: &str, effect: &str| Node {
            taints: vec![Taint {
                key: key.to_owned(),
                effect: effect.to_owned(),
                ..Taint::default()
            }],
            ..Node::default()
        };
        let plain = json!({"spec": {}});
        let patient = json!({"spec": {"tolerations": [{"key": "work", "operator": "Exists"}]}});
        for (name, vmi, node, expected) in [
            ("sent away", &plain, node("work", "NoExecute"), false),
            ("tolerated", &patient, node("work", "NoExecute"), true),
            ("only for others", &plain, node("work", "NoSchedule"), true),
            ("not well", &plain, node(NOT_READY, "NoExecute"), true),
            ("given up", &plain, node(OUT_OF_SERVICE, "NoExecute"), true),
        ] {
            assert_eq!(endures(vmi, &node), expected, "{name}");
        }
    }
}
