//! What the plan says is what happens: each change through the verdict beforehand, and through the decision about the machine afterwards.

use crate::instance;
use crate::lifecycle::{Action, LiveChange, Observed, Volumes, decide};
use crate::view::Condition;

use super::*;

/// What becomes of a running machine whose spec has changed.
fn happens(before: &Value, after: &Value) -> Impact {
    let settings = Settings::default();
    let mut vmi = instance::of_machine(before, None, None, &settings, false).unwrap();
    defaults::instance(&mut vmi, &settings).unwrap();
    vmi["metadata"]["uid"] = json!("i");
    vmi["status"]["phase"] = json!("Running");
    let vmi: VirtualMachineInstance = read("VirtualMachineInstance", &vmi).unwrap();
    let mut object = after.clone();
    object["metadata"]["finalizers"] = json!([crate::lifecycle::FINALIZER]);
    let vm: VirtualMachine = read("VirtualMachine", &object).unwrap();
    let (old, new) = (&before["spec"]["template"], &after["spec"]["template"]);
    let observed = Observed {
        vm: &vm,
        vmi: Some(&vmi),
        revision: Some(Revision {
            started: &old["spec"],
            current: &new["spec"],
            started_metadata: &old["metadata"],
            metadata: &new["metadata"],
        }),
        volumes: Volumes::default(),
        expected: None,
        changed_by_sync: false,
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
        chance: 0,
    };
    let decision = decide(&observed, &settings);
    if Condition::is_true(&decision.status.conditions, "RestartRequired") {
        return Impact::Restart;
    }
    let mut impact = Impact::None;
    for action in &decision.actions {
        match action {
            Action::UpdateInstance(changes) => {
                let moves = changes
                    .iter()
                    .any(|it| matches!(it, LiveChange::Placement { .. }));
                impact = impact.max(if moves { Impact::Migration } else { Impact::Live });
            }
            Action::DeleteInstance { .. } => impact = Impact::Restart,
            _ => {}
        }
    }
    impact
}

#[test]
fn what_the_plan_says_is_what_happens() {
    let small = ("memory: {guest: 2Gi, maxGuest: 4Gi}", "memory: {guest: 512Mi}");
    let odd = ("memory: {guest: 2Gi, maxGuest: 4Gi}", "memory: {guest: 2049Mi}");
    let free = ("memory: {guest: 2Gi, maxGuest: 4Gi}", "memory: {guest: 2Gi}");
    let plain = ("runStrategy: Always", "runStrategy: Always");
    let moved = (
        "runStrategy: Always",
        "runStrategy: Always\n  updateVolumesStrategy: Migration",
    );
    // What the machine is; what changes; what it costs.
    for (given, from, to, expected) in [
        (plain, "app: web", "app: web", Impact::None),
        (plain, "app: web", "app: shop", Impact::Live),
        (plain, "labels: {app: web}", "labels: {}", Impact::Live),
        (
            plain,
            "{labels: {app: web}}",
            "{labels: {app: web}, annotations: {note: a}}",
            Impact::Live,
        ),
        (plain, "sockets: 2", "sockets: 4", Impact::Live),
        (plain, "sockets: 2", "sockets: 5", Impact::Restart),
        (plain, "sockets: 2", "sockets: 1", Impact::Restart),
        (plain, "cores: 1", "cores: 2", Impact::Restart),
        (plain, "maxSockets: 4", "maxSockets: 8", Impact::Restart),
        (plain, "guest: 2Gi", "guest: 3Gi", Impact::Live),
        (plain, "guest: 2Gi", "guest: 2049Mi", Impact::Restart),
        (plain, "guest: 2Gi", "guest: 5Gi", Impact::Restart),
        (plain, "guest: 2Gi", "guest: 1Gi", Impact::Restart),
        (plain, "maxGuest: 4Gi", "maxGuest: 8Gi", Impact::Restart),
        (free, "guest: 2Gi", "guest: 8Gi", Impact::Live),
        (free, "guest: 2Gi", "guest: 9Gi", Impact::Restart),
        (small, "guest: 512Mi", "guest: 1Gi", Impact::Restart),
        (odd, "guest: 2049Mi", "guest: 3Gi", Impact::Restart),
        (plain, "zone: a", "zone: b", Impact::Migration),
        (
            plain,
            "nodeSelector: {zone: a}",
            "tolerations: [{key: k}]",
            Impact::Migration,
        ),
        (plain, "{bus: virtio}", "{bus: scsi}", Impact::Restart),
        (
            plain,
            "masquerade: {}}",
            "masquerade: {}, state: down}",
            Impact::Live,
        ),
        (plain, "masquerade: {}}", "bridge: {}}", Impact::Restart),
        (
            plain,
            "dataVolume: {name: root}}]",
            "dataVolume: {name: other}}]",
            Impact::Restart,
        ),
        (
            moved,
            "dataVolume: {name: root}}]",
            "dataVolume: {name: other}}]",
            Impact::Restart,
        ),
        (
            plain,
            "dataVolume: {name: root}}]",
            "dataVolume: {name: root}}, {name: more, dataVolume: {name: more, hotpluggable: true}}]",
            Impact::Live,
        ),
        (
            plain,
            "architecture: amd64",
            "architecture: arm64",
            Impact::Restart,
        ),
        (plain, "devices: {", "devices: {rng: {}, ", Impact::Restart),
    ] {
        let text = PERSISTENT.replace("    spec:\n", "    spec:\n      architecture: amd64\n");
        let given = text.replace(given.0, given.1);
        assert!(given.contains(from), "{from}");
        let mut before = object(&given);
        let mut after = object(&given.replace(from, to));
        for it in [&mut before, &mut after] {
            it["metadata"] = json!({"name": "web", "namespace": "vms", "uid": "u"});
        }
        let change = Change {
            before: Some(&before),
            after: Some(&after),
            running: true,
        };
        let said = of(change, &Settings::default());
        assert_eq!(said.impact, expected, "said of {from} -> {to}: {said:?}");
        assert_eq!(happens(&before, &after), expected, "{from} -> {to}");
        assert_eq!(
            said.reasons.is_empty(),
            expected == Impact::None,
            "{from} -> {to}"
        );
    }
}
