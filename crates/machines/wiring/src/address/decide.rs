//! What is to be done about a machine's address, one step at a time.
//!
//! An address is a machine's while an IPAddress of that name says so, which only one writer can create. The instance's annotation
//! only repeats it, so a crash between the two writes is made good by deciding again. An instance *claims* the address of its machine
//! by writing its UID on it: whoever releases the address names the version that he judged, and loses against a claim.
//!
//! A machine that has cards on other networks alone gets a reservation too, as that is where nodes learn of each other's machines; its
//! address is told to nobody, and is its own should it get such a card later.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use fairway_machines_frames::address::Cidr;
use fairway_machines_frames::allocation::addresses;

use crate::view::Instance;

/// Where addresses come from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) network: Cidr,
    pub(super) gateway: Ipv4Addr,
}

impl Range {
    /// Whether a machine may have this address.
    fn has(&self, address: Ipv4Addr) -> bool {
        self.network.contains(address)
            && address != self.gateway
            && address != self.network.first()
            && address != self.network.broadcast()
    }
}

/// What is known of a machine.
pub(super) struct Observed<'a> {
    /// What the machine is called, for the order in which addresses are tried.
    pub(super) identity: &'a str,
    /// Its instance.
    pub(super) instance: Option<&'a Instance>,
    /// Whether the VirtualMachine exists.
    pub(super) has_machine: bool,
    /// The addresses that are the machine's, and the UIDs of the instances that claimed them.
    pub(super) own: &'a BTreeMap<Ipv4Addr, String>,
    /// Whether somebody else has an address.
    pub(super) is_taken: &'a dyn Fn(Ipv4Addr) -> bool,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing.
    Done,
    /// Make an address the machine's.
    Reserve(Ipv4Addr),
    /// Write the instance's UID on the machine's address.
    Claim(Ipv4Addr),
    /// Write the address on the instance.
    Tell(Ipv4Addr),
    /// Give an address back.
    Release(Ipv4Addr),
    /// There is no address left.
    Full,
}

