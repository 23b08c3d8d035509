//! LogicalClusters: a new workspace is filled with what its type begins with, one that is deleted is emptied first.

mod content;
mod initialize;

use std::time::Duration;

use fairway_controller::backoff::Backoff;
use fairway_controller::requests::{Requests, version};
use fairway_controller::{Clients, Controller, Failure, Manager, ObjectKey, Outcome, Queue, Reconcile};
use fairway_kernel_tenancy::logical_cluster::{LogicalCluster, Plan, Progress, decide};
use fairway_kernel_tenancy::names::{annotation, finalizer};
use serde_json::{Map, Value, json};

use super::apis::Apis;
use super::binding::Bindings;
use super::paths::{CLUSTER, difference};
use super::tree::Tree;
use super::turns::Turns;
use super::{Queues, UNTIL_SYNCED};
use crate::{now, users};

const NAME: &str = "logical-cluster";
const WORKERS: usize = 8;
/// Held content is looked at again soon, since most finalizers go quickly, and at least every few seconds.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(20),
    most: Duration::from_secs(4),
};
/// What the ids of the system's own workspaces begin with.
const SYSTEM: &str = "system:";

#[derive(Clone)]
pub(super) struct Clusters {
    clients: Clients,
    tree: Tree,
    apis: Apis,
    bindings: Bindings,
    turns: Turns,
    url: String,
}

impl Clusters {
    pub(super) fn new(
        manager: &Manager,
        tree: &Tree,
        apis: &Apis,
        bindings: Bindings,
        queues: &Queues,
        url: &str,
    ) -> Self {
        Self {
            clients: manager.clients(users::LOGICAL_CLUSTER_CONTROLLER),
            tree: tree.clone(),
            apis: apis.clone(),
            bindings,
            turns: Turns::new(&queues.clusters),
            url: url.to_owned(),
        }
    }

    pub(super) fn register(self, manager: &mut Manager, queue: Queue<ObjectKey>) {
        let controller = Controller::new(NAME, queue, self)
            .workers(WORKERS)
            .backoff(BACKOFF);
        manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
    }

    /// Ready, with everything in place that its type maintains.
    fn is_settled(&self, key: &ObjectKey) -> bool {
        let kept = self.tree.clusters.get(key).filter(|it| it.settled);
        kept.is_some_and(|it| initialize::Wanted::default().is_there(self, &key.workspace, &it.type_name))
    }

    /// Every LogicalCluster for which something is to be done.
    pub(super) fn unsettled(&self) -> Vec<ObjectKey> {
        let mut wanted = initialize::Wanted::default();
        let clusters = &self.tree.clusters;
        clusters.keys_where(|key, it| !(it.settled && wanted.is_there(self, &key.workspace, &it.type_name)))
    }

    /// Takes a LogicalCluster as far as it can go now, unless somebody is at it.
    pub(super) async fn make(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        if !self.apis.is_synced() {
            return Ok(Outcome::Again(UNTIL_SYNCED));
        }
        let Some(_turn) = self.turns.take(key) else {
            return Ok(Outcome::Done);
        };
        let inside = Requests::new(self.clients.of(&key.workspace));
        let Some(mut object) = inside.get(CLUSTER).await? else {
            return Ok(Outcome::Done);
        };
        let mut cluster = LogicalCluster::read(&object);
        let mut progress = Progress::default();
        let permanent = key.workspace.is_root() || key.workspace.as_str().starts_with(SYSTEM);
        if !cluster.meta.is_deleting() {
            let (made, touched) =
                initialize::initialize(self, &inside, &key.workspace, &cluster, &object).await?;
            progress = made;
            if touched {
                match inside.get(CLUSTER).await? {
                    Some(again) => object = again,
                    None => return Ok(Outcome::Done),
                }
                cluster = LogicalCluster::read(&object);
            }
        } else if cluster.terminators.is_empty() && !permanent {
            progress.content = content::empty(&self.clients.of(&key.workspace)).await?;
            if progress.content.is_none() {
                return release(&inside, &object, &cluster).await;
            }
        }
        let path = cluster
            .meta
            .annotation(annotation::PATH)
            .unwrap_or(key.workspace.as_str());
        let url = format!("{}/clusters/{path}", self.url);
        let plan = decide(&cluster, &progress, &url, &now());
        write(&inside, &object, &cluster, plan).await?;
        Ok(match progress.content {
            Some(_) => Outcome::Poll,
            None => Outcome::Done,
        })
    }
}

impl Reconcile<ObjectKey> for Clusters {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        if !self.tree.is_synced() || !self.apis.is_synced() {
            return Ok(Outcome::Again(UNTIL_SYNCED));
        }
        if self.is_settled(key) {
            return Ok(Outcome::Done);
        }
        self.make(key).await
    }
}

async fn write(
    inside: &Requests,
    object: &Value,
    cluster: &LogicalCluster,
    plan: Plan,
) -> Result<(), Failure> {
    let mut read = object.clone();
    if let Some(status) = plan.status {
        match inside.replace_status(CLUSTER, object, &status).await? {
            Some(written) => read = written,
            None => return Ok(()),
        }
    }
    let mut metadata = Map::new();
    if let Some(labels) = plan.labels {
        metadata.insert("labels".to_owned(), difference(&cluster.meta.labels, &labels));
    }
    if let Some(finalizers) = plan.finalizers {
        metadata.insert("finalizers".to_owned(), json!(finalizers));
    }
    if !metadata.is_empty() {
        metadata.insert("resourceVersion".to_owned(), version(&read));
        inside.merge(CLUSTER, &json!({"metadata": metadata})).await?;
    }
    Ok(())
}

/// Everything inside is gone: so may the LogicalCluster be.
async fn release(inside: &Requests, object: &Value, cluster: &LogicalCluster) -> Result<Outcome, Failure> {
    let mut finalizers = cluster.meta.finalizers.clone();
    finalizers.retain(|it| it != finalizer::LOGICAL_CLUSTER_CONTENT);
    if finalizers.len() < cluster.meta.finalizers.len() {
        let metadata = json!({"finalizers": finalizers, "resourceVersion": version(object)});
        inside.merge(CLUSTER, &json!({"metadata": metadata})).await?;
    }
    Ok(Outcome::Done)
}
