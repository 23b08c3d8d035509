//! A repository whose manifests must render and be admitted: a push that breaks an Application is refused, with the file and
//! the reason.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "faults/process.rs"]
mod process;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "githost/tools.rs"]
mod tools;

use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;

use process::Process;
use tools::{fairway, run, shell};

fn kind(group: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1alpha1", kind), plural)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_render_or_is_not_admitted_is_not_pushed() {
    let place = tempfile::tempdir().unwrap();
    let (data, work) = (place.path().join("data"), place.path().join("work"));
    std::fs::create_dir_all(&data).unwrap();
    let process = Process::start(&data);
    let url = fairway(&data, &["repo", "create", "root/app", "--with-token"]);
    let plain = fairway(&data, &["repo", "list", "root"]);
    let plain = plain
        .split_whitespace()
        .find(|word| word.starts_with("https://"))
        .unwrap()
        .to_owned();
    let client = process.client().await;
    let repositories: Api<DynamicObject> =
        Api::all_with(client.clone(), &kind("fairway.dev", "Repository", "repositories"));
    let strict = Patch::Merge(json!({"spec": {"limits": {"mustRender": true}}}));
    repositories
        .patch("app", &PatchParams::default(), &strict)
        .await
        .unwrap();
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "argocd"}})).unwrap();
    let _ = namespaces.create(&PostParams::default(), &namespace).await;
    let projects: Api<DynamicObject> = Api::namespaced_with(
        client.clone(),
        "argocd",
        &kind("argoproj.io", "AppProject", "appprojects"),
    );
    let project = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "default"},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
                 "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]},
    });
    let _ = projects
        .create(&PostParams::default(), &serde_json::from_value(project).unwrap())
        .await;
    let applications: Api<DynamicObject> = Api::namespaced_with(
        client,
        "argocd",
        &kind("argoproj.io", "Application", "applications"),
    );
    let application = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "web"},
        "spec": {"project": "default", "source": {"repoURL": plain, "path": "web", "targetRevision": "main"},
                 "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"}},
    });
    let application = serde_json::from_value(application).unwrap();
    applications
        .create(&PostParams::default(), &application)
        .await
        .unwrap();

    let map =
        r#"printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: "1"}\n' > web/map.yaml"#;
    let first = format!(
        "git init -q -b main . && mkdir -p web && {map} && printf 'resources: [map.yaml]\\n' > web/kustomization.yaml"
    );
    let push = format!("git add -A && git commit -qm x && git push {url} main 2>&1");
    let said = run(&data, &work, &format!("{first} && {push}"));
    assert!(said.contains("1 Applications render"), "{said}");

    // It does not render: a file that is not there.
    let broken = format!("printf 'resources: [map.yaml, none.yaml]\\n' > web/kustomization.yaml && {push}");
    let (pushed, said) = shell(&data, &work, &broken);
    assert!(
        !pushed && said.contains("argocd/web") && said.contains("none.yaml"),
        "{said}"
    );
    run(&data, &work, "git reset -q --hard HEAD~1");
    // It renders, and the API does not take it.
    let wrong = format!("sed -i 's/a: \"1\"/a: [1]/' web/map.yaml && {push}");
    let (pushed, said) = shell(&data, &work, &wrong);
    assert!(
        !pushed && said.contains("web/map.yaml") && said.contains("not admitted"),
        "{said}"
    );
    run(&data, &work, "git reset -q --hard HEAD~1");
    // What no Application reads, and what is right, is taken.
    run(&data, &work, &format!("echo 'a: [' > broken.yaml && {push}"));
    let other = format!(
        "git checkout -q -b other && printf 'resources: [none.yaml]\\n' > web/kustomization.yaml && git commit -qam y && git push -q {url} other"
    );
    run(&data, &work, &other);
    run(
        &data,
        &work,
        &format!("git checkout -q main && sed -i 's/\"1\"/\"2\"/' web/map.yaml && {push}"),
    );
}
