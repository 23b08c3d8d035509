//! Argo CD's own permissions: whom the engine answers, and tokens of projects' roles.

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

use kube::config::Kubeconfig;
use serde_json::{Value, json};

use world::{World, map};

const ARGOCD: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd";

/// Asks as somebody; the code, and what was answered.
async fn ask(world: &World, who: (&str, &[&str]), what: &str) -> (u16, Value) {
    let mut request = http::Request::post(format!("{ARGOCD}/applications/{what}"))
        .header("content-type", "application/json")
        .header("impersonate-user", who.0);
    for group in who.1.iter().chain(&["system:authenticated"]) {
        request = request.header("impersonate-group", *group);
    }
    let answer: Result<Value, _> = world.client.request(request.body(b"{}".to_vec()).unwrap()).await;
    match answer {
        Ok(answer) => (201, answer),
        Err(kube::Error::Api(status)) => (status.code, json!(status.message)),
        Err(error) => panic!("{error}"),
    }
}

async fn let_people_ask(world: &World) {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "people"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:argocd:api-user"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "people"}],
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/argocd/rolebindings";
    assert!(world.api.create(path, &binding).await.unwrap());
}

async fn set_policies(world: &World, data: Value) {
    let maps = "/api/v1/namespaces/argocd/configmaps";
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-rbac-cm"}, "data": data});
    if !world.api.create(maps, &object).await.unwrap() {
        let patch = json!({"data": data});
        world
            .api
            .merge(&format!("{maps}/argocd-rbac-cm"), &patch)
            .await
            .unwrap()
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_decide_whom_the_engine_answers() {
    let world = World::start("lamps").await;
    world.push(&[map("lamps", "red", "bright")], "");
    world.application("lamps", "lamps", json!({})).await;
    let_people_ask(&world).await;
    let (ann, eve) = (("ann", &["people"][..]), ("eve", &[][..]));

    // Without policies Kubernetes decides alone.
    assert_eq!(ask(&world, ann, "lamps/plan").await.0, 201);
    let (code, why) = ask(&world, eve, "lamps/plan").await;
    assert_eq!(code, 403, "{why}");
    assert!(why.as_str().unwrap().contains("cannot create resource"), "{why}");

    // As the overview of a hub has it, in the operator's older version.
    let hub = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ArgoCD", "metadata": {"name": "argocd-hub", "namespace": "argocd"},
        "spec": {
            "server": {"route": {"enabled": true, "tls": {"termination": "reencrypt"}}, "replicas": 3},
            "dex": {"openShiftOAuth": true}, "ha": {"enabled": true},
            "rbac": {
                "defaultPolicy": "role:readonly",
                "policy": "p, role:admin, applications, *, */*, allow\np, role:admin, clusters, *, *, allow\n\
                           p, role:admin, repositories, *, *, allow\ng, argocd-admins, role:admin\n",
            },
        },
    });
    assert!(
        world
            .api
            .create(&format!("{ARGOCD}/argocds"), &hub)
            .await
            .unwrap()
    );
    let newer = "/apis/argoproj.io/v1beta1/namespaces/argocd/argocds/argocd-hub";
    let stored = world.api.get(newer).await.unwrap().unwrap();
    assert_eq!(stored["apiVersion"], "argoproj.io/v1beta1");
    assert_eq!(
        stored["spec"]["dex"]["openShiftOAuth"], true,
        "what is not acted on is kept"
    );
    assert_eq!(ask(&world, ann, "lamps/plan").await.0, 201, "everybody may look");
    assert_eq!(
        ask(&world, ann, "lamps/sync").await,
        (
            403,
            json!("permission denied: applications, sync, default/lamps, sub: ann")
        )
    );
    assert_eq!(
        ask(&world, eve, "lamps/plan").await.0,
        403,
        "Kubernetes comes first"
    );
    let chief = ("bea", &["people", "argocd-admins"][..]);
    let (code, answer) = ask(&world, chief, "lamps/sync").await;
    assert_eq!(code, 201, "{answer}");
    assert_eq!(answer["operation"]["initiatedBy"]["username"], "bea");
    world.wait("lamps").await;
    assert_eq!(ask(&world, chief, "nobody/sync").await.0, 404);
    assert_eq!(
        ask(&world, ann, "nobody/sync").await.0,
        403,
        "who may do nothing learns nothing"
    );
    // The command, which here is the administrator's, asks the engine, too.
    world.fairway(&["app", "sync", "lamps"]);
    let state = world.get("lamps").await["status"]["operationState"].take();
    assert_eq!(
        state["operation"]["initiatedBy"]["username"], "fairway-admin",
        "{state}"
    );
    world.api.delete(newer).await.unwrap();

    // The ConfigMap: a denial wins, whatever allows.
    let csv = "p, role:dev, applications, *, default/*, allow\np, role:dev, applications, sync, default/lamps, deny\n\
               g, devs, role:dev\n";
    set_policies(&world, json!({"policy.csv": csv})).await;
    let dev = ("cid", &["people", "devs"][..]);
    assert_eq!(ask(&world, dev, "lamps/plan").await.0, 201);
    assert_eq!(ask(&world, dev, "lamps/sync").await.0, 403);
    assert_eq!(
        ask(&world, ann, "lamps/plan").await.0,
        403,
        "there is no default role"
    );
    let patterns = json!({"policy.csv": "p, ann, ^applications$, ^(get|sync)$, ^default/la.*$, allow", "policy.matchMode": "regex"});
    set_policies(&world, patterns).await;
    assert_eq!(ask(&world, ann, "lamps/sync").await.0, 201);
    set_policies(&world, json!({"policy.csv": "p, ann, all"})).await;
    let (code, why) = ask(&world, ann, "lamps/plan").await;
    assert_eq!(code, 403);
    assert!(
        why.as_str()
            .unwrap()
            .contains("argocd-rbac-cm cannot be used: policy.csv, line 1"),
        "{why}"
    );
}

