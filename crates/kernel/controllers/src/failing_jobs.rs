//! A Job fails at once and says why: no node here runs pods. Whoever waits for it, such as a Helm hook, hears so.
//!
//! Left alone are Jobs that have ended, are suspended, are being deleted, or belong to another controller
//! (`spec.managedBy`).

use std::sync::Arc;

use fairway_controller::cache::Cache;
use fairway_controller::error::is_not_found;
use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::{
    Attempt as _, Controller, Failure, Manager, ObjectKey, Outcome, Queue, Reconcile, watch,
};
use fairway_kernel_kinds::job;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::ApiResource;
use kube::runtime::watcher;
use serde_json::Value;

use crate::{Setup, now, users};

const NAME: &str = "job-controller";
/// The value of `spec.managedBy` that means the cluster's own controller.
const OURS: &str = "kubernetes.io/job-controller";
const WORKERS: usize = 4;

struct FailingJobs {
    client: Client,
    /// Whether each Job shall fail.
    jobs: Arc<Cache<bool>>,
    recorder: Recorder,
}

pub(crate) fn register(manager: &mut Manager, setup: &Setup) {
    let client = manager.client(&setup.workspace, users::JOB_CONTROLLER);
    let (queue, jobs) = (Queue::default(), Arc::new(Cache::new(&setup.workspace)));
    let sink = queue.clone();
    manager.spawn(watch::follow_into(
        Api::<DynamicObject>::all_with(client.clone(), &resource()),
        watcher::Config::default(),
        manager.shutdown(),
        Arc::clone(&jobs),
        |job: &DynamicObject| job.metadata.deletion_timestamp.is_none() && decide(&job.data, "").is_some(),
        move |key| sink.add(key),
    ));
    let recorder = Recorder::new(client.clone(), NAME);
    let controller = Controller::new(
        NAME,
        queue,
        FailingJobs {
            client,
            jobs,
            recorder,
        },
    )
    .workers(WORKERS);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

fn resource() -> ApiResource {
    ApiResource {
        group: "batch".to_owned(),
        version: "v1".to_owned(),
        api_version: "batch/v1".to_owned(),
        kind: "Job".to_owned(),
        plural: "jobs".to_owned(),
    }
}

/// The status that a Job shall have; `None`: it is left alone.
fn decide(job: &Value, now: &str) -> Option<Value> {
    let ended = job
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .is_some_and(|conditions| {
            conditions
                .iter()
                .any(|c| c["status"] == "True" && (c["type"] == "Complete" || c["type"] == "Failed"))
        });
    let suspended = job
        .pointer("/spec/suspend")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    let manager = job
        .pointer("/spec/managedBy")
        .and_then(Value::as_str)
        .unwrap_or(OURS);
    if ended || suspended || manager != OURS {
        return None;
    }
    let mut status = job::failure_conditions(now);
    // A time that is set must stay.
    if let Some(started) = job.pointer("/status/startTime").filter(|t| t.is_string()) {
        status["startTime"] = started.clone();
    }
    Some(status)
}

impl Reconcile<ObjectKey> for FailingJobs {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        if self.jobs.get(key).as_deref() != Some(&true) {
            return Ok(Outcome::Done);
        }
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &key.namespace, &resource());
        let Some(mut job) = api.get_opt(&key.name).await.attempting("read the Job")? else {
            return Ok(Outcome::Done);
        };
        let Some(status) = decide(&job.data, &now()).filter(|_| job.metadata.deletion_timestamp.is_none())
        else {
            return Ok(Outcome::Done);
        };
        let message = status
            .pointer("/conditions/0/message")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        job.data["status"] = status;
        match api.replace_status(&key.name, &PostParams::default(), &job).await {
            Err(error) if is_not_found(&error) => return Ok(Outcome::Done),
            answer => drop(answer.attempting("write the Job's status")?),
        }
        let about = ObjectReference {
            api_version: Some("batch/v1".to_owned()),
            kind: Some("Job".to_owned()),
            name: Some(key.name.clone()),
            namespace: Some(key.namespace.clone()),
            uid: job.metadata.uid.clone(),
            ..ObjectReference::default()
        };
        let happening = Happening {
            severity: Severity::Warning,
            reason: job::NOTHING_RUNS_PODS,
            message,
        };
        self.recorder.record(&about, happening).await;
        Ok(Outcome::Done)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::decide;

    #[test]
    fn a_job_fails_unless_it_is_not_ours_to_fail() {
        let ended = |kind: &str| json!({"status": {"conditions": [{"type": kind, "status": "True"}]}});
        for (name, job, want) in [
            ("new", json!({"spec": {}}), true),
            ("complete", ended("Complete"), false),
            ("failed", ended("Failed"), false),
            ("about to fail", ended("FailureTarget"), true),
            ("suspended", json!({"spec": {"suspend": true}}), false),
            (
                "of another controller",
                json!({"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}}),
                false,
            ),
            (
                "expressly ours",
                json!({"spec": {"managedBy": "kubernetes.io/job-controller"}}),
                true,
            ),
        ] {
            assert_eq!(decide(&job, "t").is_some(), want, "{name}");
        }
    }

    #[test]
    fn the_status_says_why_and_keeps_the_start() {
        let status = decide(&json!({"spec": {}, "status": {"startTime": "t0"}}), "t1").unwrap();
        let conditions = status["conditions"].as_array().unwrap();
        let kinds: Vec<&Value> = conditions.iter().map(|c| &c["type"]).collect();
        assert_eq!(kinds, ["FailureTarget", "Failed"]);
        assert!(
            conditions[1]["message"]
                .as_str()
                .unwrap()
                .contains("no node here runs pods")
        );
        assert_eq!(status["startTime"], "t0");
    }
}
