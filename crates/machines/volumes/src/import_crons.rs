//! DataImportCrons: images that are looked for by a schedule, and imported when they changed.

use std::sync::Arc;
use std::time::Duration;

use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::{Clients, Failure, ObjectKey, Outcome, Reconcile, Requests};
use fairway_text_cron::Schedule;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::claims::reference;
use crate::decide::import_cron::{self, Cron, Import};
use crate::decide::source;
use crate::names;
use crate::origin::{Origin, Origins, Permit};
use crate::view::{self, Metadata};

/// How soon a registry is asked again that did not answer.
const RETRY: Duration = Duration::from_secs(60);

/// Looks after DataImportCrons.
pub(crate) struct ImportCrons {
    pub(crate) clients: Clients,
    pub(crate) recorder: Recorder,
    pub(crate) origins: Arc<Origins>,
}

fn collection(key: &ObjectKey, kind: &str) -> String {
    match kind {
        "persistentvolumeclaims" => format!("/api/v1/namespaces/{}/{kind}", key.namespace),
        _ => format!(
            "/apis/cdi.kubevirt.io/v1beta1/namespaces/{}/{kind}",
            key.namespace
        ),
    }
}

impl Reconcile<ObjectKey> for ImportCrons {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let requests = Requests::new(self.clients.of(&key.workspace));
        let path = format!("{}/{}", collection(key, "dataimportcrons"), key.name);
        let Some(read) = requests.get(&path).await? else {
            return clean_up(&requests, key).await;
        };
        let cron: Cron = view::read("dataimportcron", &read)?;
        if cron.metadata.is_deleting() {
            return clean_up(&requests, key).await;
        }
        if self.is_taken(&requests, key, &cron).await? {
            return Ok(Outcome::Done);
        }
        let (polled, next) = self.poll(key, &cron).await?;
        if let Some(annotations) = polled {
            let patch = json!({"metadata": {
                "resourceVersion": fairway_controller::requests::version(&read), "annotations": annotations,
            }});
            requests.merge(&path, &patch).await?;
            // The change brings it back.
            return Ok(next);
        }
        let import = import_of(&requests, key, &cron).await?;
        let before = read.get("status").cloned().unwrap_or_else(|| json!({}));
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let decision = import_cron::decide(&cron, &import, &before, &now);
        if let Some(current) = cron.status.current_imports.first()
            && decision.gives_up
        {
            remove(&requests, key, &current.data_volume_name).await?;
        }
        if let Some((name, digest)) = &decision.make {
            let claim = format!("{}/{name}", collection(key, "persistentvolumeclaims"));
            if requests.get(&claim).await?.is_none() {
                let volume = import_cron::volume(&cron, name, digest, &now);
                requests.create(&collection(key, "datavolumes"), &volume).await?;
            }
        }
        if decision.status != before {
            let patch = json!({
                "metadata": {"resourceVersion": fairway_controller::requests::version(&read)},
                "status": with_nulls(&before, &decision.status),
            });
            requests.merge(&path, &patch).await?;
        }
        self.data_source(&requests, key, &cron, &decision.status).await?;
        // While the next import is made, the present one and all before it stay.
        if decision.is_done && decision.make.is_none() {
            collect(&requests, key, &cron, &now).await?;
        }
        Ok(next)
    }
}

/// A merge patch to a status: what is there no more is said to be gone.
fn with_nulls(before: &Value, after: &Value) -> Value {
    let mut patch = after.clone();
    for field in before.as_object().into_iter().flat_map(|fields| fields.keys()) {
        if after.get(field).is_none() {
            patch[field] = Value::Null;
        }
    }
    patch
}

impl ImportCrons {
    /// Whether another cron looks after the DataSource.
    async fn is_taken(&self, requests: &Requests, key: &ObjectKey, cron: &Cron) -> Result<bool, Failure> {
        let name = &cron.spec.managed_data_source;
        let path = format!("{}/{name}", collection(key, "datasources"));
        let Some(found) = requests.get(&path).await? else {
            return Ok(false);
        };
        let other = found["metadata"]["labels"][names::CRON]
            .as_str()
            .unwrap_or_default();
        if other.is_empty() || other == key.name {
            return Ok(false);
        }
        let path = format!("{}/{other}", collection(key, "dataimportcrons"));
        let is_taken = requests
            .get(&path)
            .await?
            .is_some_and(|it| it["spec"]["managedDataSource"] == name.as_str());
        if is_taken {
            let message = format!("DataSource {name} is already managed by DataImportCron {other}");
            self.warn(key, &cron.metadata, "ErrDataSourceAlreadyManaged", message)
                .await;
        }
        Ok(is_taken)
    }

