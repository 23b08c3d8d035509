//! Which kinds an API serves. Kinds come and go with CRDs, so nobody may know them in advance.
//!
//! One task ([`follow`]) keeps the list: it reads all of discovery at first and then, now and then, again; and the groups
//! of CRDs at once when one of those changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResourceList};
use kube::Client;
use kube::api::{Api, PartialObjectMeta};
use kube::core::ApiResource;
use kube::core::discovery::v2::APIGroupDiscoveryList;
use kube::runtime::watcher::{self, Event};
use tokio::sync::{mpsc, watch};
use tracing::{debug, warn};

use crate::error::{Attempt as _, Failure, is_not_found};
use crate::shutdown::Shutdown;
use crate::watch::follow as follow_watch;

/// What makes a burst of CRDs few readings: each costs as much as the group is large, and whoever has just created a CRD
/// has no use for the controllers that follow all kinds yet.
const SETTLE: Duration = Duration::from_millis(100);
/// A real cluster serves a kind a little after it says so.
const SECOND_LOOK: Duration = Duration::from_secs(2);
/// For what comes without a CRD, such as aggregated APIs.
const FULL_EVERY: Duration = Duration::from_secs(120);
const RETRY: Duration = Duration::from_secs(1);

/// A kind that is served, in the version that the server prefers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its names.
    pub resource: ApiResource,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// What can be done with it.
    pub verbs: Vec<String>,
}

impl Kind {
    /// Whether it offers all of these.
    pub fn can(&self, verbs: &[&str]) -> bool {
        verbs.iter().all(|verb| self.verbs.iter().any(|v| v == verb))
    }

    /// Objects of the kind: in a namespace, everywhere (empty), or of the cluster.
    pub fn api<K>(&self, client: Client, namespace: &str) -> Api<K>
    where
        K: kube::Resource<DynamicType = ApiResource, Scope = kube::core::DynamicResourceScope>,
    {
        if self.namespaced && !namespace.is_empty() {
            Api::namespaced_with(client, namespace, &self.resource)
        } else {
            Api::all_with(client, &self.resource)
        }
    }
}

/// Group and plural name.
pub type GroupResource = (String, String);

/// The kinds that are served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    by_resource: BTreeMap<GroupResource, Arc<Kind>>,
    /// Every served version of every kind, by `apiVersion` and `kind`.
    by_kind: BTreeMap<(String, String), GroupResource>,
    /// Group-versions whose server did not answer.
    failed: BTreeSet<String>,
}

impl Kinds {
    /// Every kind, once.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.by_resource.values()
    }

    /// The kind of a resource.
    pub fn resource(&self, group: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.by_resource.get(&(group.to_owned(), plural.to_owned()))
    }

    /// The kind that an `apiVersion` and a `kind` name; any served version will do.
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Kind>> {
        let resource = self.by_kind.get(&(api_version.to_owned(), kind.to_owned()))?;
        self.by_resource.get(resource)
    }

    /// Every group-version (`v1`, `apps/v1`) in which something is served.
    pub fn group_versions(&self) -> BTreeSet<&str> {
        self.by_kind.keys().map(|(version, _)| version.as_str()).collect()
    }

    /// Group-versions that could not be read: what they serve is unknown.
    pub fn failed(&self) -> impl Iterator<Item = &str> {
        self.failed.iter().map(String::as_str)
    }

    /// Adds a kind; the first version of a kind is the preferred one.
    pub fn add(&mut self, kind: Kind) {
        let names = &kind.resource;
        let resource = (names.group.clone(), names.plural.clone());
        self.by_kind
            .insert((names.api_version.clone(), names.kind.clone()), resource.clone());
        self.by_resource.entry(resource).or_insert_with(|| Arc::new(kind));
    }

    fn remove_group(&mut self, group: &str) {
        self.by_resource.retain(|(g, _), _| g != group);
        self.by_kind.retain(|_, (g, _)| g != group);
        self.failed
            .retain(|version| version.split_once('/').is_none_or(|(g, _)| g != group));
    }

    fn add_group(&mut self, group: Self) {
        self.by_resource.extend(group.by_resource);
        self.by_kind.extend(group.by_kind);
        self.failed.extend(group.failed);
    }
}

fn from_aggregated(list: APIGroupDiscoveryList, kinds: &mut Kinds) {
    for group in list.items {
        let name = group.metadata.and_then(|m| m.name).unwrap_or_default();
        for version in group.versions {
            let Some(number) = version.version else { continue };
            if version.freshness.as_deref() == Some("Stale") {
                kinds.failed.insert(api_version(&name, &number));
                continue;
            }
            for resource in version.resources {
                let Some(plural) = resource.resource else { continue };
                let kind = resource.response_kind.and_then(|k| k.kind).unwrap_or_default();
                kinds.add(Kind {
                    resource: names(&name, &number, kind, plural),
                    namespaced: resource.scope.as_deref() == Some("Namespaced"),
                    verbs: resource.verbs,
                });
            }
        }
    }
}

fn from_resources(group: &str, version: &str, list: APIResourceList, kinds: &mut Kinds) {
    for resource in list.resources {
        // Subresources are listed beside resources.
        if resource.name.contains('/') {
            continue;
        }
        kinds.add(Kind {
            resource: names(group, version, resource.kind, resource.name),
            namespaced: resource.namespaced,
            verbs: resource.verbs,
        });
    }
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

fn names(group: &str, version: &str, kind: String, plural: String) -> ApiResource {
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: api_version(group, version),
        kind,
        plural,
    }
}