/// The next step.
pub(super) fn decide(range: Range, observed: &Observed<'_>) -> Step {
    let own = observed.own;
    let Some(instance) = observed.instance else {
        let release = own.keys().next().filter(|_| !observed.has_machine);
        return release.map_or(Step::Done, |address| Step::Release(*address));
    };
    if !instance.has_cards() || instance.is_final || instance.is_deleting {
        // What it has it keeps: its machine may start again.
        return Step::Done;
    }
    let told = instance.address.filter(|address| range.has(*address));
    let chosen = told
        .filter(|address| own.contains_key(address))
        .or_else(|| told.filter(|address| !(observed.is_taken)(*address)))
        .or_else(|| own.keys().copied().find(|address| range.has(*address)))
        .or_else(|| {
            addresses(range.network, range.gateway, observed.identity)
                .find(|address| !(observed.is_taken)(*address))
        });
    let Some(chosen) = chosen else {
        return Step::Full;
    };
    match own.get(&chosen) {
        None => return Step::Reserve(chosen),
        Some(claimed) if *claimed != instance.uid => return Step::Claim(chosen),
        Some(_) => {}
    }
    // A machine that is on other networks alone has no use for it: what others must know of it is written on the reservation.
    if instance.card.is_some() && instance.address != Some(chosen) {
        return Step::Tell(chosen);
    }
    let spare = own.keys().find(|address| **address != chosen);
    spare.map_or(Step::Done, |address| Step::Release(*address))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::view::{OtherCard, PodCard};

    const RANGE: Range = Range {
        network: Cidr::ALL,
        gateway: Ipv4Addr::new(10, 88, 0, 1),
    };

    fn range() -> Range {
        Range {
            network: "10.88.0.0/29".parse().unwrap(),
            ..RANGE
        }
    }

    fn ip(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 88, 0, last)
    }

    fn instance(uid: &str, address: Option<u8>) -> Instance {
        Instance {
            uid: uid.to_owned(),
            address: address.map(ip),
            card: Some(PodCard {
                name: "default".into(),
                mac: None,
                accepts: None,
                options: vec![],
            }),
            ..Instance::default()
        }
    }

    #[test]
    fn one_step_at_a_time() {
        let first = addresses(range().network, range().gateway, "m").next().unwrap();
        // Why, the instance, whether there is a machine, its addresses, those of others, what to do.
        type Case<'c> = (
            &'c str,
            Option<Instance>,
            bool,
            &'c [(u8, &'c str)],
            &'c [u8],
            Step,
        );
        let elsewhere = || Instance {
            card: None,
            cards: vec![OtherCard {
                mac: "02:00:00:00:00:01".parse().unwrap(),
                namespace: "shop".into(),
                name: "lan".into(),
            }],
            ..instance("a", None)
        };
        let cases: [Case<'_>; 20] = [
            ("nothing is there", None, false, &[], &[], Step::Done),
            (
                "on other networks alone",
                Some(elsewhere()),
                true,
                &[],
                &[],
                Step::Reserve(first),
            ),
            (
                "on other networks alone: it is not told",
                Some(elsewhere()),
                true,
                &[(3, "a")],
                &[],
                Step::Done,
            ),
            (
                "a new instance",
                Some(instance("a", None)),
                true,
                &[],
                &[],
                Step::Reserve(first),
            ),
            (
                "reserved, and then the writer died",
                Some(instance("a", None)),
                true,
                &[(3, "a")],
                &[],
                Step::Tell(ip(3)),
            ),
            (
                "all is told",
                Some(instance("a", Some(3))),
                true,
                &[(3, "a")],
                &[],
                Step::Done,
            ),
            ("stopped", None, true, &[(3, "a")], &[], Step::Done),
            (
                "started again",
                Some(instance("b", None)),
                true,
                &[(3, "a")],
                &[],
                Step::Claim(ip(3)),
            ),
            (
                "gone",
                None,
                false,
                &[(3, "a"), (4, "a")],
                &[],
                Step::Release(ip(3)),
            ),
            (
                "an instance without a machine",
                Some(instance("a", Some(3))),
                false,
                &[(3, "a")],
                &[],
                Step::Done,
            ),
            (
                "two writers reserved one each",
                Some(instance("a", Some(4))),
                true,
                &[(3, "a"), (4, "a")],
                &[],
                Step::Release(ip(3)),
            ),
            (
                "the same, not told yet",
                Some(instance("a", None)),
                true,
                &[(3, "a"), (4, "a")],
                &[],
                Step::Tell(ip(3)),
            ),
            (
                "told, and the reservation was lost",
                Some(instance("a", Some(3))),
                true,
                &[],
                &[],
                Step::Reserve(ip(3)),
            ),
            (
                "told, and it is somebody else's now",
                Some(instance("a", Some(3))),
                true,
                &[(4, "a")],
                &[3],
                Step::Tell(ip(4)),
            ),
            (
                "somebody wrote nonsense",
                Some(instance("a", Some(1))),
                true,
                &[(4, "a")],
                &[],
                Step::Tell(ip(4)),
            ),
            (
                "all are taken",
                Some(instance("a", None)),
                true,
                &[],
                &[2, 3, 4, 5, 6],
                Step::Full,
            ),
            (
                "one is left",
                Some(instance("a", None)),
                true,
                &[],
                &[2, 3, 5, 6],
                Step::Reserve(ip(4)),
            ),
            (
                "no card on that network",
                Some(Instance {
                    card: None,
                    ..instance("a", None)
                }),
                true,
                &[],
                &[],
                Step::Done,
            ),
            (
                "it has ended",
                Some(Instance {
                    is_final: true,
                    ..instance("a", None)
                }),
                true,
                &[],
                &[],
                Step::Done,
            ),
            (
                "it ends",
                Some(Instance {
                    is_deleting: true,
                    ..instance("a", Some(3))
                }),
                true,
                &[(3, "a")],
                &[],
                Step::Done,
            ),
        ];
        for (why, instance, has_machine, own, taken, expected) in cases {
            let own: BTreeMap<_, _> = own
                .iter()
                .map(|(last, uid)| (ip(*last), (*uid).to_owned()))
                .collect();
            let found = decide(
                range(),
                &Observed {
                    identity: "m",
                    instance: instance.as_ref(),
                    has_machine,
                    own: &own,
                    is_taken: &|address| taken.iter().any(|last| ip(*last) == address),
                },
            );
            assert_eq!(found, expected, "{why}");
        }
    }

    /// A store with the API's promises, and writers that may stop anywhere.
    #[derive(Clone, Default)]
    struct Store {
        /// Address to machine, claim and version.
        reservations: BTreeMap<Ipv4Addr, (usize, String, u32)>,
        /// Of each machine: its instance.
        instances: Vec<Option<Instance>>,
        clock: u32,
    }

    impl Store {
        fn own(&self, machine: usize) -> BTreeMap<Ipv4Addr, String> {
            let own = self.reservations.iter().filter(|(_, held)| held.0 == machine);
            own.map(|(address, held)| (*address, held.1.clone())).collect()
        }

        /// One writer's view of a machine, taken earlier than what it then does.
        fn observe(&self, machine: usize) -> (Store, Step) {
            let own = self.own(machine);
            let step = decide(
                range(),
                &Observed {
                    identity: &machine.to_string(),
                    instance: self.instances[machine].as_ref(),
                    has_machine: false,
                    own: &own,
                    is_taken: &|address| {
                        self.reservations
                            .get(&address)
                            .is_some_and(|held| held.0 != machine)
                    },
                },
            );
            (self.clone(), step)
        }

        /// Carries out what was decided on an older state, with the API's conditions.
        fn act(&mut self, machine: usize, seen: &Store, step: Step) {
            self.clock += 1;
            let version = self.clock;
            let uid = seen.instances[machine]
                .as_ref()
                .map(|it| it.uid.clone())
                .unwrap_or_default();
            let is_as_seen = |address| self.reservations.get(&address) == seen.reservations.get(&address);
            match step {
                Step::Done | Step::Full => {}
                Step::Reserve(address) => {
                    self.reservations
                        .entry(address)
                        .or_insert((machine, uid, version));
                }
                Step::Claim(address) if is_as_seen(address) => {
                    self.reservations.insert(address, (machine, uid, version));
                }
                Step::Release(address) if is_as_seen(address) => {
                    self.reservations.remove(&address);
                }
                Step::Tell(address) if self.instances[machine] == seen.instances[machine] => {
                    if let Some(instance) = &mut self.instances[machine] {
                        instance.address = Some(address);
                    }
                }
                Step::Claim(_) | Step::Release(_) | Step::Tell(_) => {}
            }
        }
    }

    /// A number that looks random and is the same in every run.
    fn next(seed: &mut u64) -> usize {
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(*seed >> 33).unwrap()
    }

    #[test]
    fn writers_that_race_never_give_one_address_twice() {
        for run in 0..500_u64 {
            let mut seed = run;
            let mut store = Store {
                instances: vec![None; 4],
                ..Store::default()
            };
            // Three writers, each with something in mind that it saw earlier.
            let mut minds: Vec<Option<(usize, Store, Step)>> = vec![None, None, None];
            let mut uids = 0;
            let mut claimed: BTreeMap<Ipv4Addr, usize> = BTreeMap::new();
            for _ in 0..200 {
                let writer = next(&mut seed) % 4;
                let machine = next(&mut seed) % 4;
                if writer == 3 {
                    // A user starts or deletes a machine.
                    store.instances[machine] = match store.instances[machine] {
                        Some(_) if next(&mut seed).is_multiple_of(3) => None,
                        Some(_) => continue,
                        None => {
                            uids += 1;
                            Some(instance(&uids.to_string(), None))
                        }
                    };
                    continue;
                }
                match minds[writer].take() {
                    Some((machine, seen, step)) if !next(&mut seed).is_multiple_of(5) => {
                        store.act(machine, &seen, step);
                    }
                    _ => {
                        let (seen, step) = store.observe(machine);
                        minds[writer] = Some((machine, seen, step));
                    }
                }
                let told: Vec<_> = store
                    .instances
                    .iter()
                    .flatten()
                    .filter_map(|it| it.address)
                    .collect();
                let distinct: BTreeSet<_> = told.iter().collect();
                assert_eq!(told.len(), distinct.len(), "run {run}: {told:?}");
                for (machine, instance) in store.instances.iter().enumerate() {
                    if let Some(address) = instance.as_ref().and_then(|it| it.address) {
                        claimed.insert(address, machine);
                        assert_eq!(
                            store.reservations.get(&address).map(|held| held.0),
                            Some(machine),
                            "run {run}: {address} is told and not reserved"
                        );
                    }
                }
            }
            // Left alone, one writer brings everything into order.
            for machine in (0..4).cycle().take(400) {
                let (seen, step) = store.observe(machine);
                store.act(machine, &seen, step);
            }
            for machine in 0..4 {
                let own = store.own(machine);
                match &store.instances[machine] {
                    Some(instance) => {
                        assert_eq!(own.keys().next().copied(), instance.address, "run {run}");
                        assert_eq!(own.len(), 1, "run {run}");
                    }
                    None => assert!(own.is_empty(), "run {run}"),
                }
            }
        }
    }
}
