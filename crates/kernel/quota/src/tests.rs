//! Tables of decisions on quotas. What is expected was checked with kube-apiserver 1.36 or its source.

mod check;
mod limits;
mod usage;

use serde_json::{Value, json};

const NOW: &str = "2026-01-01T00:00:00Z";

/// A pod with one container of these resources.
fn pod(resources: Value) -> Value {
    json!({
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "resources": resources}]},
    })
}

/// A quota that has been counted.
fn quota(hard: Value, used: Value) -> Value {
    json!({
        "metadata": {"name": "q"},
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": used},
    })
}
