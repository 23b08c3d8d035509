//! From a commit to a converged cluster, with the whole program and plain `git`: a push is synced, a change by hand is undone, and
//! what leaves the repository leaves the cluster.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "faults/process.rs"]
mod process;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "githost/tools.rs"]
mod tools;
#[path = "githost/until.rs"]
mod until;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use process::Process;
use tools::{fairway, run};
use until::until;

async fn said(maps: &Api<ConfigMap>, name: &str) -> Option<String> {
    let found = maps.get_opt(name).await.unwrap()?;
    found.data?.remove("says")
}

async fn namespace(client: &Client, name: &str) {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let object = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    namespaces.create(&PostParams::default(), &object).await.unwrap();
}

/// Makes the Application `lamps`, of a directory of a repository; where it is.
async fn application(client: &Client, repository: &str, path: &str, policy: Value) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("argoproj.io", "v1alpha1", "Application");
    let kind = ApiResource::from_gvk_with_plural(&kind, "applications");
    let applications: Api<DynamicObject> = Api::namespaced_with(client.clone(), "argocd", &kind);
    let application = json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "lamps", "namespace": "argocd"},
        "spec": {
            "project": "default",
            "source": {"repoURL": repository, "path": path, "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "house"},
            "syncPolicy": policy,
        },
    });
    let application = serde_json::from_value(application).unwrap();
    applications
        .create(&PostParams::default(), &application)
        .await
        .unwrap();
    applications
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_becomes_objects_and_keeps_them() {
    let place = tempfile::tempdir().unwrap();
    let (data, work) = (place.path().join("data"), place.path().join("work"));
    std::fs::create_dir_all(&data).unwrap();
    let process = Process::start(&data);
    let client = process.client().await;
    let address = fairway(&data, &["repo", "create", "root/lamps", "--with-token"]);
    let plain = format!("https://{}", address.split_once('@').unwrap().1);
    for name in ["argocd", "house"] {
        namespace(&client, name).await;
    }

    let lamp = |name: &str, says: &str| {
        format!(
            "printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {{name: {name}}}\\ndata: {{says: {says}}}\\n' > lamps/{name}.yaml"
        )
    };
    let push = format!("git add -A && git commit -qm change && git push -q {address} main 2>&1");
    let first = [lamp("red", "bright"), lamp("blue", "dark")].join(" && ");
    run(
        &data,
        &work,
        &format!("git init -q -b main . && mkdir lamps && {first} && {push}"),
    );

    let automated = json!({"automated": {"prune": true, "selfHeal": true}});
    application(&client, &plain, "lamps", automated).await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "house");
    until("the first sync", async || {
        (said(&maps, "red").await? == "bright" && said(&maps, "blue").await? == "dark").then_some(())
    })
    .await;
    fairway(
        &data,
        &["app", "wait", "lamps", "--sync", "--health", "--timeout", "60"],
    );
    let listed = fairway(&data, &["app", "list", "-o", "json"]);
    assert!(
        listed.contains("\"Synced\"") && listed.contains("\"Healthy\""),
        "{listed}"
    );

    // A push changes one object, adds one and takes one away.
    let second = [
        lamp("red", "dim"),
        lamp("green", "bright"),
        "git rm -q lamps/blue.yaml".to_owned(),
    ]
    .join(" && ");
    run(&data, &work, &format!("{second} && {push}"));
    until("the second sync", async || {
        let gone = maps.get_opt("blue").await.unwrap().is_none();
        (gone && said(&maps, "red").await? == "dim" && said(&maps, "green").await? == "bright").then_some(())
    })
    .await;

    // What somebody changes by hand is undone, and what somebody deletes is made again.
    let patch = json!({"data": {"says": "party"}});
    maps.patch("red", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    until("the self-healing", async || {
        (said(&maps, "red").await? == "dim").then_some(())
    })
    .await;
    maps.delete("green", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    until("the lost object", async || {
        (said(&maps, "green").await? == "bright").then_some(())
    })
    .await;

    // Deleting the application with its finalizer takes its objects along.
    fairway(&data, &["app", "delete", "lamps", "--yes"]);
    until("the end of its objects", async || {
        let left =
            maps.get_opt("red").await.unwrap().is_some() || maps.get_opt("green").await.unwrap().is_some();
        (!left).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_of_another_workspace_is_read_with_its_token() {
    let place = tempfile::tempdir().unwrap();
    let (data, work) = (place.path().join("data"), place.path().join("work"));
    std::fs::create_dir_all(&data).unwrap();
    let process = Process::start(&data);
    let client = process.client().await;
    fairway(&data, &["workspace", "create", "acme"]);
    let address = fairway(&data, &["repo", "create", "acme/lamps", "--with-token"]);
    let (token, plain) = address
        .strip_prefix("https://git:")
        .and_then(|rest| rest.split_once('@'))
        .map(|(token, rest)| (token.to_owned(), format!("https://{rest}")))
        .unwrap();
    for name in ["argocd", "house"] {
        namespace(&client, name).await;
    }
    let commit = |says: &str| {
        format!(
            "printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {{name: red}}\\ndata: {{says: {says}}}\\n' > red.yaml \
             && git add -A && git commit -qm change && git push -q {address} main 2>&1"
        )
    };
    run(
        &data,
        &work,
        &format!("git init -q -b main . && {}", commit("bright")),
    );
    let applications = application(&client, &plain, ".", json!({"automated": {}})).await;
    // Without a token it is nobody's business.
    until("the refusal", async || {
        let found = applications.get("lamps").await.unwrap();
        let message = found.data["status"]["conditions"][0]["message"]
            .as_str()?
            .to_owned();
        assert!(!message.contains("certificate"), "{message}");
        message.contains("Failed to load target state").then_some(())
    })
    .await;
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(client.clone(), "argocd");
    let secret = json!({
        "metadata": {"name": "acme", "labels": {"argocd.argoproj.io/secret-type": "repository"}},
        "stringData": {"type": "git", "url": plain, "username": "git", "password": token},
    });
    let secret = serde_json::from_value(secret).unwrap();
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "house");
    until("the first sync", async || {
        (said(&maps, "red").await? == "bright").then_some(())
    })
    .await;
    // A push is seen at once, not when the copy is looked at.
    run(&data, &work, &commit("dim"));
    until("the second sync", async || {
        (said(&maps, "red").await? == "dim").then_some(())
    })
    .await;
}