/// Reads all of discovery: two requests.
pub async fn discover(client: &Client) -> Result<Kinds, Failure> {
    let doing = "discover the kinds that are served";
    let mut kinds = Kinds::default();
    from_aggregated(
        client
            .list_core_api_versions_aggregated()
            .await
            .attempting(doing)?,
        &mut kinds,
    );
    from_aggregated(
        client.list_api_groups_aggregated().await.attempting(doing)?,
        &mut kinds,
    );
    Ok(kinds)
}

/// Reads one group; nothing if it is not served.
async fn discover_group(client: &Client, group: &str) -> Result<Kinds, Failure> {
    let mut kinds = Kinds::default();
    let request = Request::get(format!("/apis/{group}")).body(Vec::new());
    let request = request
        .map_err(kube::Error::HttpError)
        .attempting("name a group")?;
    let served: APIGroup = match client.request(request).await {
        Err(error) if is_not_found(&error) => return Ok(kinds),
        answer => answer.attempting(format!("discover the group {group}"))?,
    };
    for version in &served.versions {
        match client.list_api_group_resources(&version.group_version).await {
            Ok(list) => from_resources(group, &version.version, list, &mut kinds),
            Err(error) if is_not_found(&error) => {}
            Err(_) => {
                kinds.failed.insert(version.group_version.clone());
            }
        }
    }
    Ok(kinds)
}

/// Keeps the list of kinds. The first reading is sent when it is complete; before that the list is empty.
pub async fn follow(client: Client, sender: watch::Sender<Arc<Kinds>>, shutdown: Shutdown) {
    let (tell, told) = mpsc::unbounded_channel();
    let crds: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client.clone());
    let notice = follow_watch(crds, watcher::Config::default(), shutdown.clone(), move |event| {
        let (Event::Apply(crd) | Event::Delete(crd) | Event::InitApply(crd)) = event else {
            return;
        };
        let group = crd
            .metadata
            .name
            .and_then(|name| Some(name.split_once('.')?.1.to_owned()));
        if let Some(group) = group {
            // The receiver lives as long as this function.
            let _ = tell.send(group);
        }
    });
    tokio::join!(notice, keep(client, sender, told, shutdown));
}

async fn keep(
    client: Client,
    sender: watch::Sender<Arc<Kinds>>,
    mut told: mpsc::UnboundedReceiver<String>,
    mut shutdown: Shutdown,
) {
    let mut full = tokio::time::interval(FULL_EVERY);
    full.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut kinds = Kinds::default();
    let mut again: Option<(tokio::time::Instant, BTreeSet<String>)> = None;
    loop {
        let second_look = async {
            match &again {
                Some((at, _)) => tokio::time::sleep_until(*at).await,
                None => std::future::pending().await,
            }
        };
        let mut groups = BTreeSet::new();
        tokio::select! {
            biased;
            () = shutdown.wait() => return,
            _ = full.tick() => match discover(&client).await {
                Ok(found) => {
                    kinds = found;
                    publish(&sender, &kinds);
                    continue;
                }
                Err(failure) => {
                    warn!(reason = failure.sentence(), "the list of kinds could not be read");
                    full.reset_after(RETRY);
                    continue;
                }
            },
            group = told.recv() => {
                groups.extend(group);
                tokio::time::sleep(SETTLE).await;
                while let Ok(group) = told.try_recv() {
                    groups.insert(group);
                }
                let due = tokio::time::Instant::now() + SECOND_LOOK;
                let pending = again.take().map(|(_, groups)| groups).unwrap_or_default();
                again = Some((due, pending.into_iter().chain(groups.iter().cloned()).collect()));
            }
            () = second_look => groups = again.take().map(|(_, groups)| groups).unwrap_or_default(),
        }
        for group in groups {
            match discover_group(&client, &group).await {
                Ok(found) => {
                    kinds.remove_group(&group);
                    kinds.add_group(found);
                }
                Err(failure) => debug!(group, reason = failure.sentence(), "a group could not be read"),
            }
        }
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
mod tests {
    use super::{Kind, Kinds, names};

    fn kind(group: &str, version: &str, kind: &str, plural: &str) -> Kind {
        Kind {
            resource: names(group, version, kind.to_owned(), plural.to_owned()),
            namespaced: true,
            verbs: vec!["list".to_owned(), "delete".to_owned()],
        }
    }

    #[test]
    fn the_first_version_is_preferred_and_every_version_is_known() {
        let mut kinds = Kinds::default();
        kinds.add(kind(
            "autoscaling",
            "v2",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
        ));
        kinds.add(kind(
            "autoscaling",
            "v1",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
        ));
        kinds.add(kind("", "v1", "Pod", "pods"));
        assert_eq!(kinds.iter().count(), 2);
        for (api_version, name, want) in [
            ("autoscaling/v1", "HorizontalPodAutoscaler", Some("v2")),
            ("autoscaling/v2", "HorizontalPodAutoscaler", Some("v2")),
            ("autoscaling/v3", "HorizontalPodAutoscaler", None),
            ("v1", "Pod", Some("v1")),
        ] {
            let found = kinds.kind(api_version, name).map(|k| k.resource.version.as_str());
            assert_eq!(found, want, "{api_version} {name}");
        }
        kinds.remove_group("autoscaling");
        assert_eq!(kinds.iter().count(), 1);
        assert!(kinds.kind("autoscaling/v1", "HorizontalPodAutoscaler").is_none());
    }

    #[test]
    fn verbs_are_asked_for_together() {
        let pods = kind("", "v1", "Pod", "pods");
        assert!(pods.can(&["list", "delete"]) && !pods.can(&["list", "watch"]));
    }
}
