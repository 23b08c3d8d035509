//! The settings of machines in every workspace, as its `KubeVirt` and `HyperConverged` objects and those of the root say.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairway_api::Kind;
use fairway_api::kubevirt::{HYPER_CONVERGED, KUBE_VIRT};
use fairway_controller::{Clients, Failure, Requests, WorkspaceId};
use fairway_machines_plan::settings::{MigrationSettings, Settings, Sources};
use serde_json::Value;

use crate::objects::everywhere;

/// The settings of all workspaces, read when somebody asks and kept until they change.
pub(crate) struct SettingsOf {
    clients: Clients,
    nodes_plug: bool,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    said: HashMap<WorkspaceId, Arc<Settings>>,
    migrations: Option<Arc<MigrationSettings>>,
    /// Counts changes, so that an answer that was overtaken is not kept.
    changes: u64,
}

impl SettingsOf {
    pub(crate) fn new(clients: Clients, nodes_plug: bool) -> Self {
        Self {
            clients,
            nodes_plug,
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
            true => {
                known.said.clear();
                known.migrations = None;
            }
            false => drop(known.said.remove(workspace)),
        }
    }

    /// The settings of a workspace.
    pub(crate) async fn of(&self, workspace: &WorkspaceId) -> Result<Arc<Settings>, Failure> {
        let changes = {
            let known = self.known();
            if let Some(said) = known.said.get(workspace) {
                return Ok(Arc::clone(said));
            }
            known.changes
        };
        let platform = self.sources(&WorkspaceId::root()).await?;
        let own = match workspace.is_root() {
            true => None,
            false => Some(self.sources(workspace).await?),
        };
        let said = Settings::in_force(&platform, own.as_ref()).as_nodes_can(self.nodes_plug);
        let said = Arc::new(said);
        let mut known = self.known();
        if known.changes == changes {
            known.said.insert(workspace.clone(), Arc::clone(&said));
        }
        Ok(said)
    }

    /// How machines are moved, in all workspaces.
    pub(crate) async fn migrations(&self) -> Result<Arc<MigrationSettings>, Failure> {
        let changes = {
            let known = self.known();
            if let Some(said) = &known.migrations {
                return Ok(Arc::clone(said));
            }
            known.changes
        };
        let said = Arc::new(self.sources(&WorkspaceId::root()).await?.migrations());
        let mut known = self.known();
        if known.changes == changes {
            known.migrations = Some(Arc::clone(&said));
        }
        Ok(said)
    }

    async fn sources(&self, workspace: &WorkspaceId) -> Result<Sources, Failure> {
        let requests = Requests::new(self.clients.of(workspace));
        let kubevirts = all(&requests, &KUBE_VIRT).await?;
        let operators = all(&requests, &HYPER_CONVERGED).await?;
        Ok(Sources::of(kubevirts, operators))
    }
}

async fn all(requests: &Requests, kind: &Kind) -> Result<Vec<Value>, Failure> {
    match requests.list(&everywhere(kind)).await {
        // A cluster need not know the operator's kind.
        Err(failure) if is_unserved(&failure) => Ok(Vec::new()),
        answer => answer,
    }
}

fn is_unserved(failure: &Failure) -> bool {
    matches!(failure, Failure::Api { source, .. } if fairway_controller::error::is_not_found(source))
}
