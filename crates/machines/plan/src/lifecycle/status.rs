//! What the status of a machine says.

use super::{Action, Course, Decision, Expected, Observed, Status, is_final, start_failure, strategy};
use crate::view::{Condition, RunStrategy, StartFailure, StateChangeRequest, VirtualMachineInstance};

/// Conditions that are not taken over from the instance as they are.
const OWN: [&str; 3] = ["Ready", "Failure", "RestartRequired"];

pub(super) fn write(observed: &Observed<'_>, mut course: Course) -> Decision {
    let (vm, vmi) = (observed.vm, observed.vmi);
    let strategy = vm.spec.strategy();
    let created = vmi.is_some();
    let is_true = |kind: &str| vmi.is_some_and(|it| Condition::is_true(&it.status.conditions, kind));
    if is_done(course.requests.first(), vmi, &course.actions) {
        course.requests.remove(0);
    }
    let failure = start_failure::next(
        vm.status.start_failure.as_ref(),
        vmi,
        strategy,
        observed.now,
        observed.chance,
    );
    let steady = vmi.and_then(|it| start_failure::until_steady(it, observed.now));
    if let Some(left) = steady.filter(|_| failure.is_some()) {
        course.look_again = Some(course.look_again.map_or(left, |it| it.min(left)));
    }
    if let Some(ended) = vmi.filter(|it| is_final(it) && !it.metadata.finalizers.is_empty()) {
        course.actions.push(Action::ReleaseInstance {
            uid: ended.metadata.uid.clone(),
        });
    }
    // A strategy is in force from the first instance on: so one can tell that there was one.
    let in_force = created || !vm.status.run_strategy.is_empty();
    let starting = observed.expected == Some(Expected::Start)
        || course
            .actions
            .iter()
            .any(|it| matches!(it, Action::CreateInstance { .. }));
    let stopping = observed.expected == Some(Expected::Stop)
        || course
            .actions
            .iter()
            .any(|it| matches!(it, Action::DeleteInstance { .. }));
    let status = Status {
        created,
        ready: is_true("Ready"),
        printable_status: printable(observed, failure.as_ref(), starting, stopping),
        conditions: conditions(observed, &course),
        state_change_requests: course.requests,
        start_failure: failure,
        run_strategy: in_force.then_some(strategy),
        desired_generation: vm.metadata.generation,
    };
    Decision {
        actions: course.actions,
        status,
        events: course.events,
        look_again: course.look_again,
    }
}

/// Whether the first of the requests has been done. The others have not been looked at yet.
fn is_done(
    request: Option<&StateChangeRequest>,
    vmi: Option<&VirtualMachineInstance>,
    actions: &[Action],
) -> bool {
    let Some(request) = request else {
        return false;
    };
    let stopping = actions
        .iter()
        .any(|it| matches!(it, Action::DeleteInstance { .. }));
    match (request.action.as_str(), vmi) {
        ("Stop", None) => true,
        ("Stop", Some(vmi)) => request.uid.as_deref() != Some(&vmi.metadata.uid),
        ("Start", Some(vmi)) => vmi.metadata.deletion_timestamp.is_none() && !is_final(vmi) && !stopping,
        _ => false,
    }
}

