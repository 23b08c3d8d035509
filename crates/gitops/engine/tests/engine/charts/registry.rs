//! Charts and manifests from registries: one on loopback that wants a token, and the real one where it is installed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::archive::{chart, digest, gzip, tar};
use super::server::{Answer, Asked, Server, ok, status};
use super::{basic, refresh, says, secret};
use crate::harness::{At, World, automated};

/// A registry with one repository.
#[derive(Clone)]
struct Images {
    name: &'static str,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    address: String,
    tags: BTreeMap<String, String>,
    content: BTreeMap<String, Vec<u8>>,
}

const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";

impl Images {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            state: Arc::default(),
        }
    }

    fn push(&self, tag: &str, config: &str, kind: &str, layer: Vec<u8>) -> String {
        let mut state = self.state.lock().unwrap();
        let mut keep = |bytes: Vec<u8>| {
            let name = format!("sha256:{}", digest(&bytes));
            state.content.insert(name.clone(), bytes);
            name
        };
        let size = layer.len();
        let (settings, layer) = (keep(b"{}".to_vec()), keep(layer));
        let manifest = json!({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": config, "digest": settings, "size": 2},
            "layers": [{"mediaType": kind, "digest": layer, "size": size}],
        });
        let manifest = keep(manifest.to_string().into_bytes());
        state.tags.insert(tag.to_owned(), manifest.clone());
        manifest
    }

    fn answer(&self, asked: &Asked) -> Answer {
        let state = self.state.lock().unwrap();
        if let Some(query) = asked.path.strip_prefix("/token?") {
            let wanted = format!("repository%3A{}%3Apull", self.name.replace('/', "%2F"));
            let is_good = query.contains(&wanted) && query.contains("service=registry");
            return match asked.authorization == Some(basic("robot", "t0ken")) && is_good {
                true => ok(r#"{"token":"granted"}"#),
                false => status(401, &[]),
            };
        }
        if asked.authorization.as_deref() != Some("Bearer granted") {
            let challenge = format!(
                "Bearer realm=\"http://{}/token\",service=\"registry\",scope=\"repository:{}:pull\"",
                state.address, self.name
            );
            return status(401, &[("www-authenticate", challenge)]);
        }
        let base = format!("/v2/{}", self.name);
        let Some(rest) = asked.path.strip_prefix(&base) else {
            return status(404, &[]);
        };
        if let Some(query) = rest.strip_prefix("/tags/list") {
            // Two pages, as large lists have.
            let all: Vec<&String> = state.tags.keys().collect();
            let (first, second) = all.split_at(all.len() / 2);
            return match query.is_empty() {
                true => {
                    let mut answer = ok(json!({"tags": first}).to_string());
                    let link = format!("<{base}/tags/list?last=x>; rel=\"next\"");
                    answer.headers_mut().insert("link", link.parse().unwrap());
                    answer
                }
                false => ok(json!({"tags": second}).to_string()),
            };
        }
        let reference = rest
            .trim_start_matches("/manifests/")
            .trim_start_matches("/blobs/");
        let name = state.tags.get(reference).map_or(reference, String::as_str);
        match state.content.get(name) {
            Some(bytes) => ok(bytes.clone()),
            None => status(404, &[]),
        }
    }

    async fn serve(&self) -> Server {
        let images = self.clone();
        let server = Server::start(None, move |asked| images.answer(asked)).await;
        self.state.lock().unwrap().address.clone_from(&server.address);
        server
    }
}

fn credentials(kind: &str, url: &str) -> Value {
    json!({
        "type": kind, "url": url, "username": "robot", "password": "t0ken", "enableOCI": "true",
        "insecureOCIForceHttp": "true",
    })
}

