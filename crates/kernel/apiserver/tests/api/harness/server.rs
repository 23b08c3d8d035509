//! A kernel on a store in memory, and clients of it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairway_kernel_apiserver::audit;
use fairway_kernel_apiserver::authn::Peer;
use fairway_kernel_apiserver::authn::token::Tokens;
use fairway_kernel_apiserver::http::body::{ResponseBody, full};
use fairway_kernel_apiserver::{Kernel, KernelOptions, bootstrap, service};
use fairway_kernel_authz::UserInfo;
use fairway_kernel_store::value::KeyRing;
use fairway_kernel_store::{MemoryStore, Options, Revision, Store};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::reply::Reply;
use super::watch::Watch;

/// How long any single answer may take: nothing here waits for a clock.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A server in this process.
pub(crate) struct Server {
    /// The kernel.
    pub(crate) kernel: Arc<Kernel>,
    /// Its store.
    pub(crate) store: Arc<dyn Store>,
    keys: tempfile::TempDir,
}

impl Server {
    /// A fresh one, with its default objects.
    pub(crate) async fn start() -> Self {
        Self::with_store(Options::default()).await
    }

    /// The same, on a store with these options.
    pub(crate) async fn with_store(options: Options) -> Self {
        Self::with(options, |_| None).await
    }

    /// One that keeps an audit log with this policy, in a file `audit.log` of its directory.
    pub(crate) async fn with_audit(policy: &str) -> Self {
        let policy = audit::policy::Policy::parse(policy.as_bytes()).unwrap();
        Self::with(Options::default(), |directory| {
            Some(audit::Options {
                policy,
                ..audit::Options::standard(directory.join("audit.log"))
            })
        })
        .await
    }

    async fn with(options: Options, audit: impl FnOnce(&Path) -> Option<audit::Options>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::with_options(&options).unwrap());
        let kernel = Self::kernel_on(&store, directory.path(), audit(directory.path())).await;
        bootstrap::run(&kernel).await.unwrap();
        Self {
            kernel,
            store,
            keys: directory,
        }
    }

    /// The same, with an audit log.
    pub(crate) async fn start_audited(log: &Path) -> Self {
        Self::with(Options::default(), |_| Some(audit::Options::standard(log))).await
    }

    async fn kernel_on(
        store: &Arc<dyn Store>,
        directory: &Path,
        audit_log: Option<audit::Options>,
    ) -> Arc<Kernel> {
        let keys = KeyRing::load_or_create(&directory.join("keys")).unwrap();
        Kernel::start(KernelOptions {
            store: Arc::clone(store),
            keys: Arc::new(keys),
            token_key: Tokens::generate_key().unwrap(),
            issuer: "https://kernel.test".to_owned(),
            jwks_uri: "https://issuer/jwks".to_owned(),
            audit_log,
            kinds: super::provided::kinds(),
        })
        .await
        .unwrap()
    }

    /// A second kernel on the same store and keys: what a restart finds.
    pub(crate) async fn restarted(&self) -> Arc<Kernel> {
        Self::kernel_on(&self.store, self.keys.path(), None).await
    }

    /// Its directory.
    pub(crate) fn directory(&self) -> &Path {
        self.keys.path()
    }

    /// Who may do everything.
    pub(crate) fn admin(&self) -> Client {
        self.user("admin", &["system:masters"])
    }

    /// Somebody, with what RBAC gives him.
    pub(crate) fn user(&self, name: &str, groups: &[&str]) -> Client {
        let user = UserInfo::new(name, groups.iter().map(|g| (*g).to_owned()));
        Client {
            kernel: Arc::clone(&self.kernel),
            user: Some(user),
            is_inside: false,
            headers: Vec::new(),
        }
    }

    /// A part of the program itself, which is at home in every workspace.
    pub(crate) fn part(&self, name: &str) -> Client {
        Client {
            is_inside: true,
            ..self.user(name, &["system:serviceaccounts", "system:authenticated"])
        }
    }

    /// Nobody in particular.
    pub(crate) fn anonymous(&self) -> Client {
        Client {
            kernel: Arc::clone(&self.kernel),
            user: None,
            is_inside: false,
            headers: Vec::new(),
        }
    }

    /// The store's revision.
    pub(crate) async fn revision(&self) -> u64 {
        self.store.revision().await.unwrap().0
    }

    /// Forgets history before this revision.
    pub(crate) async fn compact(&self, before: u64) {
        self.store.compact(Revision(before)).await.unwrap();
    }

    /// Creates a namespace.
    pub(crate) async fn namespace(&self, name: &str) {
        self.admin()
            .post("/api/v1/namespaces", &json!({"metadata": {"name": name}}))
            .await
            .expect(201);
    }
}

