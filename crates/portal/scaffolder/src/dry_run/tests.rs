//! What is foreseen, held against a world in memory.

use std::sync::Arc;

use fairway_controller::{Shutdown, WorkspaceId};
use serde_json::{Value, json};

use super::dry_run;
use crate::fake::{Fake, process};
use crate::ports::Person;
use crate::submit::Submission;

fn world() -> Arc<Fake> {
    let fake = Arc::new(Fake::default());
    let kind = |name: &str, kind: &str, namespaced: bool| json!({"name": name, "kind": kind, "namespaced": namespaced});
    fake.put(
        "/api/v1",
        json!({"metadata": {}, "resources": [kind("configmaps", "ConfigMap", true), kind("namespaces", "Namespace", false)]}),
    );
    fake.put("/api/v1/namespaces/apps", json!({"metadata": {"name": "apps"}}));
    fake.put(
        "/apis/fairway.dev/v1alpha1/repositories/platform",
        json!({"metadata": {"name": "platform"}}),
    );
    for branch in ["main", "taken"] {
        fake.commit(&format!("platform/{branch}"), "begin");
    }
    fake
}

async fn foreseen(fake: &Arc<Fake>, steps: &Value) -> Value {
    let template = json!({
        "apiVersion": "scaffolder.backstage.io/v1beta3", "kind": "Template", "metadata": {"name": "t"},
        "spec": {"type": "test", "steps": steps},
    });
    let person = Person {
        username: "ann".to_owned(),
        ..Person::default()
    };
    let submission = Submission {
        template: "template:default/t".to_owned(),
        namespace: "default".to_owned(),
        ..Submission::default()
    };
    let (_trigger, shutdown) = Shutdown::new();
    let before = fake.snapshot();
    let report = dry_run(
        &process(fake),
        &WorkspaceId::root(),
        &person,
        Some((template, None)),
        &submission,
        shutdown,
    )
    .await
    .unwrap();
    assert_eq!(
        (fake.changes(), fake.snapshot()),
        (0, before),
        "nothing is written"
    );
    report
}

fn write(path: &str) -> Value {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain"}});
    json!({"id": "write", "action": "catalog:write", "input": {"filePath": path, "entity": map}})
}

fn deploy(path: &str) -> Value {
    json!({"id": "deploy", "action": "argocd:create-resources", "input": {
        "appName": "web", "repoUrl": "${{ steps.publish.output.remoteUrl }}", "path": path, "namespace": "apps"}})
}

/// What is foreseen of manifests, in words.
fn manifests(report: &Value) -> Vec<String> {
    let all = report["foreseen"]["manifests"].as_array().unwrap();
    let word = |it: &Value, key: &str| it[key].as_str().unwrap_or("-").to_owned();
    all.iter()
        .map(|it| {
            format!(
                "{} {}/{} {}",
                word(it, "kind"),
                word(it, "namespace"),
                word(it, "name"),
                it["allowed"]
            )
        })
        .collect()
}

#[tokio::test]
async fn what_applications_make_of_files_is_judged() {
    let publish =
        json!({"id": "publish", "action": "publish:gitea", "input": {"repoUrl": "fairway?repo=web"}});
    for (deploy, expected, succeeds) in [
        // What names no namespace is in that of the Application.
        (Some("chart"), "ConfigMap apps/rendered true", true),
        (Some("broken"), "Application openshift-gitops/web false", false),
        (Some("remote"), "Application openshift-gitops/web null", true),
        (None, "ConfigMap -/plain null", true),
    ] {
        let steps = match deploy {
            Some(path) => json!([write("a.yaml"), publish, self::deploy(path)]),
            None => json!([write("a.yaml"), publish]),
        };
        let report = foreseen(&world(), &steps).await;
        assert_eq!(report["foreseen"]["problem"], Value::Null, "{report:#}");
        assert_eq!(manifests(&report), [expected], "{report:#}");
        assert_eq!(report["foreseen"]["succeeds"], succeeds, "{deploy:?} {report:#}");
        // The namespace of Applications is not there yet, and what comes into it is judged all the same.
        let objects = report["foreseen"]["objects"].as_array().unwrap();
        let judged: Vec<&Value> = objects.iter().map(|it| &it["allowed"]).collect();
        match deploy {
            Some(_) => assert_eq!(judged, [&json!(true), &json!(true)], "{objects:#?}"),
            None => assert!(judged.is_empty(), "{objects:#?}"),
        }
    }
}

#[tokio::test]
async fn pull_requests_are_foreseen() {
    let propose = |repository: &str, branch: &str, base: &str| {
        json!({"id": "propose", "action": "publish:gitea:pull-request", "input": {
            "repoUrl": format!("fairway?repo={repository}"), "branchName": branch, "targetBranchName": base, "title": "Add",
            "targetPath": "apps/web"}})
    };
    for (repository, branch, base, problem) in [
        ("platform", "add", "main", None),
        ("platform", "taken", "main", Some("has a branch taken already")),
        ("platform", "add", "next", Some("it has no branch next")),
        ("nowhere", "add", "main", Some("it has no branch main")),
    ] {
        let fake = world();
        let report = foreseen(
            &fake,
            &json!([write("a.yaml"), propose(repository, branch, base)]),
        )
        .await;
        let named = format!("{repository} {branch} {base}: {report:#}");
        match problem {
            Some(why) => {
                let said = report["foreseen"]["problem"].as_str().unwrap_or("");
                assert!(said.contains(why), "{named}");
            }
            None => {
                assert_eq!(report["foreseen"]["problem"], Value::Null, "{named}");
                let path = &report["foreseen"]["repositories"][0]["files"][0]["path"];
                assert_eq!(path, "apps/web/a.yaml", "{named}");
            }
        }
    }
    let both = json!([
        write("a.yaml"),
        {"id": "publish", "action": "publish:gitea", "input": {"repoUrl": "fairway?repo=web"}},
        propose("web", "add", "main"),
        {"id": "say", "action": "debug:log", "input": {"message": "${{ steps.propose.output | dump }}"}},
    ]);
    let report = foreseen(&world(), &both).await;
    let said = report["log"].to_string();
    assert!(
        said.contains("https://git.test/root/web/pulls/1") && said.contains("pullRequestNumber"),
        "{said}"
    );
}

/// A chart counts as what it comes to, before anything is written to Git.
#[tokio::test]
async fn charts_are_weighed() {
    for (hard, fits) in [("1", true), ("0", false)] {
        let fake = world();
        fake.put(
            "/api/v1/namespaces/apps/resourcequotas",
            json!({"metadata": {}, "items": [{
                "metadata": {"name": "few", "namespace": "apps"}, "spec": {"hard": {"count/configmaps": hard}},
                "status": {"hard": {"count/configmaps": hard}, "used": {"count/configmaps": "0"}},
            }]}),
        );
        fake.put(
            "/apis/fairway.dev/v1alpha1/voyages",
            json!({"metadata": {}, "items": []}),
        );
        let publish =
            json!({"id": "publish", "action": "publish:gitea", "input": {"repoUrl": "fairway?repo=web"}});
        let report = foreseen(
            &fake,
            &json!([write("chart/values.txt"), publish, deploy("chart")]),
        )
        .await;
        let problem = report["foreseen"]["problem"].as_str().unwrap_or("");
        assert_eq!(
            problem.contains("no room in namespace apps"),
            !fits,
            "{hard}: {report:#}"
        );
    }
}
