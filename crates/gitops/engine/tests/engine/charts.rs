//! Charts from repositories and registries, with servers on loopback that want to know who asks.

mod archive;
mod dependencies;
mod git_remotes;
mod inflated;
mod plugins;
mod registry;
mod server;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use serde_json::{Value, json};

use crate::harness::{At, World, automated, everywhere};
use archive::{chart, digest};
use server::{Answer, Asked, Server, identity, ok, status};

/// A repository of charts whose archives and index tests change as it runs.
#[derive(Clone, Default)]
struct Charts(Arc<Mutex<Published>>);

#[derive(Default)]
struct Published {
    archives: BTreeMap<String, Vec<u8>>,
    index: Vec<String>,
    /// Who may see them: `Authorization`.
    wants: Option<String>,
}

impl Charts {
    fn publish(&self, name: &str, version: &str, says: &str) {
        let bytes = chart(name, version, says);
        let file = format!("{name}-{version}.tgz");
        self.list(name, version, &file, &digest(&bytes));
        self.0.lock().unwrap().archives.insert(file, bytes);
    }

    fn list(&self, name: &str, version: &str, url: &str, digest: &str) {
        let mut published = self.0.lock().unwrap();
        let entry = format!("{{name: {name}, version: {version}, urls: [\"{url}\"], digest: \"{digest}\"}}");
        published
            .index
            .retain(|known| !known.contains(&format!("version: {version},")));
        published.index.push(entry);
    }

    fn answer(&self, asked: &Asked) -> Answer {
        let published = self.0.lock().unwrap();
        if published.wants.is_some() && published.wants != asked.authorization {
            return status(401, &[("www-authenticate", "Basic realm=charts".to_owned())]);
        }
        let file = asked.path.trim_start_matches("/charts/");
        match (file, published.archives.get(file)) {
            ("index.yaml", _) => {
                let entries: String = published
                    .index
                    .iter()
                    .map(|entry| format!("  - {entry}\n"))
                    .collect();
                ok(format!("apiVersion: v1\nentries:\n  web:\n{entries}"))
            }
            (_, Some(bytes)) => ok(bytes.clone()),
            _ => status(404, &[]),
        }
    }

    fn require(&self, name: &str, password: &str) {
        self.0.lock().unwrap().wants = Some(basic(name, password));
    }
}

fn basic(name: &str, password: &str) -> String {
    let text = format!("{name}:{password}");
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(text))
}

/// A Secret in Argo CD's form.
async fn secret(world: &World, name: &str, kind: &str, fields: Value) {
    let secret = json!({
        "metadata": {"name": name, "labels": {"argocd.argoproj.io/secret-type": kind}},
        "stringData": fields,
    });
    world.create("/api/v1/namespaces/argocd/secrets", secret).await;
}

/// An application of a chart that syncs by itself.
fn of_chart(url: &str, revision: &str) -> Value {
    let mut change = automated();
    change["spec"]["source"] =
        json!({"repoURL": url, "chart": "web", "targetRevision": revision, "path": null});
    change
}

async fn says(world: &World, name: &str) -> Value {
    let found = world.config_map(name).await.unwrap_or_default();
    found["data"]["says"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chart_of_a_repository_is_found_by_its_constraint_and_followed() {
    everywhere(|mut world: World| async move {
        world.use_real_sources(|_| None).await;
        let charts = Charts::default();
        for (version, word) in [("1.0.0", "one"), ("1.1.0", "two"), ("2.0.0", "no"), ("1.2.0-rc.1", "early")] {
            charts.publish("web", version, word);
        }
        charts.require("anna", "s3cret");
        let served = charts.clone();
        let server = Server::start(None, move |asked| served.answer(asked)).await;
        let url = format!("http://{}/charts", server.address);
        world.application("web", of_chart(&url, "1.*")).await;
        let found = world
            .until("web", "refused", |found| found["status"]["conditions"][0]["type"] == "ComparisonError")
            .await;
        let why = found["status"]["conditions"][0]["message"].as_str().unwrap();
        assert!(why.contains("401") && why.contains(&format!("url: {url}")), "{why}");

        let host = format!("http://{}", server.address);
        let fields = json!({"type": "helm", "url": host, "username": "anna", "password": "s3cret"});
        secret(&world, "charts", "repo-creds", fields).await;
        refresh(&world, "normal").await;
        let found = world.synced("web", "1.1.0").await;
        assert_eq!(found["status"]["sourceType"], "Helm");
        assert_eq!(found["status"]["history"][0]["revision"], "1.1.0");
        assert_eq!(says(&world, "web").await, "two");

        // A newer one is published; whoever asks is told at once.
        charts.publish("web", "1.10.0", "ten");
        refresh(&world, "normal").await;
        world.synced("web", "1.10.0").await;
        assert_eq!(says(&world, "web").await, "ten");

        // The same version is published again, which nobody should do: only a hard refresh sees it.
        charts.publish("web", "1.10.0", "other");
        refresh(&world, "normal").await;
        assert_eq!(says(&world, "web").await, "ten");
        refresh(&world, "hard").await;
        world
            .until("web", "synced again", |found| found["status"]["sync"]["status"] == "Synced")
            .await;
        crate::harness::eventually("the new content", || async { says(&world, "web").await == "other" }).await;

        // Every few minutes somebody looks, and wakes whom it concerns.
        charts.publish("web", "1.11.0", "seen");
        world.look_elsewhere().await;
        world.synced("web", "1.11.0").await;
        assert_eq!(says(&world, "web").await, "seen");

        // A version that is not there, and one that is not what its index says.
        charts.list("web", "3.0.0", "web-1.0.0.tgz", &digest(b"something else"));
        for (revision, part) in [
            ("9.9.9", "no chart version found for web-9.9.9"),
            (">=4", "version matching constraint not found"),
            ("3.0.0", "should have sha256:"),
        ] {
            let patch = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}, "spec": {"source": {"targetRevision": revision}}});
            world.patch_application("web", patch).await;
            let says = |found: &Value| {
                let message = found["status"]["conditions"][0]["message"].as_str();
                message.is_some_and(|message| message.contains(part))
            };
            world.until("web", part, says).await;
        }
        assert_eq!(says(&world, "web").await, "seen", "what runs keeps running");
        world.end().await;
    })
    .await;
}

