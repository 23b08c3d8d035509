//! What a sync would do, before anybody does it: `fairway app diff` and `plan`, and what pull requests are told. And what can be taken
//! back: rollback, and tombstones.

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

const SECRET: &str = "printf 'apiVersion: v1\\nkind: Secret\\nmetadata: {name: key}\\nstringData: {word: WORD}\\n' > lamps/key.yaml";

fn secret(word: &str) -> String {
    SECRET.replace("WORD", word)
}

#[tokio::test(flavor = "multi_thread")]
async fn differences_end_with_a_code() {
    let world = World::start("lamps").await;
    world.push(&[map("lamps", "red", "bright"), secret("xyzzy")], "");
    world.application("lamps", "lamps", json!({})).await;
    let (code, said) = world.fairway_ends(&["app", "diff", "lamps"]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("===== /ConfigMap house/red ======") && said.contains(">   says: bright"),
        "{said}"
    );
    assert!(
        said.contains("++++++++") && !said.contains("xyzzy") && !said.contains("eHl6enk"),
        "{said}"
    );
    world.fairway(&["app", "sync", "lamps"]);
    assert_eq!(world.fairway_ends(&["app", "diff", "lamps"]), (0, String::new()));

    // Another revision, and files that are in no commit yet.
    world.run("git checkout -qb feature");
    world.push(&[map("lamps", "red", "dim"), secret("plugh")], "");
    let (code, said) = world.fairway_ends(&["app", "diff", "lamps", "--revision", "feature"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("<   says: bright\n---\n>   says: dim"), "{said}");
    assert!(said.contains("++++++++++++") && !said.contains("plugh"), "{said}");
    let (code, _) = world.fairway_ends(&[
        "app",
        "diff",
        "lamps",
        "--revision",
        "feature",
        "--exit-code=false",
    ]);
    assert_eq!(code, 0);
    let local = world.work().join("lamps");
    world.run(&format!("{} && rm lamps/key.yaml", map("lamps", "red", "local")));
    let (code, said) = world.fairway_ends(&["app", "diff", "lamps", "--local", local.to_str().unwrap()]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains(">   says: local") && said.contains("===== /Secret house/key ======"),
        "{said}"
    );
    let (code, said) = world.fairway_ends(&["app", "diff", "lamps", "--revision", "nowhere"]);
    assert_eq!(code, 2, "{said}");
    assert_eq!(world.fairway_ends(&["app", "diff", "nobody"]).0, 2);
    assert_eq!(
        world.says("red").await.as_deref(),
        Some("bright"),
        "nothing was done"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_and_pull_requests_have_a_plan() {
    let world = World::start("lamps").await;
    let claim = "printf 'apiVersion: v1\\nkind: PersistentVolumeClaim\\nmetadata: {name: disk}\\nspec: {accessModes: \
                 [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\\n' > lamps/disk.yaml";
    world.push(
        &[
            map("lamps", "red", "bright"),
            claim.to_owned(),
            map("hall", "hat", "grey"),
        ],
        "",
    );
    let automated = json!({"automated": {"prune": true}});
    world.application("lamps", "lamps", automated.clone()).await;
    world.application("hall", "hall", automated).await;
    world.wait("hall").await;
    world
        .until("the objects", async || world.says("red").await.map(drop))
        .await;

    world.run("git checkout -qb feature");
    world.push(
        &[
            map("lamps", "red", "dim"),
            map("lamps", "green", "new"),
            "git rm -q lamps/disk.yaml".to_owned(),
        ],
        "",
    );
    let said = world.fairway(&["app", "plan", "--repo", "root/lamps", "--branch", "feature"]);
    assert!(said.contains("argocd/lamps at "), "{said}");
    assert!(
        said.contains(": 1 to create, 1 to change, 1 to prune, impact: data loss"),
        "{said}"
    );
    assert!(said.contains("data.says"), "{said}");
    assert!(
        said.contains("waits for approval: it would delete the disk house/disk"),
        "{said}"
    );
    assert!(!said.contains("hall"), "only what is touched: {said}");
    let said = world.fairway(&["app", "plan", "lamps", "--revision", "feature", "-o", "json"]);
    let plans: Value = serde_json::from_str(&said).unwrap();
    let impacts: Vec<&str> = plans[0]["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["impact"].as_str().unwrap())
        .collect();
    assert_eq!(impacts.len(), 3, "{plans}");
    assert!(
        impacts.contains(&"none") && impacts.contains(&"live change") && impacts.contains(&"data loss"),
        "{plans}"
    );

    // Whoever may not ask is not answered.
    let path = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/lamps/plan";
    for (user, groups, code) in [
        ("eve", "system:authenticated", 403),
        ("ann", "system:masters", 201),
    ] {
        let request = http::Request::post(path)
            .header("content-type", "application/json")
            .header("impersonate-user", user)
            .header("impersonate-group", groups)
            .body(b"{}".to_vec())
            .unwrap();
        let answer = world.client.request::<Value>(request).await;
        let found = match answer {
            Ok(plan) if plan["kind"] == "ApplicationPlan" => 201,
            Ok(other) => panic!("{other}"),
            Err(kube::Error::Api(status)) => status.code,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(found, code, "{user}");
    }

    // A pull request is told when it is opened, and again when it moves; the comment is one.
    let made = world.gitea(
        "POST",
        "pulls",
        r#"{"title": "Dim", "base": "main", "head": "feature"}"#,
    );
    assert_eq!(made["number"], 1, "{made}");
    let plan = async |what: &str, wanted: &str| {
        world
            .until(what, async || {
                let all = world.gitea("GET", "issues/1/comments", "");
                let body = all[0]["body"].as_str().unwrap_or_default().to_owned();
                (all.as_array().unwrap().len() == 1 && body.contains(wanted)).then_some(body)
            })
            .await
    };
    let body = plan("the plan", "impact: **data loss**").await;
    assert!(
        body.contains("| prune | PersistentVolumeClaim | house/disk | data loss |"),
        "{body}"
    );
    assert!(
        !body.contains("bright") && !body.contains("dim"),
        "no values: {body}"
    );
    let head = world.run("git rev-parse HEAD");
    let status = world.gitea("GET", &format!("commits/{head}/status"), "");
    assert_eq!(status["state"], "warning", "{status}");
    assert_eq!(status["statuses"][0]["context"], "fairway/plan", "{status}");
    let said = world.fairway(&["app", "plan", "--repo", "root/lamps", "--pull", "1"]);
    assert!(said.contains("impact: data loss"), "{said}");
    world.push(&["git checkout -q HEAD~1 -- lamps/disk.yaml".to_owned()], "");
    let body = plan(
        "the new plan",
        "1 to create, 1 to change, impact: **live change**",
    )
    .await;
    assert!(!body.contains("disk"), "{body}");
    let head = world.run("git rev-parse HEAD");
    world
        .until("the new status", async || {
            let status = world.gitea("GET", &format!("commits/{head}/status"), "");
            (status["state"] == "success" && status["total_count"] == 1).then_some(())
        })
        .await;

    // What the base has got meanwhile is not undone by the plan: it is of the merge.
    world.run("git checkout -q main");
    // The disk never becomes healthy here.
    world.push(&[map("lamps", "yellow", "later")], "-o fairway.wait=1");
    world
        .until("the later one", async || world.says("yellow").await.map(drop))
        .await;
    let said = world.fairway(&["app", "plan", "--repo", "root/lamps", "--pull", "1"]);
    assert!(
        said.contains(": 1 to create, 1 to change, impact: live change"),
        "{said}"
    );
    assert!(
        said.contains(&format!("argocd/lamps at {}", &head[..7])) && !said.contains("yellow"),
        "{said}"
    );
    world.push(&[map("lamps", "green", "other")], "-o no-answer");
    let (code, said) = world.fairway_ends(&["app", "plan", "--repo", "root/lamps", "--branch", "feature"]);
    assert!(
        code != 0 && said.contains("they disagree in lamps/green.yaml"),
        "{said}"
    );
    // The pull request says so by itself: its base has moved.
    plan("the plan on the new base", "they disagree in lamps/green.yaml").await;
    let (code, said) = world.fairway_ends(&["app", "plan", "--repo", "root/lamps", "--pull", "7"]);
    assert!(code != 0 && said.contains("there is no pull request 7"), "{said}");
    assert_eq!(
        world.says("red").await.as_deref(),
        Some("bright"),
        "nothing was done"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_deleted_comes_back_and_a_deployment_can_be_undone() {
    let world = World::start("lamps").await;
    world.push(
        &[
            map("lamps", "red", "bright"),
            map("lamps", "blue", "dark"),
            secret("xyzzy"),
        ],
        "",
    );
    world.application("lamps", "lamps", json!({})).await;
    world.fairway(&["app", "sync", "lamps"]);
    world.push(
        &[
            map("lamps", "red", "dim"),
            "git rm -q lamps/blue.yaml lamps/key.yaml".to_owned(),
        ],
        "",
    );
    world.fairway(&["app", "sync", "lamps", "--prune"]);
    assert_eq!(world.says("blue").await, None);

    // Sealed in the store, as Secrets are; what is not secret shows that the files are the ones.
    let store = world.stored();
    let has = |text: &str| store.windows(text.len()).any(|at| at == text.as_bytes());
    assert!(has("ConfigMap") && !has("xyzzy") && !has("eHl6enk="));

    let listed = world.fairway(&["undelete", "list"]);
    assert!(
        listed.contains("ConfigMap") && listed.contains("Secret") && listed.contains("argocd/lamps"),
        "{listed}"
    );
    let back = world.fairway(&["undelete", "configmap/blue", "-n", "house"]);
    assert!(back.contains("ConfigMap/blue in house is back"), "{back}");
    assert_eq!(world.says("blue").await.as_deref(), Some("dark"));
    let back = world.fairway(&["undelete", "--app", "lamps"]);
    assert!(back.contains("Secret/key in house is back"), "{back}");
    let secret = world
        .api
        .get("/api/v1/namespaces/house/secrets/key")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(secret["data"]["word"], "eHl6enk=");
    assert!(!world.fairway(&["undelete", "list"]).contains("Secret"));
    let (code, said) = world.fairway_ends(&["undelete", "configmap/nobody"]);
    assert!(code != 0 && said.contains("no tombstone fits"), "{said}");

    // Back to the deployment before the last, by its number and without one.
    world.fairway(&["app", "rollback", "lamps", "0", "--timeout", "60"]);
    assert_eq!(world.says("red").await.as_deref(), Some("bright"));
    world.fairway(&["app", "sync", "lamps", "--prune"]);
    assert_eq!(world.says("red").await.as_deref(), Some("dim"));
    world.fairway(&["app", "rollback", "lamps", "--timeout", "60"]);
    assert_eq!(world.says("red").await.as_deref(), Some("bright"));
    let history = world.fairway(&["app", "history", "lamps", "-o", "id"]);
    assert!(history.lines().count() >= 4, "{history}");

    // What goes with its Application leaves tombstones, too.
    world.fairway(&["app", "delete", "lamps", "--yes"]);
    world
        .until("its end", async || {
            world.says("red").await.is_none().then_some(())
        })
        .await;
    let back = world.fairway(&["undelete", "configmap/red"]);
    assert!(back.contains("ConfigMap/red in house is back"), "{back}");
    assert_eq!(world.says("red").await.as_deref(), Some("bright"));
}
