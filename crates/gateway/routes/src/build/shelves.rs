//! What hangs on listeners, by host name, in order of precedence. What nobody changes stays the same in memory from build to build, so
//! that whoever compares tables or makes something of them need not look at it again.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::attach::Place;
use super::gateways::Plan;
use super::precedence::Rank;
use crate::observed::{HttpRoute, Kind, Object};
use crate::table::{Entry, HostPattern};

/// An entry, with what decides about its place.
#[derive(Debug)]
pub(super) struct Ranked {
    pub(super) kind: Kind,
    pub(super) route: Arc<Object<HttpRoute>>,
    /// Of the route, and the match of the rule.
    pub(super) rule: usize,
    pub(super) at: usize,
    pub(super) entry: Entry,
}

impl Ranked {
    fn rank(&self) -> Rank<'_> {
        Rank::new(
            self.kind,
            &self.entry.matches,
            &self.route.meta,
            self.rule,
            self.at,
        )
    }
}

/// The entries of one host name of one listener.
#[derive(Debug, Default)]
struct Shelf {
    ranked: Vec<Ranked>,
    /// In order; none if something was put there or taken away since.
    served: Option<Arc<Vec<Entry>>>,
}

/// By listener and host name.
#[derive(Debug, Default)]
pub(super) struct Shelves(BTreeMap<Place, BTreeMap<HostPattern, Shelf>>);

impl Shelves {
    pub(super) fn put(&mut self, place: Place, host: &HostPattern, ranked: Ranked) {
        let hosts = self.0.entry(place).or_default();
        let shelf = hosts.entry(host.clone()).or_default();
        shelf.ranked.push(ranked);
        shelf.served = None;
    }

    /// Takes away what routes had put onto these shelves.
    pub(super) fn clear<'r>(
        &mut self,
        shelves: impl IntoIterator<Item = &'r (Place, HostPattern)>,
        gone: &HashSet<*const Object<HttpRoute>>,
    ) {
        for (place, host) in shelves {
            let shelf = self.0.get_mut(place).and_then(|hosts| hosts.get_mut(host));
            // What is not served was cleared just now.
            if let Some(shelf) = shelf
                && shelf.served.take().is_some()
            {
                (shelf.ranked).retain(|ranked| !gone.contains(&Arc::as_ptr(&ranked.route)));
            }
        }
    }

    /// Puts everything in order, and hangs it onto the listeners.
    pub(super) fn onto(&mut self, plans: &mut [Plan<'_>]) {
        for ((gateway, at), hosts) in &mut self.0 {
            hosts.retain(|_, shelf| !shelf.ranked.is_empty());
            let Some(listener) = plans
                .get_mut(*gateway)
                .and_then(|plan| plan.listeners.get_mut(*at))
            else {
                continue;
            };
            for (host, shelf) in hosts {
                let Shelf { ranked, served } = shelf;
                let entries = served.get_or_insert_with(|| {
                    // Quick where all but a few are in order already.
                    ranked.sort_by(|one, two| one.rank().cmp(&two.rank()));
                    Arc::new(ranked.iter().map(|ranked| ranked.entry.clone()).collect())
                });
                listener.http.insert(host.clone(), Arc::clone(entries));
            }
        }
    }
}
