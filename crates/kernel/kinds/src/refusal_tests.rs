//! Rules that only wrong requests meet: each must refuse what it is for, and nothing near it.

use serde_json::{Value, json};

use crate::check::{create, stored, update};

fn pod(spec: &Value) -> Value {
    let mut pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    for (key, value) in spec.as_object().into_iter().flatten() {
        pod["spec"][key] = value.clone();
    }
    pod
}

fn job(spec: &Value) -> Value {
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    let mut job = json!({"metadata": {"name": "j"}, "spec": {"template": template}});
    for (key, value) in spec.as_object().into_iter().flatten() {
        job["spec"][key] = value.clone();
    }
    job
}

#[test]
fn pods_with_their_own_users_share_nothing() {
    create("", "pods", pod(&json!({"hostUsers": false}))).ok();
    create("", "pods", pod(&json!({"hostUsers": true, "hostPID": true}))).ok();
    create("", "pods", pod(&json!({"hostUsers": false, "hostPID": true})))
        .fails(&["spec.HostPID: Forbidden"]);
}

#[test]
fn pods_for_windows_have_nothing_of_linux() {
    let windows = json!({"os": {"name": "windows"}, "securityContext": {"runAsUser": 1}, "hostPID": true});
    create("", "pods", pod(&windows)).fails(&[
        "spec.hostPID: Forbidden: cannot be set for a windows pod",
        "spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
    ]);
    create(
        "",
        "pods",
        pod(&json!({"os": {"name": "linux"}, "hostPID": true})),
    )
    .ok();
}

#[test]
fn success_policies_name_indexes_that_exist() {
    for (indexes, why) in [
        ("0,2-3", ""),
        ("5", "too large index: \"5\""),
        ("1-x", "cannot convert string to integer for index: \"x\""),
        ("3-2", "non-increasing order, previous: 3, current: 2"),
        ("1,1", "non-increasing order, previous: 1, current: 1"),
        ("0-1-2", "the fragment \"0-1-2\" violates"),
    ] {
        let rules = json!({"rules": [{"succeededIndexes": indexes}]});
        let spec = json!({"completionMode": "Indexed", "completions": 4, "successPolicy": rules});
        let outcome = create("batch", "jobs", job(&spec));
        if why.is_empty() {
            outcome.ok();
        } else {
            let want = format!(
                "spec.successPolicy.rules[0].succeededIndexes: Invalid value: {indexes:?}: error parsing \
                 succeededIndexes: {why}"
            );
            outcome.fails(&[&want]);
        }
    }
}

#[test]
fn a_generated_selector_stays_generated() {
    let old = stored("batch", "jobs", job(&json!({})));
    let narrowed = |job: &mut Value| job["spec"]["selector"]["matchLabels"]["x"] = json!("z");
    let errors = update("batch", "jobs", &old, narrowed).errors;
    let found = errors
        .iter()
        .any(|e| e.ends_with("`selector` not auto-generated"));
    assert!(found, "{errors:#?}");
    update("batch", "jobs", &old, |job| job["spec"]["parallelism"] = json!(2)).ok();
}

#[test]
fn time_zones_are_in_the_database() {
    for (zone, known) in [
        ("Europe/Berlin", true),
        ("Etc/UTC", true),
        ("Mars/Base", false),
        ("europe/berlin", false),
    ] {
        let cron = json!({
            "metadata": {"name": "c"},
            "spec": {"schedule": "* * * * *", "timeZone": zone, "jobTemplate": {"spec": job(&json!({}))["spec"]}},
        });
        let outcome = create("batch", "cronjobs", cron);
        if known {
            outcome.ok();
        } else {
            outcome.fails(&[&format!(
                "spec.timeZone: Invalid value: {zone:?}: unknown time zone {zone}"
            )]);
        }
    }
}

#[test]
fn pull_secrets_have_names() {
    let secrets = json!({"imagePullSecrets": [{"name": "a"}, {"name": "a"}, {}]});
    let warnings = create("", "pods", pod(&secrets)).warnings;
    assert_eq!(
        warnings[1..],
        [
            "spec.imagePullSecrets[1].name: duplicate name \"a\"",
            "spec.imagePullSecrets[2].name: invalid empty name \"\"",
        ]
    );
}
