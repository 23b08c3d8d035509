//! What an application says of itself, and what wakes it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{REPO, World, automated, eventually, everywhere, map};

const WEB: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 0\n  selector:\n    matchLabels: {app: web}\n  template:\n    metadata:\n      labels: {app: web}\n    spec:\n      containers:\n      - name: web\n        image: registry.example.com/web:1\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_says_what_is_missing_and_syncs_by_hand() {
    everywhere(|world: World| async move {
        let commit = world.sources.commit(REPO, &[("web/map.yaml", &map("web", "1", &[])), ("web/web.yaml", WEB)]);
        world.application("web", json!({})).await;
        let found = world
            .until("web", "OutOfSync", |found| found["status"]["sync"]["status"] == "OutOfSync")
            .await;
        let status = &found["status"];
        assert_eq!(status["sync"]["revision"], commit);
        assert_eq!(status["health"]["status"], "Missing");
        assert_eq!(status["sourceType"], "Directory");
        assert_eq!(status["sync"]["comparedTo"]["source"]["repoURL"], REPO);
        assert_eq!(status["resources"].as_array().unwrap().len(), 2);
        assert!(world.config_map("web").await.is_none(), "nothing is done without being asked");

        // As the argocd command asks for it.
        let operation = json!({"initiatedBy": {"username": "anna"}, "sync": {"revision": "main", "syncStrategy": {"hook": {}}}});
        world.patch_application("web", json!({"operation": operation})).await;
        let found = world.until("web", "synced", |found| found["status"]["operationState"]["phase"] == "Succeeded").await;
        let state = &found["status"]["operationState"];
        assert_eq!(state["message"], "successfully synced (all tasks run)");
        assert_eq!(state["syncResult"]["revision"], commit);
        assert_eq!(state["operation"]["initiatedBy"]["username"], "anna");
        let results: Vec<String> = state["syncResult"]["resources"].as_array().unwrap().iter()
            .map(|r| format!("{} {} {}", r["kind"].as_str().unwrap(), r["status"].as_str().unwrap(), r["message"].as_str().unwrap()))
            .collect();
        assert_eq!(results, ["ConfigMap Synced configmap/web created", "Deployment Synced deployment.apps/web created"]);
        assert!(found.get("operation").is_none(), "it is done");
        assert_eq!(found["status"]["sync"]["status"], "Synced");
        assert_eq!(found["status"]["history"][0]["revision"], commit);
        assert_eq!(found["status"]["history"][0]["id"], 0);
        assert_eq!(found["status"]["summary"]["images"], json!(["registry.example.com/web:1"]));
        let map = world.config_map("web").await.unwrap();
        assert_eq!(map["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"], "web:/ConfigMap:shop/web");
        let managers = map["metadata"]["managedFields"].as_array().unwrap();
        assert_eq!(managers[0]["manager"], "argocd-controller");

        // Nothing is written when nothing has changed.
        let version = |found: &Value| found["metadata"]["resourceVersion"].clone();
        let before = version(&world.get_application("web").await);
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(version(&world.get_application("web").await), before);
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_is_synced_and_only_what_it_touches_is_rendered() {
    everywhere(|world: World| async move {
        let first = world.sources.commit(
            REPO,
            &[
                ("web/map.yaml", &map("web", "1", &[])),
                ("other/map.yaml", &map("other", "1", &[])),
            ],
        );
        world.application("web", automated()).await;
        let mut other = automated();
        other["spec"]["source"] = json!({"path": "other"});
        world.application("other", other).await;
        world.synced("web", &first).await;
        world.synced("other", &first).await;
        // Passes that were under way when the last status was written come to their end.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let renders = world.sources.renders.load(Ordering::SeqCst);
        assert_eq!(renders, 2, "one for each");
        let untouched = world.get_application("other").await["metadata"]["resourceVersion"].clone();
        let second = world.sources.push(
            REPO,
            &[
                ("web/map.yaml", &map("web", "2", &[])),
                ("web/more.yaml", &map("more", "1", &[])),
            ],
        );
        let found = world.synced("web", &second).await;
        assert_eq!(world.config_map("web").await.unwrap()["data"]["value"], "2");
        assert_eq!(found["status"]["history"].as_array().unwrap().len(), 2);
        assert_eq!(world.sources.renders.load(Ordering::SeqCst), renders + 1);
        assert_eq!(
            world.get_application("other").await["metadata"]["resourceVersion"],
            untouched
        );
        // What is no longer declared goes.
        let third = world.sources.push(REPO, &[("web/more.yaml", "")]);
        world.synced("web", &third).await;
        eventually("it is pruned", || async {
            world.config_map("more").await.is_none()
        })
        .await;
        let wanted = format!("OperationCompleted Sync operation to {third} succeeded");
        eventually("it is said", || async {
            world.events("web").await.contains(&wanted)
        })
        .await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_is_heard_while_the_first_commit_is_rendered() {
    everywhere(|world: World| async move {
        let sources = Arc::clone(&world.sources);
        sources.commit(REPO, &[("web/map.yaml", &map("web", "1", &[]))]);
        let held = sources.gate.write().await;
        world.application("web", json!({})).await;
        eventually("something is rendered", || async {
            sources.renders.load(Ordering::SeqCst) > 0
        })
        .await;
        let commit = sources.push(REPO, &[("web/map.yaml", &map("web", "2", &[]))]);
        // Time to hear of it, before there is a result that it could touch.
        tokio::time::sleep(Duration::from_millis(200)).await;
        drop(held);
        world
            .until("web", "compared with what was pushed", |found| {
                found["status"]["sync"]["revision"] == commit.as_str()
            })
            .await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_is_put_right_and_said_who_it_was() {
    everywhere(|world: World| async move {
        let commit = world
            .sources
            .commit(REPO, &[("web/map.yaml", &map("web", "1", &[]))]);
        world.application("web", automated()).await;
        world.synced("web", &commit).await;
        let path = "/api/v1/namespaces/shop/configmaps/web";
        let begun = std::time::Instant::now();
        world
            .api
            .merge(
                &format!("{path}?fieldManager=kubectl-edit"),
                &json!({"data": {"value": "2"}}),
            )
            .await
            .unwrap();
        eventually("it is as declared", || async {
            world
                .config_map("web")
                .await
                .is_some_and(|map| map["data"]["value"] == "1")
        })
        .await;
        println!("put right after {:?}", begun.elapsed());
        assert!(begun.elapsed() < Duration::from_secs(1));
        eventually("it is said", || async {
            let wanted =
                "Drifted ConfigMap shop/web was changed by kubectl-edit (data.value); it is put right";
            world.events("web").await.iter().any(|event| event == wanted)
        })
        .await;
        // What is deleted is made again.
        world.api.delete(path).await.unwrap();
        eventually("it is there again", || async {
            world.config_map("web").await.is_some()
        })
        .await;
        world
            .until("web", "synced", |found| {
                found["status"]["sync"]["status"] == "Synced"
            })
            .await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_self_heal_drift_is_only_shown() {
    everywhere(|world: World| async move {
        let commit = world
            .sources
            .commit(REPO, &[("web/map.yaml", &map("web", "1", &[]))]);
        world
            .application("web", json!({"spec": {"syncPolicy": {"automated": {}}}}))
            .await;
        world.synced("web", &commit).await;
        world
            .api
            .merge(
                "/api/v1/namespaces/shop/configmaps/web",
                &json!({"data": {"value": "2"}}),
            )
            .await
            .unwrap();
        world
            .until("web", "OutOfSync", |found| {
                found["status"]["sync"]["status"] == "OutOfSync"
            })
            .await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(world.config_map("web").await.unwrap()["data"]["value"], "2");
        // Ignored differences are none.
        let ignore = json!([{"kind": "ConfigMap", "jsonPointers": ["/data/value"]}]);
        world
            .patch_application("web", json!({"spec": {"ignoreDifferences": ignore}}))
            .await;
        world
            .until("web", "Synced", |found| {
                found["status"]["sync"]["status"] == "Synced"
            })
            .await;
        world.end().await;
    })
    .await;
}
