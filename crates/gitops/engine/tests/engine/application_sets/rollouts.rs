//! Progressive syncs: step by step, so many at once, and back again in reverse.

use serde_json::{Value, json};

use super::{SETS, condition, laid_over, set, text};
use crate::harness::{REPO, World, eventually, everywhere, map};

/// Two in `dev`, three in `prod`, one of no step.
fn rolling(more: Value) -> Value {
    let elements = json!([
        {"name": "d1", "env": "dev"}, {"name": "d2", "env": "dev"},
        {"name": "p1", "env": "prod"}, {"name": "p2", "env": "prod"}, {"name": "p3", "env": "prod"},
        {"name": "x", "env": "test"},
    ]);
    let step = |env: &str| json!({"matchExpressions": [{"key": "env", "operator": "In", "values": [env]}]});
    let mut prod = step("prod");
    prod["maxUpdate"] = json!(1);
    let mut strategy = json!({"type": "RollingSync", "rollingSync": {"steps": [step("dev"), prod]}});
    laid_over(&mut strategy, more);
    let generators = json!([{"list": {"elements": elements}}]);
    let mut object = set("rolling", generators, json!({"strategy": strategy}));
    object["spec"]["template"]["metadata"]["labels"] = json!({"env": "{{ .env }}"});
    object
}

/// How far the Applications are, in the order of their names.
fn standing(set: &Value) -> Vec<String> {
    let all = set["status"]["applicationStatus"]
        .as_array()
        .into_iter()
        .flatten();
    all.map(|it| {
        format!(
            "{} {} {}",
            text(it, "/application"),
            text(it, "/step"),
            text(it, "/status")
        )
    })
    .collect()
}

fn files(value: &str, broken: &[&str]) -> Vec<(String, String)> {
    ["d1", "d2", "p1", "p2", "p3", "x"]
        .iter()
        .map(|name| {
            let text = match broken.contains(name) {
                // Of a kind that nobody serves.
                true => {
                    format!("apiVersion: none.example.com/v1\nkind: Nothing\nmetadata: {{name: {name}}}\n")
                }
                false => map(name, value, &[]),
            };
            (format!("apps/{name}/map.yaml"), text)
        })
        .collect()
}

fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect()
}

const DONE: [&str; 6] = [
    "d1 1 Healthy",
    "d2 1 Healthy",
    "p1 2 Healthy",
    "p2 2 Healthy",
    "p3 2 Healthy",
    "x -1 Waiting",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_follow_each_other() {
    everywhere(|world: World| async move {
        // The first step cannot be done, so that the second does not begin.
        world.sources.commit(REPO, &borrowed(&files("1", &["d2"])));
        world.set(rolling(json!({}))).await;
        let found = world
            .until_set("rolling", "at its first step", |set| {
                standing(set).contains(&"d1 1 Healthy".to_owned())
            })
            .await;
        assert_eq!(
            condition(&found, "RolloutProgressing"),
            (
                "True".to_owned(),
                "ApplicationSetModified".to_owned(),
                "ApplicationSet is performing rollout of step 1".to_owned()
            )
        );
        for name in ["p1", "p2", "p3"] {
            assert!(
                world.config_map(name).await.is_none(),
                "{name} waits for its step"
            );
        }
        let d1 = world.get_application("d1").await;
        assert!(
            d1["spec"]["syncPolicy"].get("automated").is_none(),
            "the set says when"
        );
        assert_eq!(
            text(&d1, "/status/operationState/operation/initiatedBy/username"),
            "applicationset-controller"
        );
        assert_eq!(d1["status"]["operationState"]["operation"]["sync"]["prune"], true);
        // When it can, the second follows, one after the other.
        world.sources.push(REPO, &borrowed(&files("1", &[])));
        let found = world
            .until_set("rolling", "done", |set| {
                let busy = standing(set)
                    .iter()
                    .filter(|it| {
                        it.starts_with('p') && (it.ends_with("Pending") || it.ends_with("Progressing"))
                    })
                    .count();
                assert!(busy <= 1, "maxUpdate: {:?}", standing(set));
                condition(set, "RolloutProgressing").0 == "False"
            })
            .await;
        assert_eq!(standing(&found), DONE);
        assert_eq!(
            condition(&found, "RolloutProgressing").1,
            "ApplicationSetRolloutComplete"
        );
        assert!(
            world.config_map("x").await.is_none(),
            "what no step selects is left to people"
        );
        // A commit goes the same way.
        let commit = world.sources.push(REPO, &borrowed(&files("2", &[])));
        for name in ["d1", "d2", "p1", "p2", "p3"] {
            world.synced(name, &commit).await;
        }
        world
            .until_set("rolling", "done again", |set| {
                standing(set) == DONE
                    && set["status"]["applicationStatus"][4]["targetRevisions"] == json!([commit])
                    && condition(set, "RolloutProgressing").0 == "False"
            })
            .await;
        // Without the strategy there is nothing to say of it, and Applications sync by themselves again.
        world
            .patch_set("rolling", json!({"spec": {"strategy": null}}))
            .await;
        world.synced("x", &commit).await;
        world
            .until_set("rolling", "no rollout", |set| {
                set["status"].get("applicationStatus").is_none()
                    && condition(set, "RolloutProgressing").0.is_empty()
            })
            .await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_takes_the_steps_backwards() {
    everywhere(|world: World| async move {
        world.sources.commit(REPO, &borrowed(&files("1", &[])));
        let mut object = rolling(json!({"deletionOrder": "Reverse"}));
        object["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
        world.set(object).await;
        world
            .until_set("rolling", "done", |set| standing(set) == DONE)
            .await;
        // One of the last step is kept from going.
        let path = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/p2";
        let hold = json!({"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io", "example.com/hold"]}});
        world.patch_set("rolling", json!({"spec": {"syncPolicy": {"applicationsSync": "create-delete"}}})).await;
        world.api.merge(path, &hold).await.unwrap();
        world.api.delete(&format!("{SETS}/rolling")).await.unwrap();
        eventually("the others of the last step go", || async {
            world.names().await == ["d1", "d2", "p2", "x"]
        })
        .await;
        let going = world.get_application("p2").await;
        assert!(!going["metadata"]["deletionTimestamp"].is_null());
        for name in ["d1", "d2"] {
            let found = world.get_application(name).await;
            assert!(found["metadata"]["deletionTimestamp"].is_null(), "{name} goes after the last step");
        }
        eventually("p2 has nothing but the hold", || async {
            let found = world.get_application("p2").await;
            found["metadata"]["finalizers"] == json!(["example.com/hold"])
        })
        .await;
        world.api.merge(path, &json!({"metadata": {"finalizers": null}})).await.unwrap();
        world.until_names(&[]).await;
        eventually("the set is gone", || async { world.get_set("rolling").await.is_null() }).await;
        world.end().await;
    })
    .await;
}
