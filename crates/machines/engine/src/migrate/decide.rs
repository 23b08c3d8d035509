//! What becomes of a migration: a pure decision.

use std::borrow::Cow;

use serde_json::Value;

use crate::objects::{is_leaving, text};

/// How far a migration is, in upstream's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Unset,
    Pending,
    Scheduling,
    Scheduled,
    PreparingTarget,
    TargetReady,
    Running,
    Succeeded,
    Failed,
}

impl Phase {
    const ALL: [(Self, &'static str); 9] = [
        (Self::Unset, ""),
        (Self::Pending, "Pending"),
        (Self::Scheduling, "Scheduling"),
        (Self::Scheduled, "Scheduled"),
        (Self::PreparingTarget, "PreparingTarget"),
        (Self::TargetReady, "TargetReady"),
        (Self::Running, "Running"),
        (Self::Succeeded, "Succeeded"),
        (Self::Failed, "Failed"),
    ];

    pub(super) fn of(migration: &Value) -> Self {
        let word = text(migration, "/status/phase");
        let found = Self::ALL.into_iter().find(|(_, it)| *it == word);
        found.map_or(Self::Unset, |(phase, _)| phase)
    }

    pub(super) fn word(self) -> &'static str {
        let found = Self::ALL.into_iter().find(|(phase, _)| *phase == self);
        found.map_or("", |(_, word)| word)
    }

    pub(super) fn is_final(self) -> bool {
        self >= Self::Succeeded
    }
}

