//! DataSources say whether what they stand for can be used, and images of this host have a DataSource each.
//!
//! Images are published in the namespace `fairway-images` of the root workspace. `fairway image` works on files, whether a server runs
//! or not, so the server looks whether the directory with their records has changed: one question to the file system every few
//! seconds, and nothing more until the answer differs. Who waits for an image needs no DataSource: it looks for the image itself.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fairway_controller::{Clients, Failure, ObjectKey, Outcome, Reconcile, Requests, Shutdown};
use fairway_machines_image::Image;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tracing::{debug, warn};

use crate::decide::data_source::{self, Found};
use crate::decide::status::merged;
use crate::images::Images;
use crate::origin::blocking;
use crate::view::{self, DataSource, Named};
use crate::{IMAGES_NAMESPACE, names};

/// How often the directory of images is looked at.
const LOOK: Duration = Duration::from_secs(3);
/// As who it applies.
const MANAGER: &str = "fairway-machines-volumes";

/// Looks after DataSources.
pub(crate) struct DataSources {
    pub(crate) clients: Clients,
    /// Somebody touched what was published.
    pub(crate) published: Arc<Notify>,
}

fn path(key: &ObjectKey) -> String {
    format!(
        "/apis/cdi.kubevirt.io/v1beta1/namespaces/{}/datasources/{}",
        key.namespace, key.name
    )
}

impl Reconcile<ObjectKey> for DataSources {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let requests = Requests::new(self.clients.of(&key.workspace));
        if key.workspace.is_root() && key.namespace == IMAGES_NAMESPACE {
            self.published.notify_one();
        }
        let Some(read) = requests.get(&path(key)).await? else {
            return Ok(Outcome::Done);
        };
        let source: DataSource = view::read("datasource", &read)?;
        if source.metadata.is_deleting() || source.metadata.labels.contains_key(names::IMAGE) {
            return Ok(Outcome::Done);
        }
        let (found, labels) = self.find(&requests, &source).await?;
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let before = &read["status"];
        // Another source has nothing to do with what was said of the one before.
        let known = match before["source"] == read["spec"]["source"] {
            true => before["conditions"].clone(),
            false => Value::Null,
        };
        let status = json!({
            "source": read["spec"]["source"],
            "conditions": merged(&[data_source::ready(&found)], &known, &now),
        });
        let missing: Vec<_> = labels
            .into_iter()
            .filter(|(label, value)| source.metadata.labels.get(label) != Some(value))
            .collect();
        if status == *before && missing.is_empty() {
            return Ok(Outcome::Done);
        }
        let mut patch = json!({
            "metadata": {"resourceVersion": fairway_controller::requests::version(&read)},
            "status": status,
        });
        if before["source"] != status["source"] {
            // A merge would keep what the source was before.
            patch["status"]["source"]["pvc"] = or_null(&status["source"], "pvc");
            patch["status"]["source"]["snapshot"] = or_null(&status["source"], "snapshot");
        }
        for (label, value) in missing {
            patch["metadata"]["labels"][label] = json!(value);
        }
        requests.merge(&path(key), &patch).await?;
        Ok(Outcome::Done)
    }
}

fn or_null(value: &Value, field: &str) -> Value {
    value.get(field).cloned().unwrap_or(Value::Null)
}

impl DataSources {
    /// What a DataSource stands for, and the labels about sizes that go along with it.
    async fn find(
        &self,
        requests: &Requests,
        source: &DataSource,
    ) -> Result<(Found, Vec<(String, String)>), Failure> {
        let namespace = &source.metadata.namespace;
        let own = &source.spec.source;
        if let Some(named) = &own.pvc {
            return claim(requests, &named.within(namespace)).await;
        }
        if let Some(named) = &own.snapshot {
            let named = named.within(namespace);
            let path = format!(
                "/apis/snapshot.storage.k8s.io/v1/namespaces/{}/volumesnapshots/{}",
                named.namespace, named.name
            );
            let found = match requests.get(&path).await? {
                None => Found::NoSnapshot,
                Some(found) if found["status"]["readyToUse"] == true => Found::Ready,
                Some(_) => Found::Snapshotting,
            };
            return Ok((found, Vec::new()));
        }
        Ok((Found::Nothing, Vec::new()))
    }
}

