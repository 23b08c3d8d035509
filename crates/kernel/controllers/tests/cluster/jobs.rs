//! Jobs fail at once, with a reason.

use serde_json::{Value, json};

use crate::harness::{Cluster, a_while, create, eventually};

fn job(name: &str, suspend: bool) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "suspend": suspend,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}},
        },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_fails_and_says_why() {
    let cluster = Cluster::start().await;
    let jobs = cluster.api("batch/v1", "Job", "jobs", "default");
    create(&jobs, job("j", false)).await;
    eventually("the Job fails", || async {
        let job = jobs.get("j").await.unwrap();
        let conditions = job
            .data
            .pointer("/status/conditions")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        conditions
            .iter()
            .any(|c| c["type"] == "Failed" && c["status"] == "True" && c["reason"] == "NoNodeRunsPods")
    })
    .await;
    let events = cluster.api("v1", "Event", "events", "default");
    eventually("an event tells", || async {
        let list = events.list(&kube::api::ListParams::default()).await.unwrap();
        list.iter()
            .any(|e| e.data["involvedObject"]["name"] == "j" && e.data["reason"] == "NoNodeRunsPods")
    })
    .await;
    create(&jobs, job("suspended", true)).await;
    a_while().await;
    let suspended = jobs.get("suspended").await.unwrap();
    assert_eq!(suspended.data.pointer("/status/conditions"), None);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_left_to_a_manager_that_lives() {
    let cluster = Cluster::start().await;
    let leases = cluster.api("coordination.k8s.io/v1", "Lease", "leases", "kube-system");
    let now = jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%S.000000Z")
        .to_string();
    let spec = json!({"holderIdentity": "a", "renewTime": now, "leaseDurationSeconds": 6});
    create(
        &leases,
        json!({"metadata": {"name": "kube-controller-manager"}, "spec": spec}),
    )
    .await;
    a_while().await;
    let jobs = cluster.api("batch/v1", "Job", "jobs", "default");
    create(&jobs, job("j", false)).await;
    a_while().await;
    let untouched = jobs.get("j").await.unwrap();
    assert_eq!(untouched.data.pointer("/status/conditions"), None);
    eventually("the Job fails when the Lease is over", || async {
        let job = jobs.get("j").await.unwrap();
        job.data.pointer("/status/conditions/1/type") == Some(&json!("Failed"))
    })
    .await;
    cluster.stop().await;
}
