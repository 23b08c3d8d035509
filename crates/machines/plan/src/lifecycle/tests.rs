//! A machine's life as scripts: a command, then what was decided.

use expect_test::{Expect, expect};
use serde_json::json;

use super::delay_seconds;
use world::World;

mod changes;
mod world;

fn play(script: &str, expected: &Expect) {
    let mut world = World::new();
    let mut shown = String::new();
    for line in script.trim().lines().map(str::trim) {
        shown += &format!("> {line}\n{}", world.command(line));
    }
    expected.assert_eq(&shown);
}

#[test]
fn always() {
    play(
        "
        sync
        strategy Always
        volumes missing
        sync
        volumes provisioning
        sync
        volumes ready
        sync
        sync
        phase Scheduled
        sync
        phase Running
        sync
        request stop
        sync
        sync
        phase Succeeded
        sync
        sync
        phase Running
        strategy Halted
        sync
        phase Succeeded
        sync
        sync
        ",
        &expect![[r#"
            > sync
              AddFinalizer
              Stopped Ready=False
            > strategy Always
            > volumes missing
            > sync
              CreateDataVolumes(["root"])
              Provisioning Ready=False
            > volumes provisioning
            > sync
              Provisioning Ready=False
            > volumes ready
            > sync
              CreateInstance { paused: false }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              Starting Ready=False
            > sync
              Starting Ready=False
            > phase Scheduled
            > sync
              Starting Ready=False
            > phase Running
            > sync
              Running Ready=True
            > request stop
            > sync
              DeleteInstance { uid: "vmi-1" }
              event SuccessfulDelete: Stopped the virtual machine by deleting the virtual machine instance vmi-1
              Stopping Ready=True <Stop>
            > sync
              Stopping Ready=True <Stop>
            > phase Succeeded
            > sync
              ReleaseInstance { uid: "vmi-1" }
              Stopped Ready=False <Stop>
            > sync
              CreateInstance { paused: false }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              Starting Ready=False
            > phase Running
            > strategy Halted
            > sync
              DeleteInstance { uid: "vmi-2" }
              event SuccessfulDelete: Stopped the virtual machine by deleting the virtual machine instance vmi-2
              Stopping Ready=True
            > phase Succeeded
            > sync
              ReleaseInstance { uid: "vmi-2" }
              Stopped Ready=False
            > sync
              Stopped Ready=False
        "#]],
    );
}

#[test]
fn starts_that_fail_wait_longer_and_longer() {
    play(
        "
        strategy Always
        sync
        phase Failed
        sync
        gone
        sync
        wait 9
        sync
        wait 1
        sync
        phase Failed
        sync
        gone
        sync
        wait 40
        sync
        phase Running
        sync
        phase Failed
        sync
        sync
        ",
        &expect![[r#"
            > strategy Always
            > sync
              AddFinalizer
              CreateInstance { paused: false }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              Starting Ready=False
            > phase Failed
            > sync
              DeleteInstance { uid: "vmi-1" }
              ReleaseInstance { uid: "vmi-1" }
              event SuccessfulDelete: Stopped the virtual machine by deleting the virtual machine instance vmi-1
              CrashLoopBackOff Ready=False failed 1 times, not before 2026-01-01T00:00:10Z
            > gone
            > sync
              CrashLoopBackOff Ready=False failed 1 times, not before 2026-01-01T00:00:10Z (again in 10 s)
            > wait 9
            > sync
              CrashLoopBackOff Ready=False failed 1 times, not before 2026-01-01T00:00:10Z (again in 1 s)
            > wait 1
            > sync
              CreateInstance { paused: false }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              Starting Ready=False failed 1 times, not before 2026-01-01T00:00:10Z
            > phase Failed
            > sync
              DeleteInstance { uid: "vmi-2" }
              ReleaseInstance { uid: "vmi-2" }
              event SuccessfulDelete: Stopped the virtual machine by deleting the virtual machine instance vmi-2
              CrashLoopBackOff Ready=False failed 2 times, not before 2026-01-01T00:00:50Z
            > gone
            > sync
              CrashLoopBackOff Ready=False failed 2 times, not before 2026-01-01T00:00:50Z (again in 40 s)
            > wait 40
            > sync
              CreateInstance { paused: false }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              Starting Ready=False failed 2 times, not before 2026-01-01T00:00:50Z
            > phase Running
            > sync
              Running Ready=True failed 2 times, not before 2026-01-01T00:00:50Z (again in 30 s)
            > phase Failed
            > sync
              DeleteInstance { uid: "vmi-3" }
              ReleaseInstance { uid: "vmi-3" }
              event SuccessfulDelete: Stopped the virtual machine by deleting the virtual machine instance vmi-3
              CrashLoopBackOff Ready=False failed 3 times, not before 2026-01-01T00:01:30Z
            > sync
              CrashLoopBackOff Ready=False failed 3 times, not before 2026-01-01T00:01:30Z (again in 40 s)
        "#]],
    );
}

#[test]
fn guests_that_run_for_a_moment_only() {
    play(
        "
        strategy Always
        sync
        phase Running
        sync
        phase Failed
        sync
        sync
        phase Running
        wait 5
        sync
        phase Failed
        sync
        sync
        wait 10
        sync
        phase Running
        sync
        wait 30
        sync
        phase Failed
        sync
        sync
        ",
        &expect![[r#"
            > strategy Always
            > sync
              AddFinalizer
              CreateInstance { paused: false }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              Starting Ready=False
            > phase Running
            > sync
              Running Ready=True
            > phase Failed
            > sync
              DeleteInstance { uid: "vmi-1" }
              ReleaseInstance { uid: "vmi-1" }
              event SuccessfulDelete: Stopped the virtual machine by deleting the virtual machine instance vmi-1
              Stopped Ready=False failed 1 times, not before 2026-01-01T00:00:00Z
            > sync
              CreateInstance { paused: false }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              Starting Ready=False failed 1 times, not before 2026-01-01T00:00:00Z
            > phase Running
            > wait 5
            > sync
              Running Ready=True failed 1 times, not before 2026-01-01T00:00:00Z (again in 25 s)
            > phase Failed
            > sync
              DeleteInstance { uid: "vmi-2" }
              ReleaseInstance { uid: "vmi-2" }
              event SuccessfulDelete: Stopped the virtual machine by deleting the virtual machine instance vmi-2
              CrashLoopBackOff Ready=False failed 2 times, not before 2026-01-01T00:00:15Z
            > sync
              CrashLoopBackOff Ready=False failed 2 times, not before 2026-01-01T00:00:15Z (again in 10 s)
            > wait 10
            > sync
              CreateInstance { paused: false }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              Starting Ready=False failed 2 times, not before 2026-01-01T00:00:15Z
            > phase Running
            > sync
              Running Ready=True failed 2 times, not before 2026-01-01T00:00:15Z (again in 30 s)
            > wait 30
            > sync
              Running Ready=True
            > phase Failed
            > sync
              DeleteInstance { uid: "vmi-3" }
              ReleaseInstance { uid: "vmi-3" }
              event SuccessfulDelete: Stopped the virtual machine by deleting the virtual machine instance vmi-3
              Stopped Ready=False
            > sync
              CreateInstance { paused: false }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              Starting Ready=False
        "#]],
    );
}

#[test]
fn rerun_on_failure() {
    play(
        "
        strategy RerunOnFailure
        sync
        phase Running
        sync
        phase Failed
        sync
        sync
        phase Running
        sync
        phase Succeeded
        sync
        sync
        request start
        sync
        phase Running
        sync
        request stop
        sync
        gone
        sync
        sync
        ",
        &expect![[r#"
            > strategy RerunOnFailure
            > sync
              AddFinalizer
              CreateInstance { paused: false }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              Starting Ready=False
            > phase Running
            > sync
              Running Ready=True
            > phase Failed
            > sync
              DeleteInstance { uid: "vmi-1" }
              ReleaseInstance { uid: "vmi-1" }
              event SuccessfulDelete: Stopped the virtual machine by deleting the virtual machine instance vmi-1
              Stopped Ready=False <Start> failed 1 times, not before 2026-01-01T00:00:00Z
            > sync
              CreateInstance { paused: false }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              Starting Ready=False <Start> failed 1 times, not before 2026-01-01T00:00:00Z
            > phase Running
            > sync
              Running Ready=True failed 1 times, not before 2026-01-01T00:00:00Z (again in 30 s)
            > phase Succeeded
            > sync
              DeleteInstance { uid: "vmi-2" }
              ReleaseInstance { uid: "vmi-2" }
              event SuccessfulDelete: Stopped the virtual machine by deleting the virtual machine instance vmi-2
              Stopped Ready=False
            > sync
              Stopped Ready=False
            > request start
            > sync
              CreateInstance { paused: false }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              Starting Ready=False <Start>
            > phase Running
            > sync
              Running Ready=True
            > request stop
            > sync
              DeleteInstance { uid: "vmi-3" }
              event SuccessfulDelete: Stopped the virtual machine by deleting the virtual machine instance vmi-3
              Stopping Ready=True <Stop>
            > gone
            > sync
              Stopped Ready=False
            > sync
              Stopped Ready=False
        "#]],
    );
}

#[test]
fn manual_and_once() {
    play(
        "
        strategy Manual
        sync
        request start-paused
        sync
        sync
        phase Running
        condition {type: Paused, status: 'True'}
        sync
        request stop
        request start
        sync
        gone
        sync
        sync
        strategy Once
        phase Succeeded
        sync
        sync
        ",
        &expect![[r#"
            > strategy Manual
            > sync
              AddFinalizer
              Stopped Ready=False
            > request start-paused
            > sync
              CreateInstance { paused: true }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              Starting Ready=False <Start>
            > sync
              Starting Ready=False
            > phase Running
            > condition {type: Paused, status: 'True'}
            > sync
              Paused Paused=True Ready=True
            > request stop
            > request start
            > sync
              DeleteInstance { uid: "vmi-1" }
              event SuccessfulDelete: Stopped the virtual machine by deleting the virtual machine instance vmi-1
              Stopping Paused=True Ready=True <Stop> <Start>
            > gone
            > sync
              Stopped Paused=True Ready=False <Start>
            > sync
              CreateInstance { paused: false }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              Starting Paused=True Ready=False <Start>
            > strategy Once
            > phase Succeeded
            > sync
              ReleaseInstance { uid: "vmi-2" }
              CrashLoopBackOff Ready=False <Start> failed 1 times, not before 2026-01-01T00:00:10Z
            > sync
              CrashLoopBackOff Ready=False <Start> failed 1 times, not before 2026-01-01T00:00:10Z
        "#]],
    );
}

#[test]
fn a_halted_machine_that_is_asked_to_start() {
    play(
        "request start\nsync\nsync\nsync",
        &expect![[r#"
        > request start
        > sync
          AddFinalizer
          SetRunning
          Stopped Ready=False <Start>
        > sync
          CreateInstance { paused: false }
          event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
          Starting Ready=False <Start>
        > sync
          Starting Ready=False
    "#]],
    );
}

#[test]
fn volumes_in_the_way() {
    play(
        "
        strategy Always
        volumes failed
        sync
        volumes unbound
        sync
        ",
        &expect![[r#"
            > strategy Always
            > volumes failed
            > sync
              AddFinalizer
              DataVolumeError Failure=True (Error encountered while creating DataVolumes: no space) Ready=False
            > volumes unbound
            > sync
              CreateInstance { paused: false }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              WaitingForVolumeBinding Ready=False
        "#]],
    );
}

#[test]
fn the_end() {
    play(
        "
        strategy Always
        sync
        phase Running
        sync
        delete
        sync
        sync
        phase Succeeded
        sync
        sync
        ",
        &expect![[r#"
            > strategy Always
            > sync
              AddFinalizer
              CreateInstance { paused: false }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              Starting Ready=False
            > phase Running
            > sync
              Running Ready=True
            > delete
            > sync
              DeleteInstance { uid: "vmi-1" }
              event SuccessfulDelete: Stopped the virtual machine by deleting the virtual machine instance vmi-1
              Terminating Ready=True
            > sync
              Terminating Ready=True
            > phase Succeeded
            > sync
              ReleaseInstance { uid: "vmi-1" }
              Terminating Ready=False
            > sync
              RemoveFinalizer
              Terminating Ready=False
        "#]],
    );
}

#[test]
fn waiting_times() {
    let times: Vec<u64> = (0..8).map(|failures| delay_seconds(failures, 0)).collect();
    assert_eq!(times, [10, 10, 40, 90, 160, 250, 300, 300]);
    // Chance adds up to half.
    assert_eq!(delay_seconds(1, 5), 15);
    assert_eq!(delay_seconds(1, 6), 10);
    assert_eq!(delay_seconds(i64::MAX, u32::MAX), 300);
}

#[test]
fn what_the_instance_says_is_shown() {
    let words = [
        (
            "Scheduling",
            json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}),
            "ErrorUnschedulable",
        ),
        (
            "Scheduled",
            json!({"type": "Synchronized", "status": "False", "reason": "FailedPvcNotFound"}),
            "ErrorPvcNotFound",
        ),
        (
            "Scheduled",
            json!({"type": "Synchronized", "status": "False", "reason": "ErrImagePull"}),
            "ErrImagePull",
        ),
        (
            "Scheduled",
            json!({"type": "Synchronized", "status": "False", "reason": "ImagePullBackOff"}),
            "ImagePullBackOff",
        ),
        ("Running", json!({"type": "Paused", "status": "True"}), "Paused"),
        (
            "Running",
            json!({"type": "AgentConnected", "status": "True"}),
            "Running",
        ),
        ("Unknown", json!({"type": "Ready", "status": "False"}), "Unknown"),
    ];
    for (phase, condition, expected) in words {
        let mut world = World::new();
        world.command("strategy Always");
        world.command("sync");
        world.command(&format!("phase {phase}"));
        world.command(&format!("condition {condition}"));
        let shown = world.command("sync");
        assert!(
            shown.lines().last().unwrap().trim().starts_with(expected),
            "{shown}"
        );
    }
    let mut world = World::new();
    world.command("strategy Always");
    world.command("sync");
    world.command("phase Running");
    world.vmi.as_mut().unwrap()["status"]["migrationState"] =
        json!({"startTimestamp": "2026-01-01T00:00:00Z"});
    assert!(world.command("sync").trim().starts_with("Migrating"));
}
