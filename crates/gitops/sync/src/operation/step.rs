//! One step of a sync: what to do now, and what to remember.

mod failure;
mod outcome;
mod wave;

use std::collections::{BTreeMap, HashMap};

use fairway_gitops_health::{Health, Status};
use serde_json::Value;

use super::options::{ApplyMode, Propagation};
use super::plan::{Plan, Task};
use super::state::{OperationPhase, ResourceResult, ResultCode, State, TaskId};
use crate::annotation::HOOK_FINALIZER;
use crate::hook::{self, DeletePolicy, Phase};
use crate::key::ResourceKey;

/// What is true now.
pub struct Observed<'a> {
    /// Objects that are there, of all that the plan names.
    pub live: &'a BTreeMap<ResourceKey, Value>,
    /// What became of the actions of the step before; empty after a crash.
    pub outcomes: &'a [Outcome],
    /// How healthy an object is; none if its kind has no health.
    pub health: &'a dyn Fn(&Value) -> Option<Health>,
    /// Whether the API has the kind of a task.
    pub is_served: &'a dyn Fn(&Task) -> bool,
    /// Whether to wait for kinds that nobody has defined yet, or to fail.
    pub wait_for_kinds: bool,
    /// Whether somebody wants the sync to end.
    pub terminate: bool,
}

/// What became of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Of a dry run.
    DryRun(TaskId, Result<String, String>),
    /// Of an application.
    Applied(TaskId, Result<String, String>),
    /// Of a deletion, of an extra object or of a hook. That there was nothing to delete is well.
    Deleted(TaskId, Result<(), String>),
}

/// Something to do. All actions of a step may run at once.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Write an object, or find out whether it could be written.
    Apply {
        /// Whose it is.
        task: TaskId,
        /// The object.
        object: Value,
        /// How.
        mode: ApplyMode,
        /// Whether it is only tried.
        dry_run: bool,
    },
    /// Delete an object.
    Delete {
        /// Whose it is.
        task: TaskId,
        /// What happens to its dependents.
        propagation: Propagation,
    },
    /// Let go of a hook that is done, so that it can be deleted.
    ReleaseHook {
        /// Which.
        key: ResourceKey,
    },
}

/// What to do, and what to remember before it is done.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// To do.
    pub actions: Vec<Action>,
    /// To remember.
    pub state: State,
}

/// The next step of a sync.
pub fn step(plan: &Plan, state: &State, observed: &Observed<'_>) -> Step {
    let results = state
        .resources
        .iter()
        .enumerate()
        .map(|(place, result)| (result.id(), place));
    let mut run = Run {
        plan,
        observed,
        tasks: plan.tasks.iter().map(|task| (&task.id, task)).collect(),
        results: results.collect(),
        state: state.clone(),
        actions: Vec::new(),
    };
    if !run.state.phase.is_completed() {
        run.advance();
    }
    Step {
        actions: run.actions,
        state: run.state,
    }
}

struct Run<'a> {
    plan: &'a Plan,
    observed: &'a Observed<'a>,
    tasks: HashMap<&'a TaskId, &'a Task>,
    /// Where the result of a task is.
    results: HashMap<TaskId, usize>,
    state: State,
    actions: Vec<Action>,
}

impl<'a> Run<'a> {
    fn advance(&mut self) {
        self.absorb();
        if self.state.phase.is_completed() {
            return;
        }
        if self.observed.terminate {
            self.terminate();
            return;
        }
        if self.is_invalid() || self.is_only_tried() || !self.prepare() || self.is_applied() || self.resume()
        {
            return;
        }
        while self.pass() {}
    }

    /// Looks once at everything and begins what can be; whether to look again at once.
    fn pass(&mut self) -> bool {
        self.refresh_running();
        if self.waits_for_running() || self.waits_for_deletion() {
            return false;
        }
        self.release_hooks();
        if self.has_failed() {
            self.fail();
            return false;
        }
        let pending = self.pending();
        let Some(first) = pending.first() else {
            self.succeed("successfully synced (no more tasks)");
            return false;
        };
        let group = group_of(first);
        self.state
            .set(OperationPhase::Running, "one or more tasks are running");
        let tasks: Vec<&'a Task> = pending
            .into_iter()
            .filter(|task| group_of(task) == group)
            .collect();
        self.run_wave(&tasks);
        // A wave in which nothing was left to do, such as one of objects that are kept, must not stop the next.
        self.actions.is_empty() && tasks.iter().all(|task| self.phase_of(task).is_some())
    }

