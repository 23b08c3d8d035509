//! The tree of workspaces and the types of its branches, as small views.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use fairway_controller::cache::Cache;
use fairway_controller::watch::follow;
use fairway_controller::{Json, Manager, ObjectKey, Reach, WorkspaceId};
use fairway_kernel_tenancy::WorkspacePath;
use fairway_kernel_tenancy::logical_cluster::{LogicalCluster, Phase};
use fairway_kernel_tenancy::names::{CORE, LOGICAL_CLUSTER, TENANCY, annotation, finalizer, label};
use fairway_kernel_tenancy::types::{Resolved, TypeError, TypeReference, WorkspaceType, resolve};
use fairway_kernel_tenancy::workspace::Workspace;
use kube::api::{Api, ApiResource};
use kube::core::GroupVersionKind;
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource};

use super::Queues;
use crate::users;

/// The deepest nesting that is followed upwards.
const MAX_DEPTH: usize = 64;

/// What is kept of a Workspace.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) cluster: Option<WorkspaceId>,
    /// Nothing is to be done as long as its LogicalCluster is settled.
    pub(super) settled: bool,
}

/// What is kept of a LogicalCluster.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) owner: Option<ObjectKey>,
    /// The path of a home, which has no owner.
    home: Option<Box<str>>,
    pub(super) type_name: Box<str>,
    /// Ready, and nothing is to be done as long as its bindings are there.
    pub(super) settled: bool,
    pub(super) deleting: bool,
    pub(super) initializing: bool,
}

/// The tree. Clones share it.
#[derive(Clone)]
pub(super) struct Tree {
    pub(super) workspaces: Arc<Cache<Child>>,
    pub(super) clusters: Arc<Cache<Cluster>>,
    types: Arc<Cache<Option<Arc<WorkspaceType>>>>,
}

/// The LogicalCluster of a workspace.
pub(super) fn cluster_key(workspace: &WorkspaceId) -> ObjectKey {
    ObjectKey::new(workspace, "", LOGICAL_CLUSTER)
}

/// Objects of one of kcp's kinds in every workspace.
pub(super) fn everywhere(client: Client, group: &str, version: &str, kind: &str, plural: &str) -> Api<Json> {
    let names = GroupVersionKind::gvk(group, version, kind);
    Api::all_with(client, &ApiResource::from_gvk_with_plural(&names, plural))
}

/// Follows a kind into a cache, and tells of each change what was kept before and what is kept now.
pub(super) async fn follow_changes<K, V>(
    api: Api<K>,
    shutdown: fairway_controller::Shutdown,
    reach: Reach,
    cache: Arc<Cache<V>>,
    keep: impl Fn(&K) -> V + Send + Sync,
    mut changed: impl FnMut(ObjectKey, Option<&V>, Option<&V>) + Send,
) where
    K: Resource + Clone + serde::de::DeserializeOwned + Debug + Send + 'static,
    V: Send + Sync,
{
    follow(api, watcher::Config::default(), shutdown, |event| {
        let before: BTreeMap<ObjectKey, Arc<V>> = match &event {
            Event::Apply(object) | Event::Delete(object) => {
                let key = ObjectKey::of(&reach, object.meta());
                cache.get(&key).map(|old| (key, old)).into_iter().collect()
            }
            Event::InitDone => cache.all().into_iter().collect(),
            _ => BTreeMap::new(),
        };
        for key in cache.take(event, &keep) {
            let old = before.get(&key).map(AsRef::as_ref);
            let new = cache.get(&key);
            changed(key, old, new.as_deref());
        }
    })
    .await;
}

impl Tree {
    pub(super) fn new(reach: &Reach) -> Self {
        Self {
            workspaces: Arc::new(Cache::new(reach)),
            clusters: Arc::new(Cache::new(reach)),
            types: Arc::new(Cache::new(reach)),
        }
    }

    pub(super) fn follow(&self, manager: &mut Manager, queues: &Queues, url: &str) {
        let client = manager.clients(users::WORKSPACE_CONTROLLER).every();
        let (tree, work) = (self.clone(), queues.clone());
        manager.spawn(follow_changes(
            everywhere(client.clone(), TENANCY, "v1alpha1", "Workspace", "workspaces"),
            manager.shutdown(),
            manager.reach().clone(),
            Arc::clone(&self.workspaces),
            child,
            move |key, _, now| {
                // Its parent may be waiting for it to go.
                let parent = cluster_key(&key.workspace);
                if now.is_none() && tree.clusters.get(&parent).is_some_and(|it| it.deleting) {
                    work.clusters.add(parent);
                }
                work.workspaces.add(key);
            },
        ));
        let (work, home) = (queues.clone(), url.to_owned());
        manager.spawn(follow_changes(
            everywhere(
                client.clone(),
                CORE,
                "v1alpha1",
                "LogicalCluster",
                "logicalclusters",
            ),
            manager.shutdown(),
            manager.reach().clone(),
            Arc::clone(&self.clusters),
            move |object| cluster(object, &home),
            move |key, old, now| {
                if let Some(owner) = now.or(old).and_then(|it| it.owner.clone()) {
                    work.workspaces.add(owner);
                }
                work.clusters.add(key);
            },
        ));
        let (tree, work) = (self.clone(), queues.clone());
        manager.spawn(follow_changes(
            everywhere(client, TENANCY, "v1alpha1", "WorkspaceType", "workspacetypes"),
            manager.shutdown(),
            manager.reach().clone(),
            Arc::clone(&self.types),
            |object| WorkspaceType::read(&object.value).map(Arc::new),
            move |key, old, now| {
                work.types.add(key);
                // What waits for a type may go on, and what a type maintains may have changed.
                if old.is_some() && old == now {
                    return;
                }
                for (key, kept) in tree.workspaces.all() {
                    if !kept.settled {
                        work.workspaces.add(key);
                    }
                }
                for (key, _) in tree.clusters.all() {
                    work.clusters.add(key);
                }
            },
        ));
    }

