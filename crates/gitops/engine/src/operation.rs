//! A sync from its request to its end.
//!
//! The state of a sync is in the Application: whoever comes after a crash goes on with it. It is written before something is
//! done that must not be done twice (hooks) or that cannot be seen afterwards (deletions), when there is something to
//! wait for, and at the end; a sync that only applies is written once.

mod record;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use fairway_controller::Failure;
use fairway_gitops_sync::annotation::DELETION_APPROVED;
use fairway_gitops_sync::compare::{Pair, SyncStatus};
use fairway_gitops_sync::guard;
use fairway_gitops_sync::key::ResourceKey;
use fairway_gitops_sync::operation::{
    self as machine, Action, Desired, NamespaceMetadata, OperationPhase, Outcome, Plan, SyncOptions, Task,
    TaskId,
};
use fairway_gitops_sync::window::{self, Subject};
use fairway_gitops_view::answer::{Notice, TaskResult};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::Value;

use crate::act::Hands;
use crate::answers::Answers;
use crate::application::Application;
use crate::observe::{Observation, Scene};
use crate::tombstones;
pub(crate) use record::Record;

/// How many objects are written at once.
const AT_ONCE: usize = 8;
/// How soon a sync that a window keeps back looks at the clock again.
pub(crate) const WINDOW_POLL: Duration = Duration::from_secs(30);

/// Where a sync stands after a pass.
pub(crate) enum Progress {
    /// It is over.
    Ended,
    /// It waits for something that will wake it, at the latest after this time.
    Waits(Option<Duration>),
}

/// Remembers a state before what it says is done; false if the sync is to stop.
pub(crate) trait Remember: Send {
    fn remember(&mut self, record: &Record) -> impl Future<Output = Result<Seen, Failure>> + Send;
}

/// What others did to the Application meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nothing that matters.
    Unchanged,
    /// Somebody wants the sync to end.
    Terminating,
    /// The Application is gone, or going.
    Gone,
}

/// What a sync needs beside its record.
pub(crate) struct Stage<'a> {
    pub(crate) scene: &'a Scene<'a>,
    pub(crate) observation: &'a Observation,
    /// Objects that stay because others use them.
    pub(crate) kept: BTreeSet<ResourceKey>,
    /// Why objects go, for their tombstones.
    pub(crate) reason: tombstones::Reason,
    /// The commit that is synced.
    pub(crate) revision: String,
    /// Who listens.
    pub(crate) answers: &'a Answers,
}

impl Stage<'_> {
    /// Says how far a sync is.
    fn tell(&self, plan: &Plan, record: &Record) {
        self.answers.tell(&self.scene.application.key, || {
            let waves: HashMap<&TaskId, i64> = plan.tasks.iter().map(|task| (&task.id, task.wave)).collect();
            let results = record.state.resources.iter().map(|result| TaskResult {
                wave: waves.get(&result.id()).copied().unwrap_or(0),
                result: result.clone(),
            });
            Notice::Syncing {
                revisions: record.revisions.clone(),
                message: record.state.message.clone(),
                results: results.collect(),
            }
        });
    }
}

/// Takes a sync as far as it goes now.
pub(crate) async fn advance(
    stage: &Stage<'_>,
    record: &mut Record,
    memory: &mut impl Remember,
) -> Result<Progress, Failure> {
    let (scene, observation) = (stage.scene, stage.observation);
    let terminate = record.state.phase == OperationPhase::Terminating;
    let bad: Vec<String> = observation
        .conditions
        .iter()
        .filter(|condition| condition.kind.forbids_sync())
        .map(|condition| condition.message.clone())
        .collect();
    if !bad.is_empty() && !terminate {
        record.state.phase = OperationPhase::Error;
        record.state.message = bad.join("; ");
        return Ok(Progress::Ended);
    }
    if !terminate && let Some(message) = blocked_by_window(scene, record) {
        record.state.phase = OperationPhase::Running;
        record.state.message = message;
        return Ok(Progress::Waits(Some(WINDOW_POLL)));
    }
    let plan = plan(stage, record);
    let held = guard::hold(&plan, &scene.project.guard).filter(|_| !terminate);
    if let Some(held) = &held
        && !held.is_approved(guard::approvals(&scene.application.object))
    {
        record.state.phase = OperationPhase::Running;
        record.state.message = held.message(&scene.application.key.name);
        return Ok(Progress::Waits(None));
    }
    let progress = run(stage, &plan, record, memory).await?;
    record.spent = held.and_then(|held| held.spent(&record.state));
    Ok(progress)
}

