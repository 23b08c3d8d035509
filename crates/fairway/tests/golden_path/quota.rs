//! Quotas and runs that publish more than once.

use serde_json::{Value, json};

use crate::until::until;
use crate::world::{World, phase, template, voyage, voyage_when};

/// What the first publishing step holds counts against the second, also if the manifests leave the namespace to the Application.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_does_not_forget_what_it_holds_already() {
    let world = World::start();
    let api = world.api().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "steps"}});
    api.create("/api/v1/namespaces", &namespace).await.unwrap();
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "one", "namespace": "steps"},
        "spec": {"hard": {"count/services": "1"}},
    });
    let quotas = "/api/v1/namespaces/steps/resourcequotas";
    api.create(quotas, &quota).await.unwrap();
    until("the quota is counted", async || {
        let quota = api.get(&format!("{quotas}/one")).await.unwrap()?;
        quota["status"]["hard"].is_object().then_some(())
    })
    .await;
    let mut steps: Vec<Value> = Vec::new();
    for name in ["one", "two"] {
        steps.push(json!({"id": format!("write-{name}"), "action": "catalog:write", "input": {
            "filePath": format!("{name}/service.yaml"), "entity": {
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}}}));
        steps.push(
            json!({"id": format!("publish-{name}"), "action": "publish:gitea", "input": {
            "repoUrl": format!("fairway?repo={name}"), "sourcePath": name}}),
        );
    }
    steps.push(
        json!({"id": "deploy", "action": "argocd:create-resources", "input": {
        "appName": "one", "repoUrl": "${{ steps['publish-one'].output.remoteUrl }}", "path": ".", "namespace": "steps"}}),
    );
    template(&api, "twice", Value::Array(steps)).await;
    voyage(&api, "twice", json!({"template": "twice"})).await;
    let failed = voyage_when(&api, "twice", "it is over", |voyage| {
        matches!(phase(voyage), "Failed" | "Succeeded")
    })
    .await;
    let message = failed["status"]["message"].as_str().unwrap_or("");
    for words in ["publish-two", "no room in namespace steps", "exceeded quota"] {
        assert!(message.contains(words), "{words}: {failed:#}");
    }
    let repositories = api.list("/apis/fairway.dev/v1alpha1/repositories").await.unwrap();
    assert!(repositories.is_empty(), "{repositories:?}");
}
