//! Jobs, CronJobs, and the controllers that keep pods running.

use serde_json::{Value, json};

use super::failure_conditions;
use crate::check::{NOW, create, stored, update, update_through};

fn template(restart: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"restartPolicy": restart, "containers": [{"name": "c", "image": "i:1"}]}})
}

fn job() -> Value {
    json!({"metadata": {"name": "j"}, "spec": {"template": template("Never")}})
}

#[test]
fn jobs_select_their_own_pods() {
    let object = create("batch", "jobs", job()).ok();
    let spec = &object["spec"];
    assert_eq!(
        spec["selector"],
        json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "uid-1"}})
    );
    assert_eq!(
        spec["template"]["metadata"]["labels"],
        json!({"app": "web", "job-name": "j", "batch.kubernetes.io/job-name": "j", "controller-uid": "uid-1",
            "batch.kubernetes.io/controller-uid": "uid-1"})
    );
    assert_eq!(
        object["metadata"]["labels"],
        spec["template"]["metadata"]["labels"]
    );
    for (key, value) in [
        ("completions", json!(1)),
        ("parallelism", json!(1)),
        ("backoffLimit", json!(6)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("podReplacementPolicy", json!("TerminatingOrFailed")),
        ("manualSelector", json!(false)),
    ] {
        assert_eq!(spec[key], value, "{key}");
    }
    let mut manual = job();
    manual["spec"]["selector"] = json!({"matchLabels": {"a": "b"}});
    create("batch", "jobs", manual).fails(&[
        "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\",\"batch.kubernetes.io/controller-uid\":\"uid-1\"}}: `selector` not auto-generated",
        "spec.template.metadata.labels: Invalid value",
    ]);
}

#[test]
fn job_mistakes() {
    let mut always = job();
    always["spec"]["template"] = template("Always");
    create("batch", "jobs", always)
        .fails(&["spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""]);
    let mut negative = job();
    negative["spec"]["parallelism"] = json!(-1);
    create("batch", "jobs", negative)
        .fails(&["spec.parallelism: Invalid value: -1: must be greater than or equal to 0"]);
    let mut indexed = job();
    indexed["spec"]["completionMode"] = json!("Indexed");
    indexed["spec"]["parallelism"] = json!(1);
    create("batch", "jobs", indexed)
        .fails(&["spec.completions: Required value: when completion mode is Indexed"]);
}

#[test]
fn job_templates_are_immutable() {
    let old = stored("batch", "jobs", job());
    update("batch", "jobs", &old, |o| {
        o["spec"]["template"]["spec"]["containers"][0]["image"] = json!("i:2");
    })
    .fails(&["spec.template: Invalid value: {"]);
    update("batch", "jobs", &old, |o| o["spec"]["completions"] = json!(2))
        .fails(&["spec.completions: Invalid value: 2: field is immutable"]);
    update("batch", "jobs", &old, |o| o["spec"]["parallelism"] = json!(2)).ok();
}

#[test]
fn a_job_that_cannot_run_fails_validly() {
    let old = stored("batch", "jobs", job());
    let failed = update_through("batch", "jobs", Some("status"), &old, |o| {
        o["status"] = failure_conditions(NOW);
    })
    .ok();
    let kinds: Vec<&str> = failed["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["FailureTarget", "Failed"]);
    update_through("batch", "jobs", Some("status"), &failed, |o| {
        o["status"]["conditions"] = json!([]);
    })
    .fails(&[
        "status.conditions: Invalid value: cannot disable the terminal Failed=True condition",
        "status.conditions: Invalid value: cannot disable the terminal FailureTarget=True condition",
    ]);
    update_through("batch", "jobs", Some("status"), &old, |o| {
        o["status"] = json!({"conditions": [{"type": "Failed", "status": "True"}]});
    })
    .fails(&[
        "status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition",
        "status.startTime: Required value: startTime is required for finished job",
    ]);
}

#[test]
fn cron_jobs() {
    let cron = |schedule: &str| json!({"metadata": {"name": "c"}, "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": template("OnFailure")}}}});
    let object = create("batch", "cronjobs", cron("*/5 * * * *")).ok();
    assert_eq!(object["spec"]["concurrencyPolicy"], "Allow");
    assert_eq!(object["spec"]["successfulJobsHistoryLimit"], 3);
    assert_eq!(object["spec"]["failedJobsHistoryLimit"], 1);
    create("batch", "cronjobs", cron("error"))
        .fails(&["spec.schedule: Invalid value: \"error\": expected exactly 5 fields, found 1: [error]"]);
    create("batch", "cronjobs", cron("TZ=UTC 0 * * * *")).fails(&[
        "spec.schedule: Invalid value: \"TZ=UTC 0 * * * *\": cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
    ]);
    let mut long = cron("@hourly");
    long["metadata"]["name"] = json!("a".repeat(53));
    create("batch", "cronjobs", long).fails(&["metadata.name: Invalid value"]);
    let mut local = cron("@hourly");
    local["spec"]["timeZone"] = json!("Local");
    create("batch", "cronjobs", local)
        .fails(&["spec.timeZone: Invalid value: \"Local\": timeZone must be an explicit time zone"]);
}

