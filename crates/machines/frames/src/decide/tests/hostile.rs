//! Whatever a guest sends, it ends with a verdict, within bounds, and never at another tenant's port.

use proptest::prelude::*;

use super::*;
use crate::segment;

/// Whether a verdict keeps the bank's frames at the bank.
fn stays_at_the_bank(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Forward(to) => *to == port(5),
        Verdict::Flood(_) | Verdict::Announce | Verdict::Tunnel(..) | Verdict::Landed(_) => false,
        Verdict::Answer(frame) | Verdict::Refuse(frame, _) => {
            frame[..6] == mac(5).0 || frame[..6] == [0xff; 6]
        }
        Verdict::Gateway(_) | Verdict::Drop(_) => true,
    }
}

fn frames() -> impl Strategy<Value = Vec<u8>> {
    let valid = (any::<u8>(), any::<u16>(), any::<u16>(), any::<u8>(), 0_u8..4).prop_map(
        |(to, sport, dport, flags, kind)| {
            let to = match to % 8 {
                0 => GATEWAY,
                1 => VIP,
                2 => OUT,
                3 => Ipv4Addr::BROADCAST,
                number => ip(number - 2),
            };
            match kind {
                0 => tcp(route(5, to), sport, dport, flags),
                1 => build::udp(route(5, to), sport, dport, b"payload"),
                2 => ping(route(5, to), flags, 1),
                _ => build::arp_reply(mac(5), ip(5), Mac::BROADCAST, to),
            }
        },
    );
    let noise = prop::collection::vec(any::<u8>(), 0..80);
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    let mutated = (valid, changes, 0_usize..30).prop_map(|(mut frame, changes, cut)| {
        for (at, byte) in changes {
            // Behind the sender's card, so that more than the first check is met.
            let at = 12 + at.index(frame.len() - 12);
            frame[at] = byte;
        }
        frame.truncate(frame.len() - cut.min(frame.len()));
        frame
    });
    prop_oneof![4 => mutated, 1 => noise]
}

/// What another node sends: mostly in the name of some machine, wherever that is.
fn of_a_node() -> impl Strategy<Value = Vec<u8>> {
    (2_u8..8, frames()).prop_map(|(from, mut frame)| {
        if let Some(source) = frame.get_mut(26..30) {
            source.copy_from_slice(&ip(from).octets());
        }
        frame
    })
}

/// The same on segments: with some tag, in the name of some card.
fn of_a_node_on_segments() -> impl Strategy<Value = Vec<u8>> {
    (0_u8..4, 18_u8..26, any::<bool>(), frames()).prop_map(|(of, from, is_cut, mut frame)| {
        if let Some(source) = frame.get_mut(6..12) {
            source.copy_from_slice(&mac(from).0);
        }
        let mut tagged = segment::tag(&frame, segment(of));
        if is_cut {
            tagged.truncate(tagged.len() / 2);
        }
        tagged
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_that_a_node_sends_lands_on_segments_that_it_is_not_on(sent in prop::collection::vec(of_a_node_on_segments(), 1..40)) {
        const LINK: u8 = 90;
        let mut plan = plan();
        plan.peers = vec![port(LINK)];
        // The first segment goes on behind the link, at card 22; the second is this node's alone.
        plan.cards = vec![card(20, 1, &[20]), card(22, 1, &[LINK]), card(21, 2, &[21])];
        let mut switch = switch(plan);
        for mut frame in sent {
            let (from, length) = (frame.get(6..12).map(<[u8]>::to_vec), frame.len());
            match switch.decide(port(LINK), &mut frame, 0) {
                Verdict::Drop(_) => {}
                Verdict::Landed(landing) => {
                    prop_assert!(matches!(landing, Landing::Port(to) if to == port(20)) || landing == Landing::All(segment(1)));
                    prop_assert_eq!(from, Some(mac(22).0.to_vec()));
                    prop_assert!(length >= segment::TAG + ETHERNET_HEADER);
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn nothing_that_a_node_sends_is_in_the_name_of_others(sent in prop::collection::vec(of_a_node(), 1..40)) {
        const LINK: u8 = 90;
        let mut plan = plan();
        plan.peers = vec![port(LINK)];
        // Machines 4, of the shop, and 5, of the bank, are behind the link.
        plan.guests[2].ports = vec![port(LINK)];
        plan.guests[3].ports = vec![port(LINK)];
        let bounds = Bounds { total: 16, per_guest: 8 };
        let mut switch = Switch::new(Arc::new(Topology::new(1, plan).unwrap()), bounds);
        for (step, mut frame) in (0..).zip(sent) {
            let from = Ipv4::read(&frame).map(|packet| packet.src);
            match switch.decide(port(LINK), &mut frame, step * 1000) {
                Verdict::Drop(_) => {}
                Verdict::Forward(to) => {
                    prop_assert!(to == port(2) || to == port(3), "{:?}", to);
                    prop_assert_eq!(from, Ok(ip(4)));
                }
                other => prop_assert!(false, "{:?}", other),
            }
            prop_assert!(switch.connections() <= 8);
        }
    }

    #[test]
    fn nothing_that_a_guest_sends_reaches_another_tenant(sent in prop::collection::vec(frames(), 1..40)) {
        let bounds = Bounds { total: 16, per_guest: 8 };
        let mut switch = Switch::new(Arc::new(Topology::new(1, plan()).unwrap()), bounds);
        for (step, mut frame) in (0..).zip(sent) {
            let length = frame.len();
            let verdict = switch.decide(port(5), &mut frame, step * 1000);
            prop_assert!(stays_at_the_bank(&verdict), "{:?}", verdict);
            prop_assert_eq!(frame.len(), length);
            prop_assert!(switch.connections() <= 8);
        }
    }
}
