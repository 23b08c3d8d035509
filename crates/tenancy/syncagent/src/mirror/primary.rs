//! One original: its finalizer, its copy, its status.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use fairway_controller::events::{Happening, Severity};
use fairway_controller::requests::{Read, Requests, version};
use fairway_controller::{Failure, ObjectKey, Outcome, finalizers};
use fairway_kernel_tenancy::mirror::{Copying, Ownership, Step, next, ownership};
use fairway_kernel_tenancy::naming::{
    AGENT_LABEL, CLUSTER_LABEL, FINALIZER, Original, Tenure, original_of, tenure,
};
use fairway_kernel_tenancy::{ClusterId, WorkspacePath};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::ObjectMeta;
use serde_json::{Value, json};

use super::Mirror;
use super::failures::Trouble;
use crate::MANAGER;

const NAMESPACES: &str = "/api/v1/namespaces";
const LOGICAL_CLUSTER: &str = "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster";
/// From the first look at an original to the end there are fewer steps than this.
const MOST_STEPS: usize = 6;
/// A namespace may be taken, and so may the one instead of it.
const MOST_NAMESPACES: usize = 4;

/// An original that is being worked on.
pub(super) struct Work<'a> {
    pub(super) key: &'a ObjectKey,
    pub(super) remote: &'a Requests,
    pub(super) cluster: &'a ClusterId,
    pub(super) path: &'a WorkspacePath,
    pub(super) original: Value,
}

impl Work<'_> {
    pub(super) fn original(&self) -> Original<'_> {
        Original {
            cluster: self.cluster,
            path: self.path,
            object: &self.original,
        }
    }
}

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

impl Mirror {
    /// Brings everything about one original in step.
    pub(super) async fn sync(&self, key: &ObjectKey) -> Result<Outcome, Trouble> {
        let remote = self.remote(&key.workspace);
        let address = self.publication.remote.object(&key.namespace, &key.name);
        let original = match remote.read(&address, &key.name).await? {
            Read::Found(original) => original,
            Read::Absent => {
                return self.remove_orphan(key).await;
            }
            Read::Unknown(error) => {
                // The binding or the whole workspace may be on its way out; as long as the object is still seen, it is
                // looked at again.
                let seen = self.originals.iter().any(|it| it.get(key).is_some());
                tracing::debug!(%key, %error, seen, "an original cannot be read");
                return Ok(if seen { Outcome::Poll } else { Outcome::Done });
            }
        };
        let cluster =
            ClusterId::parse(key.workspace.as_str()).map_err(|error| Trouble::provider(error.to_string()))?;
        let leaving = original.pointer("/metadata/deletionTimestamp").is_some();
        let path = if self.publication.published.with_path && !leaving {
            self.workspace_path(&remote, key).await?
        } else {
            cluster.path()
        };
        let mut work = Work {
            key,
            remote: &remote,
            cluster: &cluster,
            path: &path,
            original,
        };
        // What was accepted once is released whatever the filter says now.
        if !leaving && !self.is_wanted(&work).await? {
            self.watched.keep(key, Vec::new());
            return Ok(Outcome::Done);
        }
        let mut copy = self.find_copy(&work).await?;
        for _ in 0..MOST_STEPS {
            match next(&work.original, copy.as_ref()) {
                Step::Ignore => {
                    self.watched.keep(key, Vec::new());
                    return Ok(Outcome::Done);
                }
                Step::Await => return Ok(Outcome::Done),
                Step::Accept => {
                    let patch = finalizers::adding(&meta(&work.original), FINALIZER).unwrap_or_default();
                    let Some(written) = remote.merge(&address, &patch).await? else {
                        return Ok(Outcome::Done);
                    };
                    work.original = written;
                    self.tell(
                        &work,
                        "ObjectAccepted",
                        "Object has been seen by the service provider.",
                    )
                    .await;
                }
                Step::Place => {
                    let Some(placed) = self.place(&work, copy.as_ref()).await? else {
                        return Ok(Outcome::Done);
                    };
                    self.bring_status(&mut work, &address, &placed).await?;
                    self.sync_related(&work, &placed).await?;
                    return Ok(Outcome::Done);
                }
                Step::Remove => {
                    let Some(leaving) = copy.take() else {
                        return Ok(Outcome::Done);
                    };
                    self.remove_related(&work, &leaving).await?;
                    let message = "Object deletion has been started and will progress in the background.";
                    self.tell(&work, "ObjectCleanup", message).await;
                    let place = self.address_of(&leaving);
                    self.service.delete_read(&place, &leaving).await?;
                    copy = self.service.get(&place).await?;
                }
                Step::Release => {
                    let message = "Object deletion has been completed, finalizer has been removed.";
                    self.tell(&work, "ObjectDeleted", message).await;
                    if let Some(patch) = finalizers::removing(&meta(&work.original), FINALIZER) {
                        remote.merge(&address, &patch).await?;
                    }
                    self.watched.forget(key);
                    return Ok(Outcome::Done);
                }
            }
        }
        Ok(Outcome::Poll)
    }