fn conditions(observed: &Observed<'_>, course: &Course) -> Vec<Condition> {
    let mut found = Vec::new();
    let theirs: &[Condition] = observed.vmi.map_or(&[], |it| &it.status.conditions);
    found.push(
        match (observed.vmi, theirs.iter().find(|it| it.kind == "Ready")) {
            (None, _) => Condition::fails("Ready", "VMINotExists", "VMI does not exist"),
            (Some(_), None) => Condition::fails(
                "Ready",
                "VMIConditionMissing",
                "VMI is missing the Ready condition",
            ),
            (Some(_), Some(ready)) => ready.clone(),
        },
    );
    if let Some(failure) = &course.failure {
        found.push(Condition::holds(
            "Failure",
            failure.reason,
            failure.message.clone(),
        ));
    }
    let own = &observed.vm.status.conditions;
    if let Some(why) = &course.restart_required {
        found.push(Condition::holds("RestartRequired", "", why.clone()));
    } else if !course.restarted {
        found.extend(own.iter().find(|it| it.kind == "RestartRequired").cloned());
    }
    if observed.vmi.is_some() {
        found.extend(
            theirs
                .iter()
                .filter(|it| !OWN.contains(&it.kind.as_str()))
                .cloned(),
        );
    } else {
        // What the last instance said stays until there is another.
        found.extend(own.iter().filter(|it| !OWN.contains(&it.kind.as_str())).cloned());
    }
    found.sort_by(|a, b| a.kind.cmp(&b.kind));
    found
}

/// The word that people see. Several may be true at once; the first of this order is shown.
fn printable(
    observed: &Observed<'_>,
    failure: Option<&StartFailure>,
    starting: bool,
    stopping: bool,
) -> &'static str {
    let (vm, vmi) = (observed.vm, observed.vmi);
    let phase = vmi.map_or("", |it| it.status.phase.as_str());
    let ended = vmi.is_some_and(is_final);
    let conditions: &[Condition] = vmi.map_or(&[], |it| &it.status.conditions);
    let says = |kind: &str, reason: &str| {
        conditions
            .iter()
            .any(|it| it.kind == kind && it.status == "False" && it.reason == reason)
    };
    let paused = Condition::is_true(conditions, "Paused");
    let leaving = vmi.is_some_and(|it| it.metadata.deletion_timestamp.is_some());
    let again = matches!(
        vm.spec.strategy(),
        RunStrategy::Always | RunStrategy::RerunOnFailure | RunStrategy::Once
    );
    let to_run = strategy::is_to_run(vm, vmi);
    let words = [
        ("Terminating", vm.metadata.deletion_timestamp.is_some()),
        ("Stopping", vmi.is_some() && !ended && (leaving || stopping)),
        ("Migrating", vmi.is_some_and(is_migrating)),
        ("Paused", phase == "Running" && paused),
        ("Running", phase == "Running" && !paused),
        ("ErrorPvcNotFound", says("Synchronized", "FailedPvcNotFound")),
        ("DataVolumeError", observed.volumes.failed.is_some()),
        ("ErrorUnschedulable", says("PodScheduled", "Unschedulable")),
        (
            "Provisioning",
            observed.volumes.provisioning || !observed.volumes.missing.is_empty(),
        ),
        ("WaitingForVolumeBinding", observed.volumes.unbound && to_run),
        ("ErrImagePull", says("Synchronized", "ErrImagePull")),
        ("ImagePullBackOff", says("Synchronized", "ImagePullBackOff")),
        (
            "Starting",
            (vmi.is_none() && starting) || matches!(phase, "Pending" | "Scheduling" | "Scheduled"),
        ),
        ("Starting", vmi.is_some() && phase.is_empty()),
        (
            "CrashLoopBackOff",
            (vmi.is_none() || ended) && !starting && again && failure.is_some_and(|it| waits(it, vmi)),
        ),
        ("Stopped", ended || (vmi.is_none() && !starting)),
    ];
    words
        .into_iter()
        .find(|(_, holds)| *holds)
        .map_or("Unknown", |(word, _)| word)
}

/// Whether a start waits because of those that failed: the first guest that ran for a moment does not let it.
fn waits(failure: &StartFailure, vmi: Option<&VirtualMachineInstance>) -> bool {
    failure.consecutive_fail_count > 1 || !vmi.is_some_and(start_failure::has_run)
}

pub(super) fn is_migrating(vmi: &VirtualMachineInstance) -> bool {
    let state = vmi.status.migration_state.as_ref();
    state.is_some_and(|it| !it["startTimestamp"].is_null() && it["endTimestamp"].is_null())
}
