//! Batches without a guest: what is read goes to the right queues, in order, however it was cut.

use std::collections::HashMap;
use std::io::Read;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream as Plain;
use std::sync::Arc;

use fairway_dns::Server;
use fairway_machines_frames::build::{self, Route};
use fairway_machines_frames::outside::Outside;
use fairway_machines_frames::policy::Policies;
use fairway_machines_frames::topology::{Gateway, Guest, Plan, SegmentCard, SegmentId, Topology};
use fairway_machines_frames::track::Bounds;
use fairway_machines_frames::{Mac, Reason, Tenant};

use super::*;
use crate::tenants::Tenants;

fn mac(number: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, number])
}

fn ip(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 88, 0, number)
}

fn port(number: u8) -> PortId {
    PortId(u32::from(number))
}

/// The other ends of the ports' sockets.
type Ends = HashMap<u8, Plain>;

/// Guests 2, 3 and 4, cards 20, 21 and 22 of a segment, all connected.
fn core() -> (Shared, Ends) {
    let guest = |number: u8| Guest {
        tenant: Tenant(0),
        mac: mac(number),
        address: ip(number),
        ports: vec![port(number)],
        hostname: String::new(),
        search: vec![],
        resolvers: vec![],
        options: vec![],
        accepts: None,
    };
    let card = |number: u8| SegmentCard {
        segment: SegmentId([1; 16]),
        mac: mac(number),
        ports: vec![port(number)],
    };
    let plan = Plan {
        gateway: Gateway {
            mac: mac(1),
            address: ip(1),
            network: "10.88.0.0/16".parse().unwrap(),
            services: "10.96.0.0/12".parse().unwrap(),
            mtu: 1500,
            resolvers: vec![],
            domain: "cluster.local".into(),
            lease_seconds: 3600,
        },
        guests: [2, 3, 4].map(guest).into(),
        cards: [20, 21, 22].map(card).into(),
        peers: vec![],
        services: vec![],
        policies: Policies::default(),
        outside: Outside::default(),
    };
    let topology = Arc::new(Topology::new(1, plan).unwrap());
    let core = Core::new(
        topology,
        Bounds::default(),
        Arc::new(Server::new(None)),
        Arc::new(Tenants::default()),
    );
    let mut ends = Ends::new();
    for number in [2, 3, 4, 20, 21, 22] {
        let (own, end) = Plain::pair().unwrap();
        own.set_nonblocking(true).unwrap();
        end.set_nonblocking(true).unwrap();
        ends.insert(number, end);
        let socket = UnixStream::from_std(own).unwrap();
        core.borrow_mut()
            .port_mut(port(number))
            .reconnect(Some(Rc::new(Wire::Socket(socket))));
    }
    (core, ends)
}

fn framed(frame: &[u8]) -> Vec<u8> {
    let mut framed = u32::try_from(frame.len()).unwrap().to_be_bytes().to_vec();
    framed.extend(frame);
    framed
}

fn datagram(to: u8, number: u16) -> Vec<u8> {
    let route = Route::new(mac(2), mac(to), ip(2), ip(to));
    framed(&build::udp(route, number, 9, &vec![7; usize::from(number % 50)]))
}

/// What was sent to a port: what its socket has taken, and what waits behind it.
fn sent(core: &Shared, ends: &mut Ends, number: u8) -> Vec<u8> {
    let mut sent = Vec::new();
    // Ends with "would block", after everything that is there.
    let _ = ends.get_mut(&number).unwrap().read_to_end(&mut sent);
    sent.extend(core.borrow_mut().port_mut(port(number)).waiting_bytes());
    sent
}

