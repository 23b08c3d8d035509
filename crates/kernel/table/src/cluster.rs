//! The kinds that hold a cluster together: namespaces, configuration, quotas, leases, classes.

use serde_json::Value;

use crate::Printer;
use crate::column::{AGE, Column, NAME, boolean, integer, text as column};
use crate::field::{
    NONE, UNSET, age, at, condition, count, flag, items, name, number, shortened, text, text_or,
};

pub(crate) fn coordination(resource: &str) -> Option<&'static Printer> {
    Some(match resource {
        "leases" => &LEASE,
        "leasecandidates" => &LEASE_CANDIDATE,
        _ => return None,
    })
}

pub(crate) fn node(resource: &str) -> Option<&'static Printer> {
    (resource == "runtimeclasses").then_some(&RUNTIME_CLASS)
}

pub(crate) fn scheduling(resource: &str) -> Option<&'static Printer> {
    Some(match resource {
        "priorityclasses" => &PRIORITY_CLASS,
        "workloads" => &NAME_AND_AGE,
        "podgroups" => &POD_GROUP,
        _ => return None,
    })
}

pub(crate) fn api_registration(resource: &str) -> Option<&'static Printer> {
    (resource == "apiservices").then_some(&API_SERVICE)
}

pub(crate) fn storage_migration(resource: &str) -> Option<&'static Printer> {
    (resource == "storageversionmigrations").then_some(&STORAGE_VERSION_MIGRATION)
}

pub(crate) fn internal(resource: &str) -> Option<&'static Printer> {
    (resource == "storageversions").then_some(&STORAGE_VERSION)
}

pub(crate) static NAME_AND_AGE: Printer = Printer {
    columns: &[NAME, AGE],
    cells: |object, now| vec![name(object), age(object, now)],
};

pub(crate) static NAMESPACE: Printer = Printer {
    columns: &[
        NAME,
        column("Status", "Whether the namespace is active or being deleted"),
        AGE,
    ],
    cells: |object, now| {
        vec![
            name(object),
            text(object, "status.phase").into(),
            age(object, now),
        ]
    },
};

pub(crate) static SECRET: Printer = Printer {
    columns: &[
        NAME,
        column("Type", "What the secret is for"),
        column("Data", "How many entries the secret has"),
        AGE,
    ],
    cells: |object, now| {
        vec![
            name(object),
            text(object, "type").into(),
            count(object, "data").into(),
            age(object, now),
        ]
    },
};

pub(crate) static CONFIG_MAP: Printer = Printer {
    columns: &[NAME, column("Data", "How many entries the map has"), AGE],
    cells: |object, now| {
        vec![
            name(object),
            (count(object, "data") + count(object, "binaryData")).into(),
            age(object, now),
        ]
    },
};

pub(crate) static RESOURCE_QUOTA: Printer = Printer {
    columns: &[
        NAME,
        column("Request", "What may be requested or created, used and allowed"),
        column("Limit", "What limits may add up to, used and allowed"),
        AGE,
    ],
    cells: |object, now| {
        let (limits, requests): (Vec<_>, Vec<_>) = quotas(object)
            .into_iter()
            .partition(|(resource, _)| resource.starts_with("limits."));
        let cell = |quotas: Vec<(&str, String)>| {
            quotas
                .into_iter()
                .map(|(_, text)| text)
                .collect::<Vec<_>>()
                .join(", ")
        };
        vec![
            name(object),
            cell(requests).into(),
            cell(limits).into(),
            age(object, now),
        ]
    },
};

/// Each resource with its text, by name.
fn quotas(object: &Value) -> Vec<(&str, String)> {
    let used = at(object, "status.used").unwrap_or(&Value::Null);
    let hard = at(object, "status.hard").and_then(Value::as_object);
    let mut quotas: Vec<(&str, String)> = hard
        .into_iter()
        .flatten()
        .map(|(resource, hard)| {
            // Names have points, so they are no paths.
            let quantity = |value: Option<&Value>| match value {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Number(number)) => number.to_string(),
                _ => "0".to_owned(),
            };
            let text = format!(
                "{resource}: {}/{}",
                quantity(used.get(resource)),
                quantity(Some(hard))
            );
            (resource.as_str(), text)
        })
        .collect();
    quotas.sort_unstable();
    quotas
}

pub(crate) static COMPONENT_STATUS: Printer = Printer {
    columns: &[
        NAME,
        column("Status", "Whether the component is healthy"),
        column("Message", "What the component says of its health"),
        column("Error", "What went wrong when it was asked"),
    ],
    cells: |object, _| {
        let healthy = items(object, "conditions").find(|condition| text(condition, "type") == "Healthy");
        let status = match healthy.map(|condition| text(condition, "status")) {
            Some("True") => "Healthy",
            Some(_) => "Unhealthy",
            None => "Unknown",
        };
        let field = |name: &str| Value::from(healthy.map_or("", |condition| text(condition, name)));
        vec![name(object), status.into(), field("message"), field("error")]
    },
};

