//! What is taken at each door, and by whom.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::build::Fault;
use crate::build::gateways::Class;
use crate::hostname;
use crate::settings::Settings;
use crate::table::HostPattern;

/// Who holds a name at a door.
#[derive(Clone)]
pub(super) struct Owner {
    pub(super) workspace: String,
    /// Routes of one namespace share a host.
    pub(super) shares: Option<String>,
    pub(super) who: String,
}

impl Owner {
    /// What is in another workspace has no name outside it.
    fn told_to(&self, workspace: &str) -> String {
        if self.workspace == workspace {
            format!("{}, which is older,", self.who)
        } else {
            "an object of another workspace, which was first,".to_owned()
        }
    }
}

#[derive(Default)]
struct Door {
    class: Option<Class>,
    /// By [`key`], so that all names below one stand together.
    names: BTreeMap<String, (HostPattern, Owner)>,
}

/// `*.example.com` becomes `moc.elpmaxe.*`.
fn key(host: &HostPattern) -> String {
    hostname::show(host).chars().rev().collect()
}

pub(super) struct Doors<'a> {
    settings: &'a Settings,
    doors: BTreeMap<SocketAddr, Door>,
}

impl<'a> Doors<'a> {
    pub(super) fn new(settings: &'a Settings) -> Self {
        Self {
            settings,
            doors: BTreeMap::new(),
        }
    }

    /// Why it cannot be had, without taking it.
    pub(super) fn denied(
        &self,
        door: SocketAddr,
        wanted: Class,
        host: &HostPattern,
        by: &Owner,
    ) -> Option<Fault> {
        let held = self.doors.get(&door)?;
        if held
            .class
            .is_some_and(|class| class != wanted || class == Class::Tcp)
        {
            let mut holders = held.names.values();
            let holder = holders.next().map(|(_, owner)| owner.told_to(&by.workspace));
            let message = format!("{} has {door} for another protocol", holder.unwrap_or_default());
            return Some(Fault::new("ProtocolConflict", message));
        }
        let (name, owner) = held.same(host, by).or_else(|| self.overlapping(held, host, by))?;
        let name = match hostname::show(name).as_str() {
            "" => "requests for any host".to_owned(),
            // Which one it is, is the other workspace's own business.
            _ if name != host => format!("a name that overlaps with {}", hostname::show(host)),
            name => format!("host name {name}"),
        };
        let message = format!("{} has {name} at {door}", owner.told_to(&by.workspace));
        Some(Fault::new("HostnameConflict", message))
    }

    /// What another workspace has that would take requests from this name, or lose some to it. Within a workspace the more specific
    /// name takes them, as everybody there may know; a listener without a name has what nobody else has.
    fn overlapping<'d>(
        &self,
        held: &'d Door,
        host: &HostPattern,
        by: &Owner,
    ) -> Option<(&'d HostPattern, &'d Owner)> {
        let foreign = |(name, owner): &(&HostPattern, &Owner)| {
            owner.workspace != by.workspace
                && !self.is_open((name, &owner.workspace), host)
                && !self.is_open((host, &by.workspace), name)
        };
        held.above(host)
            .find(foreign)
            .or_else(|| held.below(host).find(foreign))
    }

    /// Names below the platform's domain are for everybody, also if the operator's own listener has what is left of them.
    fn is_open(&self, (outer, workspace): (&HostPattern, &str), inner: &HostPattern) -> bool {
        let domain = HostPattern::Wildcard(self.settings.router.domain.clone());
        workspace == self.settings.operator
            && hostname::covers(outer, &domain)
            && hostname::covers(&domain, inner)
    }

    pub(super) fn take(&mut self, door: SocketAddr, wanted: Class, host: &HostPattern, by: &Owner) {
        let held = self.doors.entry(door).or_default();
        held.class = Some(wanted);
        let entry = held.names.entry(key(host));
        entry.or_insert_with(|| (host.clone(), by.clone()));
    }
}

impl Door {
    fn get(&self, host: &HostPattern) -> Option<(&HostPattern, &Owner)> {
        self.names.get(&key(host)).map(|(name, owner)| (name, owner))
    }

    /// Who has just this name, unless it is shared.
    fn same(&self, host: &HostPattern, by: &Owner) -> Option<(&HostPattern, &Owner)> {
        self.get(host).filter(|(_, owner)| {
            let shared = owner.shares.is_some() && owner.shares == by.shares;
            !(shared && owner.workspace == by.workspace)
        })
    }

    /// Wildcards that cover the name.
    fn above(&self, host: &HostPattern) -> impl Iterator<Item = (&HostPattern, &Owner)> {
        let text = match host {
            HostPattern::Exact(name) | HostPattern::Wildcard(name) => name.as_str(),
            HostPattern::Any => "",
        };
        let suffixes = text.match_indices('.').filter_map(|(at, _)| text.get(at + 1..));
        let wildcards: Vec<HostPattern> = suffixes
            .map(|suffix| HostPattern::Wildcard(suffix.to_owned()))
            .collect();
        wildcards.into_iter().filter_map(|wildcard| self.get(&wildcard))
    }

    /// Names that the wildcard covers.
    fn below(&self, host: &HostPattern) -> impl Iterator<Item = (&HostPattern, &Owner)> {
        let prefix = match host {
            HostPattern::Wildcard(_) => key(host).strip_suffix('*').map(str::to_owned),
            HostPattern::Exact(_) | HostPattern::Any => None,
        };
        let found = prefix.map(|prefix| {
            let from = self.names.range(prefix.clone()..);
            from.take_while(move |(key, _)| key.starts_with(&prefix))
                .map(|(_, (name, owner))| (name, owner))
        });
        found.into_iter().flatten()
    }
}