    /// The copy of an original that is gone: somebody has removed the finalizer by hand. It goes, too, for nobody would
    /// ever ask for its end again.
    async fn remove_orphan(&self, key: &ObjectKey) -> Result<Outcome, Trouble> {
        self.watched.forget(key);
        let Some((namespace, name)) = self.copies.of(key) else {
            return Ok(Outcome::Done);
        };
        let address = self.publication.local.object(&namespace, &name);
        let Some(copy) = self.service.get(&address).await? else {
            return Ok(Outcome::Done);
        };
        let ours = original_of(&copy).is_some_and(|(cluster, namespace, name)| {
            cluster.as_str() == key.workspace.as_str() && namespace == key.namespace && name == key.name
        });
        if ours && copy.pointer("/metadata/deletionTimestamp").is_none() {
            tracing::info!(%key, address, "the original is gone without its finalizer; its copy goes, too");
            self.service.delete_read(&address, &copy).await?;
            if let Ok(cluster) = ClusterId::parse(key.workspace.as_str()) {
                self.prune(key, &cluster, "").await?;
            }
        }
        Ok(Outcome::Done)
    }

    async fn workspace_path(&self, remote: &Requests, key: &ObjectKey) -> Result<WorkspacePath, Trouble> {
        let known = match self.paths.get(&key.workspace) {
            Some(path) => path,
            None => {
                let unknown = "the path of the workspace cannot be read: accept the permission claim on \
                               logicalclusters.core.kcp.io in the APIBinding";
                let read = remote.read(LOGICAL_CLUSTER, "cluster").await?;
                let Read::Found(cluster) = read else {
                    return Err(Trouble::consumer(unknown));
                };
                let path = cluster["metadata"]["annotations"]["kcp.io/path"].clone();
                let path = path.as_str().ok_or_else(|| Trouble::consumer(unknown))?;
                self.paths.put(&key.workspace, path);
                path.to_owned()
            }
        };
        WorkspacePath::parse(&known).map_err(|error| Trouble::provider(error.to_string()))
    }

    /// Whether the filters let an original through.
    async fn is_wanted(&self, work: &Work<'_>) -> Result<bool, Trouble> {
        let published = &self.publication.published;
        let mut of_namespace = json!({});
        if published.filters_namespaces() && !work.key.namespace.is_empty() {
            let name = &work.key.namespace;
            let read = work.remote.read(&format!("{NAMESPACES}/{name}"), name).await?;
            let Read::Found(namespace) = read else {
                return Err(Trouble::consumer(format!(
                    "namespace {name:?} cannot be read: accept the permission claim on namespaces in the APIBinding"
                )));
            };
            of_namespace = namespace["metadata"]["labels"].clone();
        }
        Ok(published.wants(&work.original["metadata"]["labels"], &of_namespace))
    }

    fn address_of(&self, copy: &Value) -> String {
        let local = &self.publication.local;
        local.object(text(copy, "/metadata/namespace"), text(copy, "/metadata/name"))
    }

    /// Whether nobody but its workspace has copies in a copy's namespace.
    fn is_exclusive(&self) -> bool {
        self.publication.local.namespaced && !self.publication.published.naming.has_fixed_namespace()
    }

    /// The copy of an original: where it was seen, or else where it would be made.
    async fn find_copy(&self, work: &Work<'_>) -> Result<Option<Value>, Trouble> {
        let mut places = Vec::from_iter(self.copies.of(work.key));
        if places.is_empty() {
            match self.destination(work, false).await {
                Ok(place) => places.extend(place),
                // Rules that name no place have made no copy.
                Err(trouble) if matches!(trouble.failure, Failure::NotYet(_)) => {}
                Err(trouble) => return Err(trouble),
            }
        }
        for (namespace, name) in places {
            let address = self.publication.local.object(&namespace, &name);
            if let Some(copy) = self.service.get(&address).await?
                && ownership(&copy, &work.original(), self.is_exclusive()) == Ownership::Own
            {
                return Ok(Some(copy));
            }
        }
        Ok(None)
    }

    /// Namespace and name for a copy. Nothing if the namespace does not exist and shall not be made.
    async fn destination(&self, work: &Work<'_>, make: bool) -> Result<Option<(String, String)>, Trouble> {
        let naming = &self.publication.published.naming;
        let (mut namespace, name) = work.original().copy_name(naming).map_err(Trouble::provider)?;
        if !self.publication.local.namespaced {
            return Ok(Some((String::new(), name)));
        }
        let fixed = naming.has_fixed_namespace();
        for _ in 0..MOST_NAMESPACES {
            let existing = self.service.get(&format!("{NAMESPACES}/{namespace}")).await?;
            let tenure = match &existing {
                Some(_) if fixed => Tenure::Own,
                existing => tenure(&namespace, existing.as_ref(), work.cluster),
            };
            match tenure {
                Tenure::Own => return Ok(Some((namespace, name))),
                Tenure::Free if !make => return Ok(None),
                Tenure::Free => {
                    let mut labels = json!({});
                    if !fixed {
                        labels = json!({CLUSTER_LABEL: work.cluster.as_str(), AGENT_LABEL: self.agent});
                    }
                    let made = json!({
                        "apiVersion": "v1", "kind": "Namespace",
                        "metadata": {"name": namespace, "labels": labels},
                    });
                    // If somebody was quicker, the next look tells whose it is.
                    self.service.create(NAMESPACES, &made).await?;
                }
                Tenure::Taken { instead } => namespace = instead,
            }
        }
        Err(Trouble::provider(format!(
            "no namespace can be had for workspace {}: {namespace:?} is taken as well",
            work.cluster
        )))
    }

