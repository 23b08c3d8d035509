//! Pods: what their containers' states add up to.

use serde_json::{Value, json};

use super::NOW;
use crate::{row, row_conditions};

fn running(ready: bool, restarts: i64) -> Value {
    json!({"ready": ready, "restartCount": restarts, "state": {"running": {}}})
}

fn restarted(mut status: Value, at: &str) -> Value {
    status["lastState"] = json!({"terminated": {"finishedAt": at}});
    status
}

fn waiting(reason: &str) -> Value {
    json!({"restartCount": 3, "state": {"waiting": {"reason": reason}}})
}

fn terminated(reason: &str, exit_code: i64, signal: i64) -> Value {
    json!({"state": {"terminated": {"reason": reason, "exitCode": exit_code, "signal": signal}}})
}

const TEN_SECONDS_AGO: &str = "2001-09-09T01:46:30Z";
const TWO_MINUTES_AGO: &str = "2001-09-09T01:44:40Z";

/// Checks ready, status and restarts of a pod with the given numbers of init and other containers.
#[allow(clippy::needless_pass_by_value, reason = "the cases are literals")]
fn check(init: usize, containers: usize, status: Value, want: [&str; 3]) {
    check_pod(
        &json!({"spec": {"initContainers": vec![json!({}); init], "containers": vec![json!({}); containers]},
            "status": status}),
        want,
    );
}

fn check_pod(pod: &Value, want: [&str; 3]) {
    let cells = row("", "pods", pod, NOW);
    assert_eq!(cells[1..4], want.map(Value::from), "{pod}");
}

