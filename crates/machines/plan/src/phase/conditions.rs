//! What is to be said about an instance.

use super::{Observed, Obstacle, Pause, Phase, Placement, Process, live_migratable, not_honoured};
use crate::unsupported;
use crate::view::Condition;

pub(super) fn all(observed: &Observed<'_>, phase: Phase) -> Vec<Condition> {
    let mut found = vec![ready(observed, phase)];
    if let Placement::Unschedulable(why) = &observed.placement
        && phase <= Phase::Scheduling
    {
        found.push(Condition::fails("PodScheduled", "Unschedulable", why.clone()));
    }
    found.extend(synchronized(observed));
    if let (Phase::Running, Process::Running(Some(pause))) = (phase, &observed.process) {
        let (reason, message) = match pause {
            Pause::User => ("PausedByUser", "VMI was paused by user"),
            Pause::IoError => ("PausedIOError", "VMI was paused, low-level IO error detected"),
            Pause::StartStrategy => (
                "PausedByUser",
                "VMI was started in paused state by its start strategy",
            ),
            Pause::Migration => (
                "PausedByMigrationMonitor",
                "VMI was paused by the migration monitor",
            ),
        };
        found.push(Condition::holds("Paused", reason, message));
    }
    if phase == Phase::Running && observed.agent {
        found.push(Condition::holds("AgentConnected", "", ""));
    }
    if matches!(phase, Phase::Scheduled | Phase::Running) {
        found.extend(live_migratable(&observed.vmi.spec));
    }
    found.extend(not_honoured(&observed.plan.unsupported));
    found.sort_by(|a, b| a.kind.cmp(&b.kind));
    found
}

fn ready(observed: &Observed<'_>, phase: Phase) -> Condition {
    let not_running = |reason: &str, message: &str| Condition::fails("Ready", reason, message);
    match (phase, &observed.process) {
        (Phase::Succeeded | Phase::Failed, _) => not_running("PodTerminating", "the machine has ended"),
        (Phase::Running, Process::Running(Some(_))) => {
            not_running("GuestNotRunning", "Guest VM is not reported as running")
        }
        (Phase::Running, Process::Running(None)) => {
            let has_probe = observed.vmi.spec.readiness_probe.is_some();
            match observed.probe {
                Some(true) => Condition::holds("Ready", "", ""),
                None if !has_probe => Condition::holds("Ready", "", ""),
                _ => not_running("ContainersNotReady", "the readiness probe has not succeeded"),
            }
        }
        _ => not_running("GuestNotRunning", "Guest VM is not reported as running"),
    }
}

/// What keeps the instance from being what its spec says.
fn synchronized(observed: &Observed<'_>) -> Option<Condition> {
    let plan = observed.plan;
    if unsupported::blocks(&plan.unsupported) {
        let why = plan
            .unsupported
            .iter()
            .filter(|it| it.effect == unsupported::Effect::Blocks);
        let why: Vec<String> = why.map(ToString::to_string).collect();
        return Some(Condition::fails("Synchronized", "FailedCreate", why.join("; ")));
    }
    let Some(Err(obstacle)) = &observed.disks else {
        return None;
    };
    let (reason, message) = match obstacle {
        Obstacle::NoClaim(name) => (
            "FailedPvcNotFound",
            format!("PVC {name} does not exist; create it, or correct its name"),
        ),
        Obstacle::ErrImagePull(why) => ("ErrImagePull", why.clone()),
        Obstacle::ImagePullBackOff(why) => ("ImagePullBackOff", why.clone()),
        Obstacle::Seed(why) => ("FailedCreate", why.clone()),
        Obstacle::Start(why) => ("Synchronizing with the Domain failed.", why.clone()),
    };
    Some(Condition::fails("Synchronized", reason, message))
}
