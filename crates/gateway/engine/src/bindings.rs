//! Where is listened, of what was asked for. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use fairway_gateway_routes::settings::Binding;

use crate::plane::{Acknowledged, NotBound};

/// By the address and port that was asked for.
pub(crate) type Bindings = BTreeMap<SocketAddr, Binding>;

/// Ports that need a privilege, and those that stand in for them.
const INSTEAD: [(u16, u16); 2] = [(80, 8080), (443, 8443)];

/// What is known of the doors of a table after the data plane has answered. Doors that are no longer wanted are forgotten.
pub(crate) fn after(before: &Bindings, doors: &BTreeSet<SocketAddr>, answer: &Acknowledged) -> Bindings {
    let mut found = Bindings::new();
    for door in doors {
        // A door may stand in for another one, and be asked for itself.
        let asked = before.iter().filter_map(|(asked, binding)| match binding {
            Binding::Port(port) if SocketAddr::new(asked.ip(), *port) == *door => Some(*asked),
            _ => None,
        });
        for asked in asked.chain([*door]) {
            if asked == *door && stands_in(before, *door) && !before.contains_key(door) {
                continue;
            }
            found.insert(asked, outcome(asked, *door, answer.closed.get(door)));
        }
    }
    // What failed is not among the doors of the next table, and is told until it is tried again.
    for (asked, binding) in before {
        if matches!(binding, Binding::Failed(_)) {
            found.entry(*asked).or_insert_with(|| binding.clone());
        }
    }
    found
}

/// Whether a door is there because another one needs a privilege.
fn stands_in(bindings: &Bindings, door: SocketAddr) -> bool {
    bindings.iter().any(|(asked, binding)| {
        matches!(binding, Binding::Port(port) if SocketAddr::new(asked.ip(), *port) == door && *asked != door)
    })
}

fn outcome(asked: SocketAddr, door: SocketAddr, closed: Option<&NotBound>) -> Binding {
    let Some(closed) = closed else {
        return Binding::Port(door.port());
    };
    let instead = INSTEAD.iter().find(|(port, _)| *port == asked.port());
    match instead {
        Some((_, port)) if closed.needs_privilege && door == asked => Binding::Port(*port),
        _ => Binding::Failed(closed.why.clone()),
    }
}

/// Forgets what failed, so that it is tried again. `false`: nothing did.
pub(crate) fn retry(bindings: &mut Bindings) -> bool {
    let before = bindings.len();
    bindings.retain(|_, binding| !matches!(binding, Binding::Failed(_)));
    bindings.len() != before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn refused(privilege: bool) -> NotBound {
        NotBound {
            needs_privilege: privilege,
            why: "no".to_owned(),
        }
    }

    #[test]
    fn what_follows_from_an_answer() {
        type Case<'c> = (
            &'c str,
            &'c [(u16, Binding)],
            &'c [u16],
            &'c [(u16, bool)],
            &'c [(u16, Binding)],
        );
        let failed = || Binding::Failed("no".to_owned());
        let cases: &[Case<'_>] = &[
            ("it listens", &[], &[80], &[], &[(80, Binding::Port(80))]),
            (
                "a privilege is missing: the other port is tried",
                &[],
                &[80],
                &[(80, true)],
                &[(80, Binding::Port(8080))],
            ),
            (
                "the other port listens, and nobody asked for it itself",
                &[(80, Binding::Port(8080))],
                &[8080],
                &[],
                &[(80, Binding::Port(8080))],
            ),
            (
                "the other port is taken",
                &[(80, Binding::Port(8080))],
                &[8080],
                &[(8080, false)],
                &[(80, failed())],
            ),
            (
                "there is no other port for 81",
                &[],
                &[81],
                &[(81, true)],
                &[(81, failed())],
            ),
            (
                "taken by somebody else: another port would surprise",
                &[],
                &[80],
                &[(80, false)],
                &[(80, failed())],
            ),
            (
                "what failed is told until it is tried again",
                &[(80, failed())],
                &[],
                &[],
                &[(80, failed())],
            ),
            (
                "what is not wanted any more is forgotten",
                &[(80, Binding::Port(80))],
                &[],
                &[],
                &[],
            ),
        ];
        for (reason, before, doors, closed, expected) in cases {
            let before = before.iter().map(|(port, it)| (at(*port), it.clone())).collect();
            let doors = doors.iter().map(|port| at(*port)).collect();
            let closed = closed
                .iter()
                .map(|(port, privilege)| (at(*port), refused(*privilege)));
            let answer = Acknowledged {
                closed: closed.collect(),
            };
            let expected: Bindings = expected
                .iter()
                .map(|(port, it)| (at(*port), it.clone()))
                .collect();
            assert_eq!(after(&before, &doors, &answer), expected, "{reason}");
        }
    }
}
