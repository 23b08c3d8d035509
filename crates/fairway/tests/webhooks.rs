//! A Git host elsewhere tells of pushes and pull requests, and what follows it here looks at once: Applications, and
//! ApplicationSets with git and pull-request generators. Without being told they would look after minutes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "faults/process.rs"]
mod process;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "githost/tools.rs"]
mod tools;
#[path = "githost/until.rs"]
mod until;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use fairway_controller::Requests;
use serde_json::{Value, json};

use process::Process;
use until::until;

const ARGOCD: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd";

/// A Git host: a repository as plain files, which is enough for git to fetch, and its pull requests in Gitea's form.
struct Elsewhere {
    address: String,
    work: PathBuf,
    pulls: Arc<Mutex<Value>>,
}

impl Elsewhere {
    fn start(place: &Path) -> Self {
        let (work, bare) = (place.join("outside"), place.join("app.git"));
        std::fs::create_dir_all(&work).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let pulls = Arc::new(Mutex::new(json!([])));
        let (served, files) = (Arc::clone(&pulls), bare.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (served, files) = (Arc::clone(&served), files.clone());
                std::thread::spawn(move || answer(&stream, &files, &served));
            }
        });
        let elsewhere = Self { address, work, pulls };
        elsewhere.git(&format!(
            "git init -q --bare -b main {} && git init -q -b main . && git remote add origin {}",
            bare.display(),
            bare.display()
        ));
        elsewhere
    }

    fn git(&self, script: &str) -> String {
        let output = std::process::Command::new("bash")
            .args(["-ec", script])
            .current_dir(&self.work)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .envs([
                ("GIT_AUTHOR_NAME", "A"),
                ("GIT_AUTHOR_EMAIL", "a@example.com"),
                ("GIT_COMMITTER_NAME", "C"),
                ("GIT_COMMITTER_EMAIL", "c@example.com"),
            ])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{script}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Commits a ConfigMap in a directory, and pushes it to a branch.
    fn push(&self, branch: &str, directory: &str, says: &str) -> String {
        let bare = "$(git remote get-url origin)";
        self.git(&format!(
            "git checkout -q -B {branch} && mkdir -p {directory} && printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: \
             {{name: {}}}\ndata: {{says: \"{says}\"}}\n' > {directory}/map.yaml && git add -A && git commit -qm change && git \
             push -q origin {branch} && git -C {bare} update-server-info",
            directory.replace('/', "-")
        ));
        self.git("git rev-parse HEAD")
    }

    fn url(&self) -> String {
        format!("http://{}/team/app.git", self.address)
    }
}

fn answer(stream: &TcpStream, files: &Path, pulls: &Mutex<Value>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let path = line
            .split(' ')
            .nth(1)
            .unwrap_or("/")
            .split('?')
            .next()
            .unwrap_or("/")
            .to_owned();
        loop {
            let mut header = String::new();
            if reader.read_line(&mut header).unwrap_or(0) <= 2 {
                break;
            }
        }
        let found = match path.strip_prefix("/team/app.git/") {
            Some(file) => std::fs::read(files.join(file)).ok(),
            None if path == "/api/v1/repos/team/app/pulls" => {
                Some(pulls.lock().unwrap().to_string().into_bytes())
            }
            None => None,
        };
        let (code, body) = match found {
            Some(body) => ("200 OK", body),
            None => ("404 Not Found", Vec::new()),
        };
        let head = format!("HTTP/1.1 {code}\r\ncontent-length: {}\r\n\r\n", body.len());
        let mut out = stream;
        if out.write_all(&[head.as_bytes(), &body].concat()).is_err() {
            return;
        }
    }
}

/// Sends an event as the host elsewhere would; the code that was answered.
fn tell(data: &Path, elsewhere: &Elsewhere, event: &str, key: Option<&str>) -> String {
    let body = json!({"repository": {"clone_url": elsewhere.url(), "html_url": format!("http://{}/team/app", elsewhere.address)}});
    std::fs::write(data.join("event.json"), body.to_string()).unwrap();
    let port = tools::web_port(data);
    let signature = match key {
        Some(key) => format!(
            "-H \"x-gitea-signature: $(openssl dgst -sha256 -hmac {key} -r event.json | cut -d' ' -f1)\""
        ),
        None => String::new(),
    };
    let script = format!(
        "curl -sS -o said -w '%{{http_code}}' --cacert pki/ca.crt --resolve git.fairway.localhost:{port}:127.0.0.1 -H \
         'content-type: application/json' -H 'x-gitea-event: {event}' {signature} --data-binary @event.json \
         https://git.fairway.localhost:{port}/api/webhook"
    );
    tools::run(data, data, &script)
}