fn message(found: &Value) -> String {
    let message = found["status"]["conditions"][0]["message"].as_str();
    message.unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chart_of_a_registry_needs_a_token_and_a_tag() {
    let mut world = World::start(At::Workspace).await;
    world.use_real_sources(|_| None).await;
    let images = Images::new("charts/web");
    for (version, word) in [
        ("1.0.0", "one"),
        ("1.4.0_build.5", "four"),
        ("2.0.0-rc.1", "early"),
    ] {
        let bytes = chart("web", &version.replace('_', "+"), word);
        images.push(version, CONFIG, CHART, bytes);
    }
    let server = images.serve().await;
    let url = format!("{}/charts", server.address);
    let fields = json!({"type": "helm", "url": url, "enableOCI": "true", "insecureOCIForceHttp": "true"});
    secret(&world, "open", "repository", fields).await;
    world.application("web", super::of_chart(&url, "^1")).await;
    let found = world
        .until("web", "refused", |found| message(found).contains("401"))
        .await;
    assert!(
        message(&found).contains(&format!("oci://{url}/web")),
        "{}",
        message(&found)
    );

    let patch = json!({"stringData": credentials("helm", &url)});
    world
        .api
        .merge("/api/v1/namespaces/argocd/secrets/open", &patch)
        .await
        .unwrap();
    refresh(&world, "normal").await;
    world.synced("web", "1.4.0+build.5").await;
    assert_eq!(says(&world, "web").await, "four");

    // The same by the address that Argo CD 3 has for registries; then one that is no chart.
    let other = format!("oci://{url}");
    world
        .patch_application("web", super::of_chart(&other, "1.0.0"))
        .await;
    world.synced("web", "1.0.0").await;
    assert_eq!(says(&world, "web").await, "one");
    images.push("3.0.0", "application/json", "text/plain", b"no".to_vec());
    world
        .patch_application("web", super::of_chart(&url, "3.0.0"))
        .await;
    let part = "could not load config with mediatype";
    world
        .until("web", part, |found| message(found).contains(part))
        .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manifests_of_an_image_are_rendered_at_its_digest() {
    let mut world = World::start(At::Root).await;
    world.use_real_sources(|_| None).await;
    let images = Images::new("team/manifests");
    let tgz = "application/vnd.oci.image.layer.v1.tar+gzip";
    let map = |word: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web}}\ndata: {{says: {word}}}\n")
    };
    let layer = |word: &str| {
        gzip(&tar(&[
            ("./apps/web/map.yaml", &map(word)),
            ("other/x.yaml", "{"),
        ]))
    };
    let first = images.push("latest", "application/vnd.oci.empty.v1+json", tgz, layer("one"));
    let server = images.serve().await;
    let url = format!("oci://{}/team/manifests", server.address);
    secret(&world, "image", "repository", credentials("oci", &url)).await;
    let mut change = automated();
    change["spec"]["source"] = json!({"repoURL": url, "path": "apps/web", "targetRevision": "latest"});
    world.application("web", change).await;
    let found = world.synced("web", &first).await;
    assert_eq!(found["status"]["sourceType"], "Directory");

    let second = images.push("latest", "application/vnd.oci.empty.v1+json", tgz, layer("two"));
    refresh(&world, "normal").await;
    world.synced("web", &second).await;
    assert_eq!(says(&world, "web").await, "two");

    // A range of tags, and a chart as an image.
    let bytes = chart("web", "1.2.0", "chart");
    let third = images.push("1.2.0", CONFIG, CHART, bytes);
    let patch = json!({"spec": {"source": {"targetRevision": ">=1.0.0", "path": "."}}});
    world.patch_application("web", patch).await;
    let found = world.synced("web", &third).await;
    assert_eq!(found["status"]["sourceType"], "Helm");
    assert_eq!(says(&world, "web").await, "chart");
    world.end().await;
}

/// A program, by a variable that names it or by the PATH.
fn program(variable: &str, name: &str) -> Option<std::path::PathBuf> {
    if let Some(path) = std::env::var_os(variable) {
        return Some(path.into());
    }
    let path = std::env::var_os("PATH")?;
    let mut all = std::env::split_paths(&path).map(|folder| folder.join(name));
    all.find(|path| path.is_file())
}

/// A program that ends with the test, also if that fails.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The distribution registry itself, and charts that Helm itself has pushed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_real_registry_and_the_real_helm_agree_with_us() {
    let (Some(registry), Some(helm)) = (
        program("FAIRWAY_TEST_REGISTRY", "docker-registry"),
        program("FAIRWAY_TEST_HELM", "helm"),
    ) else {
        println!("SKIPPED: docker-registry and helm are not both on this machine");
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    // `robot` with the password `t0ken`, by bcrypt.
    let hash = "$2a$05$pVravD2dRF9OVFQovuR60em6SZuHD3ekLqjb7HDJUda3aq3g29nsu";
    std::fs::write(at("users"), format!("robot:{hash}\n")).unwrap();
    let config = format!(
        "version: 0.1\nstorage:\n  filesystem: {{rootdirectory: {}}}\nhttp: {{addr: {address}}}\nauth:\n  htpasswd: {{realm: test, path: {}}}\n",
        at("images").display(),
        at("users").display()
    );
    std::fs::write(at("config.yml"), config).unwrap();
    let server = std::process::Command::new(registry)
        .arg("serve")
        .arg(at("config.yml"))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let _server = Running(server);
    let run = |words: &[&str]| {
        let output = std::process::Command::new(&helm)
            .args(words)
            .env("HELM_CACHE_HOME", at("cache"))
            .env("HELM_CONFIG_HOME", at("config"))
            .env("HELM_DATA_HOME", at("data"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "helm {words:?}: {said}");
    };
    crate::harness::eventually("the registry listens", || async {
        std::net::TcpStream::connect(address).is_ok()
    })
    .await;
    let host = address.to_string();
    run(&[
        "registry",
        "login",
        &host,
        "-u",
        "robot",
        "-p",
        "t0ken",
        "--insecure",
    ]);
    for (version, word) in [("1.0.0", "one"), ("1.3.0+x", "three"), ("2.0.0-rc.1", "early")] {
        let file = at(&format!("web-{version}.tgz"));
        std::fs::write(&file, chart("web", version, word)).unwrap();
        let to = format!("oci://{host}/charts");
        run(&["push", file.to_str().unwrap(), &to, "--plain-http"]);
    }
    let mut world = World::start(At::Root).await;
    world.use_real_sources(|_| None).await;
    let url = format!("{host}/charts");
    secret(&world, "real", "repository", credentials("helm", &url)).await;
    world.application("web", super::of_chart(&url, ">=1.0.0")).await;
    world.synced("web", "1.3.0+x").await;
    assert_eq!(says(&world, "web").await, "three");
    // And as an image.
    let image = format!("oci://{host}/charts/web");
    secret(&world, "image", "repository", credentials("oci", &image)).await;
    let source = json!({"repoURL": image, "chart": null, "path": ".", "targetRevision": "1.0.0"});
    world
        .patch_application("web", json!({"spec": {"source": source}}))
        .await;
    crate::harness::eventually("the image", || async { says(&world, "web").await == "one" }).await;
    world.end().await;
}
