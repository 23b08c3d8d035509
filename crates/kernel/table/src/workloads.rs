//! What keeps pods running: the kinds of `apps`, `batch` and `policy`, and replication controllers.

use serde_json::{Value, json};

use crate::Printer;
use crate::column::{AGE, CONTAINERS, IMAGES, NAME, SELECTOR, boolean, integer, text as column};
use crate::duration::{human_duration, unix_seconds};
use crate::field::{
    NONE, UNSET, age, at, condition_is_true, containers, count, flag, is_deleted, items, name, number,
    scalar, since, text, text_or,
};
use crate::selector::{format_labels, format_selector, format_selector_or_empty};

const POD_SPEC: &str = "spec.template.spec";

pub(crate) fn apps(resource: &str) -> Option<&'static Printer> {
    Some(match resource {
        "deployments" => &DEPLOYMENT,
        "replicasets" => &REPLICA_SET,
        "statefulsets" => &STATEFUL_SET,
        "daemonsets" => &DAEMON_SET,
        "controllerrevisions" => &CONTROLLER_REVISION,
        _ => return None,
    })
}

pub(crate) fn batch(resource: &str) -> Option<&'static Printer> {
    Some(match resource {
        "jobs" => &JOB,
        "cronjobs" => &CRON_JOB,
        _ => return None,
    })
}

pub(crate) fn policy(resource: &str) -> Option<&'static Printer> {
    (resource == "poddisruptionbudgets").then_some(&POD_DISRUPTION_BUDGET)
}