/// Takes a plan as far as it goes now.
pub(crate) async fn run(
    stage: &Stage<'_>,
    plan: &Plan,
    record: &mut Record,
    memory: &mut impl Remember,
) -> Result<Progress, Failure> {
    let (scene, observation) = (stage.scene, stage.observation);
    let mut terminate = record.state.phase == OperationPhase::Terminating;
    let mut live = there(observation);
    let mut outcomes: Vec<Outcome> = Vec::new();
    loop {
        let step = {
            let now = Timestamp::now();
            let health = |object: &Value| scene.settings.judge.health(object, now);
            let is_served = |task: &Task| {
                let key = &task.id.key;
                observation.kinds.get(&key.group, &key.kind).is_some()
            };
            let observed = machine::Observed {
                live: &live,
                outcomes: &outcomes,
                health: &health,
                is_served: &is_served,
                wait_for_kinds: true,
                terminate,
            };
            machine::step(plan, &record.state, &observed)
        };
        record.state = step.state;
        stage.tell(plan, record);
        // An end is written when it is one: until then whoever comes after a crash ends it again.
        if !record.state.phase.is_completed() && must_be_remembered(plan, &step.actions) {
            match memory.remember(record).await? {
                Seen::Unchanged => {}
                Seen::Terminating if terminate => {}
                Seen::Terminating => {
                    terminate = true;
                    outcomes.clear();
                    continue;
                }
                Seen::Gone => return Ok(Progress::Waits(None)),
            }
        }
        outcomes = act(stage, plan, &step.actions, &mut live).await;
        if record.state.phase.is_completed() {
            return Ok(Progress::Ended);
        }
        if step.actions.is_empty() {
            return Ok(Progress::Waits(None));
        }
    }
}

/// Whether what is about to be done has to be known to whoever comes after a crash.
fn must_be_remembered(plan: &Plan, actions: &[Action]) -> bool {
    actions.iter().any(|action| match action {
        Action::Apply { dry_run: true, .. } => false,
        Action::Apply { task, .. } => plan.tasks.iter().any(|known| known.id == *task && known.is_hook),
        Action::Delete { .. } => true,
        Action::ReleaseHook { .. } => false,
    })
}

/// Everything that a plan may name and that is there.
fn there(observation: &Observation) -> BTreeMap<ResourceKey, Value> {
    let mut live = observation.live_hooks.clone();
    for observed in &observation.objects {
        if let Some(object) = &observed.pair.live {
            live.insert(observed.pair.key.clone(), object.clone());
        }
    }
    if let Some(namespace) = &observation.live_namespace {
        live.insert(ResourceKey::of(namespace), namespace.clone());
    }
    live
}

/// What a sync does, in order.
pub(crate) fn plan(stage: &Stage<'_>, record: &Record) -> Plan {
    let (scene, observation) = (stage.scene, stage.observation);
    let mut options = SyncOptions::read(record.sync_options().iter().map(String::as_str));
    options.force |= record.force();
    let respect = options.respect_ignore_differences;
    let pairs: Vec<Pair> = observation
        .objects
        .iter()
        .map(|observed| {
            let mut pair = observed.pair.clone();
            if respect && let (Some(target), Some(live)) = (&pair.target, &pair.live) {
                pair.target = Some(observation.ignored.respect(target, live));
            }
            pair
        })
        // A copy of another object's mark makes nothing the application's own.
        .filter(|pair| {
            let own = |live: &Value| {
                observation
                    .tracking
                    .is_self_referenced(live, pair.target.as_ref())
            };
            pair.live.as_ref().is_none_or(own)
        })
        .collect();
    let in_sync = observation
        .objects
        .iter()
        .filter(|observed| observed.state.status == Some(SyncStatus::Synced))
        .map(|observed| observed.pair.key.clone())
        .collect();
    let metadata = namespace_metadata(scene.application);
    let only = record.selected();
    machine::plan(&Desired {
        pairs: &pairs,
        hooks: &observation.hooks,
        options,
        prune: record.prune(),
        prune_confirmed: is_confirmed(scene.application, record.started_at),
        dry_run: record.dry_run(),
        only: &only,
        skip_hooks: record.skips_hooks(),
        namespace: &scene.application.spec.destination.namespace,
        namespace_metadata: metadata.as_ref(),
        live_namespace: observation.live_namespace.as_ref(),
        revision: record.revisions.first().map_or("", String::as_str),
        started_at: record.started_at.as_second(),
        in_sync,
        shared: &observation.shared,
        refused: &observation.refused,
        kept: stage.kept.clone(),
    })
}

pub(crate) fn namespace_metadata(application: &Application) -> Option<NamespaceMetadata> {
    let policy = application.spec.sync_policy.as_ref()?;
    let wanted = policy.managed_namespace_metadata.as_ref()?;
    Some(NamespaceMetadata {
        labels: wanted.labels.clone().unwrap_or_default(),
        annotations: wanted.annotations.clone().unwrap_or_default(),
    })
}

/// Whether deletions that need it have been confirmed since something began.
pub(crate) fn is_confirmed(application: &Application, since: Timestamp) -> bool {
    let approved = application.annotation(DELETION_APPROVED).parse::<Timestamp>();
    approved.is_ok_and(|at| at.as_second() >= since.as_second())
}

