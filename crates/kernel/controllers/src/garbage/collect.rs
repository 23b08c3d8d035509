//! The hands of the collector: they look at the API, ask [`super::decide`], and carry the verdict out.

use std::sync::{Arc, PoisonError};

use fairway_controller::error::is_not_found;
use fairway_controller::kinds::Kind;
use fairway_controller::served::Served;
use fairway_controller::{Attempt as _, Clients, Failure, Outcome, Reconcile, WorkspaceId, finalizers};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, Preconditions, PropagationPolicy};
use serde_json::{Value, json};

use super::decide::{Owner, Verdict, Waiting, decide, decide_waiting, unblocked, without};
use super::graph::{FOREGROUND, Glance, Identity, ORPHAN, Uid, Work};
use super::{GarbageKey, MetadataApi, Shared};

/// What a reference leads to.
enum Found {
    Owner(Owner),
    /// An object of the cluster names an owner in a namespace. It stays, and is told.
    Misplaced,
    /// Nobody serves the kind; perhaps its CRD is only just being read. Nothing is decided without knowing.
    UnknownKind,
}

pub(super) struct Collector {
    pub(super) clients: Clients,
    pub(super) shared: Arc<Shared>,
    pub(super) served: Served,
}

/// The collector at work in a workspace.
struct Hands<'c> {
    client: Client,
    workspace: &'c WorkspaceId,
    shared: &'c Shared,
    served: &'c Served,
}

impl Reconcile<GarbageKey> for Collector {
    async fn reconcile(&self, key: &GarbageKey) -> Result<Outcome, Failure> {
        let hands = Hands {
            client: self.clients.of(&key.workspace),
            workspace: &key.workspace,
            shared: &self.shared,
            served: &self.served,
        };
        match &key.work {
            Work::Delete(uid) => hands.attempt_delete(uid).await,
            Work::Orphan(uid) => hands.orphan(uid).await,
        }
    }
}

