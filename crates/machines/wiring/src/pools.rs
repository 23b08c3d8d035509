//! Addresses for Services of type LoadBalancer: MetalLB's IPAddressPools where there are any, else what the operator configured.
//!
//! Pools are the operator's, so only those of the root workspace count.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use fairway_controller::dynamic::{Change, follow_all};
use fairway_controller::kinds::{GroupResource, Kind};
use fairway_controller::served::Served;
use fairway_controller::{Clients, Json, Reach, Shutdown, WorkspaceId};
use fairway_machines_frames::address::Cidr;
use kube::runtime::watcher::Event;
use serde_json::Value;

use crate::settings::Settings;
use crate::view::{flag, list, text};

const GROUP: &str = "metallb.io";
const PLURAL: &str = "ipaddresspools";

/// First and last address.
pub(crate) type Range = (Ipv4Addr, Ipv4Addr);

/// Some addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) name: String,
    pub(crate) ranges: Vec<Range>,
    /// Services that ask for no pool may have them.
    pub(crate) is_automatic: bool,
    /// Services share an address wherever their ports differ; otherwise only those that say so.
    pub(crate) is_shared: bool,
    /// Addresses that end with 0 or 255 are left out.
    pub(crate) avoids_buggy: bool,
}

impl Pool {
    fn configured(settings: &Settings) -> Self {
        Self {
            name: String::new(),
            ranges: settings.balancers.clone(),
            is_automatic: true,
            is_shared: true,
            avoids_buggy: false,
        }
    }

    fn read(object: &Value) -> Self {
        let addresses = list(object, "/spec/addresses").iter().filter_map(Value::as_str);
        Self {
            name: text(object, "/metadata/name"),
            ranges: addresses.filter_map(range).collect(),
            is_automatic: object.pointer("/spec/autoAssign").and_then(Value::as_bool) != Some(false),
            is_shared: false,
            avoids_buggy: flag(object, "/spec/avoidBuggyIPs"),
        }
    }

    /// Its addresses, in order.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> {
        let all = (self.ranges.iter()).flat_map(|(first, last)| u32::from(*first)..=u32::from(*last));
        all.map(Ipv4Addr::from)
            .filter(|address| !self.leaves_out(*address))
    }

    fn leaves_out(&self, address: Ipv4Addr) -> bool {
        self.avoids_buggy && matches!(address.octets()[3], 0 | 255)
    }

    pub(crate) fn contains(&self, address: Ipv4Addr) -> bool {
        let is_within = |(first, last): &Range| (*first..=*last).contains(&address);
        self.ranges.iter().any(is_within) && !self.leaves_out(address)
    }
}

/// `192.0.2.10-192.0.2.20` or `192.0.2.0/24`. IPv6 is not served.
fn range(text: &str) -> Option<Range> {
    if let Some((first, last)) = text.split_once('-') {
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        return (first <= last).then_some((first, last));
    }
    let network: Cidr = text.trim().parse().ok()?;
    Some((network.first(), network.broadcast()))
}

/// Pools by the watch that told of them, their namespace and name. Workspaces that define the kind themselves are watched one by one,
/// and the list of one says nothing about another's.
type Found = BTreeMap<(GroupResource, String), Pool>;

/// The pools that there are.
pub(crate) struct Pools {
    configured: Pool,
    found: Mutex<Found>,
    now: ArcSwap<Vec<Pool>>,
}

impl Pools {
    pub(crate) fn new(settings: &Settings) -> Self {
        let configured = Pool::configured(settings);
        Self {
            now: ArcSwap::from_pointee(vec![configured.clone()]),
            configured,
            found: Mutex::default(),
        }
    }

    /// All of them, in the order of names.
    pub(crate) fn all(&self) -> Arc<Vec<Pool>> {
        self.now.load_full()
    }

    fn set(&self, change: impl FnOnce(&mut Found)) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut found);
        let all: Vec<Pool> = match found.is_empty() {
            true => vec![self.configured.clone()],
            false => found.values().cloned().collect(),
        };
        self.now.store(Arc::new(all));
    }
}

/// Follows IPAddressPools, if the kind is served.
pub(crate) async fn follow(
    pools: Arc<Pools>,
    clients: Clients,
    served: Served,
    shutdown: Shutdown,
    changed: impl Fn() + Clone + Send + Sync + 'static,
) {
    let reach: Reach = clients.reach().clone();
    let is_wanted = |kind: &Kind| {
        kind.resource.group == GROUP && kind.resource.plural == PLURAL && kind.can(&["list", "watch"])
    };
    let take = move |change: Change<Json>| {
        let is_root = |object: &Json| reach.workspace_of(&object.metadata) == WorkspaceId::root();
        let key = |kind: &Kind, object: &Json| {
            let (namespace, name) = (&object.metadata.namespace, &object.metadata.name);
            let named = format!(
                "{}/{}",
                namespace.as_deref().unwrap_or_default(),
                name.as_deref().unwrap_or_default()
            );
            (kind.name(), named)
        };
        let forget = |kind: &Kind| {
            let watch = kind.name();
            pools.set(|found| found.retain(|(of, _), _| *of != watch));
        };
        match change {
            Change::Event(kind, event) => match *event {
                Event::Apply(object) | Event::InitApply(object) if is_root(&object) => {
                    pools.set(|found| drop(found.insert(key(&kind, &object), Pool::read(&object.value))));
                }
                Event::Delete(object) if is_root(&object) => {
                    pools.set(|found| drop(found.remove(&key(&kind, &object))));
                }
                // What vanished while nobody watched is not among what the list brings.
                Event::Init => forget(&kind),
                _ => {}
            },
            Change::Gone(kind) => forget(&kind),
        }
        changed();
    };
    follow_all(clients.every(), served.changes(), is_wanted, shutdown, take).await;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pool_is_its_addresses() {
        let pool = Pool::read(&json!({
            "metadata": {"name": "p"},
            "spec": {
                "addresses": ["192.0.2.254-192.0.3.1", "198.51.100.8/31", "2001:db8::/64", "192.0.2.9-192.0.2.1"],
                "autoAssign": false, "avoidBuggyIPs": true,
            },
        }));
        let all: Vec<String> = pool.addresses().map(|address| address.to_string()).collect();
        assert_eq!(all, ["192.0.2.254", "192.0.3.1", "198.51.100.8", "198.51.100.9"]);
        assert!(!pool.is_automatic && !pool.is_shared);
        for (address, expected) in [
            ("192.0.2.254", true),
            ("192.0.2.255", false),
            ("192.0.2.5", false),
        ] {
            assert_eq!(pool.contains(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn what_is_configured_counts_while_there_is_no_pool() {
        let pools = Pools::new(&Settings::default());
        let names = || -> Vec<String> { pools.all().iter().map(|pool| pool.name.clone()).collect() };
        assert_eq!(names(), [""]);
        let pool = Pool::read(&json!({"metadata": {"name": "p"}}));
        let watch: GroupResource = (GROUP.into(), PLURAL.into());
        pools.set(|found| drop(found.insert((watch, "m/p".into()), pool)));
        assert_eq!(names(), ["p"]);
        pools.set(BTreeMap::clear);
        assert_eq!(names(), [""]);
    }
}
