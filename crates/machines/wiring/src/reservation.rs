//! Whose an address is.
//!
//! An address is reserved by an IPAddress object that is named by it. Names are unique in a workspace, so all of them lie in one:
//! the system's, or the only one that there is. So no two machines of whatever workspaces have the same address, with
//! however many replicas. The object's `parentRef` names the machine, an annotation its workspace, another the instance that
//! claimed it, and a third what nodes must know of a machine that runs on another: nodes see their own instances alone. What an instance says about its address itself counts only if a reservation says the same: its owner may write
//! anything there.

use std::net::Ipv4Addr;

use fairway_api::kubevirt::VIRTUAL_MACHINE;
use fairway_controller::cache::Cache;
use fairway_controller::{ObjectKey, Reach, WorkspaceId};
use kube::runtime::watcher::Config;
use serde_json::{Value, json};

use crate::kinds::{IP_ADDRESS, api_version};
use crate::view::{Seen, text};

/// The workspace whose objects are the system's own.
const SYSTEM: &str = "system:fairway";
/// Says who looks after an IPAddress; upstream's allocator leaves those of others alone.
const MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";
const MANAGER: &str = "machines.fairway.dev";
const FAMILY: &str = "ipaddress.kubernetes.io/ip-family";
/// The machine's workspace.
const WORKSPACE: &str = "fairway.dev/workspace";
/// The UID of the instance that has the address.
pub(crate) const INSTANCE: &str = "fairway.dev/instance";

/// What every node may know of the machine, while it runs.
pub(crate) const SEEN: &str = "fairway.dev/machine";

/// The workspace in which reservations are.
pub(crate) fn home(reach: &Reach) -> WorkspaceId {
    match reach {
        Reach::Every => WorkspaceId::parse(SYSTEM).unwrap_or_else(|_| WorkspaceId::root()),
        Reach::One(only) => only.clone(),
    }
}

/// Selects them.
pub(crate) fn ours() -> Config {
    Config::default().labels(&format!("{MANAGED_BY}={MANAGER}"))
}

/// Whether an address is a machine's.
pub(crate) fn is_of(
    reservations: &Cache<Option<Reservation>>,
    home: &WorkspaceId,
    address: Ipv4Addr,
    machine: &ObjectKey,
) -> bool {
    let held = reservations.get(&ObjectKey::new(home, "", &address.to_string()));
    held.is_some_and(|held| {
        held.as_ref()
            .as_ref()
            .is_some_and(|held| held.machine == *machine)
    })
}

/// What is kept of an IPAddress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reservation {
    /// Whose it is.
    pub(crate) machine: ObjectKey,
    /// Who claimed it.
    pub(crate) instance: String,
    /// Where the machine runs, and what other nodes have to know of it.
    pub(crate) seen: Option<Seen>,
}

impl Reservation {
    pub(crate) fn read(object: &Value) -> Option<Self> {
        let annotations = object.pointer("/metadata/annotations")?;
        let workspace = WorkspaceId::parse(annotations.get(WORKSPACE)?.as_str()?).ok()?;
        let parent = |field: &str| text(object, &format!("/spec/parentRef/{field}"));
        let instance = annotations.get(INSTANCE).and_then(Value::as_str);
        let seen = annotations.get(SEEN).and_then(Value::as_str);
        Some(Self {
            seen: seen.and_then(|text| serde_json::from_str(text).ok()),
            machine: ObjectKey::new(&workspace, &parent("namespace"), &parent("name")),
            instance: instance.unwrap_or_default().to_owned(),
        })
    }

    pub(crate) fn object(&self, address: Ipv4Addr) -> Value {
        // Values of labels have no colon; workspaces of users have none either.
        let label = self.machine.workspace.as_str().replace(':', ".");
        json!({
            "apiVersion": api_version(&IP_ADDRESS), "kind": IP_ADDRESS.kind,
            "metadata": {
                "name": address.to_string(),
                "labels": {MANAGED_BY: MANAGER, FAMILY: "IPv4", WORKSPACE: label},
                "annotations": {WORKSPACE: self.machine.workspace.as_str(), INSTANCE: self.instance},
            },
            "spec": {"parentRef": {
                "group": VIRTUAL_MACHINE.group, "resource": VIRTUAL_MACHINE.plural,
                "namespace": self.machine.namespace, "name": self.machine.name,
            }},
        })
    }
}
