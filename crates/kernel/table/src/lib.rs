//! kubectl's columns for built-in kinds and custom resources.
//!
//! A server that is asked for a `Table` answers with [`columns`] once and a [`row`] for each object. Both are
//! functions of the resource, the object and the time. Cells are those of `-o wide`; clients drop the columns of
//! priority 1 themselves. Kinds without columns of their own show their name and creation time; custom resources
//! show what their definition asks for ([`CustomColumns`]).
//!
//! The crate must not know how tables are requested or sent, and evaluates no JSONPath: its caller does.

mod access;
mod admission;
mod autoscaling;
mod cluster;
mod column;
mod custom;
mod devices;
mod duration;
mod events;
mod field;
mod flow;
mod network;
mod nodes;
mod pods;
mod selector;
mod storage;
mod workloads;

use serde_json::{Value, json};

pub use column::Column;
pub use custom::{CustomColumn, CustomColumns};
pub use duration::human_duration;

use column::NAME;
use field::text;

/// How objects of one resource are shown.
pub(crate) struct Printer {
    pub(crate) columns: &'static [Column],
    /// One cell for each column, given the object and the Unix time.
    pub(crate) cells: fn(&Value, i64) -> Vec<Value>,
}

/// The columns of a resource. Every version of a resource has the same.
pub fn columns(group: &str, _version: &str, resource: &str) -> &'static [Column] {
    printer(group, resource).columns
}

/// The cells of an object, one for each of its [`columns`], at the Unix time `now`.
pub fn row(group: &str, resource: &str, object: &Value, now: i64) -> Vec<Value> {
    (printer(group, resource).cells)(object, now)
}

/// The conditions of an object's row, which tell clients of objects that are finished. Empty for most.
pub fn row_conditions(group: &str, resource: &str, object: &Value) -> Vec<Value> {
    match (group, resource) {
        ("", "pods") => pods::row_conditions(object),
        _ => Vec::new(),
    }
}

static DEFAULT: Printer = Printer {
    columns: &[
        NAME,
        Column {
            kind: "date",
            ..column::text("Created At", "The time at which the object was created")
        },
    ],
    cells: |object, _| {
        let created = match text(object, "metadata.creationTimestamp") {
            // Go prints the time zero, which an object without a time has.
            "" => "0001-01-01T00:00:00Z",
            created => created,
        };
        vec![field::name(object), json!(created)]
    },
};

fn printer(group: &str, resource: &str) -> &'static Printer {
    let found = match group {
        "" => core(resource),
        "apps" => workloads::apps(resource),
        "batch" => workloads::batch(resource),
        "policy" => workloads::policy(resource),
        "autoscaling" => autoscaling::autoscaling(resource),
        "networking.k8s.io" => network::networking(resource),
        "discovery.k8s.io" => network::discovery(resource),
        "storage.k8s.io" => storage::storage(resource),
        "rbac.authorization.k8s.io" => access::rbac(resource),
        "certificates.k8s.io" => access::certificates(resource),
        "admissionregistration.k8s.io" => admission::admission_registration(resource),
        "events.k8s.io" => events::events(resource),
        "coordination.k8s.io" => cluster::coordination(resource),
        "node.k8s.io" => cluster::node(resource),
        "scheduling.k8s.io" => cluster::scheduling(resource),
        "apiregistration.k8s.io" => cluster::api_registration(resource),
        "storagemigration.k8s.io" => cluster::storage_migration(resource),
        "internal.apiserver.k8s.io" => cluster::internal(resource),
        "flowcontrol.apiserver.k8s.io" => flow::flow_control(resource),
        "resource.k8s.io" => devices::resources(resource),
        _ => None,
    };
    found.unwrap_or(&DEFAULT)
}

fn core(resource: &str) -> Option<&'static Printer> {
    Some(match resource {
        "pods" => &pods::POD,
        "podtemplates" => &pods::POD_TEMPLATE,
        "replicationcontrollers" => &workloads::REPLICATION_CONTROLLER,
        "services" => &network::SERVICE,
        "endpoints" => &network::ENDPOINTS,
        "nodes" => &nodes::NODE,
        "events" => &events::EVENT,
        "namespaces" => &cluster::NAMESPACE,
        "secrets" => &cluster::SECRET,
        "configmaps" => &cluster::CONFIG_MAP,
        "serviceaccounts" => &cluster::NAME_AND_AGE,
        "resourcequotas" => &cluster::RESOURCE_QUOTA,
        "componentstatuses" => &cluster::COMPONENT_STATUS,
        "persistentvolumes" => &storage::PERSISTENT_VOLUME,
        "persistentvolumeclaims" => &storage::PERSISTENT_VOLUME_CLAIM,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
