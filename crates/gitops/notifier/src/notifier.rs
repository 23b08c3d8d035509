//! One pass over one Application: what is due is sent, and then written down, one after the other.
//!
//! A message that was accepted is written down at once, so that a process that ends in between repeats one at most. If that fails, it
//! is kept here until it succeeds.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fairway_api::argoproj::API_VERSION;
use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::{Clients, Failure, ObjectKey, Outcome, Reconcile, Requests};
use fairway_gitops_notifications::{Config, Decision, Facts, Notice, Subject, decide};
use fairway_outbound::Outbound;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::Value;
use tracing::{debug, info, warn};

use crate::configs::{Configs, planes};
use crate::send::send;
use crate::{About, COMPONENT, Commits};

/// How soon conditions that ask the clock are judged again.
const CLOCK: Duration = Duration::from_secs(60);
/// How often commits are found out before it is decided with what is known.
const ROUNDS: usize = 3;
/// How soon the rest is told where there is much.
const SOON: Duration = Duration::from_millis(10);
/// How long a pass may tell before others have their turn.
const TURN: Duration = Duration::from_secs(30);

pub(crate) struct Notifier {
    clients: Clients,
    configs: Arc<Configs>,
    outbound: Outbound,
    recorder: Recorder,
    commits: Arc<dyn Commits>,
    /// Keys of what was told and could not be written down.
    unrecorded: Mutex<HashMap<ObjectKey, Vec<String>>>,
}

/// What a pass came to.
#[derive(Default)]
struct Told {
    /// For people.
    problems: Vec<String>,
    /// Services that could not be reached, or did not accept something: it is to be tried again.
    failed: BTreeSet<String>,
    /// Whether there was no time for all of it.
    has_more: bool,
}

impl Notifier {
    pub(crate) fn new(
        clients: Clients,
        configs: Arc<Configs>,
        outbound: Outbound,
        commits: Arc<dyn Commits>,
    ) -> Self {
        Self {
            recorder: Recorder::new(clients.clone(), COMPONENT),
            clients,
            configs,
            outbound,
            commits,
            unrecorded: Mutex::default(),
        }
    }

    fn unrecorded(&self, key: &ObjectKey) -> Vec<String> {
        let all = self.unrecorded.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(key).cloned().unwrap_or_default()
    }

    fn set_unrecorded(&self, key: &ObjectKey, keys: Vec<String>) {
        let mut all = self.unrecorded.lock().unwrap_or_else(PoisonError::into_inner);
        match keys.is_empty() {
            true => drop(all.remove(key)),
            false => drop(all.insert(key.clone(), keys)),
        }
    }

    /// Decides; commits that are asked about are found out first.
    async fn decide(
        &self,
        key: &ObjectKey,
        config: &Config,
        application: &Value,
        project: &Value,
    ) -> Decision {
        let mut facts = Facts::at(Timestamp::now().as_nanosecond());
        let unrecorded = self.unrecorded(key);
        let mut rounds = 0;
        loop {
            let subject = Subject {
                application,
                project,
                unrecorded: &unrecorded,
            };
            let decision = decide(config, &subject, &facts);
            let asked = facts.asked();
            if asked.is_empty() || rounds == ROUNDS {
                return decision;
            }
            rounds += 1;
            for hash in asked {
                let about = About {
                    workspace: &key.workspace,
                    application,
                    project,
                };
                let commit = self.commits.commit(about, &hash).await;
                facts.commits.insert(hash, commit);
            }
        }
    }

