//! Rows of built-in kinds, after the cases of upstream's printer tests.

mod cluster;
mod control;
mod network;
mod pods;
mod upstream;
mod workloads;

use serde_json::{Value, json};

use crate::{columns, row};

/// 2001-09-09T01:46:40Z.
const NOW: i64 = 1_000_000_000;
/// Five minutes before.
const CREATED: &str = "2001-09-09T01:41:40Z";

/// Checks an object's cells; the object is named `x` and five minutes old.
#[allow(clippy::needless_pass_by_value, reason = "the cases are literals")]
fn check(group: &str, resource: &str, mut object: Value, want: Value) {
    if object["metadata"].is_null() {
        object["metadata"] = json!({});
    }
    object["metadata"]["name"] = json!("x");
    object["metadata"]["creationTimestamp"] = json!(CREATED);
    let cells = row(group, resource, &object, NOW);
    assert_eq!(cells.len(), columns(group, "v1", resource).len(), "{resource}");
    assert_eq!(Value::Array(cells), want, "{resource} {object}");
}

/// A pod template with two containers.
fn template() -> Value {
    json!({"spec": {"containers": [{"name": "c1", "image": "i1"}, {"name": "c2", "image": "i2"}],
        "nodeSelector": {"b": "2", "a": "1"}}})
}

#[test]
fn kinds_without_columns_show_name_and_creation_time() {
    check("", "limitranges", json!({}), json!(["x", CREATED]));
    let names: Vec<&str> = columns("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        .iter()
        .map(|c| c.name)
        .collect();
    assert_eq!(names, ["Name", "Created At"]);
    assert_eq!(
        row("", "limitranges", &json!({}), NOW),
        [json!(""), json!("0001-01-01T00:00:00Z")]
    );
}

#[test]
fn odd_objects_make_rows_too() {
    let odd = json!({"metadata": [], "spec": "x", "status": {"conditions": {"a": 1}, "containerStatuses": [1, null]},
        "subsets": [[]], "rules": 5, "data": "x"});
    for (group, resource, _) in upstream::PRINTERS {
        for object in [&odd, &Value::Null, &json!([])] {
            assert_eq!(
                row(group, resource, object, NOW).len(),
                columns(group, "v1", resource).len(),
                "{resource}"
            );
        }
    }
}