fn controller(labels: Value) -> Value {
    json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": labels}, "template": template("Always")}})
}

#[test]
fn deployments() {
    let old = stored("apps", "deployments", controller(json!({"app": "web"})));
    assert_eq!(old["spec"]["replicas"], 1);
    assert_eq!(
        old["spec"]["strategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}})
    );
    assert_eq!(old["spec"]["revisionHistoryLimit"], 10);
    assert_eq!(old["spec"]["progressDeadlineSeconds"], 600);
    assert_eq!(old["metadata"]["generation"], 1);
    create("apps", "deployments", controller(json!({"app": "db"}))).fails(&[
        "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match template `labels`",
    ]);
    create(
        "apps",
        "deployments",
        json!({"metadata": {"name": "d"}, "spec": {"template": template("Always")}}),
    )
    .fails(&[
        "spec.selector: Required value",
        "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match template `labels`",
    ]);
    create("apps", "deployments", controller(json!({}))).fails(&[
        "spec.selector: Invalid value: {\"matchLabels\":{}}: empty selector is invalid for deployment",
    ]);
    update("apps", "deployments", &old, |o| {
        o["spec"]["selector"] = json!({"matchLabels": {"app": "x"}});
        o["spec"]["template"]["metadata"]["labels"] = json!({"app": "x"});
    })
    .fails(&["spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"x\"}}: field is immutable"]);
    let scaled = update("apps", "deployments", &old, |o| o["spec"]["replicas"] = json!(3)).ok();
    assert_eq!(scaled["metadata"]["generation"], 2);
    let annotated = update("apps", "deployments", &old, |o| {
        o["metadata"]["annotations"] = json!({"a": "b"});
    })
    .ok();
    assert_eq!(annotated["metadata"]["generation"], 2, "annotations count");
    let labelled = update("apps", "deployments", &old, |o| {
        o["metadata"]["labels"] = json!({"a": "b"});
    });
    assert!(
        labelled.warnings.is_empty(),
        "only changes of the spec are worth the warning"
    );
    assert_eq!(labelled.ok()["metadata"]["generation"], 1, "labels do not");
    let mut recreate = controller(json!({"app": "web"}));
    recreate["spec"]["strategy"] = json!({"type": "Recreate", "rollingUpdate": {}});
    create("apps", "deployments", recreate).fails(&[
        "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
    ]);
    let mut stuck = controller(json!({"app": "web"}));
    stuck["spec"]["strategy"] = json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}});
    create("apps", "deployments", stuck).fails(&[
        "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
    ]);
}

#[test]
fn other_controllers() {
    for (resource, kind) in [
        ("replicasets", "ReplicaSet"),
        ("statefulsets", "StatefulSet"),
        ("daemonsets", "DaemonSet"),
    ] {
        let made = create("apps", resource, controller(json!({"app": "web"})));
        assert_eq!(
            made.warnings,
            [format!(
                "no node here runs pods: {kind} \"d\" is stored, but nothing will run it"
            )]
        );
        made.ok();
        let mut never = controller(json!({"app": "web"}));
        never["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
        create("apps", resource, never).fails(&[
            "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
        ]);
    }
    let controller = create(
        "",
        "replicationcontrollers",
        json!({"metadata": {"name": "r"}, "spec": {"template": template("Always")}}),
    )
    .ok();
    assert_eq!(controller["spec"]["selector"], json!({"app": "web"}));
    assert_eq!(controller["metadata"]["labels"], json!({"app": "web"}));
}

#[test]
fn stateful_sets_keep_their_claims() {
    let mut set = controller(json!({"app": "web"}));
    set["spec"]["serviceName"] = json!("svc");
    set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}}]);
    set["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/d"}]);
    let old = stored("apps", "statefulsets", set);
    assert_eq!(
        old["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"],
        "1Gi"
    );
    assert_eq!(
        old["spec"]["volumeClaimTemplates"][0]["status"]["phase"],
        "Pending"
    );
    update("apps", "statefulsets", &old, |o| o["spec"]["serviceName"] = json!("other")).fails(&[
        "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
    ]);
    update("apps", "statefulsets", &old, |o| o["spec"]["replicas"] = json!(5)).ok();
}
