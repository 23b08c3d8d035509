//! A server with a Git host, and what tests of golden paths ask of it.

use std::path::PathBuf;
use std::process::{Command, Output};

use fairway_controller::Requests;
use serde_json::{Value, json};

use crate::process::Process;
use crate::until::until;

/// Nobody has the other half of it.
pub(crate) const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0 nobody@example";

pub(crate) struct World {
    place: tempfile::TempDir,
    process: Option<Process>,
    listen: Vec<String>,
}

impl World {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with settings of the server besides.
    pub(crate) fn start_with(settings: &[&str]) -> Self {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("data")).unwrap();
        // The same port after each start, so that addresses stay.
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let mut listen = vec![
            "--web-listen".to_owned(),
            port.to_string(),
            "--webhook-allowed-hosts".to_owned(),
            "*".to_owned(),
        ];
        listen.extend(settings.iter().map(|it| (*it).to_owned()));
        let mut world = Self {
            place,
            process: None,
            listen,
        };
        world.restart();
        world
    }

    /// `kill -9`, and up again.
    pub(crate) fn restart(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
        let listen: Vec<&str> = self.listen.iter().map(String::as_str).collect();
        self.process = Some(Process::start_with(&self.data(), &listen));
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    pub(crate) async fn client(&self) -> kube::Client {
        self.process.as_ref().unwrap().client().await
    }

    pub(crate) async fn api(&self) -> Requests {
        Requests::new(self.client().await)
    }

    /// Runs the command with the administrator's kubeconfig; whether it succeeded, and what it printed.
    pub(crate) fn fairway(&self, words: &[&str]) -> (bool, String) {
        let output = self.command(words).output().unwrap();
        said(&output)
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairway"));
        command
            .args(words)
            .env("KUBECONFIG", self.data().join("kubeconfig"))
            .env("HOME", "/nonexistent/home")
            .stdin(std::process::Stdio::null());
        command
    }

    /// The golden path of a machine with these answers beside name and key.
    pub(crate) fn new_machine(&self, name: &str, more: &[&str]) -> (bool, String) {
        let (named, key) = (format!("name={name}"), format!("sshKey={KEY}"));
        let mut words = vec!["new", "virtual-machine", "--set", &named, "--set", &key];
        words.extend(more);
        self.fairway(&words)
    }

    /// The files of a repository by path, and its last commit's message.
    pub(crate) fn clone_of(&self, name: &str) -> std::collections::BTreeMap<String, String> {
        let bare = self.data().join(format!("repositories/root/{name}.git"));
        let git = |words: &[&str]| {
            let output = Command::new("git")
                .arg("-C")
                .arg(&bare)
                .args(words)
                .output()
                .unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let names = git(&["ls-tree", "-r", "--name-only", "main"]);
        names
            .lines()
            .map(|path| (path.to_owned(), git(&["show", &format!("main:{path}")])))
            .collect()
    }
}

/// The port at which this user's gateways have HTTPS, and what is written behind host names for it.
pub(crate) fn https() -> (u16, &'static str) {
    let tried = std::net::TcpListener::bind("127.0.0.1:443");
    match tried.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied) {
        true => (8443, ":8443"),
        false => (443, ""),
    }
}

pub(crate) fn said(output: &Output) -> (bool, String) {
    let text = [output.stdout.clone(), output.stderr.clone()].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

/// A Template as an object.
pub(crate) async fn template(api: &Requests, name: &str, steps: Value) {
    let object = json!({
        "apiVersion": "scaffolder.backstage.io/v1beta3", "kind": "Template",
        "metadata": {"name": name, "namespace": "default", "annotations": {"backstage.io/source-location": "builtin:virtual-machine/"}},
        "spec": {"type": "test", "parameters": [{"properties": {"name": {"type": "string"}, "bad": {"type": "boolean", "default": false}}}], "steps": steps},
    });
    let path = "/apis/scaffolder.backstage.io/v1beta3/namespaces/default/templates";
    assert!(api.create(path, &object).await.unwrap());
}

/// The steps of a small path: files, repository, Application, and an object.
pub(crate) fn steps(between: Option<&Value>, last: Value) -> Value {
    let real = [
        json!({"id": "files", "action": "fetch:template", "input": {"url": "./skeleton", "values": {
            "name": "${{ parameters.name }}", "namespace": "steps", "owner": "o", "size": "small", "image": "tiny", "disk": "1Gi",
            "user": "demo", "sshKey": KEY, "packages": [],
        }}}),
        json!({"id": "publish", "action": "publish:gitea", "input": {"repoUrl": "fairway?repo=${{ parameters.name }}"}}),
        json!({"id": "deploy", "action": "argocd:create-resources", "input": {
            "appName": "${{ parameters.name }}", "repoUrl": "${{ steps.publish.output.remoteUrl }}", "path": "manifests", "namespace": "steps",
        }}),
        last,
    ];
    let mut all = Vec::new();
    for (at, step) in real.into_iter().enumerate() {
        all.push(step);
        if let Some(between) = between {
            let mut pause = between.clone();
            pause["id"] = format!("pause-{at}").into();
            all.push(pause);
        }
    }
    Value::Array(all)
}

pub(crate) fn config_map() -> Value {
    json!({"id": "object", "action": "kubernetes:apply", "input": {"namespace": "default", "manifest":
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${{ parameters.name }}\ndata: {a: b}\n"}})
}

pub(crate) const VOYAGES: &str = "/apis/fairway.dev/v1alpha1/namespaces/default/voyages";

/// A Voyage, written as an object.
pub(crate) async fn voyage(api: &Requests, name: &str, spec: Value) {
    let object = json!({
        "apiVersion": "fairway.dev/v1alpha1", "kind": "Voyage", "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    });
    assert!(api.create(VOYAGES, &object).await.unwrap());
}

/// The Voyage as soon as something holds for it.
pub(crate) async fn voyage_when(
    api: &Requests,
    name: &str,
    what: &str,
    holds: impl Fn(&Value) -> bool,
) -> Value {
    until(&format!("{name}: {what}"), async || {
        let voyage = api.get(&format!("{VOYAGES}/{name}")).await.ok().flatten()?;
        holds(&voyage).then_some(voyage)
    })
    .await
}

pub(crate) fn phase(voyage: &Value) -> &str {
    voyage["status"]["phase"].as_str().unwrap_or("")
}

impl World {
    /// A request in somebody else's name.
    pub(crate) async fn ask_as(
        &self,
        user: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<Value, kube::Error> {
        let kind = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("impersonate-user", user)
            .header("content-type", kind);
        let request = request.body(body.to_string().into_bytes()).unwrap();
        self.client().await.request(request).await
    }
}

/// Lets somebody do in a namespace what a role of the cluster says.
pub(crate) async fn bind(api: &Requests, user: &str, role: &str, namespace: &str) {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": format!("{user}-{role}"), "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings");
    assert!(api.create(&path, &binding).await.unwrap());
}
