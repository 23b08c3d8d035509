//! Why something does not do what it is for: one chain from the form that asked for it to the gateway that publishes it.
//!
//! ```text
//! form → run → commit → render → admission → sync → scheduling → disk → boot → cloud-init → Service → gateway
//! ```
//!
//! Whoever asks collects [`Facts`]; [`report`] judges every link by them, with what it judged by, and names the first that is broken. A link
//! is broken by a fault of its own only: what waits for an earlier or a later one waits. What was not collected, because somebody may
//! not read it or nobody answers, makes a link unknown, never good and never broken.
//!
//! What is no part of that way has links of its own behind those from the form to the sync: a disk by itself, a policy, an API and a key to it.

mod cause;
mod disk;
mod gateway;
mod gitops;
mod golden_path;
mod key;
mod link;
mod machine;
mod object;
mod product;
mod show;

use std::collections::BTreeMap;

use serde_json::Value;

pub use disk::Disk;
pub use link::{Evidence, Link, State};
pub use machine::{Answer, Machine, Probe};
pub use machine::{guest_port, is_near as service_means, is_selected as service_selects};
pub use show::{described, text};

/// What was asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The kind, or `Host` for the name in an address.
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

/// What is known. Objects as they were read.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub asked: Subject,
    /// The object that was asked about, if it is there.
    pub object: Option<Value>,
    /// Kinds (plural) that could not be read, and what was answered.
    pub unreadable: BTreeMap<&'static str, String>,
    /// The run that made it, if one did.
    pub voyage: Option<Value>,
    /// The Application that keeps it, if one does.
    pub application: Option<Value>,
    /// The project of that Application, which may hold its syncs back.
    pub project: Option<Value>,
    /// An Application that should be there and is not, as `namespace/name`, and who says so.
    pub missing_application: Option<(String, String)>,
    /// The Repository that the Application reads, if Fairway hosts it.
    pub repository: Option<Value>,
    /// A Repository that should be there and is not.
    pub missing_repository: Option<String>,
    /// The machines in question.
    pub machines: Vec<Machine>,
    /// The Services in question: of the machines, of the routes, of the Application.
    pub services: Vec<Value>,
    /// EndpointSlices of their namespaces.
    pub endpoint_slices: Vec<Value>,
    /// HTTPRoutes and their siblings that lead to the Services or belong to the Application.
    pub routes: Vec<Value>,
    /// Gateways of those routes and of the Application.
    pub gateways: Vec<Value>,
    /// GatewayClasses, if they can be read.
    pub gateway_classes: Option<Vec<Value>>,
    /// Policies that target those routes and Gateways, or belong to the Application.
    pub policies: Vec<Value>,
    /// OpenShift's Routes for the same names.
    pub doors: Vec<Value>,
    /// The disk that was asked about.
    pub disk: Option<Disk>,
    /// The APIProduct that was asked about, or that a key is for.
    pub product: Option<Value>,
    /// APIKeyRequests that stand for the key.
    pub key_requests: Vec<Value>,
    /// APIKeyApprovals of those.
    pub key_approvals: Vec<Value>,
}

/// The whole chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub asked: Subject,
    pub links: Vec<Link>,
}

impl Report {
    /// The first broken link.
    pub fn broken(&self) -> Option<&Link> {
        self.links.iter().find(|it| it.state == State::Broken)
    }

    /// What the chain comes to.
    pub fn verdict(&self) -> String {
        if let Some(link) = self.broken() {
            return format!("the first broken link is {}: {}", link.name, link.finding);
        }
        let first = |state: State| self.links.iter().find(|it| it.state == state);
        if let Some(link) = first(State::Off) {
            return format!("nothing is broken: {}", link.finding);
        }
        if let Some(link) = first(State::Waiting) {
            return format!(
                "nothing is broken; {} is not done yet: {}",
                link.name, link.finding
            );
        }
        let unknown = self.links.iter().filter(|it| it.state == State::Unknown);
        let unknown: Vec<&str> = unknown.map(|it| it.name).collect();
        match unknown.as_slice() {
            [] if first(State::Good).is_none() => {
                "nothing stands behind it: no run, Application, machine or gateway has to do with it"
                    .to_owned()
            }
            [] => "every link holds".to_owned(),
            some => format!("no link is broken; not known: {}", some.join(", ")),
        }
    }
}

/// Judges one link.
type Judge = fn(&Facts) -> Link;

/// Where something comes from.
const ORIGIN: [Judge; 6] = [
    golden_path::form,
    golden_path::run,
    gitops::commit,
    gitops::render,
    gitops::admission,
    gitops::sync,
];
/// The way from a machine's node to the Service that leads to it.
const MACHINE: [Judge; 5] = [
    machine::scheduling,
    machine::disk,
    machine::boot,
    machine::cloud_init,
    machine::service,
];
const POLICIES: [&str; 5] = [
    "AuthPolicy",
    "RateLimitPolicy",
    "TLSPolicy",
    "DNSPolicy",
    "PlanPolicy",
];

/// The links behind those of the origin, each of which needs those before it.
fn behind(facts: &Facts) -> Vec<Judge> {
    match facts.asked.kind.as_str() {
        "DataVolume" | "PersistentVolumeClaim" if facts.disk.is_some() => {
            let of_disk: [Judge; 3] = [disk::source, disk::filling, disk::claim];
            let node: &[Judge] = match facts.machines.is_empty() {
                true => &[],
                false => &[machine::scheduling],
            };
            [node, &of_disk].concat()
        }
        "APIKey" => vec![
            key::request,
            key::approval,
            key::secret,
            gateway::path,
            product::product,
            product::policy,
        ],
        "APIProduct" => {
            let own: [Judge; 3] = [gateway::path, product::product, product::policy];
            [&MACHINE[..], &own].concat()
        }
        kind if POLICIES.contains(&kind) => {
            let own: [Judge; 2] = [gateway::path, gateway::policy];
            [&MACHINE[..], &own].concat()
        }
        _ => [&MACHINE[..], &[gateway::gateway]].concat(),
    }
}

/// Judges every link.
pub fn report(facts: &Facts) -> Report {
    let judges = ORIGIN.into_iter().chain(behind(facts));
    Report {
        asked: facts.asked.clone(),
        links: judges.map(|judge| judge(facts)).collect(),
    }
}

#[cfg(test)]
mod tests;
