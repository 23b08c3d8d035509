//! Syncs that start by themselves.

use std::time::Duration;

use fairway_controller::Failure;
use fairway_controller::events::{Happening, Severity};
use fairway_gitops_sync::automated::{self, Attempt, Automated, Decision, Situation};
use fairway_gitops_sync::compare::ResourceState;
use fairway_gitops_sync::drift;
use fairway_gitops_sync::key::ResourceKey;
use fairway_gitops_sync::operation::OperationPhase;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Comparison, Engine};
use crate::act::FIELD_MANAGER;
use crate::application::Application;
use crate::observe::{Scene, read_anew};
use crate::operation::{self, Record};

/// How many changes of others are told.
const TOLD: usize = 5;

/// What came of the question whether to sync.
#[derive(Default)]
pub(super) struct Started {
    pub(super) record: Option<Record>,
    pub(super) refusal: Option<String>,
    pub(super) again: Option<Duration>,
    /// Why a sync that is due has to wait.
    pub(super) held: Option<String>,
}

impl Engine {
    /// Starts a sync if the application syncs by itself and should.
    pub(super) async fn start(
        &self,
        scene: &Scene<'_>,
        compared: &Comparison,
        last: Option<&Record>,
    ) -> Result<Started, Failure> {
        let application = scene.application;
        let Some(policy) = Automated::read(&application.object["spec"]["syncPolicy"]) else {
            return Ok(Started::default());
        };
        let decision = decide(policy, compared, application, last);
        let now = Timestamp::now();
        let mut operation = match &decision {
            Decision::Rest => return Ok(Started::default()),
            Decision::Refuse(message) => {
                return Ok(Started {
                    refusal: Some(message.clone()),
                    ..Started::default()
                });
            }
            Decision::Sync | Decision::Heal(_) => request(policy, compared, application),
        };
        if let Decision::Heal(keys) = &decision {
            let count = last.map_or(0, Record::heals_in_a_row);
            let ended = last
                .and_then(|last| last.finished_at)
                .unwrap_or(Timestamp::UNIX_EPOCH);
            let since = Duration::from_secs(u64::try_from(now.as_second() - ended.as_second()).unwrap_or(0));
            let (count, delay) = automated::heal(count, since);
            if !delay.is_zero() {
                return Ok(Started {
                    again: Some(delay),
                    ..Started::default()
                });
            }
            let sync = &mut operation["sync"];
            sync["autoHealAttemptsCount"] = count.into();
            sync["resources"] = keys.iter().map(selected).collect();
        }
        let record = Record::begin(application, operation, now);
        if let Some(why) = operation::blocked_by_window(scene, &record) {
            return Ok(Started {
                again: Some(operation::WINDOW_POLL),
                held: Some(why),
                ..Started::default()
            });
        }
        Ok(Started {
            record: Some(record),
            ..Started::default()
        })
    }

    /// Says that a sync begins, or who had changed what if it puts something right.
    pub(super) async fn tell_start(&self, scene: &Scene<'_>, compared: &Comparison, begun: &Record) {
        if begun.selected().is_empty() {
            let message = format!("Initiated automated sync to '{}'", compared.revisions.join(", "));
            let happening = Happening {
                severity: Severity::Normal,
                reason: "OperationStarted",
                message,
            };
            self.happened(scene.application, happening).await;
            return;
        }
        let off = compared
            .observation
            .objects
            .iter()
            .filter(|observed| observed.state.counts);
        for observed in off.take(TOLD) {
            let key = &observed.pair.key;
            let kind = compared.observation.kinds.get(&key.group, &key.kind);
            let live = match (kind, &observed.pair.live) {
                (Some(kind), Some(_)) => {
                    let version = &kind.resource.api_version;
                    read_anew(scene, kind, version, key).await.ok().flatten()
                }
                _ => None,
            };
            let message = drift::describe(key, live.as_ref(), &observed.difference, FIELD_MANAGER);
            let happening = Happening {
                severity: Severity::Warning,
                reason: "Drifted",
                message,
            };
            self.happened(scene.application, happening).await;
        }
    }
}

fn decide(
    policy: Automated,
    compared: &Comparison,
    application: &Application,
    last: Option<&Record>,
) -> Decision {
    let resources: Vec<(ResourceKey, ResourceState)> = compared
        .observation
        .objects
        .iter()
        .map(|observed| (observed.pair.key.clone(), observed.state.clone()))
        .collect();
    let attempt = last
        .filter(|last| last.is_sync() && !last.dry_run())
        .map(|last| Attempt {
            phase: last.state.phase,
            revisions: last.revisions.clone(),
            sources: last.sources.clone(),
            message: last.state.message.clone(),
        });
    automated::decide(&Situation {
        policy,
        status: compared.observation.sync,
        resources: &resources,
        revisions: &compared.revisions,
        sources: &application.raw_sources(),
        last: attempt.as_ref(),
    })
}

/// Why an application that syncs by itself and just has will not do so again.
pub(super) fn failure(compared: &Comparison, application: &Application, last: &Record) -> Option<String> {
    let policy = Automated::read(&application.object["spec"]["syncPolicy"])?;
    if !last.state.phase.is_completed() || last.state.phase == OperationPhase::Succeeded {
        return None;
    }
    match decide(policy, compared, application, Some(last)) {
        Decision::Refuse(message) => Some(message),
        _ => None,
    }
}

/// The operation that Argo CD would write.
fn request(policy: Automated, compared: &Comparison, application: &Application) -> Value {
    let mut sync = Map::new();
    match application.has_multiple_sources() {
        true => {
            sync.insert("sources".to_owned(), application.raw_sources());
            sync.insert("revisions".to_owned(), json!(compared.revisions));
        }
        false => {
            sync.insert("source".to_owned(), application.raw_sources());
            sync.insert("revision".to_owned(), json!(compared.revisions.first()));
        }
    }
    if policy.prune {
        sync.insert("prune".to_owned(), true.into());
    }
    if !application.sync_options().is_empty() {
        sync.insert("syncOptions".to_owned(), json!(application.sync_options()));
    }
    let own = application
        .spec
        .sync_policy
        .as_ref()
        .and_then(|policy| policy.retry.clone());
    json!({
        "sync": sync,
        "initiatedBy": {"automated": true},
        "retry": own.unwrap_or_else(|| json!({"limit": 5})),
    })
}

fn selected(key: &ResourceKey) -> Value {
    let mut entry = json!({"kind": key.kind, "name": key.name});
    for (field, value) in [("group", &key.group), ("namespace", &key.namespace)] {
        if !value.is_empty() {
            entry[field] = value.as_str().into();
        }
    }
    entry
}