static DEPLOYMENT: Printer = Printer {
    columns: &[
        NAME,
        column("Ready", "Ready pods, of those wanted"),
        column("Up-to-date", "Pods of the current template"),
        column("Available", "Pods that have been ready for long enough"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |object, now| {
        let [names, images] = containers(object, POD_SPEC);
        vec![
            name(object),
            ready_of_wanted(object),
            number(object, "status.updatedReplicas").into(),
            number(object, "status.availableReplicas").into(),
            age(object, now),
            names,
            images,
            format_selector_or_empty(at(object, "spec.selector")).into(),
        ]
    },
};

fn ready_of_wanted(object: &Value) -> Value {
    format!(
        "{}/{}",
        number(object, "status.readyReplicas"),
        number(object, "spec.replicas")
    )
    .into()
}

static REPLICA_SET: Printer = Printer {
    columns: &[
        NAME,
        integer("Desired", "How many pods are wanted"),
        integer("Current", "How many pods there are"),
        integer("Ready", "How many pods are ready"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |object, now| replicated(object, now, format_selector(at(object, "spec.selector"))),
};

pub(crate) static REPLICATION_CONTROLLER: Printer = Printer {
    columns: REPLICA_SET.columns,
    cells: |object, now| replicated(object, now, format_labels(at(object, "spec.selector"))),
};

fn replicated(object: &Value, now: i64, selector: String) -> Vec<Value> {
    let [names, images] = containers(object, POD_SPEC);
    vec![
        name(object),
        number(object, "spec.replicas").into(),
        number(object, "status.replicas").into(),
        number(object, "status.readyReplicas").into(),
        age(object, now),
        names,
        images,
        selector.into(),
    ]
}

static STATEFUL_SET: Printer = Printer {
    columns: &[
        NAME,
        column("Ready", "Ready pods, of those wanted"),
        AGE,
        CONTAINERS,
        IMAGES,
    ],
    cells: |object, now| {
        let [names, images] = containers(object, POD_SPEC);
        vec![
            name(object),
            ready_of_wanted(object),
            age(object, now),
            names,
            images,
        ]
    },
};

static DAEMON_SET: Printer = Printer {
    columns: &[
        NAME,
        integer("Desired", "Nodes that should run the pod"),
        integer("Current", "Nodes that run the pod and should"),
        integer("Ready", "Nodes whose pod is ready"),
        integer("Up-to-date", "Nodes whose pod is of the current template"),
        integer("Available", "Nodes whose pod has been ready for long enough"),
        column("Node Selector", "The labels of the nodes that should run the pod"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |object, now| {
        let [names, images] = containers(object, POD_SPEC);
        vec![
            name(object),
            number(object, "status.desiredNumberScheduled").into(),
            number(object, "status.currentNumberScheduled").into(),
            number(object, "status.numberReady").into(),
            number(object, "status.updatedNumberScheduled").into(),
            number(object, "status.numberAvailable").into(),
            format_labels(at(object, "spec.template.spec.nodeSelector")).into(),
            age(object, now),
            names,
            images,
            format_selector(at(object, "spec.selector")).into(),
        ]
    },
};

static CONTROLLER_REVISION: Printer = Printer {
    columns: &[
        NAME,
        column("Controller", "The object that keeps this revision"),
        column("Revision", "The number of the revision"),
        AGE,
    ],
    cells: |object, now| {
        let owner = items(object, "metadata.ownerReferences").find(|owner| flag(owner, "controller", false));
        let controller = owner.map_or(NONE.to_owned(), |owner| {
            let group = text(owner, "apiVersion")
                .split_once('/')
                .map_or("", |(group, _)| group);
            let kind = match group {
                "" => text(owner, "kind").to_owned(),
                group => format!("{}.{group}", text(owner, "kind")),
            };
            format!("{}/{}", kind.to_lowercase(), text(owner, "name"))
        });
        vec![
            name(object),
            controller.into(),
            number(object, "revision").into(),
            age(object, now),
        ]
    },
};

static JOB: Printer = Printer {
    columns: &[
        NAME,
        column("Status", "What has become of the job"),
        column("Completions", "Pods that succeeded, of those needed"),
        column("Duration", "How long the job took, or has been running"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |object, now| {
        let [names, images] = containers(object, POD_SPEC);
        vec![
            name(object),
            job_status(object).into(),
            completions(object).into(),
            job_duration(object, now).into(),
            age(object, now),
            names,
            images,
            format_selector(at(object, "spec.selector")).into(),
        ]
    },
};

fn job_status(job: &Value) -> &'static str {
    for (condition, status) in [("Complete", "Complete"), ("Failed", "Failed")] {
        if condition_is_true(job, condition) {
            return status;
        }
    }
    if is_deleted(job) {
        return "Terminating";
    }
    ["Suspended", "FailureTarget", "SuccessCriteriaMet"]
        .into_iter()
        .find(|condition| condition_is_true(job, condition))
        .unwrap_or("Running")
}

fn completions(job: &Value) -> String {
    let succeeded = number(job, "status.succeeded");
    match (
        at(job, "spec.completions").and_then(Value::as_i64),
        number(job, "spec.parallelism"),
    ) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn job_duration(job: &Value, now: i64) -> String {
    let Some(start) = unix_seconds(text(job, "status.startTime")) else {
        return String::new();
    };
    let end = unix_seconds(text(job, "status.completionTime")).unwrap_or(now);
    human_duration(end.saturating_sub(start))
}

static CRON_JOB: Printer = Printer {
    columns: &[
        NAME,
        column("Schedule", "When jobs are started, in cron's form"),
        column("Timezone", "The time zone of the schedule"),
        boolean("Suspend", "Whether no further jobs are started"),
        integer("Active", "How many jobs are running"),
        column("Last Schedule", "The time since a job was last started"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |object, now| {
        let [names, images] = containers(object, "spec.jobTemplate.spec.template.spec");
        let suspend = match at(object, "spec.suspend").and_then(Value::as_bool) {
            Some(true) => "True",
            Some(false) => "False",
            None => UNSET,
        };
        let last = match at(object, "status.lastScheduleTime") {
            Some(_) => since(object, "status.lastScheduleTime", now),
            None => NONE.to_owned(),
        };
        vec![
            name(object),
            text(object, "spec.schedule").into(),
            text_or(object, "spec.timeZone", NONE).into(),
            suspend.into(),
            count(object, "status.active").into(),
            last.into(),
            age(object, now),
            names,
            images,
            format_selector(at(object, "spec.jobTemplate.spec.selector")).into(),
        ]
    },
};

static POD_DISRUPTION_BUDGET: Printer = Printer {
    columns: &[
        NAME,
        column("Min Available", "How many pods must stay"),
        column("Max Unavailable", "How many pods may be missing"),
        integer("Allowed Disruptions", "How many pods may be evicted now"),
        AGE,
    ],
    cells: |object, now| {
        vec![
            name(object),
            scalar(object, "spec.minAvailable", "N/A").into(),
            scalar(object, "spec.maxUnavailable", "N/A").into(),
            json!(number(object, "status.disruptionsAllowed")),
            age(object, now),
        ]
    },
};
