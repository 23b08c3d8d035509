//! The settings of machines: what the `KubeVirt` and `HyperConverged` objects of a workspace say, else those of the root.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairway_api::Kind;
use fairway_api::kubevirt::{HYPER_CONVERGED, KUBE_VIRT};
use fairway_controller::{Clients, Failure, Requests, WorkspaceId};
use fairway_machines_plan::settings::Settings;
use serde_json::Value;

use crate::objects::everywhere;

/// What the settings of a workspace are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    /// Those of machines.
    pub(crate) settings: Settings,
    /// `spec.configuration` of the `KubeVirt` object, for what only some controllers ask.
    pub(crate) configuration: Value,
}

/// The settings of all workspaces, read when somebody asks and kept until they change.
pub(crate) struct SettingsOf {
    clients: Clients,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    said: HashMap<WorkspaceId, Arc<Said>>,
    /// Counts changes, so that an answer that was overtaken is not kept.
    changes: u64,
}

impl SettingsOf {
    pub(crate) fn new(clients: Clients) -> Self {
        Self {
            clients,
            known: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The settings of a workspace have changed. Those of the root count wherever there are no others.
    pub(crate) fn forget(&self, workspace: &WorkspaceId) {
        let mut known = self.known();
        known.changes += 1;
        match workspace.is_root() {
            true => known.said.clear(),
            false => drop(known.said.remove(workspace)),
        }
    }

    /// The settings of a workspace.
    pub(crate) async fn of(&self, workspace: &WorkspaceId) -> Result<Arc<Said>, Failure> {
        let changes = {
            let known = self.known();
            if let Some(said) = known.said.get(workspace) {
                return Ok(Arc::clone(said));
            }
            known.changes
        };
        let kubevirt = self.object(&KUBE_VIRT, workspace).await?;
        let operator = self.object(&HYPER_CONVERGED, workspace).await?;
        let said = Arc::new(read(kubevirt.as_ref(), operator.as_ref()));
        let mut known = self.known();
        if known.changes == changes {
            known.said.insert(workspace.clone(), Arc::clone(&said));
        }
        Ok(said)
    }

    /// The object of a kind that counts in a workspace: the first by name, its own before the root's.
    async fn object(&self, kind: &Kind, workspace: &WorkspaceId) -> Result<Option<Value>, Failure> {
        let root = WorkspaceId::root();
        let places = match workspace.is_root() {
            true => vec![workspace],
            false => vec![workspace, &root],
        };
        for place in places {
            let requests = Requests::new(self.clients.of(place));
            let mut all = match requests.list(&everywhere(kind)).await {
                Ok(all) => all,
                // A cluster need not know the operator's kind.
                Err(failure) if is_unserved(&failure) => continue,
                Err(failure) => return Err(failure),
            };
            all.sort_by_key(|it| {
                (
                    it["metadata"]["namespace"].to_string(),
                    it["metadata"]["name"].to_string(),
                )
            });
            if let Some(first) = all.into_iter().next() {
                return Ok(Some(first));
            }
        }
        Ok(None)
    }
}

fn is_unserved(failure: &Failure) -> bool {
    matches!(failure, Failure::Api { source, .. } if fairway_controller::error::is_not_found(source))
}

fn read(kubevirt: Option<&Value>, operator: Option<&Value>) -> Said {
    let mut settings = kubevirt.map(Settings::from_kubevirt).unwrap_or_default();
    if let Some(operator) = operator {
        settings = settings.with_hyperconverged(operator);
    }
    let configuration = kubevirt.map(|it| it["spec"]["configuration"].clone());
    Said {
        settings,
        configuration: configuration.unwrap_or_default(),
    }
}
