//! HTTPRoutes and GRPCRoutes on one listener: they may not share a host name, and the older has it.

use std::collections::{HashMap, HashSet};

use super::attach::Place;
use crate::observed::Kind;
use crate::table::HostPattern;

/// The host names of routes that were accepted, by listener and kind. Routes come in the order of their age.
#[derive(Default)]
pub(super) struct Mixed {
    /// Whether there are both kinds: most workspaces have one.
    pub(super) needed: bool,
    held: HashMap<(Place, Kind), Hosts>,
}

impl Mixed {
    /// Takes the names for a route, unless one of the other kind has one of them.
    pub(super) fn admit(&mut self, kind: Kind, place: Place, hosts: &[HostPattern]) -> bool {
        if !self.needed {
            return true;
        }
        let other = if kind == Kind::GrpcRoute {
            Kind::HttpRoute
        } else {
            Kind::GrpcRoute
        };
        if self
            .held
            .get(&(place, other))
            .is_some_and(|known| hosts.iter().any(|host| known.meet(host)))
        {
            return false;
        }
        let known = self.held.entry((place, kind)).or_default();
        hosts.iter().for_each(|host| known.add(host));
        true
    }
}

/// Names, so that whether another meets one of them costs its labels and not their number.
#[derive(Default)]
struct Hosts {
    any: bool,
    exact: HashSet<String>,
    wildcard: HashSet<String>,
    /// Suffixes that something stands below of.
    above: HashSet<String>,
}

impl Hosts {
    fn add(&mut self, host: &HostPattern) {
        match host {
            HostPattern::Any => self.any = true,
            HostPattern::Exact(name) => {
                if self.exact.insert(name.clone()) {
                    self.above.extend(parents(name).map(str::to_owned));
                }
            }
            HostPattern::Wildcard(suffix) => {
                if self.wildcard.insert(suffix.clone()) {
                    self.above.extend(parents(suffix).map(str::to_owned));
                }
            }
        }
    }

    fn meet(&self, host: &HostPattern) -> bool {
        let covered = |name: &str| parents(name).any(|suffix| self.wildcard.contains(suffix));
        self.any
            || match host {
                HostPattern::Any => !self.exact.is_empty() || !self.wildcard.is_empty(),
                HostPattern::Exact(name) => self.exact.contains(name) || covered(name),
                HostPattern::Wildcard(suffix) => {
                    self.wildcard.contains(suffix) || covered(suffix) || self.above.contains(suffix)
                }
            }
    }
}

fn parents(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('.').map(|(at, _)| &name[at + 1..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, prop_assert_eq, prop_oneof, proptest};

    use super::Hosts;
    use crate::hostname;
    use crate::table::HostPattern;

    fn any_host() -> impl Strategy<Value = HostPattern> {
        let names = [
            "",
            "*.com",
            "a.com",
            "*.a.com",
            "b.a.com",
            "*.b.a.com",
            "c.b.a.com",
            "b.com",
            "*.b.com",
            "com",
        ];
        (0..names.len()).prop_flat_map(move |at| prop_oneof![Just(hostname::read(names[at]).unwrap())])
    }

    proptest! {
        #[test]
        fn they_meet_if_they_have_a_name_in_common(known in proptest::collection::vec(any_host(), 0..4), asked in any_host()) {
            let mut hosts = Hosts::default();
            known.iter().for_each(|host| hosts.add(host));
            let plainly = known.iter().any(|host| hostname::intersect(host, &asked).is_some());
            prop_assert_eq!(hosts.meet(&asked), plainly);
        }
    }
}
