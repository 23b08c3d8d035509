//! What is taken at each door, and by whom; and what is kept for those who had it before.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use super::holders::{Holders, Names};
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
            format!("{}, which was first,", self.who)
        } else {
            "an object of another workspace, which was first,".to_owned()
        }
    }
}

#[derive(Default)]
struct Door {
    class: Option<Class>,
    /// By [`key`], so that all names below one stand together.
    names: BTreeMap<String, Held>,
    /// What the door is for as long as these workspaces have not had their turn.
    kept: Option<(Class, BTreeSet<String>)>,
}

struct Held {
    host: HostPattern,
    owner: Owner,
    /// Nobody has it yet; the owner's workspace is to have it.
    kept: bool,
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
        if let Some(holder) = held.other_class(wanted, by) {
            let holder = holder.told_to(&by.workspace);
            let message = format!("{holder} has {door} for another protocol");
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
        let key = key(host);
        if held.names.get(&key).is_none_or(|one| one.kept) {
            held.names.insert(key, Held::new(host, by, false));
        }
    }

    /// Nobody of another workspace gets it before [`Doors::release`].
    pub(super) fn keep(&mut self, door: SocketAddr, wanted: Class, host: &HostPattern, by: &Owner) {
        let held = self.doors.entry(door).or_default();
        let (_, workspaces) = held.kept.get_or_insert_with(|| (wanted, BTreeSet::new()));
        workspaces.insert(by.workspace.clone());
        held.names
            .entry(key(host))
            .or_insert_with(|| Held::new(host, by, true));
    }

    /// What was kept and not taken is free.
    pub(super) fn release(&mut self) {
        for held in self.doors.values_mut() {
            held.kept = None;
            held.names.retain(|_, one| !one.kept);
        }
    }

    pub(super) fn holders(self) -> Holders {
        let doors = self.doors.into_iter().filter_map(|(door, held)| {
            let names = held.names.into_values();
            let workspaces = names.map(|one| (one.host, one.owner.workspace)).collect();
            let class = held.class?;
            Some((door, Names { class, workspaces }))
        });
        Holders(doors.collect())
    }
}

impl Held {
    fn new(host: &HostPattern, owner: &Owner, kept: bool) -> Self {
        Self {
            host: host.clone(),
            owner: owner.clone(),
            kept,
        }
    }
}

impl Door {
    /// Somebody who has the door, or is to have it, in a way that leaves no room for this.
    fn other_class(&self, wanted: Class, by: &Owner) -> Option<&Owner> {
        let apart = |class: Class| class != wanted || class == Class::Tcp;
        if self.class.is_some_and(apart) {
            return self.names.values().find(|one| !one.kept).map(|one| &one.owner);
        }
        let (class, workspaces) = self.kept.as_ref()?;
        if !apart(*class) || workspaces.iter().all(|workspace| *workspace == by.workspace) {
            return None;
        }
        let mut kept = self.names.values().filter(|one| one.kept);
        kept.find(|one| one.owner.workspace != by.workspace)
            .map(|one| &one.owner)
    }

    fn get(&self, host: &HostPattern) -> Option<(&HostPattern, &Owner)> {
        self.names.get(&key(host)).map(|one| (&one.host, &one.owner))
    }

    /// Who has just this name, unless it is shared or kept for the one who asks.
    fn same(&self, host: &HostPattern, by: &Owner) -> Option<(&HostPattern, &Owner)> {
        let one = self.names.get(&key(host))?;
        let shared = one.owner.shares.is_some() && one.owner.shares == by.shares;
        let own = (shared || one.kept) && one.owner.workspace == by.workspace;
        (!own).then_some((&one.host, &one.owner))
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
                .map(|(_, one)| (&one.host, &one.owner))
        });
        found.into_iter().flatten()
    }
}
