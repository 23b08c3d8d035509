//! Watches on kinds that are known only at run time: one starts when a kind appears and ends when it goes. Each covers all
//! that its client reaches.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use kube::core::{ApiResource, DynamicResourceScope};
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};
use tracing::error;

use crate::kinds::{GroupResource, Kind, Kinds};
use crate::metadata::Metadata;
use crate::shutdown::{Shutdown, ShutdownTrigger};
use crate::watch::follow;

/// What the watches report.
#[derive(Debug)]
pub enum Change<K = Metadata> {
    /// Something happened to an object, or to the watch of its kind.
    Event(Arc<Kind>, Box<Event<K>>),
    /// The kind is served no more, so its objects are gone.
    Gone(Arc<Kind>),
}

/// Watches every kind that `wanted` picks, until the end: its metadata, or as much of its objects as `K` reads.
pub async fn follow_all<K>(
    client: Client,
    mut kinds: watch::Receiver<Arc<Kinds>>,
    wanted: impl Fn(&Kind) -> bool + Send,
    mut shutdown: Shutdown,
    take: impl Fn(Change<K>) + Clone + Send + Sync + 'static,
) where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>
        + Clone
        + DeserializeOwned
        + Debug
        + Send
        + 'static,
{
    let mut tasks = JoinSet::new();
    let mut running: HashMap<GroupResource, Running> = HashMap::new();
    loop {
        let served = Arc::clone(&kinds.borrow_and_update());
        let plan = decide(
            &running
                .iter()
                .map(|(name, it)| (name.clone(), Arc::clone(&it.kind)))
                .collect(),
            &served,
            &wanted,
        );
        for name in plan.stop {
            if let Some(Running { kind, end, .. }) = running.remove(&name) {
                end.shut_down();
                // A kind that is served in another version, or again, keeps its objects.
                if served.resource(&name).is_none() {
                    take(Change::Gone(kind));
                }
            }
        }
        for kind in plan.start {
            let (end, ended) = Shutdown::new();
            let api = kind.everywhere::<K>(client.clone());
            let (take, about) = (take.clone(), Arc::clone(&kind));
            let task = tasks.spawn(follow(api, watcher::Config::default(), ended, move |event| {
                take(Change::Event(Arc::clone(&about), Box::new(event)));
            }));
            let task = task.id();
            running.insert(kind.name(), Running { kind, end, task });
        }
        loop {
            tokio::select! {
                biased;
                () = shutdown.wait() => {
                    running.clear();
                    while tasks.join_next().await.is_some() {}
                    return;
                }
                Some(ended) = tasks.join_next_with_id() => {
                    let task = ended.map_or_else(|failure| failure.id(), |(task, ())| task);
                    if lose(&mut running, task) {
                        // It has failed: begun anew, it lists everything again.
                        tokio::select! {
                            () = shutdown.wait() => {}
                            () = tokio::time::sleep(RETRY) => {}
                        }
                        break;
                    }
                }
                changed = kinds.changed() => {
                    if changed.is_err() {
                        shutdown.wait().await;
                    }
                    break;
                }
            }
        }
    }
}

/// How soon a watch that failed is begun anew.
const RETRY: Duration = Duration::from_secs(1);

/// The watch of a kind.
struct Running {
    kind: Arc<Kind>,
    end: ShutdownTrigger,
    task: Id,
}

/// Forgets a watch that ended although nobody ended it; whether it was one.
fn lose(running: &mut HashMap<GroupResource, Running>, task: Id) -> bool {
    let before = running.len();
    running.retain(|name, it| {
        if it.task == task {
            error!(resource = name.1, group = name.0, "a watch ended by itself");
        }
        it.task != task
    });
    running.len() < before
}

#[derive(Debug, Default)]
struct Plan {
    stop: Vec<GroupResource>,
    start: Vec<Arc<Kind>>,
}

fn decide(
    running: &HashMap<GroupResource, Arc<Kind>>,
    served: &Kinds,
    wanted: &impl Fn(&Kind) -> bool,
) -> Plan {
    let mut plan = Plan::default();
    let wanted_now: HashMap<GroupResource, &Arc<Kind>> = served
        .iter()
        .filter(|kind| wanted(kind))
        .map(|kind| (kind.name(), kind))
        .collect();
    for (name, kind) in running {
        if wanted_now
            .get(name)
            .is_none_or(|now| now.resource != kind.resource)
        {
            plan.stop.push(name.clone());
        }
    }
    for (name, kind) in wanted_now {
        if running.get(&name).is_none_or(|now| now.resource != kind.resource) {
            plan.start.push(Arc::clone(kind));
        }
    }
    plan.stop.sort();
    plan.start.sort_by_key(|kind| kind.name());
    plan
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use kube::core::ApiResource;

    use super::decide;
    use crate::kinds::{Kind, Kinds};

    fn kind(plural: &str, version: &str, verbs: &[&str]) -> Kind {
        let resource = ApiResource {
            group: "g".to_owned(),
            version: version.to_owned(),
            api_version: format!("g/{version}"),
            kind: plural.to_uppercase(),
            plural: plural.to_owned(),
        };
        Kind {
            resource,
            identity: String::new(),
            namespaced: false,
            verbs: verbs.iter().map(|v| (*v).to_owned()).collect(),
        }
    }

    #[test]
    fn watches_follow_the_kinds() {
        let mut served = Kinds::default();
        for served_kind in [
            kind("stays", "v1", &["watch"]),
            kind("moves", "v2", &["watch"]),
            kind("comes", "v1", &["watch"]),
            kind("cannot", "v1", &["list"]),
        ] {
            served.add(served_kind);
        }
        let running: HashMap<_, _> = ["stays", "moves", "goes"]
            .map(|name| {
                (
                    ("g".to_owned(), name.to_owned()),
                    Arc::new(kind(name, "v1", &["watch"])),
                )
            })
            .into();
        let plan = decide(&running, &served, &|kind: &Kind| kind.can(&["watch"]));
        let stop: Vec<_> = plan.stop.iter().map(|(_, name)| name.as_str()).collect();
        let start: Vec<_> = plan
            .start
            .iter()
            .map(|kind| kind.resource.plural.as_str())
            .collect();
        assert_eq!(stop, ["goes", "moves"]);
        assert_eq!(start, ["comes", "moves"]);
    }
}
