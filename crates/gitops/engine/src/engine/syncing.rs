//! A pass of a sync: what it syncs to, how far it gets, whether it is tried again, and what is told of its end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::Failure;
use fairway_controller::events::{Happening, Severity};
use fairway_controller::kinds::Kind;
use fairway_gitops_sync::automated;
use fairway_gitops_sync::history;
use fairway_gitops_sync::key::ResourceKey;
use fairway_gitops_sync::operation::{OperationPhase, State};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Engine;
use crate::application::Application;
use crate::conditions::{Condition, Type};
use crate::desired::Rendered;
use crate::observe::{Observation, Scene, observe};
use crate::operation::{self, Progress, Record, Stage};
use crate::pen::Pen;
use crate::report::timestamp;
use crate::settings::Orphans;
use crate::tombstones::Reason;

/// Why a sync ended that a newer commit took the place of.
const SUPERSEDED: &str = "superseded by a newer revision";

impl Engine {
    /// Takes a sync as far as it goes now; when to look at it again, if nothing else wakes it.
    pub(super) async fn sync(
        &self,
        scene: &Scene<'_>,
        record: &mut Record,
        pen: &mut Pen,
    ) -> Result<Option<Duration>, Failure> {
        if !record.is_sync() {
            record.state.phase = OperationPhase::Error;
            record.state.message = "Invalid operation request: no operation specified".to_owned();
            record.finished_at = Some(Timestamp::now());
            return Ok(None);
        }
        let superseded = self.is_superseded(scene, record).await?;
        if superseded && record.waits_for_retry() {
            // Nothing of it is under way, and to try it again would be in vain.
            record.state.phase = OperationPhase::Failed;
            record.state.message = SUPERSEDED.to_owned();
            record.finished_at = Some(Timestamp::now());
            return Ok(None);
        }
        if let Some(delay) = self.wait_for_retry(record) {
            return Ok(Some(delay));
        }
        let terminating = record.state.phase == OperationPhase::Terminating || superseded;
        let rendered = match self.declared_by(scene, record).await? {
            Ok(rendered) => rendered,
            Err(why) => {
                record.state.phase = OperationPhase::Error;
                record.state.message = why;
                self.end(record, terminating);
                return Ok(self.wait_for_retry(record));
            }
        };
        record.revisions.clone_from(&rendered.revisions);
        if terminating {
            record.state.phase = OperationPhase::Terminating;
        }
        let mut observation = observe(scene, Some(&rendered)).await?;
        if let Some(why) = &rendered.failure {
            observation.conditions.push(Condition::new(
                Type::ComparisonError,
                format!("Failed to load target state: {why}"),
            ));
        }
        let stage = Stage {
            scene,
            observation: &observation,
            kept: needed_by_others(scene, &observation),
            reason: Reason::Pruned,
            revision: record.revisions.join(","),
            answers: &self.answers,
        };
        let progress = operation::advance(&stage, record, pen).await?;
        match progress {
            Progress::Ended => {
                if superseded {
                    record.state.message = SUPERSEDED.to_owned();
                }
                self.end(record, terminating);
                Ok(self.wait_for_retry(record))
            }
            Progress::Waits(delay) => Ok(delay),
        }
    }

    /// How long until a sync that failed is tried again; begins the try if the time has come.
    fn wait_for_retry(&self, record: &mut Record) -> Option<Duration> {
        let failed_at = record.finished_at.filter(|_| record.waits_for_retry())?;
        let retry = record.retry().unwrap_or_default();
        let delay = retry
            .next(record.retry_count.saturating_sub(1))
            .unwrap_or_default();
        let passed = Timestamp::now().duration_since(failed_at);
        let passed = Duration::try_from(passed).unwrap_or_default();
        if passed < delay {
            return Some(delay - passed);
        }
        if retry.refresh {
            record.forget_revisions();
        }
        record.finished_at = None;
        record.state = State {
            message: format!("Retrying operation. Attempt #{}", record.retry_count),
            ..State::default()
        };
        None
    }

    /// Ends a sync, or begins to wait for another try.
    fn end(&self, record: &mut Record, terminated: bool) {
        let now = Timestamp::now();
        record.finished_at = Some(now);
        let failed = matches!(record.state.phase, OperationPhase::Failed | OperationPhase::Error);
        if !failed {
            return;
        }
        match record.retry() {
            Ok(retry) if !terminated => {
                if let Some(delay) = retry.next(record.retry_count) {
                    record.retry_count += 1;
                    record.state.phase = OperationPhase::Running;
                    let at = now + jiff::SignedDuration::try_from(delay).unwrap_or_default();
                    record.state.message = format!(
                        "{}. Retrying attempt #{} at {}.",
                        record.state.message,
                        record.retry_count,
                        at.strftime("%-I:%M%p")
                    );
                    return;
                }
            }
            Ok(_) => {}
            Err(why) => record.state.message = format!("{} (failed to retry: {why})", record.state.message),
        }
        if record.retry_count > 0 {
            record.state.message =
                format!("{} (retried {} times).", record.state.message, record.retry_count);
        }
    }

