//! The resources of an Application: what was last done with each, and how it is.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::field::{list, text};
use crate::selection::{Selected, includes};
use crate::table::Table;

/// One resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceState {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Synced or not; of a hook its phase.
    pub status: String,
    /// Its health.
    pub health: String,
    /// Which hook it is.
    pub hook: String,
    /// What was last said of it.
    pub message: String,
    /// The phase of the sync that it belongs to.
    pub phase: String,
    /// Its wave.
    pub wave: i64,
}

impl ResourceState {
    /// What tells it apart.
    pub fn key(&self) -> String {
        format!("{}/{}/{}/{}", self.group, self.kind, self.namespace, self.name)
    }

    /// Takes over what is new; nothing becomes empty. Whether anything was.
    pub fn merge(&mut self, newer: &Self) -> bool {
        let mut changed = false;
        for (old, new) in [
            (&mut self.status, &newer.status),
            (&mut self.health, &newer.health),
            (&mut self.hook, &newer.hook),
            (&mut self.message, &newer.message),
        ] {
            if !new.is_empty() && old != new {
                new.clone_into(old);
                changed = true;
            }
        }
        self.phase.clone_from(&newer.phase);
        self.wave = newer.wave;
        changed
    }

    fn named(value: &Value) -> Self {
        let of = |field: &str| text(value, field).to_owned();
        Self {
            group: of("/group"),
            kind: of("/kind"),
            namespace: of("/namespace"),
            name: of("/name"),
            ..Self::default()
        }
    }
}

/// The resources of an Application: first those of the last operation in its order, then the others by name.
pub fn states(application: &Value, selected: &[Selected]) -> Vec<ResourceState> {
    let mut known: BTreeMap<String, ResourceState> = BTreeMap::new();
    for resource in list(application, "/status/resources") {
        let state = ResourceState {
            status: text(resource, "/status").to_owned(),
            health: text(resource, "/health/status").to_owned(),
            wave: resource["syncWave"].as_i64().unwrap_or(0),
            ..ResourceState::named(resource)
        };
        known.insert(state.key(), state);
    }
    let mut all = Vec::new();
    let mut done = Vec::new();
    for result in list(application, "/status/operationState/syncResult/resources") {
        let mut state = ResourceState {
            status: text(result, "/hookPhase").to_owned(),
            health: text(result, "/status").to_owned(),
            hook: text(result, "/hookType").to_owned(),
            message: text(result, "/message").to_owned(),
            phase: text(result, "/syncPhase").to_owned(),
            ..ResourceState::named(result)
        };
        let key = state.key();
        if let Some(resource) = known.get(&key).filter(|_| state.hook.is_empty()) {
            state.status.clone_from(&resource.status);
            state.health.clone_from(&resource.health);
            state.wave = resource.wave;
        }
        done.push(key);
        all.push(state);
    }
    for key in done {
        known.remove(&key);
    }
    all.extend(known.into_values());
    if !selected.is_empty() {
        all.retain(|it| includes(selected, &it.group, &it.kind, &it.namespace, &it.name));
    }
    all
}

/// The same, each resource once.
pub fn grouped(application: &Value, selected: &[Selected]) -> Vec<ResourceState> {
    let mut all: Vec<ResourceState> = Vec::new();
    for state in states(application, selected) {
        match all.iter_mut().find(|it| it.key() == state.key()) {
            Some(known) => {
                known.merge(&state);
            }
            None => all.push(state),
        }
    }
    all
}

/// The table of resources.
pub fn table(application: &Value) -> String {
    let mut table = Table::new([
        "GROUP",
        "KIND",
        "NAMESPACE",
        "NAME",
        "STATUS",
        "HEALTH",
        "HOOK",
        "MESSAGE",
    ]);
    for it in states(application, &[]) {
        table.line([
            it.group,
            it.kind,
            it.namespace,
            it.name,
            it.status,
            it.health,
            it.hook,
            it.message,
        ]);
    }
    table.render()
}

/// The table of `resources`: orphaned ones are those that the tree has and no source.
pub fn short_table(resources: &[(ResourceState, bool)]) -> String {
    let mut table = Table::new(["GROUP", "KIND", "NAMESPACE", "NAME", "ORPHANED"]);
    for (it, orphaned) in resources {
        let orphaned = if *orphaned { "Yes" } else { "No" };
        table.line([&*it.group, &*it.kind, &*it.namespace, &*it.name, orphaned]);
    }
    table.render()
}

