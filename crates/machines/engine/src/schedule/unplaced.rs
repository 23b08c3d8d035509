//! What the status of an instance says before it has a node.
//!
//! ```text
//!   Pending ── its disks are there ──▶ Scheduling ── a node will do ──▶ Scheduled: from then on its node writes
//!      └───────────── deleted, or a disk cannot be had ────────▶ Failed
//! ```

use fairway_machines_plan::node::NODE_LABEL;
use fairway_machines_plan::phase::{self, Phase};
use fairway_machines_plan::view::Condition;
use serde_json::{Value, json};

use super::place::Placement;
use crate::conditions::written;
use crate::objects::{has_finalizer, items, locked, text, without_finalizers};

/// How far a disk of an instance is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Disk {
    /// There is neither claim nor DataVolume.
    Missing(String),
    /// It is being filled.
    Filling,
    /// It cannot be had.
    Failed(String),
    /// The claim has no volume yet.
    Unbound,
    /// It is there.
    Ready,
}

/// How an instance stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Standing {
    /// It was deleted before it had a node.
    Leaves,
    /// A disk cannot be had.
    Fails(String),
    /// Disks are not there yet.
    Waits,
    /// A disk does not exist.
    Lacks(String),
    /// All disks are there: this is what the scheduler says.
    Placed(Placement),
}

/// How an instance stands, without a node. Nothing if the scheduler is to be asked.
pub(crate) fn standing(is_leaving: bool, disks: &[Disk]) -> Option<Standing> {
    if is_leaving {
        return Some(Standing::Leaves);
    }
    let failed = disks.iter().find_map(|it| match it {
        Disk::Failed(why) => Some(Standing::Fails(why.clone())),
        _ => None,
    });
    let missing = disks.iter().find_map(|it| match it {
        Disk::Missing(name) => Some(Standing::Lacks(name.clone())),
        _ => None,
    });
    let waits = disks.iter().any(|it| matches!(it, Disk::Filling | Disk::Unbound));
    failed.or(missing).or(waits.then_some(Standing::Waits))
}

/// The patch of an instance; nothing if it says all of this already.
pub(crate) fn patch(vmi: &Value, standing: &Standing, has_disks: bool, now: &str) -> Option<Value> {
    let namespace = text(vmi, "/metadata/namespace");
    let before = Phase::parse(text(vmi, "/status/phase"));
    if before.is_final() {
        // What it said stays; it is only let go.
        return match standing {
            Standing::Leaves => without_finalizers(vmi, &[phase::FINALIZER]),
            _ => None,
        };
    }
    let (phase, mut conditions) = match standing {
        Standing::Leaves => (Phase::Failed, Vec::new()),
        Standing::Fails(why) => {
            let failed = Condition::fails("Synchronized", "FailedDataVolumeImport", why.clone());
            (Phase::Failed, vec![failed])
        }
        Standing::Waits => (Phase::Pending, Vec::new()),
        Standing::Lacks(name) => {
            let why = format!("PVC {namespace}/{name} does not exist, waiting for it to appear");
            let synchronized = Condition::fails("Synchronized", "FailedPvcNotFound", why.clone());
            let scheduled = Condition::fails("PodScheduled", "Unschedulable", why);
            (Phase::Pending, vec![synchronized, scheduled])
        }
        Standing::Placed(Placement::None(why)) => {
            let scheduled = Condition::fails("PodScheduled", "Unschedulable", why.clone());
            (Phase::Scheduling, vec![scheduled])
        }
        Standing::Placed(Placement::Node(_)) => (Phase::Scheduled, Vec::new()),
    };
    if has_disks && !phase.is_final() {
        conditions.push(match standing {
            Standing::Placed(_) => Condition::holds(
                "DataVolumesReady",
                "AllDVsReady",
                "All of the VMI's DVs are bound and ready",
            ),
            _ => Condition::fails(
                "DataVolumesReady",
                "NotAllDVsReady",
                "Not all of the VMI's DVs are ready",
            ),
        });
    }
    conditions.push(Condition::fails(
        "Ready",
        "GuestNotRunning",
        "Guest VM is not reported as running",
    ));
    conditions.sort_by(|a, b| a.kind.cmp(&b.kind));
    let conditions: Vec<Value> = conditions.iter().map(|it| written(it, &[vmi], now)).collect();
    // An instance goes forward only.
    let phase = before.max(phase);
    let mut status = json!({
        "phase": phase.word(),
        "phaseTransitionTimestamps": transitions(vmi, phase, now),
        "conditions": conditions,
    });
    let mut metadata = json!({});
    let finalizers = || items(vmi, "/metadata/finalizers").cloned();
    if let Standing::Placed(Placement::Node(name)) = standing {
        status["nodeName"] = json!(name);
        metadata["labels"] = json!({NODE_LABEL: name});
        // From now on there is something to put away.
        if !has_finalizer(vmi, phase::FINALIZER) {
            metadata["finalizers"] = finalizers().chain([json!(phase::FINALIZER)]).collect();
        }
    }
    if *standing == Standing::Leaves && has_finalizer(vmi, phase::FINALIZER) {
        metadata["finalizers"] = finalizers().filter(|it| it != phase::FINALIZER).collect();
    }
    let says = |field: &str| vmi["status"][field] == status[field];
    let is_said = says("phase") && says("conditions") && says("phaseTransitionTimestamps");
    if is_said && metadata.as_object().is_some_and(serde_json::Map::is_empty) {
        return None;
    }
    Some(json!({"metadata": locked(vmi, metadata), "status": status}))
}

