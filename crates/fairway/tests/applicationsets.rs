//! ApplicationSets with the whole program and plain `git`, in the root workspace and in another one: a push of a directory is an
//! Application that syncs, a pull request is a preview, and the command shows and deletes them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "faults/process.rs"]
mod process;
#[path = "githost/tools.rs"]
mod tools;
#[path = "githost/until.rs"]
mod until;

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use kube::Client;
use serde_json::{Value, json};

use process::Process;
use tools::{fairway, run, shell, web_port};
use until::until;

/// A workspace as an administrator sees it.
struct Place<'a> {
    client: Client,
    data: &'a Path,
    path: &'a str,
}

impl Place<'_> {
    async fn send(&self, method: &str, path: &str, body: &Value) -> Option<Value> {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("/clusters/{}{path}", self.path))
            .header("content-type", "application/json")
            .body(body.to_string().into_bytes())
            .unwrap();
        match self.client.request(request).await {
            Ok(found) => Some(found),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => panic!("{method} {path}: {error}"),
        }
    }

    /// Runs the command in the workspace.
    fn fairway(&self, words: &[&str]) -> String {
        let mut all = words.to_vec();
        all.extend(["-w", self.path]);
        fairway(self.data, &all)
    }

    /// Waits until an Application is synced and healthy.
    async fn synced(&self, name: &str) {
        until(name, async || {
            let path = format!("/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/{name}");
            let found = self.send("GET", &path, &Value::Null).await?;
            let status = &found["status"];
            (status["sync"]["status"] == "Synced" && status["health"]["status"] == "Healthy").then_some(())
        })
        .await;
    }

    async fn names(&self) -> Vec<String> {
        let path = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";
        let all = self.send("GET", path, &Value::Null).await.unwrap();
        let items = all["items"].as_array().unwrap().iter();
        items
            .map(|it| it["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

fn file(place: &Path, name: &str, object: &Value) -> String {
    let path = place.join(name);
    std::fs::write(&path, object.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn set(name: &str, generator: &Value, application: &str, source: &Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {
            "goTemplate": true, "goTemplateOptions": ["missingkey=error"], "generators": [generator],
            "template": {
                "metadata": {"name": application},
                "spec": {
                    "project": "default", "source": source,
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": "house"},
                    "syncPolicy": {"automated": {"prune": true}},
                },
            },
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn directories_and_pull_requests_become_applications() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    let process = Process::start(&data);
    let client = process.client().await;
    fairway(&data, &["workspace", "create", "acme"]);
    for (owner, path) in [("root", "root"), ("acme", "root:acme")] {
        let place = Place {
            client: client.clone(),
            data: &data,
            path,
        };
        for name in ["argocd", "house"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            place
                .send("POST", "/api/v1/namespaces", &namespace)
                .await
                .unwrap();
        }
        story(&place, owner, folder.path()).await;
    }
}

async fn story(place: &Place<'_>, owner: &str, folder: &Path) {
    let (data, work) = (place.data, folder.join(owner));
    let address = fairway(
        data,
        &["repo", "create", &format!("{owner}/lamps"), "--with-token"],
    );
    let plain = format!("https://{}", address.split_once('@').unwrap().1);
    let lamp = |name: &str| {
        format!(
            "mkdir -p lamps/{name} && printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {{name: {name}}}\\n' > lamps/{name}/map.yaml"
        )
    };
    let commit = "git add -A && git commit -qm change";
    let push = format!("{commit} && git push -q {address} main 2>&1");
    run(
        data,
        &work,
        &format!("git init -q -b main . && {} && {push}", lamp("red")),
    );

    // A directory is an Application, and so is the next one, when it is pushed.
    let generator =
        json!({"git": {"repoURL": plain, "revision": "main", "directories": [{"path": "lamps/*"}]}});
    let source = json!({"repoURL": plain, "path": "{{ .path.path }}", "targetRevision": "main"});
    let object = set("lamps", &generator, "{{ .path.basename }}", &source);
    let shown = place.fairway(&["appset", "create", &file(folder, "lamps.json", &object)]);
    assert!(
        shown.contains("argocd/lamps") && shown.contains("Automated (Prune)"),
        "{shown}"
    );
    place.synced("red").await;
    run(data, &work, &format!("{} && {push}", lamp("blue")));
    let begun = Instant::now();
    place.synced("blue").await;
    println!(
        "{owner}: a directory is a synced Application {:?} after its push",
        begun.elapsed()
    );

    let listed = place.fairway(&["appset", "list"]);
    assert!(
        listed.contains("argocd/lamps") && listed.contains("ResourcesUpToDate"),
        "{listed}"
    );
    let again = [
        "appset",
        "create",
        &file(folder, "lamps.json", &object),
        "-o",
        "json",
    ];
    let again: Value = serde_json::from_str(&place.fairway(&again)).unwrap();
    assert_eq!(
        again["status"]["conditions"][0]["type"], "ErrorOccurred",
        "what is there is shown"
    );
    let found = place.fairway(&["appset", "get", "lamps"]);
    assert!(
        found.contains("ParametersGenerated")
            && found.contains("All applications have been generated successfully"),
        "{found}"
    );

    // What a set in a file would stand for, without making anything.
    let generator = json!({"matrix": {"generators": [{"clusters": {}}, {"list": {"elements": [{"n": "one"}, {"n": "two"}]}}]}});
    let object = set("dry", &generator, "{{ .name }}-{{ .n }}", &source);
    let mut object = object;
    object["spec"]["template"]["spec"]["source"]["path"] = json!("lamps");
    let made = place.fairway(&[
        "appset",
        "generate",
        &file(folder, "dry.json", &object),
        "-o",
        "json",
    ]);
    let made: Value = serde_json::from_str(&made).unwrap();
    let dry = [
        "appset",
        "create",
        "--dry-run",
        &file(folder, "dry.json", &object),
        "-o",
        "json",
    ];
    let dry: Value = serde_json::from_str(&place.fairway(&dry)).unwrap();
    assert_eq!(dry["status"]["resources"][1]["name"], "in-cluster-two");
    let names: Vec<&str> = made
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["in-cluster-one", "in-cluster-two"]);
    assert_eq!(place.names().await, ["blue", "red"]);

    if Command::new("curl").arg("--version").output().is_ok() {
        previews(place, owner, folder, (&address, &plain), &lamp("green")).await;
    }
    let said = place.fairway(&["appset", "delete", "lamps", "--yes"]);
    assert!(said.contains("applicationset 'argocd/lamps' deleted"), "{said}");
    until("the end of its Applications", async || {
        place.names().await.is_empty().then_some(())
    })
    .await;
    let maps = place
        .send("GET", "/api/v1/namespaces/house/configmaps", &Value::Null)
        .await
        .unwrap();
    let left: Vec<&str> = maps["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["metadata"]["name"].as_str().unwrap())
        .filter(|name| *name != "kube-root-ca.crt")
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A pull request on the own host is a preview until it is closed.
async fn previews(
    place: &Place<'_>,
    owner: &str,
    folder: &Path,
    (address, plain): (&str, &str),
    change: &str,
) {
    let (data, work) = (place.data, folder.join(owner));
    let port = web_port(data);
    let url = format!("https://git.fairway.localhost:{port}");
    let provider = json!({"api": url, "owner": owner, "repo": "lamps"});
    let generator = json!({"pullRequest": {"gitea": provider, "filters": [{"targetBranchMatch": "^main$"}]}});
    let source = json!({"repoURL": plain, "path": "lamps/green", "targetRevision": "{{ .head_sha }}"});
    let object = set(
        "previews",
        &generator,
        "preview-{{ .number }}-{{ .branch_slug }}",
        &source,
    );
    place.fairway(&["appset", "create", &file(folder, "previews.json", &object)]);
    run(
        data,
        &work,
        &format!(
            "git checkout -qb feat/Green && {change} && git add -A && git commit -qm green && git push -q {address} feat/Green 2>&1"
        ),
    );
    let token = address
        .split_once("git:")
        .unwrap()
        .1
        .split_once('@')
        .unwrap()
        .0
        .to_owned();
    let call = |method: &str, path: &str, body: &Value| {
        let script = format!(
            "curl -skf --resolve git.fairway.localhost:{port}:127.0.0.1 -X {method} -H 'authorization: token {token}' \
             -H 'content-type: application/json' -d '{body}' {url}/api/v1/repos/{owner}/lamps/{path}"
        );
        let (success, said) = shell(data, folder, &script);
        assert!(success, "{method} {path}: {said}");
    };
    call(
        "POST",
        "pulls",
        &json!({"title": "Green", "base": "main", "head": "feat/Green"}),
    );
    place.synced("preview-1-feat-green").await;
    call("PATCH", "pulls/1", &json!({"state": "closed"}));
    until("the end of the preview", async || {
        (place.names().await == ["blue", "red"]).then_some(())
    })
    .await;
    run(data, &work, "git checkout -q main");
    place.fairway(&["appset", "delete", "previews", "--yes"]);
}