    /// Whether something newer is wanted than what a sync that waits is at.
    async fn is_superseded(&self, scene: &Scene<'_>, record: &Record) -> Result<bool, Failure> {
        let application = scene.application;
        if !record.is_automated() || record.revisions.is_empty() {
            return Ok(false);
        }
        if record.sources != application.raw_sources() {
            return Ok(true);
        }
        let wanted = self
            .renderer
            .resolve(application, &application.sources(), &[])
            .await;
        // What cannot be reached is not newer.
        Ok(wanted.is_ok_and(|wanted| automated::is_superseded(true, true, &record.revisions, &wanted)))
    }

    /// What a sync is to bring about; the inner error is a sentence.
    async fn declared_by(
        &self,
        scene: &Scene<'_>,
        record: &Record,
    ) -> Result<Result<Arc<Rendered>, String>, Failure> {
        if let Some(objects) = record.local_manifests() {
            let revisions = record.wanted_revisions();
            return Ok(Ok(Arc::new(Rendered::given(&objects, revisions))));
        }
        let (sources, wanted) = (record.source_list(), record.wanted_revisions());
        let found = self.declared(scene, &sources, &wanted).await?;
        Ok(found.map_err(|error| format!("Failed to load target state: {error}")))
    }
}

/// What other applications need of what is there.
pub(super) fn needed_by_others(scene: &Scene<'_>, observation: &Observation) -> BTreeSet<ResourceKey> {
    let extra: Vec<Value> = observation
        .objects
        .iter()
        .filter(|observed| observed.pair.target.is_none())
        .filter_map(|observed| observed.pair.live.clone())
        .collect();
    needed_among(scene, &extra)
}

/// What other applications need of these objects.
pub(super) fn needed_among(scene: &Scene<'_>, objects: &[Value]) -> BTreeSet<ResourceKey> {
    let place = scene.place;
    objects
        .iter()
        .map(ResourceKey::of)
        .filter(|key| {
            place
                .cluster
                .is_needed_by_others(&scene.application.key, &place.workspace, key)
        })
        .collect()
}

/// Adds a sync that went well to the history.
pub(super) fn note_history(application: &Application, record: &Record, status: &mut Value) {
    let whole = !record.dry_run() && record.selected().is_empty();
    if record.state.phase != OperationPhase::Succeeded || !whole || record.local_manifests().is_some() {
        return;
    }
    let mut entry = json!({
        "deployStartedAt": timestamp(record.started_at),
        "deployedAt": timestamp(record.finished_at.unwrap_or(record.started_at)),
        "initiatedBy": record.operation["initiatedBy"],
    });
    match record.sources.is_array() {
        true => {
            entry["sources"] = record.sources.clone();
            entry["revisions"] = json!(record.revisions);
        }
        false => {
            entry["source"] = record.sources.clone();
            entry["revision"] = json!(record.revisions.first());
        }
    }
    let limit = match application.spec.revision_history_limit {
        Some(limit) => usize::try_from(limit).unwrap_or(0),
        None => history::DEFAULT_LIMIT,
    };
    let before = status["history"].as_array().cloned().unwrap_or_default();
    let after = history::append(&before, entry, limit);
    status["history"] = after.into();
}

/// What is told of the end of a sync.
pub(super) fn ending(record: &Record) -> Happening {
    let what = match record.selected().is_empty() {
        true => "Sync operation",
        false => "Partial sync operation",
    };
    let to = record.revisions.join(", ");
    match record.state.phase {
        OperationPhase::Succeeded => Happening {
            severity: Severity::Normal,
            reason: "OperationCompleted",
            message: format!("{what} to {to} succeeded"),
        },
        _ => Happening {
            severity: Severity::Warning,
            reason: "OperationCompleted",
            message: format!("{what} to {to} failed: {}", record.state.message),
        },
    }
}

/// How many objects of a kind in the application's namespace are nobody's.
pub(super) async fn orphans_of(
    scene: &Scene<'_>,
    observation: &Observation,
    kind: &Kind,
    wanted: &Orphans,
) -> usize {
    let namespace = &scene.application.spec.destination.namespace;
    let path = crate::act::collection_path(kind, &kind.resource.api_version, namespace);
    let client = scene.place.cluster.readers.of(&scene.place.workspace);
    let Ok(listed) = fairway_controller::Requests::new(client).list(&path).await else {
        return 0;
    };
    let (group, name) = (&kind.resource.group, &kind.resource.kind);
    let fits = |pattern: &str, text: &str| pattern.is_empty() || fairway_text_glob::matches(pattern, text);
    let is_orphan = |object: &&Value| {
        let named = object["metadata"]["name"].as_str().unwrap_or_default();
        let owned = object["metadata"]["ownerReferences"]
            .as_array()
            .is_some_and(|owners| !owners.is_empty());
        let ignored = wanted
            .ignore
            .iter()
            .any(|item| fits(&item.group, group) && fits(&item.kind, name) && fits(&item.name, named));
        let standard = (name == "ConfigMap" && named == "kube-root-ca.crt")
            || (name == "ServiceAccount" && named == "default");
        !owned && !ignored && !standard && observation.tracking.owner(object).is_none()
    };
    listed.iter().filter(is_orphan).count()
}
