//! What was pruned, or went with its application, can be brought back: before an object goes, it is kept as a `Tombstone` of the
//! workspace that it was in, until its time is up.

use std::time::Duration;

use fairway_controller::{Clients, Json, Requests, Shutdown};
use fairway_gitops_sync::key::{self, ResourceKey};
use jiff::{SignedDuration, Timestamp};
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use tracing::debug;

use crate::destination::Place;
use crate::observe::Scene;
use crate::report::timestamp;

const API: &str = "fairway.dev/v1alpha1";
const PATH: &str = "/apis/fairway.dev/v1alpha1/tombstones";
/// How long an object can be brought back.
const KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);
/// How often it is looked for those whose time is up.
const ROUND: Duration = Duration::from_secs(3600);
/// How soon after the start for the first time: while what starting needed has not been given back.
const FIRST: Duration = Duration::from_secs(1);

/// Why an object goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Its application does not declare it any more.
    Pruned,
    /// Its application goes.
    Deleted,
}

/// The tombstone of an object; what the cluster made of it is not part of what comes back.
fn tombstone(object: &Value, application: &str, revision: &str, reason: Reason, now: Timestamp) -> Value {
    let mut kept = object.clone();
    if let Some(fields) = kept.as_object_mut() {
        fields.shift_remove("status");
    }
    if let Some(metadata) = kept["metadata"].as_object_mut() {
        for field in [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "managedFields",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "ownerReferences",
            "finalizers",
        ] {
            metadata.shift_remove(field);
        }
    }
    let name = key::name(object);
    let prefix = format!(
        "{}-{}",
        key::kind(object).to_lowercase(),
        name.get(..40).unwrap_or(name)
    );
    let prefix = prefix.trim_end_matches(['.', '-']);
    // Named after the one that goes, so that it is kept once however often its deletion is tried.
    let metadata = match object["metadata"]["uid"]
        .as_str()
        .and_then(|uid| uid.split('-').next())
    {
        Some(uid) if !uid.is_empty() => json!({"name": format!("{prefix}-{uid}")}),
        _ => json!({"generateName": format!("{prefix}-")}),
    };
    json!({
        "apiVersion": API, "kind": "Tombstone",
        "metadata": metadata,
        "spec": {
            "application": application,
            "deletedAt": timestamp(now),
            "deletedBy": crate::act::FIELD_MANAGER,
            "expiresAt": timestamp(now + KEPT),
            "object": kept,
            "reason": match reason {
                Reason::Pruned => "Pruned",
                Reason::Deleted => "ApplicationDeleted",
            },
            "revision": revision,
        },
    })
}

/// Keeps an object that is about to go. Whether that could be done is not what a sync depends on: where nobody serves
/// tombstones there are none.
pub(crate) async fn keep(scene: &Scene<'_>, object: &Value, revision: &str, reason: Reason) {
    let application = &scene.application.key;
    let named = format!("{}/{}", application.namespace, application.name);
    let place: &Place = scene.place;
    let workspace = match place.is_inside {
        true => &place.workspace,
        false => &application.workspace,
    };
    let home = scene.home;
    let served = home.served.kind(workspace, API, "Tombstone").await;
    if !matches!(served, Ok(Some(_))) {
        return;
    }
    let stone = tombstone(object, &named, revision, reason, Timestamp::now());
    let requests = Requests::new(home.readers.of(workspace));
    if let Err(failure) = requests.create(PATH, &stone).await {
        let key = ResourceKey::of(object);
        debug!(%key, reason = failure.sentence(), "no tombstone could be kept");
    }
}

/// Removes those whose time is up, until the end.
pub(crate) async fn expire(
    clients: Clients,
    served: fairway_controller::served::Served,
    mut shutdown: Shutdown,
) {
    let mut pause = FIRST;
    loop {
        tokio::select! {
            () = shutdown.wait() => return,
            () = tokio::time::sleep(pause) => pause = ROUND,
        }
        let kinds = served.every();
        let stones = kinds
            .iter()
            .filter(|kind| kind.resource.api_version == API && kind.resource.kind == "Tombstone");
        for kind in stones {
            let api: Api<Json> = kind.everywhere(clients.every());
            let Ok(listed) = api.list(&ListParams::default()).await else {
                continue;
            };
            let now = Timestamp::now();
            for stone in listed
                .items
                .into_iter()
                .filter(|stone| is_over(&stone.value, now))
            {
                let workspace = clients.reach().workspace_of(&stone.metadata);
                let name = stone.metadata.name.unwrap_or_default();
                let requests = Requests::new(clients.of(&workspace));
                if let Err(failure) = requests.delete(&format!("{PATH}/{name}")).await {
                    debug!(
                        name,
                        reason = failure.sentence(),
                        "a tombstone could not be removed"
                    );
                }
            }
        }
    }
}

fn is_over(stone: &Value, now: Timestamp) -> bool {
    let expires = stone["spec"]["expiresAt"].as_str();
    expires
        .and_then(|text| text.parse::<Timestamp>().ok())
        .is_some_and(|at| at < now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_is_what_was_declared() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}, "status": {},
            "metadata": {"name": "m", "namespace": "n", "uid": "0a1b2c3d-9", "resourceVersion": "1", "labels": {"l": "1"}}});
        let now = Timestamp::from_second(0).unwrap();
        let stone = tombstone(&object, "argocd/web", "abc", Reason::Deleted, now);
        assert_eq!(
            stone["spec"]["object"],
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"},
                "metadata": {"name": "m", "namespace": "n", "labels": {"l": "1"}}})
        );
        assert_eq!(stone["metadata"]["name"], "configmap-m-0a1b2c3d");
        assert_eq!(stone["spec"]["reason"], "ApplicationDeleted");
        assert_eq!(stone["spec"]["expiresAt"], "1970-01-08T00:00:00Z");
        assert!(!is_over(&stone, now) && is_over(&stone, now + KEPT + SignedDuration::from_secs(1)));
    }
}