impl Hands<'_> {
    fn api(&self, kind: &Kind, identity: &Identity) -> MetadataApi {
        kind.api(self.client.clone(), &identity.namespace)
    }

    /// The kind that a reference names: one that is served, or was until lately.
    async fn kind(&self, api_version: &str, kind: &str) -> Result<Option<Arc<Kind>>, Failure> {
        if let Some(kind) = self.served.kind(self.workspace, api_version, kind).await? {
            return Ok(Some(kind));
        }
        let former = self.shared.former.lock().unwrap_or_else(PoisonError::into_inner);
        let meant = |k: &Kind| k.resource.api_version == api_version && k.resource.kind == kind;
        let found = former
            .iter()
            .find(|(at, kind)| at == self.workspace && meant(kind));
        Ok(found.map(|(_, kind)| Arc::clone(kind)))
    }

    /// The object as it is now; `None` if it is gone or another has its name.
    async fn latest(&self, kind: &Kind, identity: &Identity) -> Result<Option<ObjectMeta>, Failure> {
        let found = self
            .api(kind, identity)
            .get_opt(&identity.name)
            .await
            .attempting("look at an object")?;
        Ok(found
            .map(|object| object.metadata)
            .filter(|meta| meta.uid.as_deref() == Some(&identity.uid)))
    }

    /// Takes an object that is gone out of the graph.
    fn gone(&self, uid: &str) -> Outcome {
        let work = self.shared.graph().remove(self.workspace, uid);
        self.shared.add(self.workspace, work);
        Outcome::Done
    }

    async fn attempt_delete(&self, uid: &str) -> Result<Outcome, Failure> {
        let Some(glance) = self.shared.graph().glance(self.workspace, uid) else {
            return Ok(Outcome::Done);
        };
        // An owner that nobody has seen is looked for by those who claim it.
        let Some(kind) = glance.kind.clone() else {
            return Ok(Outcome::Done);
        };
        if glance.deleting_dependents {
            return self.wait_for_dependents(&kind, &glance).await;
        }
        if glance.deleting || glance.settled {
            return Ok(Outcome::Done);
        }
        let Some(latest) = self.latest(&kind, &glance.identity).await? else {
            return Ok(self.gone(uid));
        };
        if latest.deletion_timestamp.is_some() {
            return Ok(Outcome::Done);
        }
        let mut owners = Vec::new();
        for reference in latest.owner_references.iter().flatten() {
            match self.classify(&glance.identity, reference).await? {
                Found::Owner(owner) => owners.push((reference.clone(), owner)),
                Found::Misplaced => return Ok(Outcome::Done),
                Found::UnknownKind => return Ok(Outcome::Poll),
            }
        }
        match decide(&latest, &owners, &glance.dependents) {
            Verdict::Keep => Ok(Outcome::Done),
            Verdict::Release(lost) => {
                let kept = without(latest.owner_references.as_deref().unwrap_or_default(), &lost);
                self.set_owners(&kind, &glance.identity, &latest, kept).await?;
                Ok(Outcome::Done)
            }
            Verdict::Delete { policy, unblock } => {
                let mut latest = latest;
                if unblock {
                    let free = unblocked(latest.owner_references.as_deref().unwrap_or_default());
                    if let Some(changed) = self.set_owners(&kind, &glance.identity, &latest, free).await? {
                        latest = changed;
                    }
                }
                self.delete(&kind, &glance.identity, &latest, policy).await
            }
        }
    }

    /// What a reference leads to.
    async fn classify(&self, item: &Identity, reference: &OwnerReference) -> Result<Found, Failure> {
        if self
            .shared
            .graph()
            .is_absent(self.workspace, reference, &item.namespace)
        {
            return Ok(Found::Owner(Owner::Dangling));
        }
        let Some(kind) = self.kind(&reference.api_version, &reference.kind).await? else {
            return Ok(Found::UnknownKind);
        };
        if kind.namespaced && item.namespace.is_empty() {
            let _ = self.shared.misplaced.send((item.clone(), reference.clone()));
            return Ok(Found::Misplaced);
        }
        let namespace = if kind.namespaced {
            item.namespace.as_str()
        } else {
            ""
        };
        let claim = Identity::claimed(self.workspace, reference, namespace);
        let Some(owner) = self.latest(&kind, &claim).await? else {
            self.shared.graph().add_absent(claim);
            return Ok(Found::Owner(Owner::Dangling));
        };
        self.shared.graph().confirm(self.workspace, &kind, &owner);
        let waiting = owner.deletion_timestamp.is_some() && finalizers::has(&owner, FOREGROUND);
        Ok(Found::Owner(if waiting { Owner::Waiting } else { Owner::Solid }))
    }

    async fn wait_for_dependents(&self, kind: &Kind, glance: &Glance) -> Result<Outcome, Failure> {
        match decide_waiting(&glance.dependents) {
            Waiting::Release => self.release(kind, &glance.identity, FOREGROUND).await,
            Waiting::Press(dependents) => {
                self.shared
                    .add(self.workspace, dependents.into_iter().map(Work::Delete));
                Ok(Outcome::Done)
            }
        }
    }

    async fn orphan(&self, uid: &Uid) -> Result<Outcome, Failure> {
        let Some(glance) = self.shared.graph().glance(self.workspace, uid) else {
            return Ok(Outcome::Done);
        };
        let Some(kind) = glance.kind.clone() else {
            return Ok(Outcome::Done);
        };
        for dependent in &glance.dependents {
            let identity = &dependent.identity;
            let Some(kind) = self.kind(&identity.api_version, &identity.kind).await? else {
                continue;
            };
            let Some(latest) = self.latest(&kind, identity).await? else {
                continue;
            };
            let kept = without(
                latest.owner_references.as_deref().unwrap_or_default(),
                std::slice::from_ref(uid),
            );
            self.set_owners(&kind, identity, &latest, kept).await?;
        }
        self.release(&kind, &glance.identity, ORPHAN).await
    }

    /// Takes the collector's finalizer from an owner.
    async fn release(&self, kind: &Kind, identity: &Identity, finalizer: &str) -> Result<Outcome, Failure> {
        let Some(latest) = self.latest(kind, identity).await? else {
            return Ok(self.gone(&identity.uid));
        };
        if let Some(patch) = finalizers::removing(&latest, finalizer) {
            self.patch(kind, identity, patch, "release an owner").await?;
        }
        Ok(Outcome::Done)
    }

    async fn set_owners(
        &self,
        kind: &Kind,
        identity: &Identity,
        latest: &ObjectMeta,
        owners: Option<Vec<OwnerReference>>,
    ) -> Result<Option<ObjectMeta>, Failure> {
        let Some(owners) = owners else { return Ok(None) };
        // A merge patch has no empty lists: nothing is left of the field.
        let owners = if owners.is_empty() {
            Value::Null
        } else {
            json!(owners)
        };
        let patch = json!({"metadata": {
            "uid": latest.uid, "resourceVersion": latest.resource_version, "ownerReferences": owners,
        }});
        self.patch(kind, identity, patch, "change owner references").await
    }

    async fn patch(
        &self,
        kind: &Kind,
        identity: &Identity,
        patch: Value,
        doing: &'static str,
    ) -> Result<Option<ObjectMeta>, Failure> {
        let api = self.api(kind, identity);
        match api
            .patch(&identity.name, &PatchParams::default(), &Patch::Merge(patch))
            .await
        {
            Err(error) if is_not_found(&error) => Ok(None),
            answer => Ok(Some(answer.attempting(doing)?.metadata)),
        }
    }

    async fn delete(
        &self,
        kind: &Kind,
        identity: &Identity,
        latest: &ObjectMeta,
        policy: PropagationPolicy,
    ) -> Result<Outcome, Failure> {
        let params = DeleteParams {
            propagation_policy: Some(policy),
            preconditions: Some(Preconditions {
                uid: latest.uid.clone(),
                resource_version: latest.resource_version.clone(),
            }),
            ..DeleteParams::default()
        };
        match self.api(kind, identity).delete(&identity.name, &params).await {
            Err(error) if is_not_found(&error) => Ok(self.gone(&identity.uid)),
            answer => answer
                .attempting("delete an object whose owners are gone")
                .map(|_| Outcome::Done),
        }
    }
}
