//! The kinds that an application has to do with at its destination.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_controller::Failure;
use fairway_controller::kinds::Kind;
use fairway_gitops_sync::key;
use fairway_gitops_sync::key::ResourceKey;
use serde_json::Value;

use crate::act::kind_of;
use crate::application::Application;
use crate::destination::Place;

/// Kinds by group and kind; none where nobody has defined it.
#[derive(Debug, Clone, Default)]
pub(crate) struct KindsInUse(BTreeMap<(String, String), Option<Arc<Kind>>>);

impl KindsInUse {
    pub(crate) fn get(&self, group: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.0.get(&(group.to_owned(), kind.to_owned()))?.as_ref()
    }

    /// The kind of an object, if it is served.
    pub(crate) fn of(&self, object: &Value) -> Option<&Arc<Kind>> {
        self.get(key::group(object), key::kind(object))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn are_some_missing(&self) -> bool {
        self.0.values().any(Option::is_none)
    }

    /// Those of which one can see all objects.
    pub(crate) fn watchable(&self) -> Vec<Arc<Kind>> {
        let known = self.0.values().flatten();
        known
            .filter(|kind| kind.can(&["list", "watch"]))
            .cloned()
            .collect()
    }
}

/// The kind of an object at a place.
pub(super) async fn served(place: &Place, object: &Value) -> Result<Option<Arc<Kind>>, Failure> {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    place
        .cluster
        .served
        .kind(&place.workspace, api_version, key::kind(object))
        .await
}

/// The kinds of what is declared, and of what was there at the last look or sync.
pub(crate) async fn in_use(
    application: &Application,
    place: &Place,
    targets: &[Value],
) -> Result<KindsInUse, Failure> {
    if !place.cluster.ready().await {
        return Err(Failure::NotYet(format!(
            "the destination {} does not tell what it serves",
            place.server
        )));
    }
    let mut kinds = BTreeMap::new();
    for target in targets {
        let name = (key::group(target).to_owned(), key::kind(target).to_owned());
        if let Some(Some(_)) = kinds.get(&name) {
            continue;
        }
        let found = served(place, target).await?;
        kinds.insert(name, found);
    }
    let status = application.status();
    let seen = [
        &status["resources"],
        &status["operationState"]["syncResult"]["resources"],
    ];
    let every = place.cluster.served.every();
    for entry in seen.into_iter().filter_map(Value::as_array).flatten() {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        let name = (text("group"), text("kind"));
        if kinds.contains_key(&name) {
            continue;
        }
        let key = ResourceKey::new(&name.0, &name.1, "", "");
        let found = match kind_of(&every, &key) {
            Some(kind) if kind.is_common() => Some(Arc::clone(kind)),
            Some(_) => {
                let here = place.cluster.served.of(&place.workspace).await?;
                kind_of(&here, &key).cloned()
            }
            None => None,
        };
        // What is served no more has no objects either.
        if found.is_some() {
            kinds.insert(name, found);
        }
    }
    let namespace = ("".to_owned(), "Namespace".to_owned());
    let creates = application
        .sync_options()
        .iter()
        .any(|option| option == "CreateNamespace=true");
    if creates && !kinds.contains_key(&namespace) {
        let found = every.kind("v1", "Namespace").cloned();
        kinds.insert(namespace, found);
    }
    Ok(KindsInUse(kinds))
}
