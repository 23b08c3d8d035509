//! Hooks, waves, and what a crash in the middle of them leaves.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{REPO, World, automated, eventually, everywhere, map};

const HOOK: &str = "argocd.argoproj.io/hook";
const POLICY: &str = "argocd.argoproj.io/hook-delete-policy";
const WAVE: &str = "argocd.argoproj.io/sync-wave";

/// A kind whose health is what its objects say, by a script of the users.
async fn with_tasks(world: &World) {
    world.define("example.com", "tasks", "Task").await;
    let script =
        "local s = (obj.status or {}).phase or 'Progressing'\nreturn {status = s, message = 'is ' .. s}";
    let config = json!({
        "metadata": {"name": "argocd-cm", "namespace": "argocd"},
        "data": {"resource.customizations.health.example.com_Task": script},
    });
    if !world
        .api
        .create("/api/v1/namespaces/argocd/configmaps", &config)
        .await
        .unwrap()
    {
        let path = "/api/v1/namespaces/argocd/configmaps/argocd-cm";
        world
            .api
            .merge(path, &json!({"data": config["data"]}))
            .await
            .unwrap();
    }
}

fn task(name: &str, annotations: &[(&str, &str)]) -> String {
    map(name, "x", annotations).replace(
        "apiVersion: v1\nkind: ConfigMap",
        "apiVersion: example.com/v1alpha1\nkind: Task",
    )
}

fn path(name: &str) -> String {
    format!("/apis/example.com/v1alpha1/namespaces/shop/tasks/{name}")
}

async fn becomes(world: &World, name: &str, phase: &str) {
    eventually(&format!("{name} is there"), || async {
        world.api.get(&path(name)).await.unwrap().is_some()
    })
    .await;
    world
        .api
        .merge(&path(name), &json!({"status": {"phase": phase}}))
        .await
        .unwrap();
}

