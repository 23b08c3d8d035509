//! Devices and claims on them.

use serde_json::Value;

use crate::Printer;
use crate::cluster::NAME_AND_AGE;
use crate::column::{AGE, NAME, integer, text as column};
use crate::field::{NONE, age, at, count, is_deleted, items, name, number, since, text};

pub(crate) fn resources(resource: &str) -> Option<&'static Printer> {
    Some(match resource {
        "deviceclasses" | "resourceclaimtemplates" => &NAME_AND_AGE,
        "resourceclaims" => &RESOURCE_CLAIM,
        "resourceslices" => &RESOURCE_SLICE,
        "devicetaintrules" => &DEVICE_TAINT_RULE,
        "resourcepoolstatusrequests" => &RESOURCE_POOL_STATUS_REQUEST,
        _ => return None,
    })
}

static RESOURCE_CLAIM: Printer = Printer {
    columns: &[
        NAME,
        column("State", "Whether devices are allocated and reserved"),
        AGE,
    ],
    cells: |object, now| vec![name(object), claim_state(object).into(), age(object, now)],
};

fn claim_state(claim: &Value) -> String {
    let mut states = Vec::new();
    if is_deleted(claim) {
        states.push("deleted");
    }
    if at(claim, "status.allocation").is_some() {
        states.push("allocated");
        if count(claim, "status.reservedFor") > 0 {
            states.push("reserved");
        }
    } else if !is_deleted(claim) {
        states.push("pending");
    }
    states.join(",")
}

static RESOURCE_SLICE: Printer = Printer {
    columns: &[
        NAME,
        column("Node", "The node that has the devices"),
        column("Driver", "The driver that published the slice"),
        column("Pool", "The pool that the slice is part of"),
        AGE,
    ],
    cells: |object, now| {
        vec![
            name(object),
            text(object, "spec.nodeName").into(),
            text(object, "spec.driver").into(),
            text(object, "spec.pool.name").into(),
            age(object, now),
        ]
    },
};

static DEVICE_TAINT_RULE: Printer = Printer {
    columns: &[
        NAME,
        column("Key", "The taint's key"),
        column("Value", "The taint's value"),
        column("Effect", "What the taint does to pods"),
        column("TimeAdded", "The time since the taint was added"),
        AGE,
    ],
    cells: |object, now| {
        let added = match at(object, "spec.taint.timeAdded") {
            Some(_) => since(object, "spec.taint.timeAdded", now),
            None => String::new(),
        };
        vec![
            name(object),
            text(object, "spec.taint.key").into(),
            text(object, "spec.taint.value").into(),
            text(object, "spec.taint.effect").into(),
            added.into(),
            age(object, now),
        ]
    },
};

static RESOURCE_POOL_STATUS_REQUEST: Printer = Printer {
    columns: &[
        NAME,
        column("Driver", "The driver whose pools are asked for"),
        column("Total", "How many devices there are"),
        column("Available", "How many devices are free"),
        column("Allocated", "How many devices are in use"),
        column("Unavailable", "How many devices cannot be used"),
        column("Errors", "How many pools are not valid"),
        integer("Pools", "How many pools match"),
        column("Status", "Whether the request is answered"),
        column("Completed", "The time since the request was answered"),
    ],
    cells: |object, now| {
        let ended = items(object, "status.conditions").find(|condition| {
            text(condition, "status") == "True" && matches!(text(condition, "type"), "Complete" | "Failed")
        });
        let outcome = ended.map_or("Pending", |condition| text(condition, "type"));
        let pools = number(object, "status.poolCount");
        let listed = count(object, "status.pools");
        let status = match outcome {
            "Complete" if pools > listed => format!("Complete ({listed}/{pools} pools)"),
            other => other.to_owned(),
        };
        let counted = at(object, "status").is_some() && outcome != "Failed";
        let sum = |of: &dyn Fn(&Value) -> i64| -> Value {
            match counted {
                true => items(object, "status.pools")
                    .map(of)
                    .sum::<i64>()
                    .to_string()
                    .into(),
                false => "-".into(),
            }
        };
        let completed = match ended {
            Some(condition) if outcome == "Complete" => since(condition, "lastTransitionTime", now),
            _ => NONE.to_owned(),
        };
        vec![
            name(object),
            text(object, "spec.driver").into(),
            sum(&|pool| number(pool, "totalDevices")),
            sum(&|pool| number(pool, "availableDevices")),
            sum(&|pool| number(pool, "allocatedDevices")),
            sum(&|pool| number(pool, "unavailableDevices")),
            sum(&|pool| i64::from(at(pool, "validationError").is_some())),
            pools.into(),
            status.into(),
            completed.into(),
        ]
    },
};