/// When the instance came into each phase, up to this one.
fn transitions(vmi: &Value, phase: Phase, now: &str) -> Vec<Value> {
    let mut all: Vec<Value> = items(vmi, "/status/phaseTransitionTimestamps").cloned().collect();
    let passed = [Phase::Pending, Phase::Scheduling, Phase::Scheduled];
    let passed = passed
        .into_iter()
        .filter(|it| *it < phase && phase <= Phase::Scheduled);
    for reached in passed.chain([phase]) {
        if !all.iter().any(|it| it["phase"] == reached.word()) {
            all.push(json!({"phase": reached.word(), "phaseTransitionTimestamp": now}));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn vmi(status: Value) -> Value {
        json!({
            "metadata": {"name": "web", "namespace": "vms", "uid": "u", "resourceVersion": "7",
                "finalizers": ["kubevirt.io/virtualMachineControllerFinalize", "foregroundDeleteVirtualMachine"]},
            "status": status,
        })
    }

    fn pending() -> Value {
        json!({"phase": "Pending", "phaseTransitionTimestamps": [{"phase": "Pending", "phaseTransitionTimestamp": "t0"}]})
    }

    fn check(vmi: &Value, standing: &Standing, has_disks: bool, expected: &Expect) {
        let shown = patch(vmi, standing, has_disks, "t1").map_or("nothing".to_owned(), |it| {
            let status = &it["status"];
            let mut shown = text(status, "/phase").to_owned();
            for condition in items(status, "/conditions") {
                let (kind, reason) = (text(condition, "/type"), text(condition, "/reason"));
                shown += &format!(" {kind}={}({reason})", text(condition, "/status"));
            }
            let phases: Vec<&str> = items(status, "/phaseTransitionTimestamps")
                .map(|it| text(it, "/phase"))
                .collect();
            shown += &format!(" by {}", phases.join(","));
            for field in ["labels", "finalizers"] {
                if !it["metadata"][field].is_null() {
                    shown += &format!(" {field} {}", it["metadata"][field]);
                }
            }
            shown
        });
        expected.assert_eq(&shown);
    }

    #[test]
    fn how_an_instance_stands() {
        let missing = || Disk::Missing("data".to_owned());
        let failed = || Disk::Failed("why".to_owned());
        for (leaving, disks, expected) in [
            (true, vec![failed()], Some(Standing::Leaves)),
            (false, vec![], None),
            (false, vec![Disk::Ready], None),
            (false, vec![Disk::Ready, Disk::Filling], Some(Standing::Waits)),
            (false, vec![Disk::Unbound], Some(Standing::Waits)),
            (
                false,
                vec![Disk::Filling, missing()],
                Some(Standing::Lacks("data".to_owned())),
            ),
            (
                false,
                vec![missing(), failed()],
                Some(Standing::Fails("why".to_owned())),
            ),
        ] {
            assert_eq!(standing(leaving, &disks), expected, "{disks:?}");
        }
    }

    #[test]
    fn what_is_written() {
        let node = Standing::Placed(Placement::Node("n1".to_owned()));
        let none = Standing::Placed(Placement::None("0/1 nodes are available".to_owned()));
        check(
            &vmi(pending()),
            &node,
            true,
            &expect![[
                r#"Scheduled DataVolumesReady=True(AllDVsReady) Ready=False(GuestNotRunning) by Pending,Scheduling,Scheduled labels {"kubevirt.io/nodeName":"n1"}"#
            ]],
        );
        let mut bare = vmi(json!({}));
        bare["metadata"]["finalizers"] = json!([]);
        check(
            &bare,
            &node,
            false,
            &expect![[
                r#"Scheduled Ready=False(GuestNotRunning) by Pending,Scheduling,Scheduled labels {"kubevirt.io/nodeName":"n1"} finalizers ["foregroundDeleteVirtualMachine"]"#
            ]],
        );
        check(
            &vmi(pending()),
            &none,
            false,
            &expect![
                "Scheduling PodScheduled=False(Unschedulable) Ready=False(GuestNotRunning) by Pending,Scheduling"
            ],
        );
        check(
            &vmi(pending()),
            &Standing::Waits,
            true,
            &expect![
                "Pending DataVolumesReady=False(NotAllDVsReady) Ready=False(GuestNotRunning) by Pending"
            ],
        );
        check(
            &vmi(pending()),
            &Standing::Lacks("data".to_owned()),
            false,
            &expect![
                "Pending PodScheduled=False(Unschedulable) Ready=False(GuestNotRunning) Synchronized=False(FailedPvcNotFound) by Pending"
            ],
        );
        check(
            &vmi(pending()),
            &Standing::Fails("DataVolume root is in Failed phase".to_owned()),
            true,
            &expect![
                "Failed Ready=False(GuestNotRunning) Synchronized=False(FailedDataVolumeImport) by Pending,Failed"
            ],
        );
        check(
            &vmi(pending()),
            &Standing::Leaves,
            false,
            &expect![[
                r#"Failed Ready=False(GuestNotRunning) by Pending,Failed finalizers ["kubevirt.io/virtualMachineControllerFinalize"]"#
            ]],
        );
    }

    #[test]
    fn an_instance_goes_forward_only() {
        let scheduling = vmi(json!({"phase": "Scheduling", "phaseTransitionTimestamps": [
            {"phase": "Pending", "phaseTransitionTimestamp": "t0"}, {"phase": "Scheduling", "phaseTransitionTimestamp": "t0"},
        ]}));
        check(
            &scheduling,
            &Standing::Waits,
            false,
            &expect!["Scheduling Ready=False(GuestNotRunning) by Pending,Scheduling"],
        );
    }

    #[test]
    fn nothing_is_written_twice() {
        for standing in [
            Standing::Waits,
            Standing::Lacks("data".to_owned()),
            Standing::Placed(Placement::None("no".to_owned())),
            Standing::Fails("no".to_owned()),
            Standing::Leaves,
        ] {
            let mut vmi = vmi(pending());
            let first = patch(&vmi, &standing, true, "t1").unwrap();
            vmi["status"] = first["status"].clone();
            if !first["metadata"]["finalizers"].is_null() {
                vmi["metadata"]["finalizers"] = first["metadata"]["finalizers"].clone();
            }
            assert_eq!(patch(&vmi, &standing, true, "t2"), None, "{standing:?}");
        }
    }
}
