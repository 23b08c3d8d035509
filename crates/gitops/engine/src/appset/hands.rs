//! Writes what was decided: Applications, many at once but not too many, and the set itself.

use fairway_api::argoproj::{API_VERSION, RESOURCES_FINALIZER};
use fairway_controller::commit::difference;
use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::{Failure, ObjectKey, Requests};
use fairway_gitops_appset::Cluster;
use fairway_gitops_appset::changes::{Change, Policy, adopted};
use fairway_gitops_appset::status::Reason;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::{Value, json};

use super::checks::destination;
use super::view::View;
use super::views::Views;
use crate::application::path_of;

/// Whom fields that the controller writes belong to.
const MANAGER: &str = "argocd-applicationset-controller";
/// Requests under way at once.
const AT_ONCE: usize = 16;
/// How often somebody else may be quicker.
const ATTEMPTS: usize = 5;

/// A set, and what its pass writes with.
pub(crate) struct Hands<'a> {
    pub(crate) key: &'a ObjectKey,
    pub(crate) set: &'a Value,
    pub(crate) requests: &'a Requests,
    pub(crate) recorder: &'a Recorder,
    pub(crate) applications: &'a Views,
    pub(crate) clusters: &'a [Cluster],
    pub(crate) urls: &'a [String],
    pub(crate) policy: Policy,
}

/// What went wrong with one Application.
pub(crate) type Problem = (Reason, String);

