//! Pods, whose status is a story told by the states of their containers, and pod templates.

use serde_json::{Value, json};

use crate::Printer;
use crate::column::{AGE, NAME, text as column, wide};
use crate::duration::{human_duration, unix_seconds};
use crate::field::{
    NONE, age, at, condition_is_true, containers, count, filled_or, flag, is_deleted, items, name, number,
    text,
};
use crate::selector::format_labels;

pub(crate) static POD: Printer = Printer {
    columns: &[
        NAME,
        column("Ready", "How many of the pod's containers are ready"),
        column("Status", "The state of the pod, gathered from its containers"),
        column(
            "Restarts",
            "How often containers of the pod were restarted, and when last",
        ),
        AGE,
        wide("IP", "The pod's address"),
        wide("Node", "The node that the pod runs on"),
        wide("Nominated Node", "The node that is being cleared for the pod"),
        wide(
            "Readiness Gates",
            "How many of the pod's readiness gates are open",
        ),
    ],
    cells: |pod, now| {
        let story = tell(pod);
        let mut restarts = story.restarts.to_string();
        if let (1.., Some(last)) = (story.restarts, story.last_restart) {
            restarts = format!("{restarts} ({} ago)", human_duration(now.saturating_sub(last)));
        }
        vec![
            name(pod),
            format!("{}/{}", story.ready, story.total).into(),
            story.reason.into(),
            restarts.into(),
            age(pod, now),
            pod_ip(pod).into(),
            filled_or(pod, "spec.nodeName", NONE).into(),
            filled_or(pod, "status.nominatedNodeName", NONE).into(),
            readiness_gates(pod).into(),
        ]
    },
};

pub(crate) static POD_TEMPLATE: Printer = Printer {
    columns: &[
        NAME,
        column("Containers", "The names of the template's containers"),
        column("Images", "The images of the template's containers"),
        column("Pod Labels", "The labels that pods of the template have"),
    ],
    cells: |object, _| {
        let [names, images] = containers(object, "template.spec");
        vec![
            name(object),
            names,
            images,
            format_labels(at(object, "template.metadata.labels")).into(),
        ]
    },
};

/// A row for a pod that has ended is marked as completed.
pub(crate) fn row_conditions(pod: &Value) -> Vec<Value> {
    let (reason, message) = match text(pod, "status.phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return Vec::new(),
    };
    vec![json!({"type": "Completed", "status": "True", "reason": reason, "message": message})]
}

struct Story {
    ready: i64,
    total: i64,
    reason: String,
    restarts: i64,
    /// Unix time.
    last_restart: Option<i64>,
}

/// What happened to the init containers.
struct Initialization {
    /// The reason to show while one of them is not done.
    pending: Option<String>,
    ready: i64,
    restarts: i64,
    last_restart: Option<i64>,
    /// Of these, what the sidecars account for: they go on after initialization.
    sidecar_restarts: i64,
    last_sidecar_restart: Option<i64>,
}

fn tell(pod: &Value) -> Story {
    let sidecars = items(pod, "spec.initContainers")
        .filter(|container| is_sidecar(container))
        .count();
    let total = count(pod, "spec.containers") + i64::try_from(sidecars).unwrap_or_default();
    let mut reason = filled_or(pod, "status.reason", text(pod, "status.phase")).to_owned();
    let gated = items(pod, "status.conditions")
        .any(|c| text(c, "type") == "PodScheduled" && text(c, "reason") == "SchedulingGated");
    if gated {
        reason = "SchedulingGated".to_owned();
    }
    let init = initialization(pod);
    let mut story = Story {
        ready: init.ready,
        total,
        reason,
        restarts: init.restarts,
        last_restart: init.last_restart,
    };
    let initializing = init.pending.is_some();
    if let Some(pending) = init.pending {
        story.reason = pending;
    }
    if !initializing || condition_is_true(pod, "Initialized") {
        story.restarts = init.sidecar_restarts;
        story.last_restart = init.last_sidecar_restart;
        tell_of_containers(pod, &mut story);
    }
    if is_deleted(pod) {
        let ended = matches!(text(pod, "status.phase"), "Failed" | "Succeeded");
        if text(pod, "status.reason") == "NodeLost" {
            story.reason = "Unknown".to_owned();
        } else if !ended {
            story.reason = "Terminating".to_owned();
        }
    }
    story
}

