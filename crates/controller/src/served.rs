//! What is served: the kinds of all workspaces together, and those of any one of them.
//!
//! One task keeps the whole list: it reads all of discovery at first and then, now and then, again; and single groups at
//! once when a CRD or an APIBinding changes. What one workspace serves is read when somebody asks, and kept for the few
//! workspaces that were asked for last, until something changes there.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, ListParams, PartialObjectMeta};
use kube::runtime::watcher::{self, Event};
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::clients::Clients;
use crate::error::{Attempt as _, Failure, is_not_found};
use crate::json::Json;
use crate::key::{Reach, WorkspaceId};
use crate::kinds::{GroupResource, Kind, Kinds, discover, discover_group};
use crate::shutdown::Shutdown;
use crate::watch::follow as follow_watch;

/// What makes a burst of changes few readings: each costs as much as the group is large, and whoever has just created a CRD
/// has no use for the controllers that follow all kinds yet.
const SETTLE: Duration = Duration::from_millis(100);
/// A reading that took long is followed by a pause of so many times its length, up to [`LONGEST_PAUSE`].
const PAUSE: u32 = 4;
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// A real cluster serves a kind a little after it says so.
const SECOND_LOOK: Duration = Duration::from_secs(2);
/// For what comes without a CRD, such as aggregated APIs.
const FULL_EVERY: Duration = Duration::from_secs(120);
const RETRY: Duration = Duration::from_secs(1);
/// Workspaces whose kinds are kept; each takes some 30 KB.
const NEAR: usize = 16;

/// What is served. Clones share it.
#[derive(Clone, Debug)]
pub struct Served {
    clients: Clients,
    every: watch::Receiver<Arc<Kinds>>,
    near: Arc<Mutex<Near>>,
}

/// The kinds of the workspaces that were asked for last.
#[derive(Debug, Default)]
struct Near {
    kinds: HashMap<WorkspaceId, (Arc<Kinds>, u64)>,
    /// Counts questions, so that the oldest answer is known.
    clock: u64,
    /// Counts changes, so that an answer that was overtaken is not kept.
    changes: u64,
}

impl Near {
    fn get(&mut self, workspace: &WorkspaceId) -> Option<Arc<Kinds>> {
        self.clock += 1;
        let (kinds, asked) = self.kinds.get_mut(workspace)?;
        *asked = self.clock;
        Some(Arc::clone(kinds))
    }

    fn put(&mut self, workspace: &WorkspaceId, kinds: &Arc<Kinds>, changes: u64) {
        if self.changes != changes {
            return;
        }
        if self.kinds.len() >= NEAR
            && let Some(oldest) = self.kinds.iter().min_by_key(|(_, (_, asked))| *asked)
        {
            let oldest = oldest.0.clone();
            self.kinds.remove(&oldest);
        }
        self.kinds
            .insert(workspace.clone(), (Arc::clone(kinds), self.clock));
    }

    fn forget_all(&mut self) {
        self.changes += 1;
        self.kinds.clear();
    }

    fn forget<'a>(&mut self, workspaces: impl IntoIterator<Item = &'a WorkspaceId>) {
        self.changes += 1;
        for workspace in workspaces {
            self.kinds.remove(workspace);
        }
    }
}

impl Served {
    /// What is served, and the task that keeps it. Until the first reading is complete, nothing is.
    pub fn follow(clients: Clients, shutdown: Shutdown) -> (Self, impl Future<Output = ()> + Send) {
        let (sender, every) = watch::channel(Arc::default());
        let served = Self {
            clients,
            every,
            near: Arc::default(),
        };
        let task = keep(served.clone(), sender, shutdown);
        (served, task)
    }

    /// The same without watches, for whoever may not look at definitions: what is new is seen at the next reading.
    pub fn poll(clients: Clients, shutdown: Shutdown) -> (Self, impl Future<Output = ()> + Send) {
        let (sender, every) = watch::channel(Arc::default());
        let served = Self {
            clients,
            every,
            near: Arc::default(),
        };
        let (_, nothing) = mpsc::unbounded_channel();
        let task = read(served.clone(), sender, nothing, shutdown);
        (served, task)
    }

    /// The kinds of all workspaces, as they change.
    pub fn changes(&self) -> watch::Receiver<Arc<Kinds>> {
        self.every.clone()
    }

    /// The kinds of all workspaces.
    pub fn every(&self) -> Arc<Kinds> {
        Arc::clone(&self.every.borrow())
    }