/// A kubeconfig with a token in it.
fn kubeconfig(world: &World, token: &str) -> std::path::PathBuf {
    let own = Kubeconfig::read_from(world.data().join("kubeconfig")).unwrap();
    let cluster = serde_json::to_value(&own.clusters[0]).unwrap();
    let name = cluster["name"].clone();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "clusters": [cluster], "users": [{"name": "ci", "user": {"token": token}}],
        "contexts": [{"name": "ci", "context": {"cluster": name, "user": "ci"}}], "current-context": "ci",
    });
    let path = world.data().join("kubeconfig-ci");
    std::fs::write(&path, config.to_string()).unwrap();
    path
}

fn fairway_with(kubeconfig: &std::path::Path, words: &[&str]) -> (i32, String) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_fairway"))
        .args(words)
        .env("KUBECONFIG", kubeconfig)
        .env("HOME", "/nonexistent/home")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_s_role_has_tokens() {
    let world = World::start("lamps").await;
    world.push(&[map("lamps", "red", "bright"), map("hall", "hat", "grey")], "");
    let project = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "default"},
        "spec": {
            "sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
            "roles": [{"name": "ci", "groups": ["ci-people"], "policies": [
                "p, proj:default:ci, applications, get, default/lamps, allow",
                "p, proj:default:ci, applications, sync, default/lamps, allow",
            ]}],
        },
    });
    assert!(
        world
            .api
            .create(&format!("{ARGOCD}/appprojects"), &project)
            .await
            .unwrap()
    );
    world.application("lamps", "lamps", json!({})).await;
    world.application("hall", "hall", json!({})).await;

    let token = world.fairway(&[
        "proj",
        "role",
        "create-token",
        "default",
        "ci",
        "-e",
        "1h",
        "-i",
        "robot",
        "-t",
    ]);
    let path = format!("{ARGOCD}/appprojects/default");
    let listed = world.api.get(&path).await.unwrap().unwrap();
    let entry = &listed["status"]["jwtTokensByRole"]["ci"]["items"][0];
    assert_eq!(entry["id"], "robot", "{listed}");
    assert_eq!(
        entry["exp"].as_i64().unwrap() - entry["iat"].as_i64().unwrap(),
        3_600
    );
    assert_eq!(listed["spec"]["roles"][0]["jwtTokens"][0]["id"], "robot");
    assert!(
        world
            .fairway(&["proj", "role", "list-tokens", "default", "ci"])
            .contains("robot")
    );

    let config = kubeconfig(&world, token.trim());
    let (code, said) = fairway_with(&config, &["app", "sync", "lamps"]);
    assert_eq!(code, 0, "{said}");
    world.wait("lamps").await;
    let state = world.get("lamps").await["status"]["operationState"].take();
    assert_eq!(
        state["operation"]["initiatedBy"]["username"], "proj:default:ci",
        "{state}"
    );
    let (code, said) = fairway_with(&config, &["app", "diff", "lamps"]);
    assert_eq!(code, 0, "{said}");
    let (code, said) = fairway_with(&config, &["app", "sync", "hall"]);
    assert_ne!(code, 0, "{said}");
    let (code, said) = fairway_with(&config, &["app", "list"]);
    assert!(
        code != 0 && said.contains("proj:default:ci"),
        "Kubernetes knows it for nothing else: {said}"
    );
    let (code, said) = fairway_with(&config, &["proj", "role", "create-token", "default", "ci"]);
    assert_ne!(code, 0, "{said}");

    // Members of the role's group may sync, as far as Kubernetes lets them ask.
    let_people_ask(&world).await;
    set_policies(&world, json!({"policy.csv": "g, nobody, role:admin"})).await;
    let member = ("ann", &["people", "ci-people"][..]);
    assert_eq!(ask(&world, member, "lamps/plan").await.0, 201);
    assert_eq!(ask(&world, member, "hall/plan").await.0, 403);
    assert_eq!(ask(&world, ("bob", &["people"][..]), "lamps/plan").await.0, 403);

    // What was altered, what is over and what was revoked is nobody's.
    let altered = format!("{}x", token.trim());
    let (code, said) = fairway_with(&kubeconfig(&world, &altered), &["app", "sync", "lamps"]);
    assert_ne!(code, 0, "{said}");
    let short = world.fairway(&["proj", "role", "create-token", "default", "ci", "-e", "1s", "-t"]);
    let short = kubeconfig(&world, short.trim());
    world
        .until("it ends", async || {
            let (code, said) = fairway_with(&short, &["app", "get", "lamps"]);
            (code != 0 && said.contains("Unauthorized")).then_some(())
        })
        .await;
    let config = kubeconfig(&world, token.trim());
    let (code, said) = fairway_with(&config, &["app", "get", "lamps"]);
    assert_eq!(code, 0, "{said}");
    world.fairway(&["proj", "role", "delete-token", "default", "ci", "robot"]);
    let (code, said) = fairway_with(&config, &["app", "get", "lamps"]);
    assert!(code != 0 && said.contains("Unauthorized"), "{said}");
}
