//! The end of an application: hooks before and after, its objects in reverse waves, its finalizers.

use fairway_api::argoproj::{
    BACKGROUND_FINALIZER, FOREGROUND_FINALIZER, POST_DELETE_FINALIZER, RESOURCES_FINALIZER,
};
use fairway_controller::{Failure, Outcome};
use fairway_gitops_sync::hook::{self, Phase, Role};
use fairway_gitops_sync::operation::{
    self as machine, Desired, OperationPhase, Propagation, State, SyncOptions,
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::syncing::needed_by_others;
use super::{Engine, Groundless};
use crate::application::Application;
use crate::conditions::{Condition, Type};
use crate::operation::{self, Progress, Record, Stage};
use crate::pen::Pen;
use crate::tombstones::Reason;

/// How a deletion is told from a sync in `status.operationState`.
const DELETION: &str = "fairway.dev/deletion";

/// What an application's finalizers ask for; none: it goes, and its objects stay.
fn propagation(application: &Application) -> Option<Propagation> {
    let finalizers = application.finalizers();
    match () {
        () if finalizers.contains(&BACKGROUND_FINALIZER) => Some(Propagation::Background),
        () if finalizers.contains(&RESOURCES_FINALIZER) || finalizers.contains(&FOREGROUND_FINALIZER) => {
            Some(Propagation::Foreground)
        }
        () => None,
    }
}

/// Whether a finalizer is the engine's.
fn is_own(finalizer: &str) -> bool {
    let is = |own: &str| {
        finalizer
            .strip_prefix(own)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    is(RESOURCES_FINALIZER) || is(POST_DELETE_FINALIZER)
}

/// Whether hooks are declared that run after everything else is gone.
fn has_post_delete_hooks(hooks: &[Value]) -> bool {
    hooks
        .iter()
        .any(|object| matches!(hook::role(object), Role::Hook(phases) if phases.contains(&Phase::PostDelete)))
}

/// The finalizers that an application needs for its hooks and does not have yet, with those that it has.
pub(super) fn missing_finalizers(application: &Application, hooks: &[Value]) -> Option<Vec<String>> {
    let mut all: Vec<String> = application.finalizers().into_iter().map(str::to_owned).collect();
    let known = all.iter().any(|finalizer| finalizer == POST_DELETE_FINALIZER);
    if known || application.is_deleting() || !has_post_delete_hooks(hooks) {
        return None;
    }
    all.push(POST_DELETE_FINALIZER.to_owned());
    Some(all)
}

impl Engine {
    /// Takes a deletion as far as it goes now.
    pub(super) async fn finalize(
        &self,
        application: &Application,
        pen: &mut Pen,
    ) -> Result<Outcome, Failure> {
        if !application.finalizers().into_iter().any(is_own) {
            return Ok(Outcome::Done);
        }
        let requests = self.requests(&application.key.workspace);
        let ground = match self.ground(&requests, application).await? {
            Ok(ground) => ground,
            // Without a destination there is nothing to delete; anything else is somebody's to mend.
            Err(Groundless { is_lost: true, .. }) => return self.let_go(application, pen).await,
            Err(Groundless { condition, .. }) => {
                let condition = Condition::new(Type::DeletionError, condition.message);
                self.write(application, pen, None, None, &[condition]).await?;
                return Ok(Outcome::Done);
            }
        };
        let scene = ground.scene(application, &self.destinations.hub);
        let mut record = self.deletion_record(application);
        let mut compared = self.compare(&scene).await?;
        let has_hooks = application
            .finalizers()
            .iter()
            .any(|finalizer| finalizer.starts_with(POST_DELETE_FINALIZER));
        let failed = compared
            .rendered
            .as_deref()
            .is_none_or(|rendered| rendered.failure.is_some());
        if failed && has_hooks {
            let condition = Condition::new(
                Type::DeletionError,
                "the hooks that run after the deletion cannot be rendered".to_owned(),
            );
            let conditions = [condition];
            self.write(application, pen, Some(&compared), None, &conditions)
                .await?;
            return Ok(compared.again.map_or(Outcome::Done, Outcome::Again));
        }
        let Some(propagation) = propagation(application).or(has_hooks.then_some(Propagation::Foreground))
        else {
            return self.let_go(application, pen).await;
        };
        // What could not be compared can be deleted all the same.
        compared.observation.conditions.clear();
        let live: Vec<Value> = match self::propagation(application).is_some() {
            false => Vec::new(),
            true => compared
                .observation
                .objects
                .iter()
                .filter_map(|observed| observed.pair.live.clone())
                .filter(|live| {
                    compared.observation.tracking.owner(live).as_deref() == Some(&application.instance())
                })
                .collect(),
        };
        let mut kept = needed_by_others(&scene, &compared.observation);
        kept.extend(super::syncing::needed_among(&scene, &live));
        let plan = machine::plan_deletion(
            &live,
            &compared.observation.hooks,
            &Desired {
                options: SyncOptions {
                    propagation,
                    ..SyncOptions::default()
                },
                prune_confirmed: operation::is_confirmed(application, deleted_at(application)),
                revision: compared.revisions.first().map_or("", String::as_str),
                started_at: record.started_at.as_second(),
                kept: kept.clone(),
                ..Desired::default()
            },
        );
        let stage = Stage {
            scene: &scene,
            observation: &compared.observation,
            kept,
            reason: Reason::Deleted,
            revision: compared.revisions.join(","),
            answers: &self.answers,
        };
        let progress = operation::run(&stage, &plan, &mut record, pen).await?;
        let going = live.iter().any(|object| {
            let key = fairway_gitops_sync::key::ResourceKey::of(object);
            let stays = plan
                .tasks
                .iter()
                .any(|task| task.id.key == key && task.keep.is_some());
            !stays && scene.place.cluster.is_there(&scene.place.workspace, &key)
        });
        match progress {
            Progress::Ended if record.state.phase == OperationPhase::Succeeded && !going => {
                self.let_go(application, pen).await
            }
            Progress::Ended if record.state.phase == OperationPhase::Succeeded => {
                record.state.phase = OperationPhase::Running;
                record.state.message = "waiting for deletion of the remaining objects".to_owned();
                self.write_deletion(application, pen, &record, None).await?;
                Ok(Outcome::Again(std::time::Duration::from_secs(5)))
            }
            Progress::Ended => {
                let message = record.state.message.clone();
                // It begins anew: what is gone is gone, and the rest is tried again.
                record.state = State::default();
                self.write_deletion(application, pen, &record, Some(message))
                    .await?;
                Ok(Outcome::Poll)
            }
            Progress::Waits(delay) => {
                self.write_deletion(application, pen, &record, None).await?;
                Ok(delay.map_or(Outcome::Done, Outcome::Again))
            }
        }
    }

    fn deletion_record(&self, application: &Application) -> Record {
        let state = &application.status()["operationState"];
        let is_deletion = |record: &Record| record.operation["info"][0]["name"] == DELETION;
        Record::read(application, state)
            .filter(is_deletion)
            .filter(|record| !record.state.phase.is_completed())
            .unwrap_or_else(|| {
                Record::begin(
                    application,
                    json!({"info": [{"name": DELETION, "value": "true"}]}),
                    Timestamp::now(),
                )
            })
    }

    async fn write_deletion(
        &self,
        application: &Application,
        pen: &mut Pen,
        record: &Record,
        problem: Option<String>,
    ) -> Result<(), Failure> {
        let mut status = pen.status().as_object().cloned().unwrap_or_default();
        status.insert("operationState".to_owned(), record.write(application));
        let conditions: Vec<Condition> = problem
            .into_iter()
            .map(|message| Condition::new(Type::DeletionError, message))
            .collect();
        let now = crate::report::timestamp(Timestamp::now());
        let list = crate::conditions::list(
            &conditions,
            &status.get("conditions").cloned().unwrap_or(Value::Null),
            &now,
        );
        match list.is_empty() {
            true => {
                status.shift_remove("conditions");
            }
            false => {
                status.insert("conditions".to_owned(), list.into());
            }
        }
        pen.write(&Value::Object(status), Map::new()).await?;
        self.note_write(&application.key, pen);
        Ok(())
    }

    /// Takes the engine's finalizers away.
    async fn let_go(&self, application: &Application, pen: &mut Pen) -> Result<Outcome, Failure> {
        let rest: Vec<&str> = application
            .finalizers()
            .into_iter()
            .filter(|finalizer| !is_own(finalizer))
            .collect();
        let mut more = Map::new();
        more.insert(
            "metadata".to_owned(),
            json!({"finalizers": rest, "resourceVersion": pen.version()}),
        );
        let status = pen.status().clone();
        pen.write(&status, more).await?;
        Ok(Outcome::Done)
    }
}

fn deleted_at(application: &Application) -> Timestamp {
    application.object["metadata"]["deletionTimestamp"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or(Timestamp::UNIX_EPOCH)
}
