//! Autoscalers. Version 1 has no conditions in its status; they are in an annotation, as JSON.

use serde_json::Value;

use crate::view::{conditions, text, version};
use crate::{Health, Status};

const FAULTS: &[(&str, &str)] = &[
    ("AbleToScale", "FailedGetScale"),
    ("AbleToScale", "FailedUpdateScale"),
    ("ScalingActive", "FailedGetResourceMetric"),
    ("ScalingActive", "InvalidSelector"),
];

pub(super) fn horizontal_pod_autoscaler(object: &Value) -> Health {
    if version(object) != "v1" {
        return judge(&object["status"]["conditions"]);
    }
    let annotation = text(&object["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/conditions"]);
    if annotation.is_empty() {
        return judge(&Value::Null);
    }
    match serde_json::from_str::<Value>(annotation) {
        Ok(list) => judge(&list),
        Err(error) => Health::new(
            Status::Unknown,
            format!("failed to convert conditions annotation to typed: {error}"),
        ),
    }
}

/// The first condition that says anything decides.
fn judge(list: &Value) -> Health {
    for condition in conditions(list) {
        if FAULTS.contains(&(condition.kind, condition.reason)) {
            return Health::new(Status::Degraded, condition.words());
        }
        if condition.is("AbleToScale", "True") || condition.is("ScalingLimited", "True") {
            return Health::new(Status::Healthy, condition.words());
        }
    }
    Health::new(Status::Progressing, "Waiting to Autoscale")
}