/// What is known of a migration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed<'o> {
    pub(super) migration: &'o Value,
    /// The instance that is to move.
    pub(super) vmi: Option<&'o Value>,
    /// Another migration of it is under way.
    pub(super) other: bool,
    /// Its target is not heard of.
    pub(super) target_lost: bool,
    /// Nothing runs on its target any more, for sure.
    pub(super) target_ended: bool,
    /// Nothing runs on its source any more, for sure.
    pub(super) source_ended: bool,
    /// The target has had its time to get ready.
    pub(super) too_late: bool,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing.
    Wait,
    /// It is so far.
    To(Phase),
    /// A node is to be found for it.
    Place,
    /// It has failed, and why.
    Fail(Cow<'static, str>),
    /// It is ended in the instance, as no node will do so; and why.
    End(&'static str),
    /// The nodes are asked to end it.
    Abort,
    /// It is over: what is left is to keep what became of it, and to let it go.
    Finish,
    /// It is about nothing any more, as its instance is gone.
    Remove,
}

/// Somebody took it back.
const CANCELED: &str = "Migration failed due to being canceled";

fn fail(why: &'static str) -> Next {
    Next::Fail(why.into())
}

/// Decides what to do next with a migration.
pub(super) fn decide(observed: &Observed<'_>) -> Next {
    let migration = observed.migration;
    let phase = Phase::of(migration);
    let Some(vmi) = observed.vmi else {
        return Next::Remove;
    };
    if phase.is_final() {
        return Next::Finish;
    }
    if matches!(text(vmi, "/status/phase"), "Succeeded" | "Failed") {
        return fail("Migration failed vmi shutdown during migration.");
    }
    let state = &vmi["status"]["migrationState"];
    let ours = state["migrationUid"] == migration["metadata"]["uid"];
    let leaving = is_leaving(migration);
    if !ours {
        return match phase {
            _ if leaving => fail(CANCELED),
            Phase::Unset if observed.other => {
                fail("VMI is not eligible for migration because another migration job is in progress.")
            }
            Phase::Unset => Next::To(Phase::Pending),
            Phase::Pending | Phase::Scheduling | Phase::Scheduled => match text(vmi, "/status/phase") {
                "Running" if !is_leaving(vmi) => Next::Place,
                _ => Next::Wait,
            },
            _ if state.is_null() => fail("VMI's migration state was cleared during the active migration."),
            _ => {
                fail("VMI's migration state was taken over by another migration job during active migration.")
            }
        };
    }
    if state["failed"] == true {
        return match (leaving, text(state, "/failureReason")) {
            (true, _) => fail(CANCELED),
            (false, "") => fail("source node reported migration failed"),
            (false, why) => Next::Fail(format!("source node reported migration failed: {why}").into()),
        };
    }
    if state["completed"] == true {
        return Next::To(Phase::Succeeded);
    }
    let begun = !state["startTimestamp"].is_null();
    if begun && observed.target_ended {
        return Next::End("Target node was lost during the migration");
    }
    // The guest may run at the target, or never will: who is there knows.
    if begun && observed.source_ended && state["abortRequested"] != true {
        return Next::Abort;
    }
    if leaving {
        return match (begun, state["abortRequested"] == true) {
            (false, _) => Next::End("Migration was canceled before it began"),
            (true, false) => Next::Abort,
            (true, true) => Next::Wait,
        };
    }
    if !begun && observed.target_lost {
        return Next::End("Target node is not responsive");
    }
    if !begun && observed.too_late {
        return Next::End("Target node did not get ready in time");
    }
    let reached = match () {
        () if begun => Phase::Running,
        () if !text(state, "/targetNodeAddress").is_empty() => Phase::TargetReady,
        () if phase >= Phase::Scheduled => Phase::PreparingTarget,
        () => Phase::Scheduled,
    };
    match reached > phase {
        true => Next::To(reached),
        false => Next::Wait,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn next(phase: &str, leaving: bool, vmi: &Value, change: impl Fn(&mut Observed<'_>)) -> Next {
        let mut migration = json!({"metadata": {"uid": "m-1"}, "status": {"phase": phase}});
        if leaving {
            migration["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        let mut observed = Observed {
            migration: &migration,
            vmi: Some(vmi).filter(|it| !it.is_null()),
            other: false,
            target_lost: false,
            target_ended: false,
            source_ended: false,
            too_late: false,
        };
        change(&mut observed);
        decide(&observed)
    }

    fn vmi(state: Value) -> Value {
        json!({"status": {"phase": "Running", "migrationState": state}})
    }

    #[test]
    fn the_way_of_a_migration() {
        let ours = |more: Value| {
            let mut state = json!({"migrationUid": "m-1", "targetNode": "n2"});
            for (field, value) in more.as_object().unwrap() {
                state[field] = value.clone();
            }
            vmi(state)
        };
        let canceled = fail(CANCELED);
        let ended = Next::End("Migration was canceled before it began");
        let starting = json!({"status": {"phase": "Scheduled"}});
        let sending = json!({"startTimestamp": "t"});
        let cases = [
            ("accepted", "", false, vmi(json!(null)), Next::To(Phase::Pending)),
            (
                "looks for a node",
                "Pending",
                false,
                vmi(json!(null)),
                Next::Place,
            ),
            (
                "another one is over",
                "Pending",
                false,
                vmi(json!({"migrationUid": "m-0", "completed": true})),
                Next::Place,
            ),
            (
                "the guest does not run yet",
                "Pending",
                false,
                starting,
                Next::Wait,
            ),
            (
                "handed over, and not said so",
                "Pending",
                false,
                ours(json!({})),
                Next::To(Phase::Scheduled),
            ),
            (
                "handed over",
                "Scheduled",
                false,
                ours(json!({})),
                Next::To(Phase::PreparingTarget),
            ),
            (
                "the target prepares",
                "PreparingTarget",
                false,
                ours(json!({})),
                Next::Wait,
            ),
            (
                "the target listens",
                "PreparingTarget",
                false,
                ours(json!({"targetNodeAddress": "a"})),
                Next::To(Phase::TargetReady),
            ),
            (
                "the source sends",
                "TargetReady",
                false,
                ours(sending.clone()),
                Next::To(Phase::Running),
            ),
            (
                "quicker than we look",
                "Scheduled",
                false,
                ours(sending.clone()),
                Next::To(Phase::Running),
            ),
            ("under way", "Running", false, ours(sending.clone()), Next::Wait),
            (
                "done",
                "Running",
                false,
                ours(json!({"completed": true})),
                Next::To(Phase::Succeeded),
            ),
            (
                "failed",
                "Running",
                false,
                ours(json!({"completed": true, "failed": true})),
                fail("source node reported migration failed"),
            ),
            (
                "failed, and why",
                "Running",
                false,
                ours(json!({"completed": true, "failed": true, "failureReason": "QEMU ended"})),
                Next::Fail("source node reported migration failed: QEMU ended".into()),
            ),
            (
                "canceled, and the nodes have ended it",
                "Running",
                true,
                ours(json!({"completed": true, "failed": true, "failureReason": "canceled"})),
                canceled.clone(),
            ),
            ("over", "Succeeded", false, ours(json!({})), Next::Finish),
            (
                "over, and the instance is gone",
                "Failed",
                false,
                json!(null),
                Next::Remove,
            ),
            ("no instance", "Pending", false, json!(null), Next::Remove),
            (
                "the guest has ended",
                "Running",
                false,
                json!({"status": {"phase": "Succeeded"}}),
                fail("Migration failed vmi shutdown during migration."),
            ),
            (
                "forgotten",
                "Running",
                false,
                vmi(json!(null)),
                fail("VMI's migration state was cleared during the active migration."),
            ),
            (
                "taken over",
                "TargetReady",
                false,
                vmi(json!({"migrationUid": "m-2"})),
                fail(
                    "VMI's migration state was taken over by another migration job during active migration.",
                ),
            ),
            ("canceled at once", "Pending", true, vmi(json!(null)), canceled),
            (
                "canceled in time",
                "PreparingTarget",
                true,
                ours(json!({})),
                ended,
            ),
            ("canceled on the way", "Running", true, ours(sending), Next::Abort),
            (
                "canceling takes its time",
                "Running",
                true,
                ours(json!({"startTimestamp": "t", "abortRequested": true})),
                Next::Wait,
            ),
            (
                "too late to cancel",
                "Running",
                true,
                ours(json!({"completed": true})),
                Next::To(Phase::Succeeded),
            ),
        ];
        for (name, phase, leaving, vmi, expected) in cases {
            assert_eq!(next(phase, leaving, &vmi, |_| {}), expected, "{name}");
        }
    }

    #[test]
    fn what_may_go_wrong_before_it_begins() {
        let other = fail("VMI is not eligible for migration because another migration job is in progress.");
        assert_eq!(next("", false, &vmi(json!(null)), |it| it.other = true), other);
        let ours = vmi(json!({"migrationUid": "m-1", "targetNode": "n2"}));
        let lost = next("PreparingTarget", false, &ours, |it| it.target_lost = true);
        assert_eq!(lost, Next::End("Target node is not responsive"));
        let late = next("PreparingTarget", false, &ours, |it| it.too_late = true);
        assert_eq!(late, Next::End("Target node did not get ready in time"));
        let begun = vmi(json!({"migrationUid": "m-1", "targetNode": "n2", "startTimestamp": "t"}));
        let lost = next("Running", false, &begun, |it| it.target_lost = true);
        assert_eq!(lost, Next::Wait, "its source finds out");
    }
    #[test]
    fn nodes_that_are_lost_on_the_way() {
        let begun = |more: Value| {
            let mut state = json!({"migrationUid": "m-1", "targetNode": "n2", "startTimestamp": "t"});
            for (field, value) in more.as_object().unwrap() {
                state[field] = value.clone();
            }
            vmi(state)
        };
        let target = next("Running", false, &begun(json!({})), |it| it.target_ended = true);
        assert_eq!(target, Next::End("Target node was lost during the migration"));
        let source = |more: Value| next("Running", false, &begun(more), |it| it.source_ended = true);
        assert_eq!(source(json!({})), Next::Abort, "the target knows what it has");
        assert_eq!(source(json!({"abortRequested": true})), Next::Wait);
        assert_eq!(
            source(json!({"completed": true})),
            Next::To(Phase::Succeeded),
            "it had arrived"
        );
    }
}
