//! On which node what a disk is copied from is. A volume is copied where it lies, so its copy is made there.

use fairway_controller::{Failure, ObjectKey, Requests};
use serde_json::Value;

use super::{DATA_SOURCES, Origins, Permit};
use crate::decide::snapshot::NODE;
use crate::decide::source::Source;
use crate::names::SELECTED_NODE;
use crate::snapshots;
use crate::view::{self, Named};

impl Origins {
    /// The node of a source that is a claim or a snapshot; nothing of anything else, of what is not there, and of what must not be copied.
    pub(crate) async fn node_of(
        &self,
        target: &ObjectKey,
        source: &Source,
        permit: &Permit,
    ) -> Result<Option<String>, Failure> {
        let requests = Requests::new(self.clients.of(&target.workspace));
        let source = match source {
            Source::Reference(named) => match behind(&requests, named.clone()).await? {
                Some(source) => source,
                None => return Ok(None),
            },
            source => source.clone(),
        };
        let (Source::Claim(named) | Source::Snapshot(named)) = &source else {
            return Ok(None);
        };
        if self
            .lacks_right(&requests, target, named, permit)
            .await?
            .is_some()
        {
            return Ok(None);
        }
        let path = match &source {
            Source::Snapshot(_) => snapshots::path(&named.namespace, &named.name),
            _ => format!(
                "/api/v1/namespaces/{}/persistentvolumeclaims/{}",
                named.namespace, named.name
            ),
        };
        let Some(found) = requests.get(&path).await? else {
            return Ok(None);
        };
        if matches!(source, Source::Claim(_)) {
            return Ok(annotation(&found, SELECTED_NODE));
        }
        let content = found["status"]["boundVolumeSnapshotContentName"]
            .as_str()
            .filter(|it| !it.is_empty() && !it.contains('/'));
        let Some(content) = content else { return Ok(None) };
        let path = format!("/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents/{content}");
        let held = requests.get(&path).await?.unwrap_or_default();
        Ok(annotation(&held, NODE))
    }
}

/// What a DataSource stands for in the end.
async fn behind(requests: &Requests, mut named: Named) -> Result<Option<Source>, Failure> {
    for _ in 0..2 {
        let path = format!("{DATA_SOURCES}/{}/datasources/{}", named.namespace, named.name);
        let Some(found) = requests.get(&path).await? else {
            return Ok(None);
        };
        let source: view::DataSource = view::read("datasource", &found)?;
        let source = source.spec.source;
        match (source.pvc, source.snapshot, source.data_source) {
            (Some(claim), _, _) => return Ok(Some(Source::Claim(claim.within(&named.namespace)))),
            (_, Some(kept), _) => return Ok(Some(Source::Snapshot(kept.within(&named.namespace)))),
            (_, _, Some(next)) => named = next.within(&named.namespace),
            (None, None, None) => return Ok(None),
        }
    }
    Ok(None)
}

fn annotation(object: &Value, name: &str) -> Option<String> {
    let found = object["metadata"]["annotations"][name].as_str();
    found.filter(|it| !it.is_empty()).map(str::to_owned)
}
