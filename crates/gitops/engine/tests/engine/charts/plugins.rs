//! Plugins that the operator allows.

use fairway_gitops_engine::sources::plugins::Plugins;
use serde_json::{Value, json};

use super::dependencies::Repo;
use super::{refresh, says};
use crate::harness::{At, World, automated};

const REPO: &str = "https://git.example.com/shop/jot.git";
const PLUGIN: &str = r#"
apiVersion: argoproj.io/v1alpha1
kind: ConfigManagementPlugin
metadata: {name: jot}
spec:
  version: v1
  init: {command: [sh, -c, "echo \"$PARAM_WORD\" > word"]}
  generate:
    command: [sh, -c]
    args: ["printf '{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {says: %s-%s-%s}}' $(cat main.jot) $(cat word) $ARGOCD_ENV_MORE"]
  discover: {fileName: "*.jot"}
"#;

fn message(found: &Value) -> &str {
    found["status"]["conditions"][0]["message"]
        .as_str()
        .unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_makes_manifests_if_the_operator_has_it() {
    let mut world = World::start(At::Root).await;
    let repo = Repo::new();
    let first = repo.push(&[("app/main.jot", "one"), ("plain/map.txt", "x")]);
    let hosted = |bare: std::path::PathBuf| {
        move |repository: &fairway_gitops_engine::sources::Repository| {
            (repository.url == REPO).then(|| bare.clone())
        }
    };
    world.use_real_sources(hosted(repo.bare.clone())).await;
    let mut change = automated();
    change["spec"]["source"] = json!({
        "repoURL": REPO, "path": "app", "targetRevision": "main",
        "plugin": {
            "name": "jot-v1",
            "env": [{"name": "MORE", "value": "$ARGOCD_APP_NAME"}],
            "parameters": [{"name": "word", "string": "two"}],
        },
    });
    world.application("web", change).await;
    let part = "only if it is started with --config-management-plugins DIR";
    world
        .until("web", part, |found| message(found).contains(part))
        .await;

    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("jot")).unwrap();
    std::fs::write(place.path().join("jot/plugin.yaml"), PLUGIN).unwrap();
    let plugins = Plugins::load(place.path(), std::env::temp_dir()).unwrap();
    world
        .use_sources_with_plugins(Some(plugins), hosted(repo.bare.clone()))
        .await;
    let found = world.synced("web", &first).await;
    assert_eq!(found["status"]["sourceType"], "Plugin");
    assert_eq!(says(&world, "web").await, "one-two-web");

    // By its discovery; then where that finds nothing; and another file is an input, too.
    let patch = json!({"spec": {"source": {"plugin": {"name": null}}}});
    world.patch_application("web", patch).await;
    let second = repo.push(&[("app/main.jot", "three")]);
    refresh(&world, "normal").await;
    world.synced("web", &second).await;
    assert_eq!(says(&world, "web").await, "three-two-web");
    let patch = json!({"spec": {"source": {"path": "plain", "plugin": {"name": "jot-v1"}}}});
    world.patch_application("web", patch).await;
    let part = "does not support this source";
    world
        .until("web", part, |found| message(found).contains(part))
        .await;
    world.end().await;
}
