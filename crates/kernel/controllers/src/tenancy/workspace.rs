//! Workspaces: each has its LogicalCluster, says how that fares, and goes after it.

use fairway_controller::requests::{Requests, version};
use fairway_controller::{
    Clients, Controller, Failure, Manager, ObjectKey, Outcome, Queue, Reconcile, WorkspaceId,
};
use fairway_kernel_tenancy::ClusterId;
use fairway_kernel_tenancy::logical_cluster::LogicalCluster;
use fairway_kernel_tenancy::names::finalizer;
use fairway_kernel_tenancy::workspace::{Action, Observed, Workspace, decide};
use serde_json::{Map, Value, json};

use super::UNTIL_SYNCED;
use super::logical_cluster::Clusters;
use super::paths::{CLUSTER, CLUSTERS, WORKSPACES, difference};
use super::tree::{Tree, cluster_key};
use crate::{now, users};

const NAME: &str = "workspace";
const WORKERS: usize = 8;

struct Workspaces {
    clients: Clients,
    tree: Tree,
    clusters: Clusters,
    url: String,
}

pub(super) fn register(
    manager: &mut Manager,
    queue: Queue<ObjectKey>,
    tree: &Tree,
    clusters: Clusters,
    url: &str,
) {
    let reconciler = Workspaces {
        clients: manager.clients(users::WORKSPACE_CONTROLLER),
        tree: tree.clone(),
        clusters,
        url: url.to_owned(),
    };
    let controller = Controller::new(NAME, queue, reconciler).workers(WORKERS);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

impl Reconcile<ObjectKey> for Workspaces {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        if !self.tree.is_synced() {
            return Ok(Outcome::Again(UNTIL_SYNCED));
        }
        if self.is_settled(key) {
            return Ok(Outcome::Done);
        }
        let parent = Requests::new(self.clients.of(&key.workspace));
        let path = format!("{WORKSPACES}/{}", key.name);
        let Some(object) = parent.get(&path).await? else {
            return Ok(Outcome::Done);
        };
        let workspace = Workspace::read(&object);
        let mut inside = self.requests(&workspace.id())?;
        let mut cluster = inside.get(CLUSTER).await?;
        let Some(mut actions) = self.decide(key, &workspace, cluster.as_ref()) else {
            // Its parent has not been seen yet.
            return Ok(Outcome::Again(UNTIL_SYNCED));
        };
        // What must be on record before the LogicalCluster exists is there from the Workspace's creation, as long as
        // the first id is free; then the LogicalCluster comes first, and one look at how it fares saves writes.
        let recorded = workspace.meta.has_finalizer(finalizer::LOGICAL_CLUSTER);
        let made = actions.iter().find_map(|action| match action {
            Action::CreateCluster { id, object } if recorded && *id == workspace.id() => {
                Some((id.clone(), object.clone()))
            }
            _ => None,
        });
        if let Some((id, new)) = made {
            inside.create(CLUSTERS, &new).await?;
            let id = workspace_id(&id)?;
            self.clusters.make(&cluster_key(&id)).await?;
            inside = Requests::new(self.clients.of(&id));
            cluster = inside.get(CLUSTER).await?;
            actions = self.decide(key, &workspace, cluster.as_ref()).unwrap_or_default();
        }
        self.carry_out(&parent, &path, &object, &workspace, actions).await
    }
}

impl Workspaces {
    fn is_settled(&self, key: &ObjectKey) -> bool {
        let child = self.tree.workspaces.get(key);
        child.is_some_and(|child| self.tree.is_settled(key, &child))
    }

    fn requests(&self, id: &ClusterId) -> Result<Requests, Failure> {
        Ok(Requests::new(self.clients.of(&workspace_id(id)?)))
    }

    fn decide(&self, key: &ObjectKey, workspace: &Workspace, cluster: Option<&Value>) -> Option<Vec<Action>> {
        let parent_path = self.tree.path(&key.workspace)?;
        let parent = ClusterId::parse(key.workspace.as_str()).ok()?;
        let cluster = cluster.map(LogicalCluster::read);
        Some(decide(&Observed {
            workspace,
            cluster: cluster.as_ref(),
            parent: &parent,
            parent_path: &parent_path,
            resolved: &self.tree.type_of(&parent_path, &workspace.type_reference),
            base_url: &self.url,
            now: &now(),
        }))
    }

    /// Carries out what is left, in as few writes as there can be: one of the object, one of its status.
    async fn carry_out(
        &self,
        parent: &Requests,
        path: &str,
        object: &Value,
        workspace: &Workspace,
        actions: Vec<Action>,
    ) -> Result<Outcome, Failure> {
        let meta = &workspace.meta;
        let (mut metadata, mut spec, mut status) = (Map::new(), Map::new(), None);
        let mut create = None;
        let mut gone = false;
        for action in actions {
            match action {
                Action::WriteMeta {
                    labels,
                    annotations,
                    finalizers,
                } => {
                    if let Some(labels) = labels {
                        metadata.insert("labels".to_owned(), difference(&meta.labels, &labels));
                    }
                    if let Some(annotations) = annotations {
                        let change = difference(&meta.annotations, &annotations);
                        metadata.insert("annotations".to_owned(), change);
                    }
                    if let Some(finalizers) = finalizers {
                        gone = meta.is_deleting() && finalizers.is_empty();
                        metadata.insert("finalizers".to_owned(), json!(finalizers));
                    }
                }
                Action::CreateCluster { id, object } => create = Some((id, object)),
                Action::WriteSpec { cluster, url } => {
                    spec.insert("cluster".to_owned(), json!(cluster.as_str()));
                    spec.insert("URL".to_owned(), json!(url));
                }
                Action::WriteStatus(new) => status = Some(new),
                Action::DeleteCluster(id) => self.requests(&id)?.delete(CLUSTER).await?,
            }
        }
        if create.is_some() {
            // The finalizer and the id go on record first; the rest follows with the next look.
            spec.clear();
            status = None;
        }
        let mut read = object.clone();
        if !metadata.is_empty() || !spec.is_empty() {
            metadata.insert("resourceVersion".to_owned(), version(object));
            let mut patch = json!({"metadata": metadata});
            if !spec.is_empty() {
                patch["spec"] = Value::Object(spec);
            }
            match parent.merge(path, &patch).await? {
                Some(written) => read = written,
                None => return Ok(Outcome::Done),
            }
        }
        if let Some((id, object)) = create {
            self.requests(&id)?.create(CLUSTERS, &object).await?;
            return Ok(Outcome::Done);
        }
        if let Some(status) = status.filter(|_| !gone) {
            parent.replace_status(path, &read, &status).await?;
        }
        Ok(Outcome::Done)
    }
}

fn workspace_id(id: &ClusterId) -> Result<WorkspaceId, Failure> {
    WorkspaceId::parse(id.as_str()).map_err(|error| Failure::NotYet(error.to_string()))
}