fn message(found: &Value) -> &str {
    found["status"]["operationState"]["message"]
        .as_str()
        .unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn phases_and_waves_come_one_after_the_other() {
    everywhere(|world: World| async move {
        with_tasks(&world).await;
        let commit = world.sources.commit(
            REPO,
            &[
                (
                    "web/pre.yaml",
                    &task("pre", &[(HOOK, "PreSync"), (POLICY, "HookSucceeded")]),
                ),
                ("web/first.yaml", &task("first", &[(WAVE, "-1")])),
                ("web/second.yaml", &map("second", "1", &[(WAVE, "2")])),
                (
                    "web/post.yaml",
                    &task("post", &[(HOOK, "PostSync"), (POLICY, "HookSucceeded")]),
                ),
            ],
        );
        world.application("web", automated()).await;
        world
            .until("web", "waiting for the hook", |found| {
                message(found) == "waiting for completion of hook example.com/Task/pre"
            })
            .await;
        assert!(world.api.get(&path("first")).await.unwrap().is_none());
        becomes(&world, "pre", "Healthy").await;
        world
            .until("web", "waiting for the wave", |found| {
                message(found) == "waiting for healthy state of example.com/Task/first"
            })
            .await;
        assert!(world.config_map("second").await.is_none());
        becomes(&world, "first", "Healthy").await;
        becomes(&world, "post", "Healthy").await;
        world.synced("web", &commit).await;
        // The hook after the sync is waited for, too.
        let found = world
            .until("web", "done", |found| {
                found["status"]["operationState"]["phase"] == "Succeeded"
            })
            .await;
        let results = found["status"]["operationState"]["syncResult"]["resources"]
            .as_array()
            .unwrap()
            .clone();
        let order: Vec<&str> = results
            .iter()
            .map(|result| result["name"].as_str().unwrap())
            .collect();
        assert_eq!(order, ["pre", "first", "second", "post"]);
        assert_eq!(results[0]["hookType"], "PreSync");
        for hook in ["pre", "post"] {
            eventually(&format!("{hook} goes"), || async {
                world.api.get(&path(hook)).await.unwrap().is_none()
            })
            .await;
        }
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_was_begun_is_not_begun_again_after_a_crash() {
    everywhere(|mut world: World| async move {
        with_tasks(&world).await;
        let commit = world.sources.commit(
            REPO,
            &[
                ("web/pre.yaml", &task("pre", &[(HOOK, "PreSync")])),
                ("web/map.yaml", &map("web", "1", &[])),
            ],
        );
        world.application("web", automated()).await;
        world
            .until("web", "waiting", |found| {
                message(found).starts_with("waiting for completion of hook")
            })
            .await;
        let uid = world.api.get(&path("pre")).await.unwrap().unwrap()["metadata"]["uid"].clone();
        world.kill_engine();
        becomes(&world, "pre", "Healthy").await;
        world.start_engine();
        world.synced("web", &commit).await;
        world
            .until("web", "done", |found| {
                found["status"]["operationState"]["phase"] == "Succeeded"
            })
            .await;
        assert_eq!(
            world.api.get(&path("pre")).await.unwrap().unwrap()["metadata"]["uid"],
            uid
        );
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_runs_its_hooks_and_is_tried_again() {
    everywhere(|world: World| async move {
        with_tasks(&world).await;
        world.sources.commit(
            REPO,
            &[
                ("web/pre.yaml", &task("pre", &[(HOOK, "PreSync")])),
                ("web/fail.yaml", &map("fail", "1", &[(HOOK, "SyncFail")])),
                ("web/map.yaml", &map("web", "1", &[])),
            ],
        );
        let mut policy = automated();
        policy["spec"]["syncPolicy"]["retry"] = json!({"limit": 1, "backoff": {"duration": "1s"}});
        world.application("web", policy).await;
        becomes(&world, "pre", "Degraded").await;
        let found = world
            .until("web", "waiting for another try", |found| {
                message(found).contains("Retrying attempt #1")
            })
            .await;
        assert_eq!(found["status"]["operationState"]["phase"], "Running");
        assert!(
            world.config_map("fail").await.is_some(),
            "the hook for failures has run"
        );
        assert!(world.config_map("web").await.is_none());
        // The second time it goes well: the old hook makes room for a new one.
        world
            .until("web", "waiting for the new hook", |found| {
                found["status"]["operationState"]["retryCount"] == 1
                    && message(found) == "waiting for completion of hook example.com/Task/pre"
            })
            .await;
        eventually("a new hook", || async {
            world
                .api
                .get(&path("pre"))
                .await
                .unwrap()
                .is_some_and(|hook| hook["status"].is_null())
        })
        .await;
        becomes(&world, "pre", "Healthy").await;
        world
            .until("web", "synced", |found| {
                found["status"]["sync"]["status"] == "Synced"
                    && found["status"]["operationState"]["phase"] == "Succeeded"
            })
            .await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sync_is_terminated_and_a_newer_commit_supersedes_one_that_waits() {
    everywhere(|world: World| async move {
        with_tasks(&world).await;
        let stuck = [
            ("web/pre.yaml", task("pre", &[(HOOK, "PreSync")])),
            ("web/map.yaml", map("web", "1", &[])),
        ];
        let stuck: Vec<(&str, &str)> = stuck.iter().map(|(path, text)| (*path, text.as_str())).collect();
        world.sources.commit(REPO, &stuck);
        let mut policy = automated();
        policy["spec"]["syncPolicy"]["retry"] = json!({"limit": 0});
        world.application("web", policy).await;
        world
            .until("web", "waiting", |found| {
                message(found).starts_with("waiting for completion of hook")
            })
            .await;
        world
            .patch_application(
                "web",
                json!({"status": {"operationState": {"phase": "Terminating"}}}),
            )
            .await;
        let found = world
            .until("web", "terminated", |found| {
                found["status"]["operationState"]["phase"] == "Failed"
            })
            .await;
        assert_eq!(message(&found), "Operation terminated");
        let said = found["status"]["conditions"][0].clone();
        assert_eq!(
            said["type"], "SyncError",
            "it will not try again by itself: {found}"
        );

        // The next commit is stuck, too; the one after it is not.
        world
            .sources
            .push(REPO, &[("web/map.yaml", &map("web", "2", &[]))]);
        world
            .until("web", "waiting again", |found| {
                found["status"]["operationState"]["phase"] == "Running"
                    && message(found).starts_with("waiting for completion of hook")
            })
            .await;
        let good = world.sources.push(
            REPO,
            &[("web/pre.yaml", ""), ("web/map.yaml", &map("web", "3", &[]))],
        );
        world.synced("web", &good).await;
        assert_eq!(world.config_map("web").await.unwrap()["data"]["value"], "3");
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_wait_for_their_kind() {
    everywhere(|world: World| async move {
        let widget = map("w", "x", &[]).replace(
            "apiVersion: v1\nkind: ConfigMap",
            "apiVersion: example.org/v1alpha1\nkind: Widget",
        );
        let commit = world.sources.commit(
            REPO,
            &[
                ("web/map.yaml", &map("web", "1", &[])),
                ("web/widget.yaml", &widget),
            ],
        );
        world.application("web", automated()).await;
        world
            .until("web", "waiting for the kind", |found| {
                message(found) == "waiting for the kind example.org/Widget of w to be defined"
            })
            .await;
        assert!(world.config_map("web").await.is_some(), "the rest is there");
        tokio::time::sleep(Duration::from_millis(50)).await;
        world.define("example.org", "widgets", "Widget").await;
        world.synced("web", &commit).await;
        world.end().await;
    })
    .await;
}
