//! `fairway app`, `appset`, `proj` and `cluster` against the whole program. The test writes the statuses that a controller
//! would, so what is shown is what is in the objects.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "faults/process.rs"]
mod process;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "certs/server.rs"]
mod server;

use std::process::{Command, Output, Stdio};

use fairway_controller::Requests;
use serde_json::{Value, json};
use server::Server;

const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";

struct Here {
    server: Server,
    requests: Requests,
}

impl Here {
    async fn start() -> Self {
        let server = Server::start(&[]);
        let requests = Requests::new(server.client().await);
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}});
        assert!(requests.create("/api/v1/namespaces", &namespace).await.unwrap());
        Self { server, requests }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairway"));
        command
            .args(words)
            .env("KUBECONFIG", self.server.path("kubeconfig"));
        command.env("HOME", "/nonexistent/home").stdin(Stdio::null());
        command
    }

    /// Runs a command on a thread of its own; what it printed, what it complained of, and its code.
    async fn run(&self, words: &[&str]) -> (String, String, i32) {
        let mut command = self.command(words);
        ended(
            tokio::task::spawn_blocking(move || command.output().unwrap())
                .await
                .unwrap(),
        )
    }

    async fn shown(&self, words: &[&str]) -> String {
        let (printed, complaint, code) = self.run(words).await;
        assert_eq!(code, 0, "{words:?}: {complaint}");
        printed
    }

    async fn application(&self, name: &str, status: Value) {
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            // The test plays the engine.
            "metadata": {"name": name, "annotations": {"argocd.argoproj.io/skip-reconcile": "true"}},
            "spec": {
                "project": "default",
                "source": {"repoURL": "https://git.test/shop", "path": "web", "targetRevision": "main"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
            },
            "status": status,
        });
        assert!(self.requests.create(APPLICATIONS, &object).await.unwrap());
    }

    async fn patch(&self, name: &str, patch: Value) {
        let path = format!("{APPLICATIONS}/{name}");
        assert!(self.requests.merge(&path, &patch).await.unwrap().is_some());
    }

    async fn get(&self, name: &str) -> Option<Value> {
        self.requests
            .get(&format!("{APPLICATIONS}/{name}"))
            .await
            .unwrap()
    }
}

fn ended(output: Output) -> (String, String, i32) {
    let Output {
        stdout,
        stderr,
        status,
    } = output;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&stdout), text(&stderr), status.code().unwrap_or(-1))
}