async fn refresh(world: &World, how: &str) {
    let patch = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": how}}});
    world.patch_application("web", patch).await;
    world
        .until("web", "refreshed", |found| {
            found["metadata"]["annotations"]["argocd.argoproj.io/refresh"].is_null()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_go_to_other_hosts_only_if_told_to() {
    let mut world = World::start(At::Root).await;
    world.use_real_sources(|_| None).await;
    let bytes = chart("web", "1.0.0", "elsewhere");
    let known = digest(&bytes);
    let other = Server::start(None, move |asked| match asked.path.as_str() {
        "/moved.tgz" => ok(bytes.clone()),
        "/web.tgz" => status(302, &[("location", "/moved.tgz".to_owned())]),
        _ => status(404, &[]),
    })
    .await;
    let charts = Charts::default();
    charts.list(
        "web",
        "1.0.0",
        &format!("http://{}/web.tgz", other.address),
        &known,
    );
    charts.require("anna", "s3cret");
    let server = Server::start(None, move |asked| charts.answer(asked)).await;
    let url = format!("http://anna:s3cret@{}/charts", server.address);
    world.application("web", of_chart(&url, "1.0.0")).await;
    world.synced("web", "1.0.0").await;
    let asked = other.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(
        asked.iter().all(|asked| asked.authorization.is_none()),
        "{asked:?}"
    );

    let mut passing = of_chart(&url, "1.0.0");
    passing["spec"]["source"]["helm"] = json!({"passCredentials": true});
    world.patch_application("web", passing).await;
    refresh(&world, "hard").await;
    world.synced("web", "1.0.0").await;
    let told = Some(basic("anna", "s3cret"));
    crate::harness::eventually("the other host is told", || async {
        other.asked().iter().any(|asked| asked.authorization == told)
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_believed_if_the_workspace_says_so() {
    let mut world = World::start(At::Root).await;
    world.use_real_sources(|_| None).await;
    let identity = identity();
    let charts = Charts::default();
    charts.publish("web", "1.0.0", "safe");
    let server = Server::start(Some(&identity), move |asked| charts.answer(asked)).await;
    let url = format!("https://{}/charts", server.address);
    world.application("web", of_chart(&url, "*")).await;
    let found = world
        .until("web", "refused", |found| {
            found["status"]["conditions"][0]["type"] == "ComparisonError"
        })
        .await;
    let why = found["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(why.contains("certificate"), "{why}");
    let map =
        json!({"metadata": {"name": "argocd-tls-certs-cm"}, "data": {"127.0.0.1": identity.certificate}});
    world.create("/api/v1/namespaces/argocd/configmaps", map).await;
    refresh(&world, "normal").await;
    world.synced("web", "1.0.0").await;

    // Or if the repository's own Secret says that it does not matter.
    let other = server::identity();
    let charts = Charts::default();
    charts.publish("web", "1.0.0", "whoever");
    let server = Server::start(Some(&other), move |asked| charts.answer(asked)).await;
    let url = format!(
        "https://localhost:{}/charts",
        server.address.rsplit(':').next().unwrap()
    );
    let fields = json!({"type": "helm", "url": url, "insecure": "true"});
    secret(&world, "any", "repository", fields).await;
    world.patch_application("web", of_chart(&url, "*")).await;
    crate::harness::eventually("the other chart", || async {
        says(&world, "web").await == "whoever"
    })
    .await;
    world.end().await;
}
