//! Workspaces and the APIs that they share.
//!
//! The decisions are `fairway_kernel_tenancy`'s; here they are given what they ask for, and what they answer is carried
//! out. There is one watch for each kind over all workspaces. What is kept of an object is a small view, never the object:
//! whoever works on one reads it, by a request that the server answers from memory.
//!
//! | module | keeps true |
//! |---|---|
//! | `workspace` | a Workspace has its LogicalCluster, says how that fares, and goes after it |
//! | `logical_cluster` | a new workspace is filled, one that is deleted is emptied first |
//! | `workspace_type` | a WorkspaceType says where its initializer and terminator find their workspaces |
//! | `export` | an APIExport has an identity and an APIExportEndpointSlice, which leads to its consumers |
//! | `binding` | an APIBinding brings what its export offers, and takes the objects along when it goes |
//!
//! Making a workspace is one piece of work from the Workspace over the LogicalCluster to its bindings: each calls the next
//! at once instead of waiting for an event, so that what is ready within milliseconds is written once, as ready.

mod apis;
mod binding;
mod export;
mod logical_cluster;
mod paths;
mod tree;
mod turns;
mod workspace;
mod workspace_type;

use std::time::Duration;

use fairway_controller::{Manager, ObjectKey, Queue, watch};

use self::apis::Apis;
use self::tree::Tree;
use crate::Setup;

/// How soon to look again before every watch has told what there is.
const UNTIL_SYNCED: Duration = Duration::from_millis(20);

/// Work for each of the controllers.
#[derive(Clone, Default)]
struct Queues {
    workspaces: Queue<ObjectKey>,
    types: Queue<ObjectKey>,
    clusters: Queue<ObjectKey>,
    exports: Queue<ObjectKey>,
    slices: Queue<ObjectKey>,
    bindings: Queue<ObjectKey>,
}

pub(crate) fn register(manager: &mut Manager, setup: &Setup) {
    let url = setup.options.url.trim_end_matches('/').to_owned();
    let queues = Queues::default();
    let tree = Tree::new(manager.reach());
    let apis = Apis::new(manager.reach());
    tree.follow(manager, &queues, &url);
    apis.follow(manager, &queues, &tree);
    let bindings = binding::Bindings::new(manager, &tree, &apis, &queues);
    let clusters = logical_cluster::Clusters::new(manager, &tree, &apis, bindings.clone(), &queues, &url);
    start(manager, &queues, &tree, &apis, &clusters);
    bindings.register(manager, queues.bindings);
    clusters.clone().register(manager, queues.clusters);
    workspace::register(manager, queues.workspaces, &tree, clusters, &url);
    workspace_type::register(manager, queues.types, &url);
    export::register(manager, queues.exports, queues.slices, &tree, &apis, &url);
}

/// When everything has been seen for the first time, finds what is not as it should be. With thousands of workspaces that is
/// little, and to queue all of them would cost more than to find it.
fn start(
    manager: &mut Manager,
    queues: &Queues,
    tree: &Tree,
    apis: &Apis,
    clusters: &logical_cluster::Clusters,
) {
    let synced = (tree.clone(), apis.clone());
    let (queues, tree, apis, clusters) = (queues.clone(), tree.clone(), apis.clone(), clusters.clone());
    let look = move || {
        let (bindings, exports, slices) = apis.look();
        let add =
            |queue: &Queue<ObjectKey>, keys: Vec<ObjectKey>| keys.into_iter().for_each(|it| queue.add(it));
        add(&queues.bindings, bindings);
        add(&queues.exports, exports);
        add(&queues.slices, slices);
        add(&queues.types, tree.types());
        add(&queues.clusters, clusters.unsettled());
        add(&queues.workspaces, tree.unsettled_workspaces());
    };
    let synced = move || synced.0.is_synced() && synced.1.is_synced();
    manager.spawn(watch::once(synced, manager.shutdown(), look));
}
