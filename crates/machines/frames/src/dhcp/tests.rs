//! Conversations with clients, read back by `smoltcp`'s own reader, and messages that make no sense.

use proptest::prelude::*;
use smoltcp::wire::DhcpRepr;

use super::*;

const MAC: Mac = Mac([2, 0, 0, 0, 0, 2]);
const OWN: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 2);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 9);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);

fn lease() -> Lease {
    Lease {
        address: OWN,
        netmask: Ipv4Addr::new(255, 255, 0, 0),
        router: ROUTER,
        resolvers: vec![ROUTER],
        mtu: 1500,
        hostname: "web-1".into(),
        domain: "cluster.local".into(),
        search: vec!["shop.svc.cluster.local".into(), "svc.cluster.local".into()],
        seconds: 86_400,
        options: vec![(66, b"boot.example".to_vec()), (224, vec![])],
    }
}

/// A client's message: its type, and options.
fn message(kind: u8, client: Ipv4Addr, options: &[(u8, &[u8])]) -> Vec<u8> {
    let mut message = vec![0; MAGIC_END];
    let mut packet = DhcpPacket::new_unchecked(&mut message);
    packet.set_opcode(smoltcp::wire::DhcpOpCode::Request);
    packet.set_hardware_type(smoltcp::wire::ArpHardware::Ethernet);
    packet.set_hardware_len(6);
    packet.set_transaction_id(0x1234_5678);
    packet.set_client_hardware_address(EthernetAddress(MAC.0));
    packet.set_client_ip(client);
    packet.set_magic_number(MAGIC);
    message.extend([53, 1, kind]);
    for (kind, data) in options {
        message.extend([*kind, u8::try_from(data.len()).unwrap()]);
        message.extend(*data);
    }
    message.push(255);
    message
}

#[test]
fn a_client_gets_its_own_address_and_no_other() {
    use DhcpMessageType::{Ack, Nak, Offer};
    const NONE: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
    let (own, other, router) = (OWN.octets(), OTHER.octets(), ROUTER.octets());
    type Answered = Option<(DhcpMessageType, Ipv4Addr)>;
    let cases: Vec<(&str, Vec<u8>, Answered)> = vec![
        ("discovers", message(1, NONE, &[]), Some((Offer, OWN))),
        (
            "discovers, wishing another",
            message(1, NONE, &[(50, &other)]),
            Some((Offer, OWN)),
        ),
        (
            "selects",
            message(3, NONE, &[(50, &own), (54, &router)]),
            Some((Ack, OWN)),
        ),
        (
            "selects another server",
            message(3, NONE, &[(50, &own), (54, &other)]),
            None,
        ),
        ("comes back", message(3, NONE, &[(50, &own)]), Some((Ack, OWN))),
        (
            "comes back from elsewhere",
            message(3, NONE, &[(50, &other)]),
            Some((Nak, NONE)),
        ),
        ("renews", message(3, OWN, &[]), Some((Ack, OWN))),
        (
            "renews what is not its",
            message(3, OTHER, &[]),
            Some((Nak, NONE)),
        ),
        ("asks for settings only", message(8, OWN, &[]), Some((Ack, NONE))),
        ("releases", message(7, OWN, &[(54, &router)]), None),
        ("declines", message(4, NONE, &[(50, &own), (54, &router)]), None),
        ("sends what only servers send", message(2, NONE, &[]), None),
        ("has no type", message(1, NONE, &[])[..MAGIC_END].to_vec(), None),
    ];
    for (why, message, expected) in cases {
        let answer = answer(&message, MAC, &lease());
        let found = answer.as_ref().map(|answer| {
            let packet = DhcpPacket::new_checked(answer.message.as_slice()).unwrap();
            assert!(answer.message.len() >= LEAST, "{why}");
            assert_eq!(packet.transaction_id(), 0x1234_5678, "{why}");
            let repr = DhcpRepr::parse(&packet).unwrap();
            (repr.message_type, packet.your_ip())
        });
        assert_eq!(found, expected, "{why}");
    }
}