/// A live object and what belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub state: ResourceState,
    /// When it was made.
    pub created: String,
    /// What it owns.
    pub children: Vec<Self>,
}

/// The tree of resources; `ages` adds how old each is.
pub fn tree(roots: &[Node], ages: Option<jiff::Timestamp>) -> String {
    let mut table = match ages {
        None => Table::new(["KIND/NAME", "STATUS", "HEALTH", "MESSAGE"]),
        Some(_) => Table::new(["KIND/NAME", "STATUS", "HEALTH", "AGE", "MESSAGE"]),
    };
    for root in roots {
        branch(&mut table, root, "", "", ages);
    }
    table.render()
}

fn branch(table: &mut Table, node: &Node, first: &str, rest: &str, ages: Option<jiff::Timestamp>) {
    let state = &node.state;
    let mut cells = vec![
        format!("{first}{}/{}", state.kind, state.name),
        state.status.clone(),
        state.health.clone(),
    ];
    if let Some(now) = ages {
        cells.push(crate::time::age(&node.created, now));
    }
    cells.push(state.message.clone());
    table.line(cells);
    for (place, child) in node.children.iter().enumerate() {
        let (first, more) = if place + 1 == node.children.len() {
            ("└─", "  ")
        } else {
            ("├─", "│ ")
        };
        branch(
            table,
            child,
            &format!("{rest}{first}"),
            &format!("{rest}{more}"),
            ages,
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn application() -> Value {
        json!({"status": {
            "resources": [
                {"version": "v1", "kind": "Service", "namespace": "web", "name": "front", "status": "Synced",
                 "health": {"status": "Healthy"}},
                {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "web", "name": "front",
                 "status": "OutOfSync", "health": {"status": "Progressing"}, "syncWave": 2},
                {"version": "v1", "kind": "ConfigMap", "namespace": "web", "name": "extra", "status": "OutOfSync"},
            ],
            "operationState": {"syncResult": {"resources": [
                {"kind": "Job", "group": "batch", "namespace": "web", "name": "migrate", "hookType": "PreSync",
                 "hookPhase": "Succeeded", "syncPhase": "PreSync", "message": "done"},
                {"kind": "Deployment", "group": "apps", "namespace": "web", "name": "front", "status": "Synced",
                 "hookPhase": "Running", "syncPhase": "Sync", "message": "deployment.apps/front configured"},
            ]}},
        }})
    }

    #[test]
    fn the_last_operation_comes_first() {
        assert_eq!(
            table(&application()),
            "GROUP  KIND        NAMESPACE  NAME     STATUS     HEALTH       HOOK     MESSAGE\n\
             batch  Job         web        migrate  Succeeded               PreSync  done\n\
             apps   Deployment  web        front    OutOfSync  Progressing           deployment.apps/front configured\n\
             \x20      ConfigMap   web        extra    OutOfSync                        \n\
             \x20      Service     web        front    Synced     Healthy               \n"
        );
        assert_eq!(states(&application(), &[])[1].wave, 2);
    }

    #[test]
    fn nothing_becomes_empty() {
        let mut state = ResourceState {
            health: "Healthy".to_owned(),
            ..ResourceState::default()
        };
        assert!(!state.merge(&ResourceState::default()));
        assert_eq!(state.health, "Healthy");
        let newer = ResourceState {
            health: "Degraded".to_owned(),
            ..ResourceState::default()
        };
        assert!(state.merge(&newer) && !state.merge(&newer));
    }

    #[test]
    fn a_tree_has_branches() {
        let node = |kind: &str, children: Vec<Node>| Node {
            state: ResourceState {
                kind: kind.to_owned(),
                name: "a".to_owned(),
                health: "Healthy".to_owned(),
                ..Default::default()
            },
            created: "2026-11-16T09:00:00Z".to_owned(),
            children,
        };
        let roots = [
            node(
                "Deployment",
                vec![node("ReplicaSet", vec![node("Pod", vec![]), node("Pod", vec![])])],
            ),
            node("Service", vec![]),
        ];
        assert_eq!(
            tree(&roots, None),
            "KIND/NAME       STATUS  HEALTH   MESSAGE\n\
             Deployment/a            Healthy  \n\
             └─ReplicaSet/a          Healthy  \n\
             \x20 ├─Pod/a               Healthy  \n\
             \x20 └─Pod/a               Healthy  \n\
             Service/a               Healthy  \n"
        );
        let now = "2026-11-16T10:00:00Z".parse().unwrap();
        assert!(tree(&roots, Some(now)).contains("Healthy  60m  \n"));
    }
}
