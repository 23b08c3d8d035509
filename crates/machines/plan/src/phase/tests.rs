//! An instance's way, step by step.

use expect_test::expect;
use serde_json::json;

use super::*;
use crate::plan::{Capabilities, Origin, plan};
use crate::settings::Settings;
use crate::view;

fn instance(phase: &str, deleted: bool, spec: &serde_json::Value) -> VirtualMachineInstance {
    let mut object = json!({
        "metadata": {"name": "web", "namespace": "n", "finalizers": [FINALIZER]},
        "spec": {"domain": {"memory": {"guest": "1Gi"}, "devices": {}}, "terminationGracePeriodSeconds": 60},
        "status": {"phase": phase},
    });
    if deleted {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    for (key, value) in spec.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    view::read("VirtualMachineInstance", &object).unwrap()
}

struct Case {
    name: &'static str,
    phase: &'static str,
    deleted: bool,
    spec: serde_json::Value,
    set: fn(&mut Observed<'_>),
}

fn case(name: &'static str, phase: &'static str, set: fn(&mut Observed<'_>)) -> Case {
    Case {
        name,
        phase,
        deleted: false,
        spec: json!({}),
        set,
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn steps() {
    let cases = [
        case("made", "", |_| {}),
        case("no node will do", "Scheduling", |it| {
            it.placement =
                Placement::Unschedulable("0/1 nodes are available: 1 Insufficient memory.".to_owned());
        }),
        case("placed", "Scheduling", |it| {
            it.placement = Placement::Node("a".to_owned());
        }),
        case("image missing", "Scheduled", |it| {
            it.placement = Placement::Node("a".to_owned());
            it.disks = Some(Err(Obstacle::ErrImagePull("registry/tiny: not found".to_owned())));
        }),
        case("claim missing", "Scheduled", |it| {
            it.placement = Placement::Node("a".to_owned());
            it.disks = Some(Err(Obstacle::NoClaim("data".to_owned())));
        }),
        case("disks ready", "Scheduled", |it| {
            it.placement = Placement::Node("a".to_owned());
            it.disks = Some(Ok(()));
        }),
        case("starting", "Scheduled", |it| it.process = Process::Starting),
        case("up", "Scheduled", |it| it.process = Process::Running(None)),
        case("up, with its agent", "Running", |it| {
            it.process = Process::Running(None);
            it.agent = true;
        }),
        case("paused", "Running", |it| {
            it.process = Process::Running(Some(Pause::User));
        }),
        case("disk full", "Running", |it| {
            it.process = Process::Running(Some(Pause::IoError));
        }),
        case("lifeless", "Running", |it| {
            it.process = Process::Running(None);
            it.lifeless = true;
        }),
        case("shut down", "Running", |it| {
            it.process = Process::Ended {
                well: true,
                message: String::new(),
            }
        }),
        case("crashed", "Running", |it| {
            it.process = Process::Ended {
                well: false,
                message: "signal 9".to_owned(),
            }
        }),
        case("lost", "Running", |_| {}),
        case("over", "Succeeded", |_| {}),
        case("over, and runs nevertheless", "Failed", |it| {
            it.process = Process::Running(None);
        }),
        case("does not start", "Scheduled", |it| {
            it.placement = Placement::Node("a".to_owned());
            it.disks = Some(Err(Obstacle::Start(
                "QEMU did not start: no such device".to_owned(),
            )));
        }),
        Case {
            deleted: true,
            ..case("deleted while it runs", "Running", |it| {
                it.process = Process::Running(None);
            })
        },
        Case {
            deleted: true,
            ..case("deleted, 20 seconds later", "Running", |it| {
                it.process = Process::Running(None);
                it.asked_to_stop = Some(at("2025-12-31T23:59:40Z"));
            })
        },
        Case {
            deleted: true,
            ..case("deleted, 60 seconds later", "Running", |it| {
                it.process = Process::Running(None);
                it.asked_to_stop = Some(at("2025-12-31T23:59:00Z"));
            })
        },
        Case {
            deleted: true,
            ..case("deleted and ended", "Running", |it| {
                it.process = Process::Ended {
                    well: false,
                    message: String::new(),
                };
                it.asked_to_stop = Some(at("2025-12-31T23:59:00Z"));
            })
        },
        Case {
            deleted: true,
            ..case("deleted before it ran", "Scheduling", |_| {})
        },
        Case {
            spec: json!({"readinessProbe": {"tcpSocket": {"port": 22}}}),
            ..case("not ready yet", "Running", |it| {
                it.process = Process::Running(None);
            })
        },
        Case {
            spec: json!({"domain": {"memory": {"guest": "1Gi"}, "devices": {"gpus": [{"name": "g", "deviceName": "d"}]}}}),
            ..case("cannot be had", "Pending", |_| {})
        },
    ];
    let mut shown = String::new();
    for case in cases {
        let vmi = instance(case.phase, case.deleted, &case.spec);
        let plan = plan(
            &vmi,
            Origin::default(),
            &Capabilities::default(),
            &Settings::default(),
        );
        let mut observed = Observed {
            vmi: &vmi,
            placement: Placement::Unknown,
            disks: None,
            process: Process::None,
            agent: false,
            probe: None,
            lifeless: false,
            plan: &plan,
            now: at("2026-01-01T00:00:00Z"),
            asked_to_stop: None,
        };
        (case.set)(&mut observed);
        let decision = decide(&observed);
        shown += &format!("{}: {:?} -> {}", case.name, case.phase, decision.phase.word());
        for action in &decision.actions {
            shown += &format!(" {action:?}");
        }
        if let Some(seconds) = decision.look_again {
            shown += &format!(" (again in {seconds} s)");
        }
        shown.push('\n');
        for condition in &decision.conditions {
            let parts = [
                &condition.kind,
                &condition.status,
                &condition.reason,
                &condition.message,
            ];
            let parts: Vec<&str> = parts
                .into_iter()
                .map(String::as_str)
                .filter(|it| !it.is_empty())
                .collect();
            shown += &format!("  {}\n", parts.join(" "));
        }
    }
    expect![[r#"
        made: "" -> Scheduling Schedule
          Ready False GuestNotRunning Guest VM is not reported as running
        no node will do: "Scheduling" -> Scheduling Schedule
          PodScheduled False Unschedulable 0/1 nodes are available: 1 Insufficient memory.
          Ready False GuestNotRunning Guest VM is not reported as running
        placed: "Scheduling" -> Scheduled PrepareDisks
          LiveMigratable True
          Ready False GuestNotRunning Guest VM is not reported as running
          StorageLiveMigratable True
        image missing: "Scheduled" -> Scheduled PrepareDisks
          LiveMigratable True
          Ready False GuestNotRunning Guest VM is not reported as running
          StorageLiveMigratable True
          Synchronized False ErrImagePull registry/tiny: not found
        claim missing: "Scheduled" -> Scheduled PrepareDisks
          LiveMigratable True
          Ready False GuestNotRunning Guest VM is not reported as running
          StorageLiveMigratable True
          Synchronized False FailedPvcNotFound PVC data does not exist; create it, or correct its name
        disks ready: "Scheduled" -> Scheduled Start
          LiveMigratable True
          Ready False GuestNotRunning Guest VM is not reported as running
          StorageLiveMigratable True
        starting: "Scheduled" -> Scheduled
          LiveMigratable True
          Ready False GuestNotRunning Guest VM is not reported as running
          StorageLiveMigratable True
        up: "Scheduled" -> Running
          LiveMigratable True
          Ready True
          StorageLiveMigratable True
        up, with its agent: "Running" -> Running
          AgentConnected True
          LiveMigratable True
          Ready True
          StorageLiveMigratable True
        paused: "Running" -> Running
          LiveMigratable True
          Paused True PausedByUser VMI was paused by user
          Ready False GuestNotRunning Guest VM is not reported as running
          StorageLiveMigratable True
        disk full: "Running" -> Running
          LiveMigratable True
          Paused True PausedIOError VMI was paused, low-level IO error detected
          Ready False GuestNotRunning Guest VM is not reported as running
          StorageLiveMigratable True
        lifeless: "Running" -> Running Kill { reason: "the liveness probe failed" }
          LiveMigratable True
          Ready True
          StorageLiveMigratable True
        shut down: "Running" -> Succeeded CleanUp
          Ready False PodTerminating the machine has ended
        crashed: "Running" -> Failed CleanUp
          Ready False PodTerminating the machine has ended
        lost: "Running" -> Failed
          Ready False PodTerminating the machine has ended
        over: "Succeeded" -> Succeeded
          Ready False PodTerminating the machine has ended
        over, and runs nevertheless: "Failed" -> Failed Kill { reason: "the instance is Failed already" }
          Ready False PodTerminating the machine has ended
        does not start: "Scheduled" -> Scheduled PrepareDisks
          LiveMigratable True
          Ready False GuestNotRunning Guest VM is not reported as running
          StorageLiveMigratable True
          Synchronized False Synchronizing with the Domain failed. QEMU did not start: no such device
        deleted while it runs: "Running" -> Running AskToStop (again in 60 s)
          LiveMigratable True
          Ready True
          StorageLiveMigratable True
        deleted, 20 seconds later: "Running" -> Running (again in 40 s)
          LiveMigratable True
          Ready True
          StorageLiveMigratable True
        deleted, 60 seconds later: "Running" -> Running Kill { reason: "the guest did not shut down within 60 seconds" }
          LiveMigratable True
          Ready True
          StorageLiveMigratable True
        deleted and ended: "Running" -> Succeeded CleanUp RemoveFinalizer
          Ready False PodTerminating the machine has ended
        deleted before it ran: "Scheduling" -> Failed RemoveFinalizer
          Ready False PodTerminating the machine has ended
        not ready yet: "Running" -> Running
          LiveMigratable True
          Ready False ContainersNotReady the readiness probe has not succeeded
          StorageLiveMigratable True
        cannot be had: "Pending" -> Pending
          Ready False GuestNotRunning Guest VM is not reported as running
          SpecHonoured False CannotStart domain.devices.gpus[0]: this node has no device d
          Synchronized False FailedCreate domain.devices.gpus[0]: this node has no device d
    "#]].assert_eq(&shown);
}

#[test]
fn each_phase_has_its_moment() {
    let mut vmi = instance("Scheduled", false, &json!({}));
    vmi.status.phase_transition_timestamps = vec![PhaseTransition {
        phase: "Scheduled".to_owned(),
        phase_transition_timestamp: "2025-01-01T00:00:00Z".to_owned(),
    }];
    let plan = plan(
        &vmi,
        Origin::default(),
        &Capabilities::default(),
        &Settings::default(),
    );
    let observed = Observed {
        vmi: &vmi,
        placement: Placement::Node("a".to_owned()),
        disks: Some(Ok(())),
        process: Process::Running(None),
        agent: false,
        probe: None,
        lifeless: false,
        plan: &plan,
        now: at("2026-01-01T00:00:00Z"),
        asked_to_stop: None,
    };
    let found: Vec<(String, String)> = decide(&observed)
        .transitions
        .into_iter()
        .map(|it| (it.phase, it.phase_transition_timestamp))
        .collect();
    let expected = [
        ("Scheduled", "2025-01-01T00:00:00Z"),
        ("Running", "2026-01-01T00:00:00Z"),
    ];
    assert_eq!(
        found,
        expected.map(|(phase, moment)| (phase.to_owned(), moment.to_owned()))
    );
}