async fn claim(requests: &Requests, named: &Named) -> Result<(Found, Vec<(String, String)>), Failure> {
    let at = |kind: &str| match kind {
        "datavolumes" => format!(
            "/apis/cdi.kubevirt.io/v1beta1/namespaces/{}/datavolumes/{}",
            named.namespace, named.name
        ),
        _ => format!(
            "/api/v1/namespaces/{}/persistentvolumeclaims/{}",
            named.namespace, named.name
        ),
    };
    let claim = requests.get(&at("persistentvolumeclaims")).await?;
    let volume = requests.get(&at("datavolumes")).await?;
    let found = match (&volume, &claim) {
        (Some(volume), _) => match volume["status"]["phase"].as_str().unwrap_or_default() {
            "Succeeded" => Found::Ready,
            phase => Found::Importing(phase.to_owned()),
        },
        (None, None) => Found::NoClaim,
        (None, Some(_)) => Found::Ready,
    };
    if found != Found::Ready {
        return Ok((found, Vec::new()));
    }
    let labels = [volume, claim]
        .iter()
        .flatten()
        .filter_map(|object| object["metadata"]["labels"].as_object())
        .flatten()
        .filter(|(label, _)| label.starts_with(names::INSTANCETYPE_LABELS))
        .filter_map(|(label, value)| Some((label.clone(), value.as_str()?.to_owned())))
        .collect();
    Ok((found, labels))
}

/// Publishes images until the end.
pub(crate) async fn publish(
    clients: Clients,
    images: Arc<Images>,
    touched: Arc<Notify>,
    mut shutdown: Shutdown,
) {
    let mut seen: Option<SystemTime> = None;
    let mut is_due = false;
    loop {
        let changed = std::fs::metadata(images.records())
            .and_then(|found| found.modified())
            .ok();
        // Where there is no cache, nobody has published anything from it.
        if changed.is_some() && (changed != seen || is_due) {
            match sync(&clients, &images).await {
                Ok(()) => seen = changed,
                Err(why) => warn!(why, "images could not be published"),
            }
        }
        is_due = tokio::select! {
            () = shutdown.wait() => return,
            () = tokio::time::sleep(LOOK) => false,
            () = touched.notified() => true,
        };
    }
}

async fn sync(clients: &Clients, images: &Arc<Images>) -> Result<(), String> {
    let opened = Arc::clone(images);
    let all = blocking(move || opened.open()?.images())
        .await
        .map_err(|error| crate::fill::sentence(&error))?;
    let requests = Requests::new(clients.root());
    let collection = format!("/apis/cdi.kubevirt.io/v1beta1/namespaces/{IMAGES_NAMESPACE}/datasources");
    let known = requests
        .get(&collection)
        .await
        .map_err(|failure| failure.sentence())?;
    let known = known.unwrap_or_default();
    let known = known["items"].as_array().map_or(&[][..], Vec::as_slice);
    if !all.is_empty() {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": IMAGES_NAMESPACE}});
        requests
            .create("/api/v1/namespaces", &namespace)
            .await
            .map_err(|failure| failure.sentence())?;
    }
    let names: BTreeSet<&str> = all.iter().map(|image| image.name.as_str()).collect();
    for image in &all {
        let wanted = rendered(image);
        if known.iter().any(|it| is_same(it, &wanted)) {
            continue;
        }
        // A name that somebody took for something else is left alone.
        let is_taken = known.iter().any(|it| {
            it["metadata"]["name"] == image.name.as_str()
                && it["metadata"]["labels"].get(names::IMAGE).is_none()
        });
        if is_taken {
            debug!(
                image = image.name,
                "a DataSource of the name of an image stands for something else"
            );
            continue;
        }
        let path = format!("{collection}/{}", image.name);
        let applied = requests.apply(&path, &wanted, MANAGER, true).await;
        applied.map_err(|failure| failure.sentence())?;
    }
    for gone in known {
        let name = gone["metadata"]["name"].as_str().unwrap_or_default();
        let is_ours = gone["metadata"]["labels"].get(names::IMAGE).is_some();
        if is_ours && !names.contains(name) {
            let removed = requests.delete_read(&format!("{collection}/{name}"), gone).await;
            removed.map_err(|failure| failure.sentence())?;
        }
    }
    Ok(())
}

/// The DataSource of an image.
fn rendered(image: &Image) -> Value {
    let mut labels = json!({names::IMAGE: image.name, "app.kubernetes.io/managed-by": "fairway"});
    for (label, value) in &image.labels {
        if label.starts_with(names::INSTANCETYPE_LABELS) {
            labels[label] = json!(value);
        }
    }
    json!({
        "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource",
        "metadata": {
            "name": image.name, "namespace": IMAGES_NAMESPACE, "labels": labels,
            "annotations": {
                names::IMAGE_DIGEST: format!("sha256:{}", image.digest),
                "fairway.dev/image-size": crate::decide::fitting::shown(image.virtual_size),
                "fairway.dev/image-source": image.source,
            },
        },
        "spec": {"source": {}},
        "status": {
            "source": {},
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "Ready", "message": "DataSource is ready to be consumed",
                "lastTransitionTime": image.created, "lastHeartbeatTime": image.created,
            }],
        },
    })
}

/// Whether what is there says everything that is wanted.
fn is_same(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(field, wanted)| match found.get(field) {
                Some(found) => is_same(found, wanted),
                // Lists leave out what the kind of their items is.
                None => field == "apiVersion" || field == "kind" || *wanted == json!({}),
            })
        }
        (found, wanted) => found == wanted,
    }
}
