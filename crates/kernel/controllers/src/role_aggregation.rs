//! Aggregated cluster roles hold the rules of the cluster roles that their selectors match.
//!
//! The decision is the policy's own ([`Policy::pending_aggregations`]); roles that gather aggregated roles settle in
//! rounds, each brought about by the watch on the one before. Each workspace gathers its own roles.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use fairway_controller::error::is_not_found;
use fairway_controller::queue::WorkKey;
use fairway_controller::{
    Attempt as _, Clients, Controller, Failure, Manager, Outcome, Queue, Reach, Reconcile, WorkspaceId, watch,
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

impl WorkKey for AllRoles {
    fn workspace(&self) -> &WorkspaceId {
        &self.0
    }
}

impl fmt::Display for AllRoles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}|*", self.0)
    }
}

/// The cluster roles as last seen.
struct Roles {
    reach: Reach,
    /// Of those workspaces that have any.
    policies: HashMap<WorkspaceId, Policy>,
    /// Whether a list is complete. Before that, nothing is decided.
    synced: bool,
}

impl Roles {
    fn new(reach: &Reach) -> Self {
        Self {
            reach: reach.clone(),
            policies: HashMap::new(),
            synced: false,
        }
    }

    /// Takes an event in, and returns the workspaces in which there may be something to do.
    fn take(&mut self, event: Event<DynamicObject>) -> Vec<WorkspaceId> {
        let changed = match event {
            Event::Init => {
                *self = Self::new(&self.reach);
                return Vec::new();
            }
            Event::InitDone => {
                self.synced = true;
                return self.policies.keys().cloned().collect();
            }
            Event::InitApply(role) | Event::Apply(role) => {
                let object = json!({
                    "metadata": {"labels": role.metadata.labels},
                    "aggregationRule": role.data.get("aggregationRule"),
                    "rules": role.data.get("rules"),
                });
                let workspace = self.reach.workspace_of(&role.metadata);
                let name = role.metadata.name.unwrap_or_default();
                let policy = self.policies.entry(workspace.clone()).or_default();
                policy.upsert(Kind::ClusterRole, "", &name, &object);
                workspace
            }
            Event::Delete(role) => {
                let workspace = self.reach.workspace_of(&role.metadata);
                let name = role.metadata.name.unwrap_or_default();
                if let Some(policy) = self.policies.get_mut(&workspace) {
                    policy.remove(Kind::ClusterRole, "", &name);
                    if policy.is_empty() {
                        self.policies.remove(&workspace);
                    }
                }
                workspace
            }
        };
        self.synced.then_some(changed).into_iter().collect()
    }

    /// The roles of a workspace to write, with their rules.
    fn decide(&self, workspace: &WorkspaceId) -> Vec<(String, Value)> {
        let policy = self.policies.get(workspace).filter(|_| self.synced);
        policy
            .map(Policy::pending_aggregations)
            .into_iter()
            .flatten()
            .map(|role| (role.name, json!(role.rules)))
            .collect()
    }
}

struct RoleAggregation {
    clients: Clients,
    roles: Arc<Mutex<Roles>>,
}

pub(crate) fn register(manager: &mut Manager, _: &Setup) {
    let clients = manager.clients(users::ROLE_AGGREGATOR);
    let queue = Queue::default();
    let roles = Arc::new(Mutex::new(Roles::new(manager.reach())));
    let (sink, seen) = (queue.clone(), Arc::clone(&roles));
    manager.spawn(watch::follow(
        cluster_roles(clients.every()),
        watcher::Config::default(),
        manager.shutdown(),
        move |event| {
            let changed = seen.lock().unwrap_or_else(PoisonError::into_inner).take(event);
            changed
                .into_iter()
                .for_each(|workspace| sink.add(AllRoles(workspace)));
        },
    ));
    let controller = Controller::new(NAME, queue, RoleAggregation { clients, roles });
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
    async fn reconcile(&self, AllRoles(workspace): &AllRoles) -> Result<Outcome, Failure> {
        let pending = self
            .roles
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .decide(workspace);
        if pending.is_empty() {
            return Ok(Outcome::Done);
        }
        let api = cluster_roles(self.clients.of(workspace));
        for (name, rules) in pending {
            let patch = Patch::Merge(json!({"rules": rules}));
            match api.patch(&name, &PatchParams::default(), &patch).await {
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
    use std::slice::from_ref;

    use fairway_controller::{Reach, WorkspaceId};
    use kube::api::DynamicObject;
    use kube::runtime::watcher::Event;
    use serde_json::{Value, json};

    use super::Roles;

    fn role(object: Value) -> DynamicObject {
        serde_json::from_value(object).unwrap()
    }

    fn part(workspace: &str, verb: &str) -> DynamicObject {
        role(json!({
            "metadata": {"name": "part", "labels": {"to": "all"}, "annotations": {"kcp.io/cluster": workspace}},
            "rules": [{"verbs": [verb], "apiGroups": [""], "resources": ["pods"]}],
        }))
    }

    #[allow(clippy::needless_pass_by_value, reason = "the tests hand over JSON literals")]
    fn all(workspace: &str, rules: Value) -> DynamicObject {
        role(json!({
            "metadata": {"name": "all", "annotations": {"kcp.io/cluster": workspace}}, "rules": rules,
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]},
        }))
    }

    #[test]
    fn rules_follow_what_the_selectors_match() {
        let root = WorkspaceId::root();
        let (part, all) = (|verb: &str| part("root", verb), |rules: Value| all("root", rules));
        let mut roles = Roles::new(&Reach::Every);
        assert!(roles.take(Event::Init).is_empty());
        assert!(roles.take(Event::InitApply(part("get"))).is_empty());
        assert!(roles.take(Event::InitApply(all(json!([])))).is_empty());
        assert!(
            roles.decide(&root).is_empty(),
            "nothing is decided on half a list"
        );
        assert_eq!(roles.take(Event::InitDone), from_ref(&root));
        let (name, rules) = roles.decide(&root).remove(0);
        assert_eq!((name.as_str(), &rules[0]["verbs"]), ("all", &json!(["get"])));
        assert_eq!(roles.take(Event::Apply(all(rules))), from_ref(&root));
        assert!(roles.decide(&root).is_empty(), "settled");
        assert!(!roles.take(Event::Apply(part("list"))).is_empty());
        assert_eq!(roles.decide(&root)[0].1[0]["verbs"], json!(["list"]));
        assert!(!roles.take(Event::Delete(part("list"))).is_empty());
        assert_eq!(roles.decide(&root)[0].1, json!([]));
    }

    #[test]
    fn a_workspace_gathers_nothing_of_its_neighbours() {
        let mut roles = Roles::new(&Reach::Every);
        let [a, b] = ["a", "b"].map(|id| WorkspaceId::parse(id).unwrap());
        for event in [
            Event::Init,
            Event::InitApply(part("a", "get")),
            Event::InitApply(all("b", json!([]))),
            Event::InitDone,
        ] {
            roles.take(event);
        }
        assert!(roles.decide(&a).is_empty() && roles.decide(&b).is_empty());
        assert_eq!(roles.take(Event::Apply(part("b", "list"))), from_ref(&b));
        assert_eq!(roles.decide(&b)[0].1[0]["verbs"], json!(["list"]));
        roles.take(Event::Delete(part("a", "get")));
        assert!(
            !roles.policies.contains_key(&a),
            "nothing is kept of a workspace without roles"
        );
    }
}