    async fn warn(&self, key: &ObjectKey, metadata: &Metadata, reason: &'static str, message: String) {
        let about = reference("cdi.kubevirt.io/v1beta1", "DataImportCron", metadata);
        let happening = Happening {
            severity: Severity::Warning,
            reason,
            message,
        };
        self.recorder.record(&key.workspace, &about, happening).await;
    }

    /// Asks the registry if it is time; what to note, and when to look again.
    async fn poll(&self, key: &ObjectKey, cron: &Cron) -> Result<(Option<Value>, Outcome), Failure> {
        if cron.spec.schedule.is_empty() {
            return Ok((None, Outcome::Done));
        }
        let now = Timestamp::now();
        let schedule = match Schedule::standard(&cron.spec.schedule) {
            Ok(schedule) => schedule,
            Err(why) => {
                self.warn(
                    key,
                    &cron.metadata,
                    "ErrSchedule",
                    format!("spec.schedule: {why}"),
                )
                .await;
                return Ok((None, Outcome::Done));
            }
        };
        let noted = cron
            .metadata
            .annotation(names::NEXT_CRON_TIME)
            .and_then(|text| text.parse::<Timestamp>().ok());
        if let Some(due) = noted
            && now < due
        {
            return Ok((None, Outcome::Again(from_now(now, due))));
        }
        let next = schedule
            .next(TimeZone::UTC.to_datetime(now))
            .and_then(|time| TimeZone::UTC.to_timestamp(time).ok());
        let template: view::DataVolume = view::read(
            "dataimportcron",
            &json!({"metadata": {"namespace": key.namespace}, "spec": cron.spec.template.get("spec")}),
        )?;
        let origin = match source::of(&template) {
            Ok(source) => self.origins.look_up(key, &source, &Permit::default()).await?,
            Err(why) => Origin::Refused(why),
        };
        let failed = match origin {
            Origin::Registry(pull) => match pull.digest().await {
                Ok(digest) => {
                    let mut annotations = json!({
                        names::DESIRED_DIGEST: digest.to_string(),
                        names::LAST_CRON_TIME: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                    });
                    if let Some(next) = next {
                        annotations[names::NEXT_CRON_TIME] =
                            json!(next.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
                    }
                    let again = next.map_or(Outcome::Done, |next| Outcome::Again(from_now(now, next)));
                    return Ok((Some(annotations), again));
                }
                Err(error) => error.to_string(),
            },
            Origin::Waits(told) | Origin::Asks(told) => told.message,
            Origin::Refused(why) => why,
            Origin::Here { .. } | Origin::Http(_) | Origin::Server(_) | Origin::Upload => {
                "only images of registries are looked for by a schedule".to_owned()
            }
        };
        self.warn(key, &cron.metadata, "ErrPollingDigest", failed).await;
        Ok((None, Outcome::Again(RETRY)))
    }

    /// The DataSource that a cron looks after stands for the last import.
    async fn data_source(
        &self,
        requests: &Requests,
        key: &ObjectKey,
        cron: &Cron,
        status: &Value,
    ) -> Result<(), Failure> {
        let all = collection(key, "datasources");
        let name = &cron.spec.managed_data_source;
        let imported = status.get("lastImportedPVC");
        let source = imported.map_or_else(|| json!({}), |imported| json!({"pvc": imported}));
        let mut labels = json!({
            "app": "containerized-data-importer", "app.kubernetes.io/component": "storage",
            "app.kubernetes.io/managed-by": "cdi-controller",
        });
        for (label, value) in import_cron::labels(cron) {
            labels[label] = json!(value);
        }
        let Some(found) = requests.get(&format!("{all}/{name}")).await? else {
            let made = json!({
                "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource",
                "metadata": {"name": name, "labels": labels}, "spec": {"source": source},
            });
            requests.create(&all, &made).await?;
            return Ok(());
        };
        // One that carries no mark of the cron is somebody else's.
        if found["metadata"]["labels"][names::CRON] != key.name.as_str() {
            return Ok(());
        }
        if imported.is_some() && found["spec"]["source"] != source {
            let patch = json!({
                "metadata": {"resourceVersion": fairway_controller::requests::version(&found)},
                "spec": {"source": {"pvc": imported, "snapshot": null}},
            });
            requests.merge(&format!("{all}/{name}"), &patch).await?;
        }
        Ok(())
    }
}

fn from_now(now: Timestamp, then: Timestamp) -> Duration {
    let left = Duration::try_from(then.duration_since(now)).unwrap_or_default();
    left.min(Duration::from_secs(86400)) + Duration::from_millis(500)
}

/// The present import, as it is found.
async fn import_of(requests: &Requests, key: &ObjectKey, cron: &Cron) -> Result<Import, Failure> {
    let Some(current) = cron.status.current_imports.first() else {
        return Ok(Import::None);
    };
    let name = &current.data_volume_name;
    let path = format!("{}/{name}", collection(key, "datavolumes"));
    if let Some(volume) = requests.get(&path).await? {
        let conditions = volume["status"]["conditions"].as_array();
        let has_failed = conditions
            .into_iter()
            .flatten()
            .any(|it| it["type"] == "Running" && it["status"] == "False" && it["reason"] == "Error");
        return Ok(Import::Volume {
            phase: volume["status"]["phase"].as_str().unwrap_or_default().to_owned(),
            has_failed,
        });
    }
    let claim = requests
        .get(&format!("{}/{name}", collection(key, "persistentvolumeclaims")))
        .await?;
    Ok(match claim {
        Some(claim) if claim["status"]["phase"] == "Bound" => Import::Claim,
        _ => Import::None,
    })
}

/// Removes a DataVolume, or its claim where it is gone already.
async fn remove(requests: &Requests, key: &ObjectKey, name: &str) -> Result<(), Failure> {
    let path = format!("{}/{name}", collection(key, "datavolumes"));
    match requests.get(&path).await? {
        Some(read) => requests.delete_read(&path, &read).await,
        None => {
            requests
                .delete(&format!("{}/{name}", collection(key, "persistentvolumeclaims")))
                .await
        }
    }
}

/// Removes imports that are too many, those first that were used longest ago.
async fn collect(requests: &Requests, key: &ObjectKey, cron: &Cron, now: &str) -> Result<(), Failure> {
    let Some(current) = cron.status.current_imports.first() else {
        return Ok(());
    };
    let claims = collection(key, "persistentvolumeclaims");
    let mut all = requests
        .list_selected(&claims, &format!("{}={}", names::CRON, key.name))
        .await?;
    let name = |it: &Value| it["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let used = |it: &Value| {
        let noted = it["metadata"]["annotations"][names::LAST_USE_TIME].as_str();
        noted.unwrap_or_default().to_owned()
    };
    let Some(kept) = import_cron::kept(&cron.spec) else {
        return Ok(());
    };
    if all.len() <= kept {
        return Ok(());
    }
    // The present one is used now.
    let is_current = |it: &Value| name(it) == current.data_volume_name;
    if let Some(it) = all.iter_mut().find(|it| is_current(it)) {
        it["metadata"]["annotations"][names::LAST_USE_TIME] = json!(now);
    }
    all.sort_by_key(|it| std::cmp::Reverse((is_current(it), used(it))));
    for old in all.iter().skip(kept) {
        remove(requests, key, &name(old)).await?;
    }
    Ok(())
}

/// What a cron made goes with it, if it says so.
async fn clean_up(requests: &Requests, key: &ObjectKey) -> Result<Outcome, Failure> {
    let selector = format!("{}={},{}=true", names::CRON, key.name, names::CRON_CLEANUP);
    for kind in ["datasources", "datavolumes", "persistentvolumeclaims"] {
        let all = collection(key, kind);
        for it in requests.list_selected(&all, &selector).await? {
            let name = it["metadata"]["name"].as_str().unwrap_or_default();
            requests.delete_read(&format!("{all}/{name}"), &it).await?;
        }
    }
    Ok(Outcome::Done)
}
