//! What became of the actions of the step before, and what a crash left open.

use super::{Action, Outcome, Run};
use crate::operation::plan::Task;
use crate::operation::state::{OperationPhase, ResultCode, TaskId};

impl<'a> Run<'a> {
    fn task(&self, id: &TaskId) -> Option<&'a Task> {
        self.tasks.get(id).copied()
    }

    pub(super) fn absorb(&mut self) {
        let (mut tried, mut refused) = (false, false);
        for outcome in self.observed.outcomes {
            match outcome {
                Outcome::DryRun(id, result) => {
                    tried = true;
                    refused |= result.is_err();
                    self.absorb_dry_run(id, result);
                }
                Outcome::Applied(id, result) => {
                    let Some(task) = self.task(id) else {
                        continue;
                    };
                    match result {
                        Ok(message) => {
                            self.record(task, Some(ResultCode::Synced), OperationPhase::Running, message);
                        }
                        Err(why) => {
                            self.record(task, Some(ResultCode::SyncFailed), OperationPhase::Failed, why);
                        }
                    }
                }
                Outcome::Deleted(id, result) => {
                    if let Some(task) = self.task(id) {
                        self.absorb_deletion(task, result);
                    }
                }
            }
        }
        if refused {
            let message = "one or more objects failed to apply (dry run)";
            self.state.set(OperationPhase::Failed, self.with_reasons(message));
        }
        self.state.checked |= tried;
    }

    fn absorb_dry_run(&mut self, id: &TaskId, result: &Result<String, String>) {
        let Some(task) = self.task(id) else {
            return;
        };
        match result {
            Err(why) => self.record(task, Some(ResultCode::SyncFailed), OperationPhase::Failed, why),
            Ok(message) if self.plan.dry_run => {
                self.record(task, Some(ResultCode::Synced), OperationPhase::Succeeded, message);
            }
            Ok(_) => {}
        }
    }

    fn absorb_deletion(&mut self, task: &Task, result: &Result<(), String>) {
        match (task.is_prune(), result) {
            (true, Ok(())) => self.record(
                task,
                Some(ResultCode::Pruned),
                OperationPhase::Succeeded,
                "pruned",
            ),
            (true, Err(why)) => self.record(task, Some(ResultCode::SyncFailed), OperationPhase::Failed, why),
            // That an old hook goes is seen when it is gone.
            (false, Ok(())) => {}
            (false, Err(why)) => {
                let code = self.result(task).and_then(|result| result.status);
                let message = format!("failed to delete resource: {why}");
                self.record(task, code, OperationPhase::Error, &message);
            }
        }
    }

    /// Takes up what was about to be done when somebody stopped: what is there has been done, the rest is done again.
    pub(super) fn resume(&mut self) -> bool {
        let open: Vec<&'a Task> = self
            .plan
            .tasks
            .iter()
            .filter(|task| self.result(task).is_some_and(|result| result.is_intent()))
            .collect();
        let mut again = false;
        for task in open {
            let live = self.live(task);
            match (task.is_prune(), live) {
                (true, None) => self.record(
                    task,
                    Some(ResultCode::Pruned),
                    OperationPhase::Succeeded,
                    "pruned",
                ),
                (true, Some(_)) => {
                    self.delete(task);
                    again = true;
                }
                // An old hook was gone before this one was about to be made: it is this one, and must not run twice.
                (false, Some(_)) if task.is_hook => {
                    self.record(task, Some(ResultCode::Synced), OperationPhase::Running, "");
                }
                (false, _) => {
                    self.apply(task, false);
                    again = true;
                }
            }
        }
        if again {
            self.state
                .set(OperationPhase::Running, "one or more tasks are running");
        }
        again
    }

    /// The plan names something that may not be.
    pub(super) fn is_invalid(&mut self) -> bool {
        for (id, why) in &self.plan.invalid {
            if let Some(task) = self.task(id) {
                self.record(task, Some(ResultCode::SyncFailed), OperationPhase::Failed, why);
            }
        }
        if !self.plan.invalid.is_empty() {
            let message = "one or more synchronization tasks are not valid";
            self.state.set(OperationPhase::Failed, self.with_reasons(message));
        }
        !self.plan.invalid.is_empty()
    }

    /// Makes the namespace and tries everything out before anything is done; whether that is behind us.
    pub(super) fn prepare(&mut self) -> bool {
        let namespace = self.plan.tasks.first().filter(|task| task.wave == i64::MIN);
        let only_namespace = self.state.resources.iter().all(|result| {
            namespace.is_some_and(|task| result.sync_phase == task.id.phase && result.key == task.id.key)
        });
        if self.state.checked || !only_namespace {
            return true;
        }
        if let Some(task) = namespace {
            let result = self.result(task);
            let is_open = result.is_none_or(|result| result.is_intent());
            if is_open && self.live(task).is_none() {
                self.record(task, None, OperationPhase::Running, "");
                self.apply(task, false);
                self.state
                    .set(OperationPhase::Running, "one or more tasks are running");
                return false;
            }
            if self.phase_of(task) == Some(OperationPhase::Failed) {
                self.state.set(
                    OperationPhase::Failed,
                    self.with_reasons("the namespace failed to apply"),
                );
                return false;
            }
        }
        self.try_out(namespace);
        if self.state.phase.is_completed() {
            return false;
        }
        if self.actions.is_empty() {
            self.state.checked = true;
            return true;
        }
        self.state
            .set(OperationPhase::Running, "one or more tasks are running");
        false
    }

    /// A sync that is only tried ends with the dry run, whatever that could not try.
    pub(super) fn is_only_tried(&mut self) -> bool {
        if !self.plan.dry_run {
            return false;
        }
        if !self.state.checked {
            self.try_out(None);
        }
        if !self.state.phase.is_completed() {
            match self.actions.is_empty() {
                true => self
                    .state
                    .set(OperationPhase::Succeeded, "successfully synced (no more tasks)"),
                false => self
                    .state
                    .set(OperationPhase::Running, "one or more tasks are running"),
            }
        }
        true
    }

    fn try_out(&mut self, namespace: Option<&Task>) {
        let mut unknown = false;
        for task in &self.plan.tasks {
            let skipped = self.plan.options.apply_out_of_sync_only && task.is_in_sync;
            if skipped || namespace.is_some_and(|namespace| namespace.id == task.id) {
                continue;
            }
            if task.is_prune() {
                if self.plan.dry_run {
                    self.prune_dry(task);
                }
            } else if self.makes_room(task) {
                // Nothing can be tried with what is going, and what comes after it is another object.
                if self.plan.dry_run {
                    let message = "not tried: the hook of an earlier sync is still going";
                    self.record(task, Some(ResultCode::Synced), OperationPhase::Succeeded, message);
                }
            } else if (self.observed.is_served)(task) {
                self.apply(task, true);
            } else if !self.may_be_missing(task) {
                unknown = true;
                let why = no_such_kind(task);
                self.record(task, Some(ResultCode::SyncFailed), OperationPhase::Failed, &why);
            } else if self.plan.dry_run {
                let message = "not tried: its kind is not defined yet";
                self.record(task, Some(ResultCode::Synced), OperationPhase::Succeeded, message);
            }
        }
        if unknown {
            self.actions
                .retain(|action| !matches!(action, Action::Apply { dry_run: true, .. }));
            let message = "one or more synchronization tasks are not valid";
            self.state.set(OperationPhase::Failed, self.with_reasons(message));
        }
    }

    /// Whether the hook of an earlier sync is on its way out.
    fn makes_room(&self, task: &Task) -> bool {
        let is_going = |live: &serde_json::Value| !live["metadata"]["deletionTimestamp"].is_null();
        task.is_hook && self.live(task).is_some_and(is_going)
    }

    /// Whether a kind that the API does not have yet is no reason to fail.
    pub(super) fn may_be_missing(&self, task: &Task) -> bool {
        let own = task.target.as_ref().is_some_and(|target| {
            let annotation = crate::annotation::SYNC_OPTIONS;
            crate::annotation::has_option(target, annotation, "SkipDryRunOnMissingResource=true")
        });
        own || task.defined_here
            || self.plan.options.skip_dry_run_on_missing_resource
            || self.observed.wait_for_kinds
    }

    fn prune_dry(&mut self, task: &Task) {
        let (code, message) = match task.keep {
            Some(why) => (ResultCode::PruneSkipped, why),
            None => (ResultCode::Pruned, "pruned (dry run)"),
        };
        self.record(task, Some(code), OperationPhase::Succeeded, message);
    }
}

/// The words that Argo CD's users know for it.
pub(super) fn no_such_kind(task: &Task) -> String {
    let key = &task.id.key;
    format!(
        "The Kubernetes API could not find {}/{} for requested resource {}/{}. Make sure the \"{}\" CRD is installed on \
         the destination cluster.",
        key.group, key.kind, key.namespace, key.name, key.kind
    )
}
