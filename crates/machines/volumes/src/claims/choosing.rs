//! On which node the disk of a machine is made that may not run everywhere.
//!
//! A volume of this class is where it was made, so the node comes before the disk. What the machine's `nodeSelector` leaves open is the control
//! plane's own node, or else the first by name; affinities are the scheduler's, which comes after.

use fairway_controller::{Failure, Requests};
use serde_json::{Value, json};

use super::{ASK_AGAIN, Came, Claims, Look, Step};
use crate::decide::status::{Filling, Told};
use crate::names;
use crate::view::DataVolume;

const NODES: &str = "/api/v1/nodes";
/// On nodes that run machines.
const SCHEDULABLE: &str = "kubevirt.io/schedulable";

/// Where a disk is made.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    Here,
    There(String),
    Nowhere,
}

fn choose(nodes: &[Value], selector: &Value, own: &str) -> Choice {
    let wanted = match selector.as_object() {
        Some(wanted) if !wanted.is_empty() => wanted,
        _ => return Choice::Here,
    };
    let name = |node: &Value| node["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let fits = |node: &&Value| {
        let labels = &node["metadata"]["labels"];
        let is_open = labels[SCHEDULABLE] == "true" && node["spec"]["unschedulable"] != true;
        is_open && wanted.iter().all(|(key, value)| labels[key] == *value)
    };
    let mut fitting: Vec<String> = nodes.iter().filter(fits).map(name).collect();
    fitting.sort();
    match fitting.iter().any(|it| it == own) {
        true => Choice::Here,
        false => fitting.into_iter().next().map_or(Choice::Nowhere, Choice::There),
    }
}

impl Claims {
    /// Chooses a node for a DataVolume that has none; nothing if it is this one.
    pub(super) async fn choose(&self, look: &Look<'_>, volume: &DataVolume) -> Result<Option<Step>, Failure> {
        let machine = volume.metadata.controller();
        let Some(machine) = machine.filter(|owner| owner.kind == "VirtualMachine") else {
            return Ok(None);
        };
        let path = format!(
            "/apis/kubevirt.io/v1/namespaces/{}/virtualmachines/{}",
            look.key.namespace, machine.name
        );
        let machine = look.requests.get(&path).await?.unwrap_or_default();
        let selector = &machine["spec"]["template"]["spec"]["nodeSelector"];
        if selector.as_object().is_none_or(serde_json::Map::is_empty) {
            return Ok(None);
        }
        let nodes = Requests::new(self.clients.root()).list(NODES).await?;
        match choose(&nodes, selector, &self.node) {
            Choice::Here => Ok(None),
            Choice::There(node) => {
                let patch = json!({"metadata": {
                    "uid": volume.metadata.uid, "annotations": {names::SELECTED_NODE: node},
                }});
                look.requests.merge(&look.data_volume_path(), &patch).await?;
                Ok(Some(Step::NotOurs))
            }
            Choice::Nowhere => {
                let told = Told {
                    reason: "WaitingForNode",
                    message: format!(
                        "no node that runs machines has the labels {selector} of the machine's nodeSelector"
                    ),
                };
                Ok(Some(Step::Came(
                    Came::new(Filling::NoClaim(Some(told))).after(ASK_AGAIN),
                )))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_made_where_its_machine_may_run() {
        let node = |name: &str, zone: &str, open: bool| {
            json!({
                "metadata": {"name": name, "labels": {"zone": zone, SCHEDULABLE: "true"}},
                "spec": {"unschedulable": !open},
            })
        };
        let nodes = [
            node("c", "b", true),
            node("b", "b", true),
            node("a", "b", false),
            node("own", "a", true),
        ];
        for (selector, expected) in [
            (json!(null), Choice::Here),
            (json!({}), Choice::Here),
            (json!({"zone": "a"}), Choice::Here),
            (json!({"zone": "b"}), Choice::There("b".to_owned())),
            (json!({"zone": "c"}), Choice::Nowhere),
        ] {
            assert_eq!(choose(&nodes, &selector, "own"), expected, "{selector}");
        }
    }
}
