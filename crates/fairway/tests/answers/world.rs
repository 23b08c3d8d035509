//! A server with a hosted repository, a working copy of it, and Applications of it.

#[path = "../githost/until.rs"]
mod until;

use std::path::{Path, PathBuf};

use fairway_controller::Requests;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::Process;
use crate::tools;

const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";

pub(crate) struct World {
    pub(crate) process: Process,
    pub(crate) client: Client,
    pub(crate) api: Requests,
    /// With a token in it.
    pub(crate) address: String,
    /// As Applications name it.
    pub(crate) url: String,
    name: String,
    web: String,
    place: TempDir,
}

impl World {
    /// A server with a repository of this name, and the namespaces `argocd` and `house`.
    pub(crate) async fn start(name: &str) -> Self {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data");
        std::fs::create_dir_all(&data).unwrap();
        // Applications name the port, so that another process must have the same.
        let web = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .to_string();
        let process = Process::start_with(&data, &["--web-listen", &web]);
        let client = process.client().await;
        let address = tools::fairway(
            &data,
            &["repo", "create", &format!("root/{name}"), "--with-token"],
        );
        let url = format!("https://{}", address.split_once('@').unwrap().1);
        let namespaces: Api<Namespace> = Api::all(client.clone());
        for namespace in ["argocd", "house"] {
            let object = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
            namespaces.create(&PostParams::default(), &object).await.unwrap();
        }
        let world = Self {
            api: Requests::new(client.clone()),
            process,
            client,
            address,
            url,
            name: name.to_owned(),
            web,
            place,
        };
        world.run("git init -q -b main .");
        world
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.place.path().join("work")
    }

    /// `kill -9`, and another process in its place.
    pub(crate) async fn restart(&mut self) {
        self.process.kill();
        self.process = Process::start_with(&self.data(), &["--web-listen", &self.web]);
        self.client = self.process.client().await;
        self.api = Requests::new(self.client.clone());
    }

    /// Runs a script in the working copy.
    pub(crate) fn run(&self, script: &str) -> String {
        tools::run(&self.data(), &self.work(), script)
    }

    /// Runs the command.
    pub(crate) fn fairway(&self, words: &[&str]) -> String {
        tools::fairway(&self.data(), words)
    }

    /// Runs the command; what it ended with, and what it printed.
    pub(crate) fn fairway_ends(&self, words: &[&str]) -> (i32, String) {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_fairway"))
            .args(words)
            .env("KUBECONFIG", self.data().join("kubeconfig"))
            .env("HOME", "/nonexistent/home")
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code().unwrap(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    }

    /// Commits what steps of a script do, and pushes it; what git printed.
    pub(crate) fn push(&self, steps: &[String], options: &str) -> String {
        let steps = steps.join(" && ");
        let address = &self.address;
        self.run(&format!(
            "{steps} && git add -A && git commit -qm change && git push -q {options} {address} HEAD 2>&1"
        ))
    }

    /// Makes an Application of a directory of the repository.
    pub(crate) async fn application(&self, name: &str, path: &str, policy: Value) {
        let application = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "namespace": "argocd"},
            "spec": {
                "project": "default",
                "source": {"repoURL": self.url, "path": path, "targetRevision": "main"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "house"},
                "syncPolicy": policy,
            },
        });
        assert!(self.api.create(APPLICATIONS, &application).await.unwrap());
        self.until("it is looked at", async || {
            self.get(name).await["status"]["sync"]["revision"]
                .as_str()
                .map(drop)
        })
        .await;
    }

    pub(crate) async fn get(&self, name: &str) -> Value {
        let path = format!("{APPLICATIONS}/{name}");
        self.api.get(&path).await.unwrap().unwrap_or_default()
    }

    /// Waits until an Application is synced and healthy.
    pub(crate) async fn wait(&self, name: &str) {
        self.until(&format!("{name} is synced"), async || {
            let status = self.get(name).await["status"].take();
            let done = status["sync"]["status"] == "Synced"
                && status["health"]["status"] == "Healthy"
                && status["operationState"]["phase"] == "Succeeded";
            done.then_some(())
        })
        .await;
    }

    pub(crate) async fn until<T>(&self, what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
        until::until(what, look).await
    }

    /// What a ConfigMap of the house says.
    pub(crate) async fn says(&self, name: &str) -> Option<String> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), "house");
        maps.get_opt(name).await.unwrap()?.data?.remove("says")
    }

    /// Every byte that the store has on disk.
    pub(crate) fn stored(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut open = vec![self.data().join("store")];
        while let Some(path) = open.pop() {
            match path.is_dir() {
                true => open.extend(
                    std::fs::read_dir(&path)
                        .unwrap()
                        .map(|entry| entry.unwrap().path()),
                ),
                false => bytes.extend(std::fs::read(&path).unwrap()),
            }
        }
        bytes
    }

    /// Changes the settings of the repository.
    pub(crate) async fn repository(&self, spec: Value) {
        let path = format!("/apis/fairway.dev/v1alpha1/repositories/{}", self.name);
        self.api
            .merge(&path, &json!({"spec": spec}))
            .await
            .unwrap()
            .unwrap();
    }

    /// Asks Gitea's API, with the token of the address.
    pub(crate) fn gitea(&self, method: &str, path: &str, body: &str) -> Value {
        let token = self
            .address
            .split_once("//")
            .unwrap()
            .1
            .split_once('@')
            .unwrap()
            .0;
        let token = token.split_once(':').unwrap().1;
        let port = tools::web_port(&self.data());
        let ca = self.data().join("pki/ca.crt");
        let script = format!(
            "curl -sS --cacert {} --resolve git.fairway.localhost:{port}:127.0.0.1 -X {method} -H 'content-type: application/json' \
             -H 'authorization: token {token}' -d '{body}' https://git.fairway.localhost:{port}/api/v1/repos/root/{}/{path}",
            ca.display(),
            self.name
        );
        let said = tools::run(&self.data(), Path::new(&self.work()), &script);
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
    }
}

/// A step of a script: writes a ConfigMap into a directory.
pub(crate) fn map(directory: &str, name: &str, says: &str) -> String {
    format!(
        "mkdir -p {directory} && printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {{name: {name}}}\\ndata: {{says: \
         \"{says}\"}}\\n' > {directory}/{name}.yaml"
    )
}

/// Whether git has printed a line of the server that holds this.
pub(crate) fn has_line(said: &str, wanted: &str) -> bool {
    said.lines()
        .any(|line| line.starts_with("remote: ") && line.contains(wanted))
}