/// Why the clock does not let a sync go on.
pub(crate) fn blocked_by_window(scene: &Scene<'_>, record: &Record) -> Option<String> {
    let application = scene.application;
    let subject = Subject {
        application: &application.key.name,
        server: &scene.place.server,
        cluster: &scene.place.name,
        namespace: &application.spec.destination.namespace,
    };
    let windows: Vec<_> = scene
        .project
        .windows
        .iter()
        .filter(|window| window.is_about(subject))
        .cloned()
        .collect();
    let began = (!record.state.resources.is_empty()).then_some(record.started_at);
    let blocked = "Sync operation blocked by sync window";
    match window::may_sync(&windows, Timestamp::now(), !record.is_automated(), began) {
        Ok(true) => None,
        Ok(false) => Some(blocked.to_owned()),
        Err(error) => Some(format!("{blocked}: {error}")),
    }
}

/// Carries the actions of a step out, and brings what is known of the objects up to date.
async fn act(
    stage: &Stage<'_>,
    plan: &Plan,
    actions: &[Action],
    live: &mut BTreeMap<ResourceKey, Value>,
) -> Vec<Outcome> {
    let known = &*live;
    let mut jobs: Vec<BoxFuture<'_, Done>> = Vec::with_capacity(actions.len());
    for action in actions {
        jobs.push(Box::pin(carry_out(stage, plan, action, known)));
    }
    let mut done: Vec<Done> = futures::stream::iter(jobs).buffered(AT_ONCE).collect().await;
    let mut outcomes = Vec::with_capacity(done.len());
    for Done {
        outcome,
        key,
        becomes,
        ..
    } in done.drain(..)
    {
        match becomes {
            Becomes::Unchanged => {}
            Becomes::Is(object) => {
                live.insert(key, object);
            }
            Becomes::Gone => {
                live.remove(&key);
            }
        }
        outcomes.extend(outcome);
    }
    outcomes
}

struct Done {
    outcome: Option<Outcome>,
    key: ResourceKey,
    becomes: Becomes,
}

enum Becomes {
    Unchanged,
    Is(Value),
    Gone,
}

async fn carry_out(
    stage: &Stage<'_>,
    plan: &Plan,
    action: &Action,
    live: &BTreeMap<ResourceKey, Value>,
) -> Done {
    let hands: &Hands = stage.scene.hands;
    let kinds = &stage.observation.kinds;
    match action {
        Action::Apply {
            task,
            object,
            mode,
            dry_run,
        } => {
            let key = task.key.clone();
            let Some(kind) = kinds.of(object) else {
                let why = format!("the kind {}/{} is not served", key.group, key.kind);
                let outcome = match dry_run {
                    true => Outcome::DryRun(task.clone(), Err(why)),
                    false => Outcome::Applied(task.clone(), Err(why)),
                };
                return Done {
                    outcome: Some(outcome),
                    key,
                    becomes: Becomes::Unchanged,
                };
            };
            let result = hands.apply(kind, object, *mode, *dry_run).await;
            if *dry_run {
                let defined_here = plan
                    .tasks
                    .iter()
                    .any(|known| known.id == *task && known.defined_here);
                let result = match result {
                    Ok(applied) => Ok(applied.message),
                    Err(refusal) if machine::is_dry_run_failure(refusal.is_its_own_fault, defined_here) => {
                        Err(refusal.message)
                    }
                    // What is around it may be another when it is really applied.
                    Err(refusal) => Ok(refusal.message),
                };
                return Done {
                    outcome: Some(Outcome::DryRun(task.clone(), result)),
                    key,
                    becomes: Becomes::Unchanged,
                };
            }
            let (becomes, result) = match result {
                Ok(applied) => (Becomes::Is(applied.object), Ok(applied.message)),
                Err(refusal) => (Becomes::Unchanged, Err(refusal.message)),
            };
            Done {
                outcome: Some(Outcome::Applied(task.clone(), result)),
                key,
                becomes,
            }
        }
        Action::Delete { task, propagation } => {
            let key = task.key.clone();
            let Some(kind) = kinds.get(&key.group, &key.kind) else {
                return Done {
                    outcome: Some(Outcome::Deleted(task.clone(), Ok(()))),
                    key,
                    becomes: Becomes::Gone,
                };
            };
            let seen = live.get(&key);
            let is_extra = plan
                .tasks
                .iter()
                .any(|known| known.id == *task && known.is_prune());
            if let Some(object) = seen.filter(|_| is_extra) {
                tombstones::keep(stage.scene, object, &stage.revision, stage.reason).await;
            }
            let uid = seen.and_then(|object| object["metadata"]["uid"].as_str());
            let (becomes, result) = match hands.delete(kind, &key, *propagation, uid).await {
                Ok(Some(going)) => (Becomes::Is(going), Ok(())),
                Ok(None) => (Becomes::Gone, Ok(())),
                Err(refusal) => (Becomes::Unchanged, Err(refusal.message)),
            };
            Done {
                outcome: Some(Outcome::Deleted(task.clone(), result)),
                key,
                becomes,
            }
        }
        Action::ReleaseHook { key } => {
            let becomes = match kinds.get(&key.group, &key.kind) {
                Some(kind) => match hands.release(kind, key).await {
                    Ok(Some(object)) => Becomes::Is(object),
                    Ok(None) => Becomes::Gone,
                    Err(_) => Becomes::Unchanged,
                },
                None => Becomes::Unchanged,
            };
            Done {
                outcome: None,
                key: key.clone(),
                becomes,
            }
        }
    }
}
