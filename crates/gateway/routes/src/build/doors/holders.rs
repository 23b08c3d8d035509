//! Who had what when a build ended.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use crate::build::gateways::Class;
use crate::table::HostPattern;

/// The workspaces that have names at doors. The next build is given it, so that nobody loses a name to an object that is older and
/// asks later. Without it, as after a start, age decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holders(pub(super) BTreeMap<SocketAddr, Names>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) class: Class,
    /// Within a workspace age decides, so which object it was does not matter.
    pub(super) workspaces: HashMap<HostPattern, String>,
}

impl Holders {
    pub(super) fn holds(&self, door: SocketAddr, class: Class, host: &HostPattern, workspace: &str) -> bool {
        self.0.get(&door).is_some_and(|names| {
            names.class == class
                && names
                    .workspaces
                    .get(host)
                    .is_some_and(|holder| holder == workspace)
        })
    }
}