/// The server, as one user sees it.
#[derive(Clone)]
pub(crate) struct Client {
    kernel: Arc<Kernel>,
    user: Option<UserInfo>,
    is_inside: bool,
    headers: Vec<(String, String)>,
}

impl Client {
    /// The same user with one more header on every request.
    #[must_use]
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    /// Sends a request and returns the head of the answer, its body unread.
    pub(crate) fn open(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: Bytes,
    ) -> BoxFuture<'static, Response<ResponseBody>> {
        let mut request = Request::builder().method(method).uri(path);
        if !kind.is_empty() {
            request = request.header("content-type", kind);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(full(body)).unwrap();
        let kernel = Arc::clone(&self.kernel);
        let answer: BoxFuture<'static, Response<ResponseBody>> = match &self.user {
            Some(user) => {
                let peer = Peer::known(user.clone());
                let peer = if self.is_inside { peer.inside() } else { peer };
                async move { service::serve(&kernel, request, &peer).await }.boxed()
            }
            None => async move { service::serve(&kernel, request, &Peer::default()).await }.boxed(),
        };
        async move {
            tokio::time::timeout(PATIENCE, answer)
                .await
                .expect("an answer in time")
        }
        .boxed()
    }

    /// Sends a request and reads the whole answer.
    pub(crate) fn send(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: impl Into<Bytes>,
    ) -> BoxFuture<'static, Reply> {
        let request = format!("{method} {path}");
        let response = self.open(method, path, kind, body.into());
        async move {
            let (parts, body) = response.await.into_parts();
            let body = tokio::time::timeout(PATIENCE, body.collect())
                .await
                .expect("a whole answer in time")
                .unwrap();
            Reply {
                request,
                code: parts.status.as_u16(),
                headers: parts.headers,
                body: body.to_bytes(),
            }
        }
        .boxed()
    }

    /// `GET`.
    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, "", Bytes::new()).await
    }

    /// `POST` of JSON.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::POST, path, "application/json", body.to_string())
            .await
    }

    /// `PUT` of JSON.
    pub(crate) async fn put(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::PUT, path, "application/json", body.to_string())
            .await
    }

    /// `PATCH`; the kind is `json`, `merge`, `strategic` or `apply`.
    pub(crate) async fn patch(&self, kind: &str, path: &str, body: &Value) -> Reply {
        let media = match kind {
            "json" => "application/json-patch+json",
            "merge" => "application/merge-patch+json",
            "strategic" => "application/strategic-merge-patch+json",
            "apply" => "application/apply-patch+yaml",
            other => panic!("no such patch: {other}"),
        };
        self.send(Method::PATCH, path, media, body.to_string()).await
    }

    /// `DELETE` without options.
    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.send(Method::DELETE, path, "", Bytes::new()).await
    }

    /// `DELETE` with `DeleteOptions`.
    pub(crate) async fn delete_with(&self, path: &str, options: &Value) -> Reply {
        self.send(Method::DELETE, path, "application/json", options.to_string())
            .await
    }

    /// Opens a watch; the path carries its parameters.
    pub(crate) async fn watch(&self, path: &str) -> Watch {
        let response = self.open(Method::GET, path, "", Bytes::new()).await;
        assert_eq!(response.status().as_u16(), 200, "{path}");
        Watch::new(response.into_body())
    }
}