static LEASE: Printer = Printer {
    columns: &[NAME, column("Holder", "Who holds the lease"), AGE],
    cells: |object, now| {
        vec![
            name(object),
            text(object, "spec.holderIdentity").into(),
            age(object, now),
        ]
    },
};

static LEASE_CANDIDATE: Printer = Printer {
    columns: &[
        NAME,
        column("LeaseName", "The lease that the candidate wants"),
        column("BinaryVersion", "The candidate's version"),
        column("EmulationVersion", "The version that the candidate behaves as"),
        AGE,
    ],
    cells: |object, now| {
        vec![
            name(object),
            text(object, "spec.leaseName").into(),
            text(object, "spec.binaryVersion").into(),
            text(object, "spec.emulationVersion").into(),
            age(object, now),
        ]
    },
};

static RUNTIME_CLASS: Printer = Printer {
    columns: &[
        NAME,
        column("Handler", "The runtime's own name for the class"),
        AGE,
    ],
    cells: |object, now| vec![name(object), text(object, "handler").into(), age(object, now)],
};

static PRIORITY_CLASS: Printer = Printer {
    columns: &[
        NAME,
        integer("Value", "The priority of the class's pods"),
        boolean("Global-Default", "Whether pods without a class have this one"),
        AGE,
        column("PreemptionPolicy", "Whether the class's pods push others aside"),
    ],
    cells: |object, now| {
        vec![
            name(object),
            number(object, "value").into(),
            flag(object, "globalDefault", false).into(),
            age(object, now),
            text(object, "preemptionPolicy").into(),
        ]
    },
};

static POD_GROUP: Printer = Printer {
    columns: &[
        NAME,
        column("Policy", "How the group's pods are scheduled"),
        column("Workload", "The workload that the group belongs to"),
        column("Status", "Whether the group is scheduled"),
        AGE,
    ],
    cells: |object, now| {
        let gang = at(object, "spec.schedulingPolicy.gang").is_some();
        // The last of several conditions of one type counts.
        let last = |kind: &str| {
            items(object, "status.conditions").rfind(|condition| text(condition, "type") == kind)
        };
        let status = match (last("DisruptionTarget"), last("PodGroupScheduled")) {
            (Some(target), _) => text(target, "reason"),
            (None, Some(scheduled)) if text(scheduled, "status") == "True" => "Scheduled",
            (None, Some(_)) => "Unschedulable",
            (None, None) => "Pending",
        };
        let workload = match at(object, "spec.podGroupTemplateRef") {
            Some(reference) => text(reference, "workload.workloadName"),
            None => NONE,
        };
        vec![
            name(object),
            if gang { "Gang" } else { "Basic" }.into(),
            workload.into(),
            status.into(),
            age(object, now),
        ]
    },
};

static API_SERVICE: Printer = Printer {
    columns: &[
        NAME,
        column("Service", "The service that serves the API, or Local"),
        column("Available", "Whether the API is served"),
        AGE,
    ],
    cells: |object, now| {
        let service = at(object, "spec.service").map_or("Local".to_owned(), |to| {
            format!("{}/{}", text(to, "namespace"), text(to, "name"))
        });
        let available = match condition(object, "Available") {
            Some(condition) if text(condition, "status") == "True" => "True".to_owned(),
            Some(condition) => format!("{} ({})", text(condition, "status"), text(condition, "reason")),
            None => "Unknown".to_owned(),
        };
        vec![name(object), service.into(), available.into(), age(object, now)]
    },
};

static STORAGE_VERSION_MIGRATION: Printer = Printer {
    columns: &[
        Column { format: "", ..NAME },
        column("Resource", "The resource whose objects are rewritten"),
        column("Status", "How far the migration is"),
    ],
    cells: |object, _| {
        let (resource, group) = (
            text(object, "spec.resource.resource"),
            text(object, "spec.resource.group"),
        );
        let migrated = if group.is_empty() {
            resource.to_owned()
        } else {
            format!("{resource}.{group}")
        };
        let status = items(object, "status.conditions")
            .filter(|condition| text(condition, "status") == "True")
            .map(|condition| text(condition, "type"))
            .rfind(|kind| matches!(*kind, "Running" | "Failed" | "Succeeded"));
        vec![name(object), migrated.into(), status.unwrap_or("Unknown").into()]
    },
};

static STORAGE_VERSION: Printer = Printer {
    columns: &[
        NAME,
        column("CommonEncodingVersion", "The version in which all servers store"),
        column("StorageVersions", "The version in which each server stores"),
        AGE,
    ],
    cells: |object, now| {
        let versions: Vec<String> = items(object, "status.storageVersions")
            .map(|version| {
                format!(
                    "{}={}",
                    text(version, "apiServerID"),
                    text(version, "encodingVersion")
                )
            })
            .collect();
        vec![
            name(object),
            text_or(object, "status.commonEncodingVersion", UNSET).into(),
            shortened(&versions, UNSET).into(),
            age(object, now),
        ]
    },
};
