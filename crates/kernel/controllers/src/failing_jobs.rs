//! A Job fails at once and says why: no node here runs pods. Whoever waits for it, such as a Helm hook, hears so.
//!
//! Left alone are Jobs that have ended, are suspended, are being deleted, or belong to another controller
//! (`spec.managedBy`). A kube-controller-manager that holds its Lease brings the real Job controller: as long as it does,
//! all Jobs are left to it, or a Job could be failed here while its pods are made there.

use std::sync::Arc;
use std::time::Duration;

use fairway_controller::cache::Cache;
use fairway_controller::error::is_not_found;
use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::{
    Attempt as _, Clients, Controller, Failure, Manager, ObjectKey, Outcome, Queue, Reconcile, watch,
};
use fairway_kernel_kinds::job;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::ApiResource;
use kube::runtime::watcher;
use serde_json::Value;

use crate::{Setup, now, users};

const NAME: &str = "job-controller";
/// The value of `spec.managedBy` that means the cluster's own controller.
const OURS: &str = "kubernetes.io/job-controller";
const WORKERS: usize = 4;
/// The Lease of upstream's controllers.
const MANAGER_LEASE: &str = "kube-controller-manager";
const LEASE_NAMESPACE: &str = "kube-system";
/// How soon after its start this controller looks again whether the Lease is held.
const UNTIL_KNOWN: Duration = Duration::from_millis(20);

struct FailingJobs {
    clients: Clients,
    /// Whether each Job shall fail.
    jobs: Arc<Cache<bool>>,
    /// Until when the Lease of each workspace is held.
    leases: Arc<Cache<Timestamp>>,
    recorder: Recorder,
}

pub(crate) fn register(manager: &mut Manager, _: &Setup) {
    let clients = manager.clients(users::JOB_CONTROLLER);
    let (queue, jobs) = (Queue::default(), Arc::new(Cache::new(manager.reach())));
    let sink = queue.clone();
    manager.spawn(watch::follow_into(
        Api::<DynamicObject>::all_with(clients.every(), &resource()),
        watcher::Config::default(),
        manager.shutdown(),
        Arc::clone(&jobs),
        |job: &DynamicObject| job.metadata.deletion_timestamp.is_none() && decide(&job.data, "").is_some(),
        move |key| sink.add(key),
    ));
    let leases = Arc::new(Cache::new(manager.reach()));
    manager.spawn(watch::follow_into(
        Api::<Lease>::all(manager.clients(users::INFORMER).every()),
        watcher::Config::default().fields(&format!(
            "metadata.name={MANAGER_LEASE},metadata.namespace={LEASE_NAMESPACE}"
        )),
        manager.shutdown(),
        Arc::clone(&leases),
        held_until,
        |_| {},
    ));
    let recorder = Recorder::new(clients.clone(), NAME);
    let controller = Controller::new(
        NAME,
        queue,
        FailingJobs {
            clients,
            jobs,
            leases,
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

/// The end of a Lease's time; the beginning of time if nobody holds it.
fn held_until(lease: &Lease) -> Timestamp {
    let spec = lease.spec.as_ref();
    let holder = spec
        .and_then(|spec| spec.holder_identity.as_deref())
        .unwrap_or("");
    let renewed = spec.and_then(|spec| spec.renew_time.as_ref());
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds).unwrap_or(0);
    match renewed {
        Some(renewed) if !holder.is_empty() => renewed
            .0
            .checked_add(SignedDuration::from_secs(seconds.into()))
            .unwrap_or(Timestamp::MAX),
        _ => Timestamp::MIN,
    }
}

/// How long the Jobs are somebody else's, if they are.
fn left_to_another(held_until: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    let rest = held_until?.duration_since(now);
    (rest > SignedDuration::ZERO).then(|| rest.unsigned_abs())
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
        if !self.leases.is_synced() {
            return Ok(Outcome::Again(UNTIL_KNOWN));
        }
        let lease = ObjectKey::new(&key.workspace, LEASE_NAMESPACE, MANAGER_LEASE);
        let held_until = self.leases.get(&lease).as_deref().copied();
        if let Some(rest) = left_to_another(held_until, Timestamp::now()) {
            return Ok(Outcome::Again(rest));
        }
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.clients.of(&key.workspace), &key.namespace, &resource());
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
        self.recorder.record(&key.workspace, &about, happening).await;
        Ok(Outcome::Done)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::{decide, held_until, left_to_another};

    #[test]
    fn jobs_are_left_to_who_holds_the_lease() {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
        let lease = |spec: Value| Some(json!({"metadata": {}, "spec": spec}));
        let renewed =
            |time: &str| lease(json!({"holderIdentity": "a", "renewTime": time, "leaseDurationSeconds": 15}));
        for (name, lease, want) in [
            ("no lease", None, None),
            (
                "held",
                renewed("2026-11-16T11:59:55.000000Z"),
                Some(Duration::from_secs(10)),
            ),
            ("over", renewed("2026-11-16T11:59:40.000000Z"), None),
            ("over just now", renewed("2026-11-16T11:59:45.000000Z"), None),
            (
                "given back",
                lease(
                    json!({"holderIdentity": "", "renewTime": "2026-11-16T12:00:00.000000Z", "leaseDurationSeconds": 1}),
                ),
                None,
            ),
            (
                "never renewed",
                lease(json!({"holderIdentity": "a", "leaseDurationSeconds": 15})),
                None,
            ),
            ("empty", lease(json!({})), None),
        ] {
            let lease = lease.map(|lease| held_until(&serde_json::from_value(lease).unwrap()));
            assert_eq!(left_to_another(lease, now), want, "{name}");
        }
    }

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
