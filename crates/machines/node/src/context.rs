//! What all machines of a host share.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::{Clients, ObjectKey, Requests};
use k8s_openapi::api::core::v1::ObjectReference;

use crate::host::{Host, Isolation, Processors};
use crate::ports::{Cables, Disks};
use crate::registry::Registry;
use crate::supervise::Fencing;
use crate::taps::DataPath;

/// What all machines of a host share.
pub(crate) struct Context {
    pub(crate) clients: Clients,
    /// The name of the Node.
    pub(crate) node: String,
    /// Where this host is reached.
    pub(crate) address: Option<IpAddr>,
    /// Which host this is: nodes that say the same see each other's files and sockets.
    pub(crate) host_id: String,
    /// Where machines live.
    pub(crate) directory: PathBuf,
    pub(crate) host: Host,
    pub(crate) cables: Arc<dyn Cables>,
    pub(crate) disks: Arc<dyn Disks>,
    pub(crate) fencing: Option<Fencing>,
    /// What carries frames between machines here.
    pub(crate) data_path: DataPath,
    /// What keeps machines in.
    pub(crate) isolation: Isolation,
    /// Which machine has which processors for itself.
    pub(crate) processors: Arc<Processors>,
    pub(crate) recorder: Recorder,
    pub(crate) registry: Arc<Registry>,
}

impl Context {
    /// The API of an instance's workspace.
    pub(crate) fn api(&self, key: &ObjectKey) -> Requests {
        Requests::new(self.clients.of(&key.workspace))
    }

    /// Writes an event about an instance.
    pub(crate) async fn tell(
        &self,
        key: &ObjectKey,
        uid: &str,
        severity: Severity,
        reason: &'static str,
        message: String,
    ) {
        let about = ObjectReference {
            api_version: Some("kubevirt.io/v1".to_owned()),
            kind: Some("VirtualMachineInstance".to_owned()),
            namespace: Some(key.namespace.clone()),
            name: Some(key.name.clone()),
            uid: Some(uid.to_owned()),
            ..ObjectReference::default()
        };
        let happening = Happening {
            severity,
            reason,
            message,
        };
        self.recorder.record(&key.workspace, &about, happening).await;
    }
}
