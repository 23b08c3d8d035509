//! What keeps pods running, and scales them.

use serde_json::{Value, json};

use super::{CREATED, check, template};

#[test]
fn workloads() {
    let spec = json!({"replicas": 5, "selector": {"matchLabels": {"foo": "bar"}}, "template": template()});
    let status = json!({"replicas": 4, "updatedReplicas": 2, "availableReplicas": 1, "readyReplicas": 3});
    let object = json!({"spec": spec, "status": status});
    check(
        "apps",
        "deployments",
        object.clone(),
        json!(["x", "3/5", 2, 1, "5m", "c1,c2", "i1,i2", "foo=bar"]),
    );
    check(
        "apps",
        "deployments",
        json!({}),
        json!(["x", "0/0", 0, 0, "5m", "", "", ""]),
    );
    check(
        "apps",
        "replicasets",
        object.clone(),
        json!(["x", 5, 4, 3, "5m", "c1,c2", "i1,i2", "foo=bar"]),
    );
    check(
        "apps",
        "replicasets",
        json!({}),
        json!(["x", 0, 0, 0, "5m", "", "", "<none>"]),
    );
    check(
        "apps",
        "statefulsets",
        object,
        json!(["x", "3/5", "5m", "c1,c2", "i1,i2"]),
    );
    check(
        "",
        "replicationcontrollers",
        json!({"spec": {"replicas": 5, "selector": {"b": "2", "a": "1"}, "template": template()}}),
        json!(["x", 5, 0, 0, "5m", "c1,c2", "i1,i2", "a=1,b=2"]),
    );
    let status = json!({"desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3,
        "updatedNumberScheduled": 2, "numberAvailable": 1});
    check(
        "apps",
        "daemonsets",
        json!({"spec": {"template": template()}, "status": status}),
        json!(["x", 5, 4, 3, 2, 1, "a=1,b=2", "5m", "c1,c2", "i1,i2", "<none>"]),
    );
    let owner = |controller: bool| {
        json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1",
        "kind": "DaemonSet", "name": "foo", "controller": controller}]}, "revision": 7})
    };
    check(
        "apps",
        "controllerrevisions",
        owner(true),
        json!(["x", "daemonset.apps/foo", 7, "5m"]),
    );
    check(
        "apps",
        "controllerrevisions",
        owner(false),
        json!(["x", "<none>", 7, "5m"]),
    );
    check(
        "policy",
        "poddisruptionbudgets",
        json!({"spec": {"minAvailable": 22}, "status": {"disruptionsAllowed": 5}}),
        json!(["x", "22", "N/A", 5, "5m"]),
    );
    check(
        "policy",
        "poddisruptionbudgets",
        json!({"spec": {"maxUnavailable": "10%"}}),
        json!(["x", "N/A", "10%", 0, "5m"]),
    );
    let scale = json!({"spec": {"replicas": 2}, "status": {"replicas": 1}});
    check("autoscaling", "scale", scale, json!(["x", 2, 1, "5m"]));
}