    /// Makes the copy, or makes it equal. Nothing if it is being deleted.
    async fn place(&self, work: &Work<'_>, copy: Option<&Value>) -> Result<Option<Value>, Trouble> {
        let (namespace, name) = match copy {
            Some(copy) => (
                text(copy, "/metadata/namespace").to_owned(),
                text(copy, "/metadata/name").to_owned(),
            ),
            None => match self.destination(work, true).await? {
                Some(place) => place,
                None => return Ok(None),
            },
        };
        let address = self.publication.local.object(&namespace, &name);
        let _alone = self.lock(&address).await;
        let existing = match copy {
            Some(copy) => Some(copy.clone()),
            None => self.service.get(&address).await?,
        };
        if let Some(existing) = &existing {
            if let Ownership::Other(whose) = ownership(existing, &work.original(), self.is_exclusive()) {
                return Err(Trouble::provider(format!(
                    "{} {namespace}/{name} is there already and is not touched, because {whose}: choose other rules in \
                     spec.naming",
                    self.publication.local.kind
                )));
            }
            if existing.pointer("/metadata/deletionTimestamp").is_some() {
                return Ok(None);
            }
        }
        let copying = self.copying();
        let desired = copying
            .desired(&work.original(), (&namespace, &name), existing.as_ref())
            .map_err(Trouble::provider)?;
        let placed = self
            .service
            .apply(&address, &desired, MANAGER, existing.is_some())
            .await?;
        self.copies.note(work.key, &namespace, &name);
        match existing {
            None => self.tell(work, "ObjectPlaced", "Object has been placed.").await,
            Some(before) if version(&before) != version(&placed) => {
                let message = "The current desired state of the object has been synchronized.";
                self.tell(work, "ObjectSynced", message).await;
            }
            Some(_) => {}
        }
        Ok(Some(placed))
    }

    fn copying(&self) -> Copying<'_> {
        Copying {
            published: &self.publication.published,
            mutator: &self.publication.mutator,
            local: &self.publication.local,
            agent: &self.agent,
        }
    }

    pub(super) async fn lock(&self, address: &str) -> tokio::sync::MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        address.hash(&mut hasher);
        let at = usize::try_from(hasher.finish() % self.places.len() as u64).unwrap_or_default();
        self.places[at].lock().await
    }

    /// Brings the copy's status to the original.
    async fn bring_status(&self, work: &mut Work<'_>, address: &str, copy: &Value) -> Result<(), Trouble> {
        if !self.publication.remote.has_status {
            return Ok(());
        }
        let status = self
            .copying()
            .status(&work.original, copy)
            .map_err(Trouble::provider)?;
        let Some(status) = status else {
            return Ok(());
        };
        if let Some(written) = work
            .remote
            .replace_status(address, &work.original, &status)
            .await?
        {
            work.original = written;
            self.tell(
                work,
                "ObjectStatusSynced",
                "The current object status has been updated.",
            )
            .await;
        }
        Ok(())
    }

    /// Tells the consumer what happened.
    pub(super) async fn tell(&self, work: &Work<'_>, reason: &'static str, message: &str) {
        self.record(work.key, &work.original, Severity::Normal, reason, message)
            .await;
    }

    /// Tells the consumer that something is wrong.
    pub(super) async fn complain(&self, key: &ObjectKey, trouble: &Trouble) {
        let address = self.publication.remote.object(&key.namespace, &key.name);
        let Ok(Some(original)) = self.remote(&key.workspace).get(&address).await else {
            return;
        };
        let generic = "Failed to process object: a provider-side issue has occurred.";
        let message = trouble.tell.as_deref().unwrap_or(generic);
        self.record(key, &original, Severity::Warning, "ReconcilingError", message)
            .await;
    }

    async fn record(
        &self,
        key: &ObjectKey,
        original: &Value,
        severity: Severity,
        reason: &'static str,
        message: &str,
    ) {
        let remote = &self.publication.remote;
        let about = ObjectReference {
            api_version: Some(remote.api_version()),
            kind: Some(remote.kind.clone()),
            name: Some(key.name.clone()),
            namespace: Some(key.namespace.clone()).filter(|it| !it.is_empty()),
            uid: Some(text(original, "/metadata/uid").to_owned()),
            ..ObjectReference::default()
        };
        let happening = Happening {
            severity,
            reason,
            message: message.to_owned(),
        };
        self.recorder.record(&key.workspace, &about, happening).await;
    }
}

fn meta(object: &Value) -> ObjectMeta {
    serde_json::from_value(object["metadata"].clone()).unwrap_or_default()
}
