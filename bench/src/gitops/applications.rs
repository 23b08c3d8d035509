//! Applications: made, and followed by a watch until they are synced.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::repository::{FOLDER, NAMESPACE, application};
use crate::client::{Call, Client, Endpoint};

pub(super) const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";
const SETS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applicationsets";
/// How long nothing may move before a run is given up.
const PATIENCE: Duration = Duration::from_secs(180);

/// The Application of a directory.
pub(super) fn manifest(number: usize, url: &str) -> Value {
    let name = application(number);
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": spec(url, &format!("{FOLDER}/{name}")),
    })
}

fn spec(url: &str, path: &str) -> Value {
    json!({
        "project": "default",
        "source": {"repoURL": url, "path": path, "targetRevision": "main"},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": NAMESPACE},
        "syncPolicy": {"automated": {"prune": true, "selfHeal": true}},
    })
}

/// An ApplicationSet of all directories that a pattern fits.
pub(super) fn set(pattern: &str, url: &str) -> (String, String) {
    let set = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "fleet", "namespace": "argocd"},
        "spec": {
            "goTemplate": true,
            "generators": [{"git": {
                "repoURL": url, "revision": "main", "directories": [{"path": format!("{FOLDER}/{pattern}")}],
            }}],
            "template": {
                "metadata": {"name": "{{.path.basename}}"},
                "spec": spec(url, "{{.path.path}}"),
            },
        },
    });
    (
        format!("{SETS}/fleet?fieldManager=bench&force=true"),
        set.to_string(),
    )
}

/// Makes Applications, one after the other.
pub(super) async fn create(client: &Client, numbers: Range<usize>, url: &str) -> Result<()> {
    for number in numbers {
        let body = manifest(number, url).to_string();
        client
            .send(Call::create(APPLICATIONS, body))
            .await?
            .success()
            .with_context(|| format!("making the Application {}", application(number)))?;
    }
    Ok(())
}

/// What is known of an Application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    is_synced: bool,
    revision: String,
}

/// Follows all Applications, until it is dropped.
pub(super) struct Follower {
    seen: Arc<Seen>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What was seen of all Applications.
#[derive(Default)]
struct Seen {
    states: Mutex<HashMap<String, State>>,
    moved: Notify,
}

impl Follower {
    pub(super) async fn start(endpoint: &Endpoint) -> Result<Self> {
        let client = Client::connect(endpoint).await?;
        let listed = client.send(Call::get(APPLICATIONS)).await?.success()?;
        let list: Value = serde_json::from_slice(&listed).context("a list of Applications")?;
        let from = list["metadata"]["resourceVersion"].as_str().unwrap_or("0");
        let stream = client
            .stream(format!("{APPLICATIONS}?watch=1&resourceVersion={from}"))
            .await?;
        let seen = Arc::new(Seen::default());
        for object in list["items"].as_array().into_iter().flatten() {
            seen.put(&serde_json::from_value(object.clone())?);
        }
        let following = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            if let Err(error) = following.follow(stream).await {
                eprintln!("the watch of Applications ended: {error:#}");
            }
        });
        Ok(Self { seen, task })
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.seen.lock().len()
    }

    /// Waits until all of these are synced.
    pub(super) async fn synced(&self, numbers: Range<usize>) -> Result<()> {
        self.until(|states| {
            let is_open = |number: &usize| !states.get(&application(*number)).is_some_and(|it| it.is_synced);
            numbers.clone().filter(is_open).count()
        })
        .await
    }

    /// Waits until one is synced to a commit.
    pub(super) async fn synced_to(&self, number: usize, commit: &str) -> Result<()> {
        let name = application(number);
        self.until(|states| {
            let is_there = |state: &State| state.is_synced && state.revision == commit;
            usize::from(!states.get(&name).is_some_and(is_there))
        })
        .await
    }

    /// Waits until nothing is left of what is counted.
    async fn until(&self, left: impl Fn(&HashMap<String, State>) -> usize) -> Result<()> {
        let mut before = usize::MAX;
        let mut since = tokio::time::Instant::now();
        loop {
            let mut moved = std::pin::pin!(self.seen.moved.notified());
            moved.as_mut().enable();
            let now = left(&self.seen.lock());
            if now == 0 {
                return Ok(());
            }
            if now < before {
                (before, since) = (now, tokio::time::Instant::now());
            }
            if tokio::time::timeout_at(since + PATIENCE, moved).await.is_err() {
                bail!("{now} Applications are not synced, and nothing has moved for {PATIENCE:?}");
            }
        }
    }
}

impl Seen {
    async fn follow(&self, mut stream: Incoming) -> Result<()> {
        let mut buffer = BytesMut::new();
        while let Some(frame) = stream.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            // Only what is new can end a line.
            let mut from = buffer.len();
            buffer.extend_from_slice(&data);
            while let Some(at) = buffer[from..].iter().position(|&byte| byte == b'\n') {
                let line = buffer.split_to(from + at + 1);
                from = 0;
                let event: Event = serde_json::from_slice(&line).context("an event of an Application")?;
                match event.kind.as_str() {
                    "ADDED" | "MODIFIED" => self.put(&event.object),
                    "DELETED" => {
                        self.lock().remove(&event.object.metadata.name);
                    }
                    other => bail!("{other}: {}", String::from_utf8_lossy(&line)),
                }
                self.moved.notify_waiters();
            }
        }
        bail!("the server closed it")
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, State>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, object: &Object) {
        let status = &object.status;
        let state = State {
            is_synced: status.sync.status == "Synced"
                && status.health.status == "Healthy"
                && status.operation_state.phase == "Succeeded",
            revision: status.sync.revision.clone(),
        };
        self.lock().insert(object.metadata.name.clone(), state);
    }
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    object: Object,
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    sync: Word,
    health: Word,
    operation_state: Operation,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Word {
    status: String,
    revision: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Operation {
    phase: String,
}