    fn near(&self) -> MutexGuard<'_, Near> {
        self.near.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kinds of a workspace; none if there is no such workspace.
    pub async fn of(&self, workspace: &WorkspaceId) -> Result<Arc<Kinds>, Failure> {
        if let Reach::One(_) = self.clients.reach() {
            return Ok(self.every());
        }
        let changes = {
            let mut near = self.near();
            if let Some(kinds) = near.get(workspace) {
                return Ok(kinds);
            }
            near.changes
        };
        match self.discover_in(workspace).await {
            Ok(kinds) => {
                let kinds = Arc::new(kinds);
                self.near().put(workspace, &kinds, changes);
                Ok(kinds)
            }
            Err(Failure::Api { source, .. }) if is_not_found(&source) => Ok(Arc::default()),
            Err(failure) => Err(failure),
        }
    }

    /// Reads what a workspace serves. Its discovery has plain names; whoever compares them with what watches over all
    /// workspaces report must know which ones they are.
    async fn discover_in(&self, workspace: &WorkspaceId) -> Result<Kinds, Failure> {
        let client = self.clients.of(workspace);
        let kinds = discover(&client).await?;
        let every = self.every();
        let is_common = |kind: &Kind| every.resource(&kind.name()).is_some();
        if kinds.iter().all(|kind| is_common(kind)) {
            return Ok(kinds);
        }
        let mut identities = HashMap::new();
        let crds: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client.clone());
        let crds = crds.list(&ListParams::default()).await;
        for crd in crds.attempting("list the CRDs of a workspace")?.items {
            let name = crd.metadata.name.as_deref().and_then(|name| name.split_once('.'));
            if let (Some((plural, group)), Some(uid)) = (name, crd.metadata.uid) {
                identities.insert((group.to_owned(), plural.to_owned()), uid);
            }
        }
        if let Some(bindings) = every.resource(&bindings()) {
            let bindings = bindings.api::<DynamicObject>(client, "");
            let bindings = bindings.list(&ListParams::default()).await;
            for binding in bindings.attempting("list the APIBindings of a workspace")?.items {
                let bound = bound_resources(&binding.data);
                identities.extend(bound.map(|(group, plural, identity)| ((group, plural), identity)));
            }
        }
        Ok(kinds.identified(|kind| {
            let own = !is_common(kind);
            identities.get(&kind.name()).filter(|_| own).cloned()
        }))
    }

    /// The kind that an `apiVersion` and a `kind` name in a workspace. Most are common to all, and cost no request.
    pub async fn kind(
        &self,
        workspace: &WorkspaceId,
        api_version: &str,
        kind: &str,
    ) -> Result<Option<Arc<Kind>>, Failure> {
        let every = self.every();
        match every.kind(api_version, kind) {
            None => Ok(None),
            Some(found) if found.is_common() => Ok(Some(Arc::clone(found))),
            Some(_) => Ok(self.of(workspace).await?.kind(api_version, kind).cloned()),
        }
    }
}

/// A workspace in which kinds of a group may have come or gone. No group: the whole list knows all of its kinds.
type News = (WorkspaceId, Option<String>);

async fn keep(served: Served, sender: watch::Sender<Arc<Kinds>>, shutdown: Shutdown) {
    let (tell, told) = mpsc::unbounded_channel();
    let crds: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(served.clients.every());
    let (reach, tell_crds) = (served.clients.reach().clone(), tell.clone());
    let notice = follow_watch(crds, watcher::Config::default(), shutdown.clone(), move |event| {
        let (Event::Apply(crd) | Event::Delete(crd) | Event::InitApply(crd)) = event else {
            return;
        };
        let name = crd.metadata.name.as_deref().unwrap_or_default();
        if let Some((_, group)) = name.split_once('.') {
            // The receiver lives as long as this function.
            let _ = tell_crds.send((reach.workspace_of(&crd.metadata), Some(group.to_owned())));
        }
    });
    tokio::join!(
        notice,
        follow_bindings(served.clone(), tell, shutdown.clone()),
        read(served, sender, told, shutdown)
    );
}

/// Follows APIBindings, once they are served.
async fn follow_bindings(served: Served, tell: mpsc::UnboundedSender<News>, mut shutdown: Shutdown) {
    let bindings = bindings();
    let mut every = served.changes();
    let kind = tokio::select! {
        () = shutdown.wait() => return,
        found = every.wait_for(|kinds| kinds.resource(&bindings).is_some()) => {
            found.ok().and_then(|kinds| kinds.resource(&bindings).cloned())
        }
    };
    let Some(kind) = kind else { return };
    let reach = served.clients.reach().clone();
    let api: Api<Json> = kind.everywhere(served.clients.every());
    follow_watch(api, watcher::Config::default(), shutdown, move |event| {
        let (binding, gone) = match event {
            Event::Apply(binding) | Event::InitApply(binding) => (binding, false),
            Event::Delete(binding) => (binding, true),
            Event::Init | Event::InitDone => return,
        };
        let workspace = reach.workspace_of(&binding.metadata);
        for group in groups_to_read(&binding.value, gone, &served.every()) {
            let _ = tell.send((workspace.clone(), group));
        }
    })
    .await;
}