impl Hands<'_> {
    fn application(&self, name: &str) -> ObjectKey {
        ObjectKey::new(&self.key.workspace, &self.key.namespace, name)
    }

    fn path(&self, name: &str) -> String {
        path_of(&self.application(name))
    }

    /// Does everything that is to be done; what failed of it, in the order of names.
    pub(crate) async fn carry_out(&self, changes: Vec<Change>) -> Vec<Problem> {
        let work = futures::stream::iter(changes).map(|change| async move {
            let name = match &change {
                Change::Create(it) | Change::Update(it) => {
                    it["metadata"]["name"].as_str().unwrap_or_default().to_owned()
                }
                Change::Delete(name) => name.clone(),
            };
            let done = match change {
                Change::Create(wanted) => self.create(&name, &wanted).await.map_err(|why| {
                    let reason = match self.policy.updates {
                        true => Reason::Update,
                        false => Reason::Create,
                    };
                    (reason, why)
                }),
                Change::Update(wanted) => self
                    .update(&name, &wanted)
                    .await
                    .map_err(|why| (Reason::Update, why)),
                Change::Delete(name) => self.delete(&name).await.map_err(|why| (Reason::Delete, why)),
            };
            done.err().map(|problem| (name, problem))
        });
        let mut problems: Vec<(String, Problem)> = work
            .buffer_unordered(AT_ONCE)
            .filter_map(|done| async { done })
            .collect()
            .await;
        problems.sort_by(|a, b| a.0.cmp(&b.0));
        problems.into_iter().map(|(_, problem)| problem).collect()
    }

    async fn create(&self, name: &str, wanted: &Value) -> Result<(), String> {
        let path = format!(
            "/apis/{API_VERSION}/namespaces/{}/applications?fieldManager={MANAGER}",
            self.key.namespace
        );
        if self
            .requests
            .create(&path, wanted)
            .await
            .map_err(|failure| failure.sentence())?
        {
            self.happened("created", format!("created Application {name:?}"))
                .await;
            return Ok(());
        }
        // One of that name is there: made just now, or by somebody else.
        let Some(live) = self
            .requests
            .get(&self.path(name))
            .await
            .map_err(|failure| failure.sentence())?
        else {
            return Ok(());
        };
        let uid = self.set["metadata"]["uid"].as_str().unwrap_or_default();
        if View::read(&live).is_of(&self.key.name, uid) && !self.policy.updates {
            return Ok(());
        }
        self.adopt(name, wanted, live).await
    }

    /// Changes an Application that was read to what is wanted; again if somebody was quicker.
    async fn adopt(&self, name: &str, wanted: &Value, mut live: Value) -> Result<(), String> {
        for _ in 0..ATTEMPTS {
            let updated = adopted(self.set, wanted, &live).map_err(|error| error.to_string())??;
            match self.patch(name, &live, &updated).await {
                Err(failure) if failure.is_conflict() => {}
                other => return other.map_err(|failure| failure.sentence()),
            }
            match self
                .requests
                .get(&self.path(name))
                .await
                .map_err(|failure| failure.sentence())?
            {
                Some(found) => live = found,
                None => return Ok(()),
            }
        }
        Err(format!(
            "Application {name:?} changes faster than it can be written"
        ))
    }

    async fn update(&self, name: &str, updated: &Value) -> Result<(), String> {
        let Some(known) = self.applications.get(&self.application(name)) else {
            return Ok(());
        };
        match self.patch(name, &known.object, updated).await {
            Err(failure) if failure.is_conflict() => match self.requests.get(&self.path(name)).await {
                Ok(Some(live)) => self.adopt(name, updated, live).await,
                Ok(None) => Ok(()),
                Err(failure) => Err(failure.sentence()),
            },
            other => other.map_err(|failure| failure.sentence()),
        }
    }

    /// Writes the difference between an Application as it was read and as it should be.
    async fn patch(&self, name: &str, live: &Value, updated: &Value) -> Result<(), Failure> {
        let Some(mut patch) = difference(live, updated) else {
            return Ok(());
        };
        let version = &live["metadata"]["resourceVersion"];
        patch["metadata"]["resourceVersion"] = version.clone();
        let path = format!("{}?fieldManager={MANAGER}", self.path(name));
        if let Some(written) = self.requests.merge(&path, &patch).await? {
            self.applications.written(&self.application(name), &written);
            // What the API leaves out of what is written makes no difference.
            if written["metadata"]["resourceVersion"] != *version {
                self.happened("updated", format!("updated Application {name:?}"))
                    .await;
            }
        }
        Ok(())
    }

    async fn delete(&self, name: &str) -> Result<(), String> {
        let Some(known) = self.applications.get(&self.application(name)) else {
            return Ok(());
        };
        self.delete_read(name, &known.object)
            .await
            .map_err(|failure| failure.sentence())?;
        self.happened("Deleted", format!("Deleted Application {name:?}"))
            .await;
        Ok(())
    }

    /// Deletes an Application that was read. One whose destination is gone would wait forever for its objects to go.
    pub(crate) async fn delete_read(&self, name: &str, read: &Value) -> Result<(), Failure> {
        let path = self.path(name);
        let finalizers = read["metadata"]["finalizers"].as_array();
        let finalizers = finalizers.map_or(&[][..], Vec::as_slice);
        let left: Vec<&Value> = finalizers
            .iter()
            .filter(|it| **it != RESOURCES_FINALIZER)
            .collect();
        let is_lost = destination(&read["spec"], self.clusters, self.urls).is_err();
        if is_lost && left.len() < finalizers.len() {
            self.requests
                .merge(&path, &json!({"metadata": {"finalizers": left}}))
                .await?;
            let message = format!(
                "Updated Application {name:?} finalizer before deletion, because application has an invalid destination"
            );
            self.happened("Updated", message).await;
        }
        self.requests.delete_read(&path, read).await
    }

    /// Has an Application synced, unless it has changed since it was looked at; whether that is so.
    pub(crate) async fn sync(&self, name: &str, operation: &Value) -> Result<bool, Failure> {
        let Some(known) = self.applications.get(&self.application(name)) else {
            return Ok(true);
        };
        // If somebody was quicker, it may be synced already.
        let version = &known.object["metadata"]["resourceVersion"];
        let patch = json!({"metadata": {"resourceVersion": version}, "operation": operation});
        let path = format!("{}?fieldManager={MANAGER}", self.path(name));
        match self.requests.merge(&path, &patch).await {
            Ok(written) => written.iter().for_each(|written| {
                self.applications.written(&self.application(name), written);
            }),
            Err(failure) if failure.is_conflict() => return Ok(false),
            Err(failure) => return Err(failure),
        }
        Ok(true)
    }

    /// Writes a status, if it says something else than before.
    pub(crate) async fn write_status(&self, status: &Value) -> Result<(), Failure> {
        let Some(change) = difference(&self.set["status"], status) else {
            return Ok(());
        };
        let patch = json!({"status": change});
        let path = set_path(self.key);
        if self
            .requests
            .merge(&format!("{path}/status"), &patch)
            .await?
            .is_none()
        {
            // Gone, or a definition without a status of its own.
            self.requests.merge(&path, &patch).await?;
        }
        Ok(())
    }

    pub(crate) async fn happened(&self, reason: &'static str, message: String) {
        let about = ObjectReference {
            api_version: Some(API_VERSION.to_owned()),
            kind: Some("ApplicationSet".to_owned()),
            name: Some(self.key.name.clone()),
            namespace: Some(self.key.namespace.clone()),
            uid: self.set["metadata"]["uid"].as_str().map(str::to_owned),
            ..ObjectReference::default()
        };
        let happening = Happening {
            severity: Severity::Normal,
            reason,
            message,
        };
        self.recorder.record(&self.key.workspace, &about, happening).await;
    }
}

/// The path of a set.
pub(crate) fn set_path(key: &ObjectKey) -> String {
    format!(
        "/apis/{API_VERSION}/namespaces/{}/applicationsets/{}",
        key.namespace, key.name
    )
}
