//! The end of an APIBinding: the provider's view ends first, then the objects go, then what it held is free.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::backoff::Backoff;
use fairway_controller::error::is_not_found;
use fairway_controller::kinds::{Kind, discover};
use fairway_controller::requests::{Requests, version};
use fairway_controller::{Attempt as _, Failure, Metadata, ObjectKey, Outcome, WorkspaceId};
use fairway_kernel_tenancy::binding::{ApiBinding, Remaining, decide_deletion};
use fairway_kernel_tenancy::export::ApiExport;
use kube::api::{Api, DeleteParams, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::super::paths::BINDINGS;
use super::{Bindings, claims};
use crate::now;

/// Held objects are looked at again soon, since most finalizers go quickly, and at least every few seconds.
pub(super) const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(20),
    most: Duration::from_secs(4),
};

/// What is left of a kind.
struct Left {
    kind: Arc<Kind>,
    objects: Vec<Metadata>,
    finalizers: Vec<(String, usize)>,
}

impl Bindings {
    /// Makes a step towards the end of a binding.
    pub(super) async fn remove(
        &self,
        here: &Requests,
        key: &ObjectKey,
        object: &Value,
        binding: &ApiBinding,
    ) -> Result<Outcome, Failure> {
        let client = self.clients.of(&key.workspace);
        let path = format!("{BINDINGS}/{}", key.name);
        let granted = claims::claimed(object.pointer("/spec/permissionClaims"));
        if !granted.is_empty() {
            let patch = json!({
                "metadata": {"resourceVersion": version(object)}, "spec": {"permissionClaims": null},
            });
            here.merge(&path, &patch).await?;
            claims::label_anew(&client, &granted).await?;
            // The change itself calls for another look.
            return Ok(Outcome::Done);
        }
        claims::label_anew(
            &client,
            &claims::claimed(object.pointer("/status/appliedPermissionClaims")),
        )
        .await?;
        let others = self.successors(here, key).await?;
        let successors: Vec<(&ApiBinding, &ApiExport)> =
            others.iter().map(|(other, export)| (other, &**export)).collect();
        let mut left = look(&client, binding).await?;
        let first = decide_deletion(binding, &successors, &remaining(&left), &now());
        if !first.delete.is_empty() {
            for resource in &first.delete {
                let found = left.iter().find(|it| {
                    it.kind.resource.group == resource.group && it.kind.resource.plural == resource.resource
                });
                if let Some(found) = found {
                    delete(&client, found).await?;
                }
            }
            left = look(&client, binding).await?;
        }
        let plan = decide_deletion(binding, &successors, &remaining(&left), &now());
        let Some(finalizers) = plan.finalizers else {
            if let Some(status) = plan.status {
                here.replace_status(&path, object, &status).await?;
            }
            return Ok(Outcome::Poll);
        };
        let around = self.look_around(here, key).await?;
        around.write_locks(here, &around.locks_without(&key.name)).await?;
        let metadata = json!({"finalizers": finalizers, "resourceVersion": version(object)});
        here.merge(&path, &json!({"metadata": metadata})).await?;
        Ok(Outcome::Done)
    }

    /// Other bindings of the workspace, with their exports.
    async fn successors(
        &self,
        here: &Requests,
        key: &ObjectKey,
    ) -> Result<Vec<(ApiBinding, Arc<ApiExport>)>, Failure> {
        let all = here.list(BINDINGS).await?;
        let others = all
            .iter()
            .map(ApiBinding::read)
            .filter(|it| it.meta.name != key.name);
        Ok(others
            .filter_map(|other| {
                let (path, name) = other.reference()?;
                let at: WorkspaceId = self.tree.resolve_from(&key.workspace, path)?;
                let export = self.apis.exports.get(&ObjectKey::new(&at, "", name))?;
                Some((other, export))
            })
            .collect())
    }
}

fn remaining(left: &[Left]) -> Vec<Remaining<'_>> {
    left.iter()
        .map(|it| Remaining {
            group: &it.kind.resource.group,
            resource: &it.kind.resource.plural,
            objects: it.objects.len(),
            finalizers: &it.finalizers,
        })
        .collect()
}

/// What there is of the kinds that a binding brought.
async fn look(client: &Client, binding: &ApiBinding) -> Result<Vec<Left>, Failure> {
    if binding.bound.is_empty() {
        return Ok(Vec::new());
    }
    let kinds = discover(client).await?;
    let mut left = Vec::new();
    for bound in &binding.bound {
        let Some(kind) = kinds.resource(&(bound.group.clone(), bound.resource.clone())) else {
            continue;
        };
        let api: Api<Metadata> = kind.api(client.clone(), "");
        let objects = match api.list(&ListParams::default()).await {
            Err(error) if is_not_found(&error) => Vec::new(),
            answer => answer.attempting(format!("list {}", bound.resource))?.items,
        };
        let mut finalizers: BTreeMap<String, usize> = BTreeMap::new();
        for finalizer in objects.iter().flat_map(|it| it.finalizers()) {
            *finalizers.entry(finalizer.clone()).or_default() += 1;
        }
        left.push(Left {
            kind: Arc::clone(kind),
            objects,
            finalizers: finalizers.into_iter().collect(),
        });
    }
    Ok(left)
}

async fn delete(client: &Client, left: &Left) -> Result<(), Failure> {
    for object in &left.objects {
        if object.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let namespace = object.namespace().unwrap_or_default();
        let api: Api<Metadata> = left.kind.api(client.clone(), &namespace);
        match api.delete(&object.name_any(), &DeleteParams::background()).await {
            Err(error) if is_not_found(&error) => {}
            answer => answer
                .attempting(format!(
                    "delete {} {}",
                    left.kind.resource.plural,
                    object.name_any()
                ))
                .map(drop)?,
        }
    }
    Ok(())
}
