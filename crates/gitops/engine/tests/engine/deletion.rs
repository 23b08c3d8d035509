//! The end of an application.

use serde_json::{Value, json};

use crate::harness::{REPO, World, automated, eventually, everywhere, map};

const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";

fn with_finalizer(finalizer: &str) -> Value {
    let mut wanted = automated();
    wanted["metadata"] = json!({"finalizers": [finalizer]});
    wanted
}

async fn delete(world: &World, name: &str) {
    let path = format!("/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/{name}");
    world.api.delete(&path).await.unwrap();
}

async fn gone(world: &World, name: &str) {
    eventually(&format!("{name} goes"), || async {
        world.get_application(name).await.is_null()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_go_with_it_and_some_stay() {
    everywhere(|world: World| async move {
        let commit = world.sources.commit(
            REPO,
            &[
                ("web/a.yaml", &map("a", "1", &[])),
                (
                    "web/b.yaml",
                    &map("b", "1", &[("argocd.argoproj.io/sync-options", "Delete=false")]),
                ),
            ],
        );
        for finalizer in [FINALIZER, "resources-finalizer.argocd.argoproj.io/background"] {
            world.application("web", with_finalizer(finalizer)).await;
            world.synced("web", &commit).await;
            delete(&world, "web").await;
            gone(&world, "web").await;
            assert!(world.config_map("a").await.is_none());
            assert!(world.config_map("b").await.is_some());
        }
        // Without a finalizer everything stays.
        world.application("web", automated()).await;
        world.synced("web", &commit).await;
        delete(&world, "web").await;
        gone(&world, "web").await;
        assert!(world.config_map("a").await.is_some());
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks_run_before_and_after() {
    everywhere(|world: World| async move {
        let hook = |name: &str, phase: &str| map(name, "1", &[("argocd.argoproj.io/hook", phase)]);
        let commit = world.sources.commit(
            REPO,
            &[
                ("web/a.yaml", &map("a", "1", &[])),
                ("web/pre.yaml", &hook("pre", "PreDelete")),
                ("web/post.yaml", &hook("post", "PostDelete")),
            ],
        );
        world.application("web", with_finalizer(FINALIZER)).await;
        let found = world.synced("web", &commit).await;
        let finalizers = found["metadata"]["finalizers"].as_array().unwrap();
        assert!(
            finalizers
                .iter()
                .any(|own| own == "post-delete-finalizer.argocd.argoproj.io"),
            "{finalizers:?}"
        );
        assert!(world.config_map("pre").await.is_none() && world.config_map("post").await.is_none());
        delete(&world, "web").await;
        gone(&world, "web").await;
        assert!(world.config_map("a").await.is_none());
        assert!(world.config_map("post").await.is_some());
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_applications_in_one_namespace_leave_each_other_alone() {
    everywhere(|world: World| async move {
        let namespace = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shared\n";
        let commit = world.sources.commit(REPO, &[
            ("web/ns.yaml", namespace),
            ("web/a.yaml", &map("a", "1", &[])),
            ("other/b.yaml", &map("b", "1", &[])),
        ]);
        let mut web = with_finalizer(FINALIZER);
        web["spec"]["destination"] = json!({"namespace": "shared"});
        let mut other = web.clone();
        other["spec"]["source"] = json!({"path": "other"});
        world.application("web", web).await;
        world.synced("web", &commit).await;
        world.application("other", other).await;
        world.synced("other", &commit).await;
        delete(&world, "web").await;
        gone(&world, "web").await;
        let there = |name: &str| format!("/api/v1/namespaces/shared/configmaps/{name}");
        assert!(world.api.get(&there("a")).await.unwrap().is_none());
        assert!(world.api.get(&there("b")).await.unwrap().is_some(), "the other's object stays");
        assert!(world.api.get("/api/v1/namespaces/shared").await.unwrap().unwrap()["metadata"]["deletionTimestamp"].is_null());
        delete(&world, "other").await;
        gone(&world, "other").await;
        assert!(world.api.get(&there("b")).await.unwrap().is_none());
        world.end().await;
    })
    .await;
}
