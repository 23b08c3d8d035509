//! Kustomizations that inflate charts of repositories: fetched if the installation allows it, and not otherwise.

use serde_json::json;

use super::dependencies::Repo;
use super::server::Server;
use super::{Charts, refresh, says, secret};
use crate::harness::{World, automated, everywhere};

const REPO: &str = "https://git.example.com/shop/charts.git";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn charts_of_kustomizations_are_fetched_if_that_is_allowed() {
    everywhere(|mut world: World| async move {
        let repo = Repo::new();
        let bare = repo.bare.clone();
        world
            .use_real_sources(move |repository| (repository.url == REPO).then(|| bare.clone()))
            .await;
        let charts = Charts::default();
        charts.publish("web", "1.0.0", "one");
        charts.publish("web", "1.1.0", "two");
        charts.require("anna", "s3cret");
        let served = charts.clone();
        let server = Server::start(None, move |asked| served.answer(asked)).await;
        let kustomization = |version: &str| {
            format!(
                "namePrefix: my-\nhelmCharts:\n- name: web\n  repo: http://{}/charts\n  version: {version}\n  releaseName: r\n",
                server.address
            )
        };
        let first = repo.push(&[("app/kustomization.yaml", &kustomization("1.0.0"))]);
        let mut change = automated();
        change["spec"]["source"] = json!({"repoURL": REPO, "path": "app", "targetRevision": "main"});
        world.application("web", change).await;
        let message = |found: &serde_json::Value| {
            found["status"]["conditions"][0]["message"].as_str().unwrap_or_default().to_owned()
        };
        let found = world.until("web", "refused", |found| !message(found).is_empty()).await;
        assert!(message(&found).contains("--enable-helm"), "{}", message(&found));
        assert_eq!(server.asked().len(), 0, "nobody was asked");

        let settings = json!({
            "metadata": {"name": "argocd-cm"}, "data": {"kustomize.buildOptions": "--load-restrictor X --enable-helm"},
        });
        world.create("/api/v1/namespaces/argocd/configmaps", settings).await;
        let found = world
            .until("web", "asked for a password", |found| message(found).contains("401"))
            .await;
        assert!(message(&found).contains("chart 'web'"), "{}", message(&found));
        let fields = json!({"type": "helm", "url": format!("http://{}", server.address), "username": "anna", "password": "s3cret"});
        secret(&world, "charts", "repo-creds", fields).await;
        refresh(&world, "hard").await;
        let found = world.synced("web", &first).await;
        assert_eq!(found["status"]["sourceType"], "Kustomize");
        assert_eq!(says(&world, "my-web").await, "one");

        let second = repo.push(&[("app/kustomization.yaml", &kustomization("1.*"))]);
        refresh(&world, "normal").await;
        world.synced("web", &second).await;
        assert_eq!(says(&world, "my-web").await, "two", "a constraint means the newest that meets it");
        let third = repo.push(&[("app/kustomization.yaml", &kustomization("7.0.0"))]);
        refresh(&world, "normal").await;
        let found = world.until("web", "at a loss", |found| message(found).contains("7.0.0")).await;
        assert_eq!(says(&world, "my-web").await, "two", "what runs keeps running: {found}");
        assert_ne!(third, second);
        world.end().await;
    })
    .await;
}
