//! Where is listened, of what was asked for. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use fairway_gateway_routes::settings::Binding;

use crate::plane::{Acknowledged, NotBound};

/// By the address and port that was asked for.
pub(crate) type Bindings = BTreeMap<SocketAddr, Binding>;

/// Ports that need a privilege, and those that stand in for them.
const INSTEAD: [(u16, u16); 2] = [(80, 8080), (443, 8443)];

/// The port that stands in for one that needs a privilege.
pub fn instead(port: u16) -> Option<u16> {
    let found = INSTEAD.iter().find(|(asked, _)| *asked == port);
    found.map(|(_, instead)| *instead)
}

/// What is known of each address and port that is `wanted`, after the data plane has answered about the `doors` of a table.
/// What is no longer wanted is forgotten.
pub(crate) fn after(
    before: &Bindings,
    wanted: &BTreeSet<SocketAddr>,
    doors: &BTreeSet<SocketAddr>,
    answer: &Acknowledged,
) -> Bindings {
    let known = |asked: &SocketAddr| {
        let port = match before.get(asked) {
            // What failed is told until it is tried again.
            Some(failed @ Binding::Failed(_)) if !doors.contains(asked) => return failed.clone(),
            Some(Binding::Port(port)) => *port,
            Some(Binding::Failed(_)) | None => asked.port(),
        };
        let door = SocketAddr::new(asked.ip(), port);
        outcome(*asked, door, answer.closed.get(&door))
    };
    wanted.iter().map(|asked| (*asked, known(asked))).collect()
}

fn outcome(asked: SocketAddr, door: SocketAddr, closed: Option<&NotBound>) -> Binding {
    let Some(closed) = closed else {
        return Binding::Port(door.port());
    };
    match instead(asked.port()) {
        Some(port) if closed.needs_privilege && door == asked => Binding::Port(port),
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
            Option<Binding>,
            u16,
            &'c [u16],
            &'c [(u16, bool)],
            Binding,
        );
        let failed = || Binding::Failed("no".to_owned());
        let port = Binding::Port;
        let cases: &[Case<'_>] = &[
            ("it listens", None, 80, &[80], &[], port(80)),
            (
                "a privilege is missing: the other port is tried",
                None,
                80,
                &[80],
                &[(80, true)],
                port(8080),
            ),
            (
                "the other port listens",
                Some(port(8080)),
                80,
                &[8080],
                &[],
                port(8080),
            ),
            (
                "the other port is taken",
                Some(port(8080)),
                80,
                &[8080],
                &[(8080, false)],
                failed(),
            ),
            (
                "there is no other port for 81",
                None,
                81,
                &[81],
                &[(81, true)],
                failed(),
            ),
            (
                "taken by somebody else: another port would surprise",
                None,
                80,
                &[80],
                &[(80, false)],
                failed(),
            ),
            (
                "what failed is told until it is tried again",
                Some(failed()),
                80,
                &[],
                &[],
                failed(),
            ),
            ("it was tried again", Some(failed()), 80, &[80], &[], port(80)),
        ];
        for (reason, before, asked, doors, closed, expected) in cases {
            let before: Bindings = before.iter().map(|it| (at(*asked), it.clone())).collect();
            let doors = doors.iter().map(|port| at(*port)).collect();
            let closed = closed
                .iter()
                .map(|(port, privilege)| (at(*port), refused(*privilege)));
            let answer = Acknowledged {
                closed: closed.collect(),
            };
            let found = after(&before, &[at(*asked)].into(), &doors, &answer);
            assert_eq!(found, [(at(*asked), expected.clone())].into(), "{reason}");
        }
        let before = [(at(80), Binding::Port(80))].into();
        let found = after(
            &before,
            &BTreeSet::new(),
            &BTreeSet::new(),
            &Acknowledged::default(),
        );
        assert!(found.is_empty(), "what is not wanted any more is forgotten");
    }
}
