//! A host on a loopback port, and plain `git` that speaks to it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use fairway_gitops_githost::{Host, Options};
use http_body_util::BodyExt as _;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;

use crate::api::Api;

pub(crate) struct Place {
    pub api: Api,
    pub host: Arc<Host>,
    pub port: u16,
    directory: tempfile::TempDir,
}

impl Place {
    pub(crate) async fn start() -> Self {
        Self::start_with("loopback").await
    }

    /// A host whose webhooks may go there.
    pub(crate) async fn start_with(allowed: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let api = Api::default();
        let asked = api.clone();
        let host = Host::new(Options {
            repositories: directory.path().join("repositories"),
            url: format!("http://127.0.0.1:{port}"),
            client_at: Arc::new(move |workspace| asked.client(workspace)),
            allowed_hosts: fairway_outbound::AllowedHosts::parse(allowed).unwrap(),
        })
        .unwrap();
        let serving = Arc::clone(&host);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let host = Arc::clone(&serving);
                tokio::spawn(async move {
                    let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                        let host = Arc::clone(&host);
                        async move {
                            let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
                            Ok::<_, std::convert::Infallible>(host.serve(request).await)
                        }
                    });
                    let server = auto::Builder::new(TokioExecutor::new());
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self {
            api,
            host,
            port,
            directory,
        }
    }

    /// The host again, as after a restart.
    pub(crate) fn again(&self) -> Arc<Host> {
        let asked = self.api.clone();
        let options = Options {
            repositories: self.path("repositories"),
            url: format!("http://127.0.0.1:{}", self.port),
            client_at: Arc::new(move |workspace| asked.client(workspace)),
            allowed_hosts: fairway_outbound::AllowedHosts::parse("loopback").unwrap(),
        };
        Host::new(options).unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The address of a repository for a user.
    pub(crate) fn url(&self, user: &str, name: &str) -> String {
        match user {
            "" => format!("http://127.0.0.1:{}/root/{name}.git", self.port),
            _ => format!("http://git:{user}@127.0.0.1:{}/root/{name}.git", self.port),
        }
    }

    /// Runs a script of git commands in a directory, which is made; what it prints on both streams, and whether it succeeded.
    pub(crate) async fn try_run(&self, at: &str, script: &str) -> (bool, String) {
        let at = self.path(at);
        std::fs::create_dir_all(&at).unwrap();
        let script = script.to_owned();
        let output = tokio::task::spawn_blocking(move || shell(&at, &script))
            .await
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&text).trim().to_owned(),
        )
    }

    /// The same, and it must succeed.
    pub(crate) async fn run(&self, at: &str, script: &str) -> String {
        let (success, text) = self.try_run(at, script).await;
        assert!(success, "{script}\n{text}");
        text
    }

    /// The same, and it must fail.
    pub(crate) async fn refused(&self, at: &str, script: &str) -> String {
        let (success, text) = self.try_run(at, script).await;
        assert!(!success, "{script}\n{text}");
        text
    }
}

fn shell(at: &Path, script: &str) -> Output {
    Command::new("bash")
        .args(["-ec", script])
        .current_dir(at)
        .env_clear()
        .envs([
            ("PATH", std::env::var("PATH").unwrap().as_str()),
            ("HOME", "/nonexistent"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_AUTHOR_NAME", "A"),
            ("GIT_AUTHOR_EMAIL", "a@example.com"),
            ("GIT_COMMITTER_NAME", "C"),
            ("GIT_COMMITTER_EMAIL", "c@example.com"),
            ("LC_ALL", "C"),
        ])
        .output()
        .unwrap()
}
