//! WorkspaceTypes say where their initializers and terminators find the workspaces that wait for them.

use std::sync::Arc;

use fairway_controller::Requests;
use fairway_controller::{Clients, Controller, Failure, Manager, ObjectKey, Outcome, Queue, Reconcile};
use fairway_kernel_tenancy::lifecycle::type_status;

use super::paths::TYPES;
use crate::{now, users};

struct Types {
    clients: Clients,
    url: Arc<str>,
}

pub(super) fn register(manager: &mut Manager, types: Queue<ObjectKey>, url: &str) {
    let reconciler = Types {
        clients: manager.clients(users::WORKSPACE_CONTROLLER),
        url: url.into(),
    };
    let controller = Controller::new("workspace-type", types, reconciler).workers(1);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

impl Reconcile<ObjectKey> for Types {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let here = Requests::new(self.clients.of(&key.workspace));
        let path = format!("{TYPES}/{}", key.name);
        let Some(object) = here.get(&path).await? else {
            return Ok(Outcome::Done);
        };
        if let Some(status) = type_status(&object, &self.url, &now()) {
            here.replace_status(&path, &object, &status).await?;
        }
        Ok(Outcome::Done)
    }
}
