//! One wave: what is extra goes first, then old hooks, then the rest is applied kind by kind.

use super::outcome::no_such_kind;
use super::{OperationPhase, ResultCode, Run, Task};
use crate::hook::{self, DeletePolicy};

impl<'a> Run<'a> {
    /// Begins what comes next of these tasks, which are all pending.
    pub(super) fn run_wave(&mut self, tasks: &[&'a Task]) {
        if self.waits_for_confirmation(tasks) || self.prune(tasks) || self.delete_old_hooks(tasks) {
            return;
        }
        self.apply_next_kind(tasks);
    }

    fn waits_for_confirmation(&mut self, tasks: &[&'a Task]) -> bool {
        if self.plan.prune_confirmed {
            return false;
        }
        let unconfirmed = |task: &&&Task| task.is_prune() && task.confirm && task.keep.is_none();
        let waiting: Vec<&&Task> = tasks.iter().filter(unconfirmed).collect();
        let Some(first) = waiting.first() else {
            return false;
        };
        let key = &first.id.key;
        let group = match key.group.as_str() {
            "" => first.version.clone(),
            group => format!("{group}/{}", first.version),
        };
        let more = match waiting.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more resources"),
        };
        let message = format!(
            "Waiting for pruning confirmation of {group}/{}/{}{more}",
            key.kind, key.name
        );
        self.state.set(OperationPhase::Running, message);
        true
    }

    /// Whether something is being pruned now.
    fn prune(&mut self, tasks: &[&'a Task]) -> bool {
        let mut deleting = false;
        for task in tasks.iter().filter(|task| task.is_prune()) {
            if let Some(why) = task.keep {
                self.record(
                    task,
                    Some(ResultCode::PruneSkipped),
                    OperationPhase::Succeeded,
                    why,
                );
                continue;
            }
            let live = self.live(task);
            let going = live.is_none_or(|live| !live["metadata"]["deletionTimestamp"].is_null());
            if going {
                self.record(
                    task,
                    Some(ResultCode::Pruned),
                    OperationPhase::Succeeded,
                    "pruned",
                );
                continue;
            }
            self.record(task, None, OperationPhase::Running, "");
            self.delete(task);
            deleting = true;
        }
        deleting
    }

    /// Hooks of an earlier sync make room; whether that takes time.
    fn delete_old_hooks(&mut self, tasks: &[&'a Task]) -> bool {
        let is_old = |task: &&&Task| {
            let target = task.target.as_ref().filter(|_| task.is_hook);
            let wanted = target
                .is_some_and(|hook| hook::delete_policies(hook).contains(&DeletePolicy::BeforeHookCreation));
            wanted && self.live(task).is_some()
        };
        let old: Vec<&Task> = tasks.iter().filter(is_old).copied().collect();
        for task in &old {
            self.release(task);
            if self
                .live(task)
                .is_some_and(|live| live["metadata"]["deletionTimestamp"].is_null())
            {
                self.delete(task);
            }
        }
        self.wait_for(&old, "deletion of")
    }

    /// Applies all pending objects of the first kind that the API has.
    fn apply_next_kind(&mut self, tasks: &[&'a Task]) {
        let wanted: Vec<&Task> = tasks
            .iter()
            .filter(|task| !task.is_prune() && self.phase_of(task).is_none())
            .copied()
            .collect();
        let Some(first) = wanted.iter().find(|task| (self.observed.is_served)(task)) else {
            self.wait_for_kinds(&wanted);
            return;
        };
        let kind = first.id.key.kind.as_str();
        for task in wanted
            .iter()
            .filter(|task| task.id.key.kind == kind && (self.observed.is_served)(task))
        {
            self.record(task, None, OperationPhase::Running, "");
            self.apply(task, false);
        }
    }

    fn wait_for_kinds(&mut self, wanted: &[&'a Task]) {
        let Some(first) = wanted.first() else {
            return;
        };
        let lost: Vec<&Task> = wanted
            .iter()
            .filter(|task| !self.may_be_missing(task))
            .copied()
            .collect();
        for task in lost {
            self.record(
                task,
                Some(ResultCode::SyncFailed),
                OperationPhase::Failed,
                &no_such_kind(task),
            );
        }
        let key = &first.id.key;
        let message = format!(
            "waiting for the kind {}/{} of {} to be defined",
            key.group, key.kind, key.name
        );
        self.state.set(OperationPhase::Running, message);
    }
}
