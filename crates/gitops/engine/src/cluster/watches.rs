//! Watches begin with the first application that needs a kind, and end with the last.

use std::sync::{Arc, Weak};

use fairway_controller::kinds::{GroupResource, Kind};
use fairway_controller::watch::follow;
use fairway_controller::{Json, ObjectKey, Shutdown};
use fairway_gitops_sync::key::ResourceKey;
use kube::api::Api;
use kube::runtime::watcher::{self, Event};

use super::Cluster;
use super::state::{Watch, version_of};

/// Sees to it that exactly these kinds are watched for an application.
pub(super) fn need(cluster: &Arc<Cluster>, application: &ObjectKey, kinds: &[Arc<Kind>]) {
    let mut state = cluster.state();
    for kind in kinds {
        let name = kind.name();
        if !state.watches.contains_key(&name) {
            let (end, ended) = Shutdown::new();
            state.watches.insert(name.clone(), Watch::new(kind, end));
            tokio::spawn(run(Arc::downgrade(cluster), Arc::clone(kind), ended));
        }
        if let Some(watch) = state.watches.get_mut(&name) {
            watch.users.insert(application.clone());
        }
    }
    let mut over: Vec<GroupResource> = Vec::new();
    for (name, watch) in &mut state.watches {
        if kinds.iter().any(|kind| kind.name() == *name) {
            continue;
        }
        if watch.users.remove(application) && watch.users.is_empty() {
            over.push(name.clone());
        }
    }
    for name in over {
        state.end_watch(&name);
    }
}

async fn run(cluster: Weak<Cluster>, kind: Arc<Kind>, mut ended: Shutdown) {
    let Some((client, reach, mut shutdown)) = cluster.upgrade().map(|cluster| {
        (
            cluster.readers.every(),
            cluster.readers.reach().clone(),
            cluster.shutdown.clone(),
        )
    }) else {
        return;
    };
    let (trigger, token) = Shutdown::new();
    let name = kind.name();
    let (group, kind_name) = (kind.resource.group.clone(), kind.resource.kind.clone());
    let api_version = kind.resource.api_version.clone();
    let api: Api<Json> = kind.everywhere(client);
    let watch = follow(api, watcher::Config::default(), token, move |event| {
        let Some(cluster) = cluster.upgrade() else {
            return;
        };
        let key_of = |object: &Json| {
            let metadata = &object.metadata;
            let namespace = metadata.namespace.as_deref().unwrap_or_default();
            ResourceKey::new(
                &group,
                &kind_name,
                namespace,
                metadata.name.as_deref().unwrap_or_default(),
            )
        };
        let complete = |mut object: Json| {
            // Elements of lists need not say what they are.
            object.value["apiVersion"] = api_version.as_str().into();
            object.value["kind"] = kind_name.as_str().into();
            object.value
        };
        let mut state = cluster.state();
        let wake = match event {
            Event::Init => {
                state.begin_list(&name);
                Vec::new()
            }
            Event::InitApply(object) => {
                let workspace = reach.workspace_of(&object.metadata);
                state.listed(&name, &workspace, &key_of(&object));
                state.put(&workspace, complete(object), Some(&name))
            }
            Event::InitDone => {
                let wake = state.end_list(&name);
                cluster.listed.notify_waiters();
                wake
            }
            Event::Apply(object) => {
                let workspace = reach.workspace_of(&object.metadata);
                state.put(&workspace, complete(object), Some(&name))
            }
            Event::Delete(object) => {
                let workspace = reach.workspace_of(&object.metadata);
                let version = version_of(object.metadata.resource_version.as_deref());
                state.remove(&workspace, &key_of(&object), version)
            }
        };
        drop(state);
        for application in wake {
            cluster.queue.add(application);
        }
    });
    tokio::select! {
        () = watch => {}
        () = ended.wait() => {}
        () = shutdown.wait() => {}
    }
    drop(trigger);
}

/// Wakes those who wait for a kind when the kinds change.
pub(super) async fn follow_kinds(cluster: Weak<Cluster>) {
    let Some((mut kinds, mut shutdown)) = cluster
        .upgrade()
        .map(|cluster| (cluster.served.changes(), cluster.shutdown.clone()))
    else {
        return;
    };
    loop {
        tokio::select! {
            () = shutdown.wait() => return,
            changed = kinds.changed() => if changed.is_err() {
                return;
            },
        }
        let Some(cluster) = cluster.upgrade() else {
            return;
        };
        let (gone, waiting) = {
            let served = kinds.borrow_and_update();
            let state = cluster.state();
            let is_gone = |name: &&GroupResource| served.resource(name).is_none();
            let gone: Vec<GroupResource> = state.watches.keys().filter(is_gone).cloned().collect();
            (gone, state.waiting())
        };
        let mut wake = waiting;
        {
            let mut state = cluster.state();
            for name in &gone {
                let users = state.watches.get(name).map(|watch| watch.users.clone());
                wake.extend(users.into_iter().flatten());
                state.end_watch(name);
            }
        }
        for application in wake {
            cluster.queue.add(application);
        }
    }
}