#[tokio::test]
async fn frames_arrive_in_order_however_the_stream_was_cut() {
    for cut in [1, 3, 4, 5, 64, 500, 100_000] {
        let (core, mut ends) = core();
        let mut stream = Vec::new();
        let (mut to_3, mut to_4): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
        for number in 1..200_u16 {
            // Alone and in rows.
            let to = if number % 7 < 4 { 3 } else { 4 };
            let frame = datagram(to, number);
            stream.extend(&frame);
            if to == 3 { &mut to_3 } else { &mut to_4 }.extend(&frame);
        }
        let (mut rest, mut runs) = (Vec::new(), Vec::new());
        for piece in stream.chunks(cut) {
            rest.extend(piece);
            let used = batch(&mut core.borrow_mut(), port(2), &mut rest, &mut runs).unwrap();
            rest.drain(..used);
        }
        assert!(rest.is_empty(), "pieces of {cut}");
        assert!(
            sent(&core, &mut ends, 3) == to_3 && sent(&core, &mut ends, 4) == to_4,
            "pieces of {cut}"
        );
        let counters = core.borrow().counters();
        assert_eq!(
            (counters.frames, counters.forwarded, counters.overflowed),
            (199, 199, 0)
        );
    }
}

#[tokio::test]
async fn a_flood_reaches_every_other_card_and_the_rest_is_counted() {
    let (core, mut ends) = core();
    let mut frame = vec![0xff; 6];
    frame.extend(mac(20).0);
    frame.extend([0x12, 0x34, 1, 2, 3]);
    let mut bytes = framed(&frame);
    bytes.extend(framed(&[0; 20]));
    let used = batch(&mut core.borrow_mut(), port(20), &mut bytes, &mut Vec::new()).unwrap();
    assert_eq!(used, bytes.len());
    for number in [21, 22] {
        assert_eq!(sent(&core, &mut ends, number), framed(&frame), "{number}");
    }
    assert!(sent(&core, &mut ends, 20).is_empty());
    assert_eq!(
        core.borrow().counters().dropped.get(&Reason::SpoofedMac),
        Some(&1)
    );
}

#[tokio::test]
async fn lengths_that_no_frame_has_end_the_connection() {
    for (length, is_fine) in [
        (0_u32, false),
        (1, true),
        (69_632, true),
        (69_633, false),
        (u32::MAX, false),
    ] {
        let (core, _ends) = core();
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.resize(8, 0);
        let result = batch(&mut core.borrow_mut(), port(2), &mut bytes, &mut Vec::new());
        assert_eq!(result.is_ok(), is_fine, "{length}");
    }
}

#[tokio::test]
async fn a_guest_that_takes_nothing_loses_frames_and_no_memory() {
    let (core, mut ends) = core();
    let frame = datagram(3, 1);
    let mut bytes = frame.repeat(1000);
    for _ in 0..100 {
        batch(&mut core.borrow_mut(), port(2), &mut bytes, &mut Vec::new()).unwrap();
    }
    let queued = core.borrow_mut().port_mut(port(3)).waiting_bytes().len();
    assert!(queued <= 1024 * 1024 + bytes.len(), "{queued}");
    assert_eq!(
        sent(&core, &mut ends, 3).len() % frame.len(),
        0,
        "whole frames only"
    );
    assert!(core.borrow().counters().overflowed > 0);
}

#[tokio::test]
async fn a_socket_is_reached_however_deep_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("d".repeat(107));
    std::fs::create_dir(&deep).unwrap();
    for directory in [folder.path(), &deep] {
        let opened = std::fs::File::open(directory).unwrap();
        let short = format!("/proc/self/fd/{}/card.sock", opened.as_raw_fd());
        let _listening = tokio::net::UnixListener::bind(short).unwrap();
        connect(&directory.join("card.sock")).await.unwrap();
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(300))]

    #[test]
    fn random_streams_are_cut_or_end(mut noise in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400), lengths in proptest::collection::vec(0_u16..80, 0..6)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _within = runtime.enter();
        let (core, _ends) = core();
        // Noise, and noise behind lengths that fit.
        let mut framed_noise: Vec<u8> = lengths
            .iter()
            .flat_map(|length| framed(&noise[..usize::from(*length).min(noise.len())]))
            .collect();
        for bytes in [&mut noise, &mut framed_noise] {
            for number in [2, 20, 90] {
                let length = bytes.len();
                if let Ok(used) = batch(&mut core.borrow_mut(), port(number), bytes, &mut Vec::new()) {
                    proptest::prop_assert!(used <= length);
                }
            }
        }
    }
}