#[test]
fn jobs() {
    let condition = |kind: &str| json!({"status": {"conditions": [{"type": kind, "status": "True"}]}});
    for (object, status) in [
        (condition("Complete"), "Complete"),
        (condition("Failed"), "Failed"),
        (condition("Suspended"), "Suspended"),
        (condition("FailureTarget"), "FailureTarget"),
        (condition("SuccessCriteriaMet"), "SuccessCriteriaMet"),
        (json!({"metadata": {"deletionTimestamp": CREATED}}), "Terminating"),
        (
            json!({"status": {"conditions": [{"type": "Complete", "status": "False"}]}}),
            "Running",
        ),
    ] {
        check(
            "batch",
            "jobs",
            object,
            json!(["x", status, "0/1", "", "5m", "", "", "<none>"]),
        );
    }
    for (spec, status, completions, duration) in [
        (json!({"completions": 2}), json!({"succeeded": 1}), "1/2", ""),
        (json!({"parallelism": 3}), json!({}), "0/1 of 3", ""),
        (
            json!({"parallelism": 1}),
            json!({"startTime": CREATED}),
            "0/1",
            "5m",
        ),
        (
            json!({}),
            json!({"startTime": "2001-09-09T01:00:00Z", "completionTime": "2001-09-09T01:20:00Z"}),
            "0/1",
            "20m",
        ),
    ] {
        let want = json!(["x", "Running", completions, duration, "5m", "", "", "<none>"]);
        check("batch", "jobs", json!({"spec": spec, "status": status}), want);
    }
    let job_template = json!({"spec": {"template": template(), "selector": {"matchLabels": {"a": "b"}}}});
    check(
        "batch",
        "cronjobs",
        json!({"spec": {"schedule": "0/5 * * * ?", "timeZone": "LOCAL", "suspend": false, "jobTemplate": job_template},
            "status": {"active": [{}], "lastScheduleTime": "2001-09-09T01:46:10Z"}}),
        json!([
            "x",
            "0/5 * * * ?",
            "LOCAL",
            "False",
            1,
            "30s",
            "5m",
            "c1,c2",
            "i1,i2",
            "a=b"
        ]),
    );
    let want = json!([
        "x", "@daily", "<none>", "<unset>", 0, "<none>", "5m", "", "", "<none>"
    ]);
    check("batch", "cronjobs", json!({"spec": {"schedule": "@daily"}}), want);
}

#[test]
fn autoscalers_show_two_metrics() {
    let metric = |kind: &str, field: &str, spec: Value| json!({"type": kind, field: spec});
    let average = json!({"name": "cpu", "target": {"averageValue": "100m"}});
    let value = json!({"target": {"value": "100m"}});
    let utilization = json!({"name": "cpu", "target": {"averageUtilization": 80}});
    for (spec, status, want) in [
        (
            metric("External", "external", average.clone()),
            json!({}),
            "<unknown>/100m (avg)",
        ),
        (
            metric("External", "external", average.clone()),
            json!({"external": {"current": {"averageValue": "50m"}}}),
            "50m/100m (avg)",
        ),
        (
            metric("Object", "object", value.clone()),
            json!({"object": {"current": {"value": "50m"}}}),
            "50m/100m",
        ),
        (metric("Object", "object", value), json!({}), "<unknown>/100m"),
        (
            metric("Pods", "pods", average.clone()),
            json!({"pods": {"current": {"averageValue": "50m"}}}),
            "50m/100m",
        ),
        (
            metric("Resource", "resource", average),
            json!({}),
            "cpu: <unknown>/100m",
        ),
        (
            metric("Resource", "resource", utilization.clone()),
            json!({"resource": {"current": {"averageUtilization": 50}}}),
            "cpu: 50%/80%",
        ),
        (
            metric("ContainerResource", "containerResource", utilization.clone()),
            json!({}),
            "cpu: <unknown>/80%",
        ),
        (
            metric("Resource", "resource", json!({"name": "cpu", "target": {}})),
            json!({}),
            "cpu: <unknown>/<auto>",
        ),
        (metric("Other", "other", json!({})), json!({}), "<unknown type>"),
    ] {
        let object = json!({"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "minReplicas": 2,
            "maxReplicas": 10, "metrics": [spec]}, "status": {"currentReplicas": 4, "currentMetrics": [status]}});
        let want = json!(["x", "Deployment/web", want, "2", 10, 4, "5m"]);
        check("autoscaling", "horizontalpodautoscalers", object, want);
    }
    let three = vec![metric("Resource", "resource", utilization); 3];
    let object = json!({"spec": {"scaleTargetRef": {"kind": "K", "name": "n"}, "metrics": three}});
    let cell = "cpu: <unknown>/80%, cpu: <unknown>/80% + 1 more...";
    check(
        "autoscaling",
        "horizontalpodautoscalers",
        object,
        json!(["x", "K/n", cell, "<unset>", 0, 0, "5m"]),
    );
    let first =
        json!({"spec": {"scaleTargetRef": {"kind": "K", "name": "n"}, "targetCPUUtilizationPercentage": 80}});
    let want = json!(["x", "K/n", "cpu: <unknown>/80%", "<unset>", 0, 0, "5m"]);
    check("autoscaling", "horizontalpodautoscalers", first, want);
}
