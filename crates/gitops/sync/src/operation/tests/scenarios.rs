//! How a sync goes.

use expect_test::{Expect, expect};

use crate::operation::{Desired, NamespaceMetadata, SyncOptions};

use super::world::{World, object};

fn check(world: &World, expected: &Expect) {
    expected.assert_eq(&world.log());
}

fn options(words: &str) -> SyncOptions {
    SyncOptions::read(words.split_whitespace())
}

#[test]
fn without_waves_a_sync_is_one_apply() {
    let targets = vec![
        object("Deployment", "web", &[("test/health", "Progressing")]),
        object("ConfigMap", "c", &[]),
    ];
    let mut world = World::new(targets, &[], Desired::default());
    check(
        world.settle(),
        &expect![[r#"
        > try ConfigMap c
        > try Deployment web
        = Running: one or more tasks are running
        > apply ConfigMap c
        = Running: one or more tasks are running
        > apply Deployment web
        = Running: one or more tasks are running
        = Succeeded: successfully synced (all tasks run)
        Sync ConfigMap c: Synced Running c applied
        Sync Deployment web: Synced Running web applied
    "#]],
    );
}

#[test]
fn waves_wait_for_health() {
    let targets = vec![
        object(
            "Deployment",
            "db",
            &[("wave", "-1"), ("test/health", "Progressing")],
        ),
        object("ConfigMap", "c", &[("wave", "-1")]),
        object("Deployment", "web", &[]),
        object("ConfigMap", "late", &[("wave", "1")]),
    ];
    let mut world = World::new(targets, &[], Desired::default());
    world.settle().becomes("Deployment", "db", "Healthy").settle();
    check(
        &world,
        &expect![[r#"
        > try ConfigMap c
        > try Deployment db
        > try Deployment web
        > try ConfigMap late
        = Running: one or more tasks are running
        > apply ConfigMap c
        = Running: one or more tasks are running
        > apply Deployment db
        = Running: one or more tasks are running
        = Running: waiting for healthy state of apps/Deployment/db
        = Running: waiting for healthy state of apps/Deployment/db
        # Deployment db becomes Healthy
        > apply Deployment web
        = Running: one or more tasks are running
        > apply ConfigMap late
        = Running: one or more tasks are running
        = Succeeded: successfully synced (all tasks run)
        Sync ConfigMap c: Synced Succeeded c applied
        Sync Deployment db: Synced Succeeded healthy
        Sync Deployment web: Synced Succeeded healthy
        Sync ConfigMap late: Synced Running late applied
    "#]],
    );
}

#[test]
fn a_degraded_wave_fails_and_runs_its_hooks() {
    let targets = vec![
        object(
            "Deployment",
            "db",
            &[("wave", "-1"), ("test/health", "Progressing")],
        ),
        object("Deployment", "web", &[]),
        object(
            "Job",
            "alarm",
            &[("hook", "SyncFail"), ("delete", "HookSucceeded,HookFailed")],
        ),
    ];
    let mut world = World::new(targets, &[], Desired::default());
    world.settle().becomes("Deployment", "db", "Degraded").settle();
    check(
        &world,
        &expect![[r#"
        > try Deployment db
        > try Deployment web
        > try Job alarm
        = Running: one or more tasks are running
        > apply Deployment db
        = Running: one or more tasks are running
        = Running: waiting for healthy state of apps/Deployment/db
        = Running: waiting for healthy state of apps/Deployment/db
        # Deployment db becomes Degraded
        > apply Job alarm
        = Running: one or more synchronization tasks completed unsuccessfully
        > release Job alarm
        > delete Job alarm Foreground
        = Failed: one or more synchronization tasks completed unsuccessfully
        Sync Deployment db: Synced Failed degraded
        SyncFail Job alarm: Synced Succeeded healthy
    "#]],
    );
}

#[test]
fn hooks_run_around_a_sync() {
    let old = object("Job", "migrate", &[("hook", "PreSync")]);
    let targets = vec![
        object(
            "Job",
            "migrate",
            &[("hook", "PreSync"), ("test/health", "Progressing")],
        ),
        object(
            "Job",
            "smoke",
            &[("hook", "PostSync"), ("delete", "HookSucceeded")],
        ),
        object("Deployment", "web", &[("test/health", "Progressing")]),
    ];
    let mut world = World::new(targets, &[old], Desired::default());
    world
        .settle()
        .becomes("Job", "migrate", "Healthy")
        .settle()
        .becomes("Deployment", "web", "Healthy")
        .settle();
    check(
        &world,
        &expect![[r#"
        > try Job migrate
        > try Deployment web
        > try Job smoke
        = Running: one or more tasks are running
        > delete Job migrate Foreground
        = Running: waiting for deletion of batch/Job/migrate
        > apply Job migrate
        = Running: one or more tasks are running
        = Running: waiting for completion of hook batch/Job/migrate
        = Running: waiting for completion of hook batch/Job/migrate
        # Job migrate becomes Healthy
        > release Job migrate
        > apply Deployment web
        = Running: one or more tasks are running
        = Running: waiting for healthy state of apps/Deployment/web
        = Running: waiting for healthy state of apps/Deployment/web
        # Deployment web becomes Healthy
        > apply Job smoke
        = Running: one or more tasks are running
        > release Job smoke
        > delete Job smoke Foreground
        = Succeeded: successfully synced (no more tasks)
        PreSync Job migrate: Synced Succeeded healthy
        Sync Deployment web: Synced Succeeded healthy
        PostSync Job smoke: Synced Succeeded healthy
    "#]],
    );
}

#[test]
fn a_failed_hook_stops_the_sync() {
    let targets = vec![
        object(
            "Job",
            "migrate",
            &[
                ("hook", "PreSync"),
                ("test/health", "Degraded"),
                ("delete", "HookFailed"),
            ],
        ),
        object("Deployment", "web", &[]),
    ];
    let mut world = World::new(targets, &[], Desired::default());
    check(
        world.settle(),
        &expect![[r#"
        > try Job migrate
        > try Deployment web
        = Running: one or more tasks are running
        > apply Job migrate
        = Running: one or more tasks are running
        > release Job migrate
        > delete Job migrate Foreground
        = Failed: one or more synchronization tasks completed unsuccessfully
        PreSync Job migrate: Synced Failed degraded
    "#]],
    );
}

#[test]
fn a_dry_run_that_fails_changes_nothing() {
    let targets = vec![object("Deployment", "web", &[]), object("ConfigMap", "bad", &[])];
    let mut world = World::new(targets, &[], Desired::default());
    world.refused.insert("bad");
    check(
        world.settle(),
        &expect![[r#"
        > try ConfigMap bad (refused)
        > try Deployment web
        = Running: one or more tasks are running
        = Failed: one or more objects failed to apply (dry run), reason: bad is refused
        Sync ConfigMap bad: SyncFailed Failed bad is refused
    "#]],
    );
    assert!(world.live.is_empty());
}

#[test]
fn what_is_refused_does_not_keep_its_wave_from_being_tried() {
    let targets = vec![
        object("ConfigMap", "bad", &[]),
        object("Deployment", "web", &[]),
        object("ConfigMap", "next", &[("wave", "1")]),
    ];
    let mut world = World::new(targets, &[], Desired::default());
    world.refused_late.insert("bad");
    check(
        world.settle(),
        &expect![[r#"
            > try ConfigMap bad
            > try Deployment web
            > try ConfigMap next
            = Running: one or more tasks are running
            > apply ConfigMap bad (refused)
            = Running: one or more tasks are running
            > apply Deployment web
            = Running: one or more tasks are running
            = Failed: one or more objects failed to apply, reason: bad is refused
            Sync ConfigMap bad: SyncFailed Failed bad is refused
            Sync Deployment web: Synced Succeeded healthy
        "#]],
    );
}

#[test]
fn extra_objects_are_pruned_or_not() {
    let live = [
        object("ConfigMap", "old", &[]),
        object("ConfigMap", "kept", &[("options", "Prune=false")]),
        object("Deployment", "last", &[("options", "PruneLast=true")]),
    ];
    let pruning = Desired {
        prune: true,
        options: options("PrunePropagationPolicy=background"),
        ..Desired::default()
    };
    let mut world = World::new(vec![object("ConfigMap", "new", &[])], &live, pruning);
    check(
        world.settle(),
        &expect![[r#"
        > try ConfigMap new
        = Running: one or more tasks are running
        > delete ConfigMap old Background
        = Running: one or more tasks are running
        > apply ConfigMap new
        = Running: one or more tasks are running
        > delete Deployment last Background
        = Running: one or more tasks are running
        = Succeeded: successfully synced (no more tasks)
        Sync ConfigMap kept: PruneSkipped Succeeded ignored (no prune)
        Sync ConfigMap old: Pruned Succeeded pruned
        Sync ConfigMap new: Synced Succeeded new applied
        Sync Deployment last: Pruned Succeeded pruned
    "#]],
    );
    let mut world = World::new(
        vec![object("ConfigMap", "new", &[])],
        &live[..1],
        Desired::default(),
    );
    check(
        world.settle(),
        &expect![[r#"
        > try ConfigMap new
        = Running: one or more tasks are running
        > apply ConfigMap new
        = Running: one or more tasks are running
        = Succeeded: successfully synced (all tasks run)
        Sync ConfigMap old: PruneSkipped Succeeded ignored (requires pruning)
        Sync ConfigMap new: Synced Running new applied
    "#]],
    );
}

#[test]
fn deletions_wait_to_be_confirmed() {
    let live = [object("Deployment", "db", &[("options", "Prune=confirm")])];
    let desired = Desired {
        prune: true,
        ..Desired::default()
    };
    let mut world = World::new(vec![object("ConfigMap", "new", &[])], &live, desired);
    world.settle().say("somebody confirms");
    world.plan.prune_confirmed = true;
    check(
        world.settle(),
        &expect![[r#"
        > try ConfigMap new
        = Running: one or more tasks are running
        = Running: Waiting for pruning confirmation of apps/v1/Deployment/db
        = Running: Waiting for pruning confirmation of apps/v1/Deployment/db
        # somebody confirms
        > delete Deployment db Foreground
        = Running: one or more tasks are running
        > apply ConfigMap new
        = Running: one or more tasks are running
        = Succeeded: successfully synced (all tasks run)
        Sync Deployment db: Pruned Succeeded pruned
        Sync ConfigMap new: Synced Running new applied
    "#]],
    );
}

#[test]
fn a_namespace_is_made_before_anything_is_tried() {
    let metadata = NamespaceMetadata {
        labels: [("team".to_owned(), "red".to_owned())].into(),
        ..NamespaceMetadata::default()
    };
    let desired = Desired {
        options: options("CreateNamespace=true"),
        namespace: "shop",
        namespace_metadata: Some(&metadata),
        ..Desired::default()
    };
    let mut world = World::new(vec![object("ConfigMap", "c", &[])], &[], desired);
    check(
        world.settle(),
        &expect![[r#"
        > apply Namespace shop
        = Running: one or more tasks are running
        > try ConfigMap c
        = Running: one or more tasks are running
        > apply ConfigMap c
        = Running: one or more tasks are running
        = Succeeded: successfully synced (all tasks run)
        PreSync Namespace shop: Synced Succeeded shop applied
        Sync ConfigMap c: Synced Running c applied
    "#]],
    );
    let namespace = world
        .live
        .values()
        .find(|object| object["kind"] == "Namespace")
        .unwrap();
    assert_eq!(namespace["metadata"]["labels"]["team"], "red");
}

#[test]
fn kinds_that_are_not_there_yet_are_waited_for() {
    let targets = || vec![object("Widget", "w", &[]), object("ConfigMap", "c", &[])];
    let mut world = World::new(targets(), &[], Desired::default());
    world.unserved.insert("Widget");
    check(
        world.settle(),
        &expect![[r#"
        = Failed: one or more synchronization tasks are not valid, reason: The Kubernetes API could not find example.com/Widget for requested resource shop/w. Make sure the "Widget" CRD is installed on the destination cluster.
        Sync Widget w: SyncFailed Failed The Kubernetes API could not find example.com/Widget for requested resource shop/w. Make sure the "Widget" CRD is installed on the destination cluster.
    "#]],
    );
    let mut world = World::new(targets(), &[], Desired::default());
    world.unserved.insert("Widget");
    world.wait_for_kinds = true;
    world.settle().say("the kind is defined");
    world.unserved.clear();
    check(
        world.settle(),
        &expect![[r#"
        > try ConfigMap c
        = Running: one or more tasks are running
        > apply ConfigMap c
        = Running: one or more tasks are running
        = Running: waiting for the kind example.com/Widget of w to be defined
        = Running: waiting for the kind example.com/Widget of w to be defined
        # the kind is defined
        > apply Widget w
        = Running: one or more tasks are running
        = Succeeded: successfully synced (all tasks run)
        Sync ConfigMap c: Synced Running c applied
        Sync Widget w: Synced Running w applied
    "#]],
    );
}

#[test]
fn a_definition_and_its_objects_in_one_sync() {
    let mut definition = object("CustomResourceDefinition", "widgets", &[]);
    definition["spec"] = serde_json::json!({"group": "example.com", "names": {"kind": "Widget"}});
    let mut world = World::new(
        vec![object("Widget", "w", &[]), definition],
        &[],
        Desired::default(),
    );
    world.unserved.insert("Widget");
    world.settle().say("the kind is served");
    world.unserved.clear();
    check(
        world.settle(),
        &expect![[r#"
        > try CustomResourceDefinition widgets
        = Running: one or more tasks are running
        > apply CustomResourceDefinition widgets
        = Running: one or more tasks are running
        = Running: waiting for the kind example.com/Widget of w to be defined
        = Running: waiting for the kind example.com/Widget of w to be defined
        # the kind is served
        > apply Widget w
        = Running: one or more tasks are running
        = Succeeded: successfully synced (all tasks run)
        Sync CustomResourceDefinition widgets: Synced Running widgets applied
        Sync Widget w: Synced Running w applied
    "#]],
    );
}
