//! What objects of an Application own is heard of by watches, which begin with the first child of a kind and end with the last.

use serde_json::{Value, json};

use crate::harness::{REPO, World, automated, eventually, everywhere};

const SET: &str = "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata:\n  name: web\nspec:\n  replicas: 0\n  selector:\n    matchLabels: {app: web}\n  template:\n    metadata:\n      labels: {app: web}\n    spec:\n      containers:\n      - name: web\n        image: registry.example.com/web:1\n";
const SETS: &str = "/apis/apps/v1/namespaces/shop/replicasets";
const PODS: &str = "/api/v1/namespaces/shop/pods";

/// A Pod that an object owns; not its controller, so that nobody else acts on it.
fn pod(name: &str, owner: &Value, image: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "ownerReferences": [{
            "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
        }]},
        "spec": {"containers": [{"name": "main", "image": image}]},
    })
}

fn has_image(found: &Value, image: &str) -> bool {
    let images = found["status"]["summary"]["images"].as_array();
    images.is_some_and(|images| images.iter().any(|it| it == image))
}

async fn tell_of_children(world: &World, path: &str) {
    // As a controller does that has made something.
    let patch = json!({"metadata": {"annotations": {"example.com/has": "children"}}});
    world.api.merge(path, &patch).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_objects_own_is_heard_of() {
    everywhere(|world: World| async move {
        let commit = world.sources.push(REPO, &[("web/set.yaml", SET)]);
        world.application("web", automated()).await;
        // Nobody runs what it declares, so that it stays on its way.
        world
            .until("web", "synced", |found| {
                found["status"]["sync"]["status"] == "Synced" && found["status"]["sync"]["revision"] == commit
            })
            .await;
        let set = world.api.get(&format!("{SETS}/web")).await.unwrap().unwrap();
        world
            .create(PODS, pod("one", &set, "registry.example.com/side:1"))
            .await;
        tell_of_children(&world, &format!("{SETS}/web")).await;
        let one = "registry.example.com/side:1";
        world
            .until("web", "aware of its child", |found| has_image(found, one))
            .await;

        // From now on the child alone is enough, and so is another one.
        let child = world.api.get(&format!("{PODS}/one")).await.unwrap().unwrap();
        let mut containers = child["spec"]["containers"].clone();
        containers[0]["image"] = json!("registry.example.com/side:2");
        let patch = json!({"spec": {"containers": containers}});
        world
            .api
            .merge(&format!("{PODS}/one"), &patch)
            .await
            .unwrap()
            .unwrap();
        world
            .until("web", "aware of the change", |found| {
                has_image(found, "registry.example.com/side:2") && !has_image(found, one)
            })
            .await;
        world
            .create(PODS, pod("two", &set, "registry.example.com/other:1"))
            .await;
        world
            .until("web", "aware of another", |found| {
                has_image(found, "registry.example.com/other:1")
            })
            .await;
        for name in ["one", "two"] {
            world
                .api
                .delete(&format!("{PODS}/{name}?gracePeriodSeconds=0"))
                .await
                .unwrap();
        }
        let found = world
            .until("web", "without children", |found| {
                !has_image(found, "registry.example.com/other:1")
                    && !has_image(found, "registry.example.com/side:2")
            })
            .await;
        assert!(
            has_image(&found, "registry.example.com/web:1"),
            "what it declares itself stays"
        );
        assert_eq!(
            found["status"]["resources"].as_array().unwrap().len(),
            1,
            "children are not managed"
        );
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_of_kinds_that_nobody_knows_are_found() {
    everywhere(|world: World| async move {
        world.define("example.com", "tasks", "Task").await;
        let task = "apiVersion: example.com/v1alpha1\nkind: Task\nmetadata: {name: dig}\nspec: {}\n";
        let commit = world.sources.push(REPO, &[("web/task.yaml", task)]);
        world.application("web", automated()).await;
        world.synced("web", &commit).await;
        let path = "/apis/example.com/v1alpha1/namespaces/shop/tasks/dig";
        let owner = world.api.get(path).await.unwrap().unwrap();
        world
            .create(PODS, pod("spade", &owner, "registry.example.com/spade:1"))
            .await;
        let set: Value = {
            let owned = pod("", &owner, "")["metadata"]["ownerReferences"].take();
            json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": {"name": "team", "namespace": "shop", "ownerReferences": owned},
                "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "main", "image": "registry.example.com/digger:1"}]},
                }},
            })
        };
        world.create(SETS, set).await;
        tell_of_children(&world, path).await;
        world
            .until("web", "aware of its children", |found| {
                has_image(found, "registry.example.com/spade:1")
                    && has_image(found, "registry.example.com/digger:1")
            })
            .await;
        // A child's child, in a kind that is watched already.
        let team = world.api.get(&format!("{SETS}/team")).await.unwrap().unwrap();
        world
            .create(PODS, pod("digger", &team, "registry.example.com/digger:2"))
            .await;
        world
            .until("web", "aware of a grandchild", |found| {
                has_image(found, "registry.example.com/digger:2")
            })
            .await;
        for name in ["spade", "digger"] {
            world
                .api
                .delete(&format!("{PODS}/{name}?gracePeriodSeconds=0"))
                .await
                .unwrap();
        }
        world.api.delete(&format!("{SETS}/team")).await.unwrap();
        eventually("they are gone", || async {
            let found = world.get_application("web").await;
            found["status"]["summary"]["images"].is_null()
        })
        .await;
        world.end().await;
    })
    .await;
}
