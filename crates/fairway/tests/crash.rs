//! `kill -9` in the middle of a sync: the next process goes on with it, and does not run hooks again that have run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "faults/process.rs"]
mod process;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "githost/tools.rs"]
mod tools;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "answers/world.rs"]
mod world;

use serde_json::{Value, json};

use world::{World, map};

const TASKS: &str = "/apis/example.com/v1alpha1/namespaces/house/tasks";

/// A step of a script: writes a hook whose health is what its status says.
fn hook(name: &str, phase: &str) -> String {
    format!(
        "mkdir -p lamps && printf 'apiVersion: example.com/v1alpha1\\nkind: Task\\nmetadata: {{name: {name}, annotations: \
         {{argocd.argoproj.io/hook: {phase}}}}}\\n' > lamps/{name}.yaml"
    )
}

async fn define(world: &World) {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tasks.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "tasks", "singular": "task", "kind": "Task", "listKind": "TaskList"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": any}}],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    world.api.create(path, &crd).await.unwrap();
    let script =
        "local s = (obj.status or {}).phase or 'Progressing'\nreturn {status = s, message = 'is ' .. s}";
    let config = json!({
        "metadata": {"name": "argocd-cm", "namespace": "argocd"},
        "data": {"resource.customizations.health.example.com_Task": script},
    });
    world
        .api
        .create("/api/v1/namespaces/argocd/configmaps", &config)
        .await
        .unwrap();
}

async fn task(world: &World, name: &str) -> Value {
    let path = format!("{TASKS}/{name}");
    world
        .until(&format!("the hook {name}"), async || {
            world.api.get(&path).await.ok().flatten()
        })
        .await
}

async fn done(world: &World, name: &str) {
    let path = format!("{TASKS}/{name}");
    world
        .api
        .merge(&path, &json!({"status": {"phase": "Healthy"}}))
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_goes_on_after_a_crash_and_hooks_run_once() {
    let mut world = World::start("lamps").await;
    define(&world).await;
    world.push(
        &[
            hook("before", "PreSync"),
            map("lamps", "red", "bright"),
            hook("after", "PostSync"),
        ],
        "",
    );
    world
        .application("lamps", "lamps", json!({"automated": {}}))
        .await;

    // Killed while the first hook runs, and again while the second does.
    let before = task(&world, "before").await;
    world.restart().await;
    assert_eq!(
        task(&world, "before").await["metadata"]["uid"],
        before["metadata"]["uid"]
    );
    assert_eq!(world.says("red").await, None, "the sync waits for its hook");
    done(&world, "before").await;
    let after = task(&world, "after").await;
    assert_eq!(world.says("red").await.as_deref(), Some("bright"));
    world.restart().await;
    done(&world, "after").await;
    world.wait("lamps").await;
    for (name, first) in [("before", &before), ("after", &after)] {
        let now = task(&world, name).await;
        assert_eq!(
            now["metadata"]["uid"], first["metadata"]["uid"],
            "{name} ran once"
        );
    }
    let found = world.get("lamps").await;
    let results = found["status"]["operationState"]["syncResult"]["resources"]
        .as_array()
        .unwrap()
        .clone();
    let order: Vec<&str> = results
        .iter()
        .map(|result| result["name"].as_str().unwrap())
        .collect();
    assert_eq!(order, ["before", "red", "after"]);
    assert_eq!(
        found["status"]["history"].as_array().unwrap().len(),
        1,
        "one deployment"
    );
}