fn is_sidecar(init_container: &Value) -> bool {
    text(init_container, "restartPolicy") == "Always"
}

fn last_termination(status: &Value) -> Option<i64> {
    unix_seconds(text(status, "lastState.terminated.finishedAt"))
}

fn initialization(pod: &Value) -> Initialization {
    let mut init = Initialization {
        pending: None,
        ready: 0,
        restarts: 0,
        last_restart: None,
        sidecar_restarts: 0,
        last_sidecar_restart: None,
    };
    for (position, status) in items(pod, "status.initContainerStatuses").enumerate() {
        let restarts = number(status, "restartCount");
        init.restarts += restarts;
        init.last_restart = init.last_restart.max(last_termination(status));
        let sidecar = items(pod, "spec.initContainers")
            .find(|container| text(container, "name") == text(status, "name"))
            .is_some_and(is_sidecar);
        if sidecar {
            init.sidecar_restarts += restarts;
            init.last_sidecar_restart = init.last_sidecar_restart.max(last_termination(status));
        }
        let terminated = at(status, "state.terminated");
        if terminated.is_some_and(|state| number(state, "exitCode") == 0) {
            continue;
        }
        if sidecar && flag(status, "started", false) {
            init.ready += i64::from(flag(status, "ready", false));
            continue;
        }
        let waiting = text(status, "state.waiting.reason");
        init.pending = Some(match terminated {
            Some(state) => format!("Init:{}", how_it_ended(state)),
            None if !matches!(waiting, "" | "PodInitializing") => format!("Init:{waiting}"),
            None => format!("Init:{position}/{}", count(pod, "spec.initContainers")),
        });
        break;
    }
    init
}

fn how_it_ended(terminated: &Value) -> String {
    match (text(terminated, "reason"), number(terminated, "signal")) {
        ("", 0) => format!("ExitCode:{}", number(terminated, "exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn tell_of_containers(pod: &Value, story: &mut Story) {
    let mut running = false;
    let mut failure = None;
    for status in items(pod, "status.containerStatuses").rev() {
        story.restarts += number(status, "restartCount");
        story.last_restart = story.last_restart.max(last_termination(status));
        let waiting = text(status, "state.waiting.reason");
        if !waiting.is_empty() {
            story.reason = waiting.to_owned();
        } else if let Some(terminated) = at(status, "state.terminated") {
            story.reason = how_it_ended(terminated);
            if number(terminated, "exitCode") != 0 {
                failure = Some(story.reason.clone());
            }
        } else if flag(status, "ready", false) && at(status, "state.running").is_some() {
            running = true;
            story.ready += 1;
        }
    }
    // One container that has completed says nothing of the others.
    if story.reason == "Completed" {
        if running && condition_is_true_somewhere(pod, "Ready") {
            story.reason = "Running".to_owned();
        } else if let Some(failure) = failure {
            story.reason = failure;
        } else if running {
            story.reason = "NotReady".to_owned();
        }
    }
}

fn condition_is_true_somewhere(pod: &Value, kind: &str) -> bool {
    items(pod, "status.conditions").any(|c| text(c, "type") == kind && text(c, "status") == "True")
}

fn pod_ip(pod: &Value) -> &str {
    match items(pod, "status.podIPs").next() {
        Some(first) => filled_or(first, "ip", NONE),
        None => filled_or(pod, "status.podIP", NONE),
    }
}

fn readiness_gates(pod: &Value) -> String {
    let gates = items(pod, "spec.readinessGates");
    if gates.len() == 0 {
        return NONE.to_owned();
    }
    let total = gates.len();
    let open = gates
        .filter(|gate| condition_is_true(pod, text(gate, "conditionType")))
        .count();
    format!("{open}/{total}")
}
