//! v1 and v2 of HorizontalPodAutoscaler, both ways. What v1 has no field for travels in annotations, in the shape that
//! v1's own metric types have.

use serde_json::{Map, Value, json};

use super::{SOURCES, default_metric};
use crate::read::{self, has, list, part, part_mut, text};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

fn is_cpu_utilization(metric: &Value) -> bool {
    let resource = part(metric, "resource");
    text(metric, "type") == "Resource"
        && text(resource, "name") == "cpu"
        && has(part(resource, "target"), "averageUtilization")
}

/// Field names of v1's metric sources for the fields of v2's `target`, or of `current` in a status.
fn flat_names(kind: &str, prefix: &str) -> [(&'static str, String); 3] {
    let value = match kind {
        "object" | "external" => format!("{prefix}Value"),
        _ => format!("{prefix}AverageValue"),
    };
    let average = match kind {
        "object" => "averageValue".to_owned(),
        _ => format!("{prefix}AverageValue"),
    };
    [
        ("value", value),
        ("averageValue", average),
        ("averageUtilization", format!("{prefix}AverageUtilization")),
    ]
}

/// A v2 metric (or its status) as v1 spells it.
fn flatten(metric: &Value, nested: &str, prefix: &str) -> Value {
    let mut flat = metric.clone();
    for (_, kind) in SOURCES {
        let Some(source) = flat.get_mut(*kind) else {
            continue;
        };
        let amounts = read::unset(source, nested).unwrap_or_default();
        for (from, to) in flat_names(kind, prefix) {
            if let Some(amount) = amounts.get(from) {
                read::set(source, &to, amount.clone());
            }
        }
        if let Some(metric) = read::unset(source, "metric") {
            if let Some(name) = metric.get("name") {
                read::set(source, "metricName", name.clone());
            }
            if let Some(selector) = metric.get("selector") {
                let key = if *kind == "external" {
                    "metricSelector"
                } else {
                    "selector"
                };
                read::set(source, key, selector.clone());
            }
        }
        if let Some(object) = read::unset(source, "describedObject") {
            read::set(source, "target", object);
        }
    }
    flat
}

/// A v1 metric (or its status) as v2 spells it.
fn unflatten(metric: &Value, nested: &str, prefix: &str) -> Value {
    let mut full = metric.clone();
    for (_, kind) in SOURCES {
        let Some(source) = full.get_mut(*kind) else {
            continue;
        };
        if *kind == "object"
            && let Some(object) = read::unset(source, "target")
        {
            read::set(source, "describedObject", object);
        }
        let mut amounts = Map::new();
        for (to, from) in flat_names(kind, prefix) {
            let redundant = to == "value" && !matches!(*kind, "object" | "external");
            if redundant {
                continue;
            }
            if let Some(amount) = read::unset(source, &from) {
                amounts.insert(to.to_owned(), amount);
            }
        }
        // v1 cannot leave out the value of an object metric; zero stands for absent there.
        if amounts.contains_key("averageValue")
            && amounts
                .get("value")
                .is_some_and(|v| v.as_str().is_none_or(|v| v == "0"))
        {
            amounts.shift_remove("value");
        }
        if nested == "target" {
            let kind = if amounts.contains_key("averageUtilization") {
                "Utilization"
            } else if amounts.contains_key("averageValue") {
                "AverageValue"
            } else {
                "Value"
            };
            amounts.shift_insert(0, "type".to_owned(), json!(kind));
        }
        let name = read::unset(source, "metricName");
        let selector = read::unset(source, "metricSelector").or_else(|| read::unset(source, "selector"));
        if let Some(name) = name {
            let mut metric = json!({"name": name});
            if let Some(selector) = selector {
                read::set(&mut metric, "selector", selector);
            }
            read::set(source, "metric", metric);
        }
        read::set(source, nested, Value::Object(amounts));
    }
    full
}

fn annotate(obj: &mut Value, key: &str, value: &Value) {
    read::set(
        part_mut(part_mut(obj, "metadata"), "annotations"),
        key,
        value.to_string(),
    );
}

fn take_annotation(obj: &mut Value, key: &str) -> Option<Value> {
    let annotations = obj.get_mut("metadata")?.get_mut("annotations")?;
    let encoded = read::unset(annotations, key)?;
    serde_json::from_str(encoded.as_str()?).ok()
}

/// A v2 autoscaler as `autoscaling/v1` shows it.
pub fn v2_to_v1(v2: &Value) -> Value {
    let mut v1 = v2.clone();
    if has(&v1, "apiVersion") {
        read::set(&mut v1, "apiVersion", "autoscaling/v1");
    }
    let spec = part(v2, "spec");
    let cpu = list(spec, "metrics").iter().find(|m| is_cpu_utilization(m));
    let others: Vec<Value> = list(spec, "metrics")
        .iter()
        .filter(|m| !is_cpu_utilization(m))
        .map(|m| flatten(m, "target", "target"))
        .collect();
    let out = part_mut(&mut v1, "spec");
    read::unset(out, "metrics");
    let behavior = read::unset(out, "behavior");
    if let Some(cpu) = cpu {
        let percent = part(part(part(cpu, "resource"), "target"), "averageUtilization").clone();
        read::set(out, "targetCPUUtilizationPercentage", percent);
    }
    if !others.is_empty() {
        annotate(&mut v1, METRICS, &Value::Array(others));
    }
    if let Some(behavior) = behavior {
        annotate(&mut v1, BEHAVIOR, &behavior);
    }
    if let Some(status) = v1.get_mut("status") {
        let current = read::unset(status, "currentMetrics");
        let conditions = read::unset(status, "conditions");
        let metrics: Vec<Value> = current
            .iter()
            .filter_map(Value::as_array)
            .flatten()
            .map(|m| flatten(m, "current", "current"))
            .collect();
        let cpu = current
            .iter()
            .filter_map(Value::as_array)
            .flatten()
            .filter(|m| text(m, "type") == "Resource" && text(part(m, "resource"), "name") == "cpu")
            .find_map(|m| {
                part(part(m, "resource"), "current")
                    .get("averageUtilization")
                    .cloned()
            });
        if let Some(percent) = cpu {
            read::set(status, "currentCPUUtilizationPercentage", percent);
        }
        if !metrics.is_empty() {
            annotate(&mut v1, CURRENT_METRICS, &Value::Array(metrics));
        }
        if let Some(conditions) = conditions {
            annotate(&mut v1, CONDITIONS, &conditions);
        }
    }
    v1
}

/// A v1 autoscaler as `autoscaling/v2` shows it.
pub fn v1_to_v2(v1: &Value) -> Value {
    let mut v2 = v1.clone();
    if has(&v2, "apiVersion") {
        read::set(&mut v2, "apiVersion", "autoscaling/v2");
    }
    let others = take_annotation(&mut v2, METRICS);
    let behavior = take_annotation(&mut v2, BEHAVIOR);
    let current = take_annotation(&mut v2, CURRENT_METRICS);
    let conditions = take_annotation(&mut v2, CONDITIONS);
    let metadata = part_mut(&mut v2, "metadata");
    if has(metadata, "annotations") && !read::filled(metadata, "annotations") {
        read::unset(metadata, "annotations");
    }
    let spec = part_mut(&mut v2, "spec");
    let mut metrics: Vec<Value> = others
        .iter()
        .filter_map(Value::as_array)
        .flatten()
        .map(|m| unflatten(m, "target", "target"))
        .collect();
    if let Some(percent) = read::unset(spec, "targetCPUUtilizationPercentage") {
        let mut metric = default_metric();
        metric["resource"]["target"]["averageUtilization"] = percent;
        metrics.push(metric);
    }
    if metrics.is_empty() {
        metrics.push(default_metric());
    }
    read::set(spec, "metrics", metrics);
    if let Some(behavior) = behavior {
        read::set(spec, "behavior", behavior);
    }
    if let Some(status) = v2.get_mut("status") {
        let percent = read::unset(status, "currentCPUUtilizationPercentage");
        if let Some(Value::Array(current)) = current {
            let metrics: Vec<Value> = current
                .iter()
                .map(|m| unflatten(m, "current", "current"))
                .collect();
            read::set(status, "currentMetrics", metrics);
        } else if let Some(percent) = percent {
            let metric = json!({"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": percent}}});
            read::set(status, "currentMetrics", json!([metric]));
        }
        if let Some(conditions) = conditions {
            read::set(status, "conditions", conditions);
        }
    }
    v2
}