fn healthy() -> Value {
    json!({
        "sync": {"status": "Synced", "revision": "0123456789abcdef0123456789abcdef01234567"},
        "health": {"status": "Healthy"},
        "resources": [{"version": "v1", "kind": "ConfigMap", "namespace": "default", "name": "lamp", "status": "Synced"}],
        "history": [
            {"id": 0, "deployedAt": "2026-11-16T10:00:00Z", "revision": "aaaaaaaaaaaa", "source": {"repoURL": "https://git.test/shop", "targetRevision": "main"}},
            {"id": 1, "deployedAt": "2026-11-16T11:00:00Z", "revision": "bbbbbbbbbbbb", "source": {"repoURL": "https://git.test/shop", "targetRevision": "main"}},
        ],
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applications_are_shown() {
    let here = Here::start().await;
    here.application("shop", healthy()).await;
    here.application("other", json!({})).await;
    let listed = here.shown(&["app", "list"]).await;
    let lines: Vec<Vec<&str>> = listed.lines().map(|it| it.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..3], ["NAME", "CLUSTER", "NAMESPACE"]);
    assert_eq!(lines[2][0], "argocd/shop");
    assert_eq!(lines[2][4..7], ["Synced", "Healthy", "Manual"]);
    assert_eq!(
        here.shown(&["app", "list", "-o", "name", "-r", "https://git.test/shop.git"])
            .await,
        "argocd/other\nargocd/shop\n"
    );
    assert_eq!(
        here.shown(&["app", "list", "-o", "name", "-p", "nobody"]).await,
        ""
    );
    let shown = here.shown(&["app", "get", "shop"]).await;
    assert!(shown.starts_with("Name:               argocd/shop\n"), "{shown}");
    assert!(
        shown.contains("Sync Status:        Synced to main (0123456)\n"),
        "{shown}"
    );
    assert!(shown.contains("ConfigMap  default    lamp"), "{shown}");
    let value: Value =
        serde_json::from_str(&here.shown(&["app", "get", "argocd/shop", "-o", "json"]).await).unwrap();
    assert_eq!(
        (&value["kind"], &value["spec"]["source"]["path"]),
        (&json!("Application"), &json!("web"))
    );
    assert!(
        here.shown(&["app", "history", "shop"])
            .await
            .contains("1       2026-11-16 11:00:00 +0000 UTC  main (bbbbbbb)\n")
    );
    assert_eq!(
        here.shown(&["app", "history", "shop", "-o", "id"]).await,
        "0\n1\n"
    );
    assert!(
        here.shown(&["app", "resources", "shop"])
            .await
            .contains("ConfigMap  default    lamp  No\n")
    );
    let (_, complaint, code) = here.run(&["app", "get", "nowhere"]).await;
    assert_eq!(code, 20, "as argocd: {complaint}");
    assert!(
        complaint.contains("Application \"nowhere\" not found"),
        "{complaint}"
    );
}

/// The tree has what the objects own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_has_children() {
    let here = Here::start().await;
    here.application("shop", healthy()).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let lamp = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "lamp"}});
    here.requests.create(maps, &lamp).await.unwrap();
    let uid = here.requests.get(&format!("{maps}/lamp")).await.unwrap().unwrap()["metadata"]["uid"].clone();
    let wick = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "wick", "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "lamp", "uid": uid}]}});
    here.requests.create(maps, &wick).await.unwrap();
    let shown = here.shown(&["app", "get", "shop", "-o", "tree"]).await;
    assert!(shown.contains("ConfigMap/lamp    Synced"), "{shown}");
    assert!(shown.contains("└─ConfigMap/wick"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sync_is_written_and_followed() {
    let here = Here::start().await;
    here.application("shop", healthy()).await;
    let mut syncing = here.command(&[
        "app",
        "sync",
        "shop",
        "--prune",
        "--revision",
        "v2",
        "--info",
        "why=test",
    ]);
    let syncing = syncing
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let operation = loop {
        match here.get("shop").await.unwrap().get("operation") {
            Some(operation) => break operation.clone(),
            None => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
        }
    };
    assert_eq!(operation["sync"]["revision"], "v2");
    assert_eq!(operation["sync"]["prune"], true);
    assert_eq!(operation["info"], json!([{"name": "why", "value": "test"}]));
    assert_eq!(operation["initiatedBy"]["username"], "fairway-admin");
    // A second one has to wait.
    let (_, complaint, code) = here.run(&["app", "sync", "shop"]).await;
    assert_eq!(code, 20);
    assert!(
        complaint.contains("another operation is already in progress"),
        "{complaint}"
    );
    // What a controller would write.
    let state = |phase: &str, finished: Value| {
        json!({"phase": phase, "startedAt": "2026-11-16T10:00:00Z", "finishedAt": finished, "operation": operation,
               "syncResult": {"revision": "v2", "resources": [{"group": "", "kind": "ConfigMap", "namespace": "default", "name": "lamp",
                   "version": "v1", "status": "Synced", "syncPhase": "Sync", "message": "configmap/lamp configured"}]}})
    };
    here.patch(
        "shop",
        json!({"operation": null, "status": {"operationState": state("Running", Value::Null)}}),
    )
    .await;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    here.patch(
        "shop",
        json!({"status": {"reconciledAt": "2026-11-16T10:00:09Z",
        "operationState": state("Succeeded", json!("2026-11-16T10:00:05Z"))}}),
    )
    .await;
    let (printed, complaint, code) = ended(
        tokio::task::spawn_blocking(|| syncing.wait_with_output().unwrap())
            .await
            .unwrap(),
    );
    assert_eq!(code, 0, "{complaint}");
    assert!(printed.starts_with("TIMESTAMP"), "{printed}");
    assert!(printed.contains("configmap/lamp configured"), "{printed}");
    assert!(printed.contains("Phase:              Succeeded\n"), "{printed}");
    assert!(printed.contains("Duration:           5s\n"), "{printed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_sync_is_a_failure() {
    let here = Here::start().await;
    here.application("shop", healthy()).await;
    let mut syncing = here.command(&["app", "sync", "shop", "-o", "json"]);
    let syncing = syncing
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while here.get("shop").await.unwrap().get("operation").is_none() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    here.patch("shop", json!({"operation": null, "status": {"reconciledAt": "2026-11-16T10:00:09Z", "operationState": {
        "phase": "Failed", "startedAt": "2026-11-16T10:00:00Z", "finishedAt": "2026-11-16T10:00:05Z", "operation": {"sync": {}}}}})).await;
    let (printed, complaint, code) = ended(
        tokio::task::spawn_blocking(|| syncing.wait_with_output().unwrap())
            .await
            .unwrap(),
    );
    assert_eq!(code, 1, "as argocd: {complaint}");
    assert!(
        complaint.contains("Operation has completed with phase: Failed"),
        "{complaint}"
    );
    let last: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(last["status"]["operationState"]["phase"], "Failed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_has_an_end() {
    let here = Here::start().await;
    here.application("shop", healthy()).await;
    assert!(
        here.shown(&["app", "wait", "shop", "--timeout", "30"])
            .await
            .contains("Health Status:      Healthy\n")
    );
    let (printed, complaint, code) = here
        .run(&["app", "wait", "shop", "--degraded", "--timeout", "1"])
        .await;
    assert_eq!(code, 20);
    assert!(
        complaint.contains("timed out (1s) waiting for app \"argocd/shop\" match desired state"),
        "{complaint}"
    );
    assert!(
        printed.contains("This is the state of the app after wait timed out:"),
        "{printed}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_goes_back_and_can_be_ended() {
    let here = Here::start().await;
    here.application("shop", healthy()).await;
    let mut rolling = here.command(&["app", "rollback", "shop"]);
    let mut rolling = rolling
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let operation = loop {
        match here.get("shop").await.unwrap().get("operation") {
            Some(operation) => break operation.clone(),
            None => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
        }
    };
    assert_eq!(operation["sync"]["revision"], "aaaaaaaaaaaa");
    let (_, complaint, code) = here.run(&["app", "terminate-op", "shop"]).await;
    assert_eq!(code, 20, "nothing runs yet");
    assert!(complaint.contains("No operation is in progress"), "{complaint}");
    here.patch("shop", json!({"status": {"operationState": {"phase": "Running", "startedAt": "2026-11-16T10:00:00Z", "operation": {}}}})).await;
    assert_eq!(
        here.shown(&["app", "terminate-op", "shop"]).await,
        "Application 'shop' operation terminating\n"
    );
    assert_eq!(
        here.get("shop").await.unwrap()["status"]["operationState"]["phase"],
        "Terminating"
    );
    rolling.kill().unwrap();
    rolling.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_is_of_what_the_sync_waits_for() {
    let here = Here::start().await;
    here.application("shop", healthy()).await;
    let (_, complaint, code) = here.run(&["app", "approve", "shop"]).await;
    assert_eq!(code, 20);
    assert!(complaint.contains("does not wait for an approval"), "{complaint}");
    let message = "waiting for approval: the sync would delete the machine web/vm; approve it with `fairway app approve shop` or \
                   the annotation fairway.dev/approve-sync: 0123456789abcdef";
    here.patch(
        "shop",
        json!({"status": {"operationState": {"phase": "Running", "startedAt": "2026-11-16T10:00:00Z",
        "operation": {}, "message": message}}}),
    )
    .await;
    let shown = here.shown(&["app", "approve", "shop"]).await;
    assert!(shown.contains("0123456789abcdef approved"), "{shown}");
    let annotations = here.get("shop").await.unwrap()["metadata"]["annotations"].clone();
    assert_eq!(annotations["fairway.dev/approve-sync"], "0123456789abcdef");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_cascades_or_not() {
    let here = Here::start().await;
    here.application("shop", healthy()).await;
    here.application("plain", json!({})).await;
    assert_eq!(
        here.shown(&["app", "delete", "shop", "-y"]).await,
        "application 'argocd/shop' deleted\n"
    );
    let going = here.get("shop").await.unwrap();
    assert_eq!(
        going["metadata"]["finalizers"],
        json!(["resources-finalizer.argocd.argoproj.io"])
    );
    assert!(going["metadata"]["deletionTimestamp"].is_string());
    here.shown(&["app", "delete", "plain", "--cascade=false", "--wait"])
        .await;
    assert_eq!(here.get("plain").await, None);
    let (_, complaint, code) = here.run(&["app", "delete", "shop", "-y", "-p", "odd"]).await;
    assert_eq!(code, 20);
    assert!(
        complaint.contains("invalid propagation policy: odd"),
        "{complaint}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sets_projects_and_clusters() {
    let here = Here::start().await;
    let file = here.server.path("set.yaml");
    std::fs::write(&file, "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: all}\nspec:\n  generators: [{list: {elements: [{name: a}]}}]\n  \
        template: {metadata: {name: '{{name}}'}, spec: {project: p, destination: {name: in-cluster}}}\n").unwrap();
    let file = file.to_str().unwrap();
    let changed = here.server.path("changed.yaml");
    std::fs::write(
        &changed,
        std::fs::read_to_string(file)
            .unwrap()
            .replace("[{name: a}]", "[{name: b}]"),
    )
    .unwrap();
    let changed = changed.to_str().unwrap();
    // What is done is said on standard error, so that the set itself can be piped.
    for (words, expected) in [
        (vec![file], Ok("ApplicationSet 'all' created\n")),
        (vec![file], Ok("ApplicationSet 'all' unchanged\n")),
        (
            vec![changed],
            Err("existing ApplicationSet spec is different, use upsert flag to force update"),
        ),
        (
            vec![changed, "--upsert", "--dry-run"],
            Ok("ApplicationSet 'all' updated (dry-run)\n"),
        ),
        (vec![changed, "--upsert"], Ok("ApplicationSet 'all' updated\n")),
        (vec![file, "--upsert"], Ok("ApplicationSet 'all' updated\n")),
    ] {
        let all = [&["appset", "create"][..], &words].concat();
        let (shown, said, code) = here.run(&all).await;
        match expected {
            Ok(expected) => {
                assert_eq!((said.as_str(), code), (expected, 0), "{words:?}");
                assert!(shown.starts_with("Name:               argocd/all\n"), "{shown}");
            }
            Err(expected) => {
                assert_eq!(code, 20, "{words:?}");
                assert!(said.contains(expected), "{said}");
            }
        }
    }
    assert_eq!(
        here.shown(&["appset", "list", "-o", "name"]).await,
        "argocd/all\n"
    );
    assert!(
        here.shown(&["appset", "get", "all"])
            .await
            .contains("Project:            p\n")
    );
    let generated = here.shown(&["appset", "generate", file, "-o", "json"]).await;
    let generated: Value = serde_json::from_str(&generated).unwrap();
    assert_eq!(generated[0]["metadata"]["name"], "a");
    assert_eq!(generated[0]["spec"]["destination"]["name"], "in-cluster");
    assert_eq!(
        here.shown(&["appset", "delete", "all", "-y"]).await,
        "applicationset 'argocd/all' deleted\n"
    );

    let project = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "team"},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}});
    let projects = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects";
    here.requests.create(projects, &project).await.unwrap();
    assert_eq!(here.shown(&["proj", "list", "-o", "name"]).await, "team\n");
    assert!(
        here.shown(&["proj", "get", "team"])
            .await
            .contains("Destinations:                *,*\n")
    );

    // The cluster of the test's own context, under another name.
    assert!(
        here.shown(&["cluster", "list"])
            .await
            .contains("https://kubernetes.default.svc  in-cluster")
    );
    let added = here
        .shown(&[
            "cluster", "add", "fairway", "--name", "spoke", "--label", "env=prod", "-y",
        ])
        .await;
    assert!(added.starts_with("Cluster 'https://127.0.0.1:"), "{added}");
    let listed = here.shown(&["cluster", "list", "-o", "json"]).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert!(
        listed.as_array().unwrap().iter().any(|it| it["name"] == "spoke"),
        "{listed}"
    );
    let secrets = here
        .requests
        .list_selected("/api/v1/namespaces/argocd/secrets", "env=prod")
        .await
        .unwrap();
    assert_eq!(
        secrets[0]["metadata"]["labels"]["argocd.argoproj.io/secret-type"],
        "cluster"
    );
    assert_eq!(
        here.shown(&["cluster", "rm", "spoke", "-y"]).await,
        "Cluster 'spoke' removed\n"
    );
    let (_, complaint, _) = here.run(&["cluster", "rm", "in-cluster", "-y"]).await;
    assert!(complaint.contains("cannot be removed"), "{complaint}");
}

/// What a definition that somebody brings along changes: nothing, and he is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_of_the_same_name_is_only_kept() {
    let here = Here::start().await;
    here.application("shop", healthy()).await;
    let definition = fairway_api::definitions()
        .into_iter()
        .find(|it| it.kind().kind == "Application")
        .unwrap()
        .crd();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert!(here.requests.create(definitions, &definition).await.unwrap());
    let path = format!("{definitions}/applications.argoproj.io");
    let kept = here.requests.get(&path).await.unwrap().unwrap();
    assert_eq!(
        kept["metadata"]["annotations"]["fairway.dev/served-by"],
        "fairway"
    );
    assert_eq!(here.shown(&["app", "list", "-o", "name"]).await, "argocd/shop\n");
    here.requests.delete(&path).await.unwrap();
    assert_eq!(here.shown(&["app", "list", "-o", "name"]).await, "argocd/shop\n");
}
