//! What came of a claim is told: in the status of its DataVolume, in its own annotations, and by events.

use fairway_controller::events::{Happening, Severity};
use fairway_controller::{Failure, Outcome};
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::{Value, json};

use super::{Came, Claims, Look};
use crate::decide::source;
use crate::decide::status::{self, Filling, Observed};
use crate::names;
use crate::view::{Claim, Metadata};

impl Claims {
    /// Tells what came of it; when to look again.
    pub(super) async fn tell(&self, look: &Look<'_>, came: Came) -> Result<Outcome, Failure> {
        if came.restarts > 0 || matches!(came.filling, Filling::Ready | Filling::Done) {
            self.annotate(look, &came).await?;
        }
        let Some((read, volume)) = &look.data_volume else {
            self.tell_of_claim(look, &came).await;
            return Ok(came.next);
        };
        let work = source::of(volume).ok().map(|source| source.work());
        let named = came.named.clone().or_else(|| match source::of(volume) {
            Ok(
                source::Source::Claim(named)
                | source::Source::Snapshot(named)
                | source::Source::Reference(named),
            ) => Some(named),
            _ => None,
        });
        let before = read.get("status").cloned().unwrap_or_else(|| json!({}));
        // One that is finished stays so; only a claim that lost its volume is news.
        if volume.status.phase == "Succeeded" && came.phase.as_deref() == Some("Bound") {
            return self.collect(look, volume, came.next).await;
        }
        let observed = Observed {
            namespace: &look.key.namespace,
            name: &look.key.name,
            work,
            origin: named.as_ref().map(|it| (it.namespace.as_str(), it.name.as_str())),
            filling: &came.filling,
            claim: came.phase.as_deref(),
            restarts: came.restarts.max(volume.status.restart_count),
            before: &before,
        };
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let after = status::status(&observed, &now);
        if after == before {
            return Ok(came.next);
        }
        let path = look.data_volume_path();
        if look.requests.replace_status(&path, read, &after).await?.is_some() {
            let about = reference("cdi.kubevirt.io/v1beta1", "DataVolume", &volume.metadata);
            for happening in status::happenings(&observed, &after) {
                self.recorder.record(&look.key.workspace, &about, happening).await;
            }
        }
        Ok(came.next)
    }

    /// What CDI writes on a claim while it works, and virtctl reads.
    async fn annotate(&self, look: &Look<'_>, came: &Came) -> Result<(), Failure> {
        let is_upload = match &look.data_volume {
            Some((_, volume)) => matches!(source::of(volume), Ok(source::Source::Upload)),
            None => true,
        };
        if !is_upload && came.restarts == 0 {
            return Ok(());
        }
        let phase = match &came.filling {
            Filling::Done => "Succeeded",
            _ => "Running",
        };
        let mut annotations = serde_json::Map::new();
        if is_upload {
            annotations.insert(names::POD_PHASE.to_owned(), json!(phase));
            let is_ready = came.filling == Filling::Ready;
            annotations.insert(names::POD_READY.to_owned(), json!(is_ready.to_string()));
        }
        if came.restarts > 0 {
            annotations.insert(names::POD_RESTARTS.to_owned(), json!(came.restarts.to_string()));
        }
        let Some(found) = look.requests.get(&look.claim_path()).await? else {
            return Ok(());
        };
        let known = &found["metadata"]["annotations"];
        // A claim that nobody uploads to says nothing of it.
        let concerns = look.data_volume.is_some() || known.get(names::UPLOAD_TARGET).is_some();
        let is_news = annotations
            .iter()
            .any(|(name, value)| known.get(name) != Some(value));
        if concerns && is_news {
            let patch = json!({"metadata": {"uid": found["metadata"]["uid"], "annotations": annotations}});
            look.requests.merge(&look.claim_path(), &patch).await?;
        }
        Ok(())
    }

    /// A claim without a DataVolume tells by events alone.
    async fn tell_of_claim(&self, look: &Look<'_>, came: &Came) {
        let problem = match &came.filling {
            Filling::Retries(why) | Filling::Failed(why) => Some(("ProvisioningFailed", why.clone())),
            Filling::Waits(told) => Some((told.reason, told.message.clone())),
            _ => None,
        };
        if let (Some((reason, message)), Ok(Some(claim))) = (problem, super::read_claim(look).await) {
            self.warn_claim(look, &claim, reason, message).await;
        }
    }

    /// A DataVolume that asks to be gone when it is finished goes, and leaves its claim.
    async fn collect(
        &self,
        look: &Look<'_>,
        volume: &crate::view::DataVolume,
        next: Outcome,
    ) -> Result<Outcome, Failure> {
        if volume.metadata.annotation(names::DELETE_AFTER_COMPLETION) != Some("true") {
            return Ok(next);
        }
        let Some(found) = look.requests.get(&look.claim_path()).await? else {
            return Ok(next);
        };
        // Whoever owned the DataVolume owns the claim from now on.
        let owners = look
            .data_volume
            .as_ref()
            .map(|(read, _)| read["metadata"]["ownerReferences"].clone());
        let patch = json!({"metadata": {
            "uid": found["metadata"]["uid"],
            "resourceVersion": fairway_controller::requests::version(&found),
            "ownerReferences": owners.unwrap_or(Value::Null),
        }});
        look.requests.merge(&look.claim_path(), &patch).await?;
        if let Some((read, _)) = &look.data_volume {
            look.requests.delete_read(&look.data_volume_path(), read).await?;
        }
        Ok(next)
    }

    pub(super) async fn warn_claim(
        &self,
        look: &Look<'_>,
        claim: &Claim,
        reason: &'static str,
        message: String,
    ) {
        let happening = Happening {
            severity: Severity::Warning,
            reason,
            message,
        };
        let about = reference("v1", "PersistentVolumeClaim", &claim.metadata);
        self.recorder.record(&look.key.workspace, &about, happening).await;
    }

    pub(super) async fn tell_claim(
        &self,
        look: &Look<'_>,
        claim: &Claim,
        reason: &'static str,
        message: String,
    ) {
        let happening = Happening {
            severity: Severity::Normal,
            reason,
            message,
        };
        let about = reference("v1", "PersistentVolumeClaim", &claim.metadata);
        self.recorder.record(&look.key.workspace, &about, happening).await;
    }
}

pub(crate) fn reference(api_version: &str, kind: &str, metadata: &Metadata) -> ObjectReference {
    ObjectReference {
        api_version: Some(api_version.to_owned()),
        kind: Some(kind.to_owned()),
        namespace: Some(metadata.namespace.clone()),
        name: Some(metadata.name.clone()),
        uid: Some(metadata.uid.clone()),
        ..ObjectReference::default()
    }
}
