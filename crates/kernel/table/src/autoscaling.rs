//! Horizontal pod autoscalers and scales.

use serde_json::Value;

use crate::Printer;
use crate::column::{AGE, Column, NAME, integer, text as column};
use crate::field::{NONE, UNKNOWN, UNSET, age, at, items, name, number, scalar, text};

pub(crate) fn autoscaling(resource: &str) -> Option<&'static Printer> {
    Some(match resource {
        "horizontalpodautoscalers" => &HORIZONTAL_POD_AUTOSCALER,
        "scale" => &SCALE,
        _ => return None,
    })
}

static SCALE: Printer = Printer {
    columns: &[
        Column { format: "", ..NAME },
        integer("Desired", "How many replicas are wanted"),
        integer("Available", "How many replicas there are"),
        AGE,
    ],
    cells: |object, now| {
        vec![
            name(object),
            number(object, "spec.replicas").into(),
            number(object, "status.replicas").into(),
            age(object, now),
        ]
    },
};

static HORIZONTAL_POD_AUTOSCALER: Printer = Printer {
    columns: &[
        NAME,
        column("Reference", "The object that is scaled"),
        column("Targets", "Measured and wanted values of the metrics"),
        column("MinPods", "The fewest pods to scale down to"),
        column("MaxPods", "The most pods to scale up to"),
        column("Replicas", "How many pods there are"),
        AGE,
    ],
    cells: |object, now| {
        let target = "spec.scaleTargetRef";
        let reference = at(object, target).map_or("/".to_owned(), |to| {
            format!("{}/{}", text(to, "kind"), text(to, "name"))
        });
        vec![
            name(object),
            reference.into(),
            targets(object).into(),
            scalar(object, "spec.minReplicas", UNSET).into(),
            number(object, "spec.maxReplicas").into(),
            number(object, "status.currentReplicas").into(),
            age(object, now),
        ]
    },
};

/// Two metrics, and how many more there are.
fn targets(autoscaler: &Value) -> String {
    const SHOWN: usize = 2;
    let statuses = items(autoscaler, "status.currentMetrics").as_slice();
    let all: Vec<String> = items(autoscaler, "spec.metrics")
        .enumerate()
        .map(|(position, spec)| metric(spec, statuses.get(position)))
        .collect();
    match all.len() {
        0 => cpu_target_of_version_1(autoscaler),
        n if n <= SHOWN => all.join(", "),
        n => format!("{} + {} more...", all[..SHOWN].join(", "), n - SHOWN),
    }
}

/// The first version has one metric, in fields of its own.
fn cpu_target_of_version_1(autoscaler: &Value) -> String {
    let Some(target) = at(autoscaler, "spec.targetCPUUtilizationPercentage") else {
        return NONE.to_owned();
    };
    let current = percent(autoscaler, "status.currentCPUUtilizationPercentage", UNKNOWN);
    format!("cpu: {current}/{target}%")
}

fn percent(object: &Value, path: &str, fallback: &str) -> String {
    at(object, path).map_or(fallback.to_owned(), |value| format!("{value}%"))
}

fn metric(spec: &Value, status: Option<&Value>) -> String {
    let (field, named) = match text(spec, "type") {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let empty = Value::Null;
    let spec = at(spec, field).unwrap_or(&empty);
    let status = status.and_then(|status| at(status, field));
    let current = |path: &str, missing: &str| match status {
        Some(status) => scalar(status, path, missing),
        None => UNKNOWN.to_owned(),
    };
    if named {
        let resource = text(spec, "name");
        if at(spec, "target.averageValue").is_some() {
            let target = scalar(spec, "target.averageValue", "0");
            return format!("{resource}: {}/{target}", current("current.averageValue", "0"));
        }
        let current = status.map_or(UNKNOWN.to_owned(), |s| {
            percent(s, "current.averageUtilization", UNKNOWN)
        });
        return format!(
            "{resource}: {current}/{}",
            percent(spec, "target.averageUtilization", "<auto>")
        );
    }
    if field == "pods" {
        let target = scalar(spec, "target.averageValue", "0");
        return format!("{}/{target}", current("current.averageValue", "0"));
    }
    if at(spec, "target.averageValue").is_some() {
        let target = scalar(spec, "target.averageValue", "0");
        return format!("{}/{target} (avg)", current("current.averageValue", UNKNOWN));
    }
    format!(
        "{}/{}",
        current("current.value", "0"),
        scalar(spec, "target.value", "0")
    )
}