#[test]
fn containers_decide_the_status() {
    let ready = json!([{"type": "Ready", "status": "True"}]);
    for (statuses, want) in [
        (
            json!([running(true, 3), {"restartCount": 3}]),
            ["1/2", "Phase", "6"],
        ),
        (json!([running(true, 3), waiting("Why")]), ["1/2", "Why", "6"]),
        (
            json!([waiting("Why"), terminated("Ended", 1, 0)]),
            ["0/2", "Why", "3"],
        ),
        (
            json!([running(true, 0), terminated("", 7, 0)]),
            ["1/2", "ExitCode:7", "0"],
        ),
        (
            json!([running(true, 0), terminated("", 7, 9)]),
            ["1/2", "Signal:9", "0"],
        ),
        (
            json!([terminated("Completed", 0, 0), running(true, 3)]),
            ["1/2", "NotReady", "3"],
        ),
        (
            json!([terminated("Completed", 0, 0), terminated("Error", 1, 0)]),
            ["0/2", "Error", "0"],
        ),
        (
            json!([terminated("Completed", 0, 0), terminated("Completed", 0, 0)]),
            ["0/2", "Completed", "0"],
        ),
        (
            json!([
                restarted(running(true, 2), TEN_SECONDS_AGO),
                restarted(running(true, 1), TWO_MINUTES_AGO)
            ]),
            ["2/2", "Phase", "3 (10s ago)"],
        ),
        (
            json!([restarted(running(true, 0), TEN_SECONDS_AGO), running(false, 0)]),
            ["1/2", "Phase", "0"],
        ),
    ] {
        check(
            0,
            2,
            json!({"phase": "Phase", "containerStatuses": statuses}),
            want,
        );
    }
    let statuses = json!([terminated("Completed", 0, 0), running(true, 3)]);
    let status = json!({"phase": "Running", "containerStatuses": statuses, "conditions": ready});
    check(0, 2, status, ["1/2", "Running", "3"]);
    check(
        0,
        1,
        json!({"phase": "Phase", "reason": "Evicted"}),
        ["0/1", "Evicted", "0"],
    );
    let gated = json!([{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]);
    check(
        0,
        2,
        json!({"phase": "Pending", "conditions": gated}),
        ["0/2", "SchedulingGated", "0"],
    );
}

#[test]
fn init_containers_come_first() {
    let pending = json!([{"state": {"waiting": {}}}]);
    let failing = restarted(running(false, 3), TEN_SECONDS_AGO);
    let done = terminated("", 0, 0);
    let done_after_restarts = restarted(
        json!({"restartCount": 2, "state": done["state"]}),
        TWO_MINUTES_AGO,
    );
    for (init, statuses, want) in [
        (1, json!([failing]), ["0/1", "Init:0/1", "3 (10s ago)"]),
        (
            2,
            json!([failing, {"state": {"waiting": {}}}]),
            ["0/1", "Init:0/2", "3 (10s ago)"],
        ),
        (2, json!([done, failing]), ["0/1", "Init:1/2", "3 (10s ago)"]),
        (
            2,
            json!([done_after_restarts, failing]),
            ["0/1", "Init:1/2", "5 (10s ago)"],
        ),
        (
            1,
            json!([waiting("CrashLoopBackOff")]),
            ["0/1", "Init:CrashLoopBackOff", "3"],
        ),
        (1, json!([waiting("PodInitializing")]), ["0/1", "Init:0/1", "3"]),
        (1, json!([terminated("Error", 1, 0)]), ["0/1", "Init:Error", "0"]),
        (1, json!([terminated("", 2, 0)]), ["0/1", "Init:ExitCode:2", "0"]),
        (1, json!([terminated("", 2, 9)]), ["0/1", "Init:Signal:9", "0"]),
    ] {
        let status =
            json!({"phase": "Pending", "initContainerStatuses": statuses, "containerStatuses": pending});
        check(init, 1, status, want);
    }
    // Once they are done, their restarts are forgotten.
    let after = json!({"phase": "Running", "initContainerStatuses": [done_after_restarts],
        "containerStatuses": [restarted(running(false, 4), TEN_SECONDS_AGO)]});
    check(1, 1, after, ["0/1", "Running", "4 (10s ago)"]);
    let initialized = json!({"phase": "Running", "initContainerStatuses": [failing],
        "conditions": [{"type": "Initialized", "status": "True"}], "containerStatuses": [running(true, 0)]});
    check(1, 1, initialized, ["1/1", "Init:0/1", "0"]);
}

#[test]
fn sidecars_count_as_containers() {
    let spec = json!({"initContainers": [{"name": "init"}, {"name": "side", "restartPolicy": "Always"}],
        "containers": [{"name": "main"}, {"name": "other"}]});
    let side = |started: bool, ready: bool| {
        let mut status = restarted(running(ready, 3), TEN_SECONDS_AGO);
        status["name"] = json!("side");
        status["started"] = json!(started);
        status
    };
    let init = json!({"name": "init", "restartCount": 2, "state": {"terminated": {"exitCode": 0}}});
    for (statuses, containers, want) in [
        (
            json!([{"name": "init", "state": {"running": {}}}]),
            json!([]),
            ["0/3", "Init:0/2", "0"],
        ),
        (
            json!([init, side(false, false)]),
            json!([]),
            ["0/3", "Init:1/2", "5 (10s ago)"],
        ),
        (
            json!([init, side(true, true)]),
            json!([running(false, 4), {}]),
            ["1/3", "Running", "7 (10s ago)"],
        ),
        (
            json!([init, side(true, false)]),
            json!([running(true, 4), {}]),
            ["1/3", "Running", "7 (10s ago)"],
        ),
    ] {
        let status =
            json!({"phase": "Running", "initContainerStatuses": statuses, "containerStatuses": containers});
        check_pod(&json!({"spec": spec, "status": status}), want);
    }
}

#[test]
fn deletion_shows_until_the_pod_has_ended() {
    for (phase, reason, want) in [
        ("Running", "", "Terminating"),
        ("Pending", "", "Terminating"),
        ("Succeeded", "", "Succeeded"),
        ("Failed", "", "Failed"),
        ("Running", "NodeLost", "Unknown"),
    ] {
        let pod = json!({"metadata": {"deletionTimestamp": TEN_SECONDS_AGO}, "spec": {"containers": [{}]},
            "status": {"phase": phase, "reason": reason}});
        check_pod(&pod, ["0/1", want, "0"]);
    }
}

#[test]
fn wide_cells() {
    let pod = json!({"metadata": {"name": "x"},
        "spec": {"nodeName": "n", "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]},
        "status": {"podIPs": [{"ip": "1.1.1.1"}, {"ip": "fd00::1"}], "nominatedNodeName": "m",
            "conditions": [{"type": "a", "status": "True"}, {"type": "b", "status": "False"}]}});
    assert_eq!(
        row("", "pods", &pod, NOW)[4..],
        ["<unknown>", "1.1.1.1", "n", "m", "1/2"].map(Value::from)
    );
    let bare = row("", "pods", &json!({}), NOW);
    assert_eq!(
        bare[4..],
        ["<unknown>", "<none>", "<none>", "<none>", "<none>"].map(Value::from)
    );
}

#[test]
fn ended_pods_are_marked() {
    let conditions = |phase: &str| row_conditions("", "pods", &json!({"status": {"phase": phase}}));
    assert_eq!(conditions("Running"), Vec::<Value>::new());
    assert_eq!(conditions("Succeeded")[0]["reason"], "Succeeded");
    assert_eq!(conditions("Failed")[0]["type"], "Completed");
    assert_eq!(
        row_conditions("batch", "jobs", &json!({"status": {"phase": "Failed"}})),
        Vec::<Value>::new()
    );
}
