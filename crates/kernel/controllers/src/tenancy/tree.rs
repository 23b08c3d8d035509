//! The tree of workspaces and the types of its branches, as small views.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use fairway_controller::cache::Cache;
use fairway_controller::glimpse::{self, Glimpse, Kept};
use fairway_controller::watch::follow;
use fairway_controller::{Json, Manager, ObjectKey, Reach, WorkspaceId};
use fairway_kernel_tenancy::WorkspacePath;
use fairway_kernel_tenancy::glance;
use fairway_kernel_tenancy::names::{CORE, LOGICAL_CLUSTER, TENANCY, annotation};
use fairway_kernel_tenancy::types::{Resolved, TypeError, TypeReference, WorkspaceType, resolve};
use kube::api::{Api, ApiResource, ObjectMeta};
use kube::core::GroupVersionKind;
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource};

use super::Queues;
use crate::users;

/// The deepest nesting that is followed upwards.
const MAX_DEPTH: usize = 64;

/// What is kept of a Workspace.
#[derive(Clone, Debug)]
pub(super) struct Child {
    pub(super) cluster: Option<WorkspaceId>,
    /// Nothing is to be done as long as its LogicalCluster is settled.
    pub(super) settled: bool,
}

/// What is kept of a LogicalCluster.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    pub(super) owner: Option<ObjectKey>,
    /// The path of a home, which has no owner.
    home: Option<Box<str>>,
    pub(super) type_name: Box<str>,
    /// Ready, and nothing is to be done as long as its bindings are there.
    pub(super) settled: bool,
    pub(super) deleting: bool,
    pub(super) initializing: bool,
    /// The address of the server that it is said to be at, until that was compared with ours.
    server: Option<Box<str>>,
}

impl Cluster {
    /// The same, seen by the server of this address.
    fn at(mut self, home: &str) -> Self {
        let server = self.server.take();
        self.settled = self.settled && server.as_deref() == Some(home);
        self
    }
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
pub(super) fn everywhere<K: Resource<DynamicType = ApiResource>>(
    client: Client,
    group: &str,
    version: &str,
    kind: &str,
    plural: &str,
) -> Api<K> {
    let names = GroupVersionKind::gvk(group, version, kind);
    Api::all_with(client, &ApiResource::from_gvk_with_plural(&names, plural))
}

/// Follows a kind into a cache, and tells of each change what was kept before and what is kept now. What the first list
/// has is not told: when everything has been seen, [`super::start`] looks for what is to be done.
pub(super) async fn follow_changes<K, V>(
    api: Api<K>,
    shutdown: fairway_controller::Shutdown,
    reach: Reach,
    cache: Arc<Cache<V>>,
    keep: impl Fn(K) -> V + Send + Sync,
    mut changed: impl FnMut(ObjectKey, Option<&V>, Option<&V>) + Send,
) where
    K: Resource + Clone + serde::de::DeserializeOwned + Debug + Send + 'static,
    V: Send + Sync,
{
    follow(api, watcher::Config::default(), shutdown, |event| {
        if !cache.is_synced() {
            cache.take_first(event, &keep);
            return;
        }
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
            |workspace: Glimpse<Child>| workspace.kept,
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
            move |object: Glimpse<Cluster>| object.kept.at(&home),
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
            |object: Json| WorkspaceType::read(&object.value).map(Arc::new),
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

    /// Every WorkspaceType.
    pub(super) fn types(&self) -> Vec<ObjectKey> {
        self.types.keys_where(|_, _| true)
    }

    /// Whether nothing is to be done for a Workspace.
    pub(super) fn is_settled(&self, key: &ObjectKey, child: &Child) -> bool {
        let cluster = child.cluster.as_ref().filter(|_| child.settled);
        let cluster = cluster.and_then(|id| self.clusters.get(&cluster_key(id)));
        cluster.is_some_and(|it| it.settled && it.owner.as_ref() == Some(key))
    }

    /// Every Workspace for which something is to be done.
    pub(super) fn unsettled_workspaces(&self) -> Vec<ObjectKey> {
        self.workspaces
            .keys_where(|key, child| !self.is_settled(key, child))
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

impl Kept for Child {
    type Wire<'a> = glance::Workspace<'a>;

    fn keep(workspace: &glance::Workspace<'_>) -> (ObjectMeta, Self) {
        let kept = Self {
            cluster: WorkspaceId::parse(workspace.cluster()).ok(),
            settled: workspace.is_settled(),
        };
        (meta_of(&workspace.metadata), kept)
    }
}

impl Kept for Cluster {
    type Wire<'a> = glance::Cluster<'a>;

    fn keep(cluster: &glance::Cluster<'_>) -> (ObjectMeta, Self) {
        let owner = cluster.owner().and_then(|(parent, name)| {
            let parent = WorkspaceId::parse(parent).ok()?;
            Some(ObjectKey::new(&parent, "", name))
        });
        let path = cluster.path();
        let has_home_path = owner.is_none() && path.starts_with("user:");
        let kept = Self {
            owner,
            home: has_home_path.then(|| path.into()),
            type_name: cluster.type_name().into(),
            settled: cluster.is_settled(),
            deleting: cluster.metadata.is_deleting(),
            initializing: cluster.is_initializing(),
            server: cluster.server().map(Box::from),
        };
        (meta_of(&cluster.metadata), kept)
    }
}

/// What a watch needs of one of kcp's kinds, none of which is in a namespace.
pub(super) fn meta_of(meta: &glance::Meta<'_>) -> ObjectMeta {
    let cluster = meta.annotations.get(annotation::CLUSTER);
    glimpse::meta(meta.name.as_str(), "", meta.resource_version.as_str(), cluster)
}
