//! Who had what when a build ended.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use crate::build::gateways::Class;
use crate::table::HostPattern;

/// The workspaces that have names at doors. The next build is given it, so that nobody loses a name to an object that is older and
/// asks later. Without it age decides; whoever wants to keep it over a restart writes [`Holders::list`] down.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holders(pub(super) BTreeMap<SocketAddr, Names>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) class: Class,
    /// Within a workspace age decides, so which object it was does not matter.
    pub(super) workspaces: HashMap<HostPattern, String>,
}

/// One name that a workspace has at a door.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holding {
    pub door: SocketAddr,
    /// `http`, `tls`, `tcp`: what the door is for.
    pub class: &'static str,
    pub host: HostPattern,
    pub workspace: String,
}

const CLASSES: [(Class, &str); 3] = [(Class::Http, "http"), (Class::Tls, "tls"), (Class::Tcp, "tcp")];

impl Holding {
    /// Reads what a door is for.
    pub fn class(text: &str) -> Option<&'static str> {
        let found = CLASSES.iter().find(|(_, name)| *name == text);
        found.map(|(_, name)| *name)
    }
}

impl Holders {
    /// All of it, in no order.
    pub fn list(&self) -> impl Iterator<Item = Holding> {
        self.0.iter().flat_map(|(door, names)| {
            let class = CLASSES.iter().find(|(class, _)| *class == names.class);
            let class = class.map_or("", |(_, name)| *name);
            names.workspaces.iter().map(move |(host, workspace)| Holding {
                door: *door,
                class,
                host: host.clone(),
                workspace: workspace.clone(),
            })
        })
    }

    /// What was written down. Of two at one door that exclude each other the first counts.
    pub fn restore(holdings: impl IntoIterator<Item = Holding>) -> Self {
        let mut doors: BTreeMap<SocketAddr, Names> = BTreeMap::new();
        for holding in holdings {
            let class = CLASSES.iter().find(|(_, name)| *name == holding.class);
            let Some((class, _)) = class else { continue };
            let names = doors.entry(holding.door).or_insert_with(|| Names {
                class: *class,
                workspaces: HashMap::new(),
            });
            if names.class == *class {
                names.workspaces.entry(holding.host).or_insert(holding.workspace);
            }
        }
        Self(doors)
    }

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
