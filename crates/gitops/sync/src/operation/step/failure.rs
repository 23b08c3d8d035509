//! How a sync ends badly: hooks for it run, and what went wrong is said.

use super::{OperationPhase, ResultCode, Run, Task};
use crate::hook::{DeletePolicy, Phase};

impl<'a> Run<'a> {
    /// Whether something that is not itself there for a failure has failed, and nothing of its wave is left to do.
    pub(super) fn has_failed(&self) -> bool {
        let is_bad = |task: &&Task| {
            let bad = matches!(
                self.phase_of(task),
                Some(OperationPhase::Failed | OperationPhase::Error)
            );
            bad && task.id.phase != Phase::SyncFail
        };
        let mut bad = self.plan.tasks.iter().filter(is_bad).peekable();
        if bad.peek().is_none() {
            return false;
        }
        // What was refused does not keep the rest of its wave from being tried; anything else does.
        let next = self.unfinished();
        let refused = |task: &Task| {
            let code = self.result(task).and_then(|result| result.status);
            code == Some(ResultCode::SyncFailed) && !task.is_prune() && Some(super::group_of(task)) == next
        };
        let servable = self.pending().iter().any(|task| (self.observed.is_served)(task));
        !(bad.all(refused) && servable)
    }

    /// A message with the reasons of all that was refused.
    pub(super) fn with_reasons(&self, message: &str) -> String {
        let mut reasons: Vec<&str> = Vec::new();
        for result in &self.state.resources {
            let refused =
                result.status == Some(ResultCode::SyncFailed) && result.sync_phase != Phase::SyncFail;
            if refused && !result.message.is_empty() && !reasons.contains(&result.message.as_str()) {
                reasons.push(&result.message);
            }
        }
        match reasons.is_empty() {
            true => message.to_owned(),
            false => format!("{message}, reason: {}", reasons.join(",")),
        }
    }

    /// Ends the sync, after the hooks that are there for it.
    pub(super) fn fail(&mut self) {
        let refused = self
            .state
            .resources
            .iter()
            .any(|result| result.status == Some(ResultCode::SyncFailed));
        let mut message = self.with_reasons(match refused {
            true => "one or more objects failed to apply",
            false => "one or more synchronization tasks completed unsuccessfully",
        });
        let for_failure: Vec<&'a Task> = self
            .plan
            .tasks
            .iter()
            .filter(|task| task.id.phase == Phase::SyncFail)
            .collect();
        let is_done = |task: &&Task| self.phase_of(task).is_some_and(OperationPhase::is_completed);
        if for_failure.iter().all(is_done) {
            let is_bad = |task: &&Task| self.phase_of(task) != Some(OperationPhase::Succeeded);
            if for_failure.iter().any(is_bad) {
                message.push_str("\none or more SyncFail hooks failed");
            }
            self.delete_hooks(DeletePolicy::HookFailed);
            self.state.set(OperationPhase::Failed, message);
            return;
        }
        self.state.set(OperationPhase::Running, message);
        let pending: Vec<&'a Task> = for_failure
            .into_iter()
            .filter(|task| self.phase_of(task).is_none())
            .collect();
        let first = pending.first().map(|task| task.wave);
        let wave: Vec<&'a Task> = pending
            .into_iter()
            .filter(|task| Some(task.wave) == first)
            .collect();
        self.run_wave(&wave);
    }

    /// Ends the sync because somebody wants it: hooks that are still running are deleted.
    pub(super) fn terminate(&mut self) {
        for task in self.running().into_iter().filter(|task| task.is_hook) {
            if self.live(task).is_some() {
                self.release(task);
                self.delete(task);
            }
            let code = self.result(task).and_then(|result| result.status);
            self.record(task, code, OperationPhase::Succeeded, "Deleted");
        }
        self.state.set(OperationPhase::Failed, "Operation terminated");
    }
}