fn set(name: &str, generator: &Value, source: &Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": name},
        "spec": {"goTemplate": true, "generators": [generator], "template": {
            "metadata": {"name": format!("{name}-{{{{.name}}}}")},
            "spec": {
                "project": "default", "source": source,
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "house"},
            },
        }},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_is_looked_at_at_once() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    let elsewhere = Elsewhere::start(place.path());
    let first = elsewhere.push("main", "parts/one", "bright");
    let process = Process::start(&data);
    let api = Requests::new(process.client().await);
    for name in ["argocd", "house"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        assert!(api.create("/api/v1/namespaces", &namespace).await.unwrap());
    }
    let revision = async |name: &str| {
        let found = api.get(&format!("{ARGOCD}/applications/{name}")).await.unwrap()?;
        let synced = found["status"]["sync"]["status"] == "Synced";
        let revision = found["status"]["sync"]["revision"].as_str()?.to_owned();
        synced.then_some(revision)
    };
    let application = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "lamp"},
        "spec": {
            "project": "default", "source": {"repoURL": elsewhere.url(), "path": "parts/one", "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "house"},
            "syncPolicy": {"automated": {"prune": true}},
        },
    });
    assert!(
        api.create(&format!("{ARGOCD}/applications"), &application)
            .await
            .unwrap()
    );
    let source = json!({"repoURL": elsewhere.url(), "path": "{{.path}}", "targetRevision": "main"});
    let by_directory = json!({"git": {"repoURL": elsewhere.url(), "revision": "main", "directories": [{"path": "parts/*"}]}});
    let mut directories = set("parts", &by_directory, &source);
    directories["spec"]["template"]["metadata"]["name"] = json!("part-{{.path.basename}}");
    directories["spec"]["template"]["spec"]["source"]["path"] = json!("{{.path.path}}");
    let by_pull = json!({"pullRequest": {"gitea": {"api": format!("http://{}", elsewhere.address), "owner": "team", "repo": "app"}}});
    let preview = json!({"repoURL": elsewhere.url(), "path": "parts/one", "targetRevision": "{{.head_sha}}"});
    let mut pulls = set("previews", &by_pull, &preview);
    pulls["spec"]["template"]["metadata"]["name"] = json!("preview-{{.number}}");
    for it in [&directories, &pulls] {
        assert!(
            api.create(&format!("{ARGOCD}/applicationsets"), it)
                .await
                .unwrap()
        );
    }
    until("the first commit", async || {
        (revision("lamp").await? == first).then_some(())
    })
    .await;
    let exists = async |name: &str| {
        api.get(&format!("{ARGOCD}/applications/{name}"))
            .await
            .unwrap()
            .map(drop)
    };
    until("the first directory", async || exists("part-one").await).await;
    until("a look at the pull requests", async || {
        let found = api
            .get(&format!("{ARGOCD}/applicationsets/previews"))
            .await
            .unwrap()?;
        found["status"]["conditions"].as_array().map(drop)
    })
    .await;

    // An Application, and a set of directories. Before the event there is no reason to look for three minutes.
    let second = elsewhere.push("main", "parts/one", "dim");
    elsewhere.push("main", "parts/two", "new");
    let head = elsewhere.git("git rev-parse main");
    assert_ne!(second, head);
    assert_eq!(tell(&data, &elsewhere, "push", None), "200");
    until("the second commit", async || {
        (revision("lamp").await? == head).then_some(())
    })
    .await;
    until("the second directory", async || exists("part-two").await).await;

    // A set of pull requests.
    let proposed = elsewhere.push("feature", "parts/one", "other");
    *elsewhere.pulls.lock().unwrap() = json!([{
        "number": 7, "title": "Other", "head": {"ref": "feature", "sha": proposed}, "base": {"ref": "main"},
        "labels": [], "user": {"login": "ann"},
    }]);
    assert_eq!(tell(&data, &elsewhere, "pull_request", None), "200");
    until("the preview", async || exists("preview-7").await).await;

    // Where there is a secret, the sender must know it.
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "argocd-secret"},
        "stringData": {"webhook.gitea.secret": "xyzzy"},
    });
    assert!(
        api.create("/api/v1/namespaces/argocd/secrets", &secret)
            .await
            .unwrap()
    );
    *elsewhere.pulls.lock().unwrap() = json!([]);
    assert_eq!(tell(&data, &elsewhere, "pull_request", None), "400");
    assert_eq!(tell(&data, &elsewhere, "pull_request", Some("plugh")), "400");
    assert!(exists("preview-7").await.is_some());
    assert_eq!(tell(&data, &elsewhere, "pull_request", Some("xyzzy")), "200");
    until("no preview", async || {
        exists("preview-7").await.is_none().then_some(())
    })
    .await;
}