fn bindings() -> GroupResource {
    ("apis.kcp.io".to_owned(), "apibindings".to_owned())
}

/// Group, plural name and identity of what a binding has bound.
fn bound_resources(binding: &Value) -> impl Iterator<Item = (String, String, String)> {
    let bound = binding
        .pointer("/status/boundResources")
        .and_then(Value::as_array);
    bound.into_iter().flatten().map(|resource| {
        let text = |pointer: &str| {
            let found = resource.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or("").to_owned()
        };
        (text("/group"), text("/resource"), text("/schema/identityHash"))
    })
}

/// The groups of bound kinds that the list does not know yet, or may have to forget. Most workspaces bind what others have
/// bound before, so mostly there is only the workspace to look at.
fn groups_to_read(binding: &Value, gone: bool, known: &Kinds) -> BTreeSet<Option<String>> {
    let mut groups = BTreeSet::from([None]);
    for (group, plural, identity) in bound_resources(binding) {
        let name = (group.clone(), format!("{plural}:{identity}"));
        if gone || known.resource(&name).is_none() {
            groups.insert(Some(group));
        }
    }
    groups
}

/// What a second look is due for.
type Again = (Instant, BTreeSet<WorkspaceId>, BTreeSet<String>);

async fn read(
    served: Served,
    sender: watch::Sender<Arc<Kinds>>,
    mut told: mpsc::UnboundedReceiver<News>,
    mut shutdown: Shutdown,
) {
    let client = served.clients.every();
    let mut full = tokio::time::interval(FULL_EVERY);
    full.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut kinds = Kinds::default();
    let mut again: Option<Again> = None;
    let mut pause = SETTLE;
    loop {
        let second_look = async {
            match &again {
                Some((at, ..)) => tokio::time::sleep_until(*at).await,
                None => std::future::pending().await,
            }
        };
        let (mut workspaces, mut groups) = (BTreeSet::new(), BTreeSet::new());
        tokio::select! {
            biased;
            () = shutdown.wait() => return,
            _ = full.tick() => match discover(&client).await {
                Ok(found) => {
                    kinds = found;
                    served.near().forget_all();
                    publish(&sender, &kinds);
                    continue;
                }
                Err(failure) => {
                    warn!(reason = failure.sentence(), "the list of kinds could not be read");
                    full.reset_after(RETRY);
                    continue;
                }
            },
            Some((workspace, group)) = told.recv() => {
                workspaces.insert(workspace);
                groups.extend(group);
                tokio::select! {
                    () = shutdown.wait() => return,
                    () = tokio::time::sleep(pause) => {}
                }
                while let Ok((workspace, group)) = told.try_recv() {
                    workspaces.insert(workspace);
                    groups.extend(group);
                }
                if !groups.is_empty() {
                    let (_, more, others) = again.take().unwrap_or((Instant::now(), BTreeSet::new(), BTreeSet::new()));
                    let (more, others) = (&more | &workspaces, &others | &groups);
                    again = Some((Instant::now() + SECOND_LOOK, more, others));
                }
            }
            () = second_look => {
                (_, workspaces, groups) = again.take().unwrap_or((Instant::now(), BTreeSet::new(), BTreeSet::new()));
            }
        }
        served.near().forget(&workspaces);
        let begun = Instant::now();
        for group in groups {
            match discover_group(&client, &group).await {
                Ok(found) => {
                    kinds.remove_group(&group);
                    kinds.add_group(found);
                }
                Err(failure) => debug!(group, reason = failure.sentence(), "a group could not be read"),
            }
        }
        pause = (begun.elapsed() * PAUSE).clamp(SETTLE, LONGEST_PAUSE);
        publish(&sender, &kinds);
    }
}

fn publish(sender: &watch::Sender<Arc<Kinds>>, kinds: &Kinds) {
    sender.send_if_modified(|current| {
        let changed = **current != *kinds;
        if changed {
            *current = Arc::new(kinds.clone());
        }
        changed
    });
}

#[cfg(test)]
mod tests;