    /// Whether everything that there is has been seen.
    pub(super) fn is_synced(&self) -> bool {
        self.workspaces.is_synced() && self.clusters.is_synced() && self.types.is_synced()
    }

    /// The workspace at the end of a path.
    pub(super) fn resolve(&self, path: &WorkspacePath) -> Option<WorkspaceId> {
        let path = path.with_home_resolved();
        let mut segments = path.segments();
        let mut at = WorkspaceId::parse(segments.next()?).ok()?;
        for name in segments {
            let child = self.workspaces.get(&ObjectKey::new(&at, "", name))?;
            at = child.cluster.clone()?;
        }
        Some(at)
    }

    /// The workspace that a reference of an object in `here` names; without a path that is `here`.
    pub(super) fn resolve_from(&self, here: &WorkspaceId, path: &str) -> Option<WorkspaceId> {
        if path.is_empty() {
            return Some(here.clone());
        }
        self.resolve(&WorkspacePath::parse(path).ok()?)
    }

    /// The path of a workspace.
    pub(super) fn path(&self, id: &WorkspaceId) -> Option<WorkspacePath> {
        let (mut names, mut top) = (Vec::new(), String::new());
        let mut at = id.clone();
        while names.len() < MAX_DEPTH {
            let cluster = self.clusters.get(&cluster_key(&at))?;
            match (&cluster.owner, &cluster.home) {
                (Some(owner), _) => {
                    names.push(owner.name.clone());
                    at = owner.workspace.clone();
                }
                (None, Some(home)) => {
                    top = home.to_string();
                    break;
                }
                (None, None) => break,
            }
        }
        names.push(if top.is_empty() {
            at.as_str().to_owned()
        } else {
            top
        });
        names.reverse();
        WorkspacePath::parse(&names.join(":")).ok()
    }

    fn find_type(&self, path: &WorkspacePath, name: &str) -> Option<Arc<WorkspaceType>> {
        let workspace = self.resolve(path)?;
        let kept = self.types.get(&ObjectKey::new(&workspace, "", name))?;
        (*kept).clone()
    }

    /// A type with everything that it extends.
    pub(super) fn type_of(
        &self,
        from: &WorkspacePath,
        reference: &TypeReference,
    ) -> Result<Resolved, TypeError> {
        let lookup = |path: &WorkspacePath, name: &str| self.find_type(path, name);
        Resolved::of(&resolve(from, reference, &lookup)?, &lookup)
    }

    /// The type that a LogicalCluster says it has, as `<path>:<name>`.
    pub(super) fn named_type(&self, name: &str) -> Result<Resolved, TypeError> {
        let (path, name) = name.rsplit_once(':').unwrap_or(("", name));
        let reference = TypeReference {
            name: name.to_owned(),
            path: path.to_owned(),
        };
        self.type_of(&WorkspacePath::root(), &reference)
    }
}

fn child(object: &Json) -> Child {
    let workspace = Workspace::read(&object.value);
    let labelled = workspace.meta.labels.get(label::PHASE).map(String::as_str);
    let cluster = workspace.cluster.as_ref();
    Child {
        cluster: cluster.and_then(|id| WorkspaceId::parse(id.as_str()).ok()),
        settled: workspace.phase == Phase::Ready
            && !workspace.meta.is_deleting()
            && labelled == Some(Phase::Ready.as_str()),
    }
}

fn cluster(object: &Json, home: &str) -> Cluster {
    let cluster = LogicalCluster::read(&object.value);
    let meta = &cluster.meta;
    let owner = cluster.owner().and_then(|(parent, name)| {
        let parent = WorkspaceId::parse(parent.as_str()).ok()?;
        Some(ObjectKey::new(&parent, "", name))
    });
    let labelled = meta.labels.get(label::PHASE).map(String::as_str);
    let path = meta.annotation(annotation::PATH).unwrap_or_default();
    let at_home = cluster.url().strip_prefix(home) == Some(format!("/clusters/{path}").as_str());
    let has_home_path = owner.is_none() && path.starts_with("user:");
    Cluster {
        owner,
        home: has_home_path.then(|| path.into()),
        type_name: cluster.type_name().unwrap_or_default().into(),
        settled: cluster.phase == Phase::Ready
            && !cluster.is_inactive()
            && !meta.is_deleting()
            && labelled == Some(Phase::Ready.as_str())
            && meta.has_finalizer(finalizer::LOGICAL_CLUSTER_CONTENT)
            && at_home,
        deleting: meta.is_deleting(),
        initializing: cluster.phase < Phase::Ready,
    }
}
