//! What a run strategy and what people asked for make of a machine.

use super::{Action, Course, Event, Observed, is_final, start_failure};
use crate::view::{RunStrategy, StateChangeRequest, VirtualMachine, VirtualMachineInstance};

/// The first request, which is the only one that counts.
fn first(vm: &VirtualMachine) -> Option<&StateChangeRequest> {
    vm.status.state_change_requests.first()
}

pub(super) fn wants_start(vm: &VirtualMachine) -> bool {
    first(vm).is_some_and(|it| it.action == "Start")
}

fn wants_start_paused(vm: &VirtualMachine) -> bool {
    let paused = |it: &StateChangeRequest| it.data.as_ref().is_some_and(|data| data["paused"] == "true");
    first(vm).is_some_and(|it| it.action == "Start" && paused(it))
}

pub(super) fn wants_stop_of(vm: &VirtualMachine, vmi: &VirtualMachineInstance) -> bool {
    first(vm).is_some_and(|it| it.action == "Stop" && it.uid.as_deref() == Some(&vmi.metadata.uid))
}

/// Whether the machine is to run, as people see it.
pub(super) fn is_to_run(vm: &VirtualMachine, vmi: Option<&VirtualMachineInstance>) -> bool {
    match (vm.spec.strategy(), vmi) {
        (RunStrategy::Always, _) | (RunStrategy::Once | RunStrategy::RerunOnFailure, None) => true,
        (RunStrategy::Halted, _) | (RunStrategy::Once, Some(_)) => false,
        (RunStrategy::Manual, Some(vmi)) => !wants_stop_of(vm, vmi),
        (RunStrategy::Manual, None) => wants_start(vm),
        (RunStrategy::RerunOnFailure, Some(vmi)) => vmi.status.phase != "Succeeded",
    }
}

pub(super) fn follow(observed: &Observed<'_>, course: &mut Course) {
    let vm = observed.vm;
    match (vm.spec.strategy(), observed.vmi) {
        (RunStrategy::Always, Some(vmi)) => {
            // Who asks to stop such a machine asks for a restart.
            if wants_stop_of(vm, vmi) || is_final(vmi) {
                stop(vmi, observed, course);
            }
        }
        (RunStrategy::Always, None) => start_in_time(observed, course),
        (RunStrategy::RerunOnFailure, Some(vmi)) => {
            let ended = is_final(vmi) || wants_stop_of(vm, vmi);
            if vmi.metadata.deletion_timestamp.is_none() && ended {
                stop(vmi, observed, course);
                if vmi.status.phase == "Failed" {
                    course.requests.push(StateChangeRequest {
                        action: "Start".to_owned(),
                        ..StateChangeRequest::default()
                    });
                }
            }
        }
        (RunStrategy::RerunOnFailure, None) => {
            // A machine that comes from another strategy starts by itself.
            let settled = vm.status.run_strategy == RunStrategy::RerunOnFailure.word();
            if wants_start(vm) || !settled {
                start_in_time(observed, course);
            }
        }
        (RunStrategy::Manual, Some(vmi)) => {
            if wants_stop_of(vm, vmi) {
                stop(vmi, observed, course);
            }
        }
        (RunStrategy::Manual, None) => {
            if wants_start(vm) {
                start(observed, course);
            }
        }
        (RunStrategy::Halted, Some(vmi)) => stop(vmi, observed, course),
        (RunStrategy::Halted, None) => {
            if wants_start(vm) {
                course.actions.push(Action::SetRunning);
            }
        }
        (RunStrategy::Once, Some(_)) => {}
        (RunStrategy::Once, None) => start(observed, course),
    }
}

fn start_in_time(observed: &Observed<'_>, course: &mut Course) {
    let left = start_failure::seconds_left(observed.vm.status.start_failure.as_ref(), observed.now);
    if left > 0 {
        course.look_again = Some(left);
    } else {
        start(observed, course);
    }
}

fn start(observed: &Observed<'_>, course: &mut Course) {
    let vm = observed.vm;
    course.actions.push(Action::CreateInstance {
        paused: wants_start_paused(vm),
    });
    course.restarted = true;
    course.events.push(Event {
        warning: false,
        reason: "SuccessfulCreate",
        message: format!(
            "Started the virtual machine by creating the new virtual machine instance {}",
            vm.metadata.name
        ),
    });
}

pub(super) fn stop(vmi: &VirtualMachineInstance, observed: &Observed<'_>, course: &mut Course) {
    if vmi.metadata.deletion_timestamp.is_some() || observed.expected == Some(super::Expected::Stop) {
        return;
    }
    let uid = vmi.metadata.uid.clone();
    course.restarted = true;
    course.events.push(Event {
        warning: false,
        reason: "SuccessfulDelete",
        message: format!("Stopped the virtual machine by deleting the virtual machine instance {uid}"),
    });
    course.actions.push(Action::DeleteInstance { uid });
}
