//! What interrupts a sync, narrows it, or takes everything away.

use expect_test::{Expect, expect};
use serde_json::json;

use crate::key::ResourceKey;
use crate::operation::{Desired, Selected, SyncOptions, plan_deletion};

use super::world::{World, object};

fn check(world: &World, expected: &Expect) {
    expected.assert_eq(&world.log());
}

fn options(words: &str) -> SyncOptions {
    SyncOptions::read(words.split_whitespace())
}

#[test]
fn a_crash_does_not_run_hooks_twice() {
    let targets = || {
        vec![
            object(
                "Job",
                "one",
                &[("hook", "PreSync"), ("test/health", "Progressing")],
            ),
            object(
                "Job",
                "two",
                &[("hook", "PreSync"), ("test/health", "Progressing")],
            ),
            object("Deployment", "web", &[]),
        ]
    };
    let mut world = World::new(targets(), &[], Desired::default());
    world.turn().crash_after(1).settle();
    world
        .becomes("Job", "one", "Healthy")
        .becomes("Job", "two", "Healthy");
    world.crash_after(0).settle();
    check(
        &world,
        &expect![[r#"
        > try Job one
        > try Job two
        > try Deployment web
        = Running: one or more tasks are running
        > apply Job one
        ! crash after 1 of 2
        > apply Job two
        = Running: one or more tasks are running
        = Running: waiting for completion of hook batch/Job/one and 1 more hooks
        = Running: waiting for completion of hook batch/Job/one and 1 more hooks
        # Job one becomes Healthy
        # Job two becomes Healthy
        ! crash after 0 of 3
        > apply Deployment web
        = Running: one or more tasks are running
        > release Job one
        > release Job two
        = Succeeded: successfully synced (all tasks run)
        PreSync Job one: Synced Succeeded healthy
        PreSync Job two: Synced Succeeded healthy
        Sync Deployment web: Synced Running web applied
    "#]],
    );
}

#[test]
fn an_old_hook_that_is_still_going_is_not_tried() {
    let hook = object("Job", "migrate", &[("hook", "PreSync")]);
    let mut old = hook.clone();
    // Somebody collects its pods first.
    old["metadata"]["deletionTimestamp"] = json!("now");
    old["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    let targets = vec![hook, object("ConfigMap", "web", &[])];
    let mut world = World::new(targets, &[old.clone()], Desired::default());
    world.refused.insert("migrate");
    world.turn().turn().say("it has gone");
    world.live.remove(&ResourceKey::of(&old));
    world.refused.clear();
    world.settle();
    check(
        &world,
        &expect![[r#"
        > try ConfigMap web
        = Running: one or more tasks are running
        = Running: waiting for deletion of batch/Job/migrate
        # it has gone
        > apply Job migrate
        = Running: one or more tasks are running
        > release Job migrate
        > apply ConfigMap web
        = Running: one or more tasks are running
        = Succeeded: successfully synced (all tasks run)
        PreSync Job migrate: Synced Succeeded healthy
        Sync ConfigMap web: Synced Running web applied
    "#]],
    );
}

#[test]
fn a_crash_while_pruning() {
    let live = [object("ConfigMap", "a", &[]), object("ConfigMap", "b", &[])];
    let desired = Desired {
        prune: true,
        ..Desired::default()
    };
    let mut world = World::new(vec![], &live, desired);
    world.crash_after(1).settle();
    check(
        &world,
        &expect![[r#"
        > delete ConfigMap a Foreground
        ! crash after 1 of 2
        > delete ConfigMap b Foreground
        = Running: one or more tasks are running
        = Succeeded: successfully synced (no more tasks)
        Sync ConfigMap a: Pruned Succeeded pruned
        Sync ConfigMap b: Pruned Succeeded pruned
    "#]],
    );
}

#[test]
fn somebody_ends_it() {
    let targets = vec![
        object(
            "Job",
            "slow",
            &[("hook", "PreSync"), ("test/health", "Progressing")],
        ),
        object("Deployment", "web", &[]),
    ];
    let mut world = World::new(targets, &[], Desired::default());
    world.settle().terminate();
    check(
        &world,
        &expect![[r#"
        > try Job slow
        > try Deployment web
        = Running: one or more tasks are running
        > apply Job slow
        = Running: one or more tasks are running
        = Running: waiting for completion of hook batch/Job/slow
        = Running: waiting for completion of hook batch/Job/slow
        > release Job slow
        > delete Job slow Foreground
        = Failed: Operation terminated
        PreSync Job slow: Synced Succeeded Deleted
    "#]],
    );
}

#[test]
fn only_some_objects() {
    let targets = vec![
        object("ConfigMap", "a", &[]),
        object("ConfigMap", "b", &[]),
        object("Job", "hook", &[("hook", "PreSync")]),
    ];
    let only = [Selected {
        kind: "ConfigMap".to_owned(),
        name: "a".to_owned(),
        ..Selected::default()
    }];
    let desired = Desired {
        only: &only,
        ..Desired::default()
    };
    let mut world = World::new(targets, &[], desired);
    check(
        world.settle(),
        &expect![[r#"
        > try ConfigMap a
        = Running: one or more tasks are running
        > apply ConfigMap a
        = Running: one or more tasks are running
        = Succeeded: successfully synced (all tasks run)
        Sync ConfigMap a: Synced Running a applied
    "#]],
    );
}

#[test]
fn only_what_is_out_of_sync() {
    let same = object("ConfigMap", "same", &[]);
    let desired = Desired {
        options: options("ApplyOutOfSyncOnly=true"),
        in_sync: [crate::key::ResourceKey::of(&same)].into(),
        ..Desired::default()
    };
    let mut world = World::new(
        vec![same.clone(), object("ConfigMap", "new", &[])],
        &[same],
        desired,
    );
    check(
        world.settle(),
        &expect![[r#"
        > try ConfigMap new
        = Running: one or more tasks are running
        > apply ConfigMap new
        = Running: one or more tasks are running
        = Succeeded: successfully synced (all tasks run)
        Sync ConfigMap new: Synced Running new applied
    "#]],
    );
}

#[test]
fn a_dry_run_by_request() {
    let desired = Desired {
        dry_run: true,
        prune: true,
        ..Desired::default()
    };
    let targets = vec![
        object("ConfigMap", "c", &[]),
        object("Deployment", "web", &[("wave", "1")]),
    ];
    let mut world = World::new(targets, &[object("ConfigMap", "old", &[])], desired);
    check(
        world.settle(),
        &expect![[r#"
        > try ConfigMap c
        > try Deployment web
        = Running: one or more tasks are running
        = Succeeded: successfully synced (no more tasks)
        Sync ConfigMap old: Pruned Succeeded pruned (dry run)
        Sync ConfigMap c: Synced Succeeded c applied
        Sync Deployment web: Synced Succeeded web applied
    "#]],
    );
    assert_eq!(world.live.len(), 1, "nothing was done");
}

#[test]
fn a_dry_run_by_request_never_becomes_a_real_one() {
    let desired = Desired {
        dry_run: true,
        prune: true,
        ..Desired::default()
    };
    let targets = vec![object("Widget", "w", &[]), object("ConfigMap", "c", &[])];
    let mut world = World::new(targets, &[object("ConfigMap", "old", &[])], desired);
    world.unserved.insert("Widget");
    world.wait_for_kinds = true;
    world.crash_after(0).settle();
    check(
        &world,
        &expect![[r#"
        ! crash after 0 of 1
        > try ConfigMap c
        = Running: one or more tasks are running
        = Succeeded: successfully synced (no more tasks)
        Sync ConfigMap old: Pruned Succeeded pruned (dry run)
        Sync Widget w: Synced Succeeded not tried: its kind is not defined yet
        Sync ConfigMap c: Synced Succeeded c applied
    "#]],
    );
    assert_eq!(world.live.len(), 1, "nothing was done");
}

#[test]
fn many_waves_of_kept_objects_are_one_step() {
    let live: Vec<_> = (0..300)
        .map(|wave| object("ConfigMap", &format!("m{wave}"), &[("wave", &wave.to_string())]))
        .collect();
    let mut world = World::new(vec![], &live, Desired::default());
    world.turn();
    assert_eq!(world.state.phase, crate::operation::OperationPhase::Succeeded);
    assert_eq!(world.live.len(), 300);
}

#[test]
fn what_may_not_be_is_not_begun() {
    let target = object("ConfigMap", "c", &[]);
    let key = crate::key::ResourceKey::of(&target);
    let shared = [(key, "ConfigMap/c is part of applications a and b".to_owned())];
    let tolerant = Desired {
        shared: &shared,
        ..Desired::default()
    };
    let strict = Desired {
        options: options("FailOnSharedResource=true"),
        ..tolerant.clone()
    };
    let mut world = World::new(vec![target.clone()], &[], strict);
    check(
        world.settle(),
        &expect![[r#"
        = Failed: one or more synchronization tasks are not valid, reason: ConfigMap/c is part of applications a and b
        Sync ConfigMap c: SyncFailed Failed ConfigMap/c is part of applications a and b
    "#]],
    );
    let mut world = World::new(vec![target], &[], tolerant);
    check(
        world.settle(),
        &expect![[r#"
        > try ConfigMap c
        = Running: one or more tasks are running
        > apply ConfigMap c
        = Running: one or more tasks are running
        = Succeeded: successfully synced (all tasks run)
        Sync ConfigMap c: Synced Running c applied
    "#]],
    );
}

#[test]
fn a_deletion_has_hooks_and_goes_backwards() {
    let live = [
        object("Deployment", "db", &[("wave", "-1")]),
        object("Deployment", "web", &[("wave", "1")]),
        object("ConfigMap", "kept", &[("options", "Delete=false")]),
    ];
    let hooks = [
        object(
            "Job",
            "backup",
            &[("hook", "PreDelete"), ("test/health", "Progressing")],
        ),
        object("Job", "goodbye", &[("hook", "PostDelete")]),
    ];
    let plan = plan_deletion(&live, &hooks, &Desired::default());
    let mut world = World::with_plan(plan, &live);
    world.settle().becomes("Job", "backup", "Healthy").settle();
    check(
        &world,
        &expect![[r#"
        > try Job backup
        > try Job goodbye
        = Running: one or more tasks are running
        > apply Job backup
        = Running: one or more tasks are running
        = Running: waiting for completion of hook batch/Job/backup
        = Running: waiting for completion of hook batch/Job/backup
        # Job backup becomes Healthy
        > release Job backup
        > delete Deployment web Foreground
        = Running: one or more tasks are running
        > delete Deployment db Foreground
        = Running: one or more tasks are running
        > apply Job goodbye
        = Running: one or more tasks are running
        > release Job goodbye
        = Succeeded: successfully synced (no more tasks)
        PreDelete Job backup: Synced Succeeded healthy
        Sync Deployment web: Pruned Succeeded pruned
        Sync ConfigMap kept: PruneSkipped Succeeded ignored (no delete)
        Sync Deployment db: Pruned Succeeded pruned
        PostDelete Job goodbye: Synced Succeeded healthy
    "#]],
    );
}
