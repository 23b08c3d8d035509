//! Aggregated cluster roles hold the rules of the cluster roles that their selectors match.
//!
//! The decision is the policy's own ([`Policy::pending_aggregations`]); roles that gather aggregated roles settle in
//! rounds, each brought about by the watch on the one before.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use fairway_controller::error::is_not_found;
use fairway_controller::{
    Attempt as _, Controller, Failure, Manager, Outcome, Queue, Reconcile, WorkspaceId, watch,
};
use fairway_kernel_authz::{Kind, Policy};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Event};
use serde_json::{Value, json};

use crate::{Setup, users};

const NAME: &str = "clusterrole-aggregation";

/// All cluster roles of a workspace: one role may change many, so they are one piece of work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct AllRoles(WorkspaceId);

impl fmt::Display for AllRoles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}|*", self.0)
    }
}

/// The cluster roles as last seen; `None` until the first list is complete.
#[derive(Default)]
struct Roles {
    policy: Policy,
    synced: bool,
}

impl Roles {
    /// Takes an event in; `true` if there may be something to do.
    fn take(&mut self, event: Event<DynamicObject>) -> bool {
        match event {
            Event::Init => {
                *self = Self::default();
            }
            Event::InitApply(role) | Event::Apply(role) => {
                let object = json!({
                    "metadata": {"labels": role.metadata.labels},
                    "aggregationRule": role.data.get("aggregationRule"),
                    "rules": role.data.get("rules"),
                });
                let name = role.metadata.name.unwrap_or_default();
                self.policy.upsert(Kind::ClusterRole, "", &name, &object);
            }
            Event::Delete(role) => {
                let name = role.metadata.name.unwrap_or_default();
                self.policy.remove(Kind::ClusterRole, "", &name);
            }
            Event::InitDone => self.synced = true,
        }
        self.synced
    }

    /// The roles to write, with their rules.
    fn decide(&self) -> Vec<(String, Value)> {
        if !self.synced {
            return Vec::new();
        }
        self.policy
            .pending_aggregations()
            .into_iter()
            .map(|role| (role.name, json!(role.rules)))
            .collect()
    }
}

struct RoleAggregation {
    api: Api<DynamicObject>,
    roles: Arc<Mutex<Roles>>,
}

pub(crate) fn register(manager: &mut Manager, setup: &Setup) {
    let client = manager.client(&setup.workspace, users::ROLE_AGGREGATOR);
    let queue = Queue::default();
    let roles: Arc<Mutex<Roles>> = Arc::default();
    let (sink, seen, key) = (
        queue.clone(),
        Arc::clone(&roles),
        AllRoles(setup.workspace.clone()),
    );
    let api = cluster_roles(client);
    manager.spawn(watch::follow(
        api.clone(),
        watcher::Config::default(),
        manager.shutdown(),
        move |event| {
            if seen.lock().unwrap_or_else(PoisonError::into_inner).take(event) {
                sink.add(key.clone());
            }
        },
    ));
    let controller = Controller::new(NAME, queue, RoleAggregation { api, roles });
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

fn cluster_roles(client: Client) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "rbac.authorization.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "rbac.authorization.k8s.io/v1".to_owned(),
        kind: "ClusterRole".to_owned(),
        plural: "clusterroles".to_owned(),
    };
    Api::all_with(client, &resource)
}

impl Reconcile<AllRoles> for RoleAggregation {
    async fn reconcile(&self, _: &AllRoles) -> Result<Outcome, Failure> {
        let pending = self.roles.lock().unwrap_or_else(PoisonError::into_inner).decide();
        for (name, rules) in pending {
            let patch = Patch::Merge(json!({"rules": rules}));
            match self.api.patch(&name, &PatchParams::default(), &patch).await {
                Err(error) if is_not_found(&error) => {}
                answer => {
                    answer.attempting(format!("write the rules of the cluster role {name}"))?;
                }
            }
        }
        Ok(Outcome::Done)
    }
}

#[cfg(test)]
mod tests {
    use kube::api::DynamicObject;
    use kube::runtime::watcher::Event;
    use serde_json::{Value, json};

    use super::Roles;

    fn role(object: Value) -> DynamicObject {
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn rules_follow_what_the_selectors_match() {
        let part = |verb: &str| {
            role(json!({"metadata": {"name": "part", "labels": {"to": "all"}},
                "rules": [{"verbs": [verb], "apiGroups": [""], "resources": ["pods"]}]}))
        };
        let all = |rules: Value| {
            role(json!({"metadata": {"name": "all"}, "rules": rules,
                "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]}}))
        };
        let mut roles = Roles::default();
        assert!(!roles.take(Event::Init));
        assert!(!roles.take(Event::InitApply(part("get"))));
        assert!(!roles.take(Event::InitApply(all(json!([])))));
        assert!(roles.decide().is_empty(), "nothing is decided on half a list");
        assert!(roles.take(Event::InitDone));
        let (name, rules) = roles.decide().remove(0);
        assert_eq!((name.as_str(), &rules[0]["verbs"]), ("all", &json!(["get"])));
        assert!(roles.take(Event::Apply(all(rules))));
        assert!(roles.decide().is_empty(), "settled");
        assert!(roles.take(Event::Apply(part("list"))));
        assert_eq!(roles.decide()[0].1[0]["verbs"], json!(["list"]));
        assert!(roles.take(Event::Delete(part("list"))));
        assert_eq!(roles.decide()[0].1, json!([]));
    }
}
