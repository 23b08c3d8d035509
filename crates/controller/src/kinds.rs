//! Which kinds an API serves. Kinds come and go with CRDs, so nobody may know them in advance.
//!
//! Over all workspaces a custom kind is named with its identity (`widgets:<identity>`), since two workspaces may mean
//! different things by the same name; inside a workspace its plain name is enough.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResourceList};
use kube::Client;
use kube::api::Api;
use kube::core::ApiResource;
use kube::core::discovery::v2::APIGroupDiscoveryList;

use crate::error::{Attempt as _, Failure, is_not_found};

/// A kind that is served, in the version that the server prefers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its names.
    pub resource: ApiResource,
    /// Which one of several of that name; empty for what is the same in every workspace.
    pub identity: String,
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

    /// Whether the kind is the same in every workspace.
    pub fn is_common(&self) -> bool {
        self.identity.is_empty()
    }

    /// The name by which it is told from all others.
    pub fn name(&self) -> GroupResource {
        (self.resource.group.clone(), self.unique_plural())
    }

    fn unique_plural(&self) -> String {
        let plural = &self.resource.plural;
        if self.is_common() {
            plural.clone()
        } else {
            format!("{plural}{IDENTITY}{}", self.identity)
        }
    }

    /// Objects of the kind wherever the client reaches.
    pub fn everywhere<K>(&self, client: Client) -> Api<K>
    where
        K: kube::Resource<DynamicType = ApiResource, Scope = kube::core::DynamicResourceScope>,
    {
        let resource = ApiResource {
            plural: self.unique_plural(),
            ..self.resource.clone()
        };
        Api::all_with(client, &resource)
    }

    /// Objects of the kind in a workspace: in a namespace, in all of them (empty), or of the cluster.
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

/// Stands between a plural name and an identity.
const IDENTITY: char = ':';

/// Group and plural name, with the identity if there is one.
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
    pub fn resource(&self, name: &GroupResource) -> Option<&Arc<Kind>> {
        self.by_resource.get(name)
    }

    /// Whether nothing is known yet.
    pub fn is_empty(&self) -> bool {
        self.by_resource.is_empty()
    }

    /// The kind that an `apiVersion` and a `kind` name; any served version will do. Over all workspaces there may be
    /// several, of which this is any, but never before one that is common to all.
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
        let resource = kind.name();
        let meant = self
            .by_kind
            .entry((names.api_version.clone(), names.kind.clone()));
        if kind.is_common() {
            meant.insert_entry(resource.clone());
        } else {
            meant.or_insert_with(|| resource.clone());
        }
        self.by_resource.entry(resource).or_insert_with(|| Arc::new(kind));
    }

    /// The same kinds, with identities.
    pub(crate) fn identified(self, identity_of: impl Fn(&Kind) -> Option<String>) -> Self {
        let mut by_kind = self.by_kind;
        let mut by_resource = BTreeMap::new();
        for (name, kind) in self.by_resource {
            let Some(identity) = identity_of(&kind) else {
                by_resource.insert(name, kind);
                continue;
            };
            let kind = Kind {
                identity,
                ..Kind::clone(&kind)
            };
            by_kind
                .values_mut()
                .filter(|meant| **meant == name)
                .for_each(|meant| *meant = kind.name());
            by_resource.insert(kind.name(), Arc::new(kind));
        }
        Self {
            by_resource,
            by_kind,
            failed: self.failed,
        }
    }

    pub(crate) fn remove_group(&mut self, group: &str) {
        self.by_resource.retain(|(g, _), _| g != group);
        self.by_kind.retain(|_, (g, _)| g != group);
        self.failed
            .retain(|version| version.split_once('/').is_none_or(|(g, _)| g != group));
    }

    pub(crate) fn add_group(&mut self, group: Self) {
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
                let (plural, identity) = split_identity(plural);
                kinds.add(Kind {
                    resource: names(&name, &number, kind, plural),
                    identity,
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
        let (plural, identity) = split_identity(resource.name);
        kinds.add(Kind {
            resource: names(group, version, resource.kind, plural),
            identity,
            namespaced: resource.namespaced,
            verbs: resource.verbs,
        });
    }
}

fn split_identity(resource: String) -> (String, String) {
    match resource.split_once(IDENTITY) {
        Some((plural, identity)) => (plural.to_owned(), identity.to_owned()),
        None => (resource, String::new()),
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
pub(crate) async fn discover_group(client: &Client, group: &str) -> Result<Kinds, Failure> {
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

#[cfg(test)]
mod tests {
    use super::{Kind, Kinds, from_resources, names};

    fn kind(group: &str, version: &str, kind: &str, plural: &str) -> Kind {
        Kind {
            resource: names(group, version, kind.to_owned(), plural.to_owned()),
            identity: String::new(),
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

    #[test]
    fn same_named_kinds_of_two_workspaces_are_two() {
        let list = |resources: serde_json::Value| {
            serde_json::from_value(serde_json::json!({"groupVersion": "e.x/v1", "resources": resources}))
                .unwrap()
        };
        let entry = |name: &str| serde_json::json!({"name": name, "singularName": "", "namespaced": true, "kind": "Widget", "verbs": ["list"]});
        let mut kinds = Kinds::default();
        let widgets = serde_json::json!([entry("widgets:1"), entry("widgets:2"), entry("widgets:2/status")]);
        from_resources("e.x", "v1", list(widgets), &mut kinds);
        let names: Vec<_> = kinds.iter().map(|kind| kind.name().1).collect();
        assert_eq!(names, ["widgets:1", "widgets:2"]);
        assert!(kinds.iter().all(|kind| kind.resource.plural == "widgets"));
        assert!(!kinds.kind("e.x/v1", "Widget").unwrap().is_common());
        from_resources(
            "e.x",
            "v1",
            list(serde_json::json!([entry("widgets")])),
            &mut kinds,
        );
        assert!(kinds.kind("e.x/v1", "Widget").unwrap().is_common());
    }
}