    /// Sends what is due and writes it down.
    async fn tell(
        &self,
        key: &ObjectKey,
        config: &Config,
        decision: &Decision,
        requests: &Requests,
    ) -> Result<Told, Failure> {
        let path = path(key);
        let mut told = Told {
            problems: decision.problems.clone(),
            ..Told::default()
        };
        let mut keys = Vec::new();
        if let Some(patch) = decision.patch(&keys) {
            requests.merge(&path, &patch).await?;
        }
        self.set_unrecorded(key, Vec::new());
        let begun = Instant::now();
        for notice in &decision.notices {
            if begun.elapsed() > TURN {
                told.has_more = true;
                break;
            }
            let Notice {
                trigger, to, message, ..
            } = notice;
            let failed = |why: &str| format!("failed to deliver notification {trigger} to {to}: {why}");
            let (Ok(message), Some(service)) = (message, config.services.get(&to.service)) else {
                // It will not be otherwise before the configuration is.
                let why = message
                    .as_ref()
                    .err()
                    .map_or("the service is not configured", String::as_str);
                told.problems.push(failed(why));
                continue;
            };
            // What one did not accept just now is not asked of it again in the same breath.
            if told.failed.contains(&to.service) {
                continue;
            }
            if let Err(why) = send(&self.outbound, service, message).await {
                told.problems.push(failed(&why));
                told.failed.insert(to.service.clone());
                continue;
            }
            info!(%key, trigger, %to, "a notification was sent");
            keys.push(notice.key.clone());
            self.set_unrecorded(key, keys.clone());
            if let Some(patch) = decision.patch(&keys) {
                requests.merge(&path, &patch).await?;
            }
            self.set_unrecorded(key, Vec::new());
        }
        Ok(told)
    }

    async fn complain(&self, key: &ObjectKey, application: &Value, problem: &str) {
        warn!(%key, problem, "a notification could not be sent");
        let about = ObjectReference {
            api_version: Some(API_VERSION.to_owned()),
            kind: Some("Application".to_owned()),
            name: Some(key.name.clone()),
            namespace: Some(key.namespace.clone()),
            uid: application["metadata"]["uid"].as_str().map(str::to_owned),
            ..ObjectReference::default()
        };
        let happening = Happening {
            severity: Severity::Warning,
            reason: "NotificationFailed",
            message: problem.to_owned(),
        };
        self.recorder.record(&key.workspace, &about, happening).await;
    }
}

fn path(key: &ObjectKey) -> String {
    format!(
        "/apis/{API_VERSION}/namespaces/{}/applications/{}",
        key.namespace, key.name
    )
}

async fn project(requests: &Requests, namespace: &str, application: &Value) -> Result<Value, Failure> {
    let name = application["spec"]["project"]
        .as_str()
        .filter(|name| !name.is_empty());
    let name = name.unwrap_or("default");
    // A name is the author's, and must not become another path.
    let is_sound = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
    if !is_sound || name.contains("..") {
        return Ok(Value::Null);
    }
    for plane in planes(namespace) {
        let path = format!("/apis/{API_VERSION}/namespaces/{plane}/appprojects/{name}");
        if let Some(project) = requests.get(&path).await? {
            return Ok(project);
        }
    }
    Ok(Value::Null)
}

impl Reconcile<ObjectKey> for Notifier {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let Some(config) = self.configs.of(key) else {
            return Ok(Outcome::Done);
        };
        let requests = Requests::new(self.clients.of(&key.workspace));
        let Some(application) = requests.get(&path(key)).await? else {
            self.set_unrecorded(key, Vec::new());
            return Ok(Outcome::Done);
        };
        let project = project(&requests, &key.namespace, &application).await?;
        let decision = self.decide(key, &config, &application, &project).await;
        for why in &decision.unjudged {
            debug!(%key, why, "a condition has no value");
        }
        let told = self.tell(key, &config, &decision, &requests).await?;
        for problem in &told.problems {
            self.complain(key, &application, problem).await;
        }
        let has_more = told.has_more || decision.has_more;
        Ok(match (told.failed.is_empty(), has_more, decision.asks_clock) {
            (false, ..) => Outcome::Poll,
            (true, true, _) => Outcome::Again(SOON),
            (true, false, true) => Outcome::Again(CLOCK),
            _ => Outcome::Done,
        })
    }
}
