//! In which order tasks are, and how options are read.

use crate::compare::Pair;
use crate::operation::plan::Task;
use crate::operation::{Desired, SyncOptions, plan};

use super::world::{object, pairs};

fn shown(tasks: &[Task]) -> Vec<String> {
    tasks
        .iter()
        .map(|task| {
            let what = if task.is_prune() { "prune " } else { "" };
            format!(
                "{:?} {} {what}{} {}",
                task.id.phase, task.wave, task.id.key.kind, task.id.key.name
            )
        })
        .collect()
}

#[test]
fn phase_then_wave_then_kind_then_name() {
    let targets = vec![
        object("Widget", "w", &[]),
        object("Deployment", "b", &[]),
        object("Deployment", "a", &[]),
        object("ConfigMap", "c", &[]),
        object("Service", "early", &[("wave", "-1")]),
        object("ConfigMap", "late", &[("wave", "2")]),
        object("Job", "pre", &[("hook", "PreSync"), ("wave", "5")]),
        object("Job", "both", &[("hook", "PreSync,PostSync")]),
        object("Job", "fail", &[("hook", "SyncFail")]),
        object("Job", "never", &[("hook", "Nonsense")]),
        object("ConfigMap", "skipped", &[("hook", "Skip")]),
    ];
    let (managed, hooks) = pairs(targets, &[]);
    let plan = plan(&Desired {
        pairs: &managed,
        hooks: &hooks,
        ..Desired::default()
    });
    assert_eq!(
        shown(&plan.tasks),
        [
            "PreSync 0 Job both",
            "PreSync 5 Job pre",
            "Sync -1 Service early",
            "Sync 0 ConfigMap c",
            "Sync 0 Deployment a",
            "Sync 0 Deployment b",
            "Sync 0 Widget w",
            "Sync 2 ConfigMap late",
            "PostSync 0 Job both",
            "SyncFail 0 Job fail",
        ]
    );
}

#[test]
fn what_others_need_comes_before_them() {
    let mut namespace = object("Namespace", "shop", &[("wave", "3")]);
    namespace["metadata"]
        .as_object_mut()
        .unwrap()
        .shift_remove("namespace");
    let mut definition = object(
        "CustomResourceDefinition",
        "widgets.example.com",
        &[("wave", "1")],
    );
    definition["metadata"]
        .as_object_mut()
        .unwrap()
        .shift_remove("namespace");
    definition["spec"] = serde_json::json!({"group": "example.com", "names": {"kind": "Widget"}});
    let targets = vec![
        object("Widget", "w", &[("wave", "-2")]),
        object("ConfigMap", "c", &[]),
        namespace,
        definition,
    ];
    let (managed, _) = pairs(targets, &[]);
    let plan = plan(&Desired {
        pairs: &managed,
        ..Desired::default()
    });
    assert_eq!(
        shown(&plan.tasks),
        [
            "Sync -2 Namespace shop",
            "Sync -2 CustomResourceDefinition widgets.example.com",
            "Sync -2 Widget w",
            "Sync 0 ConfigMap c",
        ]
    );
    assert!(plan.tasks[2].defined_here);
}

#[test]
fn pruning_goes_backwards() {
    let live = [
        object("ConfigMap", "one", &[("wave", "1")]),
        object("ConfigMap", "two", &[("wave", "2")]),
        object("ConfigMap", "three", &[("wave", "3")]),
        object("ConfigMap", "last", &[("options", "PruneLast=true")]),
    ];
    let (managed, _) = pairs(vec![object("ConfigMap", "new", &[("wave", "2")])], &live);
    let of = |pairs: &[Pair], options: &str| {
        shown(
            &plan(&Desired {
                pairs,
                prune: true,
                options: SyncOptions::read(options.split_whitespace()),
                ..Desired::default()
            })
            .tasks,
        )
    };
    assert_eq!(
        of(&managed, ""),
        [
            "Sync 0 prune ConfigMap three",
            "Sync 1 prune ConfigMap two",
            "Sync 2 ConfigMap new",
            "Sync 2 prune ConfigMap one",
            "Sync 4 prune ConfigMap last",
        ]
    );
    assert_eq!(
        of(&managed, "PruneLast=true"),
        [
            "Sync 2 ConfigMap new",
            "Sync 4 prune ConfigMap last",
            "Sync 4 prune ConfigMap one",
            "Sync 4 prune ConfigMap three",
            "Sync 4 prune ConfigMap two",
        ]
    );
}

#[test]
fn hooks_without_a_name_get_one_that_stays() {
    let mut hook = object("Job", "", &[("hook", "PreSync")]);
    hook["metadata"]["generateName"] = "migrate-".into();
    let make = || {
        plan(&Desired {
            hooks: std::slice::from_ref(&hook),
            revision: "0123456789abcdef",
            started_at: 1000,
            ..Desired::default()
        })
    };
    assert_eq!(make().tasks[0].id.key.name, "migrate-0123456-presync-1000");
    assert_eq!(make(), make());
}

#[test]
fn options_are_read() {
    let options = SyncOptions::read([
        "CreateNamespace=true",
        "PrunePropagationPolicy=background",
        "Validate=false",
        "Prune=confirm",
        "Nonsense=true",
    ]);
    assert!(options.create_namespace && options.skip_validation && options.confirm_prune);
    assert_eq!(options.propagation, crate::operation::Propagation::Background);
    assert_eq!(options.unknown, ["Nonsense=true"]);
    use crate::operation::ApplyMode;
    let replace = SyncOptions::read(["Replace=true"]);
    let cases = [
        (
            "not there",
            object("Deployment", "d", &[]),
            false,
            ApplyMode::Create { validate: true },
        ),
        (
            "there",
            object("Deployment", "d", &[]),
            true,
            ApplyMode::Replace { force: false },
        ),
        (
            "a namespace",
            object("Namespace", "n", &[]),
            true,
            ApplyMode::Update,
        ),
        (
            "a definition",
            object("CustomResourceDefinition", "n", &[]),
            true,
            ApplyMode::Update,
        ),
        (
            "not this one",
            object(
                "Deployment",
                "d",
                &[("options", "Replace=false,ServerSideApply=true,Force=true")],
            ),
            true,
            ApplyMode::Apply {
                server_side: true,
                force: true,
                validate: true,
            },
        ),
    ];
    for (reason, target, is_live, expected) in cases {
        assert_eq!(replace.mode_for(&target, is_live), expected, "{reason}");
    }
}
