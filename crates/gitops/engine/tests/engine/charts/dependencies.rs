//! Charts in Git that need others, and values from elsewhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::archive::{chart, digest};
use super::server::{Server, ok, status};
use super::{Charts, refresh, says, secret};
use crate::harness::{At, World, automated};

const REPO: &str = "https://git.example.com/shop/charts.git";

/// Runs git, which must succeed.
pub(super) fn git(at: &Path, words: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .current_dir(at)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", at)
        .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@example.com")])
        .envs([
            ("GIT_COMMITTER_NAME", "a"),
            ("GIT_COMMITTER_EMAIL", "a@example.com"),
        ])
        .args(words)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {words:?}: {said}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A bare repository with a copy to work in.
pub(super) struct Repo {
    pub(super) bare: PathBuf,
    work: PathBuf,
    _place: tempfile::TempDir,
}

impl Repo {
    pub(super) fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let (bare, work) = (place.path().join("bare.git"), place.path().join("work"));
        git(place.path(), &["init", "-q", "--bare", "-b", "main", "bare.git"]);
        git(place.path(), &["init", "-q", "-b", "main", "work"]);
        Self {
            bare,
            work,
            _place: place,
        }
    }

    /// Commits files and pushes them; the commit.
    pub(super) fn push(&self, files: &[(&str, &str)]) -> String {
        for (path, text) in files {
            let path = self.work.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        git(&self.work, &["add", "-A"]);
        git(&self.work, &["commit", "-q", "-m", "change"]);
        git(&self.work, &["push", "-q", self.bare.to_str().unwrap(), "main"]);
        git(&self.bare, &["update-server-info"]);
        git(&self.work, &["rev-parse", "HEAD"])
    }
}

fn parent(dependencies: &str) -> String {
    format!("apiVersion: v2\nname: app\nversion: 0.1.0\ndependencies:\n{dependencies}")
}

/// A lock file as Helm writes it, which has a digest of what it was made of.
fn lock(wanted: &[(&str, &str, &str)], locked: &[(&str, &str, &str)]) -> String {
    let list = |all: &[(&str, &str, &str)]| {
        let each = all.iter().map(|(name, version, url)| {
            format!(r#"{{"name":"{name}","version":"{version}","repository":"{url}"}}"#)
        });
        each.collect::<Vec<_>>().join(",")
    };
    let digest = digest(format!("[[{}],[{}]]", list(wanted), list(locked)).as_bytes());
    let lines: String = locked
        .iter()
        .map(|(name, version, url)| format!("- name: {name}\n  repository: {url}\n  version: {version}\n"))
        .collect();
    format!("dependencies:\n{lines}digest: sha256:{digest}\n")
}

fn message(found: &Value) -> &str {
    found["status"]["conditions"][0]["message"]
        .as_str()
        .unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn charts_that_a_chart_needs_are_brought() {
    let mut world = World::start(At::Root).await;
    let repo = Repo::new();
    let bare = repo.bare.clone();
    world
        .use_real_sources(move |repository| (repository.url == REPO).then(|| bare.clone()))
        .await;
    let charts = Charts::default();
    for (version, word) in [("1.0.0", "one"), ("1.1.0", "two")] {
        charts.publish("web", version, word);
    }
    charts.require("anna", "s3cret");
    let served = charts.clone();
    let server = Server::start(None, move |asked| served.answer(asked)).await;
    let url = format!("http://{}/charts", server.address);
    let needs = format!(
        "- {{name: web, version: 1.x, repository: \"{url}\"}}\n- {{name: local, version: \">=0.1\", repository: \"file://../local\"}}\n"
    );
    let local = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: local}\ndata: {says: here}\n";
    repo.push(&[
        ("app/Chart.yaml", &parent(&needs)),
        (
            "local/Chart.yaml",
            "apiVersion: v2\nname: local\nversion: 0.2.0\n",
        ),
        ("local/templates/map.yaml", local),
    ]);
    let mut change = automated();
    change["spec"]["source"] = json!({"repoURL": REPO, "path": "app", "targetRevision": "main"});
    world.application("web", change).await;
    let found = world
        .until("web", "refused", |found| message(found).contains("401"))
        .await;
    let why = message(&found);
    assert!(
        why.contains("error building helm chart dependencies: the chart web")
            && why.contains(&format!("url: {url}")),
        "{why}"
    );
    let fields =
        json!({"type": "helm", "name": "shop", "url": url, "username": "anna", "password": "s3cret"});
    secret(&world, "charts", "repository", fields).await;
    crate::harness::eventually("both charts", || async {
        says(&world, "web").await == "two" && says(&world, "local").await == "here"
    })
    .await;

    // A lock file says which version; its digest says that it still fits.
    let wanted = [
        ("web", "1.x", url.as_str()),
        ("local", ">=0.1", "file://../local"),
    ];
    let escaped = [
        ("web", "1.x", url.as_str()),
        ("local", "\\u003e=0.1", "file://../local"),
    ];
    let locked = [
        ("web", "1.0.0", url.as_str()),
        ("local", "0.2.0", "file://../local"),
    ];
    let good = lock(&escaped, &locked);
    let commit = repo.push(&[("app/Chart.lock", &good)]);
    refresh(&world, "normal").await;
    world.synced("web", &commit).await;
    crate::harness::eventually("the locked version", || async {
        says(&world, "web").await == "one"
    })
    .await;
    repo.push(&[("app/Chart.lock", &lock(&wanted[..1], &locked))]);
    refresh(&world, "normal").await;
    world
        .until("web", "out of sync", |found| {
            message(found).contains("(Chart.lock) is out of sync")
        })
        .await;
    assert_eq!(says(&world, "web").await, "one", "what runs keeps running");

    // By the name of the Secret, and an older version that is there as an archive gives way.
    std::fs::remove_file(repo.work.join("app/Chart.lock")).unwrap();
    let named = "- {name: web, version: ~1.1.0, repository: \"@shop\"}\n- {name: local, version: \">=0.1\", repository: \"file://../local\"}\n";
    std::fs::create_dir_all(repo.work.join("app/charts")).unwrap();
    std::fs::write(
        repo.work.join("app/charts/web-0.9.0.tgz"),
        chart("web", "0.9.0", "old"),
    )
    .unwrap();
    let commit = repo.push(&[("app/Chart.yaml", &parent(named))]);
    refresh(&world, "normal").await;
    world.synced("web", &commit).await;
    crate::harness::eventually("the named repository", || async {
        says(&world, "web").await == "two"
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_come_from_git_and_from_addresses() {
    let mut world = World::start(At::Root).await;
    let repo = Repo::new();
    let bare = repo.bare.clone();
    world
        .use_real_sources(move |repository| (repository.url == REPO).then(|| bare.clone()))
        .await;
    let charts = Charts::default();
    charts.publish("web", "1.0.0", "chart");
    let files = BTreeMap::from([("/values.yaml", "says: address\n")]);
    let server = Server::start(None, move |asked| match files.get(asked.path.as_str()) {
        Some(text) => ok(*text),
        None if asked.path.starts_with("/charts/") => charts.answer(asked),
        None => status(404, &[]),
    })
    .await;
    let first = repo.push(&[("env/prod.yaml", "says: git\n"), ("logo.txt", "picture")]);
    let url = format!("http://{}/charts", server.address);
    let helm = |files: Value| json!({"valueFiles": files, "fileParameters": [{"name": "logo", "path": "$values/logo.txt"}]});
    let sources = |files: Value| {
        json!({"spec": {"source": null, "sources": [
            {"repoURL": url, "chart": "web", "targetRevision": "1.*", "helm": helm(files)},
            {"repoURL": REPO, "targetRevision": "main", "ref": "values"},
        ]}})
    };
    let mut change = automated();
    change["spec"]["sources"] = sources(json!(["$values/env/prod.yaml"]))["spec"]["sources"].clone();
    change["spec"]["source"] = Value::Null;
    world.application("web", change).await;
    let found = world
        .until("web", "synced", |found| {
            found["status"]["sync"]["status"] == "Synced"
        })
        .await;
    assert_eq!(found["status"]["sync"]["revisions"], json!(["1.0.0", first]));
    assert_eq!(says(&world, "web").await, "git");
    // A file of values over it, which is at an address; and one that no scheme allows.
    let remote = format!("http://{}/values.yaml", server.address);
    world
        .patch_application("web", sources(json!(["$values/env/prod.yaml", remote])))
        .await;
    crate::harness::eventually("the value of the address", || async {
        says(&world, "web").await == "address"
    })
    .await;
    world
        .patch_application("web", sources(json!(["s3://bucket/values.yaml"])))
        .await;
    let part = "the URL scheme 's3' is not allowed";
    world
        .until("web", part, |found| message(found).contains(part))
        .await;
    let settings = json!({"metadata": {"name": "argocd-cm"}, "data": {"helm.valuesFileSchemes": "https"}});
    world
        .create("/api/v1/namespaces/argocd/configmaps", settings)
        .await;
    world.patch_application("web", sources(json!([remote]))).await;
    let part = "the URL scheme 'http' is not allowed";
    world
        .until("web", part, |found| message(found).contains(part))
        .await;
    world.end().await;
}
