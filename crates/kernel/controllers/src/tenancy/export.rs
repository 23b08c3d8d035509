//! APIExports get an identity and an APIExportEndpointSlice, and slices lead to the consumers.

use std::sync::Arc;

use fairway_controller::requests::{Requests, version};
use fairway_controller::{Clients, Controller, Failure, Manager, ObjectKey, Outcome, Queue, Reconcile};
use fairway_kernel_tenancy::ClusterId;
use fairway_kernel_tenancy::export::{ApiExport, Observed, decide, slice_status};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};

use super::UNTIL_SYNCED;
use super::apis::Apis;
use super::paths::{EXPORTS, SLICES};
use super::tree::Tree;
use crate::{now, users};

struct Exports {
    clients: Clients,
}

struct Slices {
    clients: Clients,
    tree: Tree,
    apis: Apis,
    url: Arc<str>,
}

pub(super) fn register(
    manager: &mut Manager,
    exports: Queue<ObjectKey>,
    slices: Queue<ObjectKey>,
    tree: &Tree,
    apis: &Apis,
    url: &str,
) {
    let clients = manager.clients(users::API_EXPORT_CONTROLLER);
    let reconciler = Exports {
        clients: clients.clone(),
    };
    let controller = Controller::new("api-export", exports, reconciler).workers(2);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
    let reconciler = Slices {
        clients,
        tree: tree.clone(),
        apis: apis.clone(),
        url: url.into(),
    };
    let controller = Controller::new("api-export-endpoint-slice", slices, reconciler).workers(2);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

impl Reconcile<ObjectKey> for Exports {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let here = Requests::new(self.clients.of(&key.workspace));
        let path = format!("{EXPORTS}/{}", key.name);
        let Some(mut object) = here.get(&path).await? else {
            return Ok(Outcome::Done);
        };
        let export = ApiExport::read(&object);
        if export.meta.is_deleting() {
            return Ok(Outcome::Done);
        }
        let (namespace, name) = export.secret();
        let secrets = format!("/api/v1/namespaces/{namespace}/secrets");
        let secret = here.get(&format!("{secrets}/{name}")).await?;
        let has_slice = here.get(&format!("{SLICES}/{}", key.name)).await?.is_some();
        let mut fresh = [0; 32];
        SystemRandom::new()
            .fill(&mut fresh)
            .map_err(|_| Failure::NotYet("the system gives no random bytes for a new identity".to_owned()))?;
        let plan = decide(&Observed {
            export: &export,
            secret: secret.as_ref(),
            has_slice,
            fresh: &fresh,
            now: &now(),
        });
        if let Some(secret) = plan.create_secret {
            let home = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            if here
                .get(&format!("/api/v1/namespaces/{namespace}"))
                .await?
                .is_none()
            {
                here.create("/api/v1/namespaces", &home).await?;
            }
            if !here.create(&secrets, &secret).await? {
                // Somebody else's key is the identity, then.
                return Ok(Outcome::Again(UNTIL_SYNCED));
            }
        }
        if let Some(reference) = plan.secret_ref {
            let patch = json!({
                "metadata": {"resourceVersion": version(&object)},
                "spec": {"identity": {"secretRef": reference}},
            });
            match here.merge(&path, &patch).await? {
                Some(written) => object = written,
                None => return Ok(Outcome::Done),
            }
        }
        if let Some(status) = plan.status {
            here.replace_status(&path, &object, &status).await?;
        }
        if let Some(slice) = plan.create_slice {
            here.create(SLICES, &slice).await?;
        }
        Ok(Outcome::Done)
    }
}

impl Reconcile<ObjectKey> for Slices {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        if !self.tree.is_synced() || !self.apis.is_synced() {
            return Ok(Outcome::Again(UNTIL_SYNCED));
        }
        let here = Requests::new(self.clients.of(&key.workspace));
        let path = format!("{SLICES}/{}", key.name);
        let Some(slice) = here.get(&path).await? else {
            return Ok(Outcome::Done);
        };
        let reference = |field: &str| {
            let text = slice
                .pointer(&format!("/spec/export/{field}"))
                .and_then(Value::as_str);
            text.unwrap_or_default()
        };
        let export_key = self
            .tree
            .resolve_from(&key.workspace, reference("path"))
            .map(|at| ObjectKey::new(&at, "", reference("name")));
        let export = export_key
            .as_ref()
            .and_then(|key| Some((self.apis.exports.get(key)?, key)));
        let cluster = export
            .as_ref()
            .and_then(|(_, key)| ClusterId::parse(key.workspace.as_str()).ok());
        let found = export.as_ref().zip(cluster.as_ref());
        let consumed = export_key
            .as_ref()
            .is_some_and(|key| self.apis.has_consumers(key));
        let found = found.map(|((export, _), cluster)| (export.as_ref(), cluster));
        if let Some(status) = slice_status(&slice, found, consumed, &self.url, &now()) {
            here.replace_status(&path, &slice, &status).await?;
        }
        Ok(Outcome::Done)
    }
}