#[test]
fn an_offer_says_all_that_a_machine_needs() {
    let answer = answer(
        &message(1, Ipv4Addr::UNSPECIFIED, &[(61, &[1, 2, 3])]),
        MAC,
        &lease(),
    )
    .unwrap();
    assert_eq!(answer.to, OWN);
    let packet = DhcpPacket::new_checked(answer.message.as_slice()).unwrap();
    let option = |kind| {
        packet
            .options()
            .find(|option| option.kind == kind)
            .map(|option| option.data.to_vec())
    };
    for (what, kind, expected) in [
        ("netmask", 1, vec![255, 255, 0, 0]),
        ("router", 3, ROUTER.octets().to_vec()),
        ("resolver", 6, ROUTER.octets().to_vec()),
        ("hostname", HOSTNAME, b"web-1".to_vec()),
        ("domain", DOMAIN, b"shop.svc.cluster.local".to_vec()),
        ("MTU", MTU, vec![5, 220]),
        ("broadcast", BROADCAST, vec![10, 88, 255, 255]),
        ("lease", LEASE_TIME, 86_400_u32.to_be_bytes().to_vec()),
        ("server", SERVER, ROUTER.octets().to_vec()),
        ("client", CLIENT_ID, vec![1, 2, 3]),
        (
            "search",
            SEARCH,
            b"\x04shop\x03svc\x07cluster\x05local\x00\x03svc\x07cluster\x05local\x00".to_vec(),
        ),
    ] {
        assert_eq!(option(kind), Some(expected), "{what}");
    }
}

#[test]
fn whoever_asks_for_broadcasts_gets_them() {
    let mut discover = message(1, Ipv4Addr::UNSPECIFIED, &[]);
    discover[10] = 0x80;
    assert_eq!(answer(&discover, MAC, &lease()).unwrap().to, Ipv4Addr::BROADCAST);
}

#[test]
fn others_are_not_answered() {
    let own = message(1, Ipv4Addr::UNSPECIFIED, &[]);
    assert!(
        answer(&own, Mac([2, 0, 0, 0, 0, 3]), &lease()).is_none(),
        "another card's"
    );
    for (why, at, byte) in [("a reply", 0, 2), ("no magic", 236, 0), ("relayed", 24, 10)] {
        let mut message = own.clone();
        message[at] = byte;
        assert!(answer(&message, MAC, &lease()).is_none(), "{why}");
    }
}

#[test]
fn search_lists_leave_out_what_is_no_name() {
    let list = |domains: &[&str]| search_list(&domains.iter().map(|&d| d.to_owned()).collect::<Vec<_>>());
    assert_eq!(list(&["a.b."]), b"\x01a\x01b\x00");
    assert_eq!(list(&["a..b", "", &"x".repeat(64)]), b"");
    assert!(list(&vec!["abcdefgh.example.org"; 100]).len() <= 255);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_messages_are_answered_or_not(noise in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = answer(&noise, MAC, &lease());
        let mut message = message(1, Ipv4Addr::UNSPECIFIED, &[]);
        message.pop();
        message.extend(&noise);
        if let Some(answer) = answer(&message, MAC, &lease()) {
            prop_assert!(answer.message.len() <= 1472);
        }
    }
}

#[test]
fn a_guest_is_told_what_is_for_it_alone() {
    let answered = answer(&message(1, Ipv4Addr::UNSPECIFIED, &[]), MAC, &lease()).unwrap();
    let packet = DhcpPacket::new_checked(answered.message.as_slice()).unwrap();
    let option = |kind: u8| packet.options().find(|it| it.kind == kind).map(|it| it.data);
    assert_eq!(option(66), Some(b"boot.example".as_slice()));
    assert_eq!(option(224), None, "what is empty is not told");
}
