use expect_test::{Expect, expect};

use crate::operation::{Desired, NamespaceMetadata, Selected, SyncOptions, plan_deletion};

use super::world::{World, object};

fn check(world: &World, expected: &Expect) {
    expected.assert_eq(&world.log());
}

fn options(words: &str) -> SyncOptions {
    SyncOptions::read(words.split_whitespace())
}

#[test]
fn without_waves_a_sync_is_one_apply() {
    let targets = vec![object("Deployment", "web", &[("test/health", "Progressing")]), object("ConfigMap", "c", &[])];
    let mut world = World::new(targets, &[], Desired::default());
    check(world.settle(), &expect![[r#"
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
    "#]]);
}

#[test]
fn waves_wait_for_health() {
    let targets = vec![
        object("Deployment", "db", &[("wave", "-1"), ("test/health", "Progressing")]),
        object("ConfigMap", "c", &[("wave", "-1")]),
        object("Deployment", "web", &[]),
        object("ConfigMap", "late", &[("wave", "1")]),
    ];
    let mut world = World::new(targets, &[], Desired::default());
    world.settle().becomes("Deployment", "db", "Healthy").settle();
    check(&world, &expect![[r#"
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
    "#]]);
}

#[test]
fn a_degraded_wave_fails_and_runs_its_hooks() {
    let targets = vec![
        object("Deployment", "db", &[("wave", "-1"), ("test/health", "Progressing")]),
        object("Deployment", "web", &[]),
        object("Job", "alarm", &[("hook", "SyncFail"), ("delete", "HookSucceeded,HookFailed")]),
    ];
    let mut world = World::new(targets, &[], Desired::default());
    world.settle().becomes("Deployment", "db", "Degraded").settle();
    check(&world, &expect![[r#"
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
    "#]]);
}

#[test]
fn hooks_run_around_a_sync() {
    let old = object("Job", "migrate", &[("hook", "PreSync")]);
    let targets = vec![
        object("Job", "migrate", &[("hook", "PreSync"), ("test/health", "Progressing")]),
        object("Job", "smoke", &[("hook", "PostSync"), ("delete", "HookSucceeded")]),
        object("Deployment", "web", &[("test/health", "Progressing")]),
    ];
    let mut world = World::new(targets, &[old], Desired::default());
    world.settle().becomes("Job", "migrate", "Healthy").settle().becomes("Deployment", "web", "Healthy").settle();
    check(&world, &expect![[r#"
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
    "#]]);
}

#[test]
fn a_failed_hook_stops_the_sync() {
    let targets = vec![
        object("Job", "migrate", &[("hook", "PreSync"), ("test/health", "Degraded"), ("delete", "HookFailed")]),
        object("Deployment", "web", &[]),
    ];
    let mut world = World::new(targets, &[], Desired::default());
    check(world.settle(), &expect![[r#"
        > try Job migrate
        > try Deployment web
        = Running: one or more tasks are running
        > apply Job migrate
        = Running: one or more tasks are running
        > release Job migrate
        > delete Job migrate Foreground
        = Failed: one or more synchronization tasks completed unsuccessfully
        PreSync Job migrate: Synced Failed degraded
    "#]]);
}

#[test]
fn a_dry_run_that_fails_changes_nothing() {
    let targets = vec![object("Deployment", "web", &[]), object("ConfigMap", "bad", &[])];
    let mut world = World::new(targets, &[], Desired::default());
    world.refused.insert("bad");
    check(world.settle(), &expect![[r#"
        > try ConfigMap bad (refused)
        > try Deployment web
        = Running: one or more tasks are running
        = Failed: one or more objects failed to apply (dry run), reason: bad is refused
        Sync ConfigMap bad: SyncFailed Failed bad is refused
    "#]]);
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
    check(world.settle(), &expect![[r#"
        > try ConfigMap bad
        > try Deployment web
        > try ConfigMap next
        = Running: one or more tasks are running
        > apply ConfigMap bad (refused)
        = Running: one or more tasks are running
        > apply Deployment web
        = Running: one or more tasks are running
        = Failed: one or more synchronization tasks completed unsuccessfully, reason: bad is refused
        Sync ConfigMap bad: SyncFailed Failed bad is refused
        Sync Deployment web: Synced Succeeded healthy
    "#]]);
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
    check(world.settle(), &expect![[r#"
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
    "#]]);
    let mut world = World::new(vec![object("ConfigMap", "new", &[])], &live[..1], Desired::default());
    check(world.settle(), &expect![[r#"
        > try ConfigMap new
        = Running: one or more tasks are running
        > apply ConfigMap new
        = Running: one or more tasks are running
        = Succeeded: successfully synced (all tasks run)
        Sync ConfigMap old: PruneSkipped Succeeded ignored (requires pruning)
        Sync ConfigMap new: Synced Running new applied
    "#]]);
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
    check(world.settle(), &expect![[r#"
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
    "#]]);
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
    check(world.settle(), &expect![[r#"
        > apply Namespace shop
        = Running: one or more tasks are running
        > try ConfigMap c
        = Running: one or more tasks are running
        > apply ConfigMap c
        = Running: one or more tasks are running
        = Succeeded: successfully synced (all tasks run)
        PreSync Namespace shop: Synced Succeeded shop applied
        Sync ConfigMap c: Synced Running c applied
    "#]]);
    let namespace = world.live.values().find(|object| object["kind"] == "Namespace").unwrap();
    assert_eq!(namespace["metadata"]["labels"]["team"], "red");
}

#[test]
fn kinds_that_are_not_there_yet_are_waited_for() {
    let targets = || vec![object("Widget", "w", &[]), object("ConfigMap", "c", &[])];
    let mut world = World::new(targets(), &[], Desired::default());
    world.unserved.insert("Widget");
    check(world.settle(), &expect![[r#"
        = Failed: one or more synchronization tasks are not valid, reason: The Kubernetes API could not find example.com/Widget for requested resource shop/w. Make sure the "Widget" CRD is installed on the destination cluster.
        Sync Widget w: SyncFailed Failed The Kubernetes API could not find example.com/Widget for requested resource shop/w. Make sure the "Widget" CRD is installed on the destination cluster.
    "#]]);
    let mut world = World::new(targets(), &[], Desired::default());
    world.unserved.insert("Widget");
    world.wait_for_kinds = true;
    world.settle().say("the kind is defined");
    world.unserved.clear();
    check(world.settle(), &expect![[r#"
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
    "#]]);
}

#[test]
fn a_definition_and_its_objects_in_one_sync() {
    let mut definition = object("CustomResourceDefinition", "widgets", &[]);
    definition["spec"] = serde_json::json!({"group": "example.com", "names": {"kind": "Widget"}});
    let mut world = World::new(vec![object("Widget", "w", &[]), definition], &[], Desired::default());
    world.unserved.insert("Widget");
    world.settle().say("the kind is served");
    world.unserved.clear();
    check(world.settle(), &expect![[r#"
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
    "#]]);
}

#[test]
fn a_crash_does_not_run_hooks_twice() {
    let targets = || {
        vec![
            object("Job", "one", &[("hook", "PreSync"), ("test/health", "Progressing")]),
            object("Job", "two", &[("hook", "PreSync"), ("test/health", "Progressing")]),
            object("Deployment", "web", &[]),
        ]
    };
    let mut world = World::new(targets(), &[], Desired::default());
    world.turn().crash_after(1).settle();
    world.becomes("Job", "one", "Healthy").becomes("Job", "two", "Healthy");
    world.crash_after(0).settle();
    check(&world, &expect![[r#"
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
    "#]]);
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
    check(&world, &expect![[r#"
        > delete ConfigMap a Foreground
        ! crash after 1 of 2
        > delete ConfigMap b Foreground
        = Running: one or more tasks are running
        = Succeeded: successfully synced (no more tasks)
        Sync ConfigMap a: Pruned Succeeded pruned
        Sync ConfigMap b: Pruned Succeeded pruned
    "#]]);
}

#[test]
fn somebody_ends_it() {
    let targets = vec![
        object("Job", "slow", &[("hook", "PreSync"), ("test/health", "Progressing")]),
        object("Deployment", "web", &[]),
    ];
    let mut world = World::new(targets, &[], Desired::default());
    world.settle().terminate();
    check(&world, &expect![[r#"
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
    "#]]);
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
    check(world.settle(), &expect![[r#"
        > try ConfigMap a
        = Running: one or more tasks are running
        > apply ConfigMap a
        = Running: one or more tasks are running
        = Succeeded: successfully synced (all tasks run)
        Sync ConfigMap a: Synced Running a applied
    "#]]);
}

#[test]
fn only_what_is_out_of_sync() {
    let same = object("ConfigMap", "same", &[]);
    let desired = Desired {
        options: options("ApplyOutOfSyncOnly=true"),
        in_sync: [crate::key::ResourceKey::of(&same)].into(),
        ..Desired::default()
    };
    let mut world = World::new(vec![same.clone(), object("ConfigMap", "new", &[])], &[same], desired);
    check(world.settle(), &expect![[r#"
        > try ConfigMap new
        = Running: one or more tasks are running
        > apply ConfigMap new
        = Running: one or more tasks are running
        = Succeeded: successfully synced (all tasks run)
        Sync ConfigMap new: Synced Running new applied
    "#]]);
}

#[test]
fn a_dry_run_by_request() {
    let desired = Desired {
        dry_run: true,
        prune: true,
        ..Desired::default()
    };
    let targets = vec![object("ConfigMap", "c", &[]), object("Deployment", "web", &[("wave", "1")])];
    let mut world = World::new(targets, &[object("ConfigMap", "old", &[])], desired);
    check(world.settle(), &expect![[r#"
        > try ConfigMap c
        > try Deployment web
        = Running: one or more tasks are running
        = Succeeded: successfully synced (no more tasks)
        Sync ConfigMap old: Pruned Succeeded pruned (dry run)
        Sync ConfigMap c: Synced Succeeded c applied
        Sync Deployment web: Synced Succeeded web applied
    "#]]);
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
    check(&world, &expect![[""]]);
    assert_eq!(world.live.len(), 1, "nothing was done");
}

#[test]
fn many_waves_of_kept_objects_are_one_step() {
    let live: Vec<_> = (0..300).map(|wave| object("ConfigMap", &format!("m{wave}"), &[("wave", &wave.to_string())])).collect();
    let mut world = World::new(vec![], &live, Desired::default());
    world.turn();
    assert_eq!(world.state.phase, crate::operation::OperationPhase::Succeeded);
    assert_eq!(world.live.len(), 300);
}

#[test]
fn what_may_not_be_is_not_begun() {
    let target = object("ConfigMap", "c", &[]);
    let key = crate::key::ResourceKey::of(&target);
    let shared = [(key.clone(), "ConfigMap/c is part of applications a and b".to_owned())];
    let tolerant = Desired {
        shared: &shared,
        ..Desired::default()
    };
    let strict = Desired {
        options: options("FailOnSharedResource=true"),
        ..tolerant.clone()
    };
    let mut world = World::new(vec![target.clone()], &[], strict);
    check(world.settle(), &expect![[r#"
        = Failed: one or more synchronization tasks are not valid, reason: ConfigMap/c is part of applications a and b
        Sync ConfigMap c: SyncFailed Failed ConfigMap/c is part of applications a and b
    "#]]);
    let mut world = World::new(vec![target], &[], tolerant);
    check(world.settle(), &expect![[r#"
        > try ConfigMap c
        = Running: one or more tasks are running
        > apply ConfigMap c
        = Running: one or more tasks are running
        = Succeeded: successfully synced (all tasks run)
        Sync ConfigMap c: Synced Running c applied
    "#]]);
}

#[test]
fn a_deletion_has_hooks_and_goes_backwards() {
    let live = [
        object("Deployment", "db", &[("wave", "-1")]),
        object("Deployment", "web", &[("wave", "1")]),
        object("ConfigMap", "kept", &[("options", "Delete=false")]),
    ];
    let hooks = [
        object("Job", "backup", &[("hook", "PreDelete"), ("test/health", "Progressing")]),
        object("Job", "goodbye", &[("hook", "PostDelete")]),
    ];
    let plan = plan_deletion(&live, &hooks, &Desired::default());
    let mut world = World::with_plan(plan, &live);
    world.settle().becomes("Job", "backup", "Healthy").settle();
    check(&world, &expect![[r#"
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
    "#]]);
}