    fn result(&self, task: &Task) -> Option<&ResourceResult> {
        self.results
            .get(&task.id)
            .map(|place| &self.state.resources[*place])
    }

    fn phase_of(&self, task: &Task) -> Option<OperationPhase> {
        self.result(task).and_then(|result| result.hook_phase)
    }

    fn live(&self, task: &Task) -> Option<&'a Value> {
        self.observed.live.get(&task.id.key)
    }

    fn record(&mut self, task: &Task, status: Option<ResultCode>, phase: OperationPhase, message: &str) {
        if let Some(place) = self.results.get(&task.id) {
            let result = &mut self.state.resources[*place];
            result.status = status;
            result.hook_phase = Some(phase);
            if !message.is_empty() {
                message.clone_into(&mut result.message);
            }
            return;
        }
        self.results.insert(task.id.clone(), self.state.resources.len());
        self.state.resources.push(ResourceResult {
            key: task.id.key.clone(),
            version: task.version.clone(),
            status,
            message: message.to_owned(),
            hook_type: task.is_hook.then_some(task.id.phase),
            hook_phase: Some(phase),
            sync_phase: task.id.phase,
        });
    }

    fn apply(&mut self, task: &Task, dry_run: bool) {
        let Some(target) = &task.target else {
            return;
        };
        let mode = self.plan.options.mode_for(target, self.live(task).is_some());
        self.actions.push(Action::Apply {
            task: task.id.clone(),
            object: target.clone(),
            mode,
            dry_run,
        });
    }

    /// Tasks of the sync that are to be done and have not been begun; those of a failure are not among them.
    fn pending(&self) -> Vec<&'a Task> {
        let skip = self.plan.options.apply_out_of_sync_only;
        self.plan
            .tasks
            .iter()
            .filter(|task| task.id.phase != Phase::SyncFail && self.phase_of(task).is_none())
            .filter(|task| !(skip && task.is_in_sync))
            .collect()
    }

    /// The wave of which a part has been begun and another not.
    fn unfinished(&self) -> Option<(Phase, i64)> {
        let next = self.pending().first().map(|task| group_of(task))?;
        let begun = |task: &Task| group_of(task) == next && self.phase_of(task).is_some();
        self.plan.tasks.iter().any(begun).then_some(next)
    }

    fn running(&self) -> Vec<&'a Task> {
        let is_running = |task: &&Task| self.phase_of(task) == Some(OperationPhase::Running);
        self.plan.tasks.iter().filter(is_running).collect()
    }

    /// Whether everything has been applied and there is nothing that anybody would wait for. What the last wave becomes
    /// is the application's health, not the sync's.
    fn is_applied(&mut self) -> bool {
        let last = self
            .plan
            .tasks
            .iter()
            .rfind(|task| task.id.phase != Phase::SyncFail)
            .map(group_of);
        let is_last = |task: &&Task| !task.is_hook && Some(group_of(task)) == last;
        let begun = !self.state.resources.is_empty() && self.pending().is_empty();
        let quiet = self.running().iter().all(is_last) && !self.running().is_empty();
        let intents = self.state.resources.iter().any(ResourceResult::is_intent);
        if !begun || !quiet || intents || self.has_failed() {
            return false;
        }
        self.release_hooks();
        self.succeed("successfully synced (all tasks run)");
        true
    }

    /// Looks at what is running: hooks are done when they are healthy, other objects when they are or have no health.
    fn refresh_running(&mut self) {
        let unfinished = self.unfinished();
        for task in self.running() {
            // A wave is judged when all of it has been applied.
            let judged = !task.is_prune() && Some(group_of(task)) != unfinished;
            let Some(live) = self.live(task).filter(|_| judged) else {
                continue;
            };
            let health = (self.observed.health)(live);
            let status = health.as_ref().map(Health::status_or_healthy);
            let phase = match (task.is_hook, status) {
                (_, None | Some(Status::Healthy)) => OperationPhase::Succeeded,
                (_, Some(Status::Degraded)) | (true, Some(Status::Unknown)) => OperationPhase::Failed,
                _ => OperationPhase::Running,
            };
            let message = match (task.is_hook, health) {
                (_, Some(health)) => health.message,
                (true, None) => format!("{} created", task.id.key.name),
                (false, None) => String::new(),
            };
            let code = self.result(task).and_then(|result| result.status);
            // What an object that is still on its way says changes too often to be remembered.
            let message = if phase == OperationPhase::Running && !task.is_hook {
                ""
            } else {
                &message
            };
            self.record(task, code, phase, message);
        }
    }

    fn waits_for_running(&mut self) -> bool {
        let groups = |task: &'a Task| group_of(task);
        let multi_step = self.plan.tasks.first().map(groups) != self.plan.tasks.last().map(groups);
        let unfinished = self.unfinished();
        let mut running = self.running();
        running.retain(|task| (multi_step || task.is_hook) && Some(group_of(task)) != unfinished);
        self.wait_for(&running, "healthy state of")
    }

    /// What was pruned in an earlier wave has to be gone.
    fn waits_for_deletion(&mut self) -> bool {
        if self.pending().is_empty() || self.plan.dry_run {
            return false;
        }
        let is_going = |task: &&Task| {
            let pruned = self.result(task).and_then(|result| result.status) == Some(ResultCode::Pruned);
            pruned && self.live(task).is_some()
        };
        let going: Vec<&Task> = self.plan.tasks.iter().filter(is_going).collect();
        self.wait_for(&going, "deletion of")
    }

    fn wait_for(&mut self, tasks: &[&Task], what: &str) -> bool {
        let Some(first) = tasks.first() else {
            return false;
        };
        let (what, more) = match first.is_hook && what != "deletion of" {
            true => ("completion of hook", "hooks"),
            false => (what, "resources"),
        };
        let ResourceKey {
            group, kind, name, ..
        } = &first.id.key;
        let mut message = format!("waiting for {what} {group}/{kind}/{name}");
        if tasks.len() > 1 {
            message = format!("{message} and {} more {more}", tasks.len() - 1);
        }
        self.state.set(OperationPhase::Running, message);
        true
    }

    /// Hooks that are done need not be held any more.
    fn release_hooks(&mut self) {
        for task in self.plan.tasks.iter().filter(|task| task.is_hook) {
            if self.phase_of(task).is_some_and(OperationPhase::is_completed) {
                self.release(task);
            }
        }
    }

    fn release(&mut self, task: &Task) {
        let held = self.live(task).is_some_and(|live| {
            let finalizers = live["metadata"]["finalizers"].as_array();
            finalizers.is_some_and(|list| list.iter().any(|name| name == HOOK_FINALIZER))
        });
        let action = Action::ReleaseHook {
            key: task.id.key.clone(),
        };
        if held && !self.actions.contains(&action) {
            self.actions.push(action);
        }
    }

    fn delete(&mut self, task: &Task) {
        self.actions.push(Action::Delete {
            task: task.id.clone(),
            propagation: self.plan.options.propagation,
        });
    }

    /// Deletes hooks that are done and shall not stay.
    fn delete_hooks(&mut self, policy: DeletePolicy) {
        for task in self.plan.tasks.iter().filter(|task| task.is_hook) {
            let done = self.phase_of(task).is_some_and(OperationPhase::is_completed);
            let wanted = task
                .target
                .as_ref()
                .is_some_and(|hook| hook::delete_policies(hook).contains(&policy));
            if done && wanted && self.live(task).is_some() {
                self.delete(task);
            }
        }
    }

    fn succeed(&mut self, message: &str) {
        self.delete_hooks(DeletePolicy::HookSucceeded);
        self.state.set(OperationPhase::Succeeded, message);
    }
}

/// What runs together.
fn group_of(task: &Task) -> (Phase, i64) {
    (task.id.phase, task.wave)
}
